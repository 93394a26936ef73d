//! A policy that draws its actions.

use async_trait::async_trait;
use rand::seq::IndexedRandom;
use spar_core::{
    Completion, CompletionRequest, Message, Policy, PolicyError, SampledTokens, StopCause,
};

/// Draws one of the admissible actions, each with the same probability.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomPolicy;

#[async_trait]
impl Policy for RandomPolicy {
    fn name(&self) -> &str {
        "random"
    }

    fn encode(&self, _message: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let choices = request.choices.as_deref().unwrap_or_default();
        let choice = choices.choose(&mut request.seed.rng());
        let choice = choice.ok_or_else(|| PolicyError::Unsupported {
            name: "random".to_owned(),
            what: "an action where no admissible ones are listed".to_owned(),
        })?;
        Ok(Completion {
            text: choice.to_string(),
            tokens: SampledTokens::default(),
            stop: StopCause::EndOfTurn,
            author: "random".to_owned(),
        })
    }
}
