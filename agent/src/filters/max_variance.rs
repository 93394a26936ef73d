//! The trajectories of a group whose returns differ most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{FilterError, GroupFilter};
use crate::credit::GroupView;

/// Options of [`MaxVariance`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxVarianceConfig {
    /// Trajectories that are kept of each group, at least 1; groups that have no more are kept whole. Default 4.
    pub keep: usize,
}

impl Default for MaxVarianceConfig {
    fn default() -> Self {
        Self { keep: 4 }
    }
}

impl NamedOptions for MaxVarianceConfig {
    fn problems(&self) -> Vec<String> {
        let is_none = self.keep == 0;
        is_none.then(|| "keep is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// Keeps the `keep` trajectories of a group whose returns have the greatest variance together.
///
/// With returns in ascending order, that subset is the `i` lowest and the `keep - i` highest for some `i`, so that
/// `keep + 1` candidates are compared: PODS (arXiv 2504.13818, max-variance down-sampling). Of equal variances the
/// one with more of the high returns is taken, of equal returns the trajectory that comes first.
///
/// Deviation: credit was estimated over the whole group before, so that advantages are relative to all of it and
/// not to the subset. What is left out does not count in what a loss is divided by.
#[derive(Debug, Clone, Default)]
pub struct MaxVariance {
    config: MaxVarianceConfig,
}

impl MaxVariance {
    /// A filter with these options.
    ///
    /// # Errors
    ///
    /// [`FilterError::Row`] when `keep` is 0.
    pub fn new(config: MaxVarianceConfig) -> Result<Self, FilterError> {
        RowError::refuse(AXIS.what, "max_variance", config.problems())?;
        Ok(Self { config })
    }
}

impl GroupFilter for MaxVariance {
    fn name(&self) -> &'static str {
        "max_variance"
    }

    fn keep(&self, group: &GroupView<'_>) -> Vec<bool> {
        let returns = group.returns();
        let (count, keep) = (returns.len(), self.config.keep);
        if count <= keep {
            return vec![true; count];
        }
        let mut ascending: Vec<usize> = (0..count).collect();
        ascending.sort_by(|a, b| returns[*a].total_cmp(&returns[*b]));
        // Differences to one of them, so that nothing cancels; sums[i] runs over the first i.
        let offset = |place: usize| returns[ascending[place]] - returns[ascending[0]];
        let mut sums = vec![(0.0, 0.0)];
        for place in 0..count {
            let (sum, squares) = sums[place];
            sums.push((sum + offset(place), squares + offset(place) * offset(place)));
        }
        let variance = |lowest: usize| {
            let behind = count - (keep - lowest);
            let sum = sums[lowest].0 + sums[count].0 - sums[behind].0;
            let squares = sums[lowest].1 + sums[count].1 - sums[behind].1;
            squares - sum * sum / keep as f64
        };
        let mut best = (0, variance(0));
        for lowest in 1..=keep {
            let found = variance(lowest);
            if found > best.1 {
                best = (lowest, found);
            }
        }
        let (lowest, highest) = (best.0, keep - best.0);
        let mut kept = vec![false; count];
        ascending[..lowest].iter().for_each(|&index| kept[index] = true);
        // Of returns that equal the lowest among the highest, those that come first.
        let mut descending: Vec<usize> = ascending[lowest..].to_vec();
        descending.sort_by(|a, b| returns[*b].total_cmp(&returns[*a]));
        descending[..highest].iter().for_each(|&index| kept[index] = true);
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::credit::test_vectors::returns_view;

    fn keep(returns: &[f64], keep: usize) -> Vec<bool> {
        let filter = MaxVariance::new(MaxVarianceConfig { keep }).unwrap();
        filter.keep(&returns_view(returns.iter().copied()))
    }

    fn variance(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum()
    }

    #[test]
    fn both_ends_are_kept() {
        assert_eq!(keep(&[0.5, 0.0, 1.0, 0.4], 2), [false, true, true, false]);
        assert_eq!(keep(&[1.0, 0.0, 1.0, 1.0], 2), [true, true, false, false]);
        assert_eq!(keep(&[1.0, 1.0, 1.0], 2), [true, true, false]);
        assert_eq!(keep(&[1.0, 2.0], 2), [true, true]);
        assert!(keep(&[], 2).is_empty());
        assert!(MaxVariance::new(MaxVarianceConfig { keep: 0 }).is_err());
    }

    proptest! {
        #[test]
        fn no_other_subset_varies_more(
            returns in prop::collection::vec(-3..4_i8, 0..9),
            size in 1_usize..6,
        ) {
            let returns: Vec<f64> = returns.into_iter().map(f64::from).collect();
            let chosen = keep(&returns, size);
            prop_assert_eq!(chosen.iter().filter(|kept| **kept).count(), size.min(returns.len()));
            let of = |is_in: &dyn Fn(usize) -> bool| -> Vec<f64> {
                (0..returns.len()).filter(|&i| is_in(i)).map(|i| returns[i]).collect()
            };
            let found = variance(&of(&|i| chosen[i]));
            for subset in 0_u32..1 << returns.len() {
                if subset.count_ones() as usize == size {
                    prop_assert!(variance(&of(&|i| subset >> i & 1 == 1)) <= found + 1e-9);
                }
            }
        }
    }
}
