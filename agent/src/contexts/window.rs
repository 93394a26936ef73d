//! Older turns that are dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::PolicyError;
use spar_core::registry::NamedOptions;

use super::threshold::Threshold;
use super::{ContextEditor, ContextPolicy, Next};
use crate::EpisodeConfig;

/// Options of [`Window`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowOptions {
    /// Tokens of a prompt, beyond which turns are dropped; at least 1. Default absent: `fraction` of
    /// `context.max_context_tokens`.
    pub tokens: Option<usize>,
    /// The same as a share of `context.max_context_tokens`, above 0 up to 1; not beside `tokens`. Default absent: 0.75.
    pub fraction: Option<f64>,
    /// How much of that is left when turns are dropped, above 0 up to 1: the less, the longer the prompt goes on from what
    /// stands afterwards. Default 0.5.
    pub keep: f64,
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self { tokens: None, fraction: None, keep: 0.5 }
    }
}

impl WindowOptions {
    fn threshold(&self) -> Threshold {
        Threshold { tokens: self.tokens, fraction: self.fraction }
    }
}

impl NamedOptions for WindowOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.threshold().problems();
        if !(self.keep > 0.0 && self.keep <= 1.0) {
            problems.push(format!("keep is {}, must be above 0 up to 1", self.keep));
        }
        problems
    }
}

/// Drops whole turns, the oldest first, when a prompt has more than `tokens` tokens, until about `keep` times as many are
/// left; a line behind the task tells how many there were.
///
/// The last turn stays, however long it is.
#[derive(Debug, Clone, Default)]
pub struct Window {
    options: WindowOptions,
}

impl Window {
    /// A policy with these options, which have no [problems](NamedOptions::problems).
    pub fn new(options: WindowOptions) -> Self {
        Self { options }
    }
}

impl ContextPolicy for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn problems(&self, episode: &EpisodeConfig) -> Vec<String> {
        self.options.threshold().problems_in(episode, &[("answers", episode.sampling.max_tokens)])
    }

    fn shorten(&self, conversation: &mut ContextEditor<'_, '_>) -> Result<Next, PolicyError> {
        let limit = conversation.max_context_tokens();
        let Some(most) = self.options.threshold().resolve(limit) else { return Ok(Next::Act) };
        let tokens = conversation.num_tokens()?;
        if tokens <= most {
            return Ok(Next::Act);
        }
        // 1. As many as are too long by their share in all that is said.
        let too_many = tokens.saturating_sub((most as f64 * self.options.keep) as usize);
        let bytes_per_token = conversation.num_bytes() as f64 / tokens as f64;
        let mut bytes = too_many as f64 * bytes_per_token;
        let last = conversation.num_turns().saturating_sub(1);
        let mut count = 0;
        while count < last && bytes > 0.0 {
            bytes -= conversation.turn_bytes(count) as f64;
            count += 1;
        }
        conversation.drop_turns(count);
        // 2. More, where that share was a wrong guess.
        while conversation.num_turns() > 1 && conversation.num_tokens()? > most {
            conversation.drop_turns(1);
        }
        Ok(Next::Act)
    }
}
