//! The decoder on a device gives what it gives on the CPU.
//!
//! Every comparison is a function of the device: the host's imitation, for which the kernels are
//! compiled by its C++ compiler, and the machine's GPU.

use std::sync::Arc;

use spar_core::Seed;

use super::device::{Device, Kind};
use super::driver::Number;
use super::emulator::Emulator;
use crate::decoder::{Segment, SequenceCache, Tape, TokenTree, forward, try_forward};
use crate::head::{Draw, DrawGradient, DrawLoss, learn, try_batch_logits, try_judge};
use crate::{
    Family, LORA_TARGETS, LoraConfig, LoraModel, ModelConfig, Parameters, WeightGradient, Weights,
    initial_parameters,
};
use spar_ops::elementwise::{AdamWStep, adamw};
use spar_ops::gradient_check::numbers;

pub(super) fn emulated(descends: bool) -> Device {
    let emulator = if descends { Emulator::descending() } else { Emulator::default() };
    Device::with_driver(Arc::new(emulator))
}

/// All of this family's parts and every extension, small.
pub(super) fn config(family: Family, head_dim: usize) -> ModelConfig {
    ModelConfig {
        family,
        vocab_size: 37,
        hidden_size: 24,
        intermediate_size: 20,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim,
        max_position_embeddings: 2048,
        ..ModelConfig::default()
    }
}

/// Weights in which no gain is 1 and no bias 0.
pub(super) fn weights(config: &ModelConfig) -> Weights {
    let mut parameters = initial_parameters(config, Seed::from_u64(7));
    let noise = numbers(parameters.data.len(), 0.37);
    for (value, noise) in parameters.data.iter_mut().zip(noise) {
        // Representable in the narrower numbers, so that all compute with the same weights.
        *value = f32::from_bits((*value * 2.0 + 0.05 * noise).to_bits() & 0xffff_0000);
    }
    Weights::new(config, parameters)
}

pub(super) fn tokens(count: usize, salt: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * i + 3 * i * salt + salt) % 37) as u32).collect()
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(1e-6, |largest, value| largest.max(value.abs()))
}

pub(super) fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = largest(expected);
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / scale;
        assert!(error <= tolerance, "{what} {index}: {found} for {expected}");
    }
}

/// Sequences with forks in the middle of pages, behind whole ones, and of single tokens.
fn sequences() -> Vec<Vec<u32>> {
    let trunk = tokens(70, 1);
    let branch = |at: usize, len: usize, salt: usize| {
        let mut branch = trunk[..at].to_vec();
        branch.extend(tokens(len, salt));
        branch
    };
    vec![
        trunk.clone(),
        branch(64, 9, 2),
        branch(40, 31, 3),
        branch(40, 1, 5),
        tokens(5, 11),
        branch(3, 35, 7),
    ]
}

/// Hidden states, what is told of draws, and the gradient.
struct Outcome {
    hidden: Vec<f32>,
    judged: Vec<[f32; 2]>,
    gradient: Vec<f32>,
}

fn train(weights: &Weights, recomputes: bool) -> Outcome {
    let sequences = sequences();
    let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let tree = TokenTree::new(&sequences);
    let mut tape = if recomputes { Tape::recomputing() } else { Tape::default() };
    let hidden = tree.try_read(weights, Some(&mut tape)).unwrap();
    let some = [1, 4, 5, 9, 30, 36];
    let mut draws = Vec::new();
    for (index, sequence) in sequences.iter().enumerate() {
        for t in (1..sequence.len()).step_by(3) {
            let token = sequence[t];
            let allowed: &[u32] = if some.contains(&token) { &some } else { &[] };
            draws.push(Draw { row: tree.rows(index)[t - 1], token, allowed });
        }
    }
    let judged = try_judge(weights, &hidden, &draws, 0.7).unwrap();
    let by: Vec<DrawGradient> = numbers(draws.len(), 0.21)
        .into_iter()
        .map(|value| DrawGradient { logprob: value, entropy: 0.3 * value * value })
        .collect();
    let mut gradient = vec![0.0; weights.parameters.data.len()];
    // What other heads have to do with the states.
    let dstates: Vec<f32> =
        numbers(hidden.read().unwrap().len(), 0.13).iter().map(|value| 0.1 * value).collect();
    let loss = DrawLoss {
        draws: &draws,
        temperature: 0.7,
        told: &judged,
        derivatives: &by,
        dstates_td: Some(&dstates),
    };
    learn(weights, &tape, &hidden, &loss, &mut WeightGradient::Full(&mut gradient)).unwrap();
    let judged = judged.iter().map(|told| [told.logprob, told.entropy]).collect();
    Outcome { hidden: hidden.read().unwrap().into_owned(), judged, gradient }
}

/// Every family, each with one of the widths.
fn compare_training(device: &Device, number: Number, tolerance: f32, head_dims: [usize; 3]) {
    let families = [(Family::Qwen3, None), (Family::Qwen2, Some(20)), (Family::Llama, None)];
    for ((family, window), head_dim) in families.into_iter().zip(head_dims) {
        let is_plain = family == Family::Llama;
        let config = ModelConfig {
            sliding_window: window,
            token_match_bias: !is_plain,
            smear_tokens: if is_plain { 0 } else { 2 },
            partial_rotary_factor: if is_plain { 1.0 } else { 0.5 },
            tie_word_embeddings: is_plain,
            ..config(family, head_dim)
        };
        let weights = weights(&config);
        let on_device = weights.on_device(device, number).unwrap();
        let expected = train(&weights, false);
        let found = train(&on_device, false);
        let what = format!("{family:?} {head_dim}");
        assert_close(&found.hidden, &expected.hidden, tolerance, &format!("{what} states"));
        let (told, wanted) = (found.judged.as_flattened(), expected.judged.as_flattened());
        assert_close(told, wanted, tolerance, &format!("{what} draws"));
        for spec in weights.parameters.specs.iter() {
            let (found, wanted) = (&found.gradient[spec.range()], &expected.gradient[spec.range()]);
            assert_close(found, wanted, 4.0 * tolerance, &format!("{what} {}", spec.name));
        }
        if family != Family::Qwen3 {
            continue;
        }
        // What is computed once more is the same, to the bit.
        let again = train(&on_device, true);
        assert_eq!(again.gradient, found.gradient, "{what}");
    }
}

/// States, what is told of draws and the gradient of an adapter's factors.
fn train_adapter(model: &LoraModel, factors: &Parameters) -> Outcome {
    let weights = model.weights(factors).unwrap();
    let sequences = sequences();
    let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let tree = TokenTree::new(&sequences);
    let mut tape = Tape::default();
    let hidden = tree.try_read(&weights, Some(&mut tape)).unwrap();
    let mut draws = Vec::new();
    for (index, sequence) in sequences.iter().enumerate() {
        let rows = tree.rows(index);
        draws.extend((1..sequence.len()).step_by(4).map(|t| Draw {
            row: rows[t - 1],
            token: sequence[t],
            allowed: &[],
        }));
    }
    let judged = try_judge(&weights, &hidden, &draws, 0.9).unwrap();
    let slopes = numbers(draws.len(), 0.21).into_iter();
    let by: Vec<DrawGradient> =
        slopes.map(|logprob| DrawGradient { logprob, entropy: 0.1 }).collect();
    let mut gradient = vec![0.0; factors.data.len()];
    let loss = DrawLoss {
        draws: &draws,
        temperature: 0.9,
        told: &judged,
        derivatives: &by,
        dstates_td: None,
    };
    learn(&weights, &tape, &hidden, &loss, &mut model.gradient(factors, &mut gradient)).unwrap();
    let judged = judged.iter().map(|told| [told.logprob, told.entropy]).collect();
    Outcome { hidden: hidden.read().unwrap().into_owned(), judged, gradient }
}

fn compare_adapters(device: &Device, number: Number, tolerance: f32) {
    for (family, targets) in
        [(Family::Qwen3, &LORA_TARGETS[..]), (Family::Qwen2, &["k_proj", "up_proj", "o_proj"])]
    {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        let lora = LoraConfig { rank: 3, alpha: 2.0, targets, ..LoraConfig::default() };
        let model = LoraModel::new(Arc::new(weights(&config(family, 16))), &lora);
        let mut factors = model.initial(Seed::from_u64(2));
        let noise = numbers(factors.data.len(), 0.3);
        factors.data.iter_mut().zip(noise).for_each(|(factor, noise)| {
            *factor = f32::from_bits((0.3 * noise).to_bits() & 0xffff_0000);
        });
        let on_device = model.placed(|weights| weights.on_device(device, number)).unwrap();
        let expected = train_adapter(&model, &factors);
        let found = train_adapter(&on_device, &factors);
        assert_close(&found.hidden, &expected.hidden, tolerance, "states with an adapter");
        let (told, wanted) = (found.judged.as_flattened(), expected.judged.as_flattened());
        assert_close(told, wanted, tolerance, "draws with an adapter");
        for spec in factors.specs.iter() {
            let (found, wanted) = (&found.gradient[spec.range()], &expected.gradient[spec.range()]);
            assert!(largest(wanted) > 1e-5, "{}", spec.name);
            assert_close(found, wanted, 4.0 * tolerance, &spec.name);
        }
        // Fresh factors change nothing.
        let read = |weights: &Weights| TokenTree::new(&[&[1, 2, 3]]).read(weights, None);
        let fresh = on_device.weights(&model.initial(Seed::from_u64(4))).unwrap();
        assert_eq!(read(&fresh), read(on_device.base()));
    }
}

/// Prompts that fork from what is remembered, read in parts.
fn generate(weights: &Weights) -> Vec<Vec<f32>> {
    let mut states = Vec::new();
    let prompt = tokens(75, 2);
    let mut first = SequenceCache::new(weights);
    states
        .push(try_forward(weights, &mut [Segment::new(&mut first, &prompt[..50])], None).unwrap());
    let mut second = first.clone();
    second.truncate(41);
    let mut segments =
        [Segment::new(&mut first, &prompt[50..]), Segment::new(&mut second, &prompt[3..9])];
    states.push(try_forward(weights, &mut segments, None).unwrap());
    let mut third = second.clone();
    let mut child = SequenceCache::new(weights);
    for step in 0..3 {
        let token = [[step], [step + 4], [step + 9]];
        let mut segments = vec![
            Segment::new(&mut first, &token[0]),
            Segment::new(&mut second, &token[1]),
            Segment::new(&mut third, &token[2]),
        ];
        if step == 0 {
            segments.push(Segment::child(&mut child, &token[1], 1));
        } else {
            segments.push(Segment::new(&mut child, &token[0]));
        }
        states.push(try_forward(weights, &mut segments, None).unwrap());
    }
    let mut logits = Vec::new();
    let d = weights.config().hidden_size;
    let last: Vec<f32> = states.last().unwrap()[..2 * d].to_vec();
    try_batch_logits(weights, &last, &mut logits).unwrap();
    states.push(logits);
    states
}

fn compare_generation(device: &Device, number: Number, tolerance: f32) {
    let weights = weights(&config(Family::Qwen3, 16));
    let expected = generate(&weights);
    let found = generate(&weights.on_device(device, number).unwrap());
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_close(found, expected, tolerance, &format!("call {index}"));
    }
}

/// The last states of a long sequence, all of it read at once and token by token.
fn long_states(device: &Device, number: Number, window: Option<usize>) -> [Vec<f32>; 2] {
    let config = ModelConfig {
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        sliding_window: window,
        ..config(Family::Qwen3, 16)
    };
    let weights = weights(&config).on_device(device, number).unwrap();
    let prompt = tokens(1100, 3);
    let mut whole = SequenceCache::new(&weights);
    let states = forward(&weights, &mut [Segment::new(&mut whole, &prompt)], None);
    let mut parts = SequenceCache::new(&weights);
    forward(&weights, &mut [Segment::new(&mut parts, &prompt[..1097])], None);
    let mut last = Vec::new();
    for token in &prompt[1097..] {
        last.extend(forward(&weights, &mut [Segment::new(&mut parts, &[*token])], None));
    }
    [states[1097 * 24..].to_vec(), last]
}

fn compare_optimizer(device: &Device, number: Number) {
    let len = 1000;
    let step =
        AdamWStep { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, keep: 0.99, step: 0.01, root: 0.3 };
    let (mut weights, gradient) = (numbers(len, 0.3), numbers(len, 0.7));
    let (mut first, mut second) = (numbers(len, 0.1), vec![0.2; len]);
    let buffers = [&weights, &first, &second, &gradient].map(|v| device.upload_f32(v).unwrap());
    let [w, m, v, g] = &buffers;
    let copy = device.allocate(Kind::Number(number), len).unwrap();
    device.adamw((w, &copy), (m, v), g, &step, 0.5).unwrap();
    let half: Vec<f32> = gradient.iter().map(|g| g * 0.5).collect();
    adamw(&mut weights, &mut first, &mut second, &half, step);
    for (found, expected) in [(w, &weights), (m, &first), (v, &second)] {
        assert_close(&found.read().unwrap(), expected, 1e-6, "AdamW");
    }
    let tolerance = if number == Number::F32 { 1e-6 } else { 4e-3 };
    assert_close(&copy.read().unwrap(), &weights, tolerance, "the copy");

    let squares: f32 = device.square_sums(g).unwrap().read().unwrap().iter().sum();
    let expected: f32 = gradient.iter().map(|g| g * g).sum();
    assert!((squares / expected - 1.0).abs() < 1e-5);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_blocks_with_little_shared_memory_attend_alike() {
    let config = ModelConfig { num_hidden_layers: 1, ..config(Family::Qwen3, 16) };
    let weights = weights(&config);
    // Over the end of a chunk of keys, in more tiles than there are processors.
    let prompt = tokens(530, 1);
    let read = |emulator: Emulator| {
        let device = Device::with_driver(Arc::new(emulator));
        let weights = weights.on_device(&device, Number::Bf16).unwrap();
        TokenTree::new(&[&prompt]).read(&weights, None)
    };
    // Of 17 KiB that a block would have for several chunks, as others are short of 100.
    assert_eq!(read(Emulator::with_shared_bytes(14 << 10)), read(Emulator::default()));
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_states_do_not_leave_the_device_between_forward_and_backward() {
    let emulator = Arc::new(Emulator::default());
    let weights = weights(&ModelConfig { hidden_size: 256, ..config(Family::Qwen3, 16) });
    let device = Device::with_driver(emulator.clone());
    let mut trainer = super::DeviceTrainer::new(&device, &weights, Number::F32).unwrap();
    let sequences = [tokens(90, 1), tokens(60, 2)];
    let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let crossed = || {
        let counts = [&emulator.counts.uploaded, &emulator.counts.downloaded];
        counts.map(|count| count.swap(0, std::sync::atomic::Ordering::Relaxed))
    };
    crossed();
    trainer.update(&sequences, 1e-2, false).unwrap();
    let [uploaded, downloaded] = crossed();
    // Of a token there are a few words of what it is and of what is told of it, and no state.
    assert!(downloaded <= 150 * 32 + 4096, "{downloaded} bytes came back");
    assert!(uploaded < 150 * 512, "{uploaded} bytes went there");
}

fn compare_learning(device: &Device, number: Number) {
    let config = config(Family::Qwen3, 16);
    let weights = weights(&config);
    let mut trainer = super::DeviceTrainer::new(device, &weights, number).unwrap();
    let sequences = [tokens(9, 1), tokens(6, 2)];
    let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let mut losses = Vec::new();
    for _ in 0..8 {
        losses.push(trainer.update(&sequences, 1e-2, false).unwrap().loss);
    }
    assert!(losses[7] < 0.6 * losses[0], "{losses:?}");
    // What was learned is in the weights that come back.
    let learned = weights.with_parameters(trainer.parameters().unwrap());
    let tree = TokenTree::new(&sequences);
    let hidden = tree.try_read(&learned, None).unwrap();
    let mut draws = Vec::new();
    for (index, sequence) in sequences.iter().enumerate() {
        draws.extend((1..sequence.len()).map(|t| Draw {
            row: tree.rows(index)[t - 1],
            token: sequence[t],
            allowed: &[],
        }));
    }
    let told = try_judge(&learned, &hidden, &draws, 1.0).unwrap();
    let loss = -told.iter().map(|told| f64::from(told.logprob)).sum::<f64>() / draws.len() as f64;
    assert!(loss < losses[7], "{loss} after {losses:?}");
}

const F32: f32 = 2e-4;
const BF16: f32 = 6e-2;

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_kernels_train_as_the_cpu_does() {
    compare_training(&emulated(false), Number::F32, F32, [16, 34, 16]);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_kernels_train_as_the_cpu_does_in_bf16() {
    compare_training(&emulated(false), Number::Bf16, BF16, [16, 16, 34]);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_adapters_train_as_the_cpu_does() {
    compare_adapters(&emulated(false), Number::F32, F32);
    compare_adapters(&emulated(false), Number::Bf16, BF16);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_adapters_train_as_the_cpu_does() {
    let device = Device::open().unwrap();
    compare_adapters(&device, Number::F32, F32);
    compare_adapters(&device, Number::Bf16, BF16);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_kernels_generate_as_the_cpu_does() {
    compare_generation(&emulated(false), Number::F32, F32);
    compare_generation(&emulated(false), Number::Bf16, BF16);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_rows_do_not_depend_on_what_else_is_read_to_the_bit() {
    for number in [Number::F32, Number::Bf16] {
        for window in [None, Some(600)] {
            let [whole, parts] = long_states(&emulated(false), number, window);
            assert_eq!(whole, parts);
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn the_order_of_emulated_threads_does_not_matter() {
    let weights = weights(&config(Family::Qwen3, 16));
    let run =
        |descends| train(&weights.on_device(&emulated(descends), Number::F32).unwrap(), false);
    let (ascending, descending) = (run(false), run(true));
    assert_eq!(ascending.hidden, descending.hidden);
    assert_eq!(ascending.gradient, descending.gradient);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_optimizer_steps_as_the_cpu_does() {
    compare_optimizer(&emulated(false), Number::F32);
    compare_optimizer(&emulated(false), Number::Bf16);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn emulated_training_learns() {
    compare_learning(&emulated(false), Number::F32);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_training_learns() {
    let device = Device::open().unwrap();
    compare_learning(&device, Number::F32);
    compare_learning(&device, Number::Bf16);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_trains_as_the_cpu_does() {
    let device = Device::open().unwrap();
    for head_dims in [[16, 34, 64], [128, 64, 128]] {
        compare_training(&device, Number::F32, F32, head_dims);
    }
    for head_dims in [[16, 34, 64], [128, 256, 80]] {
        compare_training(&device, Number::Bf16, BF16, head_dims);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_generates_as_the_cpu_does() {
    let device = Device::open().unwrap();
    compare_generation(&device, Number::F32, F32);
    compare_generation(&device, Number::Bf16, BF16);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_rows_hardly_depend_on_what_else_is_read() {
    // The library chooses other products for other numbers of rows.
    let device = Device::open().unwrap();
    for (number, tolerance) in [(Number::F32, F32), (Number::Bf16, BF16)] {
        let [whole, parts] = long_states(&device, number, None);
        assert_close(&parts, &whole, tolerance, "state");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_optimizer_steps_as_the_cpu_does() {
    let device = Device::open().unwrap();
    compare_optimizer(&device, Number::F32);
    compare_optimizer(&device, Number::Bf16);
}

#[test]
fn wide_heads_are_refused() {
    let weights = weights(&config(Family::Llama, 264));
    let error = weights.on_device(&emulated(false), Number::Bf16).unwrap_err();
    assert!(matches!(error, super::DeviceError::Unsupported { .. }), "{error}");
    let weights = weights_of_width(136);
    assert!(weights.on_device(&emulated(false), Number::F32).is_err());
    assert!(weights.on_device(&emulated(false), Number::Bf16).is_ok());
}

fn weights_of_width(head_dim: usize) -> Weights {
    weights(&config(Family::Llama, head_dim))
}
