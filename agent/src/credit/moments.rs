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

/// Sums over the values of one group, from which each value's advantage follows. A value that is not finite is missing: it
/// counts in nothing, and its advantage is 0.
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
        if !value.is_finite() {
            return;
        }
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
        if !value.is_finite() {
            return 0.0;
        }
        let scale = |difference: f64, deviation: f64| match normalization {
            Normalization::MeanNorm => difference,
            Normalization::MeanStdNorm => difference / (deviation + epsilon),
        };
        if self.count <= 1 && singleton == Singleton::Raw {
            return scale(value, 1.0);
        }
        if self.all_equal {
            return 0.0;
        }
        scale(self.difference(value), self.deviation(1))
    }

    /// How many values were added.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How much `value` is above the mean; exactly 0 where all values are equal, where rounding of the mean would leave crumbs.
    pub(super) fn difference(&self, value: f64) -> f64 {
        if self.all_equal { 0.0 } else { value - self.first - self.sum / self.count as f64 }
    }

    /// The standard deviation over `count - missing`: 0 that of a population, 1 the unbiased one; 0 where it cannot be told.
    pub(super) fn deviation(&self, missing: usize) -> f64 {
        if self.all_equal || self.count <= missing {
            return 0.0;
        }
        let count = self.count as f64;
        let variance = (self.squares - self.sum * (self.sum / count)) / (count - missing as f64);
        variance.max(0.0).sqrt()
    }
}
