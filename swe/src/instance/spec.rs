use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What it takes to build and test a version of a repository, in SWE-bench's terms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepoSpec {
    /// SWE-bench's short name of the language: `py`, `js`, `rs`, `go`, `java`, `c`, `php` or `rb`.
    pub language: String,
    /// The version of Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Packages of conda, or `requirements.txt` or `environment.yml` for what such a file of the repository names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<String>,
    /// Whether an environment of `environment.yml` is made first and filled then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_use_env: bool,
    /// Files of requirements in the repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requirement_files: Vec<String>,
    /// Files of conda environments in the repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment_files: Vec<String>,
    /// What the files of requirements came to when the row was made, if it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<String>,
    /// What the conda environment came to when the row was made, if it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Packages of pip.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pip_packages: Vec<String>,
    /// Packages of the system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apt_packages: Vec<String>,
    /// Commands before the installation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre_install: Vec<String>,
    /// Commands of the installation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<String>,
    /// Commands that build after the installation, and again before the tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
    /// Commands before the tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub eval_commands: Vec<String>,
    /// Commands of the tests; those of Python get the files of tests as arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub test_commands: Vec<String>,
    /// Versions that the base image has.
    #[serde(skip_serializing_if = "DockerSpecs::is_empty")]
    pub docker: DockerSpecs,
    /// The base image, where the row names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// The commit by which the environment is set up, where it is not the base commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_commit: Option<String>,
    /// Billionths of a processor that the container is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano_cpus: Option<u64>,
}

/// Versions that a base image has, by the name of what they are of, and arguments of its container.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DockerSpecs(pub BTreeMap<String, serde_json::Value>);

impl DockerSpecs {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
