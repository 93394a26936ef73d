//! Weights in the host's memory.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use spar_policy::ops::elementwise::scale_all;
use spar_policy::ops::parallel::Batches;
use spar_policy::{ParameterSpec, Parameters};

use super::{HeadWork, Home, Work};
use crate::{
    FixedModel, Measured, Optimizer, SampleGradient, StateReader, StateTensor, TrainerError,
    global_norm,
};

/// Weights in the host's memory, with an optimiser that computes there.
pub(crate) struct HostHome {
    parameters: Parameters,
    optimizer: Box<dyn Optimizer>,
    /// One gradient per shard, kept for their memory; the first one takes the sum.
    shard_gradients: Vec<Vec<f32>>,
}

impl HostHome {
    pub(crate) fn new(parameters: Parameters, optimizer: Box<dyn Optimizer>) -> Self {
        Self { parameters, optimizer, shard_gradients: Vec::new() }
    }

    fn gradient(&self) -> &[f32] {
        self.shard_gradients.first().map_or(&[], Vec::as_slice)
    }
}

impl Home for HostHome {
    fn specs(&self) -> &Arc<[ParameterSpec]> {
        &self.parameters.specs
    }

    fn parameters(&self) -> Result<Parameters, TrainerError> {
        Ok(self.parameters.clone())
    }

    fn accumulate(
        &mut self,
        model: &dyn SampleGradient,
        work: &Work<'_>,
    ) -> Result<(), TrainerError> {
        // 1. One gradient per shard, at the same time.
        self.shard_gradients.resize_with(work.shards.len(), Vec::new);
        let num_weights = self.parameters.data.len();
        // Its weights are those that are about to change: it is gone by then.
        let model = model.prepare(&self.parameters);
        let batches = Batches::new(work.shards.len());
        let accumulate = |gradient: &mut Vec<f32>, (shard, parts): (usize, &Vec<Range<usize>>)| {
            gradient.clear();
            gradient.resize(num_weights, 0.0);
            for samples in parts {
                let loss =
                    |index: usize, found: Measured<'_>| (work.loss)(samples.start + index, found);
                let given = &work.samples[samples.clone()];
                HeadWork::with_shard(work.head, shard, |head| {
                    model.accumulate(given, &loss, gradient, head)
                })
                .map_err(|source| TrainerError::Model { source })?;
            }
            Ok::<(), TrainerError>(())
        };
        let shard_gradients = self.shard_gradients.par_iter_mut();
        shard_gradients
            .zip(work.shards.par_iter().enumerate())
            .try_for_each(|(gradient, shard)| batches.run(|| accumulate(gradient, shard)))?;

        // 2. Their sum in shard order.
        let Some((sum, others)) = self.shard_gradients.split_first_mut() else { return Ok(()) };
        for other in others {
            sum.iter_mut().zip(other.iter()).for_each(|(sum, value)| *sum += value);
        }
        Ok(())
    }

    fn fixed(&self, model: &dyn SampleGradient) -> Result<Box<dyn FixedModel>, TrainerError> {
        Ok(model.prepare(&self.parameters))
    }

    fn gradient_norm(&self) -> Result<f64, TrainerError> {
        Ok(global_norm(self.gradient()))
    }

    fn step(&mut self, factor: Option<f32>, learning_rate_scale: f32) -> Result<(), TrainerError> {
        let Some(gradient) = self.shard_gradients.first_mut() else { return Ok(()) };
        if let Some(factor) = factor {
            scale_all(gradient, factor);
        }
        self.optimizer.update(&mut self.parameters, gradient, learning_rate_scale)
    }

    fn optimizer(&self) -> &'static str {
        self.optimizer.name()
    }

    fn state(&self) -> Result<Vec<StateTensor<'_>>, TrainerError> {
        Ok(self.optimizer.state())
    }

    fn load(&mut self, parameters: Parameters, state: StateReader<'_>) -> Result<(), TrainerError> {
        self.optimizer.load_state(state)?;
        self.parameters = parameters;
        Ok(())
    }
}
