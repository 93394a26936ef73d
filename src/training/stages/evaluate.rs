//! Evaluation as a stage of its own.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::NamedOptions;

use super::registry::written;
use super::{Place, RunningStage, Stage, Watch};
use crate::recipe::{DataConfig, Recipe};
use crate::training::records::is_scored;
use crate::training::run::Training;

/// What an evaluation plays, and with which weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EvaluateOptions {
    /// The splits that are played. Default empty: those of `data.test`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) splits: Vec<String>,
    /// Tasks of each split: a sample, the same throughout a run. Default absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tasks: Option<usize>,
    /// Episodes of each task. Default 1.
    pub(super) attempts: usize,
    /// Which weights play. Default `present`.
    pub(super) checkpoint: Weighed,
}

/// Which weights are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Weighed {
    /// Those that the run has come to; their average where one is kept.
    #[default]
    Present,
    /// Those of the checkpoint that the dev split chose.
    Best,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        Self { splits: Vec::new(), tasks: None, attempts: 1, checkpoint: Weighed::Present }
    }
}

impl NamedOptions for EvaluateOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.attempts == 0 {
            problems.push("attempts is 0, must be at least 1".to_owned());
        }
        if self.tasks == Some(0) {
            problems.push("tasks is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

/// Plays splits and trains nothing.
pub(super) struct Evaluate {
    pub(super) config: EvaluateOptions,
}

impl Evaluate {
    fn splits_of<'a>(&'a self, data: &'a DataConfig) -> &'a [String] {
        if self.config.splits.is_empty() { &data.test } else { &self.config.splits }
    }
}

#[async_trait(?Send)]
impl Stage for Evaluate {
    fn splits(&self, data: &DataConfig) -> Vec<String> {
        self.splits_of(data).to_vec()
    }

    fn needs_best(&self) -> bool {
        self.config.checkpoint == Weighed::Best
    }

    fn problems(&self, _: &Recipe) -> Vec<String> {
        self.config.problems()
    }

    fn budget(&self, data: &DataConfig) -> String {
        let splits: Vec<_> =
            self.splits_of(data).iter().map(|split| format!("`{split}`")).collect();
        let tasks =
            self.config.tasks.map_or("all tasks".to_owned(), |tasks| format!("{tasks} tasks"));
        let weights = match self.config.checkpoint {
            Weighed::Present => "the present weights",
            Weighed::Best => "the best checkpoint",
        };
        format!(
            "{tasks} x {} of {} of `{}`, played by {weights}",
            self.config.attempts,
            splits.join(", "),
            data.label()
        )
    }

    fn options(&self) -> toml::Table {
        written(&self.config)
    }

    fn begin(
        &self,
        place: &Place,
        _: u64,
        _: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>> {
        let (config, place) = (self.config.clone(), place.clone());
        let splits = self.splits_of(&place.data).to_vec();
        Ok(Box::new(RunningEvaluation { config, place, splits }))
    }
}

struct RunningEvaluation {
    config: EvaluateOptions,
    place: Place,
    splits: Vec<String>,
}

#[async_trait(?Send)]
impl RunningStage for RunningEvaluation {
    /// Plays the splits that have no record with a score yet.
    async fn end(&mut self, run: &mut Training, watch: &Watch<'_>) -> anyhow::Result<()> {
        let (kind, max_missing) = (&self.place.name, run.recipe.evaluation.max_missing);
        let done: Vec<String> = run
            .folder
            .metrics()?
            .iter()
            .filter(|record| record.kind == *kind && is_scored(record, max_missing))
            .filter_map(|record| Some(record.values.get("split")?.as_str()?.to_owned()))
            .collect();
        for split in self.splits.iter().filter(|split| !done.contains(split)) {
            match self.config.checkpoint {
                Weighed::Present => run.publish_evaluated(&self.place.learner)?,
                Weighed::Best => run.publish_best(&self.place.learner)?,
            }
            let size = (self.config.tasks, self.config.attempts);
            let Some(evaluation) = run.play(&self.place.data, split, size, watch).await? else {
                return Ok(());
            };
            run.log_evaluation(kind, &evaluation, &self.place)?;
        }
        Ok(())
    }
}
