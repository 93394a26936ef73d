//! How a conversation is summed up.

use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::CompactOptions;

/// How a policy is asked to sum a conversation up, and what becomes of what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRules {
    /// What it is asked.
    pub request: String,
    /// Tokens that a summary may have, where there is room.
    pub max_tokens: usize,
    /// Turns that stay behind it.
    pub keep_turns: usize,
    /// Whether it counts as one of the task's turns.
    pub counts_as_turn: bool,
    /// What stands behind the task then, as a template.
    note: String,
}

impl SummaryRules {
    /// Tokens that a summary has room for at least, or `max_tokens` where these are fewer: with less it would say too
    /// little to go on from, and the episode is truncated by its context.
    pub const MIN_TOKENS: usize = 64;

    /// Bytes of `request` that are taken for a token while nobody has encoded it: half of what is usual, so that it is
    /// rarely longer than was thought.
    const BYTES_PER_TOKEN: usize = 2;

    /// What a chat template puts around `request`, and the room left to an observation that ends a little beyond the
    /// threshold, in tokens.
    const MARGIN: usize = 16;

    /// Tokens that asking for a summary takes behind a conversation, by a cautious estimate.
    pub(super) fn request_tokens(&self) -> usize {
        self.request.len().div_ceil(Self::BYTES_PER_TOKEN) + Self::MARGIN
    }

    /// Tokens that a summary may have behind a prompt of so many, in a context of `limit`: `max_tokens`, or what is left
    /// where that is less, but never less than [`MIN_TOKENS`](Self::MIN_TOKENS) or the `max_tokens` below them.
    pub(crate) fn max_tokens_behind(&self, prompt: usize, limit: Option<usize>) -> usize {
        let least = self.max_tokens.min(Self::MIN_TOKENS);
        let left = limit.map_or(self.max_tokens, |limit| limit.saturating_sub(prompt));
        left.clamp(least, self.max_tokens)
    }

    /// The rules that these options give.
    ///
    /// # Errors
    ///
    /// All that is wrong with the templates.
    pub(super) fn new(options: &CompactOptions) -> Result<Self, Vec<String>> {
        let CompactOptions { keep_turns, max_summary_tokens, counts_as_turn, .. } = *options;
        let mut problems = Vec::new();
        let request = render(&options.prompt, context! { keep_turns, max_summary_tokens });
        let request = request.unwrap_or_else(|error| {
            problems.push(format!("prompt cannot be written: {error}"));
            String::new()
        });
        const TRIED: &str = "what was done";
        match render(&options.note, context! { summary => TRIED }) {
            Ok(note) if !note.contains(TRIED) => {
                problems.push("note does not show `summary`".to_owned());
            }
            Ok(_) => {}
            Err(error) => problems.push(format!("note cannot be written: {error}")),
        }
        if problems.is_empty() && request.trim().is_empty() {
            problems.push("prompt is empty".to_owned());
        }
        match problems.is_empty() {
            true => Ok(Self {
                request,
                max_tokens: max_summary_tokens,
                keep_turns,
                counts_as_turn,
                note: options.note.clone(),
            }),
            false => Err(problems),
        }
    }

    /// What stands behind the task when this was written.
    pub fn note(&self, summary: &str) -> String {
        let note = render(&self.note, context! { summary });
        note.unwrap_or_else(|_| summary.to_owned())
    }
}

fn render(template: &str, values: Value) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.render_str(template, values)
}
