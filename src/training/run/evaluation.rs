//! Evaluations on the way and at the end, and what weights they are made with.

use std::sync::Arc;

use anyhow::Context;
use spar_agent::{Cancellation, EvaluateConfig, EvaluateRequest, Evaluation, Player, evaluate};
use spar_policy::Weights;
use spar_trainer::{MetricRecord, Trained};

use super::records::REFERENCE;
use super::{Outcome, Training};
use crate::recipe::ReferenceHold;
use crate::training::Observer;
use crate::training::records::{accept, is_scored};

impl Training {
    /// Evaluates the best checkpoint on the test splits and closes the books.
    pub(super) async fn finish(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Outcome> {
        let iteration = self.state.iteration;
        if self.recipe.reinforce.iterations > 0 {
            self.publish_best()?;
            self.test("test_after", cancellation, observer).await?;
            if cancellation.is_cancelled() {
                return self.stop();
            }
        }
        let metrics = self.folder.metrics()?;
        if !metrics.iter().any(|record| record.kind == "finished") {
            self.log(&MetricRecord::new(iteration, "finished"))?;
        }
        self.metrics.sync()?;
        Ok(Outcome::Finished)
    }

    /// Plays the test splits that have no record of this kind with a score yet.
    pub(super) async fn test(
        &mut self,
        kind: &str,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<()> {
        let max_missing = self.recipe.evaluation.max_missing;
        let done: Vec<String> = self
            .folder
            .metrics()?
            .iter()
            .filter(|record| record.kind == kind && is_scored(record, max_missing))
            .filter_map(|record| Some(record.values.get("split")?.as_str()?.to_owned()))
            .collect();
        for split in self.recipe.data.test.clone() {
            if done.contains(&split) {
                continue;
            }
            if kind == "test_before" {
                self.publish_evaluated()?;
            }
            let tasks = self.recipe.evaluation.test_tasks;
            let evaluation = self.play(&split, (tasks, 1), cancellation, observer).await?;
            if cancellation.is_cancelled() {
                return Ok(());
            }
            self.log_evaluation(kind, &evaluation)?;
        }
        Ok(())
    }

    /// Evaluates the present weights on the dev split.
    pub(super) async fn evaluate(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Evaluation> {
        self.publish_evaluated()?;
        let (split, config) = (&self.recipe.data.dev, &self.recipe.evaluation);
        let size = (Some(config.dev_tasks), config.dev_attempts);
        self.play(split, size, cancellation, observer).await
    }

    /// Evaluates the published weights on tasks of a split, so many episodes of each. Where too many episodes did not come about,
    /// that is an error: nothing is recorded, and who takes up the run plays them anew.
    pub(super) async fn play(
        &self,
        split: &str,
        (tasks, attempts): (Option<usize>, usize),
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Evaluation> {
        let mut episode = self.recipe.episode.clone();
        episode.max_turns = self.recipe.evaluation.max_turns;
        self.recipe.evaluation.apply_to(&mut episode.sampling);
        let default = EvaluateConfig::default();
        let config = EvaluateConfig {
            split: split.to_owned(),
            limit: tasks,
            attempts,
            concurrency: self.sandboxes.concurrency().unwrap_or(default.concurrency),
            max_missing: self.recipe.evaluation.max_missing,
            episode,
            ..default
        };
        let len = self.suite.len(split)?;
        observer.playing(split, tasks.map_or(len, |tasks| tasks.min(len)) * attempts);
        let request = EvaluateRequest {
            suite: self.suite.as_ref(),
            player: Player::Policy(&self.policy),
            open: &self.sandboxes.opener(),
            seed: self.seed.derive("evaluation", split),
            cancellation,
            on_episode: &|trajectory| observer.episode(trajectory),
        };
        let (evaluation, collection) = evaluate(&request, &config).await?;
        if cancellation.is_cancelled() {
            return Ok(evaluation);
        }
        let evaluation = accept(evaluation, collection.last_failure.as_deref())?;
        observer.evaluation(self.state.iteration, &evaluation);
        Ok(evaluation)
    }

    /// The trainer's weights go to the policy.
    pub(super) fn publish(&self) -> anyhow::Result<()> {
        let weights = self.trainer.weights(&self.model.trained)?;
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The weights that are evaluated go to the policy: the average where there is one.
    pub(super) fn publish_evaluated(&self) -> anyhow::Result<()> {
        let Some(averaged) = self.trainer.averaged()? else { return self.publish() };
        let weights = self.model.trained.weights(&averaged)?;
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The weights that the dev split chooses go to the policy.
    pub(super) fn publish_best(&self) -> anyhow::Result<()> {
        let best = self.checkpoints.best()?.context("find the best checkpoint")?;
        let weights = self.model.trained.weights(&self.model.read(&best.path)?)?;
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The weights of the reference model; `None` where the objective asks for none.
    pub(super) fn reference(&self) -> anyhow::Result<Option<Arc<Weights>>> {
        let Some(hold) = self.recipe.reference_hold() else { return Ok(None) };
        if let (ReferenceHold::AdapterOff, Trained::Adapter(model)) = (hold, &self.model.trained) {
            return Ok(Some(model.base().clone()));
        }
        if let Some(weights) = self.reference.get() {
            return Ok(Some(weights.clone()));
        }
        let (checkpoint, _) = self
            .checkpoints
            .marked(REFERENCE)?
            .context("find the checkpoint of the reference model: it was removed")?;
        let parameters = self.model.read(&checkpoint.path)?;
        let weights = self.model.trained.weights(&parameters)?;
        Ok(Some(match hold {
            ReferenceHold::Memory => self.reference.get_or_init(|| weights).clone(),
            _ => weights,
        }))
    }
}
