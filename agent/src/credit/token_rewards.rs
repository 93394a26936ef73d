//! Rewards of steps as rewards of tokens.

use super::StepView;

/// One reward per sampled token: what a step earned stands at its last token.
///
/// What a step without tokens earned stands at the last token before it, so that it is not lost; where there
/// is none, nobody could be told of it. What is not finite counts as nothing earned.
pub(super) fn token_rewards(steps: &[StepView<'_>]) -> Vec<f64> {
    let mut rewards = Vec::new();
    for step in steps {
        rewards.resize(rewards.len() + step.num_tokens, 0.0);
        if let Some(last) = rewards.last_mut().filter(|_| step.reward.is_finite()) {
            *last += step.reward;
        }
    }
    rewards
}

/// Whether all that a trajectory earned is known: nothing is learned from one with a reward that is not finite.
pub(super) fn is_told(steps: &[StepView<'_>]) -> bool {
    steps.iter().all(|step| step.reward.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::step_of;
    use super::*;

    #[test]
    fn rewards_stand_at_the_last_token_of_their_step() {
        let steps = [step_of(9.0, 0), step_of(1.0, 2), step_of(2.0, 0), step_of(4.0, 1)];
        assert_eq!(token_rewards(&steps), [0.0, 3.0, 4.0]);
        assert!(token_rewards(&steps[..1]).is_empty());
        assert_eq!(token_rewards(&[step_of(f64::NAN, 2)]), [0.0, 0.0]);
        assert!(is_told(&steps) && is_told(&[]) && !is_told(&[step_of(f64::INFINITY, 0)]));
    }
}
