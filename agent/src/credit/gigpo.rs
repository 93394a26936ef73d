//! GiGPO: the advantage of the episode plus the advantage among steps from the same state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::discounting::{discount_problem, returns_to_go};
use super::error::refuse;
use super::grpo::epsilon_problem;
use super::interner::Interner;
use super::moments::Moments;
use super::similar_states::similar_states;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// Options of [`Gigpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GigpoConfig {
    /// Discount of step returns, 0 to 1. Default 0.95.
    pub discount: f64,
    /// Weight of the step advantage beside the episode advantage. Default 1.
    pub step_weight: f64,
    /// How alike texts of situations have to be, from 0 to 1, to be the same, by Python's `difflib`: a text belongs to the first
    /// one before it that it is as near to. Default absent: they have to be equal.
    pub similarity: Option<f64>,
    /// Whether both parts are divided by the standard deviation. Default `mean_norm`: they are not.
    pub normalization: Normalization,
    /// Whether the episode's mean and deviation run over steps, so that long episodes weigh
    /// more, as in the reference, or over trajectories. Default true.
    pub compute_mean_std_cross_steps: bool,
    /// What the only value of an episode group gets; steps whose state nobody else saw always
    /// get a step advantage of 0. Default `zero`; verl-agent's rule is `raw`.
    pub singleton: Singleton,
    /// Added to the standard deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for GigpoConfig {
    fn default() -> Self {
        Self {
            discount: 0.95,
            step_weight: 1.0,
            similarity: None,
            normalization: Normalization::MeanNorm,
            compute_mean_std_cross_steps: true,
            singleton: Singleton::Zero,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for GigpoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = epsilon_problem(self.epsilon).into_iter().collect();
        problems.extend(discount_problem(self.discount));
        if let Some(similarity) = self.similarity.filter(|it| !(0.0..=1.0).contains(it)) {
            problems.push(format!("similarity is {similarity}, must be 0 to 1"));
        }
        if !self.step_weight.is_finite() {
            problems.push(format!("step_weight is {}, must be finite", self.step_weight));
        }
        problems
    }
}

/// Group-in-group advantages (arXiv 2505.10978), with exact grouping of states, or by likeness as its code has it.
///
/// `A = A_episode + step_weight * A_step`. `A_episode` compares the episode's return with the
/// group's; `A_step` compares the discounted return of a step, `ret_t = r_t + discount * ret_{t+1}`,
/// with those of all steps of the group taken in the same state, whatever the trajectory and
/// the time.
#[derive(Debug, Clone, Default)]
pub struct Gigpo {
    config: GigpoConfig,
}

impl Gigpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GigpoConfig) -> Result<Self, CreditError> {
        refuse("gigpo", config.problems())?;
        Ok(Self { config })
    }

    pub(super) fn episode_advantages(&self, group: &GroupView<'_>) -> Vec<f64> {
        let config = &self.config;
        let returns = group.returns();
        let mut moments = Moments::EMPTY;
        for (value, trajectory) in returns.iter().zip(group.trajectories()) {
            let times =
                if config.compute_mean_std_cross_steps { trajectory.steps.len() } else { 1 };
            (0..times).for_each(|_| moments.add(*value));
        }
        let advantage = |value| {
            moments.advantage(value, config.normalization, config.singleton, config.epsilon)
        };
        returns.into_iter().map(advantage).collect()
    }

    pub(super) fn advantages_in_state(&self, group: &GroupView<'_>) -> Vec<f64> {
        let config = &self.config;
        let returns = discounted_returns(group, config.discount);
        let texts = group.steps().iter().map(|step| step.state);
        let (states, num_states) = match config.similarity {
            Some(threshold) => similar_states(texts, threshold),
            None => {
                let mut interner = Interner::with_capacity(group.steps().len());
                let states: Vec<u32> = texts.map(|text| interner.id(text)).collect();
                (states, interner.len())
            }
        };
        let mut moments = vec![Moments::EMPTY; num_states];
        for (&state, &value) in states.iter().zip(&returns) {
            moments[state as usize].add(value);
        }
        let advantage = |(state, value): (u32, f64)| {
            let moments = &moments[state as usize];
            moments.advantage(value, config.normalization, Singleton::Zero, config.epsilon)
        };
        states.into_iter().zip(returns).map(advantage).collect()
    }

    /// One advantage per step of a group.
    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let episodes = self.episode_advantages(group);
        let mut advantages = group.split(&self.advantages_in_state(group));
        for (steps, episode) in advantages.iter_mut().zip(episodes) {
            steps.iter_mut().for_each(|step| *step = episode + self.config.step_weight * *step);
        }
        advantages
    }
}

impl AdvantageEstimator for Gigpo {
    fn name(&self) -> &'static str {
        "gigpo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(|group| self.step_advantages(group)))
    }
}

/// The discounted return from every step to the end of its trajectory.
pub(super) fn discounted_returns(group: &GroupView<'_>, discount: f64) -> Vec<f64> {
    let mut returns = Vec::with_capacity(group.steps().len());
    for trajectory in group.trajectories() {
        let start = returns.len();
        returns.extend(trajectory.steps.iter().map(|step| step.reward));
        returns_to_go(&mut returns[start..], discount);
    }
    returns
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::test_vectors::{cases, floats, small_group, strings, to_view};
    use super::super::{Grpo, StepView};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_gigpo", |case, near| {
            let groups = floats(&case.inputs["group"]);
            let trajectories = strings(&case.inputs["traj"]);
            let states = strings(&case.inputs["anchor_obs"]);
            let rewards = floats(&case.inputs["step_rewards"]);
            let normalization = serde_json::from_value(case.params["mode"].clone()).unwrap();
            let config = GigpoConfig {
                discount: case.params["gamma"].as_f64().unwrap(),
                step_weight: case.params["step_advantage_w"].as_f64().unwrap(),
                epsilon: case.params["epsilon"].as_f64().unwrap(),
                normalization,
                singleton: Singleton::Raw,
                ..GigpoConfig::default()
            };
            let per_trajectory =
                GigpoConfig { compute_mean_std_cross_steps: false, ..config.clone() };
            let gigpo = Gigpo::new(config).unwrap();
            let per_trajectory = Gigpo::new(per_trajectory).unwrap();
            let mut rows: BTreeMap<(u64, &str), Vec<usize>> = BTreeMap::new();
            for (row, trajectory) in trajectories.iter().enumerate() {
                rows.entry((groups[row] as u64, trajectory)).or_default().push(row);
            }
            let mut names: Vec<u64> = rows.keys().map(|(group, _)| *group).collect();
            names.dedup();
            for name in names {
                let members: Vec<_> =
                    rows.iter().filter(|((group, _), _)| *group == name).map(|(_, r)| r).collect();
                let mut view = GroupView::default();
                for member in &members {
                    view.push(member.iter().map(|&row| StepView {
                        reward: rewards[row],
                        state: &states[row],
                        action: "".into(),
                        next_state: None,
                        executed: true,
                        num_tokens: 1,
                    }));
                }
                let advantages = gigpo.step_advantages(&view);
                let steps = view.split(&gigpo.advantages_in_state(&view));
                let episodes = gigpo.episode_advantages(&view);
                let firsts = per_trajectory.episode_advantages(&view);
                for (index, member) in members.iter().enumerate() {
                    for (t, &row) in member.iter().enumerate() {
                        let output = |name: &str| floats(&case.outputs[name])[row];
                        near(steps[index][t], output("step_advantage_token0"));
                        near(episodes[index], output("episode_advantage_token0"));
                        near(firsts[index], output("episode_advantage_per_traj_first"));
                        near(advantages[index][t], floats(&case.outputs["advantages"][row])[0]);
                    }
                }
            }
        });
    }

    #[test]
    fn a_trajectory_alone_moves_nothing() {
        let steps = small_group(vec![vec![(0, 0, 1.0)]]);
        assert_eq!(Gigpo::default().step_advantages(&to_view(&steps)), [[0.0]]);
        assert!(Gigpo::default().step_advantages(&GroupView::default()).is_empty());
        let mut empty = GroupView::default();
        empty.push([]);
        assert_eq!(Gigpo::default().step_advantages(&empty), [[0.0; 0]]);
    }

    proptest! {
        #[test]
        fn the_order_of_trajectories_does_not_matter(
            group in prop::collection::vec(
                prop::collection::vec((0_u8..4, 0_u8..3, -1.0..1.0), 0..6), 0..6),
        ) {
            let forward = small_group(group.clone());
            let mut reversed = group;
            reversed.reverse();
            let reversed = small_group(reversed);
            let mut backward = Gigpo::default().step_advantages(&to_view(&reversed));
            backward.reverse();
            for (a, b) in Gigpo::default().step_advantages(&to_view(&forward)).iter().zip(&backward) {
                prop_assert_eq!(a.len(), b.len());
                prop_assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }

        #[test]
        fn without_rewards_all_advantages_are_zero(
            group in prop::collection::vec(
                prop::collection::vec((0_u8..4, 0_u8..3, Just(0.0)), 0..6), 0..6),
        ) {
            let group = small_group(group);
            let advantages = Gigpo::default().step_advantages(&to_view(&group));
            prop_assert!(advantages.iter().flatten().all(|a| *a == 0.0));
        }

        #[test]
        fn without_step_weight_it_is_grpo_without_deviation(
            group in prop::collection::vec(
                prop::collection::vec((0_u8..4, 0_u8..3, -1.0..1.0), 1..6), 1..6),
        ) {
            let group = small_group(group);
            let config = GigpoConfig {
                step_weight: 0.0,
                compute_mean_std_cross_steps: false,
                ..GigpoConfig::default()
            };
            let grpo = super::super::GrpoConfig {
                normalization: Normalization::MeanNorm,
                ..super::super::GrpoConfig::default()
            };
            prop_assert_eq!(
                Gigpo::new(config).unwrap().step_advantages(&to_view(&group)),
                Grpo::new(grpo).unwrap().step_advantages(&to_view(&group))
            );
        }
    }
}
