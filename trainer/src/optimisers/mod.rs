//! Optimisers: a gradient becomes a change of the weights.

mod adamw;
mod gradient_norm;
mod muon;
mod newton_schulz;
mod optimizer_config;
mod state;

use spar_policy::Parameters;

pub(crate) use adamw::Moments;
pub use adamw::{AdamW, AdamWOptions};
pub(crate) use gradient_norm::clip_factor;
pub use gradient_norm::{clip_global_norm, global_norm};
pub use muon::{Muon, MuonOptions};
pub use newton_schulz::orthogonalize;
pub use optimizer_config::{OptimizerConfig, optimizer_names};
pub use state::NamedTensor;
pub(crate) use state::{StateReader, counter_tensor};

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
    /// # Panics
    ///
    /// When the layout is not the one the optimiser was made for.
    fn update(&mut self, parameters: &mut Parameters, gradient: &[f32], learning_rate_scale: f32);

    /// The state as named tensors, from which [`Optimizer::load_state`] goes on to the bit.
    fn state(&self) -> Vec<NamedTensor>;

    /// Takes over a state; on an error it keeps the old one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::State`] names the tensor that is missing or has another shape.
    fn load_state(&mut self, tensors: &[NamedTensor]) -> Result<(), TrainerError>;
}
