//! How far the policy that is trained is from the one that sampled.

use crate::objectives::MAX_LOG_RATIO;

/// How far the policy that is trained is from the one that sampled; as in verl's `compute_offpolicy_metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OffPolicyMetrics {
    /// Mean over samples of `exp(-mean_t log pi_train)`.
    pub training_perplexity: f64,
    /// Mean over samples of its logarithm.
    pub training_log_perplexity: f64,
    /// Mean over tokens of `log pi_roll - log pi_train`, in nats.
    pub kl: f64,
    /// Mean over tokens of `r - 1 - log r` with `r = pi_train / pi_roll`.
    pub k3_kl: f64,
    /// As of training.
    pub rollout_perplexity: f64,
    /// As of training.
    pub rollout_log_perplexity: f64,
    /// Mean over samples of the logarithm of their perplexities' ratio, training beside rollout.
    pub log_perplexity_difference: f64,
    /// Mean of its absolute value.
    pub log_perplexity_distance: f64,
    /// The largest.
    pub log_perplexity_difference_max: f64,
    /// The smallest.
    pub log_perplexity_difference_min: f64,
    /// Mean over samples of the perplexities' ratio.
    pub perplexity_ratio: f64,
    /// Mean over tokens of `r^2`, less 1.
    pub chi2_token: f64,
    /// Mean over samples of `(prod_t r)^2`, less 1.
    pub chi2_sequence: f64,
}

impl OffPolicyMetrics {
    /// All numbers by the names of metrics.
    pub fn named(&self) -> [(&'static str, f64); 13] {
        [
            ("training_perplexity", self.training_perplexity),
            ("training_log_perplexity", self.training_log_perplexity),
            ("off_policy_kl", self.kl),
            ("off_policy_k3", self.k3_kl),
            ("rollout_perplexity", self.rollout_perplexity),
            ("rollout_log_perplexity", self.rollout_log_perplexity),
            ("log_perplexity_difference", self.log_perplexity_difference),
            ("log_perplexity_distance", self.log_perplexity_distance),
            ("log_perplexity_difference_max", self.log_perplexity_difference_max),
            ("log_perplexity_difference_min", self.log_perplexity_difference_min),
            ("perplexity_ratio", self.perplexity_ratio),
            ("chi2_token", self.chi2_token),
            ("chi2_sequence", self.chi2_sequence),
        ]
    }
}

/// The distance of two policies on samples, by the log-probabilities of their tokens under the policy that is trained and
/// under the one that sampled. A sample without tokens counts with log-probability 0. `None` without any token.
pub fn off_policy_metrics(rows: &[(Vec<f64>, Vec<f64>)]) -> Option<OffPolicyMetrics> {
    let tokens: usize = rows.iter().map(|(trained, _)| trained.len()).sum();
    if tokens == 0 {
        return None;
    }
    let (tokens, samples) = (tokens as f64, rows.len() as f64);
    let mut sum = OffPolicyMetrics {
        log_perplexity_difference_max: f64::NEG_INFINITY,
        log_perplexity_difference_min: f64::INFINITY,
        ..OffPolicyMetrics::default()
    };
    let held = |x: f64| x.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
    for (trained, rolled) in rows {
        let length = trained.len().max(1) as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / length;
        let (of_trained, of_rolled) = (mean(trained), mean(rolled));
        sum.training_perplexity += (-of_trained).exp() / samples;
        sum.training_log_perplexity -= of_trained / samples;
        sum.rollout_perplexity += (-of_rolled).exp() / samples;
        sum.rollout_log_perplexity -= of_rolled / samples;
        let apart = of_rolled - of_trained;
        sum.log_perplexity_difference += apart / samples;
        sum.log_perplexity_distance += apart.abs() / samples;
        sum.log_perplexity_difference_max = sum.log_perplexity_difference_max.max(apart);
        sum.log_perplexity_difference_min = sum.log_perplexity_difference_min.min(apart);
        sum.perplexity_ratio += apart.exp() / samples;
        let mut log_ratios = 0.0;
        for (trained, rolled) in trained.iter().zip(rolled) {
            let log_ratio = trained - rolled;
            log_ratios += log_ratio;
            sum.kl -= log_ratio / tokens;
            sum.k3_kl += (held(log_ratio).exp_m1() - log_ratio) / tokens;
            sum.chi2_token += (2.0 * held(log_ratio)).exp() / tokens;
        }
        sum.chi2_sequence += (2.0 * held(log_ratios)).exp() / samples;
    }
    sum.chi2_token -= 1.0;
    sum.chi2_sequence -= 1.0;
    Some(sum)
}
