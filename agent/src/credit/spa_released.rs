//! What the released script of SPA-RL computes, which its paper does not say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView};

/// Options of [`SpaReleased`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpaReleasedConfig {
    /// What a step gets whose action was executed, and always the last one. Default 0.5.
    pub grounding: f64,
}

impl Default for SpaReleasedConfig {
    fn default() -> Self {
        Self { grounding: 0.5 }
    }
}

impl NamedOptions for SpaReleasedConfig {
    fn problems(&self) -> Vec<String> {
        let problem = || format!("grounding is {}, must be finite", self.grounding);
        (!self.grounding.is_finite()).then(problem).into_iter().collect()
    }
}

/// The step rewards of SPA-RL's released code (`prm/rl_data_org.py`), which leaves the predicted progress unused, as advantages.
///
/// `A_t = R_i - mean of the other R of the group + grounding` where the action was executed; a trajectory alone has its own return in the first
/// place. The script feeds them to PPO, which takes a baseline off them once more. Returns that are not finite count in nothing and stand for 0.
#[derive(Debug, Clone, Default)]
pub struct SpaReleased {
    config: SpaReleasedConfig,
}

impl SpaReleased {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: SpaReleasedConfig) -> Result<Self, CreditError> {
        refuse("spa_released", config.problems())?;
        Ok(Self { config })
    }

    /// One number per step of a group.
    fn step_rewards(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let returns = group.returns();
        let moments = Moments::of(returns.iter().copied());
        let outcome = |value: f64| match moments.count() {
            _ if !value.is_finite() => 0.0,
            1 => value,
            count => moments.difference(value) * count as f64 / (count - 1) as f64,
        };
        let of = |(trajectory, value): (super::TrajectoryView<'_, '_>, f64)| {
            let last = trajectory.steps.len().saturating_sub(1);
            let grounded = |(t, step): (usize, &super::StepView<'_>)| step.executed || t == last;
            let steps = trajectory.steps.iter().enumerate();
            let reward = |step| if grounded(step) { self.config.grounding } else { 0.0 };
            steps.map(|step| outcome(value) + reward(step)).collect()
        };
        group.trajectories().zip(returns).map(of).collect()
    }
}

impl AdvantageEstimator for SpaReleased {
    fn name(&self) -> &'static str {
        "spa_released"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(|group| self.step_rewards(group)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::super::StepView;
    use super::super::test_vectors::{cases, floats, number, step_of, strings};
    use super::*;

    #[test]
    fn rewards_equal_the_released_script() {
        cases("reward_spa_rl_released", |case, near| {
            let config = SpaReleasedConfig { grounding: number(&case.params, "grounding") };
            let estimator = SpaReleased::new(config).unwrap();
            let trajectories = case.inputs["trajectories"].as_array().unwrap();
            let mut tasks: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for (row, trajectory) in trajectories.iter().enumerate() {
                tasks.entry(trajectory["id"].as_str().unwrap()).or_default().push(row);
            }
            for rows in tasks.values() {
                let mut view = GroupView::default();
                for row in rows {
                    let trajectory: &Value = &trajectories[*row];
                    let seen = strings(&trajectory["observations_after_step"]);
                    let count = floats(&trajectory["prm_turn_values"]).len();
                    view.push((0..count).map(|t| StepView {
                        executed: seen.get(t).is_none_or(|it| !it.contains("Nothing happens")),
                        ..step_of(if t == 0 { number(trajectory, "final_reward") } else { 0.0 }, 1)
                    }));
                }
                for (found, row) in estimator.step_rewards(&view).iter().zip(rows) {
                    let expected = floats(&case.outputs["step_rewards"][*row]);
                    assert_eq!(found.len(), expected.len());
                    found.iter().zip(expected).for_each(|(found, it)| near(*found, it));
                }
            }
        });
    }
}
