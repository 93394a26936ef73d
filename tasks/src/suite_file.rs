//! The `suite.toml` of suites whose splits name tasks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::graders::{GraderConfig, Graders};
use crate::{SuiteError, WrapperConfig};

/// The `suite.toml` of a suite whose splits name files or folders of tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuiteFile {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) about: String,
    pub(crate) environment: String,
    /// How to act, where the environment's own words shall not do.
    #[serde(default)]
    pub(crate) instruction: Option<String>,
    #[serde(default)]
    pub(crate) max_turns: Option<u32>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) evaluation_only: bool,
    /// Who judges the episodes of tasks that do not name graders themselves.
    #[serde(default)]
    pub(crate) graders: Vec<GraderConfig>,
    /// What is around the environment of its tasks.
    #[serde(default)]
    pub(crate) wrappers: Vec<WrapperConfig>,
    pub(crate) splits: BTreeMap<String, SplitFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitFile {
    pub(crate) tasks: PathBuf,
}

/// Refuses graders of a suite that cannot be used.
pub(crate) fn check_graders(graders: &[GraderConfig], path: &Path) -> Result<(), SuiteError> {
    match Graders::open(graders) {
        Ok(_) => Ok(()),
        Err(source) => Err(SuiteError::Task {
            path: path.to_owned(),
            place: "`graders`".to_owned(),
            detail: source.to_string(),
        }),
    }
}

/// The environment of a `suite.toml` whose splits name tasks; absent where they do not.
pub(crate) fn tasks_of(text: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let splits = table.get("splits")?.as_table()?;
    let environment = table.get("environment").and_then(toml::Value::as_str).unwrap_or_default();
    splits.values().any(|split| split.get("tasks").is_some()).then(|| environment.to_owned())
}

impl SuiteFile {
    /// Reads the `suite.toml` of a folder, all of it going into the hash.
    pub(crate) fn open(folder: &Path, hasher: &mut blake3::Hasher) -> Result<Self, SuiteError> {
        let path = folder.join("suite.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
        hasher.update(text.as_bytes());
        let file: Self = toml::from_str(&text).map_err(|source| SuiteError::Manifest {
            path: path.clone(),
            source: Box::new(source),
        })?;
        check_graders(&file.graders, &path)?;
        if !file.wrappers.is_empty() {
            let problem = match (file.environment.as_str(), file.max_turns) {
                ("question", Some(_)) => None,
                ("question", None) => Some("wrappers make turns: say how many in `max_turns`"),
                _ => Some("tasks at a shell take no wrappers"),
            };
            if let Some(problem) = problem {
                return Err(SuiteError::Task {
                    path,
                    place: "`wrappers`".to_owned(),
                    detail: problem.to_owned(),
                });
            }
        }
        Ok(file)
    }

    /// The suite of one file of tasks, with the one split `test`, named like the file.
    pub(crate) fn of_file(path: &Path, environment: &str) -> Self {
        Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            version: "1".to_owned(),
            about: format!("The tasks of {}.", path.display()),
            environment: environment.to_owned(),
            instruction: None,
            max_turns: None,
            tags: Vec::new(),
            evaluation_only: false,
            graders: Vec::new(),
            wrappers: Vec::new(),
            splits: [("test".to_owned(), SplitFile { tasks: path.to_owned() })].into(),
        }
    }
}
