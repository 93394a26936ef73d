//! Episodes, credit, stores and evaluation: how a policy acts, and what its acts were worth.
//!
//! ```text
//!  Task ─▶ Environment ◀─step─┐
//!                             ├─ run_episode ──▶ Trajectory ──▶ Group ──▶ JsonlStore
//!  Player (Policy, guide) ◀───┘       ▲                          │
//!                          collect_groups, evaluate              ▼
//!                          (hundreds at a time)      BatchView ─┐
//!                                                               ├─ AdvantageEstimator ─▶ Credit
//!                                                     Signals ──┘                          │
//!                                                       ▲                                  │
//!                                                     CutBatch ◀── settle_ownership, weigh ┘
//!                                                       └──▶ Sample ──▶ trainer
//! ```
//!
//! ```
//! use spar_agent::credit::{CreditConfig, GroupView, StepView, open_estimator};
//! use spar_core::{PerTurnOrToken, Signals};
//!
//! // Two trajectories part in the second state; only one of them solves the task.
//! let step = |state, action: &'static str, next_state, reward| {
//!     StepView { reward, state, action: action.into(), next_state, executed: true, num_tokens: 2 }
//! };
//! let mut group = GroupView::default();
//! group.push([step("hall", "go", Some("kitchen"), 0.0), step("kitchen", "take", None, 1.0)]);
//! group.push([step("hall", "go", Some("kitchen"), 0.0), step("kitchen", "wait", None, 0.0)]);
//! let salt = open_estimator(&CreditConfig::new("salt"))?;
//! let credit = salt.estimate(&group.into(), &Signals::default())?;
//! let PerTurnOrToken::Turns(advantages) = credit.advantages else { unreachable!() };
//! assert_eq!([advantages[0][0], advantages[1][0]], [0.0, 0.0]);
//! assert!(advantages[0][1] > 0.0 && advantages[1][1] < 0.0);
//! # Ok::<(), spar_agent::credit::CreditError>(())
//! ```

mod back_off;
mod cancellation;
mod collect;
mod concurrency;
pub mod contexts;
pub mod credit;
mod episode;
mod episode_config;
mod error;
mod evaluate;
mod failure_store;
#[cfg(test)]
mod fake_environment;
pub mod filters;
mod keeper;
mod limit_counts;
mod media_store;
mod parser_choice;
mod player;
pub mod policies;
mod samples;
pub mod scaffolds;
mod seating;
pub mod spend;
pub mod statistics;
mod store;
pub mod strategies;

pub use cancellation::Cancellation;
pub use collect::{
    CollectConfig, CollectRequest, Collection, CollectionCounts, CollectionSink, FinishedGroup,
    GroupInProgress, GroupPlan, GroupSeat, GroupUnderWay, LeftOut, Leg, Member, OpenEnvironment,
    PlayedEpisode, collect_groups, play_legs, stream_groups,
};
pub use concurrency::Concurrency;
pub use contexts::{
    Context, ContextConfig, ContextPolicyChoice, ListUntried, Prompt, ReasoningRule,
};
pub use episode::{
    BranchError, BranchPoint, Episode, EpisodeInProgress, SeatedEpisode, TableInProgress,
    run_branch, run_episode, run_started_episode,
};
pub use episode_config::EpisodeConfig;
pub use error::{ConfigError, SamplesError};
pub use evaluate::{
    EvaluateConfig, EvaluateError, EvaluateRequest, Evaluation, PassAtK, Score, ScoreBuilder,
    SeatResult, SemiOnlineScore, TaskResult, evaluate,
};
pub use failure_store::{FailureCause, FailureStore};
pub use keeper::Keeper;
pub use limit_counts::LimitCounts;
pub use media_store::MediaStore;
pub use parser_choice::ParserChoice;
pub use player::{Guide, Noise, Player, PlayerWith, RollIn, SharedPlayer};
pub use samples::{
    CutBatch, CutGroup, DemonstrationConfig, TurnMask, cut_samples, demonstration_samples,
    group_samples,
};
pub use scaffolds::ScaffoldChoice;
pub use seating::{SeatPlayer, Seating};
pub use store::{JsonlStore, StoreConfig, StoreReader, StoredTrajectory, redact_shard};

pub(crate) use error::error_chain;
