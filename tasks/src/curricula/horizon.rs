//! ScalingInter: episodes may become longer as training goes on.

/// The turns that episodes may have, phase by phase (ScalingInter-RL of AgentGym-RL, arXiv 2509.08755, and its code `StepRoundsScheduler`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HorizonSchedule {
    turns: Vec<u32>,
    iterations: u64,
}

impl HorizonSchedule {
    /// Phases of so many iterations with so many turns each; the last one goes on for ever. `None` where there is no phase, or phases of no
    /// iteration.
    pub fn new(turns: Vec<u32>, iterations: u64) -> Option<Self> {
        (!turns.is_empty() && iterations > 0).then_some(Self { turns, iterations })
    }

    /// The turns behind so many iterations that are over. The reference says the same of a run that it resumes there.
    pub fn max_turns(&self, done: u64) -> u32 {
        let phase = usize::try_from(done / self.iterations).unwrap_or(usize::MAX);
        self.turns[phase.min(self.turns.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_vectors::{cases, floats, number, rows};

    #[test]
    fn phases_equal_the_reference() {
        cases("scaling_inter_schedule", |case, near| {
            let turns = floats(&case.params["rounds"]).iter().map(|it| *it as u32).collect();
            let iterations = number(&case.params, "steps_scaling_inter") as u64;
            let schedule = HorizonSchedule::new(turns, iterations).unwrap();
            for (step, expected) in floats(&case.outputs["rounds_per_step"]).iter().enumerate() {
                near(f64::from(schedule.max_turns(step as u64)), *expected);
            }
            for pair in rows(&case.outputs["after_set_global_steps"]) {
                near(f64::from(schedule.max_turns(pair[0] as u64)), pair[1]);
            }
        });
        assert_eq!(HorizonSchedule::new(Vec::new(), 1), None);
        assert_eq!(HorizonSchedule::new(vec![1], 0), None);
    }
}
