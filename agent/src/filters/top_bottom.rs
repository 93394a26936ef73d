//! The best and the worst of a group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{FilterError, GroupFilter};
use crate::credit::GroupView;

/// Options of [`TopBottom`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TopBottomConfig {
    /// Trajectories with the highest returns that are kept of each group. Default 2.
    pub top: usize,
    /// Trajectories with the lowest returns that are kept beside these. Default 2.
    pub bottom: usize,
}

impl Default for TopBottomConfig {
    fn default() -> Self {
        Self { top: 2, bottom: 2 }
    }
}

impl NamedOptions for TopBottomConfig {
    fn problems(&self) -> Vec<String> {
        let is_none = self.top + self.bottom == 0;
        is_none
            .then(|| "top and bottom are 0: nothing would be trained".to_owned())
            .into_iter()
            .collect()
    }
}

/// Keeps the `top` best and the `bottom` worst trajectories of a group: policy filtration (PF-PPO, arXiv 2409.06957), where rewards are surest at both ends.
///
/// `bottom = 0` keeps the best alone. Of equal returns the trajectory that comes first is taken; returns that are not finite are never kept. A group with no
/// more trajectories than that is kept whole. Deviation: the authors' code draws with replacement by [`pf_ppo_weights`], here the two ends are taken once.
#[derive(Debug, Clone, Default)]
pub struct TopBottom {
    config: TopBottomConfig,
}

impl TopBottom {
    /// A filter with these options.
    ///
    /// # Errors
    ///
    /// [`FilterError::Row`] when nothing would be kept.
    pub fn new(config: TopBottomConfig) -> Result<Self, FilterError> {
        RowError::refuse(AXIS.what, "top_bottom", config.problems())?;
        Ok(Self { config })
    }
}

impl GroupFilter for TopBottom {
    fn name(&self) -> &'static str {
        "top_bottom"
    }

    fn keep(&self, group: &GroupView<'_>) -> Vec<bool> {
        let returns = group.returns();
        let mut kept: Vec<bool> = vec![false; returns.len()];
        let mut finite: Vec<usize> =
            (0..returns.len()).filter(|index| returns[*index].is_finite()).collect();
        finite.sort_by(|a, b| returns[*b].total_cmp(&returns[*a]));
        let top = self.config.top.min(finite.len());
        finite[..top].iter().for_each(|index| kept[*index] = true);
        let mut worst = finite.split_off(top);
        worst.sort_by(|a, b| returns[*a].total_cmp(&returns[*b]));
        worst.iter().take(self.config.bottom).for_each(|index| kept[*index] = true);
        kept
    }
}

/// How PF-PPO weighs the samples of a batch before it draws from them with replacement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PfPpoMethod {
    /// `|score|^power`.
    Pow(f64),
    /// 1 for the highest and the lowest scores, 0 for all others.
    MaxMin,
    /// 0.4 for the highest scores, 0.1 for all others.
    MaxRandom,
}

/// Weights with which samples are drawn (PF-PPO, in the form of verl's `compute_pf_ppo_reweight_data`), each 1e-8 more than its method says; that alone
/// for a score that is not finite.
pub fn pf_ppo_weights(scores: &[f64], method: PfPpoMethod) -> Vec<f64> {
    let finite = || scores.iter().copied().filter(|score| score.is_finite());
    let (most, least) =
        (finite().fold(f64::NEG_INFINITY, f64::max), finite().fold(f64::INFINITY, f64::min));
    let weight = |score: &f64| match method {
        _ if !score.is_finite() => 0.0,
        PfPpoMethod::Pow(power) => score.abs().powf(power),
        PfPpoMethod::MaxMin => f64::from(u8::from(*score == most || *score == least)),
        PfPpoMethod::MaxRandom if *score == most => 0.4,
        PfPpoMethod::MaxRandom => 0.1,
    };
    scores.iter().map(|score| (weight(score) + 1e-8).max(1e-8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit::test_vectors::{cases, floats, number, returns_view};

    #[test]
    fn weights_equal_the_reference() {
        cases("pf_ppo_weights", |case, near| {
            let method = match case.params["method"].as_str().unwrap() {
                "pow" => PfPpoMethod::Pow(number(&case.params, "pow")),
                "max_min" => PfPpoMethod::MaxMin,
                "max_random" => PfPpoMethod::MaxRandom,
                other => panic!("there is no method {other}"),
            };
            let found = pf_ppo_weights(&floats(&case.inputs["scores"]), method);
            for (found, expected) in found.into_iter().zip(floats(&case.outputs["weights"])) {
                near(found, expected);
            }
        });
    }

    #[test]
    fn both_ends_are_kept() {
        let keep = |returns: &[f64], top, bottom| {
            let filter = TopBottom::new(TopBottomConfig { top, bottom }).unwrap();
            filter.keep(&returns_view(returns.iter().copied()))
        };
        assert_eq!(keep(&[0.5, 0.0, 1.0, 0.4], 1, 1), [false, true, true, false]);
        assert_eq!(keep(&[1.0, 1.0, 1.0], 1, 0), [true, false, false]);
        assert_eq!(keep(&[1.0, f64::NAN, 0.0], 2, 2), [true, false, true]);
        assert_eq!(keep(&[0.0, 0.0, 1.0], 1, 1), [true, false, true]);
        assert!(keep(&[], 2, 2).is_empty());
        assert!(TopBottom::new(TopBottomConfig { top: 0, bottom: 0 }).is_err());
    }
}
