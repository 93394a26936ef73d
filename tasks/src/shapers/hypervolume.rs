//! Several objectives, of which what is new counts more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::registry::AXIS;
use super::shaped::{add_at_end, sums};
use super::{RewardShaper, ShapedGroup};
use crate::ShaperError;

/// Points that the front keeps at the most.
const MAX_FRONT: usize = 64;

/// Options of [`Hypervolume`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HypervolumeOptions {
    /// The parts that are objectives, 2 to 4 of them. Default `success` and `format`.
    pub objectives: Vec<String>,
    /// What each of them is at the least, where the volume begins. Default 0 for all.
    pub from: f64,
    /// How much more an episode counts that adds all of the volume again; above 0. Default 1.
    pub weight: f64,
}

impl Default for HypervolumeOptions {
    fn default() -> Self {
        let objectives = vec!["success".to_owned(), "format".to_owned()];
        Self { objectives, from: 0.0, weight: 1.0 }
    }
}

impl NamedOptions for HypervolumeOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let count = self.objectives.len();
        if !(2..=4).contains(&count) {
            problems.push(format!("objectives are {count}, must be 2 to 4"));
        }
        let twice = (1..count).any(|it| self.objectives[..it].contains(&self.objectives[it]));
        if twice {
            problems.push("objectives name one twice".to_owned());
        }
        if !self.from.is_finite() {
            problems.push(format!("from is {}, must be finite", self.from));
        }
        if !(self.weight.is_finite() && self.weight > 0.0) {
            problems.push(format!("weight is {}, must be above 0", self.weight));
        }
        problems
    }
}

/// Hypervolume-guided weights of several objectives (arXiv 2509.11452; reconstructed from its abstract): an episode whose objectives extend the Pareto front of all groups so far earns `weight (HV(front and it) - HV(front)) / HV(all of
/// them at the best of each)` times its objectives more, as part `hypervolume` of the last turn.
///
/// The front is that of the episodes of earlier iterations, so that what an episode is worth does not depend on the others of its iteration; its volume is the metric `hypervolume`.
#[derive(Debug, Clone)]
pub struct Hypervolume {
    options: HypervolumeOptions,
    /// Points that none of the others is better than in all objectives.
    front: Vec<Vec<f64>>,
}

impl Hypervolume {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &HypervolumeOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "hypervolume", options.problems())?;
        Ok(Self { options: options.clone(), front: Vec::new() })
    }

    /// What an episode achieved in each objective.
    fn point(&self, rewards: &[Vec<RewardPart>]) -> Vec<f64> {
        let sums = sums(rewards);
        let of = |name: &String| sums.get(name.as_str()).copied().unwrap_or(0.0);
        self.options.objectives.iter().map(of).collect()
    }

    /// The share of the whole volume that a point adds to the front.
    fn gain(&self, point: &[f64]) -> f64 {
        let from = vec![self.options.from; point.len()];
        let mut with = self.front.clone();
        with.push(point.to_vec());
        let most = |place: usize| with.iter().map(|it| it[place]).fold(f64::MIN, f64::max);
        let whole: f64 =
            (0..point.len()).map(|place| (most(place) - self.options.from).max(0.0)).product();
        let gained = hypervolume(&with, &from) - hypervolume(&self.front, &from);
        if whole > 0.0 { gained / whole } else { 0.0 }
    }
}

/// The volume that is dominated by points from `from` on, each objective being the better the greater it is. Points that are not better than that in all of them, or no numbers, add nothing.
///
/// By slices along the last objective, in time that grows with the number of points to the power of the objectives.
pub fn hypervolume(points: &[Vec<f64>], from: &[f64]) -> f64 {
    let Some((start, others)) = from.split_last() else { return 0.0 };
    let is_inside = |point: &&Vec<f64>| {
        point.len() == from.len()
            && point.iter().zip(from).all(|(it, from)| it > from && it.is_finite())
    };
    let mut inside: Vec<&Vec<f64>> = points.iter().filter(is_inside).collect();
    if others.is_empty() {
        let best = inside.iter().map(|point| point[0]).fold(*start, f64::max);
        return best - start;
    }
    inside.sort_by(|a, b| b[others.len()].total_cmp(&a[others.len()]));
    let (mut volume, mut slice) = (0.0, Vec::new());
    for (place, point) in inside.iter().enumerate() {
        slice.push(point[..others.len()].to_vec());
        let height = point[others.len()];
        let below = inside.get(place + 1).map_or(*start, |next| next[others.len()]);
        if height > below {
            volume += (height - below) * hypervolume(&slice, others);
        }
    }
    volume
}

/// Whether one point is at least as good in every objective.
fn covers(one: &[f64], other: &[f64]) -> bool {
    one.iter().zip(other).all(|(one, other)| one >= other)
}

impl RewardShaper for Hypervolume {
    fn name(&self) -> &'static str {
        "hypervolume"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let point = self.point(rewards);
        let gain = self.gain(&point);
        let value = self.options.weight * gain * point.iter().sum::<f64>();
        add_at_end(trajectory, rewards, "hypervolume", value);
    }

    fn adapt(&mut self, groups: &[ShapedGroup<'_>]) {
        let played = groups.iter().flat_map(|group| group.rewards);
        let points: Vec<Vec<f64>> = played.map(|rewards| self.point(rewards)).collect();
        for point in points.into_iter().filter(|point| point.iter().all(|it| it.is_finite())) {
            if self.front.iter().any(|other| covers(other, &point)) {
                continue;
            }
            self.front.retain(|other| !covers(&point, other));
            self.front.push(point);
        }
        // Of a front that has grown too long, the oldest points are let go.
        let beyond = self.front.len().saturating_sub(MAX_FRONT);
        self.front.drain(..beyond);
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let from = vec![self.options.from; self.options.objectives.len()];
        vec![("hypervolume".to_owned(), hypervolume(&self.front, &from))]
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.front).expect("a front is plain data")
    }

    fn load(&mut self, state: &Value) -> Result<(), ShaperError> {
        let front = Vec::<Vec<f64>>::deserialize(state).ok();
        let fits = |front: &Vec<Vec<f64>>| {
            front.iter().all(|point| point.len() == self.options.objectives.len())
        };
        self.front = front.filter(fits).ok_or(ShaperError::State { name: "hypervolume" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn volumes_are_those_of_unions_of_boxes() {
        let two = [vec![2.0, 1.0], vec![1.0, 3.0]];
        assert_eq!(hypervolume(&two, &[0.0, 0.0]), 2.0 + 3.0 - 1.0);
        let three =
            [vec![1.0, 2.0, 3.0], vec![3.0, 1.0, 1.0], vec![1.0, 1.0, 1.0], vec![0.0, 9.0, 9.0]];
        assert_eq!(hypervolume(&three, &[0.0, 0.0, 0.0]), 6.0 + 3.0 - 1.0);
        assert_eq!(hypervolume(&[], &[0.0, 0.0]), 0.0);
        // Against a count of cells.
        let points: Vec<Vec<f64>> = vec![
            vec![3.0, 1.0, 2.0],
            vec![1.0, 4.0, 1.0],
            vec![2.0, 2.0, 4.0],
            vec![4.0, 3.0, 1.0],
        ];
        let mut cells = 0;
        for cell in 0..125 {
            let corner = [cell % 5 + 1, cell / 5 % 5 + 1, cell / 25 + 1].map(f64::from);
            cells += usize::from(points.iter().any(|point| covers(point, &corner)));
        }
        assert_eq!(hypervolume(&points, &[0.0; 3]), cells as f64);
    }

    #[test]
    fn what_extends_the_front_counts_more_and_the_volume_is_told() {
        let options = HypervolumeOptions::default();
        let shaper = || -> Box<dyn RewardShaper> { Box::new(Hypervolume::new(&options).unwrap()) };
        let mut shapers = RewardShapers::new(vec![shaper()]);
        let good = episode(&[&[("format", 1.0)], &[("success", 0.5)]]);
        let same = episode(&[&[("format", 0.5)], &[("success", 0.5)]]);
        let new = episode(&[&[("format", 0.5)], &[("success", 1.0)]]);
        let sum =
            |shapers: &RewardShapers, it: &Trajectory| shapers.rewards(it).iter().sum::<f64>();
        assert_eq!(sum(&shapers, &good), 3.0, "the first one is the whole volume");
        shapers.adapt(&[vec![&good, &same]]);
        assert_eq!(shapers.metrics(), [("hypervolume".to_owned(), 0.5)]);
        assert_eq!([sum(&shapers, &good), sum(&shapers, &same)], [1.5, 1.0]);
        assert_eq!(sum(&shapers, &new), 1.5 * 1.25);
        let mut again = RewardShapers::new(vec![shaper()]);
        again.load(&shapers.state()).unwrap();
        assert_eq!(sum(&again, &new), sum(&shapers, &new));
        assert!(again.load(&[serde_json::json!([[1.0]])]).is_err());
    }
}
