//! Older observations that are left out by rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::PolicyError;
use spar_core::registry::NamedOptions;

use super::{ContextEditor, ContextPolicy, Elision, Next, ReasoningRule};
use crate::EpisodeConfig;

/// Options of [`ElideObservations`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ElideOptions {
    /// Observations that stay whole at the beginning, behind the one on reset, which always does. Default 0.
    pub keep_first: usize,
    /// Observations that stay whole at the end, at least 1. Default 5.
    pub keep_last: usize,
    /// After how many observations others are left out again, at least 1: in between the prompt goes on from what stands,
    /// so that an engine has its beginning in its cache and turns join one sample. Up to `keep_last + polling - 1`
    /// observations are whole. Default 5.
    pub polling: usize,
    /// Characters that are left of the beginning of an observation. Default 0.
    pub head_chars: usize,
    /// Characters that are left of its end. Default 0.
    pub tail_chars: usize,
    /// Whether pictures and other media are left out as well. Default true.
    pub media: bool,
    /// Whether thoughts are left out of the answers before them as well; for `context.reasoning` `keep` alone. Default
    /// false.
    pub thoughts: bool,
}

impl Default for ElideOptions {
    fn default() -> Self {
        Self {
            keep_first: 0,
            keep_last: 5,
            polling: 5,
            head_chars: 0,
            tail_chars: 0,
            media: true,
            thoughts: false,
        }
    }
}

impl NamedOptions for ElideOptions {
    fn problems(&self) -> Vec<String> {
        let counts = [("keep_last", self.keep_last), ("polling", self.polling)];
        let zeros = counts.iter().filter(|(_, count)| *count == 0);
        zeros.map(|(name, _)| format!("{name} is 0, must be at least 1")).collect()
    }
}

/// Leaves older observations out, results of tools among them, each but for a line that tells how much it was.
///
/// Of `n` observations behind the first one, those from `keep_first` up to `floor(n / polling) * polling - keep_last` are
/// left out. That is the rule of SWE-agent's `last_n_observations` processor of histories, with its `n` and `polling`;
/// heads, tails, media and thoughts are additions.
#[derive(Debug, Clone, Default)]
pub struct ElideObservations {
    options: ElideOptions,
}

impl ElideObservations {
    /// A policy with these options, which have no [problems](NamedOptions::problems).
    pub fn new(options: ElideOptions) -> Self {
        Self { options }
    }
}

impl ContextPolicy for ElideObservations {
    fn name(&self) -> &'static str {
        "elide_observations"
    }

    fn problems(&self, episode: &EpisodeConfig) -> Vec<String> {
        let has_thoughts = episode.context.reasoning == ReasoningRule::Keep;
        let problem = "thoughts has no effect: context.reasoning is not `keep`";
        (self.options.thoughts && !has_thoughts).then(|| problem.to_owned()).into_iter().collect()
    }

    fn shorten(&self, conversation: &mut ContextEditor<'_, '_>) -> Result<Next, PolicyError> {
        let options = &self.options;
        let polled = conversation.num_observations() / options.polling * options.polling;
        let range = options.keep_first..polled.saturating_sub(options.keep_last);
        let ElideOptions { head_chars, tail_chars, media, .. } = *options;
        conversation.elide(range.clone(), &Elision { head_chars, tail_chars, media });
        if options.thoughts {
            conversation.elide_thoughts(range);
        }
        Ok(Next::Act)
    }
}
