//! What a run can do, one stage after the other.
//!
//! ```text
//!  Recipe ─▶ Plan ─▶ PlannedStage ─begin─▶ RunningStage ─iterate, end─▶ metrics, weights
//! ```
//!
//! A `Stage` is a kind of work with its options; it knows its budget, what it needs, and what is wrong with it.
//! A `RunningStage` is one that the run is at, with its state. A new kind is one file and one row of the
//! [table](stage_registry).

mod evaluate;
mod groups;
mod hardest;
mod imitate;
mod offline;
mod outline;
mod plan;
mod prefer;
mod reference;
mod registry;
mod rehearsal;
mod reinforce;
mod replay;
mod stage;
mod turn_predictor;

pub use self::outline::{StageOutline, last_trainer, outline};
pub use self::plan::Place;
pub(crate) use self::plan::{Plan, PlannedStage};
pub use self::registry::{OpenStage, StageRow, open_stage, stage_registry, written};
pub use self::stage::{RunningStage, Stage, Step, Watch, WordsRequest};
