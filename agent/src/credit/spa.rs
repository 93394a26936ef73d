//! SPA: the progress that a predictor sees in turns, as their rewards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signal, Signals};

use super::discounting::discount_problem;
use super::error::refuse;
use super::predicted::{of_turns, whiten_turns};
use super::{AdvantageEstimator, BatchView, CreditError};

/// Options of [`Spa`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpaConfig {
    /// What a turn's predicted contribution to the outcome weighs, 0 or more. Default 1.
    pub progress_weight: f64,
    /// What a turn earns whose action was executed, 0 or more; a summary executes none. Default 0.5.
    pub grounding_weight: f64,
    /// Discount per turn, 0 to 1. Default 1.
    pub discount: f64,
    /// Whether advantages get mean 0 and deviation 1 over the turns of the batch. Default true.
    pub normalize: bool,
}

impl Default for SpaConfig {
    fn default() -> Self {
        Self { progress_weight: 1.0, grounding_weight: 0.5, discount: 1.0, normalize: true }
    }
}

impl NamedOptions for SpaConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let weights = [
            ("progress_weight", self.progress_weight),
            ("grounding_weight", self.grounding_weight),
        ];
        for (name, weight) in weights {
            if !(weight >= 0.0 && weight.is_finite()) {
                problems.push(format!("{name} is {weight}, must be 0 or more"));
            }
        }
        problems.extend(discount_problem(self.discount));
        problems
    }
}

/// Stepwise progress attribution (SPA-RL, arXiv 2505.20732): a turn earns what a predictor says it contributed to the
/// outcome, and something for an action that could be executed.
///
/// ```text
/// r_t = progress_weight * c_t + grounding_weight * g_t,    g_t = 1 if an action was executed, else 0
/// G_t = r_t + discount * G_{t+1},    A = (G - mean G) / std G over the turns of the batch
/// ```
///
/// The rewards of the environment come in by way of the predictor alone, which learned `sum_t c_t` from them. Without a
/// discount and grounding, `G_0` is the predicted outcome. Reconstructed: the paper hands `r_t` to PPO with a learned
/// baseline per step; here the sums are compared with each other over the batch, which needs no second network. The
/// released script (`prm/rl_data_org.py`) does not use its predictor at all and is another method. Turns without tokens
/// have no contribution, and are compared with nothing; nor are those of episodes whose tokens are redacted.
#[derive(Debug, Clone, Default)]
pub struct Spa {
    config: SpaConfig,
}

impl Spa {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: SpaConfig) -> Result<Self, CreditError> {
        refuse("spa", config.problems())?;
        Ok(Self { config })
    }
}

impl AdvantageEstimator for Spa {
    fn name(&self) -> &'static str {
        "spa"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::Progress]
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let SpaConfig { progress_weight, grounding_weight, discount, normalize } = self.config;
        let mut advantages = of_turns(batch, signals, Signal::Progress)?;
        for (trajectory, values) in batch.trajectories().zip(&mut advantages) {
            let mut behind = 0.0;
            for (step, value) in trajectory.steps.iter().zip(values).rev() {
                let grounding = if step.executed { grounding_weight } else { 0.0 };
                behind = progress_weight * *value + grounding + discount * behind;
                *value = behind;
            }
        }
        if normalize {
            whiten_turns(batch, &mut advantages)?;
        }
        Ok(Credit::of_turns(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::step_of;
    use super::super::{EpisodeView, GroupView, StepView};
    use super::*;

    fn batch() -> BatchView<'static> {
        let mut group = GroupView::default();
        let invalid = StepView { executed: false, ..step_of(7.0, 1) };
        group.push_episode(EpisodeView::new(0), [step_of(0.0, 2), step_of(0.0, 0), invalid]);
        group.push_episode(EpisodeView::new(1), [step_of(1.0, 1)]);
        BatchView::from(group)
    }

    fn signals() -> Signals {
        let mut signals = Signals::default();
        signals.insert(Signal::Progress, vec![vec![0.5, 0.5, -0.25], vec![2.0]]);
        signals
    }

    fn estimate(config: SpaConfig) -> Vec<Vec<f64>> {
        let credit = Spa::new(config).unwrap().estimate(&batch(), &signals()).unwrap();
        match credit.advantages {
            spar_core::PerTurnOrToken::Turns(turns) => turns,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_turn_earns_its_contribution_and_what_is_grounded() {
        let config = SpaConfig {
            progress_weight: 2.0,
            grounding_weight: 0.5,
            discount: 0.5,
            normalize: false,
        };
        // The last turn could not be executed: -0.5. The one without tokens contributes nothing: 0.5 - 0.25. The
        // first one 1 + 0.5 + 0.125.
        assert_eq!(estimate(config), [vec![1.625, 0.25, -0.5], vec![4.5]]);
    }

    #[test]
    fn what_is_to_come_from_the_first_turn_on_is_the_predicted_outcome() {
        let config = SpaConfig {
            grounding_weight: 0.0,
            discount: 1.0,
            progress_weight: 1.0,
            normalize: false,
        };
        let found = estimate(config);
        assert_eq!((found[0][0], found[1][0]), (0.5 - 0.25, 2.0));
    }

    #[test]
    fn turns_that_have_tokens_are_compared_over_the_batch() {
        let found = estimate(SpaConfig::default());
        let with_tokens = [found[0][0], found[0][2], found[1][0]];
        assert!(with_tokens.iter().sum::<f64>().abs() < 1e-6, "{found:?}");
        assert!(found[1][0] > found[0][0] && found[0][0] > found[0][2]);
        assert_eq!(found[0][1], 0.0, "nothing was sampled in it");
    }

    #[test]
    fn redacted_episodes_are_compared_with_nothing() {
        let estimate = |has_redacted: bool| {
            let mut group = GroupView::default();
            group.push_episode(EpisodeView::new(0), [step_of(0.0, 1)]);
            group.push_episode(EpisodeView::new(1), [step_of(0.0, 1)]);
            let mut progress = vec![vec![1.0], vec![-2.0]];
            if has_redacted {
                let redacted = EpisodeView { is_redacted: true, ..EpisodeView::new(2) };
                group.push_episode(redacted, [step_of(0.0, 1), step_of(0.0, 1)]);
                progress.push(vec![0.0, 0.0]);
            }
            let mut signals = Signals::default();
            signals.insert(Signal::Progress, progress);
            let spa = Spa::new(SpaConfig::default()).unwrap();
            spa.estimate(&BatchView::from(group), &signals).unwrap().advantages
        };
        let (with, without) = (estimate(true), estimate(false));
        assert!(without.at(0, 0, 0) > 0.0);
        for trajectory in [0, 1] {
            assert_eq!(with.at(trajectory, 0, 0), without.at(trajectory, 0, 0));
        }
        assert_eq!((with.at(2, 0, 0), with.at(2, 1, 0)), (0.0, 0.0));
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let config = SpaConfig { grounding_weight: -1.0, discount: 1.5, ..SpaConfig::default() };
        let error = Spa::new(config).unwrap_err().to_string();
        assert!(error.contains("grounding_weight is -1") && error.contains("discount is 1.5"));
    }
}
