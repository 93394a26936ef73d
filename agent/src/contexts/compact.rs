//! Conversations that the policy sums up itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::PolicyError;
use spar_core::registry::NamedOptions;

use super::threshold::Threshold;
use super::{ContextEditor, ContextPolicy, Next, SummaryRules};
use crate::EpisodeConfig;

/// The share of a context that prompts may fill where nobody says how many tokens they may have.
const FRACTION: f64 = 0.6;

/// Options of [`Compact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactOptions {
    /// Tokens of a prompt, beyond which it is summed up; at least 1. Default absent: `fraction` of
    /// `context.max_context_tokens`.
    pub tokens: Option<usize>,
    /// The same as a share of `context.max_context_tokens`, above 0 up to 1; not beside `tokens`. Default absent: 0.6,
    /// which leaves a context of 2048 tokens room for what asks for a summary and for the summary.
    pub fraction: Option<f64>,
    /// Turns that stay behind the summary, or fewer where these would be too long again. Default 1.
    pub keep_turns: usize,
    /// Tokens that a summary may have, at least 1; what is longer is cut off there. Where the last observation has left
    /// less of the context, it may have what is left, down to 64. Default 512.
    pub max_summary_tokens: usize,
    /// Whether a summary counts as one of the task's turns. Its tokens always count. Default false.
    pub counts_as_turn: bool,
    /// What the policy is asked, as a template in Jinja's syntax of `keep_turns` and `max_summary_tokens`. Default a
    /// text of three sentences, as shown.
    pub prompt: String,
    /// What stands behind the task from then on, as a template of `summary`. Default as shown.
    pub note: String,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            tokens: None,
            fraction: None,
            keep_turns: 1,
            max_summary_tokens: 512,
            counts_as_turn: false,
            prompt: "The conversation is getting too long. Do not act now: sum up what was done and found out so far \
                     and what is left to do, in all the detail that you need to go on. Your summary takes the place of \
                     everything that was said here behind the task{% if keep_turns == 1 %}, but for the last turn\
                     {% elif keep_turns %}, but for the last {{ keep_turns }} turns{% endif %}."
                .to_owned(),
            note: "Your summary of what came before:\n{{ summary }}".to_owned(),
        }
    }
}

impl CompactOptions {
    fn threshold(&self) -> Threshold {
        let by_default = self.tokens.is_none().then_some(FRACTION);
        Threshold { tokens: self.tokens, fraction: self.fraction.or(by_default) }
    }
}

impl NamedOptions for CompactOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.threshold().problems();
        if self.max_summary_tokens == 0 {
            problems.push("max_summary_tokens is 0, must be at least 1".to_owned());
        }
        problems.extend(SummaryRules::new(self).err().unwrap_or_default());
        problems
    }
}

/// Has the policy itself sum the conversation up when a prompt has more than `tokens` tokens: that is a turn of its own,
/// sampled, recorded and trained like any other. Behind it the conversation is the task, the summary and the last
/// `keep_turns` turns.
///
/// The summary is asked for behind the whole conversation, which is what the policy has read already. It says what
/// it says: an empty one leaves the policy with nothing, and of one that is too long the beginning counts. Between two
/// summaries there is at least one turn that acts, so an episode has no more of them than other turns. Where task
/// and summary alone are too long, the episode is truncated by its context.
///
/// After SUPO (summarization-based context management, arXiv 2510.06727), which trains such summaries end to end with
/// the outcome; words of the prompt are own.
#[derive(Debug, Clone)]
pub struct Compact {
    threshold: Threshold,
    rules: SummaryRules,
}

impl Compact {
    /// A policy with these options.
    ///
    /// # Errors
    ///
    /// All that is wrong with the templates.
    pub fn new(options: &CompactOptions) -> Result<Self, Vec<String>> {
        Ok(Self { threshold: options.threshold(), rules: SummaryRules::new(options)? })
    }
}

impl ContextPolicy for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn problems(&self, episode: &EpisodeConfig) -> Vec<String> {
        let summary = self.rules.max_tokens.saturating_add(self.rules.request_tokens());
        let behind = [
            ("answers", episode.sampling.max_tokens),
            ("summaries, with what asks for them,", summary),
        ];
        self.threshold.problems_in(episode, &behind)
    }

    fn shorten(&self, conversation: &mut ContextEditor<'_, '_>) -> Result<Next, PolicyError> {
        let limit = conversation.max_context_tokens();
        let Some(most) = self.threshold.resolve(limit) else { return Ok(Next::Act) };
        let mut tokens = conversation.num_tokens()?;
        if tokens > most && conversation.turns_since_summary() > 0 {
            return Ok(Next::Summarize);
        }
        // What stays behind a summary was summed up with the rest.
        while tokens > most {
            if conversation.num_turns() == 0 {
                return Err(PolicyError::ContextFull { tokens: Some(tokens), limit: Some(most) });
            }
            conversation.drop_summed_turns(1);
            tokens = conversation.num_tokens()?;
        }
        Ok(Next::Act)
    }

    fn summaries(&self) -> Option<&SummaryRules> {
        Some(&self.rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_tried_when_they_are_chosen() {
        let rules = SummaryRules::new(&CompactOptions::default()).unwrap();
        assert!(rules.request.ends_with("but for the last turn."), "{}", rules.request);
        assert_eq!(rules.note("all is done"), "Your summary of what came before:\nall is done");
        let none = CompactOptions { keep_turns: 0, ..CompactOptions::default() };
        assert!(SummaryRules::new(&none).unwrap().request.ends_with("behind the task."));
        let odd = CompactOptions {
            prompt: "{{ nobody }}".to_owned(),
            note: "lost".to_owned(),
            max_summary_tokens: 0,
            ..CompactOptions::default()
        };
        let problems = odd.problems();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[1].starts_with("prompt cannot be written"), "{problems:?}");
        assert!(problems[2].contains("`summary`"), "{problems:?}");
    }
}
