//! SALT, reconstructed: equal transitions of different trajectories share their advantage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::grpo::OfBatch;
use super::interner::Interner;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// How often a transition counts that comes several times in one trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransitionMean {
    /// As often as it comes. The sum of all step advantages is then that of the base estimator.
    #[default]
    Occurrences,
    /// Once per trajectory.
    Trajectories,
}

/// Options of [`Salt`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SaltConfig {
    /// How many (state, action) pairs before a state must be equal too, for the state to be the
    /// same node; 0 compares states alone, more than any trajectory has steps makes a prefix
    /// tree. Default 1.
    pub history_window: usize,
    /// What the mean over a transition runs over. Default `occurrences`.
    pub mean: TransitionMean,
    /// Options of the trajectory advantages that are shared. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl Default for SaltConfig {
    fn default() -> Self {
        Self { history_window: 1, mean: TransitionMean::Occurrences, base: GrpoConfig::default() }
    }
}

impl NamedOptions for SaltConfig {
    fn problems(&self) -> Vec<String> {
        self.base.problems()
    }
}

/// Step advantages by shared transitions: a reconstruction of SALT (arXiv 2510.20022).
///
/// Every step begins with the GRPO advantage of its trajectory. Steps with the same transition
/// (state, action, next state) in any trajectory of the group form one edge of a graph and all
/// take the mean of what they began with; a transition that comes once keeps it. So what won
/// and lost trajectories have in common is worth little, and where they part is worth most.
///
/// Neither the authors' code nor their text was at hand. Taken from a summary in another paper (the
/// appendix of GRAFT that discusses SALT): that the trajectory's advantage is shared, as a mean, among
/// identical transitions, and that one which comes once keeps its own. Assumed: GRPO's advantage as
/// that of the trajectory; the history window as the reading of "same state", with 1 as its
/// default; and that the mean runs over occurrences, not trajectories.
#[derive(Debug, Clone, Default)]
pub struct Salt {
    config: SaltConfig,
    base: Grpo,
}

impl Salt {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: SaltConfig) -> Result<Self, CreditError> {
        refuse("salt", config.problems())?;
        let base = Grpo::new(config.base.clone())?;
        Ok(Self { config, base })
    }

    /// One advantage per step of a group.
    fn advantages_of(&self, group: &GroupView<'_>, batch: OfBatch) -> Vec<Vec<f64>> {
        let inherited = self.base.trajectory_advantages(group, batch);
        let (transitions, num_transitions) = transitions(group, self.config.history_window);
        // 1. Sum what the occurrences of each transition inherit.
        let mut sums = vec![(0.0, 0_u32, usize::MAX); num_transitions];
        let mut steps = transitions.iter();
        for (index, trajectory) in group.trajectories().enumerate() {
            for &transition in steps.by_ref().take(trajectory.steps.len()) {
                let (sum, count, last) = &mut sums[transition as usize];
                if self.config.mean == TransitionMean::Trajectories && *last == index {
                    continue;
                }
                *sum += inherited[index];
                *count += 1;
                *last = index;
            }
        }
        // 2. Every occurrence takes the mean.
        let mean = |&transition: &u32| {
            let (sum, count, _) = sums[transition as usize];
            sum / f64::from(count)
        };
        group.split(&transitions.iter().map(mean).collect::<Vec<_>>())
    }
}

#[cfg(test)]
impl Salt {
    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        self.advantages_of(group, self.base.of_batch(&BatchView::from(group.clone())))
    }
}

impl AdvantageEstimator for Salt {
    fn name(&self) -> &'static str {
        "salt"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let of_batch = self.base.of_batch(batch);
        Ok(batch.credit_by_group(|group| self.advantages_of(group, of_batch)))
    }
}

/// A number per step, equal where the transitions are, and how many numbers there are.
fn transitions(group: &GroupView<'_>, history_window: usize) -> (Vec<u32>, usize) {
    let steps = group.steps();
    // 1. Words to numbers. What follows a step mostly is the state of the next one.
    let mut words: Interner<&str> = Interner::with_capacity(steps.len());
    let states: Vec<u32> = steps.iter().map(|step| words.id(step.state)).collect();
    let actions: Vec<u32> = steps.iter().map(|step| words.id(&step.action)).collect();
    let next_states: Vec<Option<u32>> = steps
        .iter()
        .enumerate()
        .map(|(t, step)| {
            let next = step.next_state?;
            match steps.get(t + 1) {
                Some(following) if following.state == next => Some(states[t + 1]),
                _ => Some(words.id(next)),
            }
        })
        .collect();
    // 2. Nodes: states with their history. A window of k pairs is a window of k - 1 pairs at
    //    the previous step and one more pair; a trajectory's first step has no previous one.
    let longest = group.trajectories().map(|t| t.steps.len()).max().unwrap_or(0);
    let mut nodes = states.clone();
    if history_window >= longest {
        // The window never slides, so one pass gives the prefix tree.
        extend_history(group, &mut nodes, &states, &actions, None);
    } else {
        for _ in 0..history_window {
            let shorter = nodes.clone();
            extend_history(group, &mut nodes, &states, &actions, Some(&shorter));
        }
    }
    // 3. Edges. The next state's history is the node and the action, so it need not be compared.
    let mut edges = Interner::with_capacity(steps.len());
    let transitions =
        (0..steps.len()).map(|t| edges.id((nodes[t], actions[t], next_states[t]))).collect();
    (transitions, edges.len())
}

/// Sets `nodes[t]` to a number for (node before `t`, action before `t`, state at `t`).
///
/// The node before is read from `shorter`, or from `nodes` itself, which makes prefixes.
fn extend_history(
    group: &GroupView<'_>,
    nodes: &mut [u32],
    states: &[u32],
    actions: &[u32],
    shorter: Option<&[u32]>,
) {
    let mut interner = Interner::with_capacity(nodes.len());
    let mut t = 0;
    for trajectory in group.trajectories() {
        for index in 0..trajectory.steps.len() {
            let before = (index > 0).then(|| {
                let node = shorter.map_or(nodes[t - 1], |shorter| shorter[t - 1]);
                (node, actions[t - 1])
            });
            nodes[t] = interner.id((before, states[t]));
            t += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_vectors::{SmallGroup, small_group, to_view};
    use super::*;

    fn salt(history_window: usize) -> Salt {
        Salt::new(SaltConfig { history_window, ..SaltConfig::default() }).unwrap()
    }

    /// Transitions by comparing every step with every other, as a check on the linear way.
    fn slow(group: &SmallGroup, window: usize) -> Vec<Vec<f64>> {
        let view = to_view(group);
        let grpo = Grpo::default();
        let inherited =
            grpo.trajectory_advantages(&view, grpo.of_batch(&BatchView::from(view.clone())));
        let trajectories: Vec<_> = view.trajectories().map(|t| t.steps).collect();
        let key = |i: usize, t: usize| {
            let start = t.saturating_sub(window);
            let history: Vec<_> =
                trajectories[i][start..t].iter().map(|step| (step.state, &*step.action)).collect();
            let step = &trajectories[i][t];
            // A shorter history is one that touches the start.
            (history, step.state, &*step.action, step.next_state)
        };
        let mut result = Vec::new();
        for i in 0..trajectories.len() {
            let mut row = Vec::new();
            for t in 0..trajectories[i].len() {
                let (mut sum, mut count) = (0.0, 0.0);
                for (j, inherited) in inherited.iter().enumerate() {
                    for u in 0..trajectories[j].len() {
                        if key(i, t) == key(j, u) {
                            sum += inherited;
                            count += 1.0;
                        }
                    }
                }
                row.push(sum / count);
            }
            result.push(row);
        }
        result
    }

    #[test]
    fn what_parts_won_from_lost_is_worth_most() {
        let group =
            small_group(vec![vec![(0, 0, 0.0), (1, 0, 1.0)], vec![(0, 0, 0.0), (1, 1, 0.0)]]);
        let advantages = salt(1).step_advantages(&to_view(&group));
        assert_eq!([advantages[0][0], advantages[1][0]], [0.0, 0.0]);
        assert!(advantages[0][1] > 0.5 && advantages[1][1] < -0.5);
    }

    #[test]
    fn a_longer_history_keeps_states_apart() {
        // Both do action 0 in state 2, but come from different states.
        let group =
            small_group(vec![vec![(0, 0, 0.0), (2, 0, 1.0)], vec![(1, 0, 0.0), (2, 0, 0.0)]]);
        assert_eq!(salt(0).step_advantages(&to_view(&group))[0][1], 0.0);
        assert!(salt(1).step_advantages(&to_view(&group))[0][1] > 0.5);
    }

    #[test]
    fn a_repeated_transition_may_count_once() {
        let group = small_group(vec![
            vec![(0, 0, 0.0), (0, 0, 0.0), (0, 0, 1.0)],
            vec![(0, 0, 0.0), (0, 0, 0.0)],
        ]);
        let config = SaltConfig {
            history_window: 0,
            mean: TransitionMean::Trajectories,
            ..SaltConfig::default()
        };
        let once = Salt::new(config).unwrap().step_advantages(&to_view(&group));
        assert!(once[0][0].abs() < 1e-12);
        let each = salt(0).step_advantages(&to_view(&group));
        assert!(each[0][0] > 0.1);
    }

    fn groups(max_states: u8) -> impl Strategy<Value = Vec<Vec<(u8, u8, f64)>>> {
        prop::collection::vec(
            prop::collection::vec((0..max_states, 0_u8..2, -1.0..1.0), 0..7),
            0..6,
        )
    }

    proptest! {
        #[test]
        fn the_linear_way_equals_the_slow_one(group in groups(3), window in 0_usize..8) {
            let group = small_group(group);
            let fast = salt(window).step_advantages(&to_view(&group));
            for (a, b) in fast.iter().zip(&slow(&group, window)) {
                prop_assert_eq!(a.len(), b.len());
                prop_assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{:?} {:?}", a, b);
            }
        }

        #[test]
        fn without_sharing_it_is_exactly_grpo(rewards in prop::collection::vec(-1.0..1.0, 1..9)) {
            let group = small_group(
                rewards.iter().enumerate().map(|(i, r)| vec![(i as u8, 0, *r), (i as u8 + 50, 1, *r)]).collect(),
            );
            let view = to_view(&group);
            prop_assert_eq!(salt(1).step_advantages(&view), Grpo::default().step_advantages(&view));
        }

        #[test]
        fn what_all_do_once_is_worth_nothing(rewards in prop::collection::vec(-1.0..1.0, 2..9)) {
            let group = small_group(
                rewards.iter().enumerate().map(|(i, r)| vec![(0, 0, 0.0), (1, i as u8, *r)]).collect(),
            );
            let advantages = salt(1).step_advantages(&to_view(&group));
            prop_assert!(advantages.iter().all(|steps| steps[0].abs() < 1e-9));
        }

        #[test]
        fn the_order_of_trajectories_does_not_matter(group in groups(3), window in 0_usize..4) {
            let mut reversed = group.clone();
            reversed.reverse();
            let (group, reversed) = (small_group(group), small_group(reversed));
            let mut backward = salt(window).step_advantages(&to_view(&reversed));
            backward.reverse();
            for (a, b) in salt(window).step_advantages(&to_view(&group)).iter().zip(&backward) {
                prop_assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }

        #[test]
        fn the_sum_over_steps_stays(group in groups(3), window in 0_usize..4) {
            let group = small_group(group);
            let view = to_view(&group);
            let sum = |advantages: Vec<Vec<f64>>| advantages.iter().flatten().sum::<f64>();
            let difference = sum(salt(window).step_advantages(&view)) - sum(Grpo::default().step_advantages(&view));
            prop_assert!(difference.abs() < 1e-9);
        }
    }
}
