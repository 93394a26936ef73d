//! Rollouts of which some are let go on the way, so that successes and failures are as many.

mod quality_head;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::Trajectory;
use spar_core::registry::NamedOptions;

use self::quality_head::{Features, QualityHead};
use super::{RolloutStrategy, StrategyError};
use crate::{GroupInProgress, Leg};

/// Options of [`Pruned`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PrunedOptions {
    /// Episodes of a group that are played to their end, at least 2 and fewer than the group has. Default 4.
    pub keep: usize,
    /// Tokens behind which it is decided which; at least 1. Default 128.
    pub at: usize,
    /// Episodes that the head has learned from before any is let go; at least 1. Default 64.
    pub warm_up: u64,
    /// How far the head moves by each episode, above 0, at most 1. Default 0.05.
    pub learning_rate: f64,
}

impl Default for PrunedOptions {
    fn default() -> Self {
        Self { keep: 4, at: 128, warm_up: 64, learning_rate: 0.05 }
    }
}

impl NamedOptions for PrunedOptions {
    fn problems(&self) -> Vec<String> {
        let Self { keep, at, warm_up, learning_rate } = *self;
        let mut problems = Vec::new();
        if keep < 2 {
            problems.push(format!("keep is {keep}, must be at least 2"));
        }
        if at == 0 {
            problems.push("at is 0, must be at least 1".to_owned());
        }
        if warm_up == 0 {
            problems.push("warm_up is 0, must be at least 1".to_owned());
        }
        if !(learning_rate > 0.0 && learning_rate <= 1.0) {
            problems.push(format!("learning_rate is {learning_rate}, must be above 0, at most 1"));
        }
        problems
    }
}

/// Online rollout pruning (ARRoL, arXiv 2603.24840): all episodes of a group are paused behind `at` tokens; a head that is trained on the way says how probably each will succeed, and `keep` of them go on whose expected share of
/// successes is nearest one half. The others end there, and nothing more is sampled for them.
///
/// Reconstructed from its abstract. Assumed: the head is a logistic function of what the record tells (how sure the policy was of its tokens, what it earned, what could not be carried out) and not of
/// hidden states; those that go on are the `k` least and the `keep - k` most promising ones, `k` being chosen; episodes that have ended before the pause stay, and count as what they came to. It is fitted once an iteration to all episodes that were
/// played to their end, by one step of stochastic gradient descent on the log-loss each.
#[derive(Debug, Default)]
pub struct Pruned {
    options: PrunedOptions,
    head: QualityHead,
    notes: Mutex<Notes>,
}

/// What a collection has seen, which is learned from behind it.
#[derive(Debug, Clone, Default)]
struct Notes {
    /// By group and member, so that it is the same in whatever order they end.
    examples: BTreeMap<(String, usize), (Features, bool)>,
    num_pruned: usize,
    /// How many were chosen to go on, and the sum of their probabilities.
    num_kept: usize,
    predicted: f64,
}

impl Pruned {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: PrunedOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("pruned", options.problems())?;
        Ok(Self { options, ..Self::default() })
    }

    fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Which of these go on, so many of them, if others of the group have ended with these outcomes: the least and the most promising ones, such that the
/// expected share of successes of all is nearest one half; of equally near ones that with more of the promising.
fn balanced(probabilities: &[f64], keep: usize, ended: &[bool]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let keep = keep.min(order.len());
    let won = ended.iter().filter(|it| **it).count() as f64;
    let chosen = |low: usize| -> Vec<usize> {
        let high = order.len() - (keep - low);
        order[..low].iter().chain(&order[high..]).copied().collect()
    };
    let distance = |chosen: &[usize]| {
        let sum: f64 = chosen.iter().map(|place| probabilities[*place]).sum();
        ((sum + won) / (chosen.len() + ended.len()).max(1) as f64 - 0.5).abs()
    };
    let mut best = chosen(0);
    for low in 1..=keep {
        let other = chosen(low);
        if distance(&other) < distance(&best) - 1e-12 {
            best = other;
        }
    }
    best.sort_unstable();
    best
}

#[async_trait]
impl RolloutStrategy for Pruned {
    fn name(&self) -> &'static str {
        "pruned"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        super::members::leave_room("pruned", "keep", self.options.keep, group_size)
    }

    fn branches(&self) -> bool {
        true
    }

    fn shares_turns(&self) -> bool {
        false
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let PrunedOptions { keep, at, warm_up, .. } = self.options;
        // 1. All of them, up to the pause.
        let legs = join_all((0..group.size()).map(|member| group.leg(member, at))).await;
        let (mut ended, mut paused) = (Vec::new(), Vec::new());
        for (member, leg) in legs.into_iter().enumerate() {
            match leg {
                Some(Leg::Finished(trajectory)) => ended.push((member, trajectory)),
                Some(Leg::Paused(trajectory)) => paused.push((member, trajectory)),
                None => {}
            }
        }
        // 2. Who goes on.
        let features: Vec<Features> = paused.iter().map(|(_, it)| Features::of(it)).collect();
        if self.head.num_seen() >= warm_up {
            let predict = |features| self.head.predict(features);
            let probabilities: Vec<f64> = features.iter().map(predict).collect();
            let outcomes: Vec<bool> = ended.iter().map(|(_, it)| it.success).collect();
            let room = keep.saturating_sub(ended.len());
            let chosen = balanced(&probabilities, room, &outcomes);
            let num_pruned = paused.len() - chosen.len();
            group.leave_out(num_pruned);
            self.note(|notes| {
                notes.num_pruned += num_pruned;
                notes.num_kept += chosen.len();
                notes.predicted += chosen.iter().map(|place| probabilities[*place]).sum::<f64>();
            });
            let mut place = 0;
            paused.retain(|_| {
                place += 1;
                chosen.contains(&(place - 1))
            });
        }
        // 3. To the end.
        let resumed = paused.iter().map(|(member, it)| group.resume(*member, it, 1, None));
        let resumed = join_all(resumed).await;
        for ((member, paused), leg) in paused.iter().zip(resumed) {
            let Some(Leg::Finished(trajectory)) = leg else { continue };
            let example = (Features::of(paused), trajectory.success);
            let key = (group.seed().to_string(), *member);
            self.note(|notes| {
                notes.examples.insert(key, example);
            });
            ended.push((*member, trajectory));
        }
        ended.sort_by_key(|(member, _)| *member);
        ended.into_iter().map(|(_, trajectory)| trajectory).collect()
    }

    fn learn(&mut self) -> Vec<(String, f64)> {
        let notes = std::mem::take(self.notes.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut loss = 0.0;
        let num_examples = notes.examples.len();
        for (features, success) in notes.examples.into_values() {
            loss += self.head.learn(&features, success, self.options.learning_rate);
        }
        let mut told = vec![("pruned_episodes".to_owned(), notes.num_pruned as f64)];
        if notes.num_kept > 0 {
            let mean = notes.predicted / notes.num_kept as f64;
            told.push(("predicted_success".to_owned(), mean));
        }
        if num_examples > 0 {
            told.push(("quality_head_loss".to_owned(), loss / num_examples as f64));
        }
        told
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.head).expect("numbers are JSON")
    }

    fn load(&mut self, state: &Value) -> Result<(), StrategyError> {
        let head = serde_json::from_value::<QualityHead>(state.clone());
        match head.ok().filter(QualityHead::is_finite) {
            Some(head) => self.head = head,
            None => {
                let problem = "its state is that of none".to_owned();
                StrategyError::refuse("pruned", vec![problem])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::Seed;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::RandomPolicy;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Collection, PlayedEpisode, Seating,
        SharedPlayer, collect_groups,
    };

    #[test]
    fn those_go_on_whose_expected_successes_are_nearest_one_half() {
        assert_eq!(balanced(&[0.9, 0.1, 0.8, 0.7], 2, &[]), [0, 1]);
        // Where all are likely to fail the most promising go on, and the other way about.
        assert_eq!(balanced(&[0.1, 0.3, 0.2, 0.05], 2, &[]), [1, 2]);
        assert_eq!(balanced(&[0.6, 0.9, 0.7, 0.95], 2, &[]), [0, 2]);
        // One has ended well: its place is taken.
        assert_eq!(balanced(&[0.9, 0.1], 1, &[true]), [1]);
        assert_eq!(balanced(&[0.9, 0.1], 1, &[false]), [0]);
        assert_eq!(balanced(&[0.5; 3], 9, &[]), [0, 1, 2]);
        assert_eq!(balanced(&[], 3, &[true]), [0; 0]);
        let whole = [0.9, 0.8, 0.85, 0.7, 0.2, 0.95];
        let mean = |places: &[usize]| {
            places.iter().map(|it| whole[*it]).sum::<f64>() / places.len() as f64
        };
        let kept = balanced(&whole, 3, &[]);
        assert!((mean(&kept) - 0.5).abs() < (mean(&[0, 1, 2, 3, 4, 5]) - 0.5).abs());
    }

    async fn play(strategy: &Pruned) -> Collection {
        let tasks: Vec<_> = (0..4).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(Arc::new(RandomPolicy)),
            seating: Seating::default(),
            strategy,
            open: FakeEnvironment::new().opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_: &PlayedEpisode<'_>| {},
        };
        let config = CollectConfig { group_size: 8, ..CollectConfig::default() };
        collect_groups(&request, &config).await
    }

    #[tokio::test]
    async fn pruned_episodes_are_played_no_further_and_fewer_turns_are_taken() {
        let options = PrunedOptions { keep: 2, at: 2, warm_up: 1, ..PrunedOptions::default() };
        let mut strategy = Pruned::new(options).unwrap();
        strategy.check(8).unwrap();
        assert!(strategy.check(2).is_err());
        let before = play(&strategy).await;
        assert!(before.groups.iter().all(|group| group.trajectories.len() == 8));
        assert!(
            before.groups.iter().flat_map(|it| &it.trajectories).all(|it| it.validate().is_ok())
        );
        let told = strategy.learn();
        assert_eq!(told[0], ("pruned_episodes".to_owned(), 0.0), "nothing is known yet");
        assert!(strategy.head.num_seen() > 0);

        let after = play(&strategy).await;
        let turns = |collection: &Collection| collection.counts.turns;
        assert!(turns(&after) < turns(&before), "{} of {}", turns(&after), turns(&before));
        assert_eq!((after.counts.missing(), after.counts.cancelled), (0, 0));
        let sizes = after.groups.iter().map(|group| group.trajectories.len());
        assert!(
            sizes.clone().all(|size| (2..8).contains(&size)),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
        // The same once more from the state.
        let state = strategy.state();
        let told = strategy.learn();
        assert!(told[0].1 > 0.0, "{told:?}");
        let mut other = Pruned::new(options).unwrap();
        other.load(&state).unwrap();
        play(&other).await;
        assert_eq!(other.learn(), told);
        assert_eq!(other.state(), strategy.state());
        assert!(other.load(&Value::Null).is_err());
    }
}
