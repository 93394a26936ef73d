//! Several rewards for the same thing become one that is hard to deceive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use crate::ShaperError;

/// How the members of an ensemble become one reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnsembleRule {
    /// The least of them: worst-case optimisation (WCO).
    #[default]
    Min,
    /// Their mean, less `uncertainty_weight` times their variance: uncertainty-weighted optimisation (UWO).
    Uwo,
}

/// Options of [`Ensemble`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnsembleOptions {
    /// Names of the parts that are its members. Default empty: all parts of an episode.
    pub members: Vec<String>,
    /// How they become one. Default `min`.
    pub rule: EnsembleRule,
    /// What their variance costs, for `uwo` alone; at least 0. Default absent: 0.5 there.
    pub uncertainty_weight: Option<f64>,
}

impl Default for EnsembleOptions {
    fn default() -> Self {
        Self { members: Vec::new(), rule: EnsembleRule::Min, uncertainty_weight: None }
    }
}

impl NamedOptions for EnsembleOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(weight) = self.uncertainty_weight {
            if self.rule != EnsembleRule::Uwo {
                problems.push("uncertainty_weight has no effect: set rule `uwo`".to_owned());
            } else if !(weight.is_finite() && weight >= 0.0) {
                problems.push(format!("uncertainty_weight is {weight}, must be at least 0"));
            }
        }
        problems
    }
}

/// What the variance costs where nobody says it.
const UNCERTAINTY_WEIGHT: f64 = 0.5;

/// Conservative rewards of an ensemble (arXiv 2310.02743, equations 4 and 5).
///
/// Each member's parts are summed over the episode; the last turn gets `min_k R_k`, or `mean_k R_k - weight * var_k R_k` with the variance of a population, as part
/// `ensemble`, and the members' own parts are taken away. A member that an episode does not name counts as 0.
#[derive(Debug, Clone)]
pub struct Ensemble {
    options: EnsembleOptions,
}

impl Ensemble {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when an option has no effect or is outside its range.
    pub fn new(options: &EnsembleOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "ensemble", options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for Ensemble {
    fn name(&self) -> &'static str {
        "ensemble"
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let EnsembleOptions { members, rule, uncertainty_weight } = &self.options;
        let is_member = |name: &str| members.is_empty() || members.iter().any(|it| it == name);
        let mut sums: Vec<(String, f64)> = members.iter().map(|name| (name.clone(), 0.0)).collect();
        for part in rewards.iter().flatten().filter(|part| is_member(&part.name)) {
            match sums.iter_mut().find(|(name, _)| *name == part.name) {
                Some((_, sum)) => *sum += part.value,
                None => sums.push((part.name.clone(), part.value)),
            }
        }
        if sums.is_empty() {
            return;
        }
        for parts in rewards.iter_mut() {
            parts.retain(|part| !is_member(&part.name));
        }
        let count = sums.len() as f64;
        let mean = sums.iter().map(|(_, sum)| sum).sum::<f64>() / count;
        let value = match rule {
            EnsembleRule::Min => sums.iter().map(|(_, sum)| *sum).fold(f64::INFINITY, f64::min),
            EnsembleRule::Uwo => {
                let variance =
                    sums.iter().map(|(_, sum)| (sum - mean).powi(2)).sum::<f64>() / count;
                mean - uncertainty_weight.unwrap_or(UNCERTAINTY_WEIGHT) * variance
            }
        };
        if let Some(last) = rewards.last_mut() {
            last.push(RewardPart { name: "ensemble".to_owned(), value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    fn shaped(options: EnsembleOptions, parts: &[&[(&str, f64)]]) -> Vec<f64> {
        let ensemble = Ensemble::new(&options).unwrap();
        RewardShapers::new(vec![Box::new(ensemble)]).rewards(&episode(parts))
    }

    #[test]
    fn the_least_member_counts_or_their_mean_less_their_variance() {
        let members = vec!["one".to_owned(), "two".to_owned()];
        let parts: &[&[(&str, f64)]] =
            &[&[("one", 0.2), ("other", 5.0)], &[("one", 0.6), ("two", 0.4)]];
        let least = EnsembleOptions { members: members.clone(), ..EnsembleOptions::default() };
        assert_eq!(shaped(least, parts), [5.0, 0.4]);
        let uwo = EnsembleOptions {
            members: members.clone(),
            rule: EnsembleRule::Uwo,
            uncertainty_weight: Some(1.0),
        };
        let found = shaped(uwo, parts);
        assert!((found[1] - (0.6 - 0.04)).abs() < 1e-12, "{found:?}");
        // Who says nothing says 0.
        let least = EnsembleOptions { members, ..EnsembleOptions::default() };
        assert_eq!(shaped(least, &[&[("one", 1.0)]]), [0.0]);
        assert_eq!(
            shaped(EnsembleOptions::default(), &[&[("a", 1.0)], &[("b", -1.0)]]),
            [0.0, -1.0]
        );
        let ignored =
            EnsembleOptions { uncertainty_weight: Some(1.0), ..EnsembleOptions::default() };
        assert!(Ensemble::new(&ignored).is_err());
    }
}
