//! Optimisers: a gradient becomes a change of the weights.

mod adamw;
mod gradient_norm;
mod muon;
mod newton_schulz;
mod optimizer_config;
mod state_file;
mod state_numbers;

use spar_policy::Parameters;

pub(crate) use adamw::Moments;
pub use adamw::{AdamW, AdamWOptions};
pub(crate) use gradient_norm::clip_factor;
pub use gradient_norm::{clip_global_norm, global_norm};
pub use muon::{Muon, MuonOptions};
pub use newton_schulz::orthogonalize;
pub use optimizer_config::{OpenOptimizer, OptimizerConfig, OptimizerRow, optimizer_registry};
pub(crate) use state_file::write_state;
pub use state_file::{StateReader, StateTensor};
pub use state_numbers::StatePlace;

use crate::TrainerError;

/// Turns gradients into changes of the weights.
///
/// Every update is a function of the weights, the gradient, the scale and the state alone: equal
/// inputs give equal weights to the bit, whatever the number of threads.
pub trait Optimizer: Send + Sync + std::fmt::Debug {
    /// The name in configs.
    fn name(&self) -> &'static str;

    /// Makes one update; `gradient` has the layout of `parameters`, and `learning_rate_scale`
    /// multiplies every learning rate.
    ///
    /// # Errors
    ///
    /// [`TrainerError::StateFile`] when the state is in a file that fails; weights and state are then
    /// partly updated.
    ///
    /// # Panics
    ///
    /// When the layout is not the one the optimiser was made for.
    fn update(
        &mut self,
        parameters: &mut Parameters,
        gradient: &[f32],
        learning_rate_scale: f32,
    ) -> Result<(), TrainerError>;

    /// The state as named tensors, from which [`Optimizer::load_state`] goes on to the bit.
    fn state(&self) -> Vec<StateTensor<'_>>;

    /// Takes over a state; on an error it keeps the old one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::State`] names the tensor that is missing or has another shape;
    /// [`TrainerError::StateUnreadable`] and [`TrainerError::StateFile`] when a file fails.
    fn load_state(&mut self, state: StateReader<'_>) -> Result<(), TrainerError>;
}
