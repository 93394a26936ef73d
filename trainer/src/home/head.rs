//! Weights of a head beside the vocabulary's, while they are trained.

use std::sync::{Mutex, PoisonError};

use spar_policy::ops::elementwise::scale_all;
use spar_policy::state_heads::HeadWeights;

use crate::{
    HeadGradient, Optimizer, OptimizerConfig, StateReader, StateTensor, TrainerError, global_norm,
};

/// A head with its gradient and an optimiser of its own, in the host's memory wherever the decoder is.
pub(crate) struct HeadHome {
    weights: HeadWeights,
    optimizer: Box<dyn Optimizer>,
    gradient: Vec<f32>,
}

/// What an update has of a head: its weights, and a gradient for every shard.
pub(crate) struct HeadWork {
    weights: HeadWeights,
    /// One per shard, which is computed by one thread at a time.
    gradients: Vec<Mutex<Vec<f32>>>,
}

impl HeadWork {
    /// Gives `work` the head with the gradient of a shard; nothing where there is no head.
    pub(crate) fn with_shard<R>(
        of: Option<&Self>,
        shard: usize,
        work: impl FnOnce(Option<HeadGradient<'_>>) -> R,
    ) -> R {
        let Some(Self { weights, gradients }) = of else { return work(None) };
        let mut gradient = gradients[shard].lock().unwrap_or_else(PoisonError::into_inner);
        work(Some(HeadGradient { head: weights, gradient: &mut gradient }))
    }
}

impl HeadHome {
    pub(crate) fn new(
        weights: HeadWeights,
        optimizer: &OptimizerConfig,
    ) -> Result<Self, TrainerError> {
        let optimizer = optimizer.build(weights.parameters(), None)?;
        Ok(Self { weights, optimizer, gradient: Vec::new() })
    }

    pub(crate) fn weights(&self) -> &HeadWeights {
        &self.weights
    }

    /// What an update of so many shards has of it.
    pub(crate) fn work(&self, shards: usize) -> HeadWork {
        let zeros = || Mutex::new(vec![0.0; self.weights.parameters().data.len()]);
        HeadWork {
            weights: self.weights.clone(),
            gradients: std::iter::repeat_with(zeros).take(shards).collect(),
        }
    }

    /// Makes the gradient the sum over the shards, in their order.
    pub(crate) fn add_up(&mut self, work: HeadWork) {
        self.gradient.clear();
        self.gradient.resize(self.weights.parameters().data.len(), 0.0);
        for shard in work.gradients {
            let shard = shard.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.gradient.iter_mut().zip(shard).for_each(|(sum, value)| *sum += value);
        }
    }

    pub(crate) fn gradient_norm(&self) -> f64 {
        global_norm(&self.gradient)
    }

    /// As [`Home::step`](super::Home::step); the head's own learning rate is taken into account.
    pub(crate) fn step(
        &mut self,
        factor: Option<f32>,
        learning_rate_scale: f32,
    ) -> Result<(), TrainerError> {
        if let Some(factor) = factor {
            scale_all(&mut self.gradient, factor);
        }
        let scale = learning_rate_scale * self.weights.config().learning_rate_scale;
        self.optimizer.update(self.weights.parameters_mut(), &self.gradient, scale)
    }

    /// The optimiser's state.
    pub(crate) fn state(&self) -> Vec<StateTensor<'_>> {
        let name = self.optimizer.name();
        self.optimizer.state().into_iter().map(|tensor| tensor.under(name)).collect()
    }

    /// Takes over a state; keeps what it has where that does not fit.
    pub(crate) fn load_state(&mut self, mut state: StateReader<'_>) -> Result<(), TrainerError> {
        let name = self.optimizer.name();
        self.optimizer.load_state(state.under(name))
    }
}
