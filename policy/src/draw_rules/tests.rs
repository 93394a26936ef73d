//! What rules make of logits.

use std::sync::Arc;

use super::*;
use crate::{
    CheckpointError, ModelConfig, Tokenizer, TokenizerConfig, Weights, initial_parameters,
};
use spar_core::Seed;

fn rule(written: &str) -> Arc<dyn DrawRule> {
    open_draw_rule(&serde_json::from_str(written).unwrap()).unwrap()
}

fn problems(written: &str) -> Vec<String> {
    serde_json::from_str::<DrawRuleConfig>(written).unwrap().problems()
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

/// Logits with zeros of both signs, equal ones and large ones.
fn logits(seed: f32) -> Vec<f32> {
    let number = |n: usize| ((n as f32 + seed) * 1.7).sin() * 9.0;
    let mut logits: Vec<f32> = (0..40).map(number).collect();
    (logits[3], logits[7], logits[9], logits[10]) = (0.0, -0.0, 60.0, 60.0);
    logits
}

#[test]
fn a_neutral_setting_of_every_rule_changes_no_bit() {
    for row in draw_rule_registry() {
        assert_eq!(row.problems(), [""; 0]);
        let neutral = DrawRuleConfig { kind: row.name.to_owned(), options: (row.neutral)() };
        let rule = open_draw_rule(&neutral).unwrap();
        assert_eq!(rule.name(), row.name);
        let main = logits(0.0);
        let strange = |n: usize| (1..41).map(|at| (at * n) as f32 * -3e30).collect::<Vec<f32>>();
        let others: Vec<Vec<f32>> = (1..=rule.models().len()).map(strange).collect();
        let others: Vec<&[f32]> = others.iter().map(Vec::as_slice).collect();
        let mut stays = vec![true; main.len()];
        rule.leave_out(&main, &others, &mut stays);
        assert!(stays.iter().all(|stays| *stays), "{}", row.name);
        let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let mut combined = main.clone();
        rule.combine(&mut combined, &others);
        assert_eq!(bits(&combined), bits(&main), "{}", row.name);
        rule.backward(&main, &others, &mut combined);
        assert_eq!(bits(&combined), bits(&main), "{}", row.name);
    }
}

#[test]
fn contrastive_decoding_is_as_computed_by_hand() {
    // Probabilities of the expert are 0.5, 0.4, 0.08 and 0.02: a share of 0.1 of the best one leaves the first three.
    let expert = [0.5_f32, 0.4, 0.08, 0.02].map(f32::ln);
    let amateur = [0.6_f32, 0.1, 0.2, 0.1].map(f32::ln);
    let rule = rule(r#"{ "kind": "contrastive", "beta": 0.5, "alpha": 0.1 }"#);
    let mut stays = [true; 4];
    rule.leave_out(&expert, &[&amateur], &mut stays);
    assert_eq!(stays, [true, true, true, false]);
    let mut combined = expert;
    rule.combine(&mut combined, &[&amateur]);
    // 1.5 ln 0.5 - 0.5 ln 0.6, and so on.
    assert_near(&combined, &[-0.784_308, -0.223_144, -2.983_874, -4.716_742]);
    let tempered = self::rule(r#"{ "kind": "contrastive", "amateur_temperature": 0.5 }"#);
    let mut combined = expert;
    tempered.combine(&mut combined, &[&amateur]);
    // 1.5 ln 0.5 - ln 0.6.
    assert_near(&combined[..1], &[-0.528_895]);
}

#[test]
fn values_are_composed_by_their_weights() {
    let written = r#"{ "kind": "value_weighted", "values": ["a", "b"], "weights": [2, -1], "beta": 0.5, "candidates": 2 }"#;
    let rule = rule(written);
    assert_eq!(rule.models().len(), 2);
    let mut logits = [1.0, 3.0, 2.0];
    let mut stays = [true; 3];
    rule.leave_out(&logits, &[], &mut stays);
    assert_eq!(stays, [false, true, true]);
    rule.combine(&mut logits, &[&[4.0, 0.5, -1.0], &[2.0, 2.0, 6.0]]);
    // 1 + 0.5 (2 * 4 - 2), 3 + 0.5 (1 - 2), 2 + 0.5 (-2 - 6).
    assert_near(&logits, &[4.0, 2.5, -2.0]);
}

#[test]
fn the_difference_of_two_small_models_is_added_to_a_large_one() {
    let written = r#"{ "kind": "tuned_difference", "tuned": "a", "untuned": "base", "weight": 2 }"#;
    let rule = rule(written);
    let sources: Vec<ModelSource> = rule.models().into_iter().map(|it| it.source).collect();
    assert_eq!(sources, [ModelSource::Checkpoint("a".to_owned()), ModelSource::Base]);
    let mut logits = [1.0, -1.0];
    rule.combine(&mut logits, &[&[0.5, 3.0], &[1.5, 1.0]]);
    assert_near(&logits, &[-1.0, 3.0]);
}

#[test]
fn cuts_are_those_of_sampling() {
    let logits = [0.5_f32, 0.26, 0.16, 0.08].map(f32::ln);
    let left = |written: &str| {
        let mut stays = [true; 4];
        let rule = rule(written);
        rule.leave_out(&logits, &[], &mut stays);
        (rule.leaves_out(), stays.iter().filter(|stays| **stays).count())
    };
    assert_eq!(left(r#"{ "kind": "top_k", "k": 2 }"#), (true, 2));
    assert_eq!(left(r#"{ "kind": "top_p", "p": 0.7 }"#), (true, 2));
    assert_eq!(left(r#"{ "kind": "min_p", "p": 0.3 }"#), (true, 3));
    assert_eq!(left(r#"{ "kind": "temperature", "temperature": 3.0 }"#), (false, 4));
    let mut halved = [1.0, -3.0];
    rule(r#"{ "kind": "temperature", "temperature": 2.0 }"#).combine(&mut halved, &[]);
    assert_eq!(halved, [0.5, -1.5]);
}

#[test]
fn the_backward_of_every_rule_is_its_jacobian() {
    let written = [
        r#"{ "kind": "plain" }"#,
        r#"{ "kind": "temperature", "temperature": 0.4 }"#,
        r#"{ "kind": "top_k", "k": 3 }"#,
        r#"{ "kind": "top_p", "p": 0.5 }"#,
        r#"{ "kind": "min_p", "p": 0.5 }"#,
        r#"{ "kind": "contrastive", "beta": 1.5 }"#,
        r#"{ "kind": "value_weighted", "values": ["a"], "beta": 3 }"#,
        r#"{ "kind": "tuned_difference", "tuned": "a", "untuned": "b", "weight": -2 }"#,
    ];
    let tried: Vec<Arc<dyn DrawRule>> = written.into_iter().map(rule).collect();
    for row in draw_rule_registry() {
        let rule = tried.iter().find(|rule| rule.name() == row.name).expect("it is tried");
        let others: Vec<Vec<f32>> =
            (0..rule.models().len()).map(|n| logits(n as f32)[..6].to_vec()).collect();
        let others: Vec<&[f32]> = others.iter().map(Vec::as_slice).collect();
        let main = [0.3, -1.0, 2.0, 0.1, 4.0, -2.0];
        let slopes = [1.0, -0.5, 0.25, 2.0, -1.0, 0.75];
        let loss = |main: &[f32]| -> f64 {
            let mut combined = main.to_vec();
            rule.combine(&mut combined, &others);
            combined.iter().zip(&slopes).map(|(z, slope)| f64::from(z * slope)).sum()
        };
        let mut gradient = slopes;
        rule.backward(&main, &others, &mut gradient);
        for (place, found) in gradient.iter().enumerate() {
            let moved = |by: f32| {
                let mut main = main;
                main[place] += by;
                loss(&main)
            };
            let expected = (moved(0.125) - moved(-0.125)) / 0.25;
            assert!(
                (f64::from(*found) - expected).abs() < 1e-4,
                "{}: {found} {expected}",
                row.name
            );
        }
    }
}

#[test]
fn what_is_wrong_is_told_at_once() {
    assert!(problems(r#"{ "kind": "contrast" }"#)[0].contains("known are `contrastive`"));
    let told = problems(r#"{ "kind": "contrastive", "beta": -1, "alpha": 2, "amateur": "" }"#);
    assert_eq!(told.len(), 3, "{told:?}");
    let told = problems(r#"{ "kind": "tuned_difference" }"#);
    assert!(told.len() == 2 && told[0].contains("`tuned` has to name a checkpoint"), "{told:?}");
    assert!(problems(r#"{ "kind": "value_weighted" }"#)[0].contains("at least one checkpoint"));
    let told = problems(r#"{ "kind": "value_weighted", "values": ["a"], "weights": [1, 2] }"#);
    assert!(told[0].contains("weights has 2 numbers, must be 1"), "{told:?}");
    assert!(problems(r#"{ "kind": "plain", "beta": 1 }"#)[0].contains("no option `beta`"));
    assert_eq!(problems("{}"), [""; 0]);
}

fn model(text: &str, vocabulary: Option<usize>) -> (Weights, Tokenizer) {
    let games = [[text, "open door"], [text, "open box"]];
    let tokenizer = Tokenizer::train(games, &TokenizerConfig::default()).unwrap();
    let config = ModelConfig {
        vocab_size: vocabulary.unwrap_or(tokenizer.vocab_size()),
        hidden_size: 8,
        intermediate_size: 8,
        num_hidden_layers: 1,
        num_attention_heads: 1,
        num_key_value_heads: 1,
        head_dim: 8,
        ..ModelConfig::default()
    };
    (Weights::new(&config, initial_parameters(&config, Seed::from_u64(1))), tokenizer)
}

#[test]
fn models_of_other_vocabularies_are_refused() {
    let (weights, tokenizer) = model("You see a door.", None);
    let vocabulary = weights.config().vocab_size;
    let load = |written: &str, other: fn() -> Result<(Weights, Tokenizer), CheckpointError>| {
        let config: DrawRuleConfig = serde_json::from_str(written).unwrap();
        LoadedDrawRule::load(&config, &tokenizer, vocabulary, None, |_| other())
    };
    let told = |written, other| load(written, other).unwrap_err().to_string();
    let same = || Ok(model("You see a door.", None));
    let amateur = r#"{ "kind": "contrastive", "amateur": "small" }"#;
    let rule = load(amateur, same).unwrap().expect("it is not plain");
    assert_eq!((rule.rule().name(), rule.models().len()), ("contrastive", 1));
    let larger = told(amateur, || Ok(model("You see a door.", Some(2000))));
    assert!(
        larger.contains("`amateur`, `small`, does not share the policy's vocabulary"),
        "{larger}"
    );
    assert!(larger.contains("it has 2000 tokens"), "{larger}");
    let words = told(amateur, || Ok(model("You spy a gate.", None)));
    assert!(words.contains("token ") || words.contains("tokens"), "{words}");
    let base = told(r#"{ "kind": "contrastive" }"#, same);
    assert!(base.contains("`amateur` is `base`") && base.contains("name a checkpoint"), "{base}");
    assert!(load(r#"{ "kind": "plain" }"#, same).unwrap().is_none());
    let missing = told(amateur, || Err(CheckpointError::NoWeights { folder: "x".into() }));
    assert!(missing.contains("load `amateur` from `small`"), "{missing}");
}
