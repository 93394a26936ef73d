//! Demonstrations, and the text that a tokenizer learns from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use spar_agent::policies::RandomPolicy;
use spar_agent::strategies::Independent;
use spar_agent::{
    CollectConfig, CollectRequest, Collection, EpisodeConfig, Guide, OpenEnvironment, RollIn,
    Seating, SharedPlayer, collect_groups,
};
use spar_core::{EndReason, Limit, Policy, Role, Seed, Source, ToolSpec, Trajectory};
use spar_envs::shuffled_tasks;
use spar_policy::tool_words;
use spar_tasks::samplers::{KnownTask, TaskOrder};
use spar_tasks::{ShuffledTasks, Suite, SuiteError, Task};

use super::domains::Domain;
use super::stages::{Watch, WordsRequest};
use crate::recipe::{DataConfig, Recipe};

/// The most tasks or conversations whose text a tokenizer learns from.
pub(super) const TOKENIZER_TASKS: u64 = 256;

/// Who demonstrates: in the tokens of `policy` where there is one, which plays first where `roll_in` says so.
pub(super) fn demonstrator(
    guide: Guide,
    policy: Option<Arc<dyn Policy>>,
    roll_in: Option<RollIn>,
) -> SharedPlayer {
    match (policy, roll_in) {
        (Some(policy), Some(roll_in)) => SharedPlayer::RollIn { policy, guide, roll_in },
        (policy, _) => guide.player(policy),
    }
}

/// Plays every task once, by the [`demonstrator`], in at most so many tokens as the model reads; what is
/// longer is cut off.
pub(super) async fn demonstrate(
    recipe: &Recipe,
    (tasks, max_context_tokens): (&[Task], Option<usize>),
    player: SharedPlayer,
    seed: Seed,
    domain: &Domain,
    watch: &Watch<'_>,
) -> anyhow::Result<Collection> {
    let mut episode = recipe.episode.clone();
    let limits = [episode.context.max_context_tokens, max_context_tokens];
    episode.context.max_context_tokens = limits.into_iter().flatten().min();
    // Where there is no policy yet, what is said matters and no verdict does.
    let open = match player.shared_policy() {
        Some(policy) => domain.sandboxes.opener(Some(policy.clone())),
        None => domain.sandboxes.ungraded_opener(),
    };
    let seating = domain.seating.clone();
    play_once(episode, tasks, (player, seating, open), seed, domain, watch).await
}

/// Does recorded episodes again, in the tokens of `encoder` where there is one, in at most so many as the model reads; what is
/// longer is cut off. No environment is played in, and nobody judges.
pub(super) async fn play_recorded(
    recipe: &Recipe,
    (tasks, max_context_tokens): (&[Task], Option<usize>),
    encoder: Option<Arc<dyn Policy>>,
    seed: Seed,
    domain: &Domain,
    watch: &Watch<'_>,
) -> anyhow::Result<Collection> {
    let mut episode = EpisodeConfig { max_turns: None, ..recipe.episode.clone() };
    let limits = [episode.context.max_context_tokens, max_context_tokens];
    episode.context.max_context_tokens = limits.into_iter().flatten().min();
    let player = SharedPlayer::Oracle { encoder };
    let player = (player, Seating::default(), domain.sandboxes.ungraded_opener());
    play_once(episode, tasks, player, seed, domain, watch).await
}

/// Plays every task once by actions drawn at random, for the text that it shows.
async fn play_randomly(
    recipe: &Recipe,
    tasks: &[Task],
    seed: Seed,
    domain: &Domain,
    watch: &Watch<'_>,
) -> anyhow::Result<Collection> {
    let player = SharedPlayer::of(RandomPolicy);
    let player = (player, Seating::default(), domain.sandboxes.ungraded_opener());
    // Nobody who draws actions can be held to a grammar.
    let episode = EpisodeConfig { grammar: None, tool_grammar: None, ..recipe.episode.clone() };
    play_once(episode, tasks, player, seed, domain, watch).await
}

async fn play_once(
    episode: EpisodeConfig,
    tasks: &[Task],
    (player, seating, open): (SharedPlayer, Seating, OpenEnvironment),
    seed: Seed,
    domain: &Domain,
    watch: &Watch<'_>,
) -> anyhow::Result<Collection> {
    let request = CollectRequest {
        tasks,
        player,
        seating,
        strategy: &Independent,
        open,
        seed,
        cancellation: watch.cancellation,
        on_episode: &|played| watch.observer.episode(played),
    };
    let default = CollectConfig::default();
    let config = CollectConfig {
        group_size: 1,
        concurrency: domain.sandboxes.concurrency(),
        episode,
        ..default
    };
    let collection = collect_groups(&request, &config).await;
    if !watch.cancellation.is_cancelled() {
        let failure = || collection.last_failure.clone().unwrap_or_default();
        ensure!(collection.counts.finished > 0, "play a single episode: {}", failure());
    }
    Ok(collection)
}

/// The demonstrations that are imitated: those that solved their task, those that were [cut off](is_cut_off)
/// on the way, and the others where `unsolved` says so.
pub(super) fn imitated(collection: &Collection, unsolved: bool) -> Vec<&Trajectory> {
    let played = collection.groups.iter().flat_map(|group| &group.trajectories);
    played.filter(|trajectory| trajectory.success || unsolved || is_cut_off(trajectory)).collect()
}

/// Whether a demonstration is longer than the model reads, so that only its beginning is there.
pub(super) fn is_cut_off(trajectory: &Trajectory) -> bool {
    trajectory.end == EndReason::Truncated { limit: Limit::Context }
}

/// Whether a demonstration has an answer that the grammar of `episode` does not allow: a policy that is held to it says the same in other
/// tokens, or not at all. What is chosen from a list is held to that instead.
pub(super) fn is_outside_grammar(trajectory: &Trajectory, episode: &EpisodeConfig) -> bool {
    let is_held = episode.tool_grammar.is_some() || episode.grammar.is_some();
    let is_chosen =
        episode.constrain_to_admissible && trajectory.first_observation.admissible.is_some();
    is_held
        && !is_chosen
        && trajectory.turns.iter().any(|turn| {
            let sampled = &turn.sampled;
            turn.source == Source::Demonstrated
                && !sampled.ids.is_empty()
                && sampled.grammar.is_none()
        })
}

/// All that is said in episodes of random actions on a stage's first tasks; nothing where it needs no suite.
pub(super) async fn words_of_random_play(
    request: &WordsRequest<'_>,
) -> anyhow::Result<Vec<Vec<String>>> {
    let Some(domain) = request.domain else { return Ok(Vec::new()) };
    let count = TOKENIZER_TASKS as usize;
    request.watch.observer.playing("tokenizer", count);
    let (suite, split) = (domain.suite.as_ref(), &request.data.train);
    let tasks = take_tasks(suite, split, request.run, 0, count)?;
    let played =
        play_randomly(request.recipe, &tasks, request.seed, domain, &request.watch).await?;
    Ok(words_of(&request.recipe.episode, &played))
}

/// All that is said in the episodes of a collection.
pub(super) fn words_of(episode: &EpisodeConfig, collection: &Collection) -> Vec<Vec<String>> {
    let trajectories = collection.groups.iter().flat_map(|group| &group.trajectories);
    let said = trajectories.map(|trajectory| messages_of(episode, trajectory));
    said.map(|messages| messages.into_iter().map(Cow::into_owned).collect()).collect()
}

/// All that is said in an episode, message by message, and all that could have been said.
fn messages_of<'a>(episode: &EpisodeConfig, trajectory: &'a Trajectory) -> Vec<Cow<'a, str>> {
    let mut messages = Vec::new();
    for offered in &trajectory.tools {
        let native = || tool_words::offer(offered.tools.iter().map(ToolSpec::to_function));
        let told = episode.scaffold.system("", &offered.tools);
        messages.push(Cow::Owned(told.unwrap_or_else(native)));
    }
    let steps = trajectory.turns.iter().map(|turn| &turn.step.observation);
    let observations = std::iter::once(&trajectory.first_observation).chain(steps);
    for (observation, shown) in observations.zip(episode.observations(trajectory)) {
        messages.extend(shown.iter().map(|message| {
            let text = message.text();
            // As models read them that know no messages of tools.
            Cow::Owned(match message.role {
                Role::Tool => tool_words::result(&text),
                _ => text.into_owned(),
            })
        }));
        messages.extend(observation.instruction.as_deref().map(Cow::Borrowed));
        let actions = observation.admissible.iter().flat_map(|actions| actions.iter());
        messages.extend(actions.map(|action| Cow::Borrowed(&**action)));
    }
    messages.extend(trajectory.turns.iter().map(|turn| Cow::Borrowed(&*turn.text)));
    if let Some(rules) = episode.context_policy().summaries() {
        messages.extend([Cow::Owned(rules.request.clone()), Cow::Owned(rules.note(""))]);
    }
    messages
}

/// Demonstrated tasks `first..first + count`, taken from the recipe's splits in turn, each in its
/// [order](training_order).
pub(super) fn take_demonstrated(
    suite: &dyn Suite,
    data: &DataConfig,
    seed: Seed,
    first: u64,
    count: usize,
) -> anyhow::Result<Vec<Task>> {
    let splits = &data.demonstrations;
    if splits.is_empty() {
        return take_tasks(suite, &data.train, seed, first, count);
    }
    let num_splits = splits.len() as u64;
    let mut in_turn = Vec::with_capacity(splits.len());
    for (number, split) in (0..).zip(splits) {
        // Of the places `number`, `number + num_splits`, and so on, those before a place.
        let before = |place: u64| (place + num_splits - 1 - number) / num_splits;
        let (start, end) = (before(first), before(first + count as u64));
        in_turn.push(take_tasks(suite, split, seed, start, (end - start) as usize)?.into_iter());
    }
    let places = first..first + count as u64;
    let task = |place: u64| in_turn[(place % num_splits) as usize].next();
    Ok(places.filter_map(task).collect())
}

/// Tasks `first..first + count` of a split in its [order](training_order).
pub(super) fn take_tasks(
    suite: &dyn Suite,
    split: &str,
    seed: Seed,
    first: u64,
    count: usize,
) -> anyhow::Result<Vec<Task>> {
    training_order(suite, split, seed)?.take(first, count).context("take tasks")
}

/// The tasks at these places of a split's [order](training_order).
pub(super) fn take_places(
    suite: &dyn Suite,
    split: &str,
    seed: Seed,
    places: &[u64],
) -> anyhow::Result<Vec<Task>> {
    let order = training_order(suite, split, seed)?;
    let mut tasks = Vec::with_capacity(places.len());
    // Places that follow on each other are looked up together.
    for run in places.chunk_by(|one, next| one + 1 == *next) {
        tasks.extend(order.take(run[0], run.len()).context("take tasks")?);
    }
    Ok(tasks)
}

/// What a task sampler may know of the tasks that [`take_places`] takes.
pub(super) struct TrainingOrder<'a> {
    order: ShuffledTasks<'a>,
    /// What was looked up, a stretch of places at a time.
    looked: Mutex<HashMap<u64, Arc<[KnownTask]>>>,
}

/// Places that are looked up together.
const STRETCH: u64 = 256;

impl<'a> TrainingOrder<'a> {
    /// The order in which a run with this seed meets the tasks of a split.
    pub(super) fn new(suite: &'a dyn Suite, split: &'a str, seed: Seed) -> anyhow::Result<Self> {
        let order = training_order(suite, split, seed)?;
        Ok(Self { order, looked: Mutex::default() })
    }

    fn stretch(&self, number: u64) -> Arc<[KnownTask]> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let look = || self.order.look(number * STRETCH, STRETCH as usize).into();
        Arc::clone(looked.entry(number).or_insert_with(look))
    }
}

impl TaskOrder for TrainingOrder<'_> {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn look(&self, first: u64, count: usize) -> Vec<KnownTask> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let place = first + found.len() as u64;
            let stretch = self.stretch(place / STRETCH);
            let behind = stretch.iter().skip((place % STRETCH) as usize);
            let before = found.len();
            found.extend(behind.take(count - before).cloned());
            if found.len() == before {
                break;
            }
        }
        found
    }

    fn text(&self, place: u64) -> String {
        let task = self.order.take(place, 1).ok().and_then(|tasks| tasks.into_iter().next());
        task.map(|task| format!("{} {}", task.instruction, task.parameters)).unwrap_or_default()
    }
}

/// The order in which a run with this seed meets the tasks of a split.
fn training_order<'a>(
    suite: &'a dyn Suite,
    split: &'a str,
    seed: Seed,
) -> Result<ShuffledTasks<'a>, SuiteError> {
    shuffled_tasks(suite, split, seed.derive("tasks", split))
}

#[cfg(test)]
mod tests {
    use spar_core::Group;
    use spar_tasks::{SuiteOptions, open_suite};

    use super::*;

    #[test]
    fn demonstrated_splits_take_turns_wherever_one_begins() {
        let suite = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
        let splits = ["train", "test", "slippery"].map(str::to_owned);
        let data = DataConfig { demonstrations: splits.to_vec(), ..DataConfig::default() };
        let seed = Seed::from_u64(5);
        let take = |first, count| -> Vec<String> {
            let tasks = take_demonstrated(suite.as_ref(), &data, seed, first, count).unwrap();
            tasks.into_iter().map(|task| task.id).collect()
        };
        let whole = take(0, 20);
        for (id, split) in whole.iter().zip(splits.iter().cycle()) {
            assert!(id.starts_with(&format!("frozen-lake/{split}/")), "{id}");
        }
        for (first, count) in [(0, 3), (1, 1), (4, 7), (17, 3), (19, 1), (3, 0)] {
            assert_eq!(take(first as u64, count), whole[first..first + count], "{first}");
        }
        let single = take_tasks(suite.as_ref(), "test", seed, 0, 2).unwrap();
        assert_eq!([&single[0].id, &single[1].id], [&whole[1], &whole[4]]);
    }

    #[test]
    fn what_did_not_solve_its_task_is_imitated_only_where_that_is_asked_for() {
        let played = |episode: u64, success: bool| {
            let record = serde_json::json!({
                "version": 2, "episode": episode, "task": "t", "environment": "e",
                "seed": Seed::from_u64(0), "policy": "expert",
                "first_observation": { "text": "", "state_key": "" }, "turns": [],
                "end": { "kind": "truncated", "limit": "turns" }, "success": success,
                "wall_time": { "secs": 0, "nanos": 0 },
            });
            Trajectory::from_json(record.to_string().as_bytes()).unwrap()
        };
        let group = |trajectories| Group { task: "t".to_owned(), trajectories };
        let groups =
            vec![group(vec![played(1, false), played(2, true)]), group(vec![played(3, true)])];
        let collection = Collection { groups, ..Collection::default() };
        let chosen = |unsolved| -> Vec<u64> {
            imitated(&collection, unsolved).iter().map(|trajectory| trajectory.episode).collect()
        };
        assert_eq!(chosen(false), [2, 3]);
        assert_eq!(chosen(true), [1, 2, 3]);
        let mut cut_off = played(4, false);
        cut_off.end = EndReason::Truncated { limit: Limit::Context };
        let collection = Collection { groups: vec![group(vec![cut_off])], ..Collection::default() };
        assert_eq!(imitated(&collection, false).len(), 1);
        assert!(!crate::recipe::ImitateConfig::default().imitate_unsolved);
    }

    #[test]
    fn demonstrations_outside_of_the_grammar_are_seen() {
        let grammar = Arc::new(spar_core::GrammarSource::regex("x"));
        let record = serde_json::json!({
            "version": 3, "episode": 1, "task": "t", "environment": "e", "seed": Seed::from_u64(5), "policy": "oracle",
            "first_observation": { "text": "", "state_key": "" }, "end": { "kind": "terminated" }, "success": true,
            "wall_time": { "secs": 0, "nanos": 0 },
            "turns": [{
                "prompt": { "kept": 0, "appended": [1] }, "source": "demonstrated", "author": "oracle", "text": "x", "state_key": "",
                "sampled": { "ids": [2], "logprobs": [0.0], "versions": [0] },
                "parsed": { "kind": "action", "text": "x" }, "policy_time": { "secs": 0, "nanos": 0 },
                "step": { "observation": { "text": "", "state_key": "" }, "rewards": [], "terminated": true,
                    "success": true, "valid": true, "wall_time": { "secs": 0, "nanos": 0 } }
            }]
        });
        let mut shown = Trajectory::from_json(record.to_string().as_bytes()).unwrap();
        let free = EpisodeConfig::default();
        let held = EpisodeConfig { grammar: Some(grammar.clone()), ..EpisodeConfig::default() };
        assert!(is_outside_grammar(&shown, &held) && !is_outside_grammar(&shown, &free));
        shown.first_observation.admissible = Some(["x".into()].into());
        assert!(!is_outside_grammar(&shown, &held), "it was chosen from a list");
        shown.first_observation.admissible = None;
        shown.turns[0].sampled.grammar = Some(grammar.hash());
        assert!(!is_outside_grammar(&shown, &held));
    }
}
