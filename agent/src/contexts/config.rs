//! What a policy is to see of its episode.

use serde::{Deserialize, Serialize};

use super::ContextPolicyChoice;

/// What a policy sees of its episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContextConfig {
    /// How many of the last turns are kept behind the first observation, which always stays; at
    /// least 1. Default absent: all turns are kept.
    pub window_turns: Option<usize>,
    /// Whether the environment's words for what is demanded stand behind every observation.
    /// Default false.
    pub reminder: bool,
    /// Whether the task's instruction opens the conversation as a system message. Default true.
    pub instruction: bool,
    /// Whether observations list the admissible actions. Default false.
    pub list_admissible: bool,
    /// Whether observations list those admissible actions alone that name what their text does not: for
    /// the first time in the episode, and with a numbered thing (`cabinet 7`) that the text leaves out. In
    /// household rooms several places can be within reach of one, which only the actions tell.
    /// Nothing where all are listed. Default false.
    pub list_unnamed: bool,
    /// When an action is answered with the admissible ones that begin with the same word (`go`) and were not
    /// taken yet in the episode: what is left to try. Of those that differ in numbers alone (`go to cabinet 3`,
    /// `go to cabinet 7`) one is listed, that whose thing was named first: so a short list leaves no kind of
    /// thing out, and the next of a kind comes when the one before is taken. Default never.
    pub list_untried: ListUntried,
    /// The most that are listed of those; at least 1. They stand in the order in which what they name was named
    /// first. Default absent: all.
    pub max_untried: Option<usize>,
    /// What becomes of what the policy thought, in `<think>` before its answer, in the turns after it. Default
    /// `inline`.
    pub reasoning: ReasoningRule,
    /// Tokens of prompt and answer together, beyond which an episode is truncated. Default
    /// absent: the policy's own limit.
    pub max_context_tokens: Option<usize>,
    /// What becomes of the conversation as it grows: one of `spar list contexts` with its options, such as
    /// `{ kind = "compact", tokens = 4000 }`. Default absent: as the scaffold has it, which is `keep_all` in those that
    /// ship.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<ContextPolicyChoice>,
}

/// When actions that were not taken yet are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListUntried {
    /// Not at all.
    #[default]
    Never,
    /// Behind an action that was taken before in the episode: who searches in circles reads there how to leave
    /// them, and who does not repeat itself is shown nothing.
    Repeated,
    /// Behind every action.
    Always,
}

/// What becomes of thoughts in the turns after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningRule {
    /// They are not told apart: parsers read what was written with them, and they stay in the conversation.
    #[default]
    Inline,
    /// They are told apart and stay, unless the model's chat template leaves them out.
    Keep,
    /// They are told apart and left out: from the turn after on, the conversation goes on without them, as a sample of
    /// its own.
    Strip,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            window_turns: None,
            reminder: false,
            instruction: true,
            list_admissible: false,
            list_unnamed: false,
            list_untried: ListUntried::Never,
            max_untried: None,
            reasoning: ReasoningRule::Inline,
            max_context_tokens: None,
            policy: None,
        }
    }
}

impl ContextConfig {
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.window_turns == Some(0) {
            problems.push("context.window_turns is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_untried == Some(0) {
            problems.push("context.max_untried is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_untried.is_some() && self.list_untried == ListUntried::Never {
            problems.push(
                "context.max_untried has no effect: context.list_untried is `never`".to_owned(),
            );
        }
        if self.max_context_tokens == Some(0) {
            problems
                .push("context.max_context_tokens is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}
