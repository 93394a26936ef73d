//! A group as credit sees it.

use spar_core::{Group, ParsedAction, Trajectory, Turn};
use spar_tasks::RewardShapers;

/// A step as credit sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepView<'a> {
    /// The step's reward.
    pub reward: f64,
    /// Canonical name of the situation in which the action was chosen.
    pub state: &'a str,
    /// The action; what was written, where no action could be read in it.
    pub action: &'a str,
    /// Canonical name of the situation that followed; `None` where the task ended.
    pub next_state: Option<&'a str>,
    /// Whether the action could be executed.
    pub valid: bool,
}

/// The trajectories that are compared with each other, borrowed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupView<'a> {
    steps: Vec<StepView<'a>>,
    /// Where each trajectory ends in `steps`.
    ends: Vec<usize>,
}

impl<'a> GroupView<'a> {
    /// The view of a recorded group, with the rewards it was recorded with.
    pub fn from_group(group: &'a Group) -> Self {
        let mut view = Self::default();
        group.trajectories.iter().for_each(|trajectory| view.push_recorded(trajectory));
        view
    }

    /// The view of a recorded group whose rewards were shaped.
    pub fn shaped(group: &'a Group, shapers: &RewardShapers) -> Self {
        let mut view = Self::default();
        for trajectory in &group.trajectories {
            let rewards = shapers.rewards(trajectory);
            let steps = trajectory.turns.iter().zip(rewards);
            view.push(steps.map(|(turn, reward)| StepView { reward, ..StepView::from_turn(turn) }));
        }
        view
    }

    /// Appends a trajectory given by its steps.
    pub fn push(&mut self, steps: impl IntoIterator<Item = StepView<'a>>) {
        self.steps.extend(steps);
        self.ends.push(self.steps.len());
    }

    /// Appends a recorded trajectory.
    pub fn push_recorded(&mut self, trajectory: &'a Trajectory) {
        self.push(trajectory.turns.iter().map(StepView::from_turn));
    }

    /// The trajectories.
    pub fn trajectories(&self) -> impl ExactSizeIterator<Item = &[StepView<'a>]> {
        (0..self.ends.len()).map(|index| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            &self.steps[start..self.ends[index]]
        })
    }

    /// How many trajectories there are.
    pub fn num_trajectories(&self) -> usize {
        self.ends.len()
    }

    /// All steps, one trajectory after the other.
    pub fn steps(&self) -> &[StepView<'a>] {
        &self.steps
    }

    /// The undiscounted return of every trajectory.
    pub fn returns(&self) -> Vec<f64> {
        self.trajectories().map(|steps| steps.iter().map(|step| step.reward).sum()).collect()
    }

    /// Cuts a list with one entry per step into one list per trajectory.
    pub(crate) fn split(&self, per_step: &[f64]) -> Vec<Vec<f64>> {
        let mut start = 0;
        self.ends
            .iter()
            .map(|&end| {
                let part = per_step[start..end].to_vec();
                start = end;
                part
            })
            .collect()
    }
}

impl<'a> StepView<'a> {
    /// The view of a recorded turn.
    pub fn from_turn(turn: &'a Turn) -> Self {
        let action = match &turn.parsed {
            ParsedAction::Action { text } => text,
            ParsedAction::Invalid { .. } => &turn.text,
        };
        let step = &turn.step;
        Self {
            reward: step.reward(),
            state: &turn.state_key,
            action,
            next_state: (!step.terminated).then_some(step.observation.state_key.as_str()),
            valid: step.valid,
        }
    }
}
