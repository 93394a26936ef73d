//! Evaluations, and what weights they are made with.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use spar_agent::{EvaluateConfig, EvaluateRequest, Evaluation, SharedPlayer, evaluate};
use spar_policy::Weights;

use super::Training;
use super::records::{REFERENCE, best_mark, is_of};
use crate::recipe::DataConfig;
use crate::training::records::{accept, is_scored};
use crate::training::stages::{Place, Watch};

impl Training {
    /// Evaluates the present weights on a dev split, unless that is done; `false` when it was told to stop.
    pub(super) async fn evaluate_dev(
        &mut self,
        kind: &str,
        place: &Place,
        watch: &Watch<'_>,
    ) -> anyhow::Result<bool> {
        let (iteration, config) = (self.state.iteration, &self.recipe.evaluation);
        let suite = self.domains.of(&place.data).suite.manifest();
        let is_done = self.folder.metrics()?.iter().any(|record| {
            record.kind == kind
                && record.iteration == iteration
                && is_of(record, place, suite)
                && is_scored(record, config.max_missing)
        });
        if is_done {
            return Ok(true);
        }
        let size = (Some(config.dev_tasks), config.dev_attempts);
        let data = &place.data;
        let player = if place.learners.is_empty() {
            self.publish_evaluated(&place.learner)?;
            SharedPlayer::Policy(self.policy.clone())
        } else {
            self.player(place)?
        };
        let Some(evaluation) = self.play_by(player, data, &data.dev, size, watch).await? else {
            return Ok(false);
        };
        self.log_evaluation(kind, &evaluation, place)?;
        Ok(true)
    }

    /// Plays the dev splits of earlier stages again, as the stage that is over asks for; `false` when it was told to
    /// stop.
    pub(super) async fn re_evaluate(&mut self, watch: &Watch<'_>) -> anyhow::Result<bool> {
        let planned = &self.plan.stages()[self.stage.index];
        let again = |name: &String| {
            let earlier = &self.plan.named(name)?.place;
            // Whether the present learner still can what was learned there.
            let (learner, learners) = (planned.place.learner.clone(), BTreeMap::new());
            Some(Place { learner, learners, ..earlier.clone() })
        };
        let places: Vec<Place> = planned.re_evaluate.iter().filter_map(again).collect();
        for place in places {
            if !self.evaluate_dev("re_evaluation", &place, watch).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Evaluates the published weights on tasks of a split, so many episodes of each; `None` when it was told to stop.
    /// Where too many episodes did not come about, that is an error: nothing is recorded, and who takes up the run
    /// plays them anew.
    ///
    /// # Errors
    ///
    /// When the split is not there, or more episodes failed than the recipe lets be missing.
    pub async fn play(
        &self,
        data: &DataConfig,
        split: &str,
        (tasks, attempts): (Option<usize>, usize),
        watch: &Watch<'_>,
    ) -> anyhow::Result<Option<Evaluation>> {
        let player = SharedPlayer::Policy(self.policy.clone());
        self.play_by(player, data, split, (tasks, attempts), watch).await
    }

    /// As [`Training::play`], by another player.
    async fn play_by(
        &self,
        player: SharedPlayer,
        data: &DataConfig,
        split: &str,
        (tasks, attempts): (Option<usize>, usize),
        watch: &Watch<'_>,
    ) -> anyhow::Result<Option<Evaluation>> {
        let domain = self.domains.of(data);
        let mut episode = self.recipe.episode.clone();
        episode.max_turns = self.recipe.evaluation.max_turns;
        self.recipe.evaluation.apply_to(&mut episode.sampling);
        let default = EvaluateConfig::default();
        let config = EvaluateConfig {
            split: split.to_owned(),
            limit: tasks,
            attempts,
            concurrency: domain.sandboxes.concurrency(),
            max_missing: self.recipe.evaluation.max_missing,
            episode,
            ..default
        };
        let len = domain.suite.len(split)?;
        watch.observer.playing(split, tasks.map_or(len, |tasks| tasks.min(len)) * attempts);
        let request = EvaluateRequest {
            suite: domain.suite.as_ref(),
            open: domain.sandboxes.opener(player.shared_policy().cloned()),
            player,
            seating: domain.evaluated.clone(),
            seed: self.seed.derive("evaluation", split),
            cancellation: watch.cancellation,
            on_episode: &|played| watch.observer.episode(played),
            keep: None,
        };
        let before = self.budget.report();
        let (evaluation, last_failure) = evaluate(&request, &config).await?;
        let evaluation = evaluation.with_spend(self.budget.since(&before));
        if watch.cancellation.is_cancelled() {
            return Ok(None);
        }
        let evaluation = accept(evaluation, last_failure.as_deref())?;
        watch.observer.evaluation(self.state.iteration, &evaluation);
        Ok(Some(evaluation))
    }

    /// The trainer's weights go to the policy.
    ///
    /// # Errors
    ///
    /// When they cannot be had from the device that they are on.
    pub fn publish(&self) -> anyhow::Result<()> {
        let weights = self.trainer.weights(&self.model.trained)?;
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The weights of a learner that are evaluated go to the policy: the average where there is one.
    ///
    /// # Errors
    ///
    /// When they cannot be had from the device or the file that they are in.
    pub fn publish_evaluated(&self, learner: &str) -> anyhow::Result<()> {
        let weights = match self.model.parked_weights(learner)? {
            Some(weights) => weights,
            None => match self.trainer.averaged()? {
                Some(averaged) => self.model.trained.weights(&averaged)?,
                None => return self.publish(),
            },
        };
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The weights of a learner that the dev split chooses go to the policy.
    ///
    /// # Errors
    ///
    /// When no checkpoint was chosen yet, or it cannot be read.
    pub fn publish_best(&self, learner: &str) -> anyhow::Result<()> {
        let best = self.checkpoints.marked(&best_mark(learner))?;
        let (best, _) = best.context("find the best checkpoint")?;
        let weights = self.model.weights_in(&best.path, learner)?;
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The weights of the checkpoint that the stage is held to.
    pub(in crate::training) fn marked_reference(&self) -> anyhow::Result<Arc<Weights>> {
        let (checkpoint, _) = self
            .checkpoints
            .marked(REFERENCE)?
            .context("find the checkpoint of the reference model: it was removed")?;
        let parameters = self.model.read(&checkpoint.path)?;
        Ok(self.model.trained.weights(&parameters)?)
    }
}
