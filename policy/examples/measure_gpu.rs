//! What the decoder reaches on the machine's GPU, against what the GPU reaches at best.
//!
//! `cargo run --release -p spar-policy --example measure_gpu [-- small]`

use std::time::Instant;

use spar_core::Seed;
use spar_policy::cuda::{Device, DeviceTrainer, Number};
use spar_policy::decoder::{Segment, SequenceCache, TokenTree};
use spar_policy::head::{Draw, try_best, try_judge};
use spar_policy::{Family, ModelConfig, Weights, initial_parameters};

/// The shape of Qwen2.5-1.5B.
fn large() -> ModelConfig {
    ModelConfig {
        family: Family::Qwen2,
        vocab_size: 151_936,
        hidden_size: 1536,
        intermediate_size: 8960,
        num_hidden_layers: 28,
        num_attention_heads: 12,
        num_key_value_heads: 2,
        head_dim: 128,
        max_position_embeddings: 32_768,
        rope_theta: 1e6,
        partial_rotary_factor: 1.0,
        smear_tokens: 0,
        token_match_bias: false,
        ..ModelConfig::default()
    }
}

fn small() -> ModelConfig {
    ModelConfig { vocab_size: 8192, hidden_size: 512, intermediate_size: 1536, ..large() }
}

fn tokens(count: usize, vocabulary: usize, salt: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * 7919 + i * i * 31 + salt * 101) % vocabulary) as u32).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = if std::env::args().any(|word| word == "small") { small() } else { large() };
    let device = Device::open()?;
    let products = device.measure_products(8192)?;
    let copies = device.measure_copies(1 << 30)?;
    println!("{}: products {:.0} TFLOP/s", device.info().name, products / 1e12);
    println!("{}: copies {:.2} TB/s", device.info().name, copies / 1e12);

    let weights = Weights::new(&config, initial_parameters(&config, Seed::from_u64(1)));
    train(&device, &weights, products)?;
    decode(&device, &weights, copies)
}

/// Updates of 8 sequences of 1,024 tokens.
fn train(
    device: &Device,
    weights: &Weights,
    ceiling: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let config = weights.config();
    let sequences: Vec<Vec<u32>> = (0..8).map(|i| tokens(1024, config.vocab_size, i)).collect();
    let sequences: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let mut trainer = DeviceTrainer::new(device, weights, Number::Bf16)?;
    let mut seconds = Vec::new();
    for round in 0..8 {
        let start = Instant::now();
        let update = trainer.update(&sequences, 1e-4, false)?;
        device.wait()?;
        if round >= 3 {
            seconds.push(start.elapsed().as_secs_f64());
        }
        println!("update {round}: loss {:.4}, norm {:.3}", update.loss, update.gradient_norm);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let count: usize = sequences.iter().map(|sequence| sequence.len()).sum();
    // Two per weight forward and four backward; embeddings are looked up, not multiplied; the logits
    // of the head are computed twice. Attention: four per channel and pair forward, twice that back.
    let head = (config.vocab_size * config.hidden_size) as f64;
    let matrices = weights.parameters().data.len() as f64
        - if config.tie_word_embeddings { head } else { 2.0 * head };
    let pairs: f64 = sequences.iter().map(|s| (s.len() * s.len()) as f64 / 2.0).sum();
    let attention = 12.0 * pairs * (config.query_width() * config.num_hidden_layers) as f64;
    let operations = 6.0 * (matrices + head) * count as f64 + attention;
    println!(
        "training: {:.0} tokens/s, {:.0} TFLOP/s, {:.1} % of the products' ceiling",
        count as f64 / median,
        operations / median / 1e12,
        100.0 * operations / median / ceiling
    );
    Ok(())
}

/// 64 sequences behind prompts of 1,024 tokens, 32 tokens each, the most probable one each time, by graphs
/// and without them in turn; then the same tokens are read at once.
fn decode(
    device: &Device,
    weights: &Weights,
    ceiling: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    const SEQUENCES: usize = 64;
    const STEPS: usize = 32;
    /// Steps that are not counted: graphs are recorded in them.
    const FIRST: usize = 4;
    let config = weights.config().clone();
    let prompts: Vec<Vec<u32>> =
        (0..SEQUENCES).map(|i| tokens(1024, config.vocab_size, i)).collect();
    let placed = [device.clone(), device.without_graphs()]
        .map(|device| weights.on_device(&device, Number::Bf16));
    let [with_graphs, without] = placed;
    let placed = [with_graphs?, without?];
    let mut caches = placed.each_ref().map(|weights| vec![SequenceCache::new(weights); SEQUENCES]);
    let mut next = placed.each_ref().map(|_| prompts.clone());
    let mut all = prompts.clone();
    let mut sampled = vec![Vec::new(); SEQUENCES];
    let mut seconds = [0.0; 2];
    for step in 0..=STEPS + FIRST {
        for (way, weights) in placed.iter().enumerate() {
            let start = Instant::now();
            let pairs = caches[way].iter_mut().zip(&next[way]);
            let mut segments: Vec<_> =
                pairs.map(|(cache, tokens)| Segment::new(cache, tokens)).collect();
            let best = try_best(weights, &mut segments)?;
            if step > FIRST {
                seconds[way] += start.elapsed().as_secs_f64() / STEPS as f64;
            }
            if way == 0 {
                for (index, (token, logprob)) in best.iter().enumerate() {
                    all[index].push(*token);
                    sampled[index].push(*logprob);
                }
            }
            next[way] = best.iter().map(|(token, _)| vec![*token]).collect();
        }
    }
    let weight_bytes = 2.0 * weights.parameters().data.len() as f64;
    let of_token = 4.0 * (config.key_width() * config.num_hidden_layers) as f64;
    let keys = of_token * (SEQUENCES * (1024 + FIRST + STEPS / 2)) as f64;
    let bound = (weight_bytes + keys) / ceiling;
    let [step, plain] = seconds;
    println!(
        "decode of {SEQUENCES}: {:.2} ms a step, draws included, bound {:.2} ms: {:.0} %; without graphs \
         {:.2} ms, {:.2} times that",
        1e3 * step,
        1e3 * bound,
        100.0 * bound / step,
        1e3 * plain,
        plain / step
    );
    let weights = &placed[0];

    let sequences: Vec<&[u32]> = all.iter().map(Vec::as_slice).collect();
    let tree = TokenTree::new(&sequences);
    let hidden = tree.try_read(weights, None)?;
    let mut draws = Vec::new();
    for (index, sequence) in sequences.iter().enumerate() {
        draws.extend((1024..sequence.len()).map(|t| Draw {
            row: tree.rows(index)[t - 1],
            token: sequence[t],
            allowed: &[],
        }));
    }
    let judged = try_judge(weights, &hidden, &draws, 1.0)?;
    let pairs = judged.iter().zip(sampled.iter().flatten());
    let differences: Vec<f32> = pairs.map(|(a, b)| (a.logprob - b).abs()).collect();
    let largest = differences.iter().copied().fold(0.0, f32::max);
    let mean = differences.iter().sum::<f32>() / differences.len() as f32;
    println!(
        "log-probabilities, sampled and recomputed: largest difference {largest:.2e}, mean {mean:.2e}"
    );
    Ok(())
}
