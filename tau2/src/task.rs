//! Tasks, as a release writes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_python::characters::{is_line_end, is_space};

use crate::Requestor;

/// A task: who calls and why, what the world is like, and how the end is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tau2Task {
    /// The id.
    pub id: String,
    /// Who calls, and why.
    pub user_scenario: UserScenario,
    /// The problem as a ticket, for an agent that works alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// What the world is like, beyond the domain's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_state: Option<InitialState>,
    /// How the end is judged. Absent: everything earns 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_criteria: Option<EvaluationCriteria>,
    /// The user's tools. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_tools: Option<Vec<String>>,
}

/// Who calls, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserScenario {
    /// What the user is like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// What the user wants and knows.
    pub instructions: Instructions,
}

/// What the user wants and knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Instructions {
    /// In one text.
    Text(String),
    /// In parts.
    Parts(InstructionParts),
}

/// What the user wants and knows, in parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstructionParts {
    /// The domain.
    pub domain: String,
    /// Why the user calls.
    pub reason_for_call: String,
    /// What the user knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_info: Option<String>,
    /// What the user does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_info: Option<String>,
    /// What the user is to do.
    pub task_instructions: String,
}

/// What the world is like at first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InitialState {
    /// Data that are merged into the domain's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_data: Option<InitializationData>,
    /// Functions that are called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_actions: Option<Vec<FunctionCall>>,
    /// What was said and called before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_history: Option<Vec<Message>>,
}

/// Data that are merged into the domain's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InitializationData {
    /// Into the agent's database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_data: Option<Value>,
    /// Into the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<Value>,
}

/// A call of a function of the world, tool or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// Whose function it is.
    pub env_type: Requestor,
    /// The function.
    pub func_name: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// A call of a function that has to find something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// The call.
    #[serde(flatten)]
    pub call: FunctionCall,
    /// What it has to find. Default true.
    #[serde(default = "yes")]
    pub assert_value: bool,
}

fn yes() -> bool {
    true
}

/// How the end is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationCriteria {
    /// Calls that solve the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<GoldAction>>,
    /// What has to hold of the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_assertions: Option<Vec<Assertion>>,
    /// What the agent has to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub communicate_info: Option<Vec<String>>,
    /// What a judge has to find true of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nl_assertions: Option<Vec<String>>,
    /// What of that counts.
    #[serde(default = "default_basis")]
    pub reward_basis: Vec<RewardType>,
}

fn default_basis() -> Vec<RewardType> {
    vec![RewardType::Db, RewardType::Communicate]
}

/// What a reward can be made of; it is the product of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RewardType {
    /// The databases are as the gold calls leave them.
    Db,
    /// All assertions hold.
    EnvAssertion,
    /// A judge finds all sentences true.
    NlAssertion,
    /// All gold calls were made.
    Action,
    /// Everything was said.
    Communicate,
}

impl RewardType {
    /// The name, as releases write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Db => "DB",
            Self::EnvAssertion => "ENV_ASSERTION",
            Self::NlAssertion => "NL_ASSERTION",
            Self::Action => "ACTION",
            Self::Communicate => "COMMUNICATE",
        }
    }
}

/// A call that is part of a solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoldAction {
    /// The id within the task.
    pub action_id: String,
    /// Who calls. Default the agent.
    #[serde(default = "assistant")]
    pub requestor: Requestor,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The arguments that are compared. Absent: those that the other call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_args: Option<Vec<String>>,
}

fn assistant() -> Requestor {
    Requestor::Assistant
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// The agent says something, or calls tools.
    Assistant(Said),
    /// The user does.
    User(Said),
    /// What a tool answered.
    Tool(Answered),
    /// What is told beforehand.
    System(Said),
}

/// What someone said, or called.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Said {
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<Called>>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The id.
    #[serde(default)]
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Who called.
    #[serde(default = "assistant")]
    pub requestor: Requestor,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The id of the call.
    #[serde(default)]
    pub id: String,
    /// The answer.
    #[serde(default)]
    pub content: Option<String>,
    /// Who called.
    #[serde(default = "assistant")]
    pub requestor: Requestor,
    /// Whether it is an error.
    #[serde(default)]
    pub error: bool,
}

impl Said {
    /// The calls; none where it is words.
    pub fn calls(&self) -> &[Called] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

impl UserScenario {
    /// The scenario in words, as the reference's simulated user is given it.
    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(persona) = &self.persona {
            lines.push("Persona:".to_owned());
            lines.push(indent(persona));
        }
        lines.push("Instructions:".to_owned());
        lines.push(indent(&self.instructions.to_text()));
        lines.join("\n")
    }
}

impl Instructions {
    /// The instructions in words.
    pub fn to_text(&self) -> String {
        let parts = match self {
            Self::Text(text) => return text.clone(),
            Self::Parts(parts) => parts,
        };
        let mut lines = vec![
            format!("Domain: {}", parts.domain),
            format!("Reason for call:\n{}", indent(&parts.reason_for_call)),
        ];
        if let Some(known) = &parts.known_info {
            lines.push(format!("Known info:\n{}", indent(known)));
        }
        if let Some(unknown) = &parts.unknown_info {
            lines.push(format!("Unknown info:\n{}", indent(unknown)));
        }
        lines.push(format!("Task instructions:\n{}", indent(&parts.task_instructions)));
        lines.join("\n")
    }
}

/// A tab before every line that has something in it.
fn indent(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() + 8);
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_followed = character == '\r' && matches!(characters.peek(), Some((_, '\n')));
        let is_last = characters.peek().is_none();
        if !is_last && (!is_line_end(character) || is_followed) {
            continue;
        }
        let end = at + character.len_utf8();
        let line = &text[start..end];
        if !line.chars().all(is_space) {
            indented.push('\t');
        }
        indented.push_str(line);
        start = end;
    }
    indented
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scenario_reads_as_the_reference_writes_it() {
        let scenario: UserScenario = serde_json::from_value(json!({
            "persona": "\nCalm.\r\n\nShort.",
            "instructions": {
                "domain": "mock",
                "reason_for_call": "a\n\tb\n",
                "known_info": null,
                "unknown_info": "c",
                "task_instructions": "",
            },
        }))
        .unwrap();
        let expected = "Persona:\n\n\tCalm.\r\n\n\tShort.\nInstructions:\n\tDomain: mock\n\tReason for call:\n\t\ta\n\
                        \t\t\tb\n\n\tUnknown info:\n\t\tc\n\tTask instructions:\n";
        assert_eq!(scenario.to_text(), expected);
        let text: UserScenario = serde_json::from_value(json!({ "instructions": "x" })).unwrap();
        assert_eq!(text.to_text(), "Instructions:\n\tx");
    }
}
