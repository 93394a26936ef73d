//! Who chooses the actions of an episode.

use spar_core::Policy;

/// Who chooses the actions of an episode.
#[derive(Clone, Copy)]
pub enum Player<'a> {
    /// A policy.
    Policy(&'a dyn Policy),
    /// The environment's player who sees the whole state.
    Oracle {
        /// Whose tokens its turns are written in, where they shall have tokens.
        encoder: Option<&'a dyn Policy>,
    },
    /// The environment's player who knows only what the episode has shown.
    Expert {
        /// Whose tokens its turns are written in, where they shall have tokens.
        encoder: Option<&'a dyn Policy>,
    },
}

impl<'a> Player<'a> {
    /// A short name for records.
    pub fn name(&self) -> &str {
        match self {
            Self::Policy(policy) => policy.name(),
            Self::Oracle { .. } => "oracle",
            Self::Expert { .. } => "expert",
        }
    }

    /// Whose tokens the episode is written in.
    pub(crate) fn encoder(&self) -> Option<&'a dyn Policy> {
        match *self {
            Self::Policy(policy) => Some(policy),
            Self::Oracle { encoder } | Self::Expert { encoder } => encoder,
        }
    }

    /// Whether its turns are demonstrations, which no policy sampled.
    pub(crate) fn is_guide(&self) -> bool {
        !matches!(self, Self::Policy(_))
    }
}
