//! A decoder's place on a device.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::device::{Buffer, Device};
use super::driver::Number;
use super::learner::{Live, LiveWeights};
use super::operations::{TILE, least_shared_bytes};
use super::pages::{DevicePage, PagePool};
use super::step::Steps;
use super::{DeviceError, ModelShape};
use crate::{ModelConfig, Weights};
use spar_ops::rotary::Rotary;

/// Widest head that the attention kernels have room for, by numbers of 2 and of 4 bytes.
const WIDEST_HEAD: [usize; 2] = [256, 128];

/// Weights that are kept on the device of those that the host has.
const UPLOADED: usize = 2;

/// A decoder's place on a device, shared by all versions of its weights.
#[derive(Debug)]
pub(crate) struct Placement {
    device: Device,
    number: Number,
    pool: Arc<PagePool>,
    angles: Buffer,
    /// The weights that went to the device last: those that play and those that learn.
    uploaded: Mutex<VecDeque<(Weak<Vec<f32>>, Buffer)>>,
    /// Whoever works with pages holds it.
    turn: Mutex<()>,
    steps: Mutex<Steps>,
}

impl Placement {
    pub(crate) fn new(
        device: &Device,
        number: Number,
        config: &ModelConfig,
        rotary: &Rotary,
    ) -> Result<Self, DeviceError> {
        let widest = WIDEST_HEAD[usize::from(number == Number::F32)];
        if config.head_dim > widest {
            let detail = format!(
                "its heads have {} channels, at most {widest} are covered",
                config.head_dim
            );
            return Err(DeviceError::Unsupported { detail });
        }
        let (needed, found) =
            (least_shared_bytes(config.head_dim, number), device.driver.shared_bytes());
        if needed > found {
            let detail = format!(
                "its heads have {} channels, which take {needed} bytes of shared memory; a block has \
                 {found} on this GPU",
                config.head_dim
            );
            return Err(DeviceError::Unsupported { detail });
        }
        let group = config.num_attention_heads / config.num_key_value_heads;
        if group > TILE {
            let detail =
                format!("{group} query heads share a key head, at most {TILE} are covered");
            return Err(DeviceError::Unsupported { detail });
        }
        let angles: Vec<f32> = rotary.all_angles().flatten().collect();
        let shape = ModelShape {
            layers: config.num_hidden_layers,
            key_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
        };
        Ok(Self {
            device: device.clone(),
            number,
            pool: Arc::new(PagePool::new(device, number, shape)?),
            angles: device.upload_f32(&angles)?,
            uploaded: Mutex::default(),
            turn: Mutex::new(()),
            steps: Mutex::default(),
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn number(&self) -> Number {
        self.number
    }

    pub(super) fn pool(&self) -> &Arc<PagePool> {
        &self.pool
    }

    pub(super) fn angles(&self) -> &Buffer {
        &self.angles
    }

    /// Nobody else works with pages meanwhile.
    pub(crate) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What steps of generation are done with; whoever has the turn works with it.
    pub(super) fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new_page(&self) -> Result<DevicePage, DeviceError> {
        self.pool.take()
    }

    /// The weights on the device; they go there where they are neither there alone nor those of a call not
    /// long ago.
    pub(super) fn weights(&self, weights: &Weights) -> Result<Buffer, DeviceError> {
        if let Some(LiveWeights(Live::Whole(live))) = &weights.live {
            return Ok(live.clone());
        }
        let values = &weights.parameters.data;
        let mut uploaded = self.uploaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, buffer)) = uploaded.iter().find(|(reference, _)| values.is(reference)) {
            return Ok(buffer.clone());
        }
        // Frees the memory of what nobody can ask for any more, and of all but one of the others, unless
        // somebody still works with it.
        uploaded.retain(|(reference, _)| reference.strong_count() > 0);
        while uploaded.len() >= UPLOADED {
            uploaded.pop_front();
        }
        let buffer = self.device.upload_numbers(self.number, values)?;
        uploaded.push_back((values.downgrade(), buffer.clone()));
        Ok(buffer)
    }
}
