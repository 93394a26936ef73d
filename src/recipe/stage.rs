//! A stage of a recipe, as it is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{DataConfig, Recipe};

/// A stage of a recipe, as it is written.
///
/// Its options are those of its kind; see [`stage_registry`](crate::training::stages::stage_registry).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageConfig {
    /// What it does: the name of a kind of stage.
    pub kind: String,
    /// Tells it apart from the other stages of the recipe. Default: its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who is trained, or plays: one of the recipe's learners. Default: the only one there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<String>,
    /// Learners by the environment that they play, or by `ENVIRONMENT/SEAT`, where one stage trains several. Default empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub learners: BTreeMap<String, String>,
    /// Earlier stages whose dev splits are played again once this one is over. Default empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub re_evaluate: Vec<String>,
    /// What it plays. Default absent: what the recipe's `data` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataConfig>,
    /// The options of its kind; those left out have the defaults that the kind documents.
    #[serde(flatten)]
    pub options: toml::Table,
}

impl StageConfig {
    /// A stage with the options that `config` holds.
    fn new(kind: &str, name: &str, config: &impl Serialize) -> Self {
        let options = toml::Table::try_from(config).expect("options can be written as TOML");
        let (kind, name) = (kind.to_owned(), Some(name.to_owned()));
        let (learner, learners, re_evaluate) = (None, BTreeMap::new(), Vec::new());
        Self { kind, name, learner, learners, re_evaluate, data: None, options }
    }
}

impl Recipe {
    /// What its stages play, and first what it says for those that do not say it themselves; a mixture suite by suite.
    pub fn all_suites(&self) -> Vec<DataConfig> {
        let all = self.all_data();
        let single = |data: &DataConfig| {
            let of = |(suite, folder): (&str, Option<&PathBuf>)| DataConfig {
                suite: suite.to_owned(),
                folder: folder.cloned(),
                suites: Vec::new(),
                ..data.clone()
            };
            data.each_suite().map(of).collect::<Vec<_>>()
        };
        all.iter().flat_map(single).collect()
    }

    /// What its stages play, and first what it says for those that do not say it themselves.
    pub fn all_data(&self) -> Vec<DataConfig> {
        let of_stages = self.stages.iter().filter_map(|stage| stage.data.as_ref());
        std::iter::once(&self.data).chain(of_stages).cloned().collect()
    }

    /// The stages in their order: those that are listed, else those that `warm_start` and `reinforce` come to.
    ///
    /// These are imitation, an evaluation of what it led to on the test splits, reinforcement learning, and the same
    /// evaluation of the checkpoint that the dev split chose. A stage of 0 iterations is left out.
    pub fn stage_configs(&self) -> Vec<StageConfig> {
        if !self.stages.is_empty() {
            return self.stages.clone();
        }
        let evaluate = |name: &str, checkpoint: &str| {
            let mut options = toml::Table::new();
            options.insert("checkpoint".to_owned(), checkpoint.into());
            if let Some(tasks) = self.evaluation.test_tasks {
                let tasks = i64::try_from(tasks).unwrap_or(i64::MAX);
                options.insert("tasks".to_owned(), tasks.into());
            }
            StageConfig::new("evaluate", name, &options)
        };
        let mut stages = Vec::new();
        if self.warm_start.iterations > 0 {
            stages.push(StageConfig::new("imitate", "warm_start", &self.warm_start));
        }
        stages.push(evaluate("test_before", "present"));
        if self.reinforce.iterations > 0 {
            stages.push(StageConfig::new("reinforce", "reinforce", &self.reinforce));
            stages.push(evaluate("test_after", "best"));
        }
        stages
    }
}
