//! Tokens per second of the decoder on one thread: training (forward, log-probabilities, backward)
//! and decoding a batch.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spar_core::Seed;
use spar_policy::decoder::{Segment, SequenceCache, Tape, backward, forward};
use spar_policy::head::{Draw, log_probabilities, log_probabilities_backward};
use spar_policy::{ModelConfig, Weights, initial_parameters};

fn decoder(criterion: &mut Criterion) {
    let config = ModelConfig { vocab_size: 512, ..ModelConfig::default() };
    let weights = Weights::new(&config, initial_parameters(&config, Seed::from_u64(0)));
    let rows: Vec<Vec<u32>> = (0..8_u32)
        .map(|r| (0..400_u32).map(|t| (t * 7 + r * 13 + t * t) % 512).collect())
        .collect();
    let tokens: usize = rows.iter().map(Vec::len).sum();

    let mut group = criterion.benchmark_group("decoder");
    group.sample_size(10).throughput(Throughput::Elements(tokens as u64));
    group.bench_function("train 8 x 400", |bencher| {
        let mut gradient = vec![0.0; weights.parameters().data.len()];
        bencher.iter(|| {
            let mut caches = vec![SequenceCache::new(&weights); rows.len()];
            let mut segments: Vec<_> = caches
                .iter_mut()
                .zip(&rows)
                .map(|(cache, tokens)| Segment { cache, tokens })
                .collect();
            let mut tape = Tape::default();
            let hidden = forward(&weights, &mut segments, Some(&mut tape));
            let draws: Vec<_> = (0..tokens - 1)
                .map(|row| Draw { row, token: rows[row / 400][row % 400], allowed: &[] })
                .collect();
            let logprobs = log_probabilities(&weights, &hidden, &draws, 1.0);
            let mut dhidden = vec![0.0; hidden.len()];
            let dlogprobs = vec![1.0; logprobs.len()];
            let (h, g) = (&mut dhidden, &mut gradient);
            log_probabilities_backward(&weights, &hidden, &draws, 1.0, &dlogprobs, h, g);
            backward(&weights, &caches, &tape, &dhidden, &mut gradient);
        });
    });
    group.bench_function("prefill 8 x 400", |bencher| {
        bencher.iter(|| {
            let mut caches = vec![SequenceCache::new(&weights); rows.len()];
            let mut segments: Vec<_> = caches
                .iter_mut()
                .zip(&rows)
                .map(|(cache, tokens)| Segment { cache, tokens })
                .collect();
            forward(&weights, &mut segments, None)
        });
    });
    group.throughput(Throughput::Elements(64));
    group.bench_function("decode 64 at 400", |bencher| {
        let mut caches = vec![SequenceCache::new(&weights); 64];
        for (i, cache) in caches.iter_mut().enumerate() {
            forward(&weights, &mut [Segment { cache, tokens: &rows[i % 8] }], None);
        }
        bencher.iter(|| {
            caches.iter_mut().for_each(|cache| cache.truncate(400));
            let mut segments: Vec<_> =
                caches.iter_mut().map(|cache| Segment { cache, tokens: &[7] }).collect();
            forward(&weights, &mut segments, None)
        });
    });
    group.finish();
}

criterion_group!(benches, decoder);
criterion_main!(benches);
