//! Task samplers: which tasks are played next, how many rollouts each gets, and which of their groups are trained.
//!
//! ```text
//!  begin ─▶ draw ─▶ episodes ─▶ observe ─┐ ─▶ credit, updates ─▶ learned
//!             ▲                          │        draw gives nothing: the iteration has its groups
//!             └──────────────────────────┘
//! ```
//!
//! A sampler names places in the shuffled order of a split ([`ShuffledTasks`](crate::ShuffledTasks)), of which a [`TaskOrder`] tells which task and which
//! stratum stand there, and sees what came of them in the order in which it drew them, so that runs repeat. Its state is kept in checkpoints. A new one is one
//! file and one row of [`sampler_registry`].

mod balanced;
mod categories;
mod dars;
mod deviation;
mod dots;
mod draw;
mod dump;
mod dynamic;
mod gdro;
mod hardest;
mod order;
mod outcome;
mod refill;
mod registry;
mod retired;
mod sec;
#[cfg(test)]
pub(crate) mod test_order;
mod uniform;
mod unlikely;
mod v0_5;
mod vade;
mod xrpo;

use serde_json::Value;

pub use balanced::{Balanced, BalancedOptions};
pub use dars::{Dars, DarsOptions};
pub use deviation::{Deviation, DeviationOptions};
pub use dots::{Dots, DotsOptions};
pub use draw::{Draw, Wanted};
pub use dump::{Dump, DumpOptions};
pub use dynamic::{Dynamic, DynamicOptions};
pub use gdro::{Allocation, Gdro, GdroOptions};
pub use hardest::{Hardest, HardestOptions};
pub use order::{KnownTask, TaskOrder};
pub use outcome::{Learned, Outcome};
pub use registry::{OpenSampler, SamplerConfig, SamplerRow, open_sampler, sampler_registry};
pub use retired::{Retired, RetiredOptions};
pub use sec::{Sec, SecOptions};
pub use uniform::Uniform;
pub use unlikely::{Unlikely, UnlikelyOptions};
pub use v0_5::{Sparse, SparseOptions};
pub use vade::{Vade, VadeOptions};
pub use xrpo::{Xrpo, XrpoOptions};

use crate::SamplerError;

/// Chooses the tasks of an iteration.
pub trait TaskSampler: Send + Sync + std::fmt::Debug {
    /// The name in recipes.
    fn name(&self) -> &'static str;

    /// Begins an iteration.
    fn begin(&mut self, wanted: &Wanted);

    /// The places of the tasks that are played next, each for one group; none when the iteration has what it gets. A place that it has
    /// drawn in this iteration before is played on: its further episodes join the group that it has.
    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw>;

    /// Sees what came of the tasks that were drawn last, in that order, and tells for each whether its group is trained. Of a place that was drawn
    /// before, these are its further episodes, and what was told last holds for the whole group.
    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool>;

    /// Sees what credit says of the groups that are trained, in the order of drawing. By default it has no use for that.
    fn learned(&mut self, learned: &[Learned]) {
        let _ = learned;
    }

    /// The place behind all that it has drawn: whoever takes tasks of the same split behind it goes on from there, so
    /// that no task is met twice before all are.
    fn next_place(&self) -> u64;

    /// What has to be kept between iterations.
    fn state(&self) -> Value;

    /// Goes on from a [state](Self::state).
    ///
    /// # Errors
    ///
    /// [`SamplerError::State`] when it is not one of this sampler.
    fn load(&mut self, state: &Value) -> Result<(), SamplerError>;
}

/// The state of a sampler as JSON.
fn written(state: &impl serde::Serialize) -> Value {
    serde_json::to_value(state).expect("a sampler's state is plain data")
}

/// A sampler's state from JSON.
fn read<T: serde::de::DeserializeOwned>(
    name: &'static str,
    state: &Value,
) -> Result<T, SamplerError> {
    <T as serde::Deserialize>::deserialize(state).map_err(|_| SamplerError::State { name })
}
