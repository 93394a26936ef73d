//! How a task is put to a policy.

use spar_core::registry::DescribedDetail;
use spar_core::{Action, ToolSpec};

use crate::ParserChoice;

/// How a task is put to a policy, what it answers, and what it is shown of what comes of that.
///
/// Texts are templates in Jinja's syntax. What they leave out is as it is without a scaffold: the task's instruction as
/// the system's message, and observations as the environment gives them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaffold {
    /// Grows with every change after which a policy is shown something else.
    pub version: u32,
    /// The system's message, of `instruction` (the task's, empty where the context leaves it out) and `tools` (a list of
    /// objects with `name`, `description` and `parameters`, their schema as JSON).
    pub system: Option<&'static str>,
    /// What is shown first, of `observation` (the environment's first) and `tools`.
    pub instance: Option<&'static str>,
    /// What is shown after an action, of `observation` and `results` (a list of objects with `text` and `is_error`, one for
    /// each call; empty where the model is given results as tools' messages).
    pub observation: Option<&'static str>,
    /// What is shown where no action could be read, of `reason`; `error`, the same as a sentence; `actions`, all that could
    /// be one where the parser wants exactly one; `finish_reason`, how the answer ended as endpoints name it, where that
    /// is known; and `has_tool_calls`, whether it called tools.
    pub format_error: Option<&'static str>,
    /// Why an answer that calls no tool is no action where tools are offered; absent: its words are for the environment to
    /// judge.
    pub no_call: Option<&'static str>,
    /// What is worked with in the place of the environment's own tools, by environments that run an agent's commands: a row
    /// of `spar list toolsets` with its options as JSON, such as `{"kind":"mini"}`. What the environment shows is worded by
    /// it. Absent: the environment's own.
    pub toolset: Option<&'static str>,
    /// Answers in a row in which there was no action, or none that could be carried out, after which the episode ends;
    /// absent: it goes on.
    pub max_format_errors: Option<u32>,
    /// The parser that reads actions, unless another one is chosen.
    pub parser: &'static str,
    /// Whether and how tools are offered.
    pub tools: ToolUse,
    /// What the policy says to end the episode by itself; the environment is not asked then, and judges what it has.
    pub stop_action: Option<&'static str>,
    /// Turns that are kept in sight behind the first observation, unless the context says how many; absent: all.
    pub window_turns: Option<usize>,
    /// What becomes of the conversation as it grows, unless the context says: a row of `spar list contexts` with its
    /// options as JSON, such as `{"kind":"elide_observations","keep_last":5}`; absent: all is kept.
    pub context_policy: Option<&'static str>,
    /// Characters of an observation or a result, beyond which its middle is left out; absent: all are shown.
    pub max_observation_chars: Option<usize>,
    /// Turns of an episode, unless its settings say how many; absent: the task's number.
    pub max_turns: Option<u32>,
    /// Tokens that are sampled in an episode, unless its settings say how many; absent: without a limit.
    pub max_sampled_tokens: Option<usize>,
    /// What requests to models may cost in an episode, in the currency of their prices, unless its settings say; absent:
    /// without a limit.
    pub max_cost: Option<f64>,
    /// The string that ends an answer that calls tools, such as `</code>`. It stays in the text, `observation` is written
    /// behind it into the same message, and the policy goes on from there: the conversation is laid out no further, and
    /// what was written carries no weight in training. Where the policy shows no tokens, or no action could be read,
    /// observations are messages of their own. Absent: they always are.
    pub in_turn: Option<&'static str>,
}

/// Whether and how a scaffold offers an environment's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// Not at all: actions are words.
    None,
    /// By the scaffold's own texts, and calls are read and shown as text.
    InWords,
    /// By the model's chat template, which lays out calls and results as the model knows them.
    Native,
}

impl Scaffold {
    /// Nothing but what the task and the environment say; actions are the first line of an answer.
    pub const PLAIN: Self = Self {
        version: 1,
        system: None,
        instance: None,
        observation: None,
        format_error: None,
        no_call: None,
        toolset: None,
        max_format_errors: None,
        parser: "plain",
        tools: ToolUse::None,
        stop_action: None,
        window_turns: None,
        context_policy: None,
        max_observation_chars: None,
        max_turns: None,
        max_sampled_tokens: None,
        max_cost: None,
        in_turn: None,
    };

    /// Every field with its name, as it is shown.
    pub(super) fn details(&self) -> Vec<DescribedDetail> {
        let Self {
            version,
            system,
            instance,
            observation,
            format_error,
            no_call,
            toolset,
            max_format_errors,
            parser,
            tools,
            stop_action,
            window_turns,
            context_policy,
            max_observation_chars,
            max_turns,
            max_sampled_tokens,
            max_cost,
            in_turn,
        } = *self;
        let tools = match tools {
            ToolUse::None => "not offered",
            ToolUse::InWords => "described in words",
            ToolUse::Native => "laid out by the model's chat template",
        };
        vec![
            DescribedDetail::new("version", version),
            DescribedDetail::new("system", system),
            DescribedDetail::new("instance", instance),
            DescribedDetail::new("observation", observation),
            DescribedDetail::new("format_error", format_error),
            DescribedDetail::new("no_call", no_call),
            DescribedDetail::new("toolset", toolset),
            DescribedDetail::new("max_format_errors", max_format_errors),
            DescribedDetail::new("parser", parser),
            DescribedDetail::new("tools", tools),
            DescribedDetail::new("stop_action", stop_action),
            DescribedDetail::new("window_turns", window_turns),
            DescribedDetail::new("context_policy", context_policy),
            DescribedDetail::new("max_observation_chars", max_observation_chars),
            DescribedDetail::new("max_turns", max_turns),
            DescribedDetail::new("max_sampled_tokens", max_sampled_tokens),
            DescribedDetail::new("max_cost", max_cost),
            DescribedDetail::new("in_turn", in_turn),
        ]
    }

    /// All that does not fit together where actions are read by `parser`; empty when nothing is wrong.
    pub fn problems(&self, parser: &ParserChoice) -> Vec<String> {
        let mut problems = Vec::new();
        let name = parser.name();
        let offered = ToolSpec::new("tool", "A tool.", serde_json::json!({}));
        let tools: &[ToolSpec] = match self.tools {
            ToolUse::None => &[],
            ToolUse::InWords | ToolUse::Native => std::slice::from_ref(&offered),
        };
        if let Some(stop) = self.stop_action {
            let action = Action::text(stop);
            let is_read = parser.write(&action, tools).is_ok_and(|text| {
                parser.parse(&text, tools).action().is_some_and(|read| read.said() == stop)
            });
            if !is_read {
                problems
                    .push(format!("its stop action `{stop}` cannot be read by parser `{name}`"));
            }
        }
        if self.tools != ToolUse::None && !parser.has_calls() {
            problems.push(format!("it offers tools, and parser `{name}` reads no calls"));
        }
        if self.max_format_errors == Some(0) {
            problems.push("max_format_errors is 0, must be at least 1 or absent".to_owned());
        }
        if self.no_call.is_some() && self.tools == ToolUse::None {
            problems.push("no_call is given, and no tools are offered".to_owned());
        }
        if self.window_turns == Some(0) {
            problems.push("window_turns is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_turns == Some(0) {
            problems.push("max_turns is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_sampled_tokens == Some(0) {
            problems.push("max_sampled_tokens is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_cost.is_some_and(|most| !(most.is_finite() && most > 0.0)) {
            problems.push("max_cost must be above 0 or absent".to_owned());
        }
        if self.in_turn.is_some() {
            if self.in_turn == Some("") {
                problems.push("in_turn is empty, which every answer would end at".to_owned());
            }
            if self.tools != ToolUse::InWords || self.observation.is_none() {
                problems.push(
                    "in_turn needs tools in words and a template of observations: both are text of the answer"
                        .to_owned(),
                );
            }
        }
        if self.max_observation_chars.is_some_and(|most| most < 16) {
            problems.push("max_observation_chars must be at least 16 or absent".to_owned());
        }
        problems
    }
}

/// A text with its middle left out where it has more than `most` characters.
pub(crate) fn elided(text: &str, most: Option<usize>) -> String {
    // No character has less than a byte.
    let Some(most) = most.filter(|most| text.len() > *most) else { return text.to_owned() };
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (first, last) = (most - most / 2, most / 2);
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(count - last).collect();
    format!("{start}\n[{} characters left out]\n{end}", count - first - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_together_is_told_at_once() {
        let parser = |name| ParserChoice::named(name).unwrap();
        assert!(Scaffold::PLAIN.problems(&parser("plain")).is_empty());
        let odd = Scaffold {
            tools: ToolUse::Native,
            stop_action: Some("finish"),
            window_turns: Some(0),
            ..Scaffold::PLAIN
        };
        let problems = odd.problems(&parser("plain"));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("reads no calls"), "{problems:?}");
        // A line of its own is all that the plain parser reads.
        let two_lines = Scaffold { stop_action: Some("I am\ndone"), ..Scaffold::PLAIN };
        let problems = two_lines.problems(&parser("plain"));
        assert!(problems[0].contains("cannot be read by parser `plain`"), "{problems:?}");
        let odd = Scaffold { window_turns: None, ..odd };
        assert!(odd.problems(&parser("hermes")).is_empty());
    }

    #[test]
    fn the_middle_of_long_texts_is_left_out() {
        let text: String = ('a'..='z').collect();
        assert_eq!(elided(&text, None), text);
        assert_eq!(elided(&text, Some(26)), text);
        let short = elided(&text, Some(16));
        assert_eq!(short, "abcdefgh\n[10 characters left out]\nstuvwxyz");
        assert_eq!(elided("ää", Some(2)), "ää");
    }
}
