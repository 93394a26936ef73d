//! DARS: harder tasks get more rollouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many rollouts more harder tasks get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DarsSchedule {
    /// As many as make all tasks weigh the same in the update (`schedule_ET`).
    EqualTreatment,
    /// More than that, the harder the more (`schedule_HW`).
    HardnessWeighted,
}

/// Rollouts that a task gets beside its first `rollouts`, by the share of these that succeeded (DARS, arXiv 2508.13755, and its code
/// `ray_dars_trainer.py`).
///
/// With `S = 2 p (1 - p)`, or with `by_std` `2 sqrt(p (1 - p))`: `ceil((peak - N S) / S)` for a peak of `N / 2`, with `by_std` `N`, for
/// [`DarsSchedule::EqualTreatment`], and `ceil((2 (1 - p) peak - N S) / S)` for [`DarsSchedule::HardnessWeighted`]; at most `max_rollouts - N`. None from a share of a half on.
/// Without any success `p` counts as `0.5 / N`, as does a share that is no number.
pub fn dars_extra_rollouts(
    schedule: DarsSchedule,
    by_std: bool,
    success_rate: f64,
    rollouts: usize,
    max_rollouts: usize,
) -> usize {
    let n = rollouts as f64;
    let p = if success_rate > 1e-6 { success_rate } else { 0.5 / n };
    let most = max_rollouts.saturating_sub(rollouts);
    if p >= 0.5 || rollouts == 0 {
        return 0;
    }
    let (share, peak) = match by_std {
        false => (2.0 * p * (1.0 - p), 0.5 * n),
        true => (2.0 * (p * (1.0 - p)).sqrt(), n),
    };
    let wanted = match schedule {
        DarsSchedule::EqualTreatment => peak,
        DarsSchedule::HardnessWeighted => 2.0 * (1.0 - p) * peak,
    };
    let extra = ((wanted - n * share) / share).ceil().max(0.0);
    (extra as usize).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_vectors::{cases, floats, number};

    #[test]
    fn extra_rollouts_equal_the_reference() {
        cases("dars_schedule", |case, near| {
            let schedule = match case.params["schedule"].as_str().unwrap() {
                "schedule_ET" => DarsSchedule::EqualTreatment,
                "schedule_HW" => DarsSchedule::HardnessWeighted,
                other => panic!("there is no schedule {other}"),
            };
            let by_std = case.params["std"].as_bool().unwrap();
            let count = |name: &str| number(&case.params, name) as usize;
            let rates = floats(&case.inputs["acc"]);
            for (rate, expected) in rates.iter().zip(floats(&case.outputs["extra_rollouts"])) {
                let found =
                    dars_extra_rollouts(schedule, by_std, *rate, count("N"), count("N_max"));
                near(found as f64, expected);
            }
        });
    }
}
