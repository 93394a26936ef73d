//! An episode as one of several who act in it plays it.

use std::time::Duration;

use spar_core::{EndReason, RewardPart, Told, Turn, Verdict};
use spar_envs::Environment;
use tokio::time::Instant;

use super::{EpisodeInProgress, unless_cancelled, without_secrets};
use crate::EpisodeConfig;
use crate::contexts::Next;
use crate::episode::{BranchPoint, Episode};

impl<'a> EpisodeInProgress<'a> {
    /// The episode of one who sits down, and has been told this before.
    pub(in crate::episode) fn seated(
        environment: Box<dyn Environment + 'a>,
        told: Told,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
    ) -> Self {
        let mut playing = Self::assemble(environment, told.observation, episode, config, None);
        playing.owed = told.rewards;
        playing
    }

    /// A second record of the same seat, at a fork of the environment.
    pub(in crate::episode) fn seated_again(
        &self,
        environment: Box<dyn Environment + 'a>,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
    ) -> Self {
        let at = BranchPoint::before(self.trajectory.turns.len());
        let mut fork = Self::at_branch(environment, &self.trajectory, at, episode, config);
        self.injected.iter().for_each(|message| fork.inject(message.clone()));
        fork.acted.clone_from(&self.acted);
        fork.owed.clone_from(&self.owed);
        fork.budgets = self.budgets.clone();
        fork.end.clone_from(&self.end);
        fork.waiting_since = self.waiting_since.map(|_| Instant::now());
        fork
    }

    /// Takes an environment and gives back the one it had: the seat that is to move has that of all.
    pub(in crate::episode) fn swap_environment(
        &mut self,
        environment: &mut Box<dyn Environment + 'a>,
    ) {
        std::mem::swap(&mut self.environment, environment);
    }

    /// Has the seat act. What it did waits to be [settled](Self::settle); what kept it from that is its
    /// [end](Self::end).
    pub(in crate::episode) async fn act_seated(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            let waited = since.elapsed();
            self.waited += waited;
            self.budgets.give_back(waited);
        }
        let episode = self.episode;
        let act = async {
            while self.next(self.trajectory.turns.len())? == Next::Summarize {
                self.summarize(self.trajectory.turns.len()).await?;
            }
            self.act(self.trajectory.turns.len()).await
        };
        match unless_cancelled(&episode, act).await {
            Ok(acted) => self.acted = Some(acted),
            Err(end) => self.end = Some(end),
        }
        self.waiting_since = Some(Instant::now());
    }

    /// What the seat did and has not been told of yet.
    pub(in crate::episode) fn acted(&self) -> Option<&Turn> {
        self.acted.as_ref().map(|acted| &acted.turn)
    }

    /// Whether a budget was used up while the environment carried that out.
    pub(in crate::episode) fn is_cut_off(&self) -> bool {
        self.acted.as_ref().is_some_and(|acted| acted.cut_off.is_some())
    }

    /// Records what the seat did last, with what others' moves have brought it since.
    pub(in crate::episode) fn settle(&mut self, told: Option<Told>, is_over: bool) {
        let Some(mut acted) = self.acted.take() else {
            if let Some(told) = told {
                self.earn(told);
            }
            // A budget ended its part, and the outcome is final all the same.
            if let (true, Some(last)) = (is_over, self.trajectory.last_acting_mut()) {
                last.step.terminated = true;
            }
            return;
        };
        let step = &mut acted.turn.step;
        if let Some(Told { observation, rewards, success }) = told {
            let results = std::mem::take(&mut step.observation.results);
            step.observation = without_secrets(observation);
            step.observation.results = results;
            step.rewards.extend(rewards);
            step.success = success;
        }
        step.terminated |= is_over;
        if let Err(end) = self.record(acted) {
            self.end.get_or_insert(end);
        }
    }

    /// What comes to a seat that does not move any more belongs to its last turn.
    fn earn(&mut self, Told { rewards, success, .. }: Told) {
        match self.trajectory.last_acting_mut() {
            Some(last) => {
                last.step.rewards.extend(rewards);
                last.step.success = success;
            }
            None => self.owed.extend(rewards),
        }
    }

    /// How its part ends, where that does not show yet.
    pub(in crate::episode) fn end_with(&mut self, end: EndReason) {
        self.end = match (self.end.take(), end) {
            (_, failed @ EndReason::Failed { .. }) => Some(failed),
            (Some(before), _) => Some(before),
            (None, end) => Some(end),
        };
    }

    /// What the seat earned without ever having moved.
    pub(in crate::episode) fn unplayed(&mut self) -> Option<Verdict> {
        let owed = std::mem::take(&mut self.owed);
        if self.trajectory.turns.is_empty() { earned_unplayed(owed, false) } else { None }
    }
}

/// What a seat earned that has no turn to carry it, as its verdict.
pub(in crate::episode) fn earned_unplayed(
    parts: Vec<RewardPart>,
    success: bool,
) -> Option<Verdict> {
    let is_some = success || !parts.is_empty();
    is_some.then(|| Verdict { parts, success, duration: Duration::ZERO, ..Verdict::default() })
}
