//! What the decoder computes of its tokens.

use std::borrow::Cow;

use crate::cuda::{DeviceError, DeviceStates};

/// Final hidden states, `[tokens, hidden]`, in the memory of whoever computed them.
#[derive(Debug)]
pub struct HiddenStates(pub(crate) Place);

/// Where states are.
#[derive(Debug)]
pub(crate) enum Place {
    Host(Vec<f32>),
    Device(DeviceStates),
}

impl HiddenStates {
    /// The states in the host's memory; from a device they are read back.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn read(&self) -> Result<Cow<'_, [f32]>, DeviceError> {
        match &self.0 {
            Place::Host(states) => Ok(Cow::Borrowed(states)),
            Place::Device(states) => states.read().map(Cow::Owned),
        }
    }
}

impl From<Vec<f32>> for HiddenStates {
    fn from(states_td: Vec<f32>) -> Self {
        Self(Place::Host(states_td))
    }
}
