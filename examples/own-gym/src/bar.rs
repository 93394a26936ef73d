//! A stage that ends runs which lead nowhere.

use anyhow::ensure;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar::core::registry::{NamedOptions, OptionSet, Row};
use spar::recipe::{DataConfig, Recipe};
use spar::training::Training;
use spar::training::stages::{Place, RunningStage, Stage, StageRow, Watch, written};

pub(crate) const ROW: StageRow = Row {
    name: "bar",
    about: "Plays the dev split, and ends the run where success is below a bar.",
    source: "own",
    formula: "",
    options: OptionSet::of::<BarOptions>(),
    open: |given| Ok(Box::new(Bar { options: given.read()? })),
};

/// Options of [`Bar`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct BarOptions {
    /// Success per episode that the run has to reach, 0 to 1. Default 0.5.
    at_least: f64,
    /// Tasks that are played, an episode each; at least 1. Default 16.
    tasks: usize,
}

impl Default for BarOptions {
    fn default() -> Self {
        Self { at_least: 0.5, tasks: 16 }
    }
}

impl NamedOptions for BarOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&self.at_least) {
            problems.push(format!("at_least is {}, must be 0 to 1", self.at_least));
        }
        if self.tasks == 0 {
            problems.push("tasks is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// The stage with its options.
struct Bar {
    options: BarOptions,
}

#[async_trait(?Send)]
impl Stage for Bar {
    fn splits(&self, data: &DataConfig) -> Vec<String> {
        vec![data.dev.clone()]
    }

    fn problems(&self, _: &Recipe) -> Vec<String> {
        // What is wrong with the options was told when they were read.
        Vec::new()
    }

    fn budget(&self, data: &DataConfig) -> String {
        let BarOptions { at_least, tasks } = self.options;
        format!("{tasks} tasks of `{}`, of which {at_least} have to be solved", data.dev)
    }

    fn options(&self) -> toml::Table {
        written(&self.options)
    }

    fn begin(
        &self,
        place: &Place,
        _: u64,
        _: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>> {
        Ok(Box::new(RunningBar { options: self.options.clone(), place: place.clone() }))
    }
}

/// The stage, when the run is at it.
struct RunningBar {
    options: BarOptions,
    place: Place,
}

#[async_trait(?Send)]
impl RunningStage for RunningBar {
    async fn end(&mut self, run: &mut Training, watch: &Watch<'_>) -> anyhow::Result<()> {
        let (name, data) = (&self.place.name, &self.place.data);
        // A run that was killed behind it does not do it again.
        if run.folder().metrics()?.iter().any(|record| record.kind == *name) {
            return Ok(());
        }
        run.publish_evaluated(&self.place.learner)?;
        let size = (Some(self.options.tasks), 1);
        let Some(evaluation) = run.play(data, &data.dev, size, watch).await? else {
            return Ok(());
        };
        let (rate, bar) = (evaluation.overall.success_rate, self.options.at_least);
        ensure!(
            rate.is_some_and(|rate| rate >= bar),
            "go on: {} of {} tasks of `{}` were solved, and stage `{name}` wants {bar}",
            evaluation.overall.successes,
            evaluation.overall.episodes,
            data.dev
        );
        run.log_evaluation(name, &evaluation, &self.place)
    }
}
