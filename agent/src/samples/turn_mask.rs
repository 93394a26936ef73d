//! Which turns carry weight.

use spar_core::Turn;

/// Which turns of a group carry weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnMask {
    /// All of them.
    #[default]
    None,
    /// Those whose completion the policy ended itself: one that was cut off is no choice of its own.
    CutOff,
}

impl TurnMask {
    pub(super) fn hides(self, turn: &Turn) -> bool {
        match self {
            Self::None => false,
            Self::CutOff => turn.is_cut_off(),
        }
    }
}
