//! Suites that are a table of parameters and seeds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::graders::GraderConfig;
use crate::suite_file::check_graders;
use crate::{Suite, SuiteError, SuiteManifest, Task, WrapperConfig};

/// A suite whose tasks are the parameters of its split plus a seed each; read from `suite.toml`.
///
/// ```toml
/// name = "frozen-lake"
/// version = "1"
/// about = "Cross a frozen lake."
/// environment = "frozen-lake"
/// instruction = "Answer with one of: up, down, left, right."
/// max_turns = 30
///
/// [splits.train]
/// count = 1000
/// first_seed = 0
/// parameters = { size = 4 }
/// ```
#[derive(Debug)]
pub struct TemplateSuite {
    file: SuiteFile,
    manifest: SuiteManifest,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    name: String,
    version: String,
    about: String,
    environment: String,
    instruction: String,
    max_turns: u32,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    evaluation_only: bool,
    #[serde(default)]
    graders: Vec<GraderConfig>,
    #[serde(default)]
    wrappers: Vec<WrapperConfig>,
    splits: BTreeMap<String, SplitTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SplitTemplate {
    count: usize,
    first_seed: u64,
    #[serde(default)]
    parameters: serde_json::Map<String, serde_json::Value>,
}

impl TemplateSuite {
    /// Reads a suite from the text of its `suite.toml`; `path` is named in errors.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Manifest`] when the text is not understood.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SuiteError> {
        let file: SuiteFile = toml::from_str(text).map_err(|source| SuiteError::Manifest {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        check_graders(&file.graders, path)?;
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
            splits: file.splits.iter().map(|(name, split)| (name.clone(), split.count)).collect(),
        };
        Ok(Self { file, manifest })
    }

    /// Reads the `suite.toml` of a folder.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when there is none or it is not understood.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let path: PathBuf = folder.join("suite.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
        Self::parse(&text, &path)
    }
}

impl Suite for TemplateSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        &self.file.about
    }

    fn is_for_evaluation(&self) -> bool {
        self.file.evaluation_only
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let template = &self.file.splits[split];
        let mut parameters = template.parameters.clone();
        parameters.insert("seed".to_owned(), (template.first_seed + index as u64).into());
        WrapperConfig::put(&self.file.wrappers, &mut parameters);
        Ok(Task {
            id: format!("{}/{split}/{index}", self.file.name),
            environment: self.file.environment.clone(),
            parameters: parameters.into(),
            instruction: self.file.instruction.clone(),
            max_turns: self.file.max_turns,
            tags: self.file.tags.clone(),
            graders: self.file.graders.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "s"
        version = "1"
        about = "a"
        environment = "e"
        instruction = "i"
        max_turns = 3
        [splits.train]
        count = 2
        first_seed = 10
        parameters = { size = 4 }
    "#;

    #[test]
    fn a_task_has_the_parameters_of_its_split_and_a_seed() {
        let suite = TemplateSuite::parse(TEXT, Path::new("suite.toml")).unwrap();
        let task = suite.task("train", 1).unwrap();
        assert_eq!(task.id, "s/train/1");
        assert_eq!(task.parameters, serde_json::json!({ "size": 4, "seed": 11 }));
        assert_eq!(suite.task_by_id("s/train/1").unwrap(), task);
        for id in ["s/train/2", "s/train/01", "t/train/1", "s/train", "strain/1"] {
            let error = suite.task_by_id(id).unwrap_err().to_string();
            assert_eq!(error, format!("find task `{id}` in suite `s`"));
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let suite = TemplateSuite::parse(TEXT, Path::new("suite.toml")).unwrap();
        let error = suite.task("test", 0).unwrap_err().to_string();
        assert_eq!(error, "find split `test` of suite `s`: it has `train`");
        let error = suite.task("train", 2).unwrap_err().to_string();
        assert_eq!(error, "find task 2 of `s/train`: it has 2");
        let wrapped = TEXT.replace("[splits", "[[wrappers]]\nkind = 'w'\nn = 2\n[splits");
        let suite = TemplateSuite::parse(&wrapped, Path::new("suite.toml")).unwrap();
        let task = suite.task("train", 0).unwrap();
        let (wrappers, inner) = WrapperConfig::take(&task).unwrap().unwrap();
        assert_eq!((wrappers[0].kind.as_str(), &wrappers[0].options["n"]), ("w", &2.into()));
        assert_eq!(inner.parameters, serde_json::json!({ "size": 4, "seed": 10 }));
        let typo = TEXT.replace("max_turns", "max_turn");
        assert!(TemplateSuite::parse(&typo, Path::new("suite.toml")).is_err());
    }
}
