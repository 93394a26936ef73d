//! What an expert says and an amateur does not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::{DrawRule, RuleModel};

/// Options of [`Contrastive`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ContrastiveOptions {
    /// The amateur: a checkpoint of the same vocabulary, or `base`, the weights below the policy's adapter. Default `base`.
    pub(super) amateur: String,
    /// How much of the difference is added, 0 to 100; 0 draws from the expert. Default 0.5.
    pub(super) beta: f32,
    /// Share of the best token's probability under the expert below which a token is left out, 0 to 1; 0 leaves out none.
    /// Default 0.1.
    pub(super) alpha: f32,
    /// Divides the amateur's logits, above 0 up to 10. Default 1.
    pub(super) amateur_temperature: f32,
}

impl Default for ContrastiveOptions {
    fn default() -> Self {
        Self { amateur: "base".to_owned(), beta: 0.5, alpha: 0.1, amateur_temperature: 1.0 }
    }
}

impl NamedOptions for ContrastiveOptions {
    fn problems(&self) -> Vec<String> {
        let Self { amateur, beta, alpha, amateur_temperature } = self;
        let mut problems = Vec::new();
        if amateur.is_empty() {
            problems.push("amateur is empty, must be `base` or a checkpoint".to_owned());
        }
        if !(0.0..=100.0).contains(beta) {
            problems.push(format!("beta is {beta}, must be 0 to 100"));
        }
        if !(0.0..=1.0).contains(alpha) {
            problems.push(format!("alpha is {alpha}, must be 0 to 1"));
        }
        if !(*amateur_temperature > 0.0 && *amateur_temperature <= 10.0) {
            let problem = "amateur_temperature is";
            problems.push(format!("{problem} {amateur_temperature}, must be above 0 up to 10"));
        }
        problems
    }
}

/// `z_v = (1 + beta) e_v - beta a_v / tau` of the expert's logits `e` and the amateur's `a`, for the tokens with
/// `p_e(v) >= alpha max_w p_e(w)`; the others are left out.
///
/// The set of plausible tokens, and `tau`, are those of Li et al. 2023 (arXiv 2210.15097); the difference is put as in
/// O'Brien and Lewis 2023 (arXiv 2309.09117), so that `beta` of 0 is the expert. Of the former's objective
/// `log p_e - log p_a` it is the part that `beta` weighs. The mask is of the probabilities at temperature 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contrastive {
    options: ContrastiveOptions,
}

impl Contrastive {
    pub(super) fn new(options: ContrastiveOptions) -> Self {
        Self { options }
    }
}

impl DrawRule for Contrastive {
    fn name(&self) -> &'static str {
        "contrastive"
    }

    fn models(&self) -> Vec<RuleModel> {
        vec![RuleModel::new("amateur", &self.options.amateur)]
    }

    fn leaves_out(&self) -> bool {
        self.options.alpha > 0.0
    }

    fn leave_out(&self, logits: &[f32], _: &[&[f32]], stays: &mut [bool]) {
        if !self.leaves_out() {
            return;
        }
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let least = best + self.options.alpha.ln();
        for (stays, logit) in stays.iter_mut().zip(logits) {
            *stays = *logit >= least;
        }
    }

    fn combine(&self, logits: &mut [f32], others: &[&[f32]]) {
        let ContrastiveOptions { beta, amateur_temperature, .. } = self.options;
        if beta == 0.0 {
            return;
        }
        let of_amateur = beta / amateur_temperature;
        for (logit, amateur) in logits.iter_mut().zip(others[0]) {
            *logit = (1.0 + beta) * *logit - of_amateur * amateur;
        }
    }

    fn backward(&self, _: &[f32], _: &[&[f32]], gradient: &mut [f32]) {
        gradient.iter_mut().for_each(|slope| *slope *= 1.0 + self.options.beta);
    }
}
