//! Good and bad tokens weigh differently, beside any loss of a policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PolicyTokens;
use super::bounds::not_negative;

/// Options of what good and bad tokens weigh: advantages are multiplied by `positive` or `negative`, by their sign.
///
/// `positive = 0` is negative sample reinforcement, `positive = 0.1` weighted REINFORCE (NSR and W-REINFORCE, arXiv
/// 2506.01347, where advantages are 1 and -1: use an estimator that gives these for the same numbers).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignWeights {
    /// What positive advantages are multiplied by; 0 or more. Default 0.1, that of W-REINFORCE.
    pub positive: f64,
    /// What negative ones are multiplied by; 0 or more. Default 1.
    pub negative: f64,
}

impl Default for SignWeights {
    fn default() -> Self {
        Self { positive: 0.1, negative: 1.0 }
    }
}

impl SignWeights {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let both = [("positive", self.positive), ("negative", self.negative)];
        let wrong = both.into_iter().filter_map(|(name, value)| not_negative(name, value));
        wrong.map(|problem| format!("sign_weights: {problem}")).collect()
    }

    /// Multiplies the advantages of a sample's tokens.
    pub(super) fn apply(&self, tokens: &mut PolicyTokens) {
        for advantage in &mut tokens.advantages {
            *advantage *= if *advantage > 0.0 { self.positive } else { self.negative };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_and_bad_tokens_are_multiplied_by_their_own() {
        let mut tokens =
            PolicyTokens { advantages: vec![2.0, -2.0, 0.0, f64::NAN], ..PolicyTokens::default() };
        SignWeights { positive: 0.25, negative: 0.5 }.apply(&mut tokens);
        assert_eq!(tokens.advantages[..3], [0.5, -1.0, 0.0]);
        assert!(tokens.advantages[3].is_nan());
        assert_eq!(SignWeights { positive: -1.0, negative: f64::NAN }.problems().len(), 2);
    }
}
