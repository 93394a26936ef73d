//! A head that tells a value as a histogram.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Seed;
use spar_core::registry::NamedOptions;

use super::hidden_layer::{HiddenLayer, HiddenLayerOptions};
use super::linear::Linear;
use super::{HistogramKind, StateHead, ValueHistogram};
use crate::{ParameterKind, Parameters};

/// The standard deviation of Gaussians in widths of a bin where none is set.
const SIGMA_RATIO: f64 = 0.75;

/// Options of [`Histogram`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HistogramOptions {
    /// How a return becomes a histogram: `hl_gauss` or `two_hot`. Default `hl_gauss`.
    pub(super) histogram: HistogramKind,
    /// Bins. At least 2 for `two_hot`; `hl_gauss` needs `ceil(3 sigma_ratio)` more on either side, which its Gaussians
    /// spread into. Default 51.
    pub(super) bins: usize,
    /// The lowest return that can be told; lower ones count as it. Default -1.
    pub(super) low: f64,
    /// The highest return that can be told, more than `low`; higher ones count as it. Default 1.
    pub(super) high: f64,
    /// The standard deviation of a return's Gaussian in widths of a bin, from 0.5 to 10; only `hl_gauss` has one. Default
    /// absent: 0.75.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sigma_ratio: Option<f64>,
    /// Numbers of a hidden layer with tanh below the bins; at least 1. Default absent: there is none.
    pub(super) width: Option<usize>,
}

impl Default for HistogramOptions {
    fn default() -> Self {
        Self {
            histogram: HistogramKind::default(),
            bins: 51,
            low: -1.0,
            high: 1.0,
            sigma_ratio: None,
            width: None,
        }
    }
}

impl NamedOptions for HistogramOptions {
    fn problems(&self) -> Vec<String> {
        let Self { histogram, bins, low, high, sigma_ratio, width } = *self;
        let mut problems = Vec::new();
        let is_two_hot = histogram == HistogramKind::TwoHot;
        let ratio = sigma_ratio.unwrap_or(SIGMA_RATIO);
        let has_sigma = (0.5..=10.0).contains(&ratio);
        if is_two_hot && sigma_ratio.is_some() {
            problems.push("sigma_ratio has no effect: `two_hot` has no Gaussian".to_owned());
        } else if !has_sigma {
            problems.push(format!("sigma_ratio is {ratio}, must be from 0.5 to 10"));
        }
        let fewest = ValueHistogram::fewest_bins(histogram, if has_sigma { ratio } else { 0.0 });
        if bins < fewest {
            problems.push(format!("bins is {bins}, must be at least {fewest}"));
        }
        let is_range = low.is_finite() && high.is_finite() && low < high;
        if !is_range {
            problems.push(format!("low is {low} and high is {high}, must be finite and ascending"));
        }
        if width == Some(0) {
            problems.push("width is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// The logits of a histogram of the return, by a linear layer or one with a hidden layer; all that the last layer has begins
/// at 0, so that every bin is as probable and the value is the middle between the bounds. What they say and learn: [`ValueHistogram`].
#[derive(Debug)]
pub(super) struct Histogram {
    logits: Box<dyn StateHead>,
    histogram: ValueHistogram,
}

impl Histogram {
    /// A head with these options, which have no problems.
    pub(super) fn new(options: &HistogramOptions) -> Self {
        let HistogramOptions { histogram, bins, low, high, sigma_ratio, width } = *options;
        let logits: Box<dyn StateHead> = match width {
            None => Box::new(Linear { outputs: bins }),
            width => Box::new(HiddenLayer::new(HiddenLayerOptions { width }, bins)),
        };
        let ratio = sigma_ratio.unwrap_or(SIGMA_RATIO);
        Self { logits, histogram: ValueHistogram::new(histogram, bins, (low, high), ratio) }
    }
}

impl StateHead for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn histogram(&self) -> Option<&ValueHistogram> {
        Some(&self.histogram)
    }

    fn shapes(&self, width: usize) -> Vec<(String, Vec<usize>, ParameterKind)> {
        self.logits.shapes(width)
    }

    fn initial(&self, width: usize, seed: Seed) -> Parameters {
        self.logits.initial(width, seed)
    }

    fn forward(&self, parameters: &Parameters, states_rd: &[f32]) -> Vec<f32> {
        self.logits.forward(parameters, states_rd)
    }

    fn backward(
        &self,
        parameters: &Parameters,
        states_rd: &[f32],
        dnumbers: &[f32],
        dstates_rd: Option<&mut [f32]>,
        gradient: &mut [f32],
    ) {
        self.logits.backward(parameters, states_rd, dnumbers, dstates_rd, gradient);
    }
}
