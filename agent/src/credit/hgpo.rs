//! HGPO: steps are compared within groups of ever longer equal histories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::discounting::discount_problem;
use super::error::refuse;
use super::gigpo::{Gigpo, GigpoConfig, discounted_returns};
use super::grpo::epsilon_problem;
use super::interner::Interner;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// Options of [`Hgpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HgpoConfig {
    /// Situations before the present one that histories go back at the most. Default 2.
    pub history_length: usize,
    /// Discount of step returns, 0 to 1. Default 0.95.
    pub discount: f64,
    /// How much more longer histories weigh: level `k` weighs `(k + 1)^alpha`; -16 to 16. Default 1.
    pub length_weight_alpha: f64,
    /// Whether differences are divided by the standard deviation, in histories that of a population. Default `mean_norm`: they are
    /// not.
    pub normalization: Normalization,
    /// Whether the episode's advantage, as GiGPO has it, is one more level. Default false.
    pub base_group: bool,
    /// Whether levels whose advantage is 0 count among those that are averaged. Default false, as the authors' code has it.
    pub keep_zeros: bool,
    /// What the only value of an episode group gets, for `base_group`. Default `zero`; verl-agent's rule is `raw`.
    pub singleton: Singleton,
    /// Added to standard deviations and to the sum of weights; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for HgpoConfig {
    fn default() -> Self {
        Self {
            history_length: 2,
            discount: 0.95,
            length_weight_alpha: 1.0,
            normalization: Normalization::MeanNorm,
            base_group: false,
            keep_zeros: false,
            singleton: Singleton::Zero,
            epsilon: 1e-6,
        }
    }
}

impl HgpoConfig {
    fn of_episodes(&self) -> GigpoConfig {
        GigpoConfig {
            discount: self.discount,
            normalization: self.normalization,
            singleton: self.singleton,
            epsilon: self.epsilon,
            ..GigpoConfig::default()
        }
    }
}

impl NamedOptions for HgpoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = epsilon_problem(self.epsilon).into_iter().collect();
        problems.extend(discount_problem(self.discount));
        // Beyond that one level is all that counts, and powers of long histories overflow.
        if !(-16.0..=16.0).contains(&self.length_weight_alpha) {
            let alpha = self.length_weight_alpha;
            problems.push(format!("length_weight_alpha is {alpha}, must be -16 to 16"));
        }
        problems
    }
}

/// Hierarchy-of-groups advantages (HGPO, ICLR 2026, and its code `recipe/hgpo/core_hgpo.py`).
///
/// A step belongs to a group for each `k` from 1 to `history_length + 1`: the steps of its task, of any trajectory and time, whose last
/// `k` situations, their own among them, are the same. Within such a group of at least two its discounted return is compared with
/// the others' to `a_k`, and `A = sum_k w_k a_k / (sum_k w_k + epsilon)`, `w_k = (k + 1)^alpha`, over the levels with `a_k` other than 0.
/// Histories are of situations, not of actions. A history length of 0 gives GiGPO's step groups, but for `epsilon`.
#[derive(Debug, Clone)]
pub struct Hgpo {
    config: HgpoConfig,
    base: Gigpo,
}

impl Hgpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: HgpoConfig) -> Result<Self, CreditError> {
        refuse("hgpo", config.problems())?;
        let base = Gigpo::new(config.of_episodes())?;
        Ok(Self { config, base })
    }

    /// One advantage per step of a group.
    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let config = &self.config;
        let returns = discounted_returns(group, config.discount);
        let mut sums = vec![(0.0, 0.0); returns.len()];
        let mut add = |step: usize, level: usize, advantage: f64| {
            if advantage != 0.0 || config.keep_zeros {
                let weight = ((level + 1) as f64).powf(config.length_weight_alpha);
                sums[step].0 += weight * advantage;
                sums[step].1 += weight;
            }
        };
        if config.base_group {
            let mut step = 0;
            for (advantage, trajectory) in
                self.base.episode_advantages(group).into_iter().zip(group.trajectories())
            {
                for _ in trajectory.steps {
                    add(step, 0, advantage);
                    step += 1;
                }
            }
        }
        let mut words = Interner::with_capacity(returns.len());
        let states: Vec<u32> = group.steps().iter().map(|step| words.id(step.state)).collect();
        // What a step's last k situations are, as a number; absent where it has fewer.
        let mut histories: Vec<Option<u32>> = states.iter().copied().map(Some).collect();
        for level in 1..=config.history_length + 1 {
            if level > 1 {
                histories = longer(group, &histories, &states);
            }
            let Some(most) = histories.iter().flatten().max() else { break };
            let mut moments = vec![Moments::EMPTY; *most as usize + 1];
            for (history, value) in histories.iter().zip(&returns) {
                history.iter().for_each(|history| moments[*history as usize].add(*value));
            }
            for (step, (history, value)) in histories.iter().zip(&returns).enumerate() {
                let Some(history) = history else { continue };
                let moments = &moments[*history as usize];
                if moments.count() < 2 || !value.is_finite() {
                    continue;
                }
                let difference = moments.difference(*value);
                add(
                    step,
                    level,
                    match config.normalization {
                        Normalization::MeanNorm => difference,
                        Normalization::MeanStdNorm => {
                            difference / (moments.deviation(0) + config.epsilon)
                        }
                    },
                );
            }
        }
        let mean = |(sum, weights): (f64, f64)| match weights {
            0.0 => 0.0,
            weights => sum / (weights + config.epsilon),
        };
        group.split(&sums.into_iter().map(mean).collect::<Vec<_>>())
    }
}

/// Numbers of histories that are longer by one: of the one before at the previous step, and the present situation.
fn longer(group: &GroupView<'_>, histories: &[Option<u32>], states: &[u32]) -> Vec<Option<u32>> {
    let mut interner = Interner::with_capacity(states.len());
    let mut step = 0;
    let mut result = Vec::with_capacity(states.len());
    for trajectory in group.trajectories() {
        for index in 0..trajectory.steps.len() {
            let before = if index == 0 { None } else { histories[step - 1] };
            result.push(before.map(|before| interner.id((before, states[step]))));
            step += 1;
        }
    }
    result
}

impl AdvantageEstimator for Hgpo {
    fn name(&self) -> &'static str {
        "hgpo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(|group| self.step_advantages(group)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_vectors::{cases, number, small_group, step_rows, to_view};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_hgpo", |case, near| {
            for (keep_zeros, output) in
                [(false, "step_advantage"), (true, "step_advantage_no_zero_filter_variant")]
            {
                let hgpo = Hgpo::new(HgpoConfig {
                    history_length: number(&case.params, "history_length") as usize,
                    discount: number(&case.params, "gamma"),
                    length_weight_alpha: number(&case.params, "length_weight_alpha"),
                    normalization: serde_json::from_value(case.params["mode"].clone()).unwrap(),
                    base_group: case.params["base_group"].as_bool().unwrap(),
                    keep_zeros,
                    singleton: Singleton::Raw,
                    epsilon: number(&case.params, "epsilon"),
                })
                .unwrap();
                for (view, members) in step_rows(case) {
                    let returns = view.split(&discounted_returns(&view, hgpo.config.discount));
                    let advantages = hgpo.step_advantages(&view);
                    for (trajectory, rows) in members.iter().enumerate() {
                        for (t, row) in rows.iter().enumerate() {
                            let of = |name: &str| case.outputs[name][row].as_f64().unwrap();
                            near(returns[trajectory][t], of("discounted_returns"));
                            near(advantages[trajectory][t], of(output));
                        }
                    }
                }
            }
        });
    }

    proptest! {
        #[test]
        fn without_history_it_is_the_step_part_of_gigpo(
            group in prop::collection::vec(
                prop::collection::vec((0_u8..4, 0_u8..3, -1.0..1.0), 0..6), 0..6),
        ) {
            let group = small_group(group);
            let view = to_view(&group);
            let config = HgpoConfig { history_length: 0, ..HgpoConfig::default() };
            let found = Hgpo::new(config).unwrap().step_advantages(&view);
            let gigpo = view.split(&Gigpo::default().advantages_in_state(&view));
            for (a, b) in found.iter().flatten().zip(gigpo.iter().flatten()) {
                prop_assert!((a - b).abs() < 1e-5);
            }
        }
    }
}
