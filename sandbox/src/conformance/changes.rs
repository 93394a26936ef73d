//! What is told of changed files.

use std::time::Duration;

use super::context::{Context, Finding, ensure, sh, sh_for};
use super::{Trial, trials};
use crate::{Change, ChangeKind, FileKind, Sandbox};

pub(super) const TRIALS: &[Trial] = trials![
    "what was made, changed and removed is told, and nothing else" => plain,
    "changes are told of everything that a file can be" => kinds,
    "a link to nowhere that is replaced is told as modified" => replaced_link,
    "many changes are told up to the limit" => many,
];

/// More than anything here changes.
const ENOUGH: usize = 1000;

/// The changes below `folder`, a line each: kind, what is there, permissions, path.
async fn told(sandbox: &dyn Sandbox, folder: &str) -> Result<Vec<String>, Finding> {
    let changes = sandbox.changes(ENOUGH).await?;
    ensure!(!changes.is_cut, "it was cut: {} changes", changes.changes.len());
    let below = changes.changes.iter().filter(|change| change.path.starts_with(folder));
    Ok(below.map(line).collect())
}

fn line(change: &Change) -> String {
    let kind = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    };
    let now = change.now.as_ref().map_or(String::new(), |now| {
        let what = match now.kind {
            FileKind::File => format!("file of {}", now.size_bytes),
            FileKind::Folder => "folder".to_owned(),
            FileKind::Link => format!("link to {}", now.link.as_deref().unwrap_or_default()),
            FileKind::Other => "other".to_owned(),
        };
        let is_link = now.kind == FileKind::Link;
        if is_link { format!(" {what}") } else { format!(" {what} {:o}", now.mode) }
    });
    format!("{kind}{now} {}", change.path)
}

fn same(told: &[String], expected: &[&str], whose: &str) -> Result<(), Finding> {
    ensure!(told == expected, "{whose}: {told:#?} in place of {expected:#?}");
    Ok(())
}

async fn plain(context: &Context<'_>) -> Result<(), Finding> {
    let origin = context.create().await?;
    same(&told(&*origin, "/").await?, &[], "a new sandbox")?;
    for name in ["deleted", "modified", "same"] {
        origin.write_file(&format!("/kept/{name}"), b"first", 0o644).await?;
    }
    let expected = [
        "added folder 755 /kept",
        "added file of 5 644 /kept/deleted",
        "added file of 5 644 /kept/modified",
        "added file of 5 644 /kept/same",
    ];
    same(&told(&*origin, "/").await?, &expected, "the origin")?;
    if !context.can().fork {
        return Ok(origin.close().await?);
    }
    let fork = origin.fork().await?;
    same(&told(&*fork, "/").await?, &[], "a new fork")?;
    fork.write_file("/kept/modified", &[0, 255, 10, 128], 0o644).await?;
    fork.write_file("/kept/new/file", b"", 0o600).await?;
    let mut expected_of_fork = vec![
        "modified file of 4 644 /kept/modified",
        "added folder 755 /kept/new",
        "added file of 0 600 /kept/new/file",
    ];
    if context.needs_scripts().is_ok() {
        sh(&*fork, "rm /kept/deleted").await?;
        expected_of_fork.insert(0, "deleted /kept/deleted");
    }
    same(&told(&*fork, "/").await?, &expected_of_fork, "the fork")?;
    same(&told(&*origin, "/").await?, &expected, "the origin of a fork")?;
    if context.can().snapshot {
        let snapshot = fork.snapshot().await?;
        let restored = context.backend.restore(&snapshot).await?;
        same(&told(&*restored, "/").await?, &[], "a restored one")?;
        restored.write_file("/kept/same", b"other", 0o644).await?;
        let expected = ["modified file of 5 644 /kept/same"];
        same(&told(&*restored, "/").await?, &expected, "a restored one")?;
        restored.close().await?;
        context.backend.remove_snapshot(&snapshot).await?;
        same(&told(&*fork, "/").await?, &expected_of_fork, "the fork behind a snapshot")?;
    }
    fork.close().await?;
    Ok(origin.close().await?)
}

async fn kinds(context: &Context<'_>) -> Result<(), Finding> {
    let origin = context.posix().await?;
    let script = "mkdir -p /t/d/e/f /t/p; printf 'a\\000\\377' >/t/bin; chmod 4751 /t/bin; ln -s bin /t/link; \
                  mkfifo /t/pipe; chmod 600 /t/pipe; echo x >\"/t/$(printf 'n\\377m')\"; echo x >'/t/two\nlines'; \
                  echo x >/t/d/e/f/x";
    sh(&*origin, script).await?;
    let changes = origin.changes(ENOUGH).await?;
    let odd = changes.changes.iter().find(|change| change.bytes() == b"/t/n\xffm");
    ensure!(odd.is_some_and(|odd| odd.path == "/t/n\u{fffd}m"), "a name that is no text: {odd:?}");
    let expected = [
        "added folder 755 /t",
        "added file of 3 4751 /t/bin",
        "added folder 755 /t/d",
        "added folder 755 /t/d/e",
        "added folder 755 /t/d/e/f",
        "added file of 2 644 /t/d/e/f/x",
        "added link to bin /t/link",
        "added file of 2 644 /t/n\u{fffd}m",
        "added folder 755 /t/p",
        "added other 600 /t/pipe",
        "added file of 2 644 /t/two\nlines",
    ];
    same(&told(&*origin, "/t").await?, &expected, "the origin")?;
    if !context.can().fork {
        return Ok(origin.close().await?);
    }
    let fork = origin.fork().await?;
    origin.close().await?;
    let script = "mv /t/bin /t/d/moved; rm -r /t/d/e; chmod 700 /t/p; rm /t/link; ln -s other /t/link; \
                  rm \"/t/$(printf 'n\\377m')\"; echo x >\"/t/$(printf 'o\\376')\"; \
                  rm '/t/two\nlines'; mkdir '/t/two\nlines'; \
                  mkdir /t/q; rmdir /t/q; echo x >/t/q; rm /t/q";
    sh(&*fork, script).await?;
    let expected = [
        "deleted /t/bin",
        "deleted /t/d/e",
        "added file of 3 4751 /t/d/moved",
        "modified link to other /t/link",
        "deleted /t/n\u{fffd}m",
        "added file of 2 644 /t/o\u{fffd}",
        "modified folder 700 /t/p",
        "modified folder 755 /t/two\nlines",
    ];
    same(&told(&*fork, "/t").await?, &expected, "the fork")?;
    Ok(fork.close().await?)
}

async fn replaced_link(context: &Context<'_>) -> Result<(), Finding> {
    let origin = context.posix().await?;
    sh(&*origin, "mkdir /t; ln -s /no/where /t/link").await?;
    same(
        &told(&*origin, "/t").await?,
        &["added folder 755 /t", "added link to /no/where /t/link"],
        "the origin",
    )?;
    let fork = origin.fork().await?;
    origin.close().await?;
    sh(&*fork, "rm /t/link; ln -s other /t/link").await?;
    let told = told(&*fork, "/t").await?;
    fork.close().await?;
    // Podman looks through the link for what was there before.
    if told == ["added link to other /t/link"] {
        return Err(Finding::Skipped("links to nowhere are not told apart from nothing".into()));
    }
    same(&told, &["modified link to other /t/link"], "the fork")
}

async fn many(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let num = if context.needs_posix().is_ok() {
        let script =
            "mkdir /many && cd /many && i=0; while [ $i -lt 20000 ]; do : >f$i; i=$((i+1)); done";
        let made = sh_for(&*sandbox, script, Duration::from_secs(60)).await?;
        ensure!(made.end.is_success(), "it {}: {}", made.end, made.stderr.text());
        20_000
    } else {
        for number in 0..300 {
            sandbox.write_file(&format!("/many/f{number}"), b"", 0o644).await?;
        }
        300
    };
    let some = sandbox.changes(num / 10).await?;
    ensure!(some.is_cut && some.changes.len() == num / 10, "{} were told", some.changes.len());
    let first = line(&some.changes[0]);
    ensure!(first == "added folder 755 /many", "the first is {first}");
    let all = sandbox.changes(num + 1).await?;
    ensure!(!all.is_cut && all.changes.len() == num + 1, "{} of all", all.changes.len());
    ensure!(some.changes[..] == all.changes[..num / 10], "those that were cut are others");
    let none = sandbox.changes(0).await?;
    ensure!(none.is_cut && none.changes.is_empty(), "{} of none", none.changes.len());
    Ok(sandbox.close().await?)
}
