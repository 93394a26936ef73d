//! The stages of sampling against Hugging Face's logits processors.
//!
//! The numbers come from `scripts/make_sampling_fixture.py`.

use serde::Deserialize;
use spar_policy::head::log_softmax;
use spar_policy::sampling::{BadWords, Before, SamplingOptions, TokenCounts, process};

#[derive(Deserialize)]
struct Case {
    options: Options,
    prompt: Vec<u32>,
    answer: Vec<u32>,
    logits: Vec<f32>,
    logprobs: Vec<Option<f32>>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, default)]
struct Options {
    temperature: f32,
    top_k: Option<usize>,
    top_p: f32,
    min_p: f32,
    repetition_penalty: f32,
    logit_bias: std::collections::BTreeMap<u32, f32>,
    bad_words: Vec<Vec<u32>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            logit_bias: Default::default(),
            bad_words: Vec::new(),
        }
    }
}

#[test]
fn every_stage_does_what_transformers_does() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../fixtures/sampling.json")).unwrap();
    assert!(cases.len() >= 24);
    for Case { options, prompt, answer, logits, logprobs } in cases {
        let told = format!("{options:?}");
        let options = SamplingOptions {
            temperature: options.temperature,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            repetition_penalty: options.repetition_penalty,
            logit_bias: options.logit_bias.into_iter().collect(),
            bad_words: BadWords::new(options.bad_words),
            ..SamplingOptions::default()
        };
        options.validate(logits.len()).unwrap();
        let mut counts = TokenCounts::new(&prompt);
        answer.iter().for_each(|token| counts.push(*token));
        let before = Before { prompt: &prompt, answer: &answer, counts: Some(&counts) };
        let (mut ids, mut logits) = (Vec::new(), logits);
        process(&options, &before, &[], &mut ids, &mut logits);
        log_softmax(&mut logits, options.temperature);
        let mut found = vec![None; logprobs.len()];
        for (place, logit) in logits.into_iter().enumerate() {
            found[ids.get(place).map_or(place, |id| *id as usize)] = Some(logit);
        }
        for (token, (found, wanted)) in found.iter().zip(&logprobs).enumerate() {
            assert_eq!(found.is_some(), wanted.is_some(), "token {token} of {told}");
            let difference = found.unwrap_or(0.0) - wanted.unwrap_or(0.0);
            assert!(difference.abs() < 1e-5, "token {token} of {told}: {difference}");
        }
    }
}
