//! Task samplers: which tasks are played next, and which of their groups are trained.
//!
//! ```text
//!  begin ─▶ draw ─▶ episodes ─▶ observe ─┐        draw gives nothing: the iteration has its groups
//!             ▲                          │
//!             └──────────────────────────┘
//! ```
//!
//! A sampler names places in the shuffled order of a split ([`ShuffledTasks`](crate::ShuffledTasks)), and sees what came of
//! them in the order in which it drew them, so that runs repeat. Its state is kept in checkpoints. A new one is one
//! file and one row of [`sampler_registry`].

mod dynamic;
mod registry;
mod uniform;

use serde_json::Value;

pub use dynamic::{Dynamic, DynamicOptions};
pub use registry::{OpenSampler, SamplerConfig, SamplerRow, open_sampler, sampler_registry};
pub use uniform::Uniform;

use crate::SamplerError;

/// What came of the group of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The shaped return of each episode that ended; those that failed for good are not among them.
    pub returns: Vec<f64>,
}

impl Outcome {
    /// Whether episodes went differently, so that comparing them tells something. One alone does, as in DAPO's own
    /// code: what it is compared with is for the estimator to say.
    pub fn has_signal(&self) -> bool {
        match &self.returns[..] {
            [] => false,
            [_] => true,
            [first, others @ ..] => others.iter().any(|value| value != first),
        }
    }
}

/// Chooses the tasks of an iteration.
pub trait TaskSampler: Send + Sync + std::fmt::Debug {
    /// The name in recipes.
    fn name(&self) -> &'static str;

    /// Begins an iteration that wants this many groups.
    fn begin(&mut self, groups: usize);

    /// The places of the tasks that are played next, each for one group; none when the iteration has what it gets.
    fn draw(&mut self) -> Vec<u64>;

    /// Sees what came of the tasks that were drawn last, in that order, and tells for each whether its group is trained.
    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool>;

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
