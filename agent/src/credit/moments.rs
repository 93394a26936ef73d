//! Means and standard deviations with the conventions of the published estimators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a value is compared with that has nothing to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Singleton {
    /// With itself: its advantage is 0.
    #[default]
    Zero,
    /// With mean 0 and deviation 1, as verl and verl-agent do: the reward itself is its advantage.
    Raw,
}

/// Whether differences to the mean are divided by the standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Normalization {
    /// They are not.
    #[default]
    MeanNorm,
    /// They are divided by the unbiased (n - 1) standard deviation plus epsilon.
    MeanStdNorm,
}

/// Sums over the values of one group, from which each value's advantage follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    count: usize,
    first: f64,
    sum: f64,
    /// Sum of squared differences to the first value; small numbers, so nothing cancels.
    squares: f64,
    all_equal: bool,
}

impl Moments {
    pub(super) const EMPTY: Self =
        Self { count: 0, first: 0.0, sum: 0.0, squares: 0.0, all_equal: true };

    pub(super) fn add(&mut self, value: f64) {
        if self.count == 0 {
            self.first = value;
        }
        let offset = value - self.first;
        self.count += 1;
        self.sum += offset;
        self.squares += offset * offset;
        self.all_equal &= value == self.first;
    }

    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut moments = Self::EMPTY;
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }

    /// The advantage of `value` among the values that were added.
    pub(super) fn advantage(
        &self,
        value: f64,
        normalization: Normalization,
        singleton: Singleton,
        epsilon: f64,
    ) -> f64 {
        let scale = |difference: f64, deviation: f64| match normalization {
            Normalization::MeanNorm => difference,
            Normalization::MeanStdNorm => difference / (deviation + epsilon),
        };
        if self.count <= 1 && singleton == Singleton::Raw {
            return scale(value, 1.0);
        }
        // Exactly zero, where rounding of the mean would leave crumbs.
        if self.all_equal {
            return 0.0;
        }
        let count = self.count as f64;
        let mean_offset = self.sum / count;
        let variance = (self.squares - self.sum * mean_offset) / (count - 1.0);
        scale(value - self.first - mean_offset, variance.max(0.0).sqrt())
    }
}
