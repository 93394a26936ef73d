//! Choosing by log-probability.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The place of a draw by log-probability; takes one number from the generator.
pub(crate) fn pick(logprobs: &[f32], rng: &mut ChaCha8Rng) -> usize {
    let mut left: f32 = rng.random();
    let passes = |logprob: &f32| {
        left -= logprob.exp();
        left < 0.0
    };
    // Where rounding leaves something over, the last place that can be drawn has it.
    let last = || logprobs.iter().rposition(|logprob| *logprob > f32::NEG_INFINITY);
    logprobs.iter().position(passes).or_else(last).unwrap_or(logprobs.len() - 1)
}

/// The first of the best places.
pub(crate) fn most_probable(logprobs: &[f32]) -> usize {
    let better = |best, place| if logprobs[place] > logprobs[best] { place } else { best };
    (0..logprobs.len()).fold(0, better)
}

/// `-sum(p ln p)` in nats.
pub(crate) fn entropy(logprobs: &[f32]) -> f32 {
    let terms = logprobs.iter().filter(|logprob| **logprob > f32::NEG_INFINITY);
    -terms.map(|logprob| f64::from(*logprob).exp() * f64::from(*logprob)).sum::<f64>() as f32
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;

    #[test]
    fn draws_come_as_often_as_they_are_probable() {
        let logprobs = [0.5_f32, 0.2, 0.0, 0.3].map(f32::ln);
        let mut rng = Seed::from_u64(1).rng();
        let mut counts = [0_u32; 4];
        (0..10_000).for_each(|_| counts[pick(&logprobs, &mut rng)] += 1);
        assert_eq!(counts[2], 0);
        for (count, share) in counts.iter().zip([0.5, 0.2, 0.0, 0.3]) {
            // Five standard deviations.
            assert!((f64::from(*count) / 10_000.0 - share).abs() < 0.025, "{counts:?}");
        }
    }

    #[test]
    fn entropy_is_in_nats() {
        assert!((entropy(&[0.25_f32.ln(); 4]) - 4.0_f32.ln()).abs() < 1e-6);
        assert_eq!(entropy(&[0.0, f32::NEG_INFINITY]), 0.0);
        assert_eq!(most_probable(&[-1.0, -0.5, -0.5]), 1);
    }
}
