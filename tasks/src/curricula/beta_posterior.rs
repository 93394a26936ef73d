//! How often a task is solved, as a distribution that forgets.

use rand::RngExt;

/// As many draws as are refused in one draw of the gamma distribution. At least 19 of 20 are taken, so that only a shape that is
/// no finite number comes to so many.
const MOST_DRAWS: u32 = 1000;

/// A Beta distribution over a task's success rate (MoPPS, arXiv 2507.04632, and its code `recipe/ours/mopps.py`; VADE is its kin).
///
/// After `n` rollouts of which a share `s` succeeded: `alpha <- alpha d + alpha_0 (1 - d) + s n`, `beta` likewise with `1 - s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetaPosterior {
    /// Successes, with those of the prior; above 0.
    pub alpha: f64,
    /// Failures, with those of the prior; above 0.
    pub beta: f64,
    prior: (f64, f64),
}

impl BetaPosterior {
    /// The prior with these successes and failures, both above 0.
    pub fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha, beta, prior: (alpha, beta) }
    }

    /// Takes in `rollouts` attempts of which a share succeeded, 0 to 1, what was known before counting `decay`, 0 to 1. A share that is not a
    /// number changes nothing.
    pub fn update(&mut self, success_rate: f64, rollouts: f64, decay: f64) {
        if success_rate.is_nan() {
            return;
        }
        let share = success_rate.clamp(0.0, 1.0);
        let (alpha, beta) = self.prior;
        self.alpha = self.alpha * decay + alpha * (1.0 - decay) + share * rollouts;
        self.beta = self.beta * decay + beta * (1.0 - decay) + (1.0 - share) * rollouts;
    }

    /// The mean success rate.
    pub fn mean(&self) -> f64 {
        self.alpha / (self.alpha + self.beta)
    }

    /// A success rate drawn from it (Thompson sampling).
    pub fn draw(&self, rng: &mut impl rand::Rng) -> f64 {
        let one = gamma(self.alpha, rng);
        let two = gamma(self.beta, rng);
        if one + two > 0.0 { one / (one + two) } else { self.mean() }
    }
}

/// A draw of the gamma distribution with this shape and scale 1 (Marsaglia and Tsang 2000), or its middle where none is taken.
fn gamma(shape: f64, rng: &mut impl rand::Rng) -> f64 {
    if shape < 1.0 {
        let boost: f64 = rng.random::<f64>().max(f64::MIN_POSITIVE);
        return gamma(shape + 1.0, rng) * boost.powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    for _ in 0..MOST_DRAWS {
        // A normal number by Box and Muller's method.
        let radius = (-2.0 * rng.random::<f64>().max(f64::MIN_POSITIVE).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
        let cube = (1.0 + c * normal).powi(3);
        let uniform: f64 = rng.random::<f64>().max(f64::MIN_POSITIVE);
        if cube > 0.0 && uniform.ln() < 0.5 * normal * normal + d - d * cube + d * cube.ln() {
            return d * cube;
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::test_vectors::{cases, floats, number};

    #[test]
    fn updates_equal_the_reference() {
        cases("beta_posterior_update", |case, near| {
            let prior = floats(&case.params["prior"]);
            let (decay, rollouts) =
                (number(&case.params, "decay_ratio"), number(&case.params, "n_rollouts"));
            let expected = case.outputs["steps"].as_array().unwrap();
            let count = floats(&expected[0]["alpha"]).len();
            let mut tasks = vec![BetaPosterior::new(prior[0], prior[1]); count];
            for (step, expected) in case.inputs["steps"].as_array().unwrap().iter().zip(expected) {
                for (index, rate) in
                    floats(&step["index"]).iter().zip(floats(&step["success_rate"]))
                {
                    tasks[*index as usize].update(rate, rollouts, decay);
                }
                for (task, (alpha, beta)) in tasks
                    .iter()
                    .zip(floats(&expected["alpha"]).iter().zip(floats(&expected["beta"])))
                {
                    near(task.alpha, *alpha);
                    near(task.beta, beta);
                }
            }
        });
    }

    #[test]
    fn draws_of_what_is_no_distribution_end() {
        let mut rng = Seed::from_u64(3).rng();
        assert!(gamma(f64::NAN, &mut rng).is_nan());
        assert!(gamma(f64::INFINITY, &mut rng).is_infinite());
    }

    #[test]
    fn draws_have_the_mean_and_variance_of_the_distribution() {
        let mut rng = Seed::from_u64(3).rng();
        for (alpha, beta) in [(1.0, 1.0), (8.0, 2.0), (0.5, 0.5)] {
            let posterior = BetaPosterior::new(alpha, beta);
            let draws: Vec<f64> = (0..20_000).map(|_| posterior.draw(&mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / 20_000.0;
            let variance = draws.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 20_000.0;
            let sum: f64 = alpha + beta;
            assert!((mean - posterior.mean()).abs() < 0.01, "{mean}");
            assert!(
                (variance - alpha * beta / (sum * sum * (sum + 1.0))).abs() < 0.005,
                "{variance}"
            );
        }
    }
}
