//! What is done about the gap between the policy that sampled and the one that is trained, beside any loss of a policy.

mod effective_size;
mod importance;
mod off_policy;
mod rejection;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use effective_size::{EffectiveSize, LearningRateOptions, LearningRateRule};
pub use importance::{ImportanceLevel, ImportanceOptions, Outside};
pub use off_policy::{OffPolicyMetrics, off_policy_metrics};
pub use rejection::{Rejected, RejectionOptions, SampleStatistic, Statistic};

use super::{MAX_LOG_RATIO, PolicyTokens, Tally};

/// What is done about the gap between the policy that sampled and the one that is trained, beside any objective of a
/// policy.
///
/// Rollouts come from `pi_roll`: other weights, other rounding. With `bypass`, two policies are told apart, `pi_roll` and
/// the one that is trained: ratios of the objective are relative to `pi_roll`, and what is here compares it with the
/// present weights. Otherwise there are three (decoupled PPO, arXiv 2110.00641; AReaL, arXiv 2505.24298): ratios are
/// relative to `pi_old`, the weights before the first update of the iteration, and what is here compares `pi_roll` with
/// these.
///
/// With `w` the [importance weight](ImportanceOptions) of a token and `m` the [masks](RejectionOptions), the objective's
/// loss of a token becomes `m w l`. What a mask of `reject` leaves out is no part of the sample any more, also where the
/// objective looks at sequences; what `off_policy_mask` and `outside = "zero"` hide only weighs nothing.
///
/// Metrics: those of [`OffPolicyMetrics`] and [`LearningRateOptions`] where something depends on all samples of an
/// update; `importance_mean`, `importance_max`, `rejected_fraction`, `off_policy_masked_fraction`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct CorrectionOptions {
    /// Whether ratios are relative to the policy that sampled, and that is compared with the present one. Default false:
    /// ratios are relative to the weights before the first update of the iteration, and these are compared.
    pub bypass: bool,
    /// What tokens weigh by how likely they are under either policy. Default absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<ImportanceOptions>,
    /// What is left out; what one of them leaves out is. Default empty.
    pub reject: Vec<RejectionOptions>,
    /// Hides tokens with a negative advantage in samples with `mean_t (log pi_roll - log pi)` above it, `pi` being the
    /// present policy (off-policy sequence masking, DeepSeek-V3.2); 0 or more, in nats. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_policy_mask: Option<f64>,
    /// What the loss is divided by where something is left out. Default `all`.
    pub denominator: Denominator,
    /// Shortens steps on samples that tell little of the present policy (VCPO). Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<LearningRateOptions>,
}

/// What the loss is divided by where something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Denominator {
    /// What there was before, as in AReaL.
    #[default]
    All,
    /// What is left, as in verl.
    Kept,
}

impl CorrectionOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.importance.iter().flat_map(ImportanceOptions::problems));
        problems.extend(self.reject.iter().flat_map(RejectionOptions::problems));
        problems.extend(self.learning_rate.iter().flat_map(LearningRateOptions::problems));
        if let Some(delta) = self.off_policy_mask
            && !(delta.is_finite() && delta >= 0.0)
        {
            problems.push(format!("`off_policy_mask` {delta} must not be negative"));
        }
        if self.denominator == Denominator::Kept && self.reject.is_empty() {
            problems.push("`denominator` has no effect: `reject` is empty".to_owned());
        }
        let truncates = |rule: &RejectionOptions| {
            rule.action == Rejected::Truncate && self.importance.is_none()
        };
        if self.reject.iter().any(truncates) {
            problems.push("`reject.action` truncates weights, and there is no `importance`".into());
        }
        problems.iter().map(|problem| format!("correction: {problem}")).collect()
    }

    /// Whether something depends on all samples of an update.
    pub(super) fn is_of_batch(&self) -> bool {
        self.denominator == Denominator::Kept
            || self.learning_rate.is_some()
            || self.importance.as_ref().is_some_and(|importance| importance.normalize)
    }

    /// Whether the present log-probabilities of all samples are needed at the beginning of an update.
    pub(super) fn needs_present(&self) -> bool {
        self.bypass && self.is_of_batch()
    }

    /// `log pi_train - log pi_roll` of each token.
    fn gaps(&self, tokens: &PolicyTokens) -> Vec<f64> {
        let trained = if self.bypass { &tokens.detached } else { &tokens.old };
        trained.iter().zip(&tokens.behavior).map(|(trained, rolled)| trained - rolled).collect()
    }

    /// Weighs and leaves out tokens; weights are divided by `mean`.
    pub(super) fn apply(&self, tokens: &mut PolicyTokens, mean: f64, tally: &mut Tally) {
        let gaps = self.gaps(tokens);
        let mut weights = match &self.importance {
            Some(importance) => importance.raw(&gaps),
            None => vec![1.0; gaps.len()],
        };
        let mut kept = vec![true; gaps.len()];
        for rule in &self.reject {
            let within = rule.within(&gaps);
            match rule.action {
                Rejected::Drop => {
                    kept.iter_mut().zip(within).for_each(|(kept, within)| *kept &= within);
                }
                Rejected::Truncate => {
                    for (weight, _) in weights.iter_mut().zip(within).filter(|(_, within)| !within)
                    {
                        *weight = rule.truncated(*weight);
                    }
                }
            }
        }
        if let Some(importance) = &self.importance {
            weights.iter_mut().for_each(|weight| *weight = importance.bounded(*weight) / mean);
            for weight in &weights {
                tally.add_mean("importance_mean", *weight);
                tally.add_max("importance_max", *weight);
            }
        }
        if let Some(delta) = self.off_policy_mask {
            let apart = tokens.behavior.iter().zip(&tokens.detached).map(|(roll, now)| roll - now);
            let is_far = tokens.mean(apart) > delta;
            for (weight, advantage) in weights.iter_mut().zip(&tokens.advantages) {
                let is_hidden = is_far && *advantage < 0.0;
                tally.add_mean("off_policy_masked_fraction", is_hidden.into());
                if is_hidden {
                    *weight = 0.0;
                }
            }
        }
        if !self.reject.is_empty() {
            kept.iter().for_each(|kept| tally.add_mean("rejected_fraction", (!kept).into()));
        }
        for (importance, weight) in tokens.importance.iter_mut().zip(weights) {
            *importance *= weight;
        }
        if kept.contains(&false) {
            tokens.retain(&kept);
        }
    }

    /// What importance weights are divided by: 1 unless they are normalised.
    pub(super) fn mean_importance(&self, rows: &[PolicyTokens]) -> f64 {
        let gaps: Vec<Vec<f64>> = rows.iter().map(|row| self.gaps(row)).collect();
        self.importance.as_ref().map_or(1.0, |importance| importance.mean(&gaps))
    }

    /// The factor of the learning rate.
    pub(super) fn learning_rate_scale(&self, rows: &[PolicyTokens], tally: &mut Tally) -> f64 {
        let Some(options) = &self.learning_rate else { return 1.0 };
        let weight = |row: &PolicyTokens| {
            let sum: f64 = self.gaps(row).iter().sum();
            sum.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
        };
        let size = EffectiveSize::of(rows.iter().map(weight));
        tally.add_mean("effective_sample_fraction", size.fraction());
        let scale = options.scale(size.fraction());
        tally.add_mean("learning_rate_of_effective_samples", scale);
        scale
    }

    /// How far the policies are apart.
    pub(super) fn tally(&self, rows: &[PolicyTokens], tally: &mut Tally) {
        let trained = |row: &PolicyTokens| match self.bypass {
            true => row.detached.clone(),
            false => row.old.clone(),
        };
        let rows: Vec<(Vec<f64>, Vec<f64>)> =
            rows.iter().map(|row| (trained(row), row.behavior.clone())).collect();
        if let Some(metrics) = off_policy_metrics(&rows) {
            metrics.named().into_iter().for_each(|(name, value)| tally.add_mean(name, value));
        }
    }
}
