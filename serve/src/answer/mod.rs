//! Text of an answer, taken apart while it comes about: reasoning, content, tool calls.

mod json_scan;
mod reasoning;
mod tool_calls;

use self::reasoning::Reasoning;
use self::tool_calls::ToolCalls;
pub use self::tool_calls::ToolFormat;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Thoughts, from between `<think>` and `</think>`.
    Reasoning(String),
    /// What is said.
    Content(String),
    /// The call of this number begins.
    CallStart { index: usize, name: String },
    /// The arguments of a call go on.
    CallArguments { index: usize, text: String },
}

/// Takes an answer apart. Pieces, put together, do not depend on where the text was cut.
#[derive(Debug)]
pub(crate) struct AnswerParser {
    reasoning: Reasoning,
    tools: Option<ToolCalls>,
}

impl AnswerParser {
    /// Looks for tool calls in `format`, if any; `is_thinking` tells that the prompt ended with
    /// `<think>`.
    pub(crate) fn new(format: Option<ToolFormat>, is_thinking: bool) -> Self {
        Self { reasoning: Reasoning::new(is_thinking), tools: format.map(ToolCalls::new) }
    }

    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Delta> {
        let (mut thoughts, mut said) = (String::new(), String::new());
        self.reasoning.push(text, &mut thoughts, &mut said);
        self.deltas(thoughts, &said)
    }

    /// What was held back.
    pub(crate) fn finish(&mut self) -> Vec<Delta> {
        let (mut thoughts, mut said) = (String::new(), String::new());
        self.reasoning.finish(&mut thoughts, &mut said);
        let mut deltas = self.deltas(thoughts, &said);
        if let Some(tools) = &mut self.tools {
            tools.finish(&mut deltas);
        }
        deltas
    }

    /// Whether a tool was called.
    pub(crate) fn has_calls(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| tools.num_calls() > 0)
    }

    fn deltas(&mut self, thoughts: String, said: &str) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if !thoughts.is_empty() {
            deltas.push(Delta::Reasoning(thoughts));
        }
        match &mut self.tools {
            Some(tools) => tools.push(said, &mut deltas),
            None if !said.is_empty() => deltas.push(Delta::Content(said.to_owned())),
            None => {}
        }
        deltas
    }
}

/// How much of the end of `text` may be the beginning of `mark`, in bytes.
fn held_back(text: &str, mark: &str) -> usize {
    let longest = text.len().min(mark.len() - 1);
    (1..=longest)
        .rev()
        .find(|len| mark.as_bytes().starts_with(&text.as_bytes()[text.len() - len..]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
