//! Where weights are while they are trained.

mod device;
mod head;
mod host;

use std::ops::Range;
use std::sync::Arc;

use spar_core::Sample;
use spar_policy::{ParameterSpec, Parameters};

pub(crate) use self::device::DeviceHome;
pub(crate) use self::head::{HeadHome, HeadWork};
pub(crate) use self::host::HostHome;
use crate::{FixedModel, SampleGradient, SampleLossFn, StateReader, StateTensor, TrainerError};

/// Where weights are while they are trained, with their gradient and their optimiser.
pub(crate) trait Home: Send + Sync {
    /// What lies where.
    fn specs(&self) -> &Arc<[ParameterSpec]>;

    /// The weights as they are now.
    fn parameters(&self) -> Result<Parameters, TrainerError>;

    /// Makes the gradient that of the work.
    fn accumulate(
        &mut self,
        model: &dyn SampleGradient,
        work: &Work<'_>,
    ) -> Result<(), TrainerError>;

    /// The model at the weights as they are now.
    fn fixed(&self, model: &dyn SampleGradient) -> Result<Box<dyn FixedModel>, TrainerError>;

    /// The Euclidean length of the gradient.
    fn gradient_norm(&self) -> Result<f64, TrainerError>;

    /// Makes an update by the gradient, multiplied by `factor` where there is one.
    fn step(&mut self, factor: Option<f32>, learning_rate_scale: f32) -> Result<(), TrainerError>;

    /// The name of the optimiser in configs.
    fn optimizer(&self) -> &'static str;

    /// The optimiser's state, from which [`Home::load`] goes on.
    fn state(&self) -> Result<Vec<StateTensor<'_>>, TrainerError>;

    /// Takes over weights of the same layout and a state; keeps what it has where the state does not
    /// fit.
    fn load(&mut self, parameters: Parameters, state: StateReader<'_>) -> Result<(), TrainerError>;
}

/// What an update learns from.
pub(crate) struct Work<'a> {
    pub(crate) samples: &'a [&'a Sample],
    /// The samples of each shard in micro-batches.
    pub(crate) shards: &'a [Vec<Range<usize>>],
    /// The derivatives of the loss by what is told of a sample, by its index.
    pub(crate) loss: &'a SampleLossFn<'a>,
    /// The head that is trained beside the vocabulary's, if one is.
    pub(crate) head: Option<&'a HeadWork>,
}
