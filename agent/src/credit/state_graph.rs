//! The situations of a group as a graph: what GraphGPO, RTMC and GRAFT look at.

use super::GroupView;
use super::interner::Interner;

/// A step from a situation to another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    /// Where it was taken.
    pub(super) from: u32,
    /// Which action it was, by its number.
    pub(super) action: u32,
    /// Where it led; absent where the task ended.
    pub(super) to: Option<u32>,
    /// What it earned; maybe not finite.
    pub(super) reward: f64,
}

/// All steps of a group, one trajectory after the other, over situations with numbers.
pub(super) struct StateGraph {
    pub(super) edges: Vec<Edge>,
    /// How many situations there are.
    pub(super) num_states: usize,
}

impl StateGraph {
    pub(super) fn of(group: &GroupView<'_>) -> Self {
        let steps = group.steps();
        let mut states: Interner<&str> = Interner::with_capacity(steps.len());
        let mut actions: Interner<&str> = Interner::with_capacity(steps.len());
        let edges = steps
            .iter()
            .map(|step| Edge {
                from: states.id(step.state),
                action: actions.id(&step.action),
                to: step.next_state.map(|next| states.id(next)),
                reward: step.reward,
            })
            .collect();
        Self { edges, num_states: states.len() }
    }
}
