//! How tokens' advantages and log-probabilities vary together over an update.

use super::PolicyTokens;

/// `(A_t - mean A) (log pi_t - mean log pi)` of every token of an update, the means being over all of them.
pub(super) fn covariances(samples: &[PolicyTokens]) -> Vec<Vec<f64>> {
    let count: usize = samples.iter().map(PolicyTokens::len).sum();
    let mean = |of: fn(&PolicyTokens) -> &Vec<f64>| {
        samples.iter().flat_map(of).sum::<f64>() / count.max(1) as f64
    };
    let (advantage, logprob) = (mean(|row| &row.advantages), mean(|row| &row.detached));
    let of_row = |row: &PolicyTokens| {
        let both = row.advantages.iter().zip(&row.detached);
        both.map(|(a, log)| (a - advantage) * (log - logprob)).collect()
    };
    samples.iter().map(of_row).collect()
}
