//! Source packages that are named instead of lying somewhere.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::process::Command;

/// How long fetching one may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Where what was fetched is kept.
const FOLDER: &str = "sources";

/// The path of a package: a file or folder, or what `pip download` fetches under its name into `out/sources`, where it is kept.
///
/// pip asks a package's own build system for its metadata, which is code of the package that runs on this machine.
pub(super) async fn find(package: &str, python: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let path = Path::new(package);
    if path.exists() {
        return Ok(path.to_owned());
    }
    let Some((name, version)) = requirement(package) else {
        bail!(
            "find package `{package}`: there is no such file or folder, and it is no name of a package"
        );
    };
    let kept = out.join(FOLDER);
    if let Some(found) = fetched(&kept, name, version) {
        return Ok(found);
    }
    std::fs::create_dir_all(&kept).with_context(|| format!("make folder `{}`", kept.display()))?;
    let new = tempfile::tempdir_in(&kept)
        .with_context(|| format!("make a folder in `{}`", kept.display()))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest"])
        .arg(new.path())
        .arg(package)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let asked = tokio::time::timeout(PATIENCE, command.output()).await;
    let asked = asked
        .with_context(|| format!("fetch `{package}` with pip within {} s", PATIENCE.as_secs()))?
        .with_context(|| format!("run `{}`", python.display()))?;
    let told = String::from_utf8_lossy(&asked.stderr);
    ensure!(
        asked.status.success(),
        "fetch the source of `{package}` with `{} -m pip download --no-binary`; where no index of packages is reached, name an archive or a folder:\n{}",
        python.display(),
        told.trim()
    );
    let mut files = std::fs::read_dir(new.path())?.flatten();
    let file = files.next().with_context(|| format!("fetch `{package}`: pip left no file"))?;
    let to = kept.join(file.file_name());
    std::fs::rename(file.path(), &to).with_context(|| format!("keep `{}`", to.display()))?;
    Ok(to)
}

/// Name and version of what pip is asked for: `name` or `name==version`, and nothing that it would take for an option.
fn requirement(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, version) = match text.split_once("==") {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let is_version = |version: &str| {
        version.starts_with(|c: char| c.is_ascii_alphanumeric())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+!_-".contains(c))
    };
    let is_archive =
        [".tar.gz", ".tgz", ".tar", ".crate", ".zip"].iter().any(|end| name.ends_with(end));
    (is_name && !is_archive && version.is_none_or(is_version)).then_some((name, version))
}

/// What was fetched before.
fn fetched(folder: &Path, name: &str, version: Option<&str>) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let stem = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".tgz"));
            stem.and_then(|stem| stem.rsplit_once('-')).is_some_and(|(called, its)| {
                plain(called) == plain(name) && version.is_none_or(|version| version == its)
            })
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.pop()
}

/// A name as indexes compare it (PEP 503).
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.to_ascii_lowercase().chars() {
        match c {
            '-' | '_' | '.' if plain.ends_with('-') => {}
            '-' | '_' | '.' => plain.push('-'),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths_and_options() {
        assert_eq!(requirement("toolz"), Some(("toolz", None)));
        assert_eq!(requirement("a.b-c==1.0+x"), Some(("a.b-c", Some("1.0+x"))));
        for wrong in
            ["", "-r", "--index-url=x", "a/b", "a b", "a==", "a==-x", "a>=1", "gone-1.0.tar.gz"]
        {
            assert_eq!(requirement(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_was_fetched_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["more_itertools-10.1.0.tar.gz", "toolz-1.0.0.tar.gz", "toolz-1.1.0.tar.gz"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let name = |found: Option<PathBuf>| {
            found.map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        };
        assert_eq!(
            name(fetched(folder.path(), "More-Itertools", None)).unwrap(),
            "more_itertools-10.1.0.tar.gz"
        );
        assert_eq!(
            name(fetched(folder.path(), "toolz", Some("1.0.0"))).unwrap(),
            "toolz-1.0.0.tar.gz"
        );
        assert_eq!(name(fetched(folder.path(), "toolz", Some("2"))), None);
    }
}
