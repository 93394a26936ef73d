//! Source packages that are named instead of lying somewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use tokio::process::Command;

use crate::child;

/// Where what was fetched is kept.
const FOLDER: &str = "sources";

/// What a crate is named behind.
const CRATE: &str = "crate:";

/// The path of a package: a file or folder, or what `pip download`, or `cargo fetch` for `crate:NAME`, fetches under its name into
/// `out/sources`, where it is kept.
///
/// pip asks a package's own build system for its metadata, which is code of the package that runs on this machine.
pub(super) async fn find(
    package: &str,
    python: &Path,
    cargo: &Path,
    out: &Path,
) -> anyhow::Result<PathBuf> {
    let path = Path::new(package);
    if path.exists() {
        return Ok(path.to_owned());
    }
    let of_crate = package.strip_prefix(CRATE);
    let Some((name, version)) = requirement(of_crate.unwrap_or(package)) else {
        bail!(
            "find package `{package}`: there is no such file or folder, and it is no name of a package"
        );
    };
    let kept = out.join(FOLDER);
    if let Some(found) = fetched(&kept, of_crate.is_some(), name, version) {
        return Ok(found);
    }
    std::fs::create_dir_all(&kept).with_context(|| format!("make folder `{}`", kept.display()))?;
    let new = tempfile::tempdir_in(&kept)
        .with_context(|| format!("make a folder in `{}`", kept.display()))?;
    if of_crate.is_some() {
        return fetch_crate(name, version, cargo, &kept, new.path()).await;
    }
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest"])
        .arg(new.path())
        .arg(package);
    let asked = child::output(&mut command, child::TRANSFER).await;
    let asked = asked.with_context(|| format!("fetch `{package}` with pip"))?;
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

/// Has cargo fetch a crate, and keeps a copy of it. Nothing of the crate runs.
async fn fetch_crate(
    name: &str,
    version: Option<&str>,
    cargo: &Path,
    kept: &Path,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    // 1. A package that needs it, whose `Cargo.lock` tells which version that is.
    let wanted = version.map_or_else(|| "*".to_owned(), |version| format!("={version}"));
    let manifest = format!(
        "[package]\nname = \"sources-of-a-crate\"\nversion = \"0.0.0\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
         [dependencies]\nit = {{ package = \"{name}\", version = \"{wanted}\", default-features = false }}\n"
    );
    for (file, text) in [("Cargo.toml", manifest.as_str()), ("lib.rs", "")] {
        let path = folder.join(file);
        std::fs::write(&path, text).with_context(|| format!("write `{}`", path.display()))?;
    }
    let mut command = Command::new(cargo);
    command.args(["fetch", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    let asked = child::output(&mut command, child::TRANSFER).await;
    let asked = asked.with_context(|| format!("fetch crate `{name}` with cargo"))?;
    ensure!(
        asked.status.success(),
        "fetch crate `{name}` with `{} fetch`; where no registry is reached, name an archive or a folder:\n{}",
        cargo.display(),
        String::from_utf8_lossy(&asked.stderr).trim()
    );
    // 2. Where cargo keeps what it has fetched.
    let lock = std::fs::read_to_string(folder.join("Cargo.lock")).context("read `Cargo.lock`")?;
    let lock: toml::Table = toml::from_str(&lock).context("read `Cargo.lock`")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let field = |package: &toml::Value, name: &str| {
        package.get(name).and_then(toml::Value::as_str).map(str::to_owned)
    };
    // The newest, where another crate needs an older one of it.
    let version = packages
        .filter(|package| {
            field(package, "name").is_some_and(|it| plain(&it) == plain(name))
                && field(package, "source").is_some()
        })
        .filter_map(|package| field(package, "version"))
        .max_by_key(|version| {
            version
                .split(['.', '-', '+'])
                .map(|part| part.parse().unwrap_or(0))
                .collect::<Vec<u64>>()
        });
    let version = version.with_context(|| format!("find `{name}` in what cargo has fetched"))?;
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let cache = home.unwrap_or_default().join("registry/cache");
    let called = format!("{name}-{version}.crate");
    let registries = std::fs::read_dir(&cache).into_iter().flatten().flatten();
    let found = registries.map(|registry| registry.path().join(&called)).find(|it| it.is_file());
    let found = found.with_context(|| {
        format!("find `{called}` below `{}`, where cargo keeps it", cache.display())
    })?;
    // 3. A copy, whole or not at all.
    let (copy, to) = (folder.join(&called), kept.join(&called));
    std::fs::copy(&found, &copy).with_context(|| format!("copy `{}`", found.display()))?;
    std::fs::rename(&copy, &to).with_context(|| format!("keep `{}`", to.display()))?;
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
fn fetched(folder: &Path, is_crate: bool, name: &str, version: Option<&str>) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let ends: &[&str] = if is_crate { &[".crate"] } else { &[".tar.gz", ".tgz"] };
            let stem = ends.iter().find_map(|end| file.strip_suffix(end));
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
            name(fetched(folder.path(), false, "More-Itertools", None)).unwrap(),
            "more_itertools-10.1.0.tar.gz"
        );
        assert_eq!(
            name(fetched(folder.path(), false, "toolz", Some("1.0.0"))).unwrap(),
            "toolz-1.0.0.tar.gz"
        );
        assert_eq!(name(fetched(folder.path(), false, "toolz", Some("2"))), None);
        assert_eq!(name(fetched(folder.path(), true, "toolz", None)), None);
        std::fs::write(folder.path().join("toolz-0.1.0.crate"), "").unwrap();
        assert_eq!(name(fetched(folder.path(), true, "toolz", None)).unwrap(), "toolz-0.1.0.crate");
    }
}
