//! The nouns of spar and the seams that both halves of it need.
//!
//! Acting (tasks, environments, episodes) and learning (policy, trainer) meet only here:
//!
//! ```text
//!  Task ─▶ Environment ──Observation──▶ Policy::complete ──Completion──▶ Turn ┐
//!              ▲                                                             │
//!              └───────────── action ◀───────────────────────────────────────┤
//!                                                                            ▼
//!       PolicyVersion ◀── trainer ◀── Sample ◀── credit ◀── Group ◀── Trajectory
//! ```
//!
//! ```
//! use spar_core::Seed;
//!
//! let run = Seed::from_u64(7);
//! let episode = run.derive("task", "household/train/3").derive("episode", 0);
//! assert_eq!(episode, run.derive("task", "household/train/3").derive("episode", 0));
//! assert_ne!(episode, run.derive("task", "household/train/4").derive("episode", 0));
//! ```

mod conversation;
mod credit;
mod grammar;
mod group;
mod media;
mod message;
mod parsed_action;
mod policy;
mod preference;
pub mod redaction;
pub mod registry;
mod sample;
mod seat;
mod seed;
mod signals;
mod spend;
mod step;
mod store;
mod tool;
mod trajectory;
mod turn_kind;
mod verdict;

pub use conversation::{Conversation, Encoded};
pub use credit::{Credit, CreditShapeError, PerTurnOrToken};
pub use grammar::{GrammarHash, GrammarSource};
pub use group::Group;
pub use media::{Media, MediaError, MediaHash};
pub use message::{Message, Part, Role};
pub use parsed_action::ParsedAction;
pub use policy::{
    Choices, Completion, CompletionRequest, MalformedCall, Policy, PolicyError, PolicyVersion,
    SampledTokens, Sampling, ScoringRequest, StopCause,
};
pub use preference::Preference;
pub use sample::{AllowedTokens, GrammarSpan, Sample, SampleError, SampleOrigin};
pub use seat::{Seat, SeatSpec, Told};
pub use seed::Seed;
pub use signals::{Signal, SignalError, Signals};
pub use spend::Spend;
pub use step::{Observation, RewardPart, Step};
pub use store::{StoreError, TrajectoryStore};
pub use tool::{Action, ToolCall, ToolResult, ToolSpec, ToolSpecError};
pub use trajectory::{
    Boundary, EndReason, Limit, Lineage, OfferedTools, PromptTokens, Source, TRAJECTORY_VERSION,
    TokenCounts, Trajectory, TrajectoryError, Turn, Versions,
};
pub use turn_kind::TurnKind;
pub use verdict::Verdict;
