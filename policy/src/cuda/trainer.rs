//! Training that stays on a device.

use super::device::{Buffer, Kind};
use super::driver::Number;
use super::placement::Placement;
use super::{Device, DeviceError, backward, forward, head};
use crate::decoder::batch::Batch;
use crate::decoder::{Segment, SequenceCache};
use crate::head::{Draw, DrawGradient, DrawLoss};
use crate::ops::elementwise::AdamWStep;
use crate::{Parameters, Weights};

/// A decoder with its f32 weights, their gradient and the means of AdamW on a device, of which nothing
/// crosses to the host in an update but what is told of the tokens.
#[derive(Debug)]
pub struct DeviceTrainer {
    weights: Weights,
    /// In f32; the decoder computes with a copy in its own numbers.
    master: Buffer,
    first: Buffer,
    second: Buffer,
    gradient: Buffer,
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
        let weights = weights.on_device(device, number)?;
        let len = weights.parameters.data.len();
        Ok(Self {
            master: device.upload_f32(&weights.parameters.data)?,
            first: device.zeros(Kind::F32, len)?,
            second: device.zeros(Kind::F32, len)?,
            gradient: device.zeros(Kind::F32, len)?,
            updates: 0,
            weights,
        })
    }

    fn placement(&self) -> &Placement {
        self.weights.placement.as_ref().expect("a trainer's decoder is on a device")
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
        let device = self.placement().device().clone();
        let mut caches = vec![SequenceCache::new(&self.weights); sequences.len()];
        let pairs = caches.iter_mut().zip(sequences);
        let mut segments: Vec<_> =
            pairs.map(|(cache, tokens)| Segment::new(cache, tokens)).collect();
        let mut draws = Vec::new();
        let mut row = 0;
        for tokens in sequences {
            draws.extend(tokens.iter().enumerate().skip(1).map(|(t, token)| Draw {
                row: row + t - 1,
                token: *token,
                allowed: &[],
            }));
            row += tokens.len();
        }
        let mean = 1.0 / draws.len().max(1) as f32;
        let by = vec![DrawGradient { logprob: -mean, entropy: 0.0 }; draws.len()];
        self.gradient.clear()?;
        self.updates += 1;

        // 1. Forward, judgement, backward.
        let placement = self.placement();
        let turn = placement.take_turn();
        let batch = Batch::new(&self.weights, &mut segments)?;
        let (hidden, tape) = forward::forward(&self.weights, placement, &batch, true, recomputes)?;
        let tape = tape.expect("the tape is kept");
        let judged = head::judge(&self.weights, placement, &hidden, &draws, 1.0)?;
        let dhidden = device.zeros(Kind::F32, hidden.len())?;
        let loss = DrawLoss { draws: &draws, temperature: 1.0, told: &judged, derivatives: &by };
        head::judge_backward(&self.weights, placement, &hidden, &loss, &dhidden, &self.gradient)?;
        let of_products = device.allocate(hidden.kind(), hidden.len())?;
        device.convert(&dhidden, &of_products)?;
        backward::backward(&self.weights, placement, &batch, &tape, &of_products, &self.gradient)?;
        drop(turn);

        // 2. AdamW.
        let squares = device.square_sums(&self.gradient)?.read()?;
        let gradient_norm = squares.iter().map(|sum| f64::from(*sum)).sum::<f64>().sqrt();
        let (beta1, beta2) = (0.9_f32, 0.95_f32);
        let step = AdamWStep {
            beta1,
            beta2,
            epsilon: 1e-8,
            keep: 1.0,
            step: learning_rate / (1.0 - beta1.powi(self.updates)),
            root: (1.0 - beta2.powi(self.updates)).sqrt(),
        };
        let copy = placement.weights(&self.weights.parameters.data)?;
        let (master, means) = (&self.master, (&self.first, &self.second));
        device.adamw((master, &copy), means, &self.gradient, &step, 1.0)?;
        let logprobs = judged.iter().map(|told| f64::from(told.logprob));
        Ok(DeviceUpdate { loss: -logprobs.sum::<f64>() * f64::from(mean), gradient_norm })
    }

    /// The weights as they are now.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn parameters(&self) -> Result<Parameters, DeviceError> {
        let mut parameters = self.weights.parameters.clone();
        parameters.data = self.master.read()?.into();
        Ok(parameters)
    }
}
