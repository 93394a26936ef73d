//! A policy that does nothing.

use std::sync::Arc;

use async_trait::async_trait;
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, StopCause};

/// What it says each turn.
const IDLE: &str = "do nothing at all";

/// Says in every turn that it does nothing, calls no tool and takes none of the actions that are listed: what a suite
/// gives it is given for nothing. Where an answer ends the episode, that is its answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdlePolicy;

#[async_trait]
impl Policy for IdlePolicy {
    fn name(&self) -> &str {
        "no-op"
    }

    fn encode(&self, _before: Option<&Message>, _message: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, mut request: CompletionRequest) -> Result<Completion, PolicyError> {
        // It keeps to no list and calls no tool: an action that is on one does something, and so does a call.
        (request.choices, request.tools) = (None, Arc::default());
        request.refuse_all_but_choices(self.name())?;
        Ok(Completion::new(self.name(), IDLE, StopCause::EndOfTurn))
    }
}

#[cfg(test)]
mod tests {
    use spar_core::{Seed, ToolSpec};

    use super::*;

    #[tokio::test]
    async fn no_listed_action_is_taken() {
        let choices: Arc<[Arc<str>]> = ["go".into(), "stay".into()].into();
        let request = CompletionRequest {
            choices: Some(choices),
            ..CompletionRequest::new(0, Seed::from_u64(1))
        };
        assert_eq!(IdlePolicy.complete(request).await.unwrap().text, IDLE);
    }

    #[tokio::test]
    async fn no_tool_is_called() {
        let tool = ToolSpec::new("pay", "Pays.", serde_json::json!({}));
        let request = CompletionRequest {
            tools: [tool].into(),
            ..CompletionRequest::new(0, Seed::from_u64(1))
        };
        let answer = IdlePolicy.complete(request).await.unwrap();
        assert_eq!((&*answer.text, answer.calls), (IDLE, None));
    }
}
