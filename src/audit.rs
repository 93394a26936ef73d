//! How far rollout and training differ.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use spar_core::{PolicyVersion, Sample, Seed};
use spar_policy::draw_rules::LoadedDrawRule;
use spar_policy::sampling::SamplingOptions;
use spar_policy::{
    GenerateError, GenerationEvent, GenerationRequest, Generator, GeneratorConfig, Report,
    StopConditions, Tokenizer, Weights,
};
use spar_trainer::DecoderGradient;

/// What an audit does.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditConfig {
    /// Tokens to sample.
    pub tokens: usize,
    /// How they are drawn; nothing that shifts logits, since training does not know of it.
    pub sampling: SamplingOptions,
    /// Seed of all random choices.
    pub seed: u64,
    /// Engines.
    pub threads: usize,
}

/// How far the log-probabilities of training are from those that were sampled with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AuditReport {
    /// Tokens that were compared.
    pub tokens: usize,
    /// Answers they stand in.
    pub answers: usize,
    /// Tokens that differ at all.
    pub different: usize,
    /// Largest absolute difference, in nats.
    pub max_abs_difference: f64,
    /// Mean absolute difference, in nats.
    pub mean_abs_difference: f64,
    /// Mean of `log p_rollout - log p_training`: an unbiased estimate of their divergence.
    pub kl_k1: f64,
    /// Mean of `r - 1 - log r`, `r = p_training / p_rollout`: the same with less variance, and
    /// never negative (Schulman 2020).
    pub kl_k3: f64,
    /// Mean sequences per step of the engines.
    pub mean_batch: f64,
}

/// An audit could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The engines could not be started.
    #[error("start the engines")]
    Engines(#[source] std::io::Error),
    /// An answer could not be sampled.
    #[error("sample")]
    Generate(#[from] GenerateError),
    /// Training could not read what was sampled.
    #[error("recompute what was sampled")]
    Training(#[source] Box<dyn Error + Send + Sync>),
    /// A setting does not go with an audit.
    #[error("audit with `{option}` {found}: {detail}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Its value.
        found: String,
        /// Why.
        detail: &'static str,
    },
}

/// Answers under way at the same time.
const ANSWERS: usize = 16;
/// Tokens that an answer has at the most.
const LONGEST: usize = 256;
/// Rows that training reads at a time.
const ROWS: usize = 16;

/// Samples through the engines, answers joining and leaving at every step, and recomputes the
/// log-probability of every token as training does; both by a draw rule, where there is one.
///
/// # Errors
///
/// When the settings do not go with it, or an answer cannot be sampled or read.
pub async fn audit(
    tokenizer: &Arc<Tokenizer>,
    weights: &Arc<Weights>,
    rule: Option<&Arc<LoadedDrawRule>>,
    config: &AuditConfig,
) -> Result<AuditReport, AuditError> {
    check(config)?;
    let generator_config = GeneratorConfig {
        threads: config.threads,
        // Small, so that prompts are read in pieces while others draw.
        prefill_tokens: 16,
        ..GeneratorConfig::default()
    };
    let version = PolicyVersion(0);
    let generator = match rule {
        Some(rule) => {
            let (name, config) = ("audit", generator_config);
            Generator::with_draw_rule(name, tokenizer, weights, version, rule, config)
        }
        None => Generator::new("audit", tokenizer, weights, version, generator_config),
    };
    let generator = generator.map_err(AuditError::Engines)?;
    let rows = sample(&generator, weights, config).await?;
    let metrics = generator.metrics();
    drop(generator);

    let model = DecoderGradient::new(weights.clone(), config.sampling.temperature)
        .with_draw_rule(rule.cloned())
        .at_base();
    let mut report = AuditReport {
        tokens: 0,
        answers: rows.len(),
        different: 0,
        max_abs_difference: 0.0,
        mean_abs_difference: 0.0,
        kl_k1: 0.0,
        kl_k3: 0.0,
        mean_batch: metrics.step_sequences as f64 / metrics.steps.max(1) as f64,
    };
    for rows in rows.chunks(ROWS) {
        let rows: Vec<&Sample> = rows.iter().collect();
        let recomputed = model.logprobs(&rows).map_err(AuditError::Training)?;
        for (row, recomputed) in rows.iter().zip(&recomputed) {
            for (t, trained) in recomputed.iter().enumerate() {
                if row.policy_weights[t] == 0.0 {
                    continue;
                }
                let sampled = row.behavior_logprobs[t];
                let log_ratio = f64::from(*trained) - f64::from(sampled);
                report.tokens += 1;
                report.different += usize::from(sampled.to_bits() != trained.to_bits());
                report.max_abs_difference = report.max_abs_difference.max(log_ratio.abs());
                report.mean_abs_difference += log_ratio.abs();
                report.kl_k1 -= log_ratio;
                report.kl_k3 += log_ratio.exp_m1() - log_ratio;
            }
        }
    }
    let tokens = report.tokens.max(1) as f64;
    report.mean_abs_difference /= tokens;
    report.kl_k1 /= tokens;
    report.kl_k3 /= tokens;
    Ok(report)
}

fn check(config: &AuditConfig) -> Result<(), AuditError> {
    let refuse = |option, found: String, detail| Err(AuditError::Option { option, found, detail });
    if config.tokens == 0 {
        return refuse("tokens", "0".to_owned(), "at least one is needed");
    }
    if config.sampling.temperature <= 0.0 {
        let found = config.sampling.temperature.to_string();
        return refuse("temperature", found, "training needs a positive one");
    }
    if config.sampling.shifts_logits() {
        let detail = "training does not know of penalties and bias";
        return refuse("sampling", "that shifts logits".to_owned(), detail);
    }
    Ok(())
}

/// Answers as training rows, `tokens` sampled ones in all.
async fn sample(
    generator: &Generator,
    weights: &Weights,
    config: &AuditConfig,
) -> Result<Vec<Sample>, AuditError> {
    let vocabulary = weights.config().vocab_size as u64;
    let room = generator.max_model_len();
    if room < 2 {
        return Err(AuditError::Option {
            option: "max_position_embeddings",
            found: room.to_string(),
            detail: "a prompt and an answer have two tokens at least",
        });
    }
    let seed = Seed::from_u64(config.seed);
    let mut left = config.tokens;
    let mut number = 0_u64;
    let mut next = || {
        if left == 0 {
            return None;
        }
        // Prompts of all lengths, some with beginnings in common; answers of all lengths.
        let draw = |name: &str, bound: usize| {
            (seed.derive("answer", number).derive(name, 0).as_u64() % bound.max(1) as u64) as usize
        };
        let longest = (room - 1).min(LONGEST);
        let len = 1 + draw("prompt", longest.min(room / 2));
        let family = seed.derive("family", number % 5);
        let prompt: Arc<[u32]> =
            (0..len).map(|t| (family.derive("token", t).as_u64() % vocabulary) as u32).collect();
        let max_tokens = (1 + draw("length", longest)).min(room - len).min(left);
        left -= max_tokens;
        let mut request = GenerationRequest::new(prompt, max_tokens, seed.derive("draws", number));
        request.sampling = config.sampling.clone();
        request.report = Report { allowed: true, ..Report::default() };
        // So that there are as many tokens as were asked for.
        request.stop = StopConditions { ignore_end_of_turn: true, ..StopConditions::default() };
        number += 1;
        Some(request)
    };
    let mut rows = Vec::new();
    let mut running = Vec::new();
    loop {
        while running.len() < ANSWERS
            && let Some(request) = next()
        {
            let mut row = Sample::default();
            request.prompt_ids.iter().for_each(|token| row.push_observed(*token, 0.0));
            running.push((generator.generate(request)?, row));
        }
        if running.is_empty() {
            return Ok(rows);
        }
        // The oldest is waited for; the others go on meanwhile.
        let (mut generation, mut row) = running.remove(0);
        while let Some(event) = generation.next().await {
            match event {
                GenerationEvent::Token(token) => {
                    row.push(token.id, 1.0, 0.0, 0.0, token.logprob, token.version, &token.allowed)
                }
                GenerationEvent::Finished(_) => {}
                GenerationEvent::Failed(error) => return Err(error.into()),
            }
        }
        rows.push(row);
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sampled tokens        {} in {} answers", self.tokens, self.answers)?;
        writeln!(f, "mean batch            {:.1}", self.mean_batch)?;
        writeln!(f, "tokens that differ    {}", self.different)?;
        writeln!(f, "largest difference    {:e}", self.max_abs_difference)?;
        writeln!(f, "mean difference       {:e}", self.mean_abs_difference)?;
        writeln!(f, "KL estimate k1        {:e}", self.kl_k1)?;
        write!(f, "KL estimate k3        {:e}", self.kl_k3)
    }
}

#[cfg(test)]
mod tests {
    use spar_policy::draw_rules::open_draw_rule;
    use spar_policy::{HalfParameters, HalfType, ModelConfig, TokenizerConfig, initial_parameters};

    use super::*;

    #[tokio::test]
    async fn nothing_differs_whatever_the_draws() {
        let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
        let tokenizer = Arc::new(Tokenizer::train(games, &TokenizerConfig::default()).unwrap());
        let config = ModelConfig {
            vocab_size: tokenizer.vocab_size(),
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 1,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        };
        let parameters = initial_parameters(&config, Seed::from_u64(1));
        let weights = Arc::new(Weights::new(&config, parameters));
        let halves = HalfParameters::rounded(weights.parameters(), HalfType::Bf16);
        let halves = Arc::new(weights.with_halves(halves));
        for sampling in [
            SamplingOptions::default(),
            SamplingOptions { temperature: 0.7, top_p: 0.8, ..SamplingOptions::default() },
            SamplingOptions { top_k: Some(7), min_p: 0.01, ..SamplingOptions::default() },
        ] {
            let config = AuditConfig { tokens: 500, sampling, seed: 1, threads: 2 };
            for weights in [&weights, &halves] {
                let report = audit(&tokenizer, weights, None, &config).await.unwrap();
                assert_eq!((report.tokens, report.different), (500, 0), "{report}");
                assert_eq!((report.max_abs_difference, report.kl_k3), (0.0, 0.0));
            }
        }
        let sampling = SamplingOptions { temperature: 0.0, ..SamplingOptions::default() };
        let config = AuditConfig { tokens: 5, sampling, seed: 1, threads: 1 };
        assert!(audit(&tokenizer, &weights, None, &config).await.is_err());
    }

    #[tokio::test]
    async fn nothing_differs_whatever_the_draw_rule() {
        let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
        let tokenizer = Arc::new(Tokenizer::train(games, &TokenizerConfig::default()).unwrap());
        let model = |seed: u64, hidden_size| {
            let config = ModelConfig {
                vocab_size: tokenizer.vocab_size(),
                hidden_size,
                intermediate_size: 16,
                num_hidden_layers: 1,
                max_position_embeddings: 64,
                ..ModelConfig::default()
            };
            let mut parameters = initial_parameters(&config, Seed::from_u64(seed));
            parameters.data.iter_mut().for_each(|value| *value *= 3.0);
            Arc::new(Weights::new(&config, parameters))
        };
        let (weights, small) = (model(1, 16), [model(2, 8), model(3, 24)]);
        for written in [
            r#"{ "kind": "contrastive", "beta": 0.7 }"#,
            r#"{ "kind": "value_weighted", "values": ["a", "b"], "candidates": 9 }"#,
            r#"{ "kind": "tuned_difference", "tuned": "a", "untuned": "b" }"#,
            r#"{ "kind": "top_p", "p": 0.8 }"#,
        ] {
            let rule = open_draw_rule(&serde_json::from_str(written).unwrap()).unwrap();
            let models = small[..rule.models().len()].to_vec();
            let rule = Arc::new(LoadedDrawRule::new(rule, models).unwrap());
            let sampling =
                SamplingOptions { temperature: 0.8, min_p: 0.01, ..SamplingOptions::default() };
            let config = AuditConfig { tokens: 300, sampling, seed: 1, threads: 2 };
            let report = audit(&tokenizer, &weights, Some(&rule), &config).await.unwrap();
            assert_eq!((report.tokens, report.different), (300, 0), "{written}: {report}");
            // As if there had been no rule: that is found out.
            let generator = GeneratorConfig::default();
            let (name, version) = ("audit", PolicyVersion(0));
            let generator =
                Generator::with_draw_rule(name, &tokenizer, &weights, version, &rule, generator);
            let rows = sample(&generator.unwrap(), &weights, &config).await.unwrap();
            let plain = DecoderGradient::new(weights.clone(), 0.8).at_base();
            let found = plain.logprobs(&rows.iter().collect::<Vec<_>>()).unwrap();
            let differ = rows.iter().zip(&found).any(|(row, found)| {
                let tokens = (0..row.len()).filter(|t| row.policy_weights[*t] != 0.0);
                tokens.into_iter().any(|t| (row.behavior_logprobs[t] - found[t]).abs() > 1e-3)
            });
            assert_eq!(differ, !written.contains("top_p"), "{written}");
        }
    }

    #[tokio::test]
    async fn short_contexts_are_audited_or_refused() {
        let games = [["You see a door.", "open door"]];
        let tokenizer = Arc::new(Tokenizer::train(games, &TokenizerConfig::default()).unwrap());
        for room in [1, 2, 3] {
            let config = ModelConfig {
                vocab_size: tokenizer.vocab_size(),
                hidden_size: 16,
                intermediate_size: 16,
                num_hidden_layers: 1,
                max_position_embeddings: room,
                ..ModelConfig::default()
            };
            let parameters = initial_parameters(&config, Seed::from_u64(1));
            let weights = Arc::new(Weights::new(&config, parameters));
            let sampling = SamplingOptions::default();
            let config = AuditConfig { tokens: 9, sampling, seed: 1, threads: 1 };
            let report = audit(&tokenizer, &weights, None, &config).await;
            if room == 1 {
                let error = report.unwrap_err().to_string();
                assert!(error.contains("`max_position_embeddings` 1"), "{error}");
            } else {
                assert_eq!(report.unwrap().tokens, 9);
            }
        }
    }
}
