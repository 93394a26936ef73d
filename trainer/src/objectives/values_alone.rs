//! A value head is trained, and no policy.

use spar_core::Sample;

use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// No loss of the policy: with `value_loss` beside it, only the value head learns, and the decoder as far as the head's
/// gradient goes on into it (`trunk_gradient`), which recipes have off beside it, so that the policy stays.
///
/// It fits a critic before a policy is trained by what the critic says, such as with [`DirectAdvantage`](super::DirectAdvantage).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValuesAlone;

impl PolicyLoss for ValuesAlone {
    fn name(&self) -> &'static str {
        "values_alone"
    }

    fn has_gradient(&self, _: &Sample) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], _: &mut Tally) -> PolicyLosses {
        PolicyLosses::zero(tokens.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::ObjectiveConfig;
    use crate::testing::policy_sample;

    #[test]
    fn samples_have_a_gradient_by_their_values_alone() {
        let sample = policy_sample(&[(true, 1.0, -1.0), (true, -1.0, -0.5)]);
        let of = |text: &str| toml::from_str::<ObjectiveConfig>(text).unwrap().build().unwrap();
        assert!(!of("name = 'values_alone'").has_gradient(&sample));
        let valued = of("name = 'values_alone'\nvalue_loss = { weight = 1.0 }");
        assert!(valued.has_gradient(&sample));
        let mut sample = sample;
        sample.returns = vec![0.0, 1.0, 0.5];
        let measured = crate::Measured {
            logprobs: &[0.0, -1.0, -0.5],
            entropies: &[0.0; 3],
            values: &[0.0, 0.25, 0.5],
            ..crate::Measured::default()
        };
        let found = crate::testing::sample_loss(&*valued, &sample, measured, 1.0);
        assert_eq!(found.slopes.logprobs, [0.0; 3]);
        assert_eq!(found.slopes.values, [0.0, -0.75, 0.0]);
    }
}
