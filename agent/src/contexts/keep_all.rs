//! Conversations that are kept as they are.

use spar_core::PolicyError;

use super::{ContextEditor, ContextPolicy, Next};

/// Keeps everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepAll;

impl ContextPolicy for KeepAll {
    fn name(&self) -> &'static str {
        "keep_all"
    }

    fn keeps_all(&self) -> bool {
        true
    }

    fn shorten(&self, _: &mut ContextEditor<'_, '_>) -> Result<Next, PolicyError> {
        Ok(Next::Act)
    }
}
