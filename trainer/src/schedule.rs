//! How the learning rate changes over a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The course of the learning rate behind the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleShape {
    /// It stays.
    #[default]
    Constant,
    /// It falls along a line to the floor.
    Linear,
    /// It falls along half a cosine wave to the floor.
    Cosine,
}

/// How the learning rate changes over a run; a pure function of how far the run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// The course behind the warm-up: `constant`, `linear` or `cosine`. Default `constant`.
    pub shape: ScheduleShape,
    /// Share of the run in which the rate climbs from 0 along a line; 0 up to but not including
    /// 1. Default 0.
    pub warmup: f32,
    /// Share of the rate that is left at the end; 0 to 1. Only where the shape falls. Default 0.
    pub floor: f32,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { shape: ScheduleShape::Constant, warmup: 0.0, floor: 0.0 }
    }
}

impl ScheduleConfig {
    /// The factor of the learning rate when `progress` of the run is over.
    ///
    /// With `p = (progress - warmup) / (1 - warmup)`: `progress / warmup` during the warm-up, then
    /// 1, `1 - (1 - floor) p`, or `floor + (1 - floor) (1 + cos(pi p)) / 2` (arXiv 1608.03983, eq.
    /// 5). `progress` outside 0 to 1 counts as the nearer end.
    pub fn scale(&self, progress: f32) -> f32 {
        let progress = if progress.is_nan() { 1.0 } else { progress.clamp(0.0, 1.0) };
        if progress < self.warmup {
            return progress / self.warmup;
        }
        let past = (progress - self.warmup) / (1.0 - self.warmup);
        let left = match self.shape {
            ScheduleShape::Constant => return 1.0,
            ScheduleShape::Linear => 1.0 - past,
            ScheduleShape::Cosine => (1.0 + (std::f32::consts::PI * past).cos()) / 2.0,
        };
        self.floor + (1.0 - self.floor) * left
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0..1.0).contains(&self.warmup) {
            problems.push(format!("`warmup` {} is outside 0 to 1", self.warmup));
        }
        if !(0.0..=1.0).contains(&self.floor) {
            problems.push(format!("`floor` {} is outside 0 to 1", self.floor));
        }
        if self.shape == ScheduleShape::Constant && self.floor != 0.0 {
            problems.push("`floor` has no effect on a `constant` schedule".to_owned());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_warm_up_and_fall_to_the_floor() {
        let schedule = |shape| ScheduleConfig { shape, warmup: 0.2, floor: 0.1 };
        for shape in [ScheduleShape::Constant, ScheduleShape::Linear, ScheduleShape::Cosine] {
            assert_eq!(schedule(shape).scale(0.0), 0.0);
            assert_eq!(schedule(shape).scale(0.1), 0.5);
            assert_eq!(schedule(shape).scale(0.2), 1.0);
        }
        for shape in [ScheduleShape::Linear, ScheduleShape::Cosine] {
            assert!((schedule(shape).scale(0.6) - 0.55).abs() < 1e-6);
            assert!((schedule(shape).scale(7.0) - 0.1).abs() < 1e-6);
        }
        assert_eq!(schedule(ScheduleShape::Constant).scale(1.0), 1.0);
        assert_eq!(ScheduleConfig::default().scale(0.0), 1.0);
    }

    #[test]
    fn a_floor_without_effect_is_a_problem() {
        let config: ScheduleConfig = toml::from_str("floor = 0.1\nwarmup = 1.0").unwrap();
        assert_eq!(config.problems().len(), 2);
    }
}
