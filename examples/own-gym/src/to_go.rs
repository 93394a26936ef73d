//! Rewards to go, less the group's mean.

use spar::agent::credit::{
    AdvantageEstimator, BatchView, CreditError, EstimatorRow, GroupView, TrajectoryView,
};
use spar::core::registry::{OptionSet, Row};
use spar::core::{Credit, Signals};

pub(crate) const ROW: EstimatorRow = Row {
    name: "to_go",
    about: "Every step takes the return that follows it, less the group's mean.",
    source: "REINFORCE with a baseline, Williams 1992",
    formula: "A_t = sum_{k >= t} r_k - mean R",
    options: OptionSet::NONE,
    open: |_| Ok(Box::new(ToGo)),
};

/// Every step takes the return that follows it, less the group's mean return.
#[derive(Debug, Clone, Default)]
struct ToGo;

impl AdvantageEstimator for ToGo {
    fn name(&self) -> &'static str {
        "to_go"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(to_go))
    }
}

fn to_go(group: &GroupView<'_>) -> Vec<Vec<f64>> {
    let mean = group.returns().iter().sum::<f64>() / group.num_trajectories().max(1) as f64;
    let of_trajectory = |trajectory: TrajectoryView<'_, '_>| {
        let mut sum = 0.0;
        let mut advantages: Vec<f64> = trajectory
            .steps
            .iter()
            .rev()
            .map(|step| {
                sum += step.reward;
                sum - mean
            })
            .collect();
        advantages.reverse();
        advantages
    };
    group.trajectories().map(of_trajectory).collect()
}
