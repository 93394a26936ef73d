//! Draw rules whose models read what the main model reads.

use super::*;
use crate::decoder::TokenTree;
use crate::draw_rules::{DrawRuleConfig, LoadedDrawRule, draw_rule_registry, open_draw_rule};

/// The rule with other weights for every model that it asks.
fn loaded(tokenizer: &Tokenizer, config: &DrawRuleConfig) -> Arc<LoadedDrawRule> {
    let rule = open_draw_rule(config).unwrap();
    let models = (0..rule.models().len() as u64).map(|n| weights(tokenizer, 100 + n)).collect();
    Arc::new(LoadedDrawRule::new(rule, models).unwrap())
}

fn config(written: &str) -> DrawRuleConfig {
    serde_json::from_str(written).unwrap()
}

/// Rules that change what is drawn.
fn rules() -> Vec<DrawRuleConfig> {
    [
        r#"{ "kind": "temperature", "temperature": 0.6 }"#,
        r#"{ "kind": "top_k", "k": 6 }"#,
        r#"{ "kind": "top_p", "p": 0.7 }"#,
        r#"{ "kind": "min_p", "p": 0.05 }"#,
        r#"{ "kind": "contrastive", "beta": 0.5, "alpha": 0.1, "amateur_temperature": 0.8 }"#,
        r#"{ "kind": "value_weighted", "values": ["a", "b"], "weights": [0.5, -1], "beta": 0.7 }"#,
        r#"{ "kind": "value_weighted", "values": ["a"], "candidates": 4 }"#,
        r#"{ "kind": "tuned_difference", "tuned": "a", "untuned": "b", "weight": 0.9 }"#,
    ]
    .map(config)
    .to_vec()
}

fn ruled(
    tokenizer: &Arc<Tokenizer>,
    weights: &Arc<Weights>,
    rule: &Arc<LoadedDrawRule>,
    config: EngineConfig,
    limit: usize,
) -> Engine {
    let memory = Arc::new(KvMemory::new(limit, limit / 2, 1, 1 + rule.models().len()));
    let (counters, version) = (Arc::new(Counters::new(1)), PolicyVersion(0));
    let (name, weights) = ("test".into(), weights.clone());
    let mut engine =
        Engine::new(name, 0, tokenizer.clone(), weights, version, config, memory, counters);
    engine.draw_by(rule.clone());
    engine
}

fn alone_by(
    tokenizer: &Arc<Tokenizer>,
    weights: &Arc<Weights>,
    rule: &Arc<LoadedDrawRule>,
    request: &GenerationRequest,
) -> (Vec<GeneratedToken>, Option<FinishReason>, String) {
    let mut engine = ruled(tokenizer, weights, rule, WIDE, usize::MAX);
    let mut receiver = submit(&mut engine, request);
    finish(&mut engine);
    collect(&mut receiver)
}

#[test]
fn a_neutral_setting_of_every_rule_draws_as_the_model_alone_does_to_the_bit() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 1);
    for row in draw_rule_registry() {
        let config = DrawRuleConfig { kind: row.name.to_owned(), options: (row.neutral)() };
        let rule = loaded(&tokenizer, &config);
        assert!(!rule.rule().leaves_out(), "{}", row.name);
        for number in 0..36 {
            let request = request(&tokenizer, number);
            assert_eq!(
                alone_by(&tokenizer, &weights, &rule, &request),
                alone(&tokenizer, &weights, &request),
                "{}, request {number}",
                row.name
            );
        }
    }
}

#[test]
fn what_was_drawn_by_a_rule_is_what_training_recomputes_to_the_bit() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 2);
    for config in rules() {
        let rule = loaded(&tokenizer, &config);
        let mut differ = 0;
        for number in 0..30 {
            let request = request(&tokenizer, number);
            let (tokens, ..) = alone_by(&tokenizer, &weights, &rule, &request);
            differ += usize::from(tokens != alone(&tokenizer, &weights, &request).0);
            if request.sampling.shifts_logits() {
                continue;
            }
            let drawn = tokens.iter().map(|token| token.id);
            let ids: Vec<u32> = request.prompt_ids.iter().copied().chain(drawn).collect();
            let tree = TokenTree::new(&[&ids]);
            let hidden = tree.try_read(&weights, None).unwrap();
            let beside = rule.read(&tree).unwrap();
            let first = request.prompt_ids.len() - 1;
            let draw = |(t, token): (usize, &'_ GeneratedToken)| (first + t, token.id);
            let places: Vec<(usize, u32)> = tokens.iter().enumerate().map(draw).collect();
            let draws: Vec<Draw<'_>> = places
                .iter()
                .zip(&tokens)
                .map(|((row, token), it)| Draw { row: *row, token: *token, allowed: &it.allowed })
                .collect();
            let temperature = match request.sampling.temperature {
                0.0 => 1.0,
                temperature => temperature,
            };
            let judged = rule.judge(&weights, &hidden, &beside, &draws, temperature).unwrap();
            for (token, judged) in tokens.iter().zip(judged) {
                let (told, found) = (token.logprob.to_bits(), judged.logprob.to_bits());
                assert_eq!(told, found, "{config:?}, request {number}: {token:?} {judged:?}");
                let entropy = token.entropy.unwrap_or_default();
                assert!((entropy - judged.entropy).abs() < 1e-5, "{token:?} {judged:?}");
            }
        }
        assert!(differ > 5, "{config:?} changes {differ} answers");
    }
}

#[test]
fn every_rule_is_tried_with_options_that_change_something() {
    let rules = rules();
    let tried = |name: &str| name == "plain" || rules.iter().any(|rule| rule.kind == name);
    for row in draw_rule_registry() {
        assert!(tried(row.name), "{}", row.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn an_answer_depends_on_its_request_and_the_rule_alone(
        numbers in prop::collection::vec(0_u64..1000, 1..10),
        which in 0_usize..8,
        prefill_tokens in 1_usize..40,
        max_active in 1_usize..6,
        limit in 200_usize..500,
        steps_between in prop::collection::vec(0_usize..4, 10),
    ) {
        let tokenizer = tokenizer();
        let weights = weights(&tokenizer, 1);
        let rule = loaded(&tokenizer, &rules()[which]);
        let config = EngineConfig { prefill_tokens, max_active };
        let mut engine = ruled(&tokenizer, &weights, &rule, config, limit);
        let mut receivers = Vec::new();
        for (place, number) in numbers.iter().enumerate() {
            let request = request(&tokenizer, *number);
            receivers.push(submit(&mut engine, &request));
            for _ in 0..steps_between[place] {
                engine.step();
                for sequence in &engine.active {
                    for other in &sequence.others {
                        prop_assert_eq!(other.tokens(), sequence.cache.tokens());
                    }
                }
            }
        }
        let mut steps = 0;
        while engine.is_busy() {
            engine.step();
            steps += 1;
            prop_assert!(steps < 5000);
            prop_assert!(engine.memory.used() + engine.memory.kept() <= limit);
        }
        for (number, receiver) in numbers.iter().zip(&mut receivers) {
            let expected = alone_by(&tokenizer, &weights, &rule, &request(&tokenizer, *number));
            prop_assert_eq!(collect(receiver), expected);
        }
    }
}

#[test]
fn a_conversation_goes_on_from_what_all_models_remember_and_new_weights_count() {
    let tokenizer = tokenizer();
    let (first, second) = (weights(&tokenizer, 1), weights(&tokenizer, 2));
    let rule = loaded(&tokenizer, &config(r#"{ "kind": "contrastive" }"#));
    let mut engine = ruled(&tokenizer, &first, &rule, WIDE, usize::MAX);
    let ask = |engine: &mut Engine, request: &GenerationRequest, weights: &Arc<Weights>| {
        let (events, mut receiver) = unbounded_channel();
        engine.counters.submit(0);
        engine.add(request.clone(), Some(7), Reply::Events(events));
        finish(engine);
        let (mut tokens, reason, text) = collect(&mut receiver);
        tokens.iter_mut().for_each(|token| token.version = PolicyVersion(0));
        let (drawn, cached) =
            ((tokens.clone(), reason, text), engine.counters.read().cached_tokens);
        assert_eq!(drawn, alone_by(&tokenizer, weights, &rule, request));
        (tokens, cached)
    };
    let mut wanted = request(&tokenizer, 5);
    let (tokens, before) = ask(&mut engine, &wanted, &first);
    let drawn: Vec<u32> = tokens.iter().map(|token| token.id).collect();
    wanted.prompt_ids = [&wanted.prompt_ids[..], &drawn, &drawn].concat().into();
    let (_, after) = ask(&mut engine, &wanted, &first);
    assert!(after > before, "{after} tokens were remembered, {before} before");
    engine.publish(second.clone(), PolicyVersion(1), 1);
    ask(&mut engine, &wanted, &second);
}
