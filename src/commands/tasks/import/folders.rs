//! Task folders, as a suite.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;
use spar::swe::{FolderFormat, FolderSuite, Instance};

use super::tree::Tree;
use super::{Refused, Report, TASKS, remove};
use crate::bar::Bar;

/// Files of folders that say themselves how the tasks in them are played, which an import would lose.
const SUITE_FILES: [&str; 4] = ["swe.toml", "suite.toml", "env.toml", "ors.toml"];
/// Links that are told where a task cannot be taken for them.
const MAX_LINKS: usize = 3;

/// Task folders that are imported.
pub(super) struct TaskFolders {
    /// Where they lie, without links on the way.
    root: PathBuf,
    found: FolderSuite,
}

impl TaskFolders {
    /// Those of a folder, which may be one itself, for a suite in `out`.
    pub(super) fn open(path: &Path, out: &Path) -> anyhow::Result<Self> {
        let doing = || format!("import `{}`", path.display());
        if let Some(file) = SUITE_FILES.into_iter().find(|file| path.join(file).is_file()) {
            anyhow::bail!(
                "{}: with its `{file}` it is a suite as it is, for `spar tasks ls {}`",
                doing(),
                path.display()
            );
        }
        let root = path.canonicalize().with_context(doing)?;
        let target = real(out).with_context(|| format!("look at `{}`", out.display()))?;
        ensure!(
            !target.starts_with(&root) && !root.starts_with(&target),
            "{} into `{}`: one of these folders lies in the other; name a folder beside it with --out",
            doing(),
            out.display()
        );
        let found = FolderSuite::open(&root).with_context(doing)?;
        Ok(Self { root, found })
    }

    /// BLAKE3 of all that lies in them, in hexadecimal digits.
    pub(super) fn hash(&self) -> String {
        let bar = Bar::new("look", self.found.len());
        let mut hasher = blake3::Hasher::new();
        for (_, folder) in self.found.folders() {
            let below = folder.strip_prefix(&self.root).unwrap_or(folder);
            hasher.update(below.as_os_str().as_encoded_bytes());
            hasher.update(b"\0");
            // What cannot be read is refused later on, and so is part of what comes of it.
            if let Err(error) = Tree::read(folder).and_then(|tree| tree.hash(&mut hasher)) {
                hasher.update(format!("{error:#}").as_bytes());
            }
            bar.advance();
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Checks every task, and copies those that can be taken below `out`, all at once; nothing is changed there where there is
    /// none.
    pub(super) fn copy(&self, out: &Path, report: &mut Report) -> anyhow::Result<()> {
        let (target, partial) = (out.join(TASKS), out.join(format!("{TASKS}.part")));
        // Of an import that was killed.
        remove(&partial)?;
        fs::create_dir(&partial).with_context(|| format!("make folder `{}`", partial.display()))?;
        // Instances have whole paths.
        let into =
            partial.canonicalize().with_context(|| format!("read `{}`", partial.display()))?;
        let wanted = (report.format != "auto").then(|| report.format.clone());
        let bar = Bar::new("import", self.found.len());
        let mut seen = HashSet::new();
        for (format, folder) in self.found.folders() {
            let expected = wanted.as_deref().or((report.taken > 0).then_some(&*report.format));
            match taken(format, folder, &into, expected, &mut seen) {
                Ok(instance) => {
                    format.name.clone_into(&mut report.format);
                    report.take(instance);
                }
                Err(error) => report.refused.push(Refused {
                    id: folder.file_name().map(|name| name.to_string_lossy().into_owned()),
                    why: format!("{error:#}"),
                }),
            }
            bar.advance();
        }
        if report.taken == 0 {
            return remove(&partial);
        }
        // Of what lay there nothing stays.
        remove(&target)?;
        fs::rename(&partial, &target).with_context(|| format!("write `{}`", target.display()))
    }
}

/// Copies a task into `into`, by the name of its folder: it as it was read, or why it cannot be taken.
fn taken(
    format: &FolderFormat,
    folder: &Path,
    into: &Path,
    expected: Option<&str>,
    seen: &mut HashSet<String>,
) -> anyhow::Result<Instance> {
    let place = folder.display();
    if let Some(expected) = expected.filter(|expected| *expected != format.name) {
        anyhow::bail!(
            "`{place}`: it is a task folder of {0}, not of {expected}: `spar tasks import {0}` makes a suite of those",
            format.name
        );
    }
    let instance = format.read(folder)?;
    ensure!(
        seen.insert(instance.id.clone()),
        "`{place}`: another task folder has the name `{}` as well; ids have to be different",
        instance.id
    );
    let copy = into.join(&instance.id);
    let copied = copied(format, folder, &copy, &instance).inspect_err(|_| {
        // It may be there in part; what is left would be a task of the suite.
        drop(remove(&copy));
        seen.remove(&instance.id);
    });
    copied.map(|()| instance)
}

/// Copies a task, and sees to it that the copy is the same task.
fn copied(
    format: &FolderFormat,
    folder: &Path,
    copy: &Path,
    instance: &Instance,
) -> anyhow::Result<()> {
    let tree = Tree::read(folder)?;
    tree.copy(copy)?;
    let read = format.read(copy);
    let is_same = match &read {
        Ok(read) => is_same_but_for(
            (&serde_json::to_value(instance)?, folder),
            (&serde_json::to_value(read)?, copy),
        ),
        Err(_) => false,
    };
    if is_same {
        return Ok(());
    }
    let links: Vec<String> = tree
        .outward()
        .take(MAX_LINKS)
        .map(|(path, to)| format!("`{}` leads to `{}`", path.display(), to.display()))
        .collect();
    let place = folder.display();
    match (links.is_empty(), read) {
        (false, _) => anyhow::bail!(
            "`{place}`: it needs what lies outside of its folder ({}): put that in the place of the link",
            links.join(", ")
        ),
        (true, Err(error)) => Err(error).with_context(|| format!("read the copy of `{place}`")),
        (true, Ok(_)) => anyhow::bail!("`{place}`: it changed while it was copied: try again"),
    }
}

/// Whether two values are equal but for paths below two folders.
fn is_same_but_for((one, of_one): (&Value, &Path), (other, of_other): (&Value, &Path)) -> bool {
    let same = |one, other| is_same_but_for((one, of_one), (other, of_other));
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            let below = |path, folder| Path::new(path).strip_prefix(folder).ok();
            one == other
                || below(one, of_one).is_some() && below(one, of_one) == below(other, of_other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|it| same(one, it)))
        }
        (one, other) => one == other,
    }
}

/// Where a path leads without links on the way, of which the last parts need not be there.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for above in path.ancestors() {
        if let Ok(there) = above.canonicalize() {
            return Ok(there.join(path.strip_prefix(above).unwrap_or(Path::new(""))));
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_are_the_same_but_for_where_they_lie() {
        let is_same = |one: Value, other: Value| {
            is_same_but_for((&one, Path::new("/from/t")), (&other, Path::new("/to/tasks/t")))
        };
        let one = json!({"a": [1, "/from/t/x"], "context": "/from/t/", "text": "/from/t is there"});
        let other = json!({"a": [1, "/to/tasks/t/x"], "context": "/to/tasks/t", "text": "/from/t is there"});
        assert!(is_same(one.clone(), other));
        assert!(!is_same(one.clone(), json!({"a": [1, "/to/tasks/t/x"]})));
        assert!(!is_same(json!("/from/t/x"), json!("/to/tasks/t/y")));
        assert!(!is_same(json!(["/from/tea"]), json!(["/to/tasks/tea"])));
        assert!(!is_same(json!([1]), json!([1, 2])));
    }
}
