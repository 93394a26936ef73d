//! ReMax: what is earned is compared with what the greedy answer earns.

use spar_core::{Credit, PerTurnOrToken, Signals};

use super::discounting::returns_to_go;
use super::token_rewards::{is_told, token_rewards};
use super::{AdvantageEstimator, BatchView, CreditError, GroupView};

/// REINFORCE with a greedy baseline (ReMax, arXiv 2310.10505, algorithm 2, in verl's form).
///
/// `A_t = sum_{s >= t} r_s - b` over sampled tokens, `b` being what the greedy episode of the same task earned, which strategy `greedy_baseline` plays. That one gets 0, and so does a
/// group without it, because it failed or is not known to have earned anything finite, and a trajectory with a reward that is not finite. Whoever uses the library may give the baselines, one for each group of the
/// batch, in their order.
#[derive(Debug, Clone, Default)]
pub struct Remax {
    baselines: Option<Vec<f64>>,
}

impl Remax {
    /// An estimator for a batch whose groups have these baselines.
    pub fn with_baselines(baselines: Vec<f64>) -> Self {
        Self { baselines: Some(baselines) }
    }

    /// What every group is compared with; absent where there is nothing.
    fn baselines(&self, batch: &BatchView<'_>) -> Result<Vec<Option<f64>>, CreditError> {
        let Some(given) = &self.baselines else {
            let earned = |group: &GroupView<'_>| {
                let greedy = group.trajectories().find(|it| it.episode.lineage.greedy)?;
                let earned: f64 = greedy.steps.iter().map(|step| step.reward).sum();
                earned.is_finite().then_some(earned)
            };
            return Ok(batch.groups().iter().map(earned).collect());
        };
        let (found, needed) = (given.len(), batch.groups().len());
        match found == needed {
            true => Ok(given.iter().copied().map(Some).collect()),
            false => Err(CreditError::Baselines { found, needed }),
        }
    }
}

impl AdvantageEstimator for Remax {
    fn name(&self) -> &'static str {
        "remax"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let mut advantages = Vec::new();
        for (group, baseline) in batch.groups().iter().zip(self.baselines(batch)?) {
            for trajectory in group.trajectories() {
                let mut tokens = token_rewards(trajectory.steps);
                returns_to_go(&mut tokens, 1.0);
                let is_compared = is_told(trajectory.steps) && !trajectory.episode.lineage.greedy;
                match baseline.filter(|_| is_compared) {
                    Some(baseline) => tokens.iter_mut().for_each(|value| *value -= baseline),
                    None => tokens.fill(0.0),
                }
                advantages.push(tokens);
            }
        }
        let advantages = PerTurnOrToken::Tokens(advantages);
        Ok(Credit { advantages, weights: None, returns: None })
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Lineage;

    use super::super::EpisodeView;
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
            let remax = Remax::with_baselines(floats(&case.inputs["reward_baselines"]));
            let credit = remax.estimate(&batch, &Signals::default()).unwrap();
            // Where no token was sampled the reference has what is still to come.
            let expected = masked_rows(&case.outputs["advantages"], &case.inputs["response_mask"]);
            let PerTurnOrToken::Tokens(found) = credit.advantages else { unreachable!() };
            assert_eq!(found.len(), expected.len());
            found.iter().flatten().zip(expected.concat()).for_each(|(found, it)| near(*found, it));
            let none = Remax::with_baselines(Vec::new());
            let wrong = none.estimate(&batch, &Signals::default()).unwrap_err();
            assert!(matches!(wrong, CreditError::Baselines { found: 0, .. }));
        });
    }

    #[test]
    fn what_is_sampled_is_compared_with_what_is_greedy() {
        let group = |returns: &[(f64, bool)]| {
            let mut view = GroupView::default();
            for (number, (reward, greedy)) in returns.iter().enumerate() {
                let lineage = Lineage { greedy: *greedy, ..Lineage::default() };
                let episode = EpisodeView { lineage, ..EpisodeView::new(number as u64) };
                view.push_episode(episode, [step_of(0.25, 1), step_of(*reward, 2)]);
            }
            view
        };
        let batch: BatchView<'_> = [
            group(&[(1.0, false), (0.5, true), (f64::NAN, false)]),
            group(&[(1.0, false), (0.0, false)]),
            group(&[(1.0, false), (f64::INFINITY, true)]),
        ]
        .into_iter()
        .collect();
        let credit = Remax::default().estimate(&batch, &Signals::default()).unwrap();
        let PerTurnOrToken::Tokens(found) = credit.advantages else { panic!("by token") };
        assert_eq!(found[0], [0.5, 0.25, 0.25], "what is still to come, less 0.75");
        assert!(found[1..].iter().flatten().all(|value| *value == 0.0), "{found:?}");
    }
}
