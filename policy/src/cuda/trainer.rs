//! Training that stays on a device.

use super::driver::Number;
use super::{Device, DeviceError, DeviceLearner};
use crate::decoder::{Tape, TokenTree};
use crate::head::{Draw, DrawGradient, DrawLoss, try_judge};
use crate::{Parameters, Weights};
use spar_ops::elementwise::AdamWStep;

/// A [`DeviceLearner`] that learns sequences by heart, by the calls that a run's trainer makes for a
/// micro-batch: what training costs without the objectives and batches of a run.
#[derive(Debug)]
pub struct DeviceTrainer {
    learner: DeviceLearner,
    updates: i32,
}

/// What is told of an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceUpdate {
    /// Mean cross-entropy of the tokens before the update, in nats.
    pub loss: f64,
    /// Norm of the gradient of the mean.
    pub gradient_norm: f64,
}

impl DeviceTrainer {
    /// A trainer that starts at `weights`, which it computes with as `number`.
    ///
    /// # Errors
    ///
    /// When the device has no room, or the kernels do not cover the decoder.
    pub fn new(device: &Device, weights: &Weights, number: Number) -> Result<Self, DeviceError> {
        let learner =
            DeviceLearner::new(&weights.on_device(device, number)?, weights.parameters())?;
        Ok(Self { learner, updates: 0 })
    }

    /// One update of AdamW (betas 0.9 and 0.95, no decay) on the mean cross-entropy of all tokens but
    /// the first of each sequence; `recomputes` keeps the inputs of the layers alone.
    ///
    /// # Errors
    ///
    /// When the device fails.
    ///
    /// # Panics
    ///
    /// When a token is outside the vocabulary or a sequence outgrows `max_position_embeddings`.
    pub fn update(
        &mut self,
        sequences: &[&[u32]],
        learning_rate: f32,
        recomputes: bool,
    ) -> Result<DeviceUpdate, DeviceError> {
        let tree = TokenTree::new(sequences);
        let mut draws = Vec::new();
        for (index, tokens) in sequences.iter().enumerate() {
            let states = tree.rows(index);
            draws.extend(tokens.iter().enumerate().skip(1).map(|(t, token)| Draw {
                row: states[t - 1],
                token: *token,
                allowed: &[],
            }));
        }
        let mean = 1.0 / draws.len().max(1) as f32;
        let derivatives = vec![DrawGradient { logprob: -mean, entropy: 0.0 }; draws.len()];

        // 1. Forward, judgement, backward.
        self.learner.clear_gradient()?;
        self.updates += 1;
        let told = {
            // Where they end, nobody but the learner has the weights: they are updated where they are.
            let weights = self.learner.weights();
            let mut tape = if recomputes { Tape::recomputing() } else { Tape::default() };
            let hidden = tree.try_read(&weights, Some(&mut tape))?;
            let told = try_judge(&weights, &hidden, &draws, 1.0)?;
            let derivatives = &derivatives;
            let loss = DrawLoss {
                draws: &draws,
                temperature: 1.0,
                told: &told,
                derivatives,
                dstates_td: None,
            };
            self.learner.learn(&tape, &hidden, &loss)?;
            told
        };

        // 2. AdamW.
        let gradient_norm = self.learner.gradient_norm()?;
        let (beta1, beta2) = (0.9_f32, 0.95_f32);
        let step = AdamWStep {
            beta1,
            beta2,
            epsilon: 1e-8,
            keep: 1.0,
            step: learning_rate / (1.0 - beta1.powi(self.updates)),
            root: (1.0 - beta2.powi(self.updates)).sqrt(),
        };
        let all = 0..self.learner.gradient().len();
        self.learner.step(&[(all, step)], 1.0)?;
        let logprobs = told.iter().map(|told| f64::from(told.logprob));
        Ok(DeviceUpdate { loss: -logprobs.sum::<f64>() * f64::from(mean), gradient_norm })
    }

    /// The weights as they are now.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn parameters(&self) -> Result<Parameters, DeviceError> {
        self.learner.parameters()
    }
}
