//! What repositories need that rows do not tell: facts of the packages that made them, in a file beside this one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::instance::RepoSpec;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[expect(dead_code, reason = "told in the file, for whoever reads it")]
    source: String,
    swesmith: SmithTable,
    specs: Vec<RepoSpec>,
    families: BTreeMap<String, BTreeMap<String, Repo>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repo {
    #[expect(dead_code, reason = "each spec has it as well")]
    language: String,
    versions: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SmithTable {
    test_command: String,
    repos: BTreeMap<String, SmithRepo>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SmithRepo {
    test_command: Option<String>,
    names_tests: bool,
    by_key: bool,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("specs.json")).expect("the table is checked by a test")
});

/// What the table knows of a repository in a version.
pub(super) enum Known {
    /// The repository is not in it.
    NoRepo,
    /// The repository is, the version is not; those that are.
    NoVersion(Vec<&'static str>),
    /// It is.
    Spec(&'static RepoSpec),
}

/// What a family's table knows of a repository in a version.
pub(super) fn spec(family: &str, repo: &str, version: &str) -> Known {
    let Some(found) = TABLE.families.get(family).and_then(|repos| repos.get(repo)) else {
        return Known::NoRepo;
    };
    match found.versions.get(version) {
        Some(number) => Known::Spec(&TABLE.specs[*number]),
        None => Known::NoVersion(found.versions.keys().map(String::as_str).collect()),
    }
}

/// How SWE-smith tests a repository of Python.
pub(super) struct SmithSpec {
    /// The command.
    pub(super) command: &'static str,
    /// Whether the command is given the files of tests.
    pub(super) names_tests: bool,
    /// Whether the command is given keys of tests in ways of its own.
    pub(super) by_key: bool,
}

/// How SWE-smith tests the repository `owner__repo.commit`; absent for one that is no Python repository of its.
pub(super) fn smith_spec(repo: &str) -> Option<SmithSpec> {
    let table = &TABLE.swesmith;
    let found = table.repos.get(repo)?;
    Some(SmithSpec {
        command: found.test_command.as_deref().unwrap_or(&table.test_command),
        names_tests: found.names_tests,
        by_key: found.by_key,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Every repository and version of a family.
    pub(in crate::rows) fn all(family: &str) -> Vec<(&'static str, &'static str)> {
        let repos = TABLE.families.get(family).unwrap();
        repos
            .iter()
            .flat_map(|(repo, found)| {
                found.versions.keys().map(move |v| (repo.as_str(), v.as_str()))
            })
            .collect()
    }

    #[test]
    fn every_entry_of_the_table_is_there() {
        for family in TABLE.families.keys() {
            for (repo, version) in all(family) {
                assert!(matches!(spec(family, repo, version), Known::Spec(..)), "{repo} {version}");
            }
        }
        assert_eq!((all("swe-bench").len(), all("swe-gym").len()), (689, 510));
        assert!(matches!(spec("swe-bench", "a/b", "1"), Known::NoRepo));
        assert!(matches!(spec("swe-bench", "django/django", "99"), Known::NoVersion(_)));
        assert!(TABLE.swesmith.repos.len() > 100);
    }
}
