//! Soft adaptive policy optimisation: a smooth gate in place of clipping.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::sigmoid::sigmoid;
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`SapoGate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SapoGateOptions {
    /// How steep the gate is for tokens with positive advantage; positive. Default 1, the paper's.
    pub tau_positive: f64,
    /// How steep it is for all others; positive. Default 1.05, the paper's.
    pub tau_negative: f64,
}

impl Default for SapoGateOptions {
    fn default() -> Self {
        Self { tau_positive: 1.0, tau_negative: 1.05 }
    }
}

impl NamedOptions for SapoGateOptions {
    fn problems(&self) -> Vec<String> {
        let first = positive("tau_positive", self.tau_positive);
        first.into_iter().chain(positive("tau_negative", self.tau_negative)).collect()
    }
}

/// The policy gradient with a smooth gate on the ratio (SAPO, arXiv 2511.20347; not the swarm of the same name).
///
/// `l = -A (4 / tau) sigmoid(tau (r - 1))` with `r = pi / pi_old`, `tau` by the advantage's sign. At `r = 1` the derivative
/// is that of the policy gradient. The paper's loss is the mean over sequences of the mean over their tokens:
/// `aggregation = "sample_mean"`.
///
/// Metric: `gate_mean`, the mean over tokens of the derivative's factor `4 sigmoid (1 - sigmoid)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SapoGate {
    options: SapoGateOptions,
}

impl SapoGate {
    /// The objective with these options.
    pub fn new(options: SapoGateOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for SapoGate {
    fn name(&self) -> &'static str {
        "sapo_gate"
    }

    /// The gate's steepness goes by the advantage's sign.
    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let SapoGateOptions { tau_positive, tau_negative } = self.options;
        PolicyLosses::by_token(tokens, |_, token| {
            let advantage = token.advantage;
            let tau = if advantage > 0.0 { tau_positive } else { tau_negative };
            let (log_ratio, has_slope) = token.log_ratio();
            let ratio = log_ratio.exp();
            let gate = sigmoid(tau * (ratio - 1.0));
            let width = 4.0 * gate * (1.0 - gate);
            tally.add_mean("gate_mean", width);
            let slope = if has_slope { -advantage * width * ratio } else { 0.0 };
            (-advantage * gate * 4.0 / tau, slope)
        })
    }
}
