//! The files of requirements that SWE-bench's harness reads for a repository (`MAP_REPO_TO_REQS_PATHS` in its constants).

use std::collections::BTreeSet;

use super::{ImageError, Mirror};

/// Files of requirements of one instance, with those that they name.
const MAX_FILES: usize = 16;

/// The files of a repository, of which the first that is there counts.
const PATHS: &[(&str, &[&str])] = &[
    ("dbt-labs/dbt-core", &["dev-requirements.txt", "dev_requirements.txt"]),
    ("django/django", &["tests/requirements/py3.txt"]),
    (
        "matplotlib/matplotlib",
        &["requirements/dev/dev-requirements.txt", "requirements/testing/travis_all.txt"],
    ),
    ("pallets/flask", &["requirements/dev.txt"]),
    ("pylint-dev/pylint", &["requirements_test.txt"]),
    ("pyvista/pyvista", &["requirements_test.txt", "requirements.txt"]),
    ("sqlfluff/sqlfluff", &["requirements_dev.txt"]),
    ("sympy/sympy", &["requirements-dev.txt", "requirements-test.txt"]),
];

/// The requirements of a repository at a commit: the lines of its file, and of those that it names, without the repository
/// itself and comments, as the harness takes them.
///
/// # Errors
///
/// The reason, where there is no such file or it names too many others.
pub(super) async fn of_repository(
    mirror: &Mirror,
    repo: &str,
    commit: &str,
    named: &[String],
) -> Result<Result<String, String>, ImageError> {
    let known =
        PATHS.iter().find(|(name, _)| *name == repo).map_or(&[] as &[&str], |(_, paths)| paths);
    let paths: Vec<&str> = named.iter().map(String::as_str).chain(known.iter().copied()).collect();
    let mut first = None;
    for path in &paths {
        if let Some(text) = mirror.file(commit, path).await? {
            first = Some(((*path).to_owned(), text));
            break;
        }
    }
    let Some(first) = first else {
        return Ok(Err(match paths.is_empty() {
            true => format!("nothing tells which files of requirements `{repo}` has"),
            false => format!("commit `{commit}` has no {}", paths.join(" and no ")),
        }));
    };
    let mut lines = Vec::new();
    let mut seen = BTreeSet::from([first.0.clone()]);
    let mut left = vec![first];
    while let Some((path, text)) = left.pop() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for line in text.lines().map(str::trim) {
            match included(line) {
                Some(name) => {
                    let Some(inner) = joined(folder, name) else {
                        return Ok(Err(format!(
                            "`{path}` names `{name}`, which leaves the repository"
                        )));
                    };
                    if !seen.insert(inner.clone()) {
                        continue;
                    }
                    if seen.len() > MAX_FILES {
                        return Ok(Err(format!(
                            "there are more than {MAX_FILES} files of requirements"
                        )));
                    }
                    match mirror.file(commit, &inner).await? {
                        Some(text) => left.push((inner, text)),
                        None => {
                            return Ok(Err(format!(
                                "`{path}` names `{inner}`, which is not there"
                            )));
                        }
                    }
                }
                None if is_kept(line) => lines.push(line.to_owned()),
                None => {}
            }
        }
    }
    Ok(Ok(lines.join("\n") + "\n"))
}

/// The file that a line includes.
fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("--requirement").or_else(|| line.strip_prefix("-r"))?;
    let name = rest.trim_start_matches('=').trim();
    let name = name.split(" #").next().unwrap_or(name).trim();
    (!name.is_empty()).then_some(name)
}

fn is_kept(line: &str) -> bool {
    !line.is_empty() && !["-e .", "#", ".[test"].iter().any(|start| line.starts_with(start))
}

/// A path from a folder, without leaving the repository.
fn joined(folder: &str, name: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    if name.starts_with('/') || name.contains("://") {
        return None;
    }
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_include_others_or_are_kept() {
        assert_eq!(included("-r base.txt"), Some("base.txt"));
        assert_eq!(included("--requirement=../a.txt # why"), Some("../a.txt"));
        assert_eq!(included("requests"), None);
        assert_eq!(joined("requirements", "../a/b.txt").as_deref(), Some("a/b.txt"));
        assert_eq!(joined("", "../b.txt"), None);
        assert_eq!(joined("a", "https://host/x"), None);
        for (line, kept) in
            [("", false), ("# a", false), ("-e .", false), (".[test]", false), ("pytest==1", true)]
        {
            assert_eq!(is_kept(line), kept, "{line}");
        }
    }
}
