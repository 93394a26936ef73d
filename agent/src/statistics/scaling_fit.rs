//! How far training would come if it went on: a curve through what it has reached.

use serde::Serialize;

/// Ceilings that are tried to begin with, evenly between the best that was reached and the most there is.
const CEILINGS: usize = 100;
/// Rounds in which a fit is improved, each halving its steps where none of them helped.
const ROUNDS: usize = 400;

/// A sigmoid in the logarithm of compute (The Art of Scaling RL Compute, arXiv 2510.13786, equation 1):
///
/// ```text
/// R(C) = start + (ceiling - start) / (1 + (middle / C)^exponent)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScalingFit {
    /// What is reached without compute.
    pub start: f64,
    /// What is reached with any amount of it.
    pub ceiling: f64,
    /// How steeply it rises; above 0.
    pub exponent: f64,
    /// The compute behind which half of the way is gone; above 0.
    pub middle: f64,
}

impl ScalingFit {
    /// The curve of least squares through points of compute and reward, from `start` on, whose ceiling is at most `most`.
    ///
    /// A line is laid through the logits for each of many ceilings, and the best of these curves is then improved step by step. `None` where there are fewer than four points of different compute above 0,
    /// or they do not rise from `start`. What is not finite is left out.
    pub fn of(points: &[(f64, f64)], start: f64, most: f64) -> Option<Self> {
        let is_good = |(compute, reward): &&(f64, f64)| {
            compute.is_finite() && *compute > 0.0 && reward.is_finite()
        };
        let mut points: Vec<(f64, f64)> = points.iter().filter(is_good).copied().collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let distinct = points.chunk_by(|a, b| a.0 == b.0).count();
        let top = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        if distinct < 4 || !(start.is_finite() && most > start && top > start && most > top) {
            return None;
        }
        let ceilings = (1..=CEILINGS).map(|number| number as f64 / CEILINGS as f64);
        let lines = ceilings
            .filter_map(|share| Self::through_logits(&points, start, top + (most - top) * share));
        let error = |fit: &Self| fit.squared_error(&points);
        let best = lines.min_by(|a, b| error(a).total_cmp(&error(b)))?;
        Some(best.improved(&points, most))
    }

    /// What so much compute reaches.
    pub fn at(&self, compute: f64) -> f64 {
        let Self { start, ceiling, exponent, middle } = *self;
        start + (ceiling - start) / (1.0 + (middle / compute).powf(exponent))
    }

    /// The root of the mean squared distance of points from the curve; not a number where there are none.
    pub fn error(&self, points: &[(f64, f64)]) -> f64 {
        (self.squared_error(points) / points.len() as f64).sqrt()
    }

    fn squared_error(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(compute, reward)| (self.at(*compute) - reward).powi(2)).sum()
    }

    /// The curve of this ceiling whose logits are nearest to those of the points that have any.
    fn through_logits(points: &[(f64, f64)], start: f64, ceiling: f64) -> Option<Self> {
        let logit = |(compute, reward): &(f64, f64)| {
            let is_between = start < *reward && *reward < ceiling;
            is_between.then(|| (compute.ln(), ((reward - start) / (ceiling - reward)).ln()))
        };
        let logits: Vec<(f64, f64)> = points.iter().filter_map(logit).collect();
        let count = logits.len() as f64;
        let mean_x = logits.iter().map(|it| it.0).sum::<f64>() / count;
        let mean_y = logits.iter().map(|it| it.1).sum::<f64>() / count;
        let spread: f64 = logits.iter().map(|it| (it.0 - mean_x).powi(2)).sum();
        let common: f64 = logits.iter().map(|it| (it.0 - mean_x) * (it.1 - mean_y)).sum();
        let exponent = common / spread;
        let middle = (mean_x - mean_y / exponent).exp();
        let is_curve = exponent.is_finite() && exponent > 0.0 && middle.is_finite() && middle > 0.0;
        is_curve.then_some(Self { start, ceiling, exponent, middle })
    }

    /// The best curve that steps from this one lead to.
    fn improved(self, points: &[(f64, f64)], most: f64) -> Self {
        let (mut best, mut least) = (self, self.squared_error(points));
        let (mut of_ceiling, mut of_logarithms) = (0.1 * (most - self.start), 0.5_f64);
        let lowest = self.start + 1e-9 * (most - self.start);
        for _ in 0..ROUNDS {
            let mut has_moved = false;
            for sign in [1.0, -1.0] {
                let factor = (sign * of_logarithms).exp();
                let ceiling = |of: Self| (of.ceiling + sign * of_ceiling).clamp(lowest, most);
                let steps: [&dyn Fn(Self) -> Self; 3] = [
                    &|of: Self| Self { ceiling: ceiling(of), ..of },
                    &|of: Self| Self { exponent: of.exponent * factor, ..of },
                    &|of: Self| Self { middle: of.middle * factor, ..of },
                ];
                for step in steps {
                    let next = step(best);
                    let error = next.squared_error(points);
                    if error < least {
                        (best, least, has_moved) = (next, error, true);
                    }
                }
            }
            if !has_moved {
                (of_ceiling, of_logarithms) = (of_ceiling / 2.0, of_logarithms / 2.0);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUE: ScalingFit = ScalingFit { start: 0.1, ceiling: 0.61, exponent: 1.9, middle: 40.0 };

    fn points(noise: f64) -> Vec<(f64, f64)> {
        [5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 120.0]
            .into_iter()
            .enumerate()
            .map(|(index, compute)| {
                let sign = if index % 2 == 0 { -1.0 } else { 1.0 };
                (compute, TRUE.at(compute) + sign * noise)
            })
            .collect()
    }

    #[test]
    fn what_a_curve_was_made_of_is_found_and_what_comes_later_foretold() {
        let found = ScalingFit::of(&points(0.0), 0.1, 1.0).unwrap();
        assert!((found.ceiling - 0.61).abs() < 1e-4, "{found:?}");
        assert!((found.exponent - 1.9).abs() < 1e-3 && (found.middle - 40.0).abs() < 0.02);
        let noisy = points(0.006);
        let found = ScalingFit::of(&noisy, 0.1, 1.0).unwrap();
        for compute in [240.0, 480.0] {
            assert!((found.at(compute) - TRUE.at(compute)).abs() < 0.02, "{found:?}");
        }
        assert!(found.error(&noisy) < 0.008, "{}", found.error(&noisy));
    }

    #[test]
    fn where_nothing_rises_or_too_little_is_known_there_is_no_curve() {
        assert_eq!(ScalingFit::of(&points(0.0)[..3], 0.1, 1.0), None);
        let flat: Vec<(f64, f64)> = points(0.0).into_iter().map(|(x, _)| (x, 0.1)).collect();
        assert_eq!(ScalingFit::of(&flat, 0.1, 1.0), None);
        let fallen: Vec<(f64, f64)> = points(0.0).into_iter().map(|(x, y)| (x, 0.8 - y)).collect();
        assert_eq!(ScalingFit::of(&fallen, 0.1, 1.0), None);
        // A point without a number, and one without compute, change nothing.
        let mut more = points(0.0);
        more.extend([(0.0, 0.3), (7.0, f64::NAN), (f64::INFINITY, 0.2)]);
        assert_eq!(ScalingFit::of(&more, 0.1, 1.0), ScalingFit::of(&points(0.0), 0.1, 1.0));
    }
}
