//! What is left of the budgets of an episode.

use std::time::Duration;

use spar_core::{Limit, Turn};
use spar_envs::TimeRules;
use tokio::time::Instant;

use crate::{EpisodeConfig, Guide, Player};

/// What is left of the budgets of an episode.
#[derive(Clone)]
pub(super) struct Budgets {
    /// When the time is over that the task's rules give.
    pub(super) task: Option<Instant>,
    /// How much that is by the rules as they were told last.
    given: Option<Duration>,
    /// What the agent's own commands may still take; absent where it runs none.
    pub(super) commands: Option<Duration>,
    /// What one of them may make a step take.
    command: Option<Duration>,
    /// Tokens that may still be sampled.
    pub(super) tokens: Option<usize>,
}

impl Budgets {
    pub(super) fn new(rules: TimeRules, config: &EpisodeConfig, player: Player<'_>) -> Self {
        let bounded = rules.task.is_none() && rules.command.is_some();
        Self {
            task: rules.task.map(|time| Instant::now() + time),
            given: rules.task,
            commands: bounded.then(|| config.command_time()),
            command: rules.command,
            tokens: config.sampled_tokens().filter(|_| player.policy().is_some()),
        }
    }

    /// Takes what turns that are inherited used up when they were played first.
    pub(super) fn take(&mut self, turns: &[Turn]) {
        // As whoever asked has waited; older records tell what the environment itself was at work.
        let step = |turn: &Turn| match turn.environment_time {
            Duration::ZERO => turn.step.wall_time,
            waited => waited,
        };
        let limit = self.command.unwrap_or(Duration::MAX);
        let commands: Duration = turns.iter().map(|turn| step(turn).min(limit)).sum();
        let all: Duration = turns.iter().map(|turn| step(turn) + turn.policy_time).sum();
        self.task = self.task.map(|end| end.checked_sub(all).unwrap_or(end));
        self.commands = self.commands.map(|left| left.saturating_sub(commands));
        // What a demonstrator wrote nobody sampled.
        let is_sampled = |turn: &&Turn| !Guide::ALL.iter().any(|guide| guide.name() == turn.author);
        let sampled: usize = turns.iter().filter(is_sampled).map(Turn::num_tokens).sum();
        self.tokens = self.tokens.map(|left| left.saturating_sub(sampled));
    }

    /// Takes note of what the rules give now: what an environment did of its own in a step is not the agent's time.
    pub(super) fn renew(&mut self, rules: TimeRules) {
        if let (Some(end), Some(before), Some(now)) = (self.task, self.given, rules.task) {
            self.task = Some(end + now.saturating_sub(before));
            self.given = rules.task;
        }
    }

    /// Gives back time that others took.
    pub(super) fn give_back(&mut self, waited: Duration) {
        self.task = self.task.map(|end| end + waited);
    }

    /// The first that is used up.
    pub(super) fn used_up(&self) -> Option<Limit> {
        let is_late = self.task.is_some_and(|end| end <= Instant::now());
        let no_time = self.commands.is_some_and(|left| left.is_zero());
        [
            (is_late, Limit::TaskTime),
            (no_time, Limit::CommandTime),
            (self.tokens == Some(0), Limit::Tokens),
        ]
        .into_iter()
        .find_map(|(is_used_up, limit)| is_used_up.then_some(limit))
    }

    /// When the agent's command has to stop, and why then; absent where its own `limit` comes first.
    pub(super) fn end_of_command(&self, limit: Duration) -> Option<(Instant, Limit)> {
        let left = self.commands.filter(|left| *left < limit);
        let commands = left.map(|left| (Instant::now() + left, Limit::CommandTime));
        self.task.map(|end| (end, Limit::TaskTime)).or(commands)
    }
}
