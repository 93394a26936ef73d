//! Parts of the reward count as much as they are said to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use crate::ShaperError;

/// Options of [`Weighted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WeightedOptions {
    /// Weights of parts by their names. Default empty.
    pub weights: BTreeMap<String, f64>,
    /// The weight of parts that are not named. Default 1.
    pub others: f64,
}

impl Default for WeightedOptions {
    fn default() -> Self {
        Self { weights: BTreeMap::new(), others: 1.0 }
    }
}

impl NamedOptions for WeightedOptions {
    fn problems(&self) -> Vec<String> {
        let named = self.weights.iter().map(|(name, weight)| (format!("weights.{name}"), *weight));
        let all = named.chain([("others".to_owned(), self.others)]);
        let wrong = all.filter(|(_, weight)| !weight.is_finite());
        wrong.map(|(name, weight)| format!("{name} is {weight}, must be finite")).collect()
    }
}

/// Multiplies every part of the reward by the weight of its name: `r = sum_k w_k r_k`. A weight of 0 takes a part away.
#[derive(Debug, Clone)]
pub struct Weighted {
    options: WeightedOptions,
}

impl Weighted {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when a weight is not finite.
    pub fn new(options: &WeightedOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "weighted", options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let WeightedOptions { weights, others } = &self.options;
        for parts in rewards {
            parts.iter_mut().for_each(|part| {
                part.value *= weights.get(&part.name).unwrap_or(others);
            });
            parts.retain(|part| part.value != 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn parts_count_by_their_names() {
        let weights = BTreeMap::from([("format".to_owned(), 0.0), ("success".to_owned(), 2.0)]);
        let weighted = Weighted::new(&WeightedOptions { weights, others: 0.5 }).unwrap();
        let shapers = RewardShapers::new(vec![Box::new(weighted)]);
        let played = episode(&[&[("format", 1.0), ("invalid_action", -0.2)], &[("success", 1.0)]]);
        assert_eq!(shapers.rewards(&played), [-0.1, 2.0]);
        assert_eq!(shapers.shape(&played)[0].len(), 1);
        let wrong = WeightedOptions { others: f64::NAN, ..WeightedOptions::default() };
        assert!(Weighted::new(&wrong).is_err());
    }
}
