//! Adapters beside each other in one batch.

use super::*;
use crate::{Adapter, LoraConfig, LoraModel};
use spar_ops::gradient_check::numbers;

/// The weights with an adapter beside them that changes their answers.
fn adapted(base: &Arc<Weights>, rank: usize) -> Arc<Weights> {
    let config = LoraConfig { rank, alpha: 2.0 * rank as f32, ..LoraConfig::default() };
    let model = LoraModel::new(base.clone(), &config).apart();
    let mut factors = model.initial(Seed::from_u64(rank as u64));
    let values = numbers(factors.data.len(), 0.7 / rank as f32);
    factors.data.iter_mut().zip(values).for_each(|(factor, value)| *factor += 0.2 * value);
    model.weights(&factors).unwrap()
}

fn adapter(weights: &Weights) -> Arc<Adapter> {
    weights.adapter().unwrap().clone()
}

/// An engine of the base, and of both adapters as models 1 and 2.
fn engine_of(
    tokenizer: &Arc<Tokenizer>,
    [base, first, second]: &[Arc<Weights>; 3],
    config: EngineConfig,
    limit: usize,
) -> Engine {
    let memory = Arc::new(KvMemory::new(limit, limit / 2, 1, 3));
    let counters = Arc::new(Counters::new(1));
    let version = PolicyVersion(0);
    let (name, base) = ("base".into(), base.clone());
    let mut engine =
        Engine::new(name, 0, tokenizer.clone(), base, version, config, memory, counters);
    engine.serve_adapter("first".into(), adapter(first), PolicyVersion(4));
    engine.serve_adapter("second".into(), adapter(second), PolicyVersion(9));
    engine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn each_answers_as_it_does_alone(
        asked in prop::collection::vec((0_u64..1000, 0_usize..3), 1..14),
        prefill_tokens in 1_usize..40,
        max_active in 1_usize..8,
        limit in 200_usize..500,
        steps_between in prop::collection::vec(0_usize..3, 14),
        generates in any::<bool>(),
    ) {
        let tokenizer = tokenizer();
        let base = weights(&tokenizer, 1);
        let models = [base.clone(), adapted(&base, 2), adapted(&base, 3)];
        let config = EngineConfig { prefill_tokens, max_active };
        // As generators bring the weights into the order of generation, which no model notices.
        let below = if generates { base.clone().for_generation() } else { base };
        let served = [below, models[1].clone(), models[2].clone()];
        let mut engine = engine_of(&tokenizer, &served, config, limit);
        let mut receivers = Vec::new();
        for (place, (number, model)) in asked.iter().enumerate() {
            let request = GenerationRequest { model: *model, ..request(&tokenizer, *number) };
            receivers.push(submit(&mut engine, &request));
            (0..steps_between[place]).for_each(|_| engine.step());
        }
        let mut steps = 0;
        while engine.is_busy() {
            engine.step();
            steps += 1;
            prop_assert!(steps < 5000);
            prop_assert!(engine.memory.used() + engine.memory.kept() <= limit);
        }
        for ((number, model), receiver) in asked.iter().zip(&mut receivers) {
            let (mut tokens, reason, text) = collect(receiver);
            for token in &mut tokens {
                prop_assert_eq!(token.version.0, [0, 4, 9][*model]);
                token.version = PolicyVersion(0);
            }
            let request = request(&tokenizer, *number);
            prop_assert_eq!(
                (tokens, reason, text),
                alone(&tokenizer, &models[*model], &request)
            );
        }
    }
}

#[test]
fn what_an_adapter_sampled_is_what_training_recomputes() {
    let tokenizer = tokenizer();
    let base = weights(&tokenizer, 2);
    let models = [base.clone(), adapted(&base, 2), adapted(&base, 3)];
    let served = [base.for_generation(), models[1].clone(), models[2].clone()];
    let mut engine = engine_of(&tokenizer, &served, WIDE, usize::MAX);
    let mut asked = Vec::new();
    for number in 0..60 {
        let model = number as usize % 3;
        let request = GenerationRequest { model, ..request(&tokenizer, number) };
        let receiver = submit(&mut engine, &request);
        asked.push((request, receiver));
    }
    finish(&mut engine);
    let mut told_apart = 0;
    for (request, mut receiver) in asked {
        let (tokens, ..) = collect(&mut receiver);
        let drawn = tokens.iter().map(|token| token.id);
        let ids: Vec<u32> = request.prompt_ids.iter().copied().chain(drawn).collect();
        let recompute = |weights: &Weights| {
            let mut cache = SequenceCache::new(weights);
            let states = forward(weights, &mut [Segment::new(&mut cache, &ids)], None);
            let first = request.prompt_ids.len() - 1;
            let draw = |(t, token): (usize, &GeneratedToken)| {
                let draws = [Draw { row: first + t, token: token.id, allowed: &token.allowed }];
                let temperature = match request.sampling.temperature {
                    0.0 => 1.0,
                    temperature => temperature,
                };
                log_probabilities(weights, &states, &draws, temperature)[0]
            };
            tokens.iter().enumerate().map(draw).collect::<Vec<f32>>()
        };
        if request.sampling.shifts_logits() {
            continue;
        }
        let sampled: Vec<f32> = tokens.iter().map(|token| token.logprob).collect();
        assert_eq!(sampled, recompute(&models[request.model]));
        told_apart += usize::from(sampled != recompute(&models[(request.model + 1) % 3]));
    }
    assert!(told_apart > 20, "{told_apart} of the answers are those of one model alone");
}

#[test]
fn what_one_model_read_is_of_no_use_to_another_and_publishing_it_leaves_others_alone() {
    let tokenizer = tokenizer();
    let base = weights(&tokenizer, 1);
    let served = [base.clone(), adapted(&base, 2), adapted(&base, 3)];
    let mut engine = engine_of(&tokenizer, &served, WIDE, usize::MAX);
    let prompt: Arc<[u32]> = tokenizer.encode(&"You see a door. ".repeat(6)).into();
    let ask = |engine: &mut Engine, model: usize| -> usize {
        let request = GenerationRequest::new(prompt.clone(), 1, Seed::from_u64(1));
        let mut receiver = submit(engine, &GenerationRequest { model, ..request });
        finish(engine);
        let mut cached = None;
        while let Ok(event) = receiver.try_recv() {
            if let GenerationEvent::Finished(finished) = event {
                cached = Some(finished.cached_tokens);
            }
        }
        cached.unwrap()
    };
    let all = prompt.len() - 1;
    assert_eq!([1, 2, 0].map(|model| ask(&mut engine, model)), [0; 3]);
    assert_eq!([1, 2, 0].map(|model| ask(&mut engine, model)), [all; 3]);
    engine.publish_adapter(1, adapter(&adapted(&base, 4)), PolicyVersion(5), 1);
    assert_eq!([1, 2, 0].map(|model| ask(&mut engine, model)), [0, all, all]);
    // Other weights below are others for all.
    engine.publish(weights(&tokenizer, 7), PolicyVersion(1), 2);
    assert_eq!([1, 2, 0].map(|model| ask(&mut engine, model)), [0; 3]);
}

#[test]
fn the_weights_are_in_memory_once() {
    let tokenizer = tokenizer();
    let base = weights(&tokenizer, 1);
    let served = [base.clone(), adapted(&base, 2), adapted(&base, 3)];
    let engine = engine_of(&tokenizer, &served, WIDE, usize::MAX);
    for weights in &served[1..] {
        assert!(weights.parameters().data.is_shared_with(&base.parameters().data));
    }
    assert!(Arc::ptr_eq(&engine.weights, &base));
    let bytes: usize = served[1..].iter().map(|weights| adapter(weights).bytes()).sum();
    // By matrix and rank an input and an output: of queries, keys, values, output, gate, up and down.
    let of_rank = (16 + 16) + 2 * (16 + 8) + (16 + 16) + 3 * (16 + 16);
    assert_eq!(bytes, (2 + 3) * of_rank * size_of::<f32>());
}
