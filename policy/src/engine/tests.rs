//! What an answer must not depend on.

mod adapters;
mod draw_rules;

use crate::decoder::forward;
use std::sync::Arc;

use proptest::prelude::*;
use spar_core::{GrammarSource, SampledTokens, Seed};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::generation::{GenerationEvent, Report, StopConditions};
use crate::head::{Draw, log_probabilities};
use crate::sampling::{BadWords, SamplingOptions};
use crate::{GrammarCompiler, ModelConfig, TokenizerConfig, initial_parameters};

fn tokenizer() -> Arc<Tokenizer> {
    let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
    Arc::new(Tokenizer::train(games, &TokenizerConfig::default()).unwrap())
}

fn weights(tokenizer: &Tokenizer, seed: u64) -> Arc<Weights> {
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
    let mut parameters = initial_parameters(&config, Seed::from_u64(seed));
    // Larger than usual, so that some tokens are more probable than others.
    parameters.data.iter_mut().for_each(|value| *value *= 3.0);
    Arc::new(Weights::new(&config, parameters))
}

fn engine(
    tokenizer: &Arc<Tokenizer>,
    weights: &Arc<Weights>,
    config: EngineConfig,
    limit: usize,
) -> Engine {
    Engine::new(
        "test".into(),
        0,
        tokenizer.clone(),
        weights.clone(),
        PolicyVersion(0),
        config,
        Arc::new(KvMemory::new(limit, limit / 2, 1, 1)),
        Arc::new(Counters::new(1)),
    )
}

const WIDE: EngineConfig = EngineConfig { prefill_tokens: usize::MAX, max_active: usize::MAX };

fn submit(engine: &mut Engine, request: &GenerationRequest) -> UnboundedReceiver<GenerationEvent> {
    let vocabulary = engine.weights.config().vocab_size;
    request.validate(vocabulary, engine.weights.config().max_position_embeddings).unwrap();
    let (events, receiver) = unbounded_channel();
    engine.counters.submit(0);
    engine.add(request.clone(), None, Reply::Events(events));
    receiver
}

/// Steps until nothing is left to do, and fails where that does not come.
fn finish(engine: &mut Engine) {
    let mut steps = 0;
    while engine.is_busy() {
        engine.step();
        steps += 1;
        assert!(steps < 20_000, "the engine does not come to an end");
    }
}

/// What came of a request: tokens, why it ended, and its text.
fn collect(
    receiver: &mut UnboundedReceiver<GenerationEvent>,
) -> (Vec<GeneratedToken>, Option<FinishReason>, String) {
    let (mut tokens, mut reason, mut text) = (Vec::new(), None, String::new());
    while let Ok(event) = receiver.try_recv() {
        assert!(reason.is_none(), "an event behind the end");
        match event {
            GenerationEvent::Token(token) => {
                text += &token.text;
                tokens.push(token);
            }
            GenerationEvent::Finished(finished) => {
                text += &finished.text;
                reason = Some(finished.reason);
            }
            GenerationEvent::Failed(error) => panic!("{error}"),
        }
    }
    (tokens, reason, text)
}

fn alone(
    tokenizer: &Arc<Tokenizer>,
    weights: &Arc<Weights>,
    request: &GenerationRequest,
) -> (Vec<GeneratedToken>, Option<FinishReason>, String) {
    let mut engine = engine(tokenizer, weights, WIDE, usize::MAX);
    let mut receiver = submit(&mut engine, request);
    finish(&mut engine);
    collect(&mut receiver)
}

#[test]
fn a_partial_answer_goes_on_as_the_whole_did() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 2);
    let choices: Vec<Arc<str>> = vec!["open box".into(), "open door".into(), "wait".into()];
    for number in 0..40 {
        let mut request = request(&tokenizer, number);
        request.sampling.temperature = 0.0;
        (request.sampling.top_k, request.sampling.top_p, request.sampling.min_p) = (None, 1.0, 0.0);
        if number % 3 == 0 {
            request.max_tokens = 40;
            request.constraint = Some(Constraint::Choices(choices.clone().into()));
        }
        let (whole, reason, _) = alone(&tokenizer, &weights, &request);
        for cut in 1..whole.len() {
            let begun = &whole[..cut];
            request.partial = SampledTokens {
                ids: begun.iter().map(|token| token.id).collect(),
                logprobs: begun.iter().map(|token| token.logprob).collect(),
                versions: begun.iter().map(|token| token.version).collect(),
                ..SampledTokens::default()
            };
            let (told, found, _) = alone(&tokenizer, &weights, &request);
            assert_eq!(
                (&told[cut..], &found),
                (&whole[cut..], &reason),
                "request {number}, cut {cut}"
            );
            let begun = |tokens: &[GeneratedToken]| -> Vec<(u32, String)> {
                tokens[..cut].iter().map(|token| (token.id, token.text.clone())).collect()
            };
            assert_eq!(begun(&told), begun(&whole));
        }
        request.partial = SampledTokens::default();
    }
}

#[test]
fn a_partial_answer_that_is_not_allowed_is_refused() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 2);
    let mut request = request(&tokenizer, 0);
    request.max_tokens = 9;
    request.constraint = Some(Constraint::Choices([Arc::from("wait")].into()));
    let ids = tokenizer.encode("open");
    let count = ids.len();
    request.partial = SampledTokens {
        ids,
        logprobs: vec![0.0; count],
        versions: vec![PolicyVersion(0); count],
        ..SampledTokens::default()
    };
    let mut engine = engine(&tokenizer, &weights, WIDE, usize::MAX);
    let mut events = submit(&mut engine, &request);
    finish(&mut engine);
    let Ok(GenerationEvent::Failed(error)) = events.try_recv() else { panic!("it was answered") };
    assert!(matches!(error, GenerateError::PartialNotAllowed { place: 0, .. }), "{error}");
    request.partial.versions.clear();
    assert!(request.validate(1 << 20, 1 << 20).is_err(), "lists of unequal lengths");
}

/// A request of many kinds, by number.
fn request(tokenizer: &Tokenizer, number: u64) -> GenerationRequest {
    let starts = ["You see a door.", "You see a box. You see a door.", "open", "You see"];
    let mut prompt = tokenizer.encode(starts[number as usize % 4]);
    prompt.extend((0..number % 7).map(|i| (i * 31 + number) as u32 % 256));
    if number.is_multiple_of(5) {
        prompt = prompt.repeat(4);
    }
    let max_tokens = 1 + number as usize % 17;
    let mut request = GenerationRequest::new(prompt.into(), max_tokens, Seed::from_u64(number));
    let options = &mut request.sampling;
    match number % 6 {
        0 => options.temperature = 0.0,
        1 => (options.top_k, options.temperature) = (Some(5), 0.7),
        2 => (options.top_p, options.min_p) = (0.9, 0.01),
        3 => {
            (options.repetition_penalty, options.presence_penalty) = (1.3, 0.5);
            options.logit_bias = [(65, 3.0), (66, -3.0)].into();
        }
        4 => {
            options.min_tokens = max_tokens.min(3);
            options.bad_words = BadWords::new(vec![vec![65], vec![66, 67]]);
        }
        _ => {}
    }
    if number.is_multiple_of(3) {
        request.stop.strings = [Arc::from("e"), Arc::from("oo")].into();
    }
    if number % 4 == 1 {
        let choices: Vec<Arc<str>> = vec!["open box".into(), "open door".into(), "wait".into()];
        request.constraint = Some(Constraint::Choices(choices.into()));
    }
    let top_of = if number.is_multiple_of(2) { Distribution::Raw } else { Distribution::Sampled };
    let top = number as usize % 3;
    request.report =
        Report { raw: number.is_multiple_of(2), entropy: true, top, top_of, allowed: true };
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_answer_depends_on_its_request_alone(
        numbers in prop::collection::vec(0_u64..1000, 1..14),
        prefill_tokens in 1_usize..40,
        max_active in 1_usize..6,
        limit in 200_usize..500,
        steps_between in prop::collection::vec(0_usize..4, 14),
        cancelled in prop::collection::vec(any::<bool>(), 14),
    ) {
        let tokenizer = tokenizer();
        let weights = weights(&tokenizer, 1);
        let config = EngineConfig { prefill_tokens, max_active };
        let mut engine = engine(&tokenizer, &weights, config, limit);
        let mut receivers = Vec::new();
        for (place, number) in numbers.iter().enumerate() {
            let receiver = submit(&mut engine, &request(&tokenizer, *number));
            receivers.push((*number, Some(receiver)));
            for _ in 0..steps_between[place] {
                engine.step();
                prop_assert!(engine.memory.used() + engine.memory.kept() <= limit);
            }
            // Somebody hangs up.
            if cancelled[place] && cancelled[(place + 1) % 14] {
                receivers[place / 2].1 = None;
            }
        }
        let mut steps = 0;
        while engine.is_busy() {
            engine.step();
            steps += 1;
            prop_assert!(steps < 5000);
            prop_assert!(engine.memory.used() + engine.memory.kept() <= limit);
        }
        for (number, receiver) in &mut receivers {
            let Some(receiver) = receiver else { continue };
            prop_assert_eq!(
                collect(receiver),
                alone(&tokenizer, &weights, &request(&tokenizer, *number))
            );
        }
        let metrics = engine.counters.read();
        prop_assert_eq!((metrics.waiting, metrics.running), (0, 0));
        prop_assert_eq!(
            metrics.finished_stop + metrics.finished_length + metrics.cancelled,
            numbers.len() as u64
        );
        prop_assert_eq!(engine.memory.used(), 0);
    }
}

#[test]
fn what_was_sampled_is_what_training_recomputes() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 2);
    for number in 0..60 {
        let request = request(&tokenizer, number);
        if request.sampling.shifts_logits() {
            continue;
        }
        let (tokens, ..) = alone(&tokenizer, &weights, &request);
        let ids: Vec<u32> =
            request.prompt_ids.iter().copied().chain(tokens.iter().map(|token| token.id)).collect();
        let mut cache = SequenceCache::new(&weights);
        let states = forward(&weights, &mut [Segment::new(&mut cache, &ids)], None);
        let first = request.prompt_ids.len() - 1;
        let draws: Vec<Draw<'_>> = tokens
            .iter()
            .enumerate()
            .map(|(t, token)| Draw { row: first + t, token: token.id, allowed: &token.allowed })
            .collect();
        let temperature = match request.sampling.temperature {
            0.0 => 1.0,
            temperature => temperature,
        };
        let recomputed = log_probabilities(&weights, &states, &draws, temperature);
        let sampled: Vec<f32> = tokens.iter().map(|token| token.logprob).collect();
        assert_eq!(sampled, recomputed, "request {number}");
        let raw: Vec<Draw<'_>> = draws.iter().map(|draw| Draw { allowed: &[], ..*draw }).collect();
        let raw = log_probabilities(&weights, &states, &raw, 1.0);
        for (token, raw) in tokens.iter().zip(raw).filter(|(token, _)| !token.is_forced) {
            assert_eq!(token.raw_logprob, request.report.raw.then_some(raw));
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_devices_answer_as_the_cpu_does() {
    let tokenizer = tokenizer();
    let here = weights(&tokenizer, 2);
    let device = crate::cuda::Device::emulated();
    let there = Arc::new(here.on_device(&device, crate::cuda::Number::F32).unwrap());
    let numbers: Vec<u64> = (0..30).chain([65]).collect();
    let mut engine = engine(&tokenizer, &there, EngineConfig { prefill_tokens: 9, ..WIDE }, 4000);
    // The device draws where the best tokens are not asked for.
    let with = |number: u64| {
        let mut request = request(&tokenizer, number);
        request.report.top *= usize::from(number % 6 != 5);
        request
    };
    let requests: Vec<_> = numbers.iter().map(|number| with(*number)).collect();
    let mut receivers: Vec<_> = requests.iter().map(|r| submit(&mut engine, r)).collect();
    finish(&mut engine);
    let (mut same, mut drawn) = (0, 0);
    for ((number, request), receiver) in numbers.iter().zip(&requests).zip(&mut receivers) {
        let found = collect(receiver);
        if number % 5 == 0 {
            assert_eq!(found, alone(&tokenizer, &there, request), "request {number}");
        }
        let expected = alone(&tokenizer, &here, request);
        same += usize::from((&found.1, &found.2) == (&expected.1, &expected.2));
        for (found, expected) in found.0.iter().zip(&expected.0) {
            // By rounding, a draw may fall on the other side of a border; then answers part.
            if found.id != expected.id {
                break;
            }
            drawn += 1;
            let close = |a: f32, b: f32| (a - b).abs() < 1e-4 * b.abs().max(1.0);
            assert!(close(found.logprob, expected.logprob), "{found:?} for {expected:?}");
            assert_eq!(found.raw_logprob.is_some(), expected.raw_logprob.is_some());
            let pairs =
                [(found.raw_logprob, expected.raw_logprob), (found.entropy, expected.entropy)];
            for (found, expected) in pairs {
                assert!(close(found.unwrap_or(0.0), expected.unwrap_or(0.0)));
            }
            assert_eq!(found.allowed, expected.allowed);
            assert_eq!(found.is_forced, expected.is_forced);
        }
    }
    assert!(
        same + 1 >= numbers.len() && drawn > 100,
        "{same} answers are the same, {drawn} tokens"
    );
}

#[test]
fn tokens_tell_the_weights_that_drew_them() {
    let tokenizer = tokenizer();
    let (old, new) = (weights(&tokenizer, 1), weights(&tokenizer, 9));
    let mut engine = engine(&tokenizer, &old, WIDE, usize::MAX);
    let request = GenerationRequest {
        stop: StopConditions { ignore_end_of_turn: true, ..StopConditions::default() },
        ..GenerationRequest::new(tokenizer.encode("You see").into(), 12, Seed::from_u64(3))
    };
    let mut receiver = submit(&mut engine, &request);
    (0..5).for_each(|_| engine.step());
    engine.publish(new.clone(), PolicyVersion(1), 1);
    finish(&mut engine);
    let (tokens, reason, _) = collect(&mut receiver);
    assert_eq!(reason, Some(FinishReason::Length));
    let versions: Vec<u32> = tokens.iter().map(|token| token.version.0).collect();
    assert_eq!(versions, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
    // The later ones are drawn as the new weights would behind the earlier ones.
    let ids: Vec<u32> =
        request.prompt_ids.iter().copied().chain(tokens.iter().map(|token| token.id)).collect();
    for (weights, range) in [(&old, 0..5), (&new, 5..12)] {
        let mut cache = SequenceCache::new(weights);
        let states = forward(weights, &mut [Segment::new(&mut cache, &ids)], None);
        for t in range {
            let row = request.prompt_ids.len() - 1 + t;
            let draw = Draw { row, token: tokens[t].id, allowed: &[] };
            assert_eq!(log_probabilities(weights, &states, &[draw], 1.0), [tokens[t].logprob]);
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_updates_that_overlap_answers_leave_their_versions_right() {
    let tokenizer = tokenizer();
    let [old, new] = [1, 9].map(|seed| weights(&tokenizer, seed));
    let device = crate::cuda::Device::emulated();
    let there = old.on_device(&device, crate::cuda::Number::F32).unwrap();
    let learner = crate::cuda::DeviceLearner::new(&there, old.parameters()).unwrap();
    let mut engine = engine(&tokenizer, &learner.weights(), WIDE, usize::MAX);
    let request = GenerationRequest {
        stop: StopConditions { ignore_end_of_turn: true, ..StopConditions::default() },
        ..GenerationRequest::new(tokenizer.encode("You see").into(), 9, Seed::from_u64(3))
    };
    let mut receiver = submit(&mut engine, &request);
    (0..3).for_each(|_| engine.step());
    // Other weights are learned while the answer comes about, which goes on with those it began with.
    let zeros = vec![0.0; old.parameters().data.len()];
    learner.load(&new.parameters().data, [&zeros, &zeros]).unwrap();
    (0..3).for_each(|_| engine.step());
    engine.publish(learner.weights(), PolicyVersion(1), 1);
    finish(&mut engine);
    let (tokens, ..) = collect(&mut receiver);
    let versions: Vec<u32> = tokens.iter().map(|token| token.version.0).collect();
    assert_eq!(versions, [0, 0, 0, 0, 0, 0, 1, 1, 1]);
    let ids: Vec<u32> =
        request.prompt_ids.iter().copied().chain(tokens.iter().map(|token| token.id)).collect();
    for (t, token) in tokens.iter().enumerate() {
        let weights = [&old, &new][token.version.0 as usize];
        let mut cache = SequenceCache::new(weights);
        let states = forward(weights, &mut [Segment::new(&mut cache, &ids)], None);
        let draw = Draw { row: request.prompt_ids.len() - 1 + t, token: token.id, allowed: &[] };
        let [expected] = log_probabilities(weights, &states, &[draw], 1.0)[..] else { panic!() };
        assert!((token.logprob - expected).abs() < 1e-4, "{token:?} for {expected}");
    }
}

#[test]
fn thousands_of_prompts_that_share_some_of_their_beginning_are_told_apart_at_once() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 1);
    let config = EngineConfig { prefill_tokens: 1, max_active: usize::MAX };
    let mut engine = engine(&tokenizer, &weights, config, usize::MAX);
    // Each shares 480 tokens with each, less than it is worth to wait for.
    let receivers: Vec<_> = (0..5000_u32)
        .map(|number| {
            let mut prompt = vec![65; 1000];
            prompt[480..483].copy_from_slice(&[number % 64, number / 64 % 64, number / 4096]);
            let request = GenerationRequest::new(prompt.into(), 1, Seed::from_u64(1));
            submit(&mut engine, &request)
        })
        .collect();
    engine.admit();
    let started = std::time::Instant::now();
    engine.find_readers();
    // Each with each would be six billion comparisons.
    assert!(started.elapsed().as_secs_f64() < 2.0, "{:?}", started.elapsed());
    assert!(engine.active.iter().all(|sequence| sequence.opening == Opening::Reads));
    let started = std::time::Instant::now();
    (0..100).for_each(|_| engine.find_readers());
    assert!(started.elapsed().as_secs_f64() < 1.0, "{:?}", started.elapsed());
    drop(receivers);
    engine.step();
    assert!(!engine.is_busy() && !engine.models[0].readers.has(1));
}

#[test]
fn a_prompt_that_many_share_is_read_once() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 1);
    let mut engine = engine(&tokenizer, &weights, WIDE, usize::MAX);
    let prompt: Arc<[u32]> = tokenizer.encode(&"You see a door. ".repeat(12)).into();
    let mut receivers: Vec<_> = (0..8)
        .map(|seed| {
            let request = GenerationRequest::new(prompt.clone(), 1, Seed::from_u64(seed));
            submit(&mut engine, &request)
        })
        .collect();
    finish(&mut engine);
    receivers.iter_mut().for_each(|receiver| assert!(collect(receiver).1.is_some()));
    let metrics = engine.counters.read();
    // The others read its last token alone.
    assert_eq!(metrics.step_tokens, prompt.len() as u64 + 7);
    assert_eq!(metrics.cached_tokens, 7 * (prompt.len() as u64 - 1));
}

#[test]
fn a_long_prompt_does_not_hold_up_those_who_draw() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 1);
    let config = EngineConfig { prefill_tokens: 10, max_active: 8 };
    let mut engine = engine(&tokenizer, &weights, config, usize::MAX);
    let unending = StopConditions { ignore_end_of_turn: true, ..StopConditions::default() };
    let mut short = GenerationRequest::new([65].into(), 30, Seed::from_u64(1));
    short.stop = unending.clone();
    let mut first = submit(&mut engine, &short);
    engine.step();
    let long = GenerationRequest::new(vec![66; 100].into(), 1, Seed::from_u64(2));
    let mut second = submit(&mut engine, &long);
    for step in 0..10 {
        assert!(collect(&mut second).0.is_empty(), "step {step}");
        assert_eq!(collect(&mut first).0.len(), 1, "step {step}");
        engine.step();
    }
    assert_eq!(collect(&mut second).0.len(), 1);
}

#[test]
fn an_answer_that_nobody_wants_frees_its_memory_at_the_next_step() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 1);
    let mut engine = engine(&tokenizer, &weights, WIDE, 4096);
    let mut request = GenerationRequest::new(vec![65; 50].into(), 200, Seed::from_u64(1));
    request.stop.ignore_end_of_turn = true;
    let receiver = submit(&mut engine, &request);
    engine.step();
    assert!(engine.memory.used() >= 50);
    drop(receiver);
    engine.step();
    assert!(!engine.is_busy());
    assert_eq!(engine.memory.used(), 0);
    assert_eq!(engine.counters.read().cancelled, 1);
}

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "name": { "enum": ["box", "door"] },
        "count": { "type": "integer", "minimum": 0, "maximum": 99 },
        "tags": { "type": "array", "items": { "type": "string", "maxLength": 4 }, "maxItems": 2 }
    },
    "required": ["name", "count"],
    "additionalProperties": false
}"#;

fn is_valid(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else { return false };
    let Some(object) = value.as_object() else { return false };
    let tag = |tag: &serde_json::Value| tag.as_str().is_some_and(|tag| tag.chars().count() <= 4);
    object.keys().all(|key| ["name", "count", "tags"].contains(&key.as_str()))
        && ["box", "door"].iter().any(|name| object.get("name") == Some(&(*name).into()))
        && object.get("count").and_then(serde_json::Value::as_u64).is_some_and(|n| n < 100)
        && object.get("tags").is_none_or(|tags| {
            tags.as_array().is_some_and(|tags| tags.len() <= 2 && tags.iter().all(tag))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_the_model_says_a_schema_holds(
        seed in any::<u64>(),
        temperature in prop::sample::select(vec![0.0_f32, 0.7, 1.0, 5.0]),
    ) {
        let tokenizer = tokenizer();
        let weights = weights(&tokenizer, seed);
        let compiler = GrammarCompiler::new(&tokenizer, tokenizer.vocab_size()).unwrap();
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let prompt = tokenizer.encode("You see a door.").into();
        let mut request = GenerationRequest::new(prompt, 1000, Seed::from_u64(seed));
        request.constraint = Some(Constraint::Grammar(compiler.compile(&GrammarSource::json_schema(schema)).unwrap()));
        request.sampling = SamplingOptions { temperature, ..SamplingOptions::default() };
        let (tokens, reason, text) = alone(&tokenizer, &weights, &request);
        // Every part of it has a bounded length.
        prop_assert_eq!(reason, Some(FinishReason::EndOfTurn), "{}", &text);
        prop_assert!(is_valid(&text), "{}", &text);
        prop_assert_eq!(tokens.last().map(|token| token.id), Some(tokenizer.end_of_turn()));
    }
}

#[test]
fn expressions_and_grammars_hold() {
    let tokenizer = tokenizer();
    let weights = weights(&tokenizer, 4);
    let compiler = GrammarCompiler::new(&tokenizer, tokenizer.vocab_size()).unwrap();
    let prompt: Arc<[u32]> = tokenizer.encode("You see a door.").into();
    for seed in 0..10 {
        let answer = |grammar| {
            let mut request = GenerationRequest::new(prompt.clone(), 60, Seed::from_u64(seed));
            request.constraint = Some(Constraint::Grammar(grammar));
            alone(&tokenizer, &weights, &request).2
        };
        let text =
            answer(compiler.compile(&GrammarSource::regex("[a-c]{3}(-| )open [0-9]")).unwrap());
        assert!(text.len() == 10 && text[4..].starts_with("open "), "{text}");
        let lark = "start: verb \" \" noun\nverb: \"open\" | \"shut\"\nnoun: \"box\" | \"door\"\n";
        let text = answer(compiler.compile(&GrammarSource::lark(lark)).unwrap());
        let (verb, noun) = text.split_once(' ').unwrap();
        assert!(["open", "shut"].contains(&verb) && ["box", "door"].contains(&noun), "{text}");
    }
}

#[test]
fn what_is_no_grammar_is_told_before_anything_is_drawn() {
    let tokenizer = tokenizer();
    let compiler = GrammarCompiler::new(&tokenizer, tokenizer.vocab_size()).unwrap();
    let schema = |text: &str| {
        compiler.compile(&GrammarSource::json_schema(serde_json::from_str(text).unwrap()))
    };
    for (found, kind) in [
        (schema(r#"{ "type": "thing" }"#), "JSON schema"),
        (schema(r#"{ "$ref": "http://example.com/schema" }"#), "JSON schema"),
        (compiler.compile(&GrammarSource::regex("(a")), "regular expression"),
        (compiler.compile(&GrammarSource::lark("start: nothing")), "grammar"),
    ] {
        let error = found.unwrap_err();
        let GrammarError { kind: told, detail } = &error;
        assert_eq!(*told, kind);
        assert!(!detail.is_empty() && detail.len() < 300, "{detail}");
    }
}
