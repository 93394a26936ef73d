//! A policy that draws its actions.

use async_trait::async_trait;
use rand::RngExt;
use rand::seq::IndexedRandom;
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, StopCause};

use super::random_call::random_call;

/// The most words of an answer that is free.
const MAX_WORDS: usize = 4;

/// Draws one of the admissible actions, each with the same probability. Where none are listed it
/// says one to four words, drawn from those of the conversation. Where tools are offered it calls one of them, with arguments drawn
/// from its schema and texts that are words of the conversation, or says something: each with the same probability.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomPolicy;

#[async_trait]
impl Policy for RandomPolicy {
    fn name(&self) -> &str {
        "random"
    }

    fn encode(&self, _before: Option<&Message>, _message: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, mut request: CompletionRequest) -> Result<Completion, PolicyError> {
        let tools = std::mem::take(&mut request.tools);
        request.refuse_all_but_choices(self.name())?;
        let mut rng = request.seed.rng();
        let text = match &request.choices {
            Some(choices) => choices.choose(&mut rng).map(ToString::to_string),
            None => {
                let all = request.messages.iter().map(|message| message.text()).collect::<Vec<_>>();
                let words: Vec<&str> =
                    all.iter().flat_map(|text| text.split_whitespace()).collect();
                // Behind the last of them stands saying something.
                if !tools.is_empty()
                    && let Some(tool) = tools.get(rng.random_range(0..=tools.len()))
                {
                    let calls = Some(Ok(vec![random_call(tool, &words, &mut rng)]));
                    let answer = Completion::new(self.name(), "", StopCause::ToolCalls);
                    return Ok(Completion { calls, ..answer });
                }
                let draw = |_| words.choose(&mut rng).copied();
                let drawn: Option<Vec<&str>> = (0..count(&request)).map(draw).collect();
                drawn.map(|drawn| drawn.join(" "))
            }
        };
        let text = text.ok_or_else(|| PolicyError::Unsupported {
            name: "random".to_owned(),
            what: "an action where there are none, nor words to draw from".to_owned(),
        })?;
        Ok(Completion::new("random", text, StopCause::EndOfTurn))
    }
}

/// How many words a free answer has.
fn count(request: &CompletionRequest) -> usize {
    request.seed.derive("words", 0).rng().random_range(1..=MAX_WORDS)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use spar_core::{Role, Seed, ToolSpec};

    use super::*;

    #[tokio::test]
    async fn without_a_list_it_says_words_of_the_conversation() {
        let message = Arc::new(Message::new(Role::User, "copy a to b"));
        let request = |number, choices| CompletionRequest {
            messages: vec![Arc::clone(&message)].into(),
            choices,
            ..CompletionRequest::new(0, Seed::from_u64(number))
        };
        let mut lengths = [0; MAX_WORDS + 1];
        for number in 0..100 {
            let text = RandomPolicy.complete(request(number, None)).await.unwrap().text;
            assert!(text.split(' ').all(|word| ["copy", "a", "to", "b"].contains(&word)), "{text}");
            lengths[text.split(' ').count()] += 1;
        }
        assert!(lengths[1..].iter().all(|count| *count > 0));
        let only: Arc<[Arc<str>]> = ["look".into()].into();
        assert_eq!(RandomPolicy.complete(request(0, Some(only))).await.unwrap().text, "look");
        assert!(RandomPolicy.complete(request(0, Some(Arc::from([])))).await.is_err());
    }

    #[tokio::test]
    async fn each_tool_is_called_as_often_as_something_is_said() {
        let tools: Arc<[ToolSpec]> =
            ["a", "b"].map(|name| ToolSpec::new(name, "", json!({ "type": "object" }))).into();
        let message = Arc::new(Message::new(Role::User, "copy a to b"));
        let mut counts = [0; 3];
        for number in 0..300 {
            let request = CompletionRequest {
                messages: vec![Arc::clone(&message)].into(),
                tools: Arc::clone(&tools),
                ..CompletionRequest::new(0, Seed::from_u64(number))
            };
            let answer = RandomPolicy.complete(request).await.unwrap();
            let called = answer.calls.map(|calls| calls.unwrap().remove(0).name);
            assert_eq!(called.is_none(), !answer.text.is_empty());
            counts[called.map_or(2, |name| usize::from(name == "b"))] += 1;
        }
        assert!(counts.iter().all(|count| (70..130).contains(count)), "{counts:?}");
    }
}
