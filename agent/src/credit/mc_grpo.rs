//! MC-GRPO: returns are compared with the group's median, whose own trajectory is not trained.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signals};

use super::error::refuse;
use super::grpo::epsilon_problem;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView};

/// What differences to the median are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MedianScale {
    /// The median of their absolute values plus epsilon, as the authors' code has it: with returns of 0 and 1 that is mostly
    /// epsilon alone, and advantages are a thousand times those of GRPO.
    Mad,
    /// The unbiased standard deviation plus epsilon.
    #[default]
    Std,
    /// Nothing.
    None,
}

/// Options of [`McGrpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McGrpoConfig {
    /// What differences are divided by. Default `std`; the authors' code has `mad`.
    pub scale: MedianScale,
    /// Added to what is divided by; above 0. Default 1e-3.
    pub epsilon: f64,
}

impl Default for McGrpoConfig {
    fn default() -> Self {
        Self { scale: MedianScale::Std, epsilon: 1e-3 }
    }
}

impl NamedOptions for McGrpoConfig {
    fn problems(&self) -> Vec<String> {
        epsilon_problem(self.epsilon).into_iter().collect()
    }
}

/// Differences below which an advantage counts as none.
const NONE_BELOW: f64 = 1e-6;

/// Median-centred advantages (MC-GRPO, arXiv 2601.22582, and its code `grpo_trainer_gsm.py`).
///
/// `A_i = (R_i - median R) / scale`, multiplied by the group's size over how many of its advantages are not 0. Of the trajectories with the
/// median's return the first one weighs nothing, so that one more has to be sampled than is trained; groups of an odd size are meant, and in others the
/// lower of the two middle ones is the median. Returns that are not finite count in nothing and get 0.
#[derive(Debug, Clone, Default)]
pub struct McGrpo {
    config: McGrpoConfig,
}

impl McGrpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: McGrpoConfig) -> Result<Self, CreditError> {
        refuse("mc_grpo", config.problems())?;
        Ok(Self { config })
    }

    /// Advantages of a group's trajectories, and which of them is the median.
    fn trajectory_advantages(&self, group: &GroupView<'_>) -> (Vec<f64>, Option<usize>) {
        let returns = group.returns();
        let finite: Vec<f64> = returns.iter().copied().filter(|value| value.is_finite()).collect();
        let Some(middle) = median(finite.clone()) else { return (vec![0.0; returns.len()], None) };
        let count = finite.len();
        let scale = match self.config.scale {
            MedianScale::None => 1.0,
            MedianScale::Std => Moments::of(finite).deviation(1) + self.config.epsilon,
            MedianScale::Mad => {
                let distances = finite.iter().map(|value| (value - middle).abs()).collect();
                median(distances).unwrap_or_default() + self.config.epsilon
            }
        };
        let advantage =
            |value: &f64| if value.is_finite() { (value - middle) / scale } else { 0.0 };
        let mut advantages: Vec<f64> = returns.iter().map(advantage).collect();
        let counts = |value: &f64| value.abs() > NONE_BELOW;
        let num = advantages.iter().filter(|value| counts(value)).count();
        for value in advantages.iter_mut().filter(|value| counts(value)) {
            *value *= count as f64 / num as f64;
        }
        (advantages, returns.iter().position(|value| *value == middle))
    }
}

/// The lower of the middle values; absent where there is none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    values.sort_unstable_by(f64::total_cmp);
    Some(values[middle])
}

impl AdvantageEstimator for McGrpo {
    fn name(&self) -> &'static str {
        "mc_grpo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let (mut advantages, mut weights) = (Vec::new(), Vec::new());
        for group in batch.groups() {
            let (of_group, pivot) = self.trajectory_advantages(group);
            // Alone it is its own median, and has nothing to give way to.
            let pivot = pivot.filter(|_| of_group.len() > 1);
            weights
                .extend((0..of_group.len()).map(|index| f64::from(u8::from(Some(index) != pivot))));
            advantages.extend(of_group);
        }
        let weights = batch.credit_by_trajectory(weights).advantages;
        let PerTurnOrToken::Turns(_) = &weights else { unreachable!("turns were asked for") };
        Ok(Credit { weights: Some(weights), ..batch.credit_by_trajectory(advantages) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{cases, number, returns_view, rows};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_mc_grpo", |case, near| {
            let config =
                McGrpoConfig { scale: MedianScale::Mad, epsilon: number(&case.params, "mad_eps") };
            let estimator = McGrpo::new(config).unwrap();
            let expected = rows(&case.outputs["advantages_all"]);
            let dropped = rows(&case.outputs["dropped_mask"]);
            for (row, returns) in rows(&case.inputs["rewards"]).into_iter().enumerate() {
                let (found, pivot) =
                    estimator.trajectory_advantages(&returns_view(returns.iter().copied()));
                found.iter().zip(&expected[row]).for_each(|(found, it)| near(*found, *it));
                // Any trajectory with the median's return may go.
                let theirs = dropped[row].iter().position(|flag| *flag != 0.0).unwrap();
                assert_eq!(returns[pivot.unwrap()], returns[theirs]);
            }
        });
    }

    #[test]
    fn the_median_weighs_nothing() {
        let batch = BatchView::from(returns_view([0.0, 3.0, 1.0]));
        let credit = McGrpo::default().estimate(&batch, &Signals::default()).unwrap();
        let weights = credit.weights.unwrap();
        assert_eq!([0, 1, 2].map(|index| weights.at(index, 0, 0)), [1.0, 1.0, 0.0]);
        let alone = McGrpo::default();
        let credit = alone.estimate(&returns_view([2.0]).into(), &Signals::default()).unwrap();
        assert_eq!(
            (credit.advantages.at(0, 0, 0), credit.weights.unwrap().at(0, 0, 0)),
            (0.0, 1.0)
        );
    }
}
