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
mod guidance;
mod hints;
mod independent;
mod lookahead;
mod members;
mod registry;
mod retry;
mod tool_branching;

use async_trait::async_trait;
use spar_core::Trajectory;

pub use branch_rules::{arpo_branches, arpo_entropy, latr_candidates, rouge_l, suffix_match};
pub use branching::{Branching, BranchingOptions, ChooseBranches};
pub use continuations::{Continuations, ContinuationsOptions, LedBy};
pub use critical_tokens::{CriticalTokens, CriticalTokensOptions};
pub use guidance::{Guidance, GuidedContext};
pub use hints::{Hints, HintsOptions};
pub use independent::Independent;
pub use lookahead::{Likeness, Lookahead, LookaheadOptions};
pub use registry::{
    OpenStrategy, StrategyConfig, StrategyError, StrategyRow, open_strategy, strategy_registry,
};

pub use retry::{Retry, RetryFrom, RetryOptions};
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

    /// Plays the episodes of a group: as many as [`GroupInProgress::size`] says, fewer where some failed for
    /// good.
    ///
    /// What is played and its order may depend on the group's seed and on how its episodes went, never on the
    /// order in which they end, so that runs repeat.
    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory>;
}
