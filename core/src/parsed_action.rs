//! What a turn's completion was read as.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Action;

/// What a turn's completion was read as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "StoredAction")]
pub enum ParsedAction {
    /// An action for the environment.
    Action {
        /// The action.
        action: Action,
        /// Where it stands in what the policy wrote, in bytes: one range per call, or one for an action in words.
        /// Empty where nothing was read, as in records of versions 1 to 3 and with endpoints that give calls by
        /// themselves.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        spans: Vec<Range<usize>>,
        /// What the policy thought, where that is told apart from what it said.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
    },
    /// No action could be read; the environment was not called.
    Invalid {
        /// Why not.
        reason: String,
    },
}

/// As it is read: the records of versions 1 to 3 have the action as a `text`.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StoredAction {
    Action {
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        action: Option<Action>,
        #[serde(default)]
        spans: Vec<Range<usize>>,
        #[serde(default)]
        reasoning: Option<String>,
    },
    Invalid {
        reason: String,
    },
}

impl TryFrom<StoredAction> for ParsedAction {
    type Error = &'static str;

    fn try_from(stored: StoredAction) -> Result<Self, Self::Error> {
        let (text, action, spans, reasoning) = match stored {
            StoredAction::Action { text, action, spans, reasoning } => {
                (text, action, spans, reasoning)
            }
            StoredAction::Invalid { reason } => return Ok(Self::Invalid { reason }),
        };
        match action.or(text.map(Action::from)) {
            Some(action) => Ok(Self::Action { action, spans, reasoning }),
            None => Err("an action has neither `action` nor `text`"),
        }
    }
}

impl ParsedAction {
    /// An action that stands nowhere in particular.
    pub fn of(action: impl Into<Action>) -> Self {
        Self::Action { action: action.into(), spans: Vec::new(), reasoning: None }
    }

    /// The action; absent where none could be read.
    pub fn action(&self) -> Option<&Action> {
        match self {
            Self::Action { action, .. } => Some(action),
            Self::Invalid { .. } => None,
        }
    }

    /// Why no action could be read; absent where one was.
    pub fn invalid_reason(&self) -> Option<&str> {
        match self {
            Self::Invalid { reason } => Some(reason),
            Self::Action { .. } => None,
        }
    }

    /// Whether no action could be read.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid { .. })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolCall;

    #[test]
    fn actions_keep_their_places_and_older_records_are_read() {
        let call = ToolCall::new("f", serde_json::Map::new());
        let calls = ParsedAction::Action {
            action: Action::calls(vec![call]),
            spans: std::iter::once(2..9).collect(),
            reasoning: Some("hm".to_owned()),
        };
        for parsed in [calls, ParsedAction::of("go"), ParsedAction::Invalid { reason: "x".into() }]
        {
            let json = serde_json::to_string(&parsed).unwrap();
            assert_eq!(serde_json::from_str::<ParsedAction>(&json).unwrap(), parsed);
        }
        let older = json!({ "kind": "action", "text": "go" });
        let read: ParsedAction = serde_json::from_value(older).unwrap();
        assert_eq!(read, ParsedAction::of("go"));
        assert!(serde_json::from_value::<ParsedAction>(json!({ "kind": "action" })).is_err());
    }
}
