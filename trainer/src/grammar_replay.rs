//! What grammars allowed, found again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spar_core::Sample;
use spar_policy::{GrammarCache, ReplayError};

use crate::MeasuredTokens;

/// The tokens that could be drawn in places of samples of which a grammar tells.
///
/// Lists of equal content are there once: most places within a string allow the same tokens.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// By sample and place.
    lists: HashMap<(usize, usize), Arc<[u32]>>,
}

impl Replayed {
    /// Replays the grammars of `samples` in the places of `tokens`.
    ///
    /// # Errors
    ///
    /// [`ReplayFailed`] when an answer is none of its grammar, or nothing was given to replay it with.
    pub(crate) fn new(
        samples: &[&Sample],
        tokens: MeasuredTokens,
        grammars: Option<&GrammarCache>,
    ) -> Result<Self, ReplayFailed> {
        let mut lists = HashMap::new();
        let mut known: HashSet<Arc<[u32]>> = HashSet::new();
        for (index, sample) in samples.iter().enumerate() {
            for span in &sample.grammars {
                let first = span.places.start;
                let is_wanted =
                    |t: usize| t > 0 && tokens.has(sample, t) && sample.allowed.get(t).is_empty();
                if !span.places.clone().any(is_wanted) {
                    continue;
                }
                let cache = grammars.ok_or(ReplayFailed::NoTokenizer)?;
                let grammar = cache.get(&span.grammar).map_err(ReplayError::from)?;
                let drawn = &sample.tokens[span.places.clone()];
                let end = cache.tokenizer().end_of_turn();
                grammar.replay(
                    end,
                    drawn,
                    |place| is_wanted(first + place),
                    |place, allowed| {
                        let list = known.get(allowed).cloned().unwrap_or_else(|| {
                            let list: Arc<[u32]> = allowed.into();
                            known.insert(list.clone());
                            list
                        });
                        lists.insert((index, first + place), list);
                    },
                )?;
            }
        }
        Ok(Self { lists })
    }

    /// The list of a place, where a grammar tells of it.
    pub(crate) fn get(&self, sample: usize, place: usize) -> Option<&[u32]> {
        self.lists.get(&(sample, place)).map(AsRef::as_ref)
    }
}

/// What a grammar allowed cannot be found again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayFailed {
    #[error(
        "replay the grammar that an answer was held to: the gradient was given no tokenizer \
         (`DecoderGradient::with_grammars`)"
    )]
    NoTokenizer,
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

#[cfg(test)]
mod tests {
    use spar_core::{
        Completion, CompletionRequest, GrammarSource, GrammarSpan, Policy, PolicyVersion, Sampling,
        Seed,
    };
    use spar_policy::{
        LocalPolicy, ModelConfig, Parameters, Tokenizer, TokenizerConfig, Weights,
        initial_parameters,
    };

    use super::*;
    use crate::{DecoderGradient, Measured, SampleGradient, Slopes};

    struct Model {
        tokenizer: Arc<Tokenizer>,
        parameters: Parameters,
        weights: Arc<Weights>,
        policy: LocalPolicy,
    }

    fn model() -> Model {
        let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
        let tokenizer = Arc::new(Tokenizer::train(games, &TokenizerConfig::default()).unwrap());
        let config = ModelConfig {
            vocab_size: tokenizer.vocab_size(),
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 1,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 8,
            max_position_embeddings: 1100,
            ..ModelConfig::default()
        };
        let mut parameters = initial_parameters(&config, Seed::from_u64(3));
        // Larger than usual, so that some tokens are more probable than others.
        parameters.data.iter_mut().for_each(|value| *value *= 3.0);
        let weights = Arc::new(Weights::new(&config, parameters.clone()));
        let (version, threads) = (PolicyVersion(0), 1);
        let policy =
            LocalPolicy::new("test", tokenizer.clone(), weights.clone(), version, threads).unwrap();
        Model { tokenizer, parameters, weights, policy }
    }

    fn sources() -> Vec<Arc<GrammarSource>> {
        let schema = r#"{
            "type": "object",
            "properties": {
                "action": { "enum": ["open door", "open box"] },
                "why": { "type": "string", "maxLength": 6 },
                "times": { "type": "integer", "minimum": 1, "maximum": 99 }
            },
            "required": ["action", "why", "times"],
            "additionalProperties": false
        }"#;
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        [
            GrammarSource::json_schema(schema.clone()),
            GrammarSource::JsonBetween {
                before: "<tool_call>\n".to_owned(),
                schema,
                after: "\n</tool_call>".to_owned(),
            },
            GrammarSource::regex("(open|shut) the (box|door)[ a-z]{0,20}"),
            GrammarSource::lark(
                "start: verb \" \" noun+\nverb: \"open\" | \"shut\"\nnoun: /[a-z]{2,4}/\n",
            ),
        ]
        .map(Arc::new)
        .to_vec()
    }

    fn request(model: &Model, number: u64, source: &Arc<GrammarSource>) -> CompletionRequest {
        let default = Sampling { max_tokens: 200, ..Sampling::default() };
        let sampling = match number % 4 {
            0 => default,
            1 => Sampling { top_k: Some(3), ..default },
            2 => Sampling { top_p: 0.8, temperature: 0.7, ..default },
            _ => Sampling { min_p: 0.05, temperature: 1.5, ..default },
        };
        CompletionRequest {
            prompt_ids: model.tokenizer.encode("You see a door.").into(),
            grammar: Some(source.clone()),
            sampling,
            ..CompletionRequest::new(number, Seed::from_u64(number))
        }
    }

    /// The sample that is cut of an answer.
    fn cut(request: &CompletionRequest, answer: &Completion) -> Sample {
        let mut sample = Sample::default();
        request.prompt_ids.iter().for_each(|token| sample.push_observed(*token, 0.0));
        let (tokens, start) = (&answer.tokens, sample.len());
        for (t, token) in tokens.ids.iter().enumerate() {
            let (logprob, version) = (tokens.logprobs[t], tokens.versions[t]);
            sample.push(*token, 1.0, 1.0, 0.0, logprob, version, &tokens.allowed[t]);
        }
        if let Some(grammar) = &request.grammar {
            let places = start..sample.len();
            sample.grammars.push(GrammarSpan { places, grammar: grammar.clone() });
        }
        sample
    }

    #[tokio::test]
    async fn what_was_sampled_under_a_grammar_is_recomputed_to_the_bit() {
        let model = model();
        let vocabulary = model.tokenizer.vocab_size();
        let grammars = Arc::new(GrammarCache::new(model.tokenizer.clone(), vocabulary));
        let (mut open, mut listed, mut forced) = (0, 0, 0);
        for (source, number) in sources().iter().flat_map(|s| (0..4).map(move |n| (s, n))) {
            let request = request(&model, number, source);
            let answer = model.policy.complete(request.clone()).await.unwrap();
            assert_eq!(answer.tokens.grammar, Some(source.hash()));
            let sample = cut(&request, &answer);
            sample.validate().unwrap();
            for list in &answer.tokens.allowed {
                match list.len() {
                    0 => open += 1,
                    1 => forced += 1,
                    _ => listed += 1,
                }
            }
            if number % 4 == 0 {
                assert!(
                    answer.tokens.allowed.iter().all(|list| list.len() < 2),
                    "nothing is listed"
                );
            }
            let temperature = request.sampling.temperature;
            let gradient = DecoderGradient::new(model.weights.clone(), temperature)
                .with_grammars(grammars.clone());
            let found = gradient.prepare(&model.parameters).logprobs(&[&sample]).unwrap();
            let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            let start = request.prompt_ids.len();
            assert_eq!(
                bits(&found[0][start..]),
                bits(&sample.behavior_logprobs[start..]),
                "{source:?}, request {number}: {}",
                answer.text
            );
        }
        assert!(open > 40 && listed > 20 && forced > 40, "{open} {listed} {forced}");
    }

    #[tokio::test]
    async fn an_answer_that_is_gone_on_with_is_recomputed_as_well() {
        let model = model();
        let vocabulary = model.tokenizer.vocab_size();
        let grammars = Arc::new(GrammarCache::new(model.tokenizer.clone(), vocabulary));
        for (number, source) in (0..).zip(&sources()) {
            let mut request = request(&model, number, source);
            let whole = model.policy.complete(request.clone()).await.unwrap();
            for count in (1..whole.tokens.ids.len()).step_by(7) {
                request.partial = whole.tokens.first(count);
                request.seed = Seed::from_u64(count as u64);
                let answer = model.policy.complete(request.clone()).await.unwrap();
                assert_eq!(answer.tokens.first(count), request.partial);
                let sample = cut(&request, &answer);
                let gradient =
                    DecoderGradient::new(model.weights.clone(), request.sampling.temperature)
                        .with_grammars(grammars.clone());
                let found = gradient.prepare(&model.parameters).logprobs(&[&sample]).unwrap();
                assert_eq!(found[0], sample.behavior_logprobs, "{source:?}, {count} tokens begun");
            }
        }
    }

    #[tokio::test]
    async fn what_cannot_be_replayed_is_refused() {
        let model = model();
        let source = Arc::new(GrammarSource::regex("[ab]{8}"));
        let request = request(&model, 0, &source);
        let answer = model.policy.complete(request.clone()).await.unwrap();
        let mut sample = cut(&request, &answer);
        let gradient = DecoderGradient::new(model.weights.clone(), 1.0);
        let refused = |gradient: &DecoderGradient, sample: &Sample| {
            let slopes =
                |_: usize, found: Measured<'_>| Slopes::from(vec![0.0; found.logprobs.len()]);
            let mut into = vec![0.0; model.parameters.data.len()];
            let model = gradient.prepare(&model.parameters);
            let one = model.logprobs(&[sample]).unwrap_err().to_string();
            assert_eq!(
                model.accumulate(&[sample], &slopes, &mut into, None).unwrap_err().to_string(),
                one
            );
            one
        };
        assert!(refused(&gradient, &sample).contains("with_grammars"));
        let vocabulary = model.tokenizer.vocab_size();
        let grammars = Arc::new(GrammarCache::new(model.tokenizer.clone(), vocabulary));
        let gradient = gradient.with_grammars(grammars);
        sample.grammars[0].grammar = Arc::new(GrammarSource::regex("[cd]{8}"));
        assert!(refused(&gradient, &sample).contains("does not allow token"));
        sample.grammars[0].grammar = Arc::new(GrammarSource::regex("(a"));
        assert!(refused(&gradient, &sample).contains("regular expression"));
    }
}
