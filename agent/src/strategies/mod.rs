//! Rollout strategies: how the trajectories of a group come about.
//!
//! ```text
//!  task ─▶ GroupInProgress ──episode, branch──▶ RolloutStrategy ──▶ the group's trajectories
//! ```
//!
//! A strategy says which episodes are played and where they begin; how an episode is played, and played anew
//! when it fails, is the group's part. A new one is one file and one row of [`strategy_registry`].

mod branch_rules;
mod branching;
mod continuations;
mod critical_tokens;
mod demonstrated;
mod greedy_baseline;
mod guidance;
mod hints;
mod independent;
mod lookahead;
mod members;
mod paraphrases;
mod partial;
mod pruned;
mod registry;
mod rethink;
mod retry;
mod rubric_scaffold;
mod tool_branching;

use async_trait::async_trait;
use serde_json::Value;
use spar_core::Trajectory;

pub use branch_rules::{arpo_branches, arpo_entropy, latr_candidates, rouge_l, suffix_match};
pub use branching::{Branching, BranchingOptions, ChooseBranches};
pub use continuations::{Continuations, ContinuationsOptions, LedBy};
pub use critical_tokens::{CriticalTokens, CriticalTokensOptions};
pub use demonstrated::{Demonstrated, DemonstratedOptions};
pub use greedy_baseline::GreedyBaseline;
pub use guidance::{Guidance, GuidedContext};
pub use hints::{Hints, HintsOptions};
pub use independent::Independent;
pub use lookahead::{Likeness, Lookahead, LookaheadOptions};
pub use paraphrases::{Paraphrases, ParaphrasesOptions};
pub use partial::{Partial, PartialOptions};
pub use pruned::{Pruned, PrunedOptions};
pub use registry::{
    OpenStrategy, StrategyConfig, StrategyError, StrategyRow, open_strategy, strategy_registry,
};

pub use rethink::{Rethink, RethinkOptions};
pub use retry::{Retry, RetryFrom, RetryOptions};
pub use rubric_scaffold::{RubricScaffold, RubricScaffoldOptions};
pub use tool_branching::{ToolBranching, ToolBranchingOptions};

use crate::GroupInProgress;

/// How the trajectories of a group come about.
#[async_trait]
pub trait RolloutStrategy: Send + Sync + std::fmt::Debug {
    /// The name in recipes.
    fn name(&self) -> &'static str;

    /// Checks that it can fill groups of this size.
    ///
    /// # Errors
    ///
    /// [`StrategyError`] tells what does not fit.
    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        let _ = group_size;
        Ok(())
    }

    /// Whether it has episodes begin where others were, which is not played where several act. Default false.
    fn branches(&self) -> bool {
        false
    }

    /// Whether episodes of a group have first turns in common that `mask_shared_turns` of the stage can leave out. Default where it [branches](Self::branches); not where each only goes on from its own pause.
    fn shares_turns(&self) -> bool {
        self.branches()
    }

    /// Whether groups have demonstrations among them, which a stage trains with what the policy played. Default false.
    fn adds_demonstrations(&self) -> bool {
        false
    }

    /// Learns from what it has grown since it was asked last, and gives numbers of it for the metrics, by their names. Asked behind every iteration, so that what is
    /// played in one does not depend on the order in which its groups end. By default it learns nothing.
    fn learn(&mut self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// What has to be kept between iterations; null where it learns nothing, which is the default.
    fn state(&self) -> Value {
        Value::Null
    }

    /// Goes on from a [state](Self::state).
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] when it is none of this strategy.
    fn load(&mut self, state: &Value) -> Result<(), StrategyError> {
        match state {
            Value::Null => Ok(()),
            _ => StrategyError::refuse(self.name(), vec!["it has no state".to_owned()]),
        }
    }

    /// How many groups are under way at one time, and when they are paused, where a stage trains those that are complete and keeps the others. Default absent: all are played to their end.
    fn partial(&self) -> Option<PartialOptions> {
        None
    }

    /// Plays the episodes of a group: as many as [`GroupInProgress::size`] says, fewer where some failed for
    /// good.
    ///
    /// What is played and its order may depend on the group's seed and on how its episodes went, never on the
    /// order in which they end, so that runs repeat.
    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory>;
}
