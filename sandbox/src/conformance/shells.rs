//! What shell sessions have to do.

use std::time::Duration;

use super::context::{Context, Finding, ensure, is_unsupported};
use super::{Trial, trials};
use crate::{ExecEnd, Sandbox, SandboxError, Shell, ShellOptions};

const LONG: Duration = Duration::from_secs(60);

pub(super) const TRIALS: &[Trial] = trials![
    "a shell keeps its working directory" => keeps_workdir,
    "a shell keeps variables and survives what its commands do" => survives,
    "a command that ends the shell is an observation" => exits,
    "a command in a shell meets its deadline, and the next runs" => deadline,
    "background output is not mixed up with later commands" => background,
    "two shells of a sandbox do not disturb each other" => two,
];

async fn open(context: &Context<'_>, sandbox: &dyn Sandbox) -> Result<Box<dyn Shell>, Finding> {
    let opened = sandbox.open_shell(&ShellOptions::default()).await;
    match opened {
        Ok(_) if !context.can().shell => {
            Err(Finding::Failed("it does what it says it cannot".into()))
        }
        Ok(shell) => Ok(shell),
        Err(error) if !context.can().shell => {
            is_unsupported(error)?;
            Err(Finding::Unsupported)
        }
        Err(error) => Err(error.into()),
    }
}

async fn says(shell: &mut dyn Shell, command: &str, expected: &str) -> Result<(), Finding> {
    let result = shell.run(command, LONG).await?;
    let text = result.stdout.text();
    ensure!(text == expected, "`{command}` {} and wrote {text:?}", result.end);
    Ok(())
}

async fn keeps_workdir(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.write_file("/tmp/folder/file", b"", 0o644).await?;
    let mut shell = open(context, &*sandbox).await?;
    says(&mut *shell, "cd /tmp/folder", "").await?;
    says(&mut *shell, "pwd", "/tmp/folder\n").await?;
    shell.close().await?;
    shell.close().await?;
    let after = shell.run("pwd", LONG).await;
    ensure!(matches!(after, Err(SandboxError::Died { .. })), "after its end: {after:?}");
    Ok(sandbox.close().await?)
}

async fn survives(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut shell = open(context, &*sandbox).await?;
    says(&mut *shell, "x=kept; f() { echo $x; }", "").await?;
    for (command, expected) in [
        ("if then", ""),
        ("cat", ""),
        ("printf '\\036no newline'", "\u{1e}no newline"),
        ("f", "kept\n"),
        ("echo ${gone:?}", ""),
        ("(exit 9)", ""),
        ("echo $?", "9\n"),
        ("exec </dev/null >/dev/null", ""),
        ("f | cat", "kept\n"),
    ] {
        says(&mut *shell, command, expected).await?;
    }
    for num in 0..200 {
        says(&mut *shell, &format!("echo {num}"), &format!("{num}\n")).await?;
    }
    shell.close().await?;
    Ok(sandbox.close().await?)
}

async fn exits(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut shell = open(context, &*sandbox).await?;
    says(&mut *shell, "cd /tmp", "").await?;
    let result = shell.run("echo bye; exit 5", LONG).await?;
    let seen = (result.end, result.restarted, result.stdout.text());
    ensure!(seen == (ExecEnd::Exited { code: 5 }, true, "bye\n".into()), "{seen:?}");
    says(&mut *shell, "pwd", "/tmp\n").await?;
    shell.close().await?;
    Ok(sandbox.close().await?)
}

async fn deadline(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut shell = open(context, &*sandbox).await?;
    says(&mut *shell, "cd /tmp", "").await?;
    for command in ["sleep 98765", "trap '' TERM INT; while :; do :; done"] {
        let result = shell.run(command, Duration::from_secs(1)).await?;
        ensure!(result.end == ExecEnd::TimedOut, "`{command}` {}", result.end);
        ensure!(result.wall.as_secs() < 60, "`{command}` took {:?}", result.wall);
        says(&mut *shell, "pwd", "/tmp\n").await?;
    }
    shell.close().await?;
    Ok(sandbox.close().await?)
}

async fn background(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let mut shell = open(context, &*sandbox).await?;
    says(&mut *shell, "(while :; do sleep 0.1; echo noise; done) &", "").await?;
    for num in 0..5 {
        says(&mut *shell, &format!("sleep 0.3; echo {num}"), &format!("{num}\n")).await?;
    }
    shell.close().await?;
    Ok(sandbox.close().await?)
}

async fn two(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.write_file("/tmp/one/file", b"", 0o644).await?;
    let mut first = open(context, &*sandbox).await?;
    let mut second = open(context, &*sandbox).await?;
    says(&mut *second, "cd /tmp", "").await?;
    says(&mut *first, "cd /tmp/one", "").await?;
    says(&mut *second, "pwd", "/tmp\n").await?;
    first.close().await?;
    says(&mut *second, "pwd", "/tmp\n").await?;
    second.close().await?;
    Ok(sandbox.close().await?)
}
