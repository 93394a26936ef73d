//! The usual cuts, of the policy's own logits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_ops::elementwise::scale;

use super::DrawRule;
use super::value_weighted::cut_by;
use crate::sampling::SamplingOptions;

/// Options of `temperature`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TemperatureOptions {
    /// Divides the logits, above 0 up to 10. Default 1.
    pub(super) temperature: f32,
}

impl Default for TemperatureOptions {
    fn default() -> Self {
        Self { temperature: 1.0 }
    }
}

impl NamedOptions for TemperatureOptions {
    fn problems(&self) -> Vec<String> {
        let found = self.temperature;
        let is_wrong = !(found > 0.0 && found <= 10.0);
        let told = || format!("temperature is {found}, must be above 0 up to 10");
        is_wrong.then(told).into_iter().collect()
    }
}

/// Options of `top_k`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TopKOptions {
    /// How many of the best tokens are left, at least 1; equal ones at the border all are. Default absent: all.
    pub(super) k: Option<usize>,
}

impl NamedOptions for TopKOptions {
    fn problems(&self) -> Vec<String> {
        let is_wrong = self.k == Some(0);
        is_wrong.then(|| "k is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// Options of `top_p`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TopPOptions {
    /// Probability that the fewest best tokens which are left have together, above 0 up to 1. Default 1: all are left.
    pub(super) p: f32,
}

impl Default for TopPOptions {
    fn default() -> Self {
        Self { p: 1.0 }
    }
}

impl NamedOptions for TopPOptions {
    fn problems(&self) -> Vec<String> {
        let is_wrong = !(self.p > 0.0 && self.p <= 1.0);
        let told = || format!("p is {}, must be above 0 up to 1", self.p);
        is_wrong.then(told).into_iter().collect()
    }
}

/// Options of `min_p`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MinPOptions {
    /// Share of the best token's probability below which a token is left out, 0 to 1. Default 0: none is.
    pub(super) p: f32,
}

impl NamedOptions for MinPOptions {
    fn problems(&self) -> Vec<String> {
        let is_wrong = !(0.0..=1.0).contains(&self.p);
        is_wrong.then(|| format!("p is {}, must be 0 to 1", self.p)).into_iter().collect()
    }
}

/// A temperature and cuts, as [`sampling`](crate::sampling) has them, at temperature 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    name: &'static str,
    temperature: f32,
    cut: SamplingOptions,
}

impl Cut {
    pub(super) fn temperature(options: &TemperatureOptions) -> Self {
        let temperature = options.temperature;
        Self { name: "temperature", temperature, cut: SamplingOptions::default() }
    }

    pub(super) fn top_k(options: &TopKOptions) -> Self {
        let cut = SamplingOptions { top_k: options.k, ..SamplingOptions::default() };
        Self { name: "top_k", temperature: 1.0, cut }
    }

    pub(super) fn top_p(options: &TopPOptions) -> Self {
        let cut = SamplingOptions { top_p: options.p, ..SamplingOptions::default() };
        Self { name: "top_p", temperature: 1.0, cut }
    }

    pub(super) fn min_p(options: &MinPOptions) -> Self {
        let cut = SamplingOptions { min_p: options.p, ..SamplingOptions::default() };
        Self { name: "min_p", temperature: 1.0, cut }
    }
}

impl DrawRule for Cut {
    fn name(&self) -> &'static str {
        self.name
    }

    fn leaves_out(&self) -> bool {
        self.cut.truncates()
    }

    fn leave_out(&self, logits: &[f32], _: &[&[f32]], stays: &mut [bool]) {
        cut_by(&self.cut, logits, stays);
    }

    fn combine(&self, logits: &mut [f32], _: &[&[f32]]) {
        if self.temperature != 1.0 {
            scale(logits, 1.0 / self.temperature);
        }
    }

    fn backward(&self, _: &[f32], _: &[&[f32]], gradient: &mut [f32]) {
        if self.temperature != 1.0 {
            scale(gradient, 1.0 / self.temperature);
        }
    }
}
