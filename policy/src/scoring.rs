//! Log-probabilities of given tokens.

use crate::Weights;
use crate::cuda::DeviceError;
use crate::decoder::TokenTree;
use crate::head::{Draw, try_judge};

/// The natural logarithm of the probability of each target token behind the prompt, which has at least one token, and the target
/// tokens before it: `log softmax(logits)_token`, at temperature 1 over the whole vocabulary.
///
/// What the decoder computes here equals what it computes when it draws these tokens.
///
/// # Errors
///
/// When the decoder is on a device, which fails.
///
/// # Panics
///
/// When the prompt is empty or a token is not of the vocabulary.
pub fn token_log_probabilities(
    weights: &Weights,
    prompt: &[u32],
    target: &[u32],
) -> Result<Vec<f32>, DeviceError> {
    assert!(!prompt.is_empty(), "the first token of a target stands behind something");
    let Some((_, read)) = target.split_last() else { return Ok(Vec::new()) };
    let ids = [prompt, read].concat();
    let states = TokenTree::new(&[&ids]).try_read(weights, None)?;
    let draw = |(index, token): (usize, &u32)| Draw {
        row: prompt.len() - 1 + index,
        token: *token,
        allowed: &[],
    };
    let draws: Vec<Draw<'_>> = target.iter().enumerate().map(draw).collect();
    let judged = try_judge(weights, &states, &draws, 1.0)?;
    Ok(judged.into_iter().map(|judged| judged.logprob).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::{
        CompletionRequest, Policy, PolicyError, PolicyVersion, Sampling, ScoringRequest, Seed,
    };

    use super::*;
    use crate::decoder::{Segment, SequenceCache, forward};
    use crate::head::{log_softmax, logits};
    use crate::{
        LocalPolicy, LoraConfig, LoraModel, ModelConfig, ServedAdapter, Tokenizer, TokenizerConfig,
        initial_parameters,
    };

    fn model() -> (Arc<Tokenizer>, Arc<Weights>) {
        let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
        let tokenizer = Tokenizer::train(games, &TokenizerConfig::default()).unwrap();
        let config = ModelConfig {
            vocab_size: tokenizer.vocab_size(),
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 8,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        };
        let mut parameters = initial_parameters(&config, Seed::from_u64(3));
        parameters.data.iter_mut().for_each(|value| *value *= 3.0);
        (Arc::new(tokenizer), Arc::new(Weights::new(&config, parameters)))
    }

    #[tokio::test]
    async fn a_local_policy_tells_what_is_computed_token_by_token() {
        let (tokenizer, weights) = model();
        let local = LocalPolicy::new("l", tokenizer, weights.clone(), PolicyVersion(0), 2).unwrap();
        let prompt = local.encode_text("You see a door.");
        let target = local.encode_text(" open the box");
        assert!(!prompt.is_empty() && target.len() > 2 && local.can_score());
        // One token after the other, by the logits of the whole vocabulary.
        let mut cache = SequenceCache::new(&weights);
        let mut direct = Vec::new();
        let mut states = forward(&weights, &mut [Segment::new(&mut cache, &prompt)], None);
        for token in &target {
            let (mut row, width) = (Vec::new(), weights.config().hidden_size);
            logits(&weights, &states[states.len() - width..], &[], &mut row);
            log_softmax(&mut row, 1.0);
            direct.push(row[*token as usize]);
            states = forward(&weights, &mut [Segment::new(&mut cache, &[*token])], None);
        }
        let request =
            ScoringRequest { prompt_ids: prompt.clone().into(), target_ids: target.clone() };
        let scored = local.score(request).await.unwrap();
        assert_eq!(scored.len(), direct.len());
        for (scored, direct) in scored.iter().zip(&direct) {
            assert!((scored - direct).abs() < 1e-5, "{scored} {direct}");
        }
        assert!(scored.iter().any(|logprob| *logprob < -0.5), "{scored:?}");
        let nothing = ScoringRequest { prompt_ids: prompt.into(), target_ids: Vec::new() };
        assert!(local.score(nothing).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_was_sampled_is_scored_as_it_was_sampled_and_new_weights_count() {
        let (tokenizer, weights) = model();
        let local = LocalPolicy::new("l", tokenizer, weights.clone(), PolicyVersion(0), 1).unwrap();
        let prompt_ids: Arc<[u32]> = local.encode_text("You see a box.").into();
        let request = CompletionRequest {
            prompt_ids: prompt_ids.clone(),
            sampling: Sampling { max_tokens: 12, ..Sampling::default() },
            ..CompletionRequest::new(1, Seed::from_u64(1))
        };
        let sampled = local.complete(request).await.unwrap().tokens;
        let request =
            || ScoringRequest { prompt_ids: prompt_ids.clone(), target_ids: sampled.ids.clone() };
        let scored = local.score(request()).await.unwrap();
        for (scored, sampled) in scored.iter().zip(&sampled.logprobs) {
            assert!((scored - sampled).abs() < 1e-5, "{scored} {sampled}");
        }
        let other = initial_parameters(weights.config(), Seed::from_u64(9));
        local.publish(&Arc::new(weights.with_parameters(other)), PolicyVersion(1));
        assert_ne!(local.score(request()).await.unwrap(), scored);
    }

    #[tokio::test]
    async fn an_adapter_among_several_is_scored_as_it_samples() {
        let (tokenizer, weights) = model();
        let lora = LoraModel::new(weights.clone(), &LoraConfig::default());
        let mut factors = lora.initial(Seed::from_u64(5));
        factors.data.iter_mut().enumerate().for_each(|(at, value)| *value += (at % 7) as f32 * 0.1);
        let version = PolicyVersion(0);
        let served = ServedAdapter { name: "a".into(), adapter: lora.adapter(&factors), version };
        let policies =
            LocalPolicy::with_adapters("base", tokenizer, weights, version, &[served], 1).unwrap();
        let prompt_ids: Arc<[u32]> = policies[0].encode_text("You see a box.").into();
        let mut scores = Vec::new();
        for policy in &policies {
            let request = CompletionRequest {
                prompt_ids: prompt_ids.clone(),
                sampling: Sampling { max_tokens: 8, ..Sampling::default() },
                ..CompletionRequest::new(1, Seed::from_u64(1))
            };
            let sampled = policy.complete(request).await.unwrap().tokens;
            let request =
                |target_ids| ScoringRequest { prompt_ids: prompt_ids.clone(), target_ids };
            let scored = policy.score(request(sampled.ids)).await.unwrap();
            for (scored, sampled) in scored.iter().zip(&sampled.logprobs) {
                assert!((scored - sampled).abs() < 1e-4, "{scored} {sampled}");
            }
            scores.push(policy.score(request(vec![3, 4, 5])).await.unwrap());
        }
        assert_ne!(scores[0], scores[1]);
    }

    #[tokio::test]
    async fn what_cannot_be_scored_is_an_error() {
        let (tokenizer, weights) = model();
        let local = LocalPolicy::new("l", tokenizer, weights, PolicyVersion(0), 1).unwrap();
        let score = async |prompt: usize, target: Vec<u32>| {
            let request = ScoringRequest { prompt_ids: vec![1; prompt].into(), target_ids: target };
            local.score(request).await.unwrap_err()
        };
        let full = score(60, vec![1; 5]).await;
        assert!(matches!(full, PolicyError::ContextFull { tokens: Some(65), limit: Some(64) }));
        assert!(matches!(score(0, vec![1]).await, PolicyError::Unsupported { .. }));
        let unknown = score(1, vec![u32::MAX]).await.to_string();
        assert!(unknown.contains("of a vocabulary of"), "{unknown}");
    }
}
