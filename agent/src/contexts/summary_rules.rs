//! How a conversation is summed up.

use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::CompactOptions;

/// How a policy is asked to sum a conversation up, and what becomes of what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRules {
    /// What it is asked.
    pub request: String,
    /// Tokens that a summary may have.
    pub max_tokens: usize,
    /// Turns that stay behind it.
    pub keep_turns: usize,
    /// Whether it counts as one of the task's turns.
    pub counts_as_turn: bool,
    /// What stands behind the task then, as a template.
    note: String,
}

impl SummaryRules {
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
