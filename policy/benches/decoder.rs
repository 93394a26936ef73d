//! Tokens per second of the decoder on one thread: training (forward, log-probabilities, backward)
//! of separate sequences and of a group that shares prefixes, and decoding a batch.

use std::collections::BTreeSet;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spar_core::Seed;
use spar_policy::decoder::{Segment, SequenceCache, Tape, TokenTree, backward, forward};
use spar_policy::head::{Draw, DrawGradient, DrawLoss, judge, judge_backward};
use spar_policy::{ModelConfig, WeightGradient, Weights, initial_parameters};

/// Adds the gradient of all next tokens' log-probabilities, those of shared prefixes once.
fn train(weights: &Weights, sequences: &[&[u32]], mut tape: Tape, gradient: &mut [f32]) {
    let tree = TokenTree::new(sequences);
    let hidden = tree.read(weights, Some(&mut tape));
    let next = |index: usize| tree.rows(index).iter().copied().zip(sequences[index][1..].to_vec());
    let next: BTreeSet<(usize, u32)> = (0..sequences.len()).flat_map(next).collect();
    let draws: Vec<_> =
        next.into_iter().map(|(row, token)| Draw { row, token, allowed: &[] }).collect();
    let judged = judge(weights, &hidden, &draws, 1.0);
    let slopes = vec![DrawGradient { logprob: 1.0, entropy: 0.0 }; draws.len()];
    let mut dhidden = vec![0.0; hidden.len()];
    let loss = DrawLoss {
        draws: &draws,
        temperature: 1.0,
        told: &judged,
        derivatives: &slopes,
        dstates_td: None,
    };
    judge_backward(weights, &hidden, &loss, &mut dhidden, &mut WeightGradient::Full(gradient));
    backward(weights, &tape, &dhidden, gradient);
}

/// Eight trajectories of a 512-token prompt and 20 turns of 32 tokens that fork in two at turns 5,
/// 10 and 15.
fn group() -> Vec<Vec<u32>> {
    let token = |branch: usize, turn: usize, place: usize| {
        ((branch * 131 + turn * 37 + place * place * 7 + place) % 512) as u32
    };
    let trajectory = |index: usize| {
        let prompt = (0..512).map(|place| token(0, 99, place));
        let turns = (0..20).flat_map(|turn| {
            // Which of the branches alive at this turn.
            let branch = index >> (3 - turn / 5);
            (0..32).map(move |place| token(branch, turn, place))
        });
        prompt.chain(turns).collect()
    };
    (0..8).map(trajectory).collect()
}

fn decoder(criterion: &mut Criterion) {
    let config = ModelConfig { vocab_size: 512, ..ModelConfig::default() };
    let weights = Weights::new(&config, initial_parameters(&config, Seed::from_u64(0)));
    let rows: Vec<Vec<u32>> = (0..8_u32)
        .map(|r| (0..400_u32).map(|t| (t * 7 + r * 13 + t * t) % 512).collect())
        .collect();
    let tokens: usize = rows.iter().map(Vec::len).sum();
    let mut gradient = vec![0.0; weights.parameters().data.len()];

    let mut bench = criterion.benchmark_group("decoder");
    bench.sample_size(10).throughput(Throughput::Elements(tokens as u64));
    let sequences: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    bench.bench_function("train 8 x 400", |bencher| {
        bencher.iter(|| train(&weights, &sequences, Tape::default(), &mut gradient));
    });
    bench.bench_function("train 8 x 400, recomputing", |bencher| {
        bencher.iter(|| train(&weights, &sequences, Tape::recomputing(), &mut gradient));
    });

    // The same trajectories, as a tree and each alone; throughput counts the tokens of all.
    let trajectories = group();
    let sequences: Vec<&[u32]> = trajectories.iter().map(Vec::as_slice).collect();
    let dense: usize = sequences.iter().map(|sequence| sequence.len()).sum();
    println!("group: {dense} tokens in rows, {} in the tree", TokenTree::new(&sequences).len());
    bench.throughput(Throughput::Elements(dense as u64));
    bench.bench_function("train a group as a tree", |bencher| {
        bencher.iter(|| train(&weights, &sequences, Tape::default(), &mut gradient));
    });
    bench.bench_function("train a group row by row", |bencher| {
        bencher.iter(|| {
            for sequence in &sequences {
                train(&weights, &[sequence], Tape::default(), &mut gradient);
            }
        });
    });

    bench.throughput(Throughput::Elements(tokens as u64));
    bench.bench_function("prefill 8 x 400", |bencher| {
        bencher.iter(|| {
            let mut caches = vec![SequenceCache::new(&weights); rows.len()];
            let mut segments: Vec<_> = caches
                .iter_mut()
                .zip(&rows)
                .map(|(cache, tokens)| Segment::new(cache, tokens))
                .collect();
            forward(&weights, &mut segments, None)
        });
    });
    bench.throughput(Throughput::Elements(64));
    bench.bench_function("decode 64 at 400", |bencher| {
        let mut caches = vec![SequenceCache::new(&weights); 64];
        for (i, cache) in caches.iter_mut().enumerate() {
            forward(&weights, &mut [Segment::new(cache, &rows[i % 8])], None);
        }
        bencher.iter(|| {
            caches.iter_mut().for_each(|cache| cache.truncate(400));
            let mut segments: Vec<_> =
                caches.iter_mut().map(|cache| Segment::new(cache, &[7])).collect();
            forward(&weights, &mut segments, None)
        });
    });
    bench.finish();
}

criterion_group!(benches, decoder);
criterion_main!(benches);
