//! The trait of all advantage estimators.

use super::GroupView;

/// Turns a group of trajectories into one advantage per step.
pub trait AdvantageEstimator: Send + Sync {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// One advantage per step: `result[i][t]` belongs to step `t` of trajectory `i`.
    ///
    /// The result has the shape of `group`. The order of the trajectories changes nothing but the
    /// order of the result (up to rounding).
    fn estimate(&self, group: &GroupView<'_>) -> Vec<Vec<f64>>;
}
