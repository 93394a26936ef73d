//! Steps of generation give what single calls give, recorded or not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::device::Device;
use super::driver::Number;
use super::emulator::Emulator;
use super::operations::{Drawing, Drawn, Truncation};
use super::step::{Found, Wanted};
use super::tests::{assert_close, config, emulated, tokens, weights};
use super::{DeviceError, DeviceLearner};
use crate::decoder::{Segment, SequenceCache, TokenTree, try_forward};
use crate::head::{Draw, log_softmax, try_batch_logits, try_best, try_judge};
use crate::sampling::{SamplingOptions, entropy, most_probable, truncate, truncate_part};
use crate::{Family, LoraConfig, LoraModel, ModelConfig, Weights};
use spar_ops::elementwise::AdamWStep;

/// Sequences that are read to their end.
fn read(weights: &Weights, prompts: &[Vec<u32>]) -> Vec<SequenceCache> {
    let mut caches = vec![SequenceCache::new(weights); prompts.len()];
    let pairs = caches.iter_mut().zip(prompts);
    let mut segments: Vec<_> = pairs.map(|(cache, prompt)| Segment::new(cache, prompt)).collect();
    try_forward(weights, &mut segments, None).unwrap();
    caches
}

fn step(
    weights: &Weights,
    caches: &mut [SequenceCache],
    next: &[u32],
    wanted: &[Wanted],
) -> Result<Vec<Found>, DeviceError> {
    let tokens: Vec<[u32; 1]> = next.iter().map(|token| [*token]).collect();
    let pairs = caches.iter_mut().zip(&tokens);
    let mut segments: Vec<_> = pairs.map(|(cache, token)| Segment::new(cache, token)).collect();
    weights.backend.placement().unwrap().step(weights, &mut segments, wanted)
}

/// The logits behind so many tokens of each sequence, one token at a time.
fn logits(weights: &Weights, prompts: &[Vec<u32>], steps: u32) -> Vec<Vec<Found>> {
    let mut caches = read(weights, prompts);
    let wanted = vec![Wanted::Logits; prompts.len()];
    let next = |step: u32| (0..prompts.len() as u32).map(|i| (7 * step + 3 * i) % 37).collect();
    (0..steps)
        .map(|index| {
            let next: Vec<u32> = next(index);
            step(weights, &mut caches, &next, &wanted).unwrap()
        })
        .collect()
}

fn launches(emulator: &Emulator) -> (usize, usize) {
    let of = |count: &std::sync::atomic::AtomicUsize| count.swap(0, Ordering::Relaxed);
    (of(&emulator.counts.launches), of(&emulator.counts.replays))
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_steps_give_the_same_recorded_or_not_to_the_bit() {
    // Over the ends of pages and, in the last sequence, of a chunk of keys.
    let prompts = [tokens(1, 1), tokens(30, 2), tokens(64, 3), tokens(5, 4), tokens(509, 5)];
    let extended = ModelConfig {
        smear_tokens: 2,
        token_match_bias: true,
        num_hidden_layers: 1,
        ..config(Family::Llama, 16)
    };
    for (config, number) in [
        (ModelConfig { num_hidden_layers: 1, ..config(Family::Qwen3, 16) }, Number::Bf16),
        (extended, Number::F32),
    ] {
        let weights = weights(&config);
        let emulator = Arc::new(Emulator::default());
        let device = Device::with_driver(emulator.clone());
        let plain = weights.on_device(&device.without_graphs(), number).unwrap();
        let plain = logits(&plain, &prompts, 6);
        assert_eq!(launches(&emulator).1, 0);
        let recorded = weights.on_device(&device, number).unwrap();
        assert_eq!(logits(&recorded, &prompts, 6), plain);
        // Two shapes, of which each is done kernel by kernel once.
        assert_eq!(launches(&emulator).1, 4);
        // All of it again, now without a launch but those of the prompts.
        assert_eq!(logits(&recorded, &prompts, 6), plain);
        let (of_prompts, replays) = launches(&emulator);
        assert_eq!(replays, 6);
        read(&recorded, &prompts);
        assert_eq!(launches(&emulator), (of_prompts, 0));
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_steps_are_recorded_anew_where_memory_has_moved() {
    let weights = weights(&ModelConfig { num_hidden_layers: 1, ..config(Family::Qwen3, 16) });
    let emulator = Arc::new(Emulator::default());
    let device = Device::with_driver(emulator.clone());
    let plain = weights.on_device(&device.without_graphs(), Number::F32).unwrap();
    let recorded = weights.on_device(&device, Number::F32).unwrap();
    // 1. More and fewer rows; with so many sequences the pool of pages grows, too.
    let prompts: Vec<Vec<u32>> = (0..70).map(|i| tokens(1 + i % 3, i)).collect();
    for count in [2, 70, 9, 2] {
        let prompts = &prompts[..count];
        assert_eq!(logits(&recorded, prompts, 3), logits(&plain, prompts, 3), "{count} rows");
    }
    assert!(launches(&emulator).1 > 0);
    // 2. Other weights on the same device.
    let mut other = weights.parameters().clone();
    other.data.iter_mut().for_each(|value| *value *= 1.25);
    let [plain, recorded] = [plain, recorded].map(|old| old.with_parameters(other.clone()));
    assert_eq!(logits(&recorded, &prompts[..2], 4), logits(&plain, &prompts[..2], 4));
    assert_eq!(launches(&emulator).1, 3);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_steps_see_what_was_learned_without_being_recorded_anew() {
    let weights = weights(&ModelConfig { num_hidden_layers: 1, ..config(Family::Qwen3, 16) });
    let emulator = Arc::new(Emulator::default());
    let weights = weights.on_device(&Device::with_driver(emulator.clone()), Number::F32).unwrap();
    let prompts = [tokens(4, 1), tokens(3, 2)];
    let adamw =
        AdamWStep { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, keep: 0.9, step: 0.0, root: 1.0 };

    // 1. All weights.
    let learner = DeviceLearner::new(&weights, weights.parameters()).unwrap();
    let before = logits(&learner.weights(), &prompts, 4);
    launches(&emulator);
    let len = weights.parameters().data.len();
    learner.step(&[(0..len, adamw)], 1.0).unwrap();
    let after = logits(&learner.weights(), &prompts, 4);
    assert_ne!(after, before);
    assert_eq!(launches(&emulator).1, 4);
    let plain = weights.with_parameters(learner.parameters().unwrap());
    assert_eq!(logits(&plain, &prompts, 1), after[..1]);
    // Whoever holds weights goes on with them; each of the two places that weights lie in by turns has its
    // graphs.
    for round in 0..3 {
        let held = learner.weights();
        let before = logits(&held, &prompts, 4);
        learner.step(&[(0..len, adamw)], 1.0).unwrap();
        launches(&emulator);
        assert_eq!(logits(&held, &prompts, 4), before);
        assert_ne!(logits(&learner.weights(), &prompts, 4), before);
        let recorded = launches(&emulator).1;
        assert!(
            recorded >= if round == 0 { 6 } else { 8 },
            "{recorded} of 8 steps in round {round}"
        );
    }

    // 2. An adapter.
    let config = LoraConfig { rank: 2, ..LoraConfig::default() };
    let model = LoraModel::new(Arc::new(weights.clone()), &config);
    let mut factors = model.initial(spar_core::Seed::from_u64(3));
    factors.data.iter_mut().enumerate().for_each(|(i, factor)| *factor += 0.01 * (i % 7) as f32);
    let learner = DeviceLearner::of_adapter(&model, &factors).unwrap();
    let before = logits(&learner.weights(), &prompts, 4);
    assert_ne!(before, logits(&weights, &prompts, 4));
    logits(&learner.weights(), &prompts, 4);
    launches(&emulator);
    learner.step(&[(0..factors.data.len(), adamw)], 1.0).unwrap();
    assert_ne!(logits(&learner.weights(), &prompts, 4), before);
    assert_eq!(launches(&emulator).1, 4);
}

/// Draws of all kinds behind sequences, by a step and from the logits that a call of its own gives.
fn compare_draws(device: &Device, number: Number, tolerance: f32) {
    // More tokens than one tile of the vocabulary has.
    let config =
        ModelConfig { vocab_size: 9001, num_hidden_layers: 1, ..config(Family::Qwen3, 16) };
    let weights = weights(&config).on_device(device, number).unwrap();
    let prompts: Vec<Vec<u32>> = (0..3).map(|i| tokens(5 + 2 * i, i)).collect();
    let drawings: Vec<Drawing> = (0..30)
        .map(|i| Drawing {
            temperature: [1.0, 0.0, 0.6][i % 3],
            uniform: (i as f32 * 0.618).fract(),
            raw: i % 2 == 0,
        })
        .chain([0.0, 1.0].map(|uniform| Drawing { temperature: 2.0, uniform, raw: false }))
        .collect();
    let mut same = 0;
    for drawings in drawings.chunks(2) {
        let mut caches = read(&weights, &prompts);
        let mut wanted: Vec<Wanted> = drawings.iter().copied().map(Wanted::Draw).collect();
        wanted.insert(1, Wanted::Logits);
        let found = step(&weights, &mut caches, &[1, 2, 3], &wanted).unwrap();
        // All read at once, as training does.
        let whole: Vec<Vec<u32>> =
            prompts.iter().zip([1, 2, 3]).map(|(p, next)| [&p[..], &[next]].concat()).collect();
        let whole: Vec<&[u32]> = whole.iter().map(Vec::as_slice).collect();
        let tree = TokenTree::new(&whole);
        let hidden = tree.try_read(&weights, None).unwrap();
        let states = hidden.read().unwrap();
        let row = |index: usize| *tree.rows(index).last().unwrap();
        let d = config.hidden_size;
        for (index, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
            let state = &states[row(index) * d..(row(index) + 1) * d];
            let mut logprobs = Vec::new();
            try_batch_logits(&weights, state, &mut logprobs).unwrap();
            let (drawing, drawn) = match (wanted, found) {
                (Wanted::Logits, Found::Logits(logits)) => {
                    assert_close(logits, &logprobs, tolerance, "logits");
                    continue;
                }
                (Wanted::Draw(drawing), Found::Drawn(drawn)) => (*drawing, *drawn),
                other => panic!("{other:?}"),
            };
            let temperature = if drawing.temperature == 0.0 { 1.0 } else { drawing.temperature };
            let mut raw = logprobs.clone();
            log_softmax(&mut raw, 1.0);
            log_softmax(&mut logprobs, temperature);
            same += usize::from(drawn.token == expected(&logprobs, &drawing));
            let Drawn { token, logprob, raw_logprob, .. } = drawn;
            let close = |a: f32, b: f32| (a - b).abs() <= tolerance * b.abs().max(1.0);
            assert!(close(drawn.entropy, entropy(&logprobs)), "{drawn:?}");
            assert!(close(logprob, logprobs[token as usize]), "{drawn:?}");
            let told = if drawing.raw { raw[token as usize] } else { 0.0 };
            assert!(close(raw_logprob, told), "{drawn:?} for {told}");
            // What training finds for it.
            let draw = Draw { row: row(index), token, allowed: &[] };
            let judged = try_judge(&weights, &hidden, &[draw], temperature).unwrap()[0];
            if device.is_emulated() {
                assert_eq!((logprob, drawn.entropy), (judged.logprob, judged.entropy));
            } else {
                assert!(close(logprob, judged.logprob), "{drawn:?} for {judged:?}");
            }
        }
    }
    // A number may fall on the other side of a border by rounding.
    assert!(same >= drawings.len() - 1, "{same} of {}", drawings.len());
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_logits_of_a_few_tokens_travel_alone() {
    let config =
        ModelConfig { vocab_size: 9001, num_hidden_layers: 1, ..config(Family::Qwen3, 16) };
    let emulator = Arc::new(Emulator::default());
    let device = Device::with_driver(emulator.clone());
    let weights = weights(&config).on_device(&device, Number::F32).unwrap();
    let caches = read(&weights, &[tokens(5, 1), tokens(9, 2), tokens(2, 3)]);
    let of = |ids: &[u32], raw| Wanted::LogitsOf { ids: ids.to_vec(), raw };
    let wanted = [of(&[7, 9000, 3], false), Wanted::Draw(Drawing::BEST), of(&[0, 8500], true)];
    let all = step(&weights, &mut caches.clone(), &[1, 2, 3], &vec![Wanted::Logits; 3]).unwrap();
    // Kernel by kernel, recorded, and behind more than one token.
    for _ in 0..3 {
        emulator.counts.downloaded.store(0, Ordering::Relaxed);
        let found = step(&weights, &mut caches.clone(), &[1, 2, 3], &wanted).unwrap();
        let bytes = emulator.counts.downloaded.load(Ordering::Relaxed);
        assert!(bytes < 256, "{bytes} bytes");
        for (wanted, (found, all)) in wanted.iter().zip(found.iter().zip(&all)) {
            let Found::Logits(all) = all else { panic!("{all:?}") };
            let (Wanted::LogitsOf { ids, raw }, Found::LogitsOf { logits, raw_log_sum }) =
                (wanted, found)
            else {
                assert!(matches!(found, Found::Drawn(_)));
                continue;
            };
            let expected: Vec<f32> = ids.iter().map(|id| all[*id as usize]).collect();
            assert_eq!(*logits, expected);
            let mut logprobs = all.clone();
            log_softmax(&mut logprobs, 1.0);
            let told = if *raw { all[5] - logprobs[5] } else { 0.0 };
            assert!((raw_log_sum - told).abs() < 1e-4, "{raw_log_sum} for {told}");
        }
    }
}

/// What is left by all kinds of truncation, from candidates and from all logits.
fn compare_candidates(device: &Device, number: Number) {
    let config =
        ModelConfig { vocab_size: 2000, num_hidden_layers: 1, ..config(Family::Qwen3, 16) };
    let weights = weights(&config).on_device(device, number).unwrap();
    let read = read(&weights, &[tokens(5, 1), tokens(9, 2)]);
    let of_step = |wanted| step(&weights, &mut read.clone(), &[1, 2], &vec![wanted; 2]).unwrap();
    let all = of_step(Wanted::Logits);
    let mut listed = 0;
    for (case, top_k) in [None, Some(1), Some(7), Some(500)].into_iter().enumerate() {
        for (top_p, min_p) in [(1.0, 0.0), (0.3, 0.0), (0.9, 0.0), (1.0, 0.2), (0.95, 0.05)] {
            let temperature = [0.2, 1.0][case % 2];
            let sampling = SamplingOptions::default();
            let options = SamplingOptions { temperature, top_k, top_p, min_p, ..sampling };
            let truncation = Truncation { temperature, top_k, top_p, min_p, raw: true };
            assert!(truncation.is_listed());
            for (found, all) in of_step(Wanted::Candidates(truncation)).iter().zip(&all) {
                let Found::Logits(all) = all else { panic!("{all:?}") };
                let candidates = match found {
                    // Too many to be listed.
                    Found::Logits(logits) => {
                        assert_eq!(logits, all);
                        continue;
                    }
                    Found::Candidates(candidates) => candidates,
                    other => panic!("{other:?}"),
                };
                listed += 1;
                let mut expected = (Vec::new(), all.clone());
                truncate(&options, &mut expected.0, &mut expected.1);
                let mut left = (candidates.ids.clone(), candidates.logits.clone());
                truncate_part(&options, &mut left.0, &mut left.1, candidates.log_sum);
                if expected.0.is_empty() {
                    expected.0 = (0..2000).collect();
                }
                assert_eq!(left, expected, "{options:?}");
                let mut raw = all.clone();
                log_softmax(&mut raw, 1.0);
                let first = candidates.logits[0] - candidates.raw_log_sum;
                assert!((first - raw[candidates.ids[0] as usize]).abs() < 1e-3);
            }
        }
    }
    assert!(listed > 30, "{listed}");
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_candidates_are_all_that_may_be_drawn() {
    compare_candidates(&emulated(false), Number::F32);
    compare_candidates(&emulated(true), Number::Bf16);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_candidates_are_all_that_may_be_drawn() {
    compare_candidates(&Device::open().unwrap(), Number::Bf16);
}

fn compare_best(device: &Device, number: Number, tolerance: f32) {
    let here = weights(&config(Family::Qwen3, 16));
    let there = here.on_device(device, number).unwrap();
    let run = |weights: &Weights| {
        let mut caches = vec![SequenceCache::new(weights); 3];
        let mut next = [tokens(40, 1), tokens(3, 2), tokens(1, 3)].to_vec();
        (0..5)
            .map(|_| {
                let pairs = caches.iter_mut().zip(&next);
                let mut segments: Vec<_> =
                    pairs.map(|(cache, tokens)| Segment::new(cache, tokens)).collect();
                let best = try_best(weights, &mut segments).unwrap();
                next = best.iter().map(|(token, _)| vec![*token]).collect();
                best
            })
            .collect::<Vec<_>>()
    };
    let (found, expected) = (run(&there), run(&here));
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert_eq!(found.0, expected.0);
        assert!((found.1 - expected.1).abs() < tolerance, "{found:?} for {expected:?}");
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_steps_find_the_best_tokens() {
    compare_best(&emulated(false), Number::F32, 1e-4);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_steps_find_the_best_tokens() {
    compare_best(&Device::open().unwrap(), Number::F32, 1e-3);
}

/// The token that is drawn on the CPU.
fn expected(logprobs: &[f32], drawing: &Drawing) -> u32 {
    if drawing.temperature == 0.0 {
        return most_probable(logprobs) as u32;
    }
    let mut left = drawing.uniform;
    let passes = |logprob: &f32| {
        left -= logprob.exp();
        left < 0.0
    };
    logprobs.iter().position(passes).unwrap_or(logprobs.len() - 1) as u32
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_draws_are_those_of_the_cpu() {
    compare_draws(&emulated(false), Number::F32, 1e-4);
    compare_draws(&emulated(true), Number::Bf16, 1e-4);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_draws_are_those_of_the_cpu() {
    let device = Device::open().unwrap();
    compare_draws(&device, Number::F32, 1e-3);
    compare_draws(&device, Number::Bf16, 3e-2);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_steps_give_the_same_recorded_or_not_to_the_bit() {
    let device = Device::open().unwrap();
    let prompts = [tokens(1, 1), tokens(30, 2), tokens(64, 3), tokens(5, 4), tokens(509, 5)];
    for number in [Number::F32, Number::Bf16] {
        let weights = weights(&config(Family::Qwen3, 64));
        let plain = weights.on_device(&device.without_graphs(), number).unwrap();
        let recorded = weights.on_device(&device, number).unwrap();
        let expected = logits(&plain, &prompts, 8);
        assert_eq!(logits(&recorded, &prompts, 8), expected);
        assert_eq!(logits(&recorded, &prompts, 8), expected);
    }
}
