//! Groups that are played until enough of them are complete, the others being kept as far as they came.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use spar_core::{Seed, Trajectory};

use super::{
    CollectConfig, CollectRequest, CollectionCounts, CollectionSink, FinishedGroup,
    GroupInProgress, GroupPlan, Leg, stream_groups,
};
use crate::strategies::RolloutStrategy;

/// A member of a group that is under way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Member {
    /// It has not begun.
    #[default]
    Fresh,
    /// It was paused.
    Paused {
        /// How often.
        legs: u32,
        /// What was played.
        trajectory: Box<Trajectory>,
    },
    /// It has ended.
    Done {
        /// Its record.
        trajectory: Box<Trajectory>,
    },
    /// It failed for good.
    Lost,
}

/// A group that is under way, with all that it needs to go on later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupUnderWay {
    /// Where its random choices start.
    pub seed: Seed,
    /// Its members.
    pub members: Vec<Member>,
    /// The tags of its task, those that only its environment knows among them once it was played.
    pub tags: Vec<String>,
}

impl GroupUnderWay {
    /// A group of this size that has not begun.
    pub fn new(seed: Seed, size: usize) -> Self {
        Self { seed, members: vec![Member::Fresh; size], tags: Vec::new() }
    }

    /// Whether no member is left that could go on.
    pub fn is_complete(&self) -> bool {
        self.members.iter().all(|it| matches!(it, Member::Done { .. } | Member::Lost))
    }

    /// The records of those that have ended, in their order.
    pub fn into_done(self) -> Vec<Trajectory> {
        let done = |member| match member {
            Member::Done { trajectory } => Some(*trajectory),
            _ => None,
        };
        self.members.into_iter().filter_map(done).collect()
    }

    /// Tokens that were sampled in episodes that are paused.
    pub fn paused_tokens(&self) -> usize {
        let tokens = |member: &Member| match member {
            Member::Paused { trajectory, .. } => {
                trajectory.turns.iter().map(|turn| turn.sampled.ids.len()).sum()
            }
            _ => 0,
        };
        self.members.iter().map(tokens).sum()
    }
}

/// Plays groups, one for each task of the request, leg by leg until `wanted` of them are complete: in every leg each episode that has not ended samples `tokens` more and is
/// paused. Those that are not complete then stay as far as they came, no token of theirs being lost; called again with them, they go on.
///
/// When a leg ends follows from tokens alone, so that equal runs have equal groups; who has finished its leg waits for the others meanwhile. The strategy of the request is not asked:
/// episodes know nothing of each other. Of the sink episodes are told, groups are not. Told to stop, it leaves the groups in no state that is of use.
pub async fn play_legs(
    request: &CollectRequest<'_>,
    config: &CollectConfig,
    groups: &mut [GroupUnderWay],
    (wanted, tokens): (usize, usize),
    sink: &dyn CollectionSink,
) -> (CollectionCounts, Option<String>) {
    let (mut counts, mut failure) = (CollectionCounts::default(), None);
    loop {
        let complete = groups.iter().filter(|group| group.is_complete()).count();
        if complete >= wanted.min(groups.len()) || request.cancellation.is_cancelled() {
            return (counts, failure);
        }
        let open: Vec<usize> =
            (0..groups.len()).filter(|index| !groups[*index].is_complete()).collect();
        let tasks: Vec<_> = open.iter().map(|index| request.tasks[*index].clone()).collect();
        let plan = |index: &usize| GroupPlan {
            seed: Some(groups[*index].seed),
            ..GroupPlan::new(groups[*index].members.len())
        };
        let plans = open.iter().map(plan).collect();
        let before = open.iter().map(|index| groups[*index].members.clone()).collect();
        let legs = Legs { tokens, before, after: Mutex::default() };
        let request = CollectRequest {
            tasks: &tasks,
            player: request.player.clone(),
            seating: request.seating.clone(),
            strategy: &legs,
            open: Arc::clone(&request.open),
            seed: request.seed,
            cancellation: request.cancellation,
            on_episode: request.on_episode,
        };
        let config = CollectConfig { plans, ..config.clone() };
        let passing = Passing { sink, places: &open, tags: Mutex::default() };
        let (played, told) = stream_groups(&request, &config, &passing).await;
        counts += played;
        failure = told.or(failure);
        let mut after = legs.after.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut tags = passing.tags.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (number, index) in open.iter().enumerate() {
            let group = &mut groups[*index];
            // A group whose start could not be had was never grown.
            let lost = || vec![Member::Lost; group.members.len()];
            group.members = after.remove(&number).unwrap_or_else(lost);
            group.tags = tags.remove(&number).unwrap_or_default();
        }
    }
}

/// The members of groups, played for one leg.
#[derive(Debug)]
struct Legs {
    tokens: usize,
    before: Vec<Vec<Member>>,
    after: Mutex<BTreeMap<usize, Vec<Member>>>,
}

impl Legs {
    async fn play(&self, group: &GroupInProgress<'_>, number: usize, member: &Member) -> Member {
        let (leg, legs) = match member {
            Member::Done { .. } | Member::Lost => {
                group.leave_out(1);
                return member.clone();
            }
            Member::Fresh => (group.leg(number, self.tokens).await, 0),
            Member::Paused { legs, trajectory } => {
                (group.resume(number, trajectory, *legs, Some(self.tokens)).await, *legs)
            }
        };
        match leg {
            None => Member::Lost,
            Some(Leg::Finished(trajectory)) => Member::Done { trajectory: Box::new(trajectory) },
            Some(Leg::Paused(trajectory)) => {
                group.leave_out(1);
                Member::Paused { legs: legs + 1, trajectory: Box::new(trajectory) }
            }
        }
    }
}

#[async_trait]
impl RolloutStrategy for Legs {
    fn name(&self) -> &'static str {
        "legs"
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let members = self.before[group.index()].iter().enumerate();
        let played = members.map(|(number, member)| self.play(group, number, member));
        let played = join_all(played).await;
        let mut after = self.after.lock().unwrap_or_else(PoisonError::into_inner);
        after.insert(group.index(), played);
        Vec::new()
    }
}

/// Tells the numbers of groups as the request has them, and keeps their tags.
struct Passing<'a> {
    sink: &'a dyn CollectionSink,
    places: &'a [usize],
    tags: Mutex<BTreeMap<usize, Vec<String>>>,
}

impl CollectionSink for Passing<'_> {
    fn trajectory(&self, index: usize, trajectory: &Trajectory) {
        self.sink.trajectory(self.places[index], trajectory);
    }

    fn group(&self, group: FinishedGroup) {
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        tags.insert(group.index, group.tags);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use spar_core::{
        Completion, CompletionRequest, Message, Policy, PolicyError, PolicyVersion, SampledTokens,
        Source, StopCause,
    };

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{Cancellation, PlayedEpisode, Seating, SharedPlayer};

    struct Nobody;

    impl CollectionSink for Nobody {
        fn trajectory(&self, _index: usize, _trajectory: &Trajectory) {}

        fn group(&self, _group: FinishedGroup) {}
    }

    /// Plays until so many are complete, `tokens` at a time; each action of the script is one turn.
    async fn play(
        origin: &FakeEnvironment,
        script: &[&'static str],
        groups: &mut [GroupUnderWay],
        (wanted, tokens): (usize, usize),
    ) -> CollectionCounts {
        let tasks: Vec<_> = (0..groups.len()).map(fake_task).collect();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::of(ScriptedPolicy::new(script.to_vec())),
            seating: Seating::default(),
            strategy: &crate::strategies::Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &|_: &PlayedEpisode<'_>| {},
        };
        let config = CollectConfig::default();
        play_legs(&request, &config, groups, (wanted, tokens), &Nobody).await.0
    }

    fn fresh(count: u64, size: usize) -> Vec<GroupUnderWay> {
        (0..count).map(|it| GroupUnderWay::new(Seed::from_u64(it), size)).collect()
    }

    #[tokio::test]
    async fn what_is_not_complete_is_kept_and_goes_on_from_the_same_tokens() {
        let origin = FakeEnvironment::new();
        let script = ["right"];
        let mut groups = fresh(2, 2);
        // No episode can end within these tokens.
        let counts = play(&origin, &script, &mut groups, (0, 1)).await;
        assert_eq!(counts.finished, 0, "nothing is wanted, so nothing is played");
        let mut whole = fresh(2, 2);
        let counts = play(&origin, &script, &mut whole, (2, 1_000)).await;
        assert_eq!((counts.finished, counts.missing(), counts.replayed_turns), (4, 0, 0));

        let mut in_legs = groups;
        let counts = play(&origin, &script, &mut in_legs, (2, 7)).await;
        assert_eq!((counts.finished, counts.missing()), (4, 0));
        assert_eq!((counts.cancelled, counts.refills), (0, 0));
        for (whole, in_legs) in whole.into_iter().zip(in_legs) {
            assert_eq!(whole.tags, in_legs.tags);
            for (whole, resumed) in whole.into_done().iter().zip(in_legs.into_done()) {
                resumed.validate().unwrap();
                let told = |it: &Trajectory| -> Vec<_> {
                    it.turns.iter().map(|turn| (turn.text.clone(), turn.sampled.clone())).collect()
                };
                assert_eq!(told(whole), told(&resumed));
                assert_eq!(whole.total_reward(), resumed.total_reward());
                assert!(resumed.success && resumed.lineage.parent.is_some());
                let taken = resumed.lineage.fork_turn as usize;
                assert!(taken > 0);
                let is_taken = |turn: &spar_core::Turn| turn.source == Source::Inherited;
                assert!(resumed.turns[..taken].iter().all(is_taken));
                assert!(!resumed.turns[taken..].iter().any(is_taken));
            }
        }
    }

    #[tokio::test]
    async fn a_pause_is_kept_in_a_file_and_what_cannot_be_played_is_lost() {
        let origin = FakeEnvironment::new();
        let mut groups = fresh(3, 1);
        let mut paused = fresh(1, 1);
        let config = CollectConfig::default();
        let tasks = [fake_task(0)];
        let cancellation = Cancellation::new();
        let legs =
            Legs { tokens: 1, before: vec![paused[0].members.clone()], after: Mutex::default() };
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::of(ScriptedPolicy::new(["right"])),
            seating: Seating::default(),
            strategy: &legs,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &cancellation,
            on_episode: &|_: &PlayedEpisode<'_>| {},
        };
        let config_of_leg = CollectConfig { group_size: 1, ..config };
        let (counts, _) = stream_groups(&request, &config_of_leg, &Nobody).await;
        assert_eq!((counts.finished, counts.missing(), counts.cancelled), (0, 0, 0));
        paused[0].members = legs.after.into_inner().unwrap().remove(&0).unwrap();
        assert!(matches!(paused[0].members[0], Member::Paused { legs: 1, .. }));
        assert!(paused[0].paused_tokens() > 0 && !paused[0].is_complete());
        let written = serde_json::to_string(&paused).unwrap();
        assert_eq!(serde_json::from_str::<Vec<GroupUnderWay>>(&written).unwrap(), paused);

        origin.mishaps.store(1_000, Ordering::SeqCst);
        let counts = play(&origin, &["right"], &mut groups, (3, 100)).await;
        assert_eq!((counts.finished, counts.missing()), (0, 3));
        assert!(groups.iter().all(|group| group.members == [Member::Lost]));
    }

    /// Says `right` in few tokens or in many, a millisecond each, and counts what it samples.
    #[derive(Default)]
    struct Wordy(AtomicUsize);

    #[async_trait]
    impl Policy for Wordy {
        fn name(&self) -> &str {
            "wordy"
        }

        fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<u32> {
            ScriptedPolicy::new(["right"]).encode(before, message)
        }

        async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
            let begun = request.partial.ids.len();
            let is_long = begun > 0 || request.seed.as_u64().is_multiple_of(4);
            let total = if is_long { 90 } else { 6 };
            let upto = total.min(request.sampling.max_tokens);
            let sampled = upto - begun;
            self.0.fetch_add(sampled, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(sampled as u64)).await;
            let text: String = format!("{:90}", "right").chars().take(upto).collect();
            let ids: Vec<u32> = text.bytes().map(u32::from).collect();
            let stop = if upto < total { StopCause::Length } else { StopCause::EndOfTurn };
            // What it begins with was drawn by older weights.
            let version = |place| PolicyVersion(if place < begun { 1 } else { 2 });
            let tokens = SampledTokens {
                logprobs: vec![-0.5; ids.len()],
                versions: (0..ids.len()).map(version).collect(),
                ids,
                ..SampledTokens::default()
            };
            Ok(Completion { tokens, ..Completion::new("wordy", text, stop) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_the_longest_answers_and_none_of_their_tokens_is_lost() {
        let origin = FakeEnvironment::new();
        let tasks: Vec<_> = (0..8).map(fake_task).collect();
        let mut config = CollectConfig::default();
        config.episode.constrain_to_admissible = false;
        let policy = Arc::new(Wordy::default());
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &crate::strategies::Independent,
            open: origin.opener(),
            seed: Seed::from_u64(3),
            cancellation: &Cancellation::new(),
            on_episode: &|_: &PlayedEpisode<'_>| {},
        };
        let mut groups = fresh(8, 1);
        let started = tokio::time::Instant::now();
        play_legs(&request, &config, &mut groups, (2, 20), &Nobody).await;
        let first = started.elapsed();
        let complete =
            |groups: &[GroupUnderWay]| groups.iter().filter(|it| it.is_complete()).count();
        let before = complete(&groups);
        assert!((2..8).contains(&before), "{before}");
        let kept: usize = groups.iter().map(GroupUnderWay::paused_tokens).sum();
        assert!(kept > 0);
        let cut = groups.iter().flat_map(|group| &group.members).any(|member| match member {
            Member::Paused { trajectory, .. } => {
                trajectory.turns.last().unwrap().parsed.invalid_reason().is_some()
            }
            _ => false,
        });
        assert!(cut, "some are paused in the middle of an answer");

        // Next time they go on, and all that was ever sampled is in their records.
        play_legs(&request, &config, &mut groups, (8, 20), &Nobody).await;
        let all = started.elapsed();
        assert!(first * 2 < all, "{first:?} of {all:?}");
        let records: Vec<Trajectory> =
            groups.into_iter().flat_map(GroupUnderWay::into_done).collect();
        let tokens =
            |it: &Trajectory| it.turns.iter().map(|turn| turn.sampled.ids.len()).sum::<usize>();
        assert_eq!(records.iter().map(tokens).sum::<usize>(), policy.0.load(Ordering::SeqCst));
        assert!(records.iter().all(|it| it.success && it.validate().is_ok()));
        let resumed = records.iter().find(|it| it.lineage.fork_token.is_some()).unwrap();
        let turn = &resumed.turns[resumed.lineage.fork_turn as usize];
        assert_eq!(turn.source, Source::Regenerated);
        let versions = &turn.sampled.versions;
        let taken = resumed.lineage.fork_token.unwrap() as usize;
        assert!(versions[..taken].iter().all(|it| *it == PolicyVersion(1)));
        assert!(versions[taken..].iter().all(|it| *it == PolicyVersion(2)));
        let samples = crate::cut_samples(resumed).unwrap();
        let weighed: usize = samples
            .iter()
            .map(|it| it.turns.iter().filter(|t| **t != spar_core::Sample::OBSERVED).count())
            .sum();
        assert_eq!(
            weighed,
            tokens(resumed),
            "all of them can be trained, with what they were drawn with"
        );
    }
}
