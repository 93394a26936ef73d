//! UI-S1: steps at the same place of a demonstration are compared, and what follows a mismatch does not count for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::discounting::discount_problem;
use super::error::refuse;
use super::grpo::epsilon_problem;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// Options of [`UiS1`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UiS1Config {
    /// Discount of step returns, 0 to 1. Default 0.5.
    pub discount: f64,
    /// Weight of the episode's advantage. Default 1.
    pub episode_weight: f64,
    /// Weight of the step's advantage. Default 1.
    pub step_weight: f64,
    /// Whether both are divided by the unbiased standard deviation. Default `mean_norm`: they are not.
    pub normalization: Normalization,
    /// What the only episode of a group gets; steps that nobody else took always get 0. Default `zero`; the authors' rule is
    /// `raw`.
    pub singleton: Singleton,
    /// Added to the standard deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for UiS1Config {
    fn default() -> Self {
        Self {
            discount: 0.5,
            episode_weight: 1.0,
            step_weight: 1.0,
            normalization: Normalization::MeanNorm,
            singleton: Singleton::Zero,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for UiS1Config {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = epsilon_problem(self.epsilon).into_iter().collect();
        problems.extend(discount_problem(self.discount));
        for (name, weight) in
            [("episode_weight", self.episode_weight), ("step_weight", self.step_weight)]
        {
            if !weight.is_finite() {
                problems.push(format!("{name} is {weight}, must be finite"));
            }
        }
        problems
    }
}

/// Semi-online advantages (UI-S1, arXiv 2509.11543, and its code `uis1/core_uis1.py`).
///
/// `A = episode_weight A_episode + step_weight A_step`. `A_episode` compares returns within the group, each as often as its episode has steps;
/// `A_step` compares discounted returns of the steps with the same number. The return of a step that did not match, which here is one whose
/// action was not executed, is its own reward, and steps before it take nothing from it or from what is behind it.
#[derive(Debug, Clone, Default)]
pub struct UiS1 {
    config: UiS1Config,
}

impl UiS1 {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: UiS1Config) -> Result<Self, CreditError> {
        refuse("ui_s1", config.problems())?;
        Ok(Self { config })
    }

    /// The return of every step.
    fn step_returns(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let of = |trajectory: super::TrajectoryView<'_, '_>| {
            let mut behind = 0.0;
            let mut returns: Vec<f64> = Vec::with_capacity(trajectory.steps.len());
            for step in trajectory.steps.iter().rev() {
                let value = match step.executed {
                    true => step.reward + self.config.discount * behind,
                    false => step.reward,
                };
                behind = if step.executed { value } else { 0.0 };
                returns.push(value);
            }
            returns.reverse();
            returns
        };
        group.trajectories().map(of).collect()
    }

    /// One advantage per step of a group.
    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let UiS1Config { episode_weight, step_weight, normalization, singleton, epsilon, .. } =
            self.config;
        let episodes = group.returns();
        let mut of_episodes = Moments::EMPTY;
        let mut of_steps: Vec<Moments> = Vec::new();
        let returns = self.step_returns(group);
        for (episode, steps) in episodes.iter().zip(&returns) {
            for (number, value) in steps.iter().enumerate() {
                of_episodes.add(*episode);
                if of_steps.len() == number {
                    of_steps.push(Moments::EMPTY);
                }
                of_steps[number].add(*value);
            }
        }
        let advantages = |(episode, steps): (f64, Vec<f64>)| {
            let episode = of_episodes.advantage(episode, normalization, singleton, epsilon);
            let step = |(number, value): (usize, f64)| {
                let alone = Singleton::Zero;
                let step = of_steps[number].advantage(value, normalization, alone, epsilon);
                episode_weight * episode + step_weight * step
            };
            steps.into_iter().enumerate().map(step).collect()
        };
        episodes.into_iter().zip(returns).map(advantages).collect()
    }
}

impl AdvantageEstimator for UiS1 {
    fn name(&self) -> &'static str {
        "ui_s1"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(|group| self.step_advantages(group)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{cases, number, step_rows};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_uis1", |case, near| {
            let estimator = UiS1::new(UiS1Config {
                discount: number(&case.params, "gamma"),
                episode_weight: number(&case.params, "episode_advantage_w"),
                step_weight: number(&case.params, "step_advantage_w"),
                normalization: serde_json::from_value(case.params["mode"].clone()).unwrap(),
                singleton: Singleton::Raw,
                epsilon: number(&case.params, "epsilon"),
            })
            .unwrap();
            for (view, members) in step_rows(case) {
                let returns = estimator.step_returns(&view);
                let advantages = estimator.step_advantages(&view);
                for (trajectory, rows) in members.iter().enumerate() {
                    for (t, row) in rows.iter().enumerate() {
                        let of_row = |name: &str| &case.outputs[name][*row];
                        near(
                            returns[trajectory][t],
                            of_row("discounted_returns").as_f64().unwrap(),
                        );
                        let mask = case.inputs["response_mask"][*row].as_array().unwrap();
                        let expected = of_row("advantages").as_array().unwrap();
                        for (mask, expected) in mask.iter().zip(expected) {
                            let is_token = mask.as_f64().unwrap();
                            near(advantages[trajectory][t] * is_token, expected.as_f64().unwrap());
                        }
                    }
                }
            }
        });
    }
}
