//! ReMax: what is earned is compared with what the greedy answer earns.

use spar_core::{Credit, PerTurnOrToken, Signals};

use super::discounting::returns_to_go;
use super::token_rewards::token_rewards;
use super::{AdvantageEstimator, BatchView, CreditError};

/// REINFORCE with a greedy baseline (ReMax, arXiv 2310.10505, algorithm 2, in verl's form).
///
/// `A_t = sum_{s >= t} r_s - b` over sampled tokens, `b` being what the greedy episode of the same task earned. It has no name in recipes, since
/// no rollout strategy plays that episode: whoever uses the library gives the baselines, one for each group of the batch, in their order.
#[derive(Debug, Clone, Default)]
pub struct Remax {
    baselines: Vec<f64>,
}

impl Remax {
    /// An estimator for a batch whose groups have these baselines.
    pub fn new(baselines: Vec<f64>) -> Self {
        Self { baselines }
    }
}

impl AdvantageEstimator for Remax {
    fn name(&self) -> &'static str {
        "remax"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        if self.baselines.len() != batch.groups().len() {
            let (found, needed) = (self.baselines.len(), batch.groups().len());
            return Err(CreditError::Baselines { found, needed });
        }
        let mut advantages = Vec::new();
        for (group, baseline) in batch.groups().iter().zip(&self.baselines) {
            for trajectory in group.trajectories() {
                let mut tokens = token_rewards(trajectory.steps);
                returns_to_go(&mut tokens, 1.0);
                tokens.iter_mut().for_each(|value| *value -= baseline);
                advantages.push(tokens);
            }
        }
        let advantages = PerTurnOrToken::Tokens(advantages);
        Ok(Credit { advantages, weights: None, returns: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::GroupView;
    use super::super::test_vectors::{cases, floats, masked_rows, step_of};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        cases("adv_remax", |case, near| {
            let masked =
                masked_rows(&case.inputs["token_level_rewards"], &case.inputs["response_mask"]);
            let view = |rewards: &Vec<f64>| {
                let mut view = GroupView::default();
                view.push(rewards.iter().map(|reward| step_of(*reward, 1)));
                view
            };
            let batch: BatchView<'_> = masked.iter().map(view).collect();
            let remax = Remax::new(floats(&case.inputs["reward_baselines"]));
            let credit = remax.estimate(&batch, &Signals::default()).unwrap();
            // Where no token was sampled the reference has what is still to come.
            let expected = masked_rows(&case.outputs["advantages"], &case.inputs["response_mask"]);
            let PerTurnOrToken::Tokens(found) = credit.advantages else { unreachable!() };
            assert_eq!(found.len(), expected.len());
            found.iter().flatten().zip(expected.concat()).for_each(|(found, it)| near(*found, it));
            let wrong = Remax::default().estimate(&batch, &Signals::default()).unwrap_err();
            assert!(matches!(wrong, CreditError::Baselines { found: 0, .. }));
        });
    }
}
