//! Rollouts that are stopped when enough groups are complete, and go on later.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Trajectory;
use spar_core::registry::NamedOptions;

use super::members::from_start;
use super::{RolloutStrategy, StrategyError};
use crate::GroupInProgress;

/// Options of [`Partial`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PartialOptions {
    /// How many groups are under way for each that an iteration trains; above 1, at most 8. Default 1.5.
    pub over: f64,
    /// Tokens that an episode samples before it is looked whether enough groups are complete; at least 1. Default 256.
    pub leg: usize,
}

impl Default for PartialOptions {
    fn default() -> Self {
        Self { over: 1.5, leg: 256 }
    }
}

impl NamedOptions for PartialOptions {
    fn problems(&self) -> Vec<String> {
        let Self { over, leg } = *self;
        let mut problems = Vec::new();
        if !(over > 1.0 && over <= 8.0) {
            problems.push(format!("over is {over}, must be above 1 and at most 8"));
        }
        if leg == 0 {
            problems.push("leg is 0, must be at least 1".to_owned());
        }
        problems
    }
}

impl PartialOptions {
    /// How many groups are under way for an iteration of so many.
    pub fn under_way(&self, wanted: usize) -> usize {
        (wanted as f64 * self.over).ceil() as usize
    }
}

/// Active partial rollouts (APRIL, arXiv 2509.18521): `ceil(over N)` groups are under way, and as soon as `N` are complete these are trained; the others are kept as far as they came, with their tokens and the probabilities and versions that these
/// were drawn with, and go on first in the next iteration, so that no token is sampled twice or lost. Groups that were complete too early are trained next.
///
/// Reconstructed from its abstract. Deviations: episodes are stopped when every one has sampled `leg` tokens more, and not at the moment at which the last group ends, so that equal runs have equal groups; what counts are groups. Objectives see
/// what was drawn by older weights with the probabilities of then.
///
/// The stage plays the legs; in a group by itself all episodes are played to their end.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Partial {
    options: PartialOptions,
}

impl Partial {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: PartialOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("partial", options.problems())?;
        Ok(Self { options })
    }
}

#[async_trait]
impl RolloutStrategy for Partial {
    fn name(&self) -> &'static str {
        "partial"
    }

    fn branches(&self) -> bool {
        true
    }

    fn shares_turns(&self) -> bool {
        false
    }

    fn partial(&self) -> Option<PartialOptions> {
        Some(self.options)
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        from_start(group, 0..group.size()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_groups_are_under_way_than_are_trained() {
        let counts = |over| [1, 4, 32].map(|it| PartialOptions { over, leg: 1 }.under_way(it));
        assert_eq!(counts(1.5), [2, 6, 48]);
        assert_eq!(counts(1.01), [2, 5, 33]);
        let wrong = PartialOptions { over: 1.0, leg: 0 };
        assert_eq!(wrong.problems().len(), 2);
        assert!(Partial::new(PartialOptions { over: f64::NAN, leg: 1 }).is_err());
    }
}
