//! Harder tasks get more rollouts, in a second stage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted};
use crate::SamplerError;
use crate::curricula::{DarsSchedule, dars_extra_rollouts};

/// Options of [`Dars`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DarsOptions {
    /// How much more harder tasks get. Default `equal_treatment`.
    pub schedule: DarsSchedule,
    /// Whether advantages are divided by their deviation, so that a task's weight is `2 sqrt(p (1 - p))` and not `2 p (1 - p)`. Default false.
    pub by_std: bool,
    /// Rollouts that a task gets at the most, those of the first stage among them; at least the group size. Default 32.
    pub max_rollouts: usize,
    /// Whether groups that all went alike are left out, as in the code. Default true.
    pub drop_without_signal: bool,
}

impl Default for DarsOptions {
    fn default() -> Self {
        let schedule = DarsSchedule::EqualTreatment;
        Self { schedule, by_std: false, max_rollouts: 32, drop_without_signal: true }
    }
}

impl NamedOptions for DarsOptions {
    fn problems(&self) -> Vec<String> {
        let is_none = self.max_rollouts == 0;
        is_none.then(|| "max_rollouts is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// Difficulty-adaptive rollout sampling (DARS, arXiv 2508.13755, and its code): every task gets a group, and those of which less than half of the episodes
/// succeeded further episodes by [`dars_extra_rollouts`], which join it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dars {
    options: DarsOptions,
    next: u64,
    wanted: usize,
    group_size: usize,
    /// The places of the first stage with what came of them.
    first: Vec<(u64, Outcome)>,
    /// Of these, what is played on now.
    again: Vec<usize>,
}

impl Dars {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &DarsOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "dars", options.problems())?;
        let (first, next) = (Vec::new(), first);
        let options = options.clone();
        Ok(Self { options, next, wanted: 0, group_size: 0, first, again: Vec::new() })
    }

    fn extra(&self, outcome: &Outcome) -> usize {
        let DarsOptions { schedule, by_std, max_rollouts, .. } = self.options;
        let rate = outcome.success_rate().unwrap_or(f64::NAN);
        dars_extra_rollouts(schedule, by_std, rate, outcome.returns.len(), max_rollouts)
    }

    fn is_kept(&self, outcome: &Outcome) -> bool {
        !self.options.drop_without_signal || outcome.has_signal()
    }
}

impl TaskSampler for Dars {
    fn name(&self) -> &'static str {
        "dars"
    }

    fn begin(&mut self, wanted: &Wanted) {
        (self.wanted, self.group_size) = (wanted.groups, wanted.group_size);
        self.first.clear();
        self.again.clear();
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        if self.wanted > 0 {
            let places = self.next..self.next + self.wanted as u64;
            self.next = places.end;
            self.wanted = 0;
            self.first = places.clone().map(|place| (place, Outcome::default())).collect();
            return places.map(Draw::from).collect();
        }
        let again = std::mem::take(&mut self.again);
        let extra = again.iter().map(|place| self.extra(&self.first[*place].1));
        let again: Vec<(usize, usize)> =
            again.iter().copied().zip(extra).filter(|(_, extra)| *extra > 0).collect();
        self.again = again.iter().map(|(place, _)| *place).collect();
        let draw = |(place, extra): (usize, usize)| Draw::with_rollouts(self.first[place].0, extra);
        again.into_iter().map(draw).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        if self.again.is_empty() {
            for ((_, seen), outcome) in self.first.iter_mut().zip(outcomes) {
                seen.clone_from(outcome);
            }
            self.again = (0..self.first.len()).collect();
            // What is played on is told of again.
            return outcomes.iter().map(|it| self.is_kept(it) || self.extra(it) > 0).collect();
        }
        let again = std::mem::take(&mut self.again);
        let joined = again.iter().zip(outcomes).map(|(place, more)| {
            let mut whole = self.first[*place].1.clone();
            whole.returns.extend(&more.returns);
            self.is_kept(&whole)
        });
        joined.collect()
    }

    fn next_place(&self) -> u64 {
        self.next
    }

    fn state(&self) -> Value {
        self.next.into()
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.next = state.as_u64().ok_or(SamplerError::State { name: "dars" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, places, wanted};
    use super::*;

    #[test]
    fn the_second_stage_follows_from_what_the_first_one_achieved() {
        let mut dars =
            Dars::new(&DarsOptions { max_rollouts: 12, ..DarsOptions::default() }, 0).unwrap();
        let order = Line::of(100);
        dars.begin(&wanted(4));
        assert_eq!(places(&dars.draw(&order)), [0, 1, 2, 3]);
        let kept = dars.observe(&[of_four(0), of_four(1), of_four(2), of_four(4)]);
        assert_eq!(kept, [true, true, true, false]);
        let again = dars.draw(&order);
        let extra =
            |rate: f64| dars_extra_rollouts(DarsSchedule::EqualTreatment, false, rate, 4, 12);
        assert_eq!(
            again,
            [Draw::with_rollouts(0, extra(0.0)), Draw::with_rollouts(1, extra(0.25))]
        );
        assert!(extra(0.0) > extra(0.25) && extra(0.25) > 0);
        assert_eq!(dars.observe(&[of_four(0), of_four(0)]), [false, true]);
        assert!(dars.draw(&order).is_empty());
        dars.begin(&wanted(1));
        assert_eq!(places(&dars.draw(&order)), [4]);
        dars.observe(&[of_four(4)]);
        assert!(dars.draw(&order).is_empty());
    }
}
