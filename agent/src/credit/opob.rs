//! VCPO's baseline: the one of least variance where samples were drawn by other weights.

/// A sample, as the baseline sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpobSample {
    /// What is compared: its reward in a group, its advantage in a minibatch.
    pub value: f64,
    /// The ratio of its probabilities now and when it was drawn; 1 leaves it out.
    pub ratio: f64,
    /// Length of the gradient of its log-probability.
    pub gradient_norm: f64,
    /// Its sampled tokens, where weights are to be divided by their square; absent: they are not.
    pub tokens: Option<usize>,
}

impl OpobSample {
    fn weight(&self) -> f64 {
        let per_token = self.tokens.map_or(1.0, |tokens| (tokens.max(1) as f64).powi(2));
        (self.ratio * self.gradient_norm).powi(2) / per_token
    }
}

/// The optimal off-policy baseline (VCPO, and its code `compute_opob_baseline`).
///
/// `b = sum_i w_i R_i / (sum_i w_i + 1e-8)`, `w_i = ratio_i^2 |g_i|^2`, divided by the squared length where that is given: of all baselines
/// the one that makes the variance of `ratio (R - b) g` least. 0 of nothing.
pub fn opob_mean(samples: &[OpobSample]) -> f64 {
    let total: f64 = samples.iter().map(OpobSample::weight).sum();
    let sum: f64 = samples.iter().map(|sample| sample.weight() * sample.value).sum();
    sum / (total + 1e-8)
}

/// The same with a weighted median in place of the mean: the least value at which half of the weight is reached. 0 of nothing.
pub fn opob_median(samples: &[OpobSample]) -> f64 {
    let mut sorted: Vec<&OpobSample> = samples.iter().collect();
    sorted.sort_by(|one, two| one.value.total_cmp(&two.value));
    let half = samples.iter().map(OpobSample::weight).sum::<f64>() / 2.0;
    let mut reached = 0.0;
    let found = sorted.iter().find(|sample| {
        reached += sample.weight();
        reached >= half
    });
    found.map_or(0.0, |sample| sample.value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::test_vectors::{cases, number};
    use super::*;

    #[test]
    fn baselines_equal_the_reference() {
        cases("vcpo_ess_opob", |case, near| {
            let records = case.inputs["records"].as_array().unwrap();
            let sample =
                |record: &Value, value: &str, ratio: Option<&str>, by_len: bool| OpobSample {
                    value: number(record, value),
                    ratio: ratio.map_or(1.0, |ratio| number(record, ratio)),
                    gradient_norm: number(record, "grad_norm_unscaled"),
                    tokens: by_len.then(|| number(record, "response_length") as usize),
                };
            let group = |uid: u64, ratio: Option<&str>, by_len: bool| -> Vec<OpobSample> {
                let of_group = records.iter().filter(|it| it["group_uid"].as_u64() == Some(uid));
                of_group.map(|it| sample(it, "reward_scalar", ratio, by_len)).collect()
            };
            let output = |name: &str| number(&case.outputs, name);
            let ratio = Some("rollout_seq_is");
            near(opob_mean(&group(0, ratio, false)), output("opob_group0_mean"));
            near(opob_mean(&group(1, ratio, false)), output("opob_group1_mean"));
            near(opob_mean(&group(0, None, false)), output("opob_group0_no_is"));
            let clipped = Some("rollout_seq_is_clipped");
            near(opob_mean(&group(0, clipped, false)), output("opob_group0_clipped"));
            near(opob_mean(&group(0, ratio, true)), output("opob_group0_len"));
            near(opob_median(&group(0, ratio, false)), output("opob_group0_median"));
            let all: Vec<OpobSample> =
                records.iter().map(|it| sample(it, "advantage_scalar", ratio, false)).collect();
            near(opob_mean(&all), output("opob_minibatch"));
        });
    }

    proptest! {
        #[test]
        fn no_other_baseline_has_less_variance(
            samples in prop::collection::vec((-1.0..1.0, 0.1..3.0, 0.1..3.0), 2..20),
            shift in -0.5..0.5,
        ) {
            let samples: Vec<OpobSample> = samples
                .into_iter()
                .map(|(value, ratio, gradient_norm)| OpobSample { value, ratio, gradient_norm, tokens: None })
                .collect();
            let second_moment = |baseline: f64| -> f64 {
                samples.iter().map(|it| it.weight() * (it.value - baseline).powi(2)).sum()
            };
            let best = opob_mean(&samples);
            prop_assert!(second_moment(best) <= second_moment(best + shift) + 1e-9);
        }
    }
}
