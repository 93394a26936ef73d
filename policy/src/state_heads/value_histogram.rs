//! Values as histograms: what a return is among bins, and what bins say of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a return becomes a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistogramKind {
    /// A Gaussian around the return, of which every bin has what falls into it.
    #[default]
    HlGauss,
    /// The two bins on either side of the return share it by how near they are.
    TwoHot,
}

/// Bins for returns, and how a head's numbers, one per bin, are told and trained as one value.
///
/// With bin centres `c_1 .. c_K` at a distance `w`, a head's logits `z_k`, a return `R` and `sigma = sigma_ratio w`:
///
/// ```text
/// q = softmax(z)      v = sum_k q_k c_k      loss = -sum_k p_k log q_k      d loss / d z_k = q_k - p_k
/// hl_gauss:  p_k ~ Phi((c_k + w/2 - R) / sigma) - Phi((c_k - w/2 - R) / sigma),   Phi the normal distribution
/// two_hot:   p_k = (c_{k+1} - R) / w,  p_{k+1} = (R - c_k) / w   where c_k <= R <= c_{k+1}
/// ```
///
/// Source: Stop Regressing (arXiv 2403.03950), sections 3.1 and 3.2, and its appendix for the code; `sigma_ratio` 0.75 is the
/// paper's. The bounds `low` and `high` are those of returns: with `two_hot` they are the outer centres, and with `hl_gauss` there are further bins beyond them for
/// what a Gaussian at a bound spreads there, where the paper cuts it off. So the histogram of any return within the
/// bounds has that return as its mean, within a few thousandths of a bin. Returns outside them count as the bound.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueHistogram {
    kind: HistogramKind,
    low: f64,
    high: f64,
    /// The centre of the first bin.
    first: f64,
    /// From one centre to the next.
    width: f64,
    bins: usize,
    sigma: f64,
}

impl ValueHistogram {
    /// How many standard deviations of a Gaussian at a bound have bins of their own.
    const BEYOND: f64 = 3.0;

    /// The bins beyond either bound.
    fn num_beyond(kind: HistogramKind, sigma_ratio: f64) -> usize {
        match kind {
            HistogramKind::TwoHot => 0,
            HistogramKind::HlGauss => (Self::BEYOND * sigma_ratio).ceil() as usize,
        }
    }

    /// The fewest bins that there can be.
    pub(super) fn fewest_bins(kind: HistogramKind, sigma_ratio: f64) -> usize {
        2 + 2 * Self::num_beyond(kind, sigma_ratio)
    }

    /// So many bins, at least [`Self::fewest_bins`], for returns from `low` to `high`, which is more.
    pub(super) fn new(
        kind: HistogramKind,
        bins: usize,
        (low, high): (f64, f64),
        sigma_ratio: f64,
    ) -> Self {
        let beyond = Self::num_beyond(kind, sigma_ratio);
        let width = (high - low) / (bins - 1 - 2 * beyond) as f64;
        let first = low - beyond as f64 * width;
        Self { kind, low, high, first, width, bins, sigma: sigma_ratio * width }
    }

    /// Bins, which are the numbers of a head.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Whether a return is outside the bounds.
    pub fn is_outside(&self, target: f64) -> bool {
        target < self.low || target > self.high
    }

    fn center(&self, bin: usize) -> f64 {
        self.first + bin as f64 * self.width
    }

    /// The histogram of a return: the probability of each bin, and NaN where the return is not finite.
    pub fn target(&self, target: f64) -> Vec<f64> {
        // A bound would hide what is undefined.
        let target = if target.is_finite() { target.clamp(self.low, self.high) } else { f64::NAN };
        match self.kind {
            HistogramKind::TwoHot => {
                let place = (target - self.first) / self.width;
                let lower = (place.floor() as usize).min(self.bins - 2);
                // Rounding can take the place beyond the last centre; NaN goes through.
                let upper = (place - lower as f64).clamp(0.0, 1.0);
                let mut shares = vec![0.0; self.bins];
                (shares[lower], shares[lower + 1]) = (1.0 - upper, upper);
                shares
            }
            HistogramKind::HlGauss => {
                let below = |border: usize| {
                    let border = self.center(border) - self.width / 2.0;
                    libm::erf((border - target) / (self.sigma * std::f64::consts::SQRT_2))
                };
                let borders: Vec<f64> = (0..=self.bins).map(below).collect();
                let all = borders[self.bins] - borders[0];
                borders.windows(2).map(|pair| (pair[1] - pair[0]) / all).collect()
            }
        }
    }

    /// The value that a head's numbers for one state tell.
    pub fn value(&self, logits: &[f32]) -> f32 {
        let shares = softmax(logits);
        let value: f64 =
            shares.iter().enumerate().map(|(bin, share)| share * self.center(bin)).sum();
        value as f32
    }

    /// The cross-entropy of a return's histogram and what a head's numbers for one state tell, and its derivatives by these.
    pub fn loss(&self, logits: &[f32], target: f64) -> (f64, Vec<f64>) {
        let target = self.target(target);
        let (most, sum) = scale_of(logits);
        let log_sum = most + sum.ln();
        let pairs = target.iter().zip(logits);
        let loss = pairs.map(|(share, logit)| share * (log_sum - f64::from(*logit))).sum();
        let slopes =
            softmax(logits).iter().zip(&target).map(|(told, share)| told - share).collect();
        (loss, slopes)
    }
}

/// The largest of the logits, and the sum of the exponentials of what the others are less.
fn scale_of(logits: &[f32]) -> (f64, f64) {
    let most = logits.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
    (most, logits.iter().map(|logit| (f64::from(*logit) - most).exp()).sum())
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let (most, sum) = scale_of(logits);
    logits.iter().map(|logit| (f64::from(*logit) - most).exp() / sum).collect()
}

#[cfg(test)]
mod tests {
    use spar_ops::gradient_check::numbers;

    use super::*;

    fn histograms() -> [ValueHistogram; 5] {
        [
            ValueHistogram::new(HistogramKind::HlGauss, 51, (-1.0, 1.0), 0.75),
            ValueHistogram::new(HistogramKind::HlGauss, 11, (0.0, 5.0), 1.0),
            ValueHistogram::new(HistogramKind::TwoHot, 51, (-1.0, 1.0), 0.75),
            ValueHistogram::new(HistogramKind::TwoHot, 50, (-1.0, 1.0), 0.75),
            ValueHistogram::new(HistogramKind::TwoHot, 2, (0.0, 1.0), 0.75),
        ]
    }

    #[test]
    fn the_mean_of_a_returns_histogram_is_the_return_up_to_the_bounds() {
        for histogram in histograms() {
            let (low, high) = (histogram.low, histogram.high);
            for step in 0..=40 {
                let target = low + (high - low) * f64::from(step) / 40.0;
                let shares = histogram.target(target);
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(shares.iter().all(|share| *share >= 0.0));
                let logits: Vec<f32> = shares.iter().map(|share| share.ln() as f32).collect();
                let told = f64::from(histogram.value(&logits));
                let within = 2e-3 * histogram.width + 1e-6;
                assert!((told - target).abs() < within, "{told}, {target}: {histogram:?}");
            }
            let beyond = [low - 3.0, high + 3.0];
            assert_eq!(beyond.map(|target| histogram.is_outside(target)), [true; 2]);
            assert_eq!(
                beyond.map(|target| histogram.target(target)),
                [low, high].map(|it| histogram.target(it))
            );
            assert!(!histogram.is_outside(low) && !histogram.is_outside(high));
            for undefined in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(histogram.target(undefined).iter().any(|share| share.is_nan()));
            }
        }
    }

    #[test]
    fn a_gaussian_is_shared_out_by_what_falls_into_each_bin() {
        // Centres -3 to 4 at a distance of 1, the return at 0 with sigma 1: the shares of a standard normal distribution.
        let histogram = ValueHistogram::new(HistogramKind::HlGauss, 8, (0.0, 1.0), 1.0);
        let shares = histogram.target(0.0);
        for (bin, expected) in [(1, 0.0605975), (2, 0.2417303), (3, 0.3829249), (4, 0.2417303)] {
            // All of it is within -3.5 and 4.5 but for 2.36e-4.
            assert!((shares[bin] * (1.0 - 2.36e-4) - expected).abs() < 1e-6, "{shares:?}");
        }
        let [.., two] = histograms();
        assert_eq!(two.target(0.25), [0.75, 0.25], "of two bins it is the binary cross-entropy");
    }

    #[test]
    fn slopes_are_the_derivatives_of_the_cross_entropy() {
        for histogram in histograms() {
            let logits = numbers(histogram.bins(), 0.9);
            for target in [-0.4, 0.0, 0.3, 7.0] {
                let (loss, slopes) = histogram.loss(&logits, target);
                assert!(loss > 0.0);
                for bin in 0..histogram.bins() {
                    let at = |by: f32| {
                        let mut moved = logits.clone();
                        moved[bin] += by;
                        (histogram.loss(&moved, target).0, f64::from(moved[bin]))
                    };
                    let ((above, to), (below, from)) = (at(1e-2), at(-1e-2));
                    let expected = (above - below) / (to - from);
                    assert!((slopes[bin] - expected).abs() < 1e-5, "{} {expected}", slopes[bin]);
                }
            }
        }
        // Large logits overflow nothing, and what is no number is told on.
        let [.., two] = histograms();
        assert_eq!(two.value(&[-1e30, 1e30]), 1.0);
        assert!(two.loss(&[f32::NAN, 0.0], 0.5).0.is_nan());
    }
}
