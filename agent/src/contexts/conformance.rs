//! What holds of every context policy.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::json;
use spar_core::registry::AnyTable;
use spar_core::{
    Completion, CompletionRequest, EndReason, Limit, Message, Policy, PolicyError, PolicyVersion,
    SampledTokens, Seat, Seed, Signal, Signals, Source, StopCause, Trajectory, Turn,
};
use spar_envs::Environment;

use super::*;
use crate::credit::{AdvantageEstimator, BatchView, GroupView, Spa, SpaConfig};
use crate::fake_environment::{FakeEnvironment, fake_task};
use crate::policies::ScriptedPolicy;
use crate::{
    BranchPoint, Cancellation, Episode, EpisodeConfig, EpisodeInProgress, Player, run_episode,
};

/// What asks for a summary in these tests.
const ASK: &str = "Sum up.";

/// Walks to and fro, and to the end when it has walked enough; what it has done it reads in its prompt.
struct Walker {
    /// Steps to and fro, by twos.
    detours: usize,
    /// Whether it shows tokens.
    has_tokens: AtomicBool,
    summary: &'static str,
    layout: ScriptedPolicy,
    /// The prompts that it was given.
    seen: Mutex<Vec<Vec<String>>>,
}

impl Walker {
    fn new(detours: usize, summary: &'static str) -> Self {
        Self {
            detours,
            has_tokens: AtomicBool::new(true),
            summary,
            layout: ScriptedPolicy::new(Vec::<String>::new()),
            seen: Mutex::default(),
        }
    }

    fn has_tokens(&self) -> bool {
        self.has_tokens.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Policy for Walker {
    fn name(&self) -> &str {
        "walker"
    }

    fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<u32> {
        if self.has_tokens() { self.layout.encode(before, message) } else { Vec::new() }
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let texts: Vec<String> =
            request.messages.iter().map(|message| message.text().into_owned()).collect();
        let encoded: Vec<u32> =
            request.messages.iter().flat_map(|message| self.encode(None, message)).collect();
        assert_eq!(encoded, *request.prompt_ids, "tokens and messages tell the same");
        let last = texts.last().expect("something was said");
        let is_summary = last.ends_with(ASK);
        // How often it has acted stands in the seed of the turn alone for one that forgets everything.
        let at = |place: usize| last.contains(&format!("You are at {place}."));
        let acted = self.seen.lock().unwrap().len();
        let text = match () {
            () if is_summary => self.summary,
            () if acted < 2 * self.detours && at(1) => "left",
            () => "right",
        };
        self.seen.lock().unwrap().push(texts);
        let mut completion = Completion::new("walker", text, StopCause::EndOfTurn);
        if self.has_tokens() {
            let ids = self.layout.encode_answer(text);
            let begun = request.partial.ids.len();
            assert_eq!(request.partial.ids, ids[..begun], "it goes on from what it had said");
            completion.tokens = SampledTokens {
                logprobs: vec![-0.5; ids.len()],
                versions: vec![PolicyVersion(3); ids.len()],
                ids,
                ..SampledTokens::default()
            };
        }
        Ok(completion)
    }
}

fn configured(policy: serde_json::Value, max_context_tokens: Option<usize>) -> EpisodeConfig {
    let policy = serde_json::from_value(policy).unwrap();
    let mut config = EpisodeConfig {
        max_turns: Some(60),
        constrain_to_admissible: false,
        ..EpisodeConfig::default()
    };
    config.sampling.max_tokens = 8;
    config.context =
        ContextConfig { policy: Some(policy), max_context_tokens, ..ContextConfig::default() };
    config.validate().unwrap();
    config
}

fn compact(tokens: usize, keep_turns: usize) -> serde_json::Value {
    json!({
        "kind": "compact",
        "tokens": tokens,
        "keep_turns": keep_turns,
        "max_summary_tokens": 8,
        "prompt": ASK,
        "note": "So far: {{ summary }}",
    })
}

/// Every row with options under which it has something to do in some dozens of turns.
fn rows() -> Vec<EpisodeConfig> {
    let rows = context_registry().iter().map(|row| match row.name {
        "elide_observations" => {
            json!({ "kind": row.name, "keep_first": 1, "keep_last": 2, "polling": 3 })
        }
        "window" => json!({ "kind": row.name, "tokens": 400 }),
        "compact" => compact(400, 1),
        name => json!({ "kind": name }),
    });
    let with_lists = |row| {
        let mut config = configured(row, None);
        // What is worth leaving out is longer than the line that tells so.
        config.context.list_admissible = true;
        config
    };
    rows.map(with_lists).collect()
}

macro_rules! episode {
    ($id:expr, $task:expr, $policy:expr, $cancellation:expr) => {
        Episode {
            id: $id,
            task: $task,
            player: Player::Policy($policy),
            seat: Seat::FIRST,
            seed: Seed::from_u64(5),
            environment_seed: Seed::from_u64(6),
            cancellation: $cancellation,
        }
    };
}

async fn play(policy: &Walker, config: &EpisodeConfig) -> Trajectory {
    policy.seen.lock().unwrap().clear();
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let episode = episode!(1, &task, policy, &cancellation);
    let mut environment = FakeEnvironment::new();
    let played = run_episode(&mut environment, &episode, config).await;
    assert_eq!(environment.steps, played.acting().count(), "it steps where the policy acts");
    played.validate().unwrap();
    played
}

/// The same trajectory without what a clock says.
fn timeless(mut trajectory: Trajectory) -> Trajectory {
    trajectory.wall_time = Default::default();
    for turn in &mut trajectory.turns {
        (turn.policy_time, turn.environment_time) = Default::default();
    }
    trajectory
}

fn summaries(trajectory: &Trajectory) -> Vec<&Turn> {
    trajectory.turns.iter().filter(|turn| turn.is_summary()).collect()
}

#[test]
fn every_row_describes_itself() {
    for row in context_registry().iter() {
        assert_eq!(row.problems(), [""; 0], "{}", row.name);
    }
    assert_eq!(context_registry().describe().len(), context_registry().iter().count());
    let error = ContextPolicyChoice::new("compcat", Default::default()).unwrap_err().to_string();
    assert!(error.contains("known are `compact`"), "{error}");
}

#[tokio::test]
async fn the_task_and_the_last_observation_are_always_shown() {
    for config in rows() {
        let name = config.context_policy().name();
        for has_tokens in [true, false] {
            let policy = Walker::new(20, "1");
            policy.has_tokens.store(has_tokens, Ordering::SeqCst);
            let played = play(&policy, &config).await;
            let seen = policy.seen.lock().unwrap();
            assert!(seen.len() >= 30, "{name}: {}", seen.len());
            let longest = seen.iter().map(|prompt| prompt.concat().len()).max().unwrap();
            assert_eq!(longest < 1700, name != "keep_all", "{name} shortens: {longest}");
            for (prompt, turn) in seen.iter().zip(&played.turns) {
                assert_eq!(prompt[0], "Answer left or right.", "{name}");
                assert!(prompt[1].starts_with("You are at 0."), "{name}: {}", prompt[1]);
                let last = prompt.last().unwrap();
                assert_eq!(turn.is_summary(), last.ends_with(ASK), "{name}: {last}");
            }
            let shown =
                played.turns.iter().zip(seen.iter().skip(1)).filter(|(turn, _)| !turn.is_summary());
            for (turn, next) in shown {
                let last = next.last().unwrap();
                assert!(last.starts_with(&turn.step.observation.text), "{name}: {last}");
            }
        }
    }
}

#[tokio::test]
async fn to_keep_all_is_to_have_no_policy() {
    let with = configured(json!({ "kind": "keep_all" }), None);
    let without = EpisodeConfig {
        context: ContextConfig { policy: None, ..with.context.clone() },
        ..with.clone()
    };
    let policy = Walker::new(8, "1");
    let (one, other) = (play(&policy, &with).await, play(&policy, &without).await);
    assert_eq!(timeless(one), timeless(other));
    let json = serde_json::to_string(&with).unwrap();
    assert_eq!(serde_json::from_str::<EpisodeConfig>(&json).unwrap(), with);
    assert!(!serde_json::to_string(&without).unwrap().contains("policy\":"), "as it ever was");
}

#[tokio::test]
async fn a_fork_sees_what_its_origin_saw() {
    for config in rows() {
        let name = config.context_policy().name();
        let policy = Walker::new(6, "1");
        let origin = play(&policy, &config).await;
        let (task, cancellation) = (fake_task(0), Cancellation::new());
        for turn in 0..origin.turns.len() {
            let is_summary = origin.turns[turn].is_summary();
            for token in [0, 1] {
                policy.seen.lock().unwrap().truncate(turn);
                let mut environment = FakeEnvironment::new();
                environment.reset(Seed::from_u64(6)).await.unwrap();
                let fork = episode!(2, &task, &policy, &cancellation);
                let at = BranchPoint { turn, token };
                let environment = Box::new(environment);
                let mut fork =
                    EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
                assert_eq!(fork.end(), None, "{name} at {turn}");
                while fork.turn().await.is_some() {
                    policy.seen.lock().unwrap().truncate(fork.trajectory().turns.len());
                }
                let (fork, _) = fork.finish().await;
                let case = format!("{name} at {turn}, {token}");
                assert_eq!((&fork.end, fork.success), (&origin.end, origin.success), "{case}");
                assert_eq!(fork.turns.len(), origin.turns.len(), "{case}");
                for (index, (again, before)) in fork.turns.iter().zip(&origin.turns).enumerate() {
                    assert_eq!(again.prompt, before.prompt, "{case}: turn {index}");
                    assert_eq!(again.sampled, before.sampled, "{case}: turn {index}");
                    assert_eq!(again.step.observation, before.step.observation, "{case}");
                    assert_eq!((again.kind, &again.state_key), (before.kind, &before.state_key));
                }
                let source = if token > 0 { Source::Regenerated } else { Source::Sampled };
                assert_eq!(fork.turns[turn].source, source, "{case}");
                assert_eq!(fork.turns[turn].is_summary(), is_summary, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn who_sums_up_comes_to_the_end_where_the_context_is_too_short() {
    let policy = Walker::new(0, "1");
    let limited = |kind, limit| configured(kind, Some(limit));
    let cut_off = play(&policy, &limited(json!({ "kind": "keep_all" }), 87)).await;
    assert_eq!(cut_off.end, EndReason::Truncated { limit: Limit::Context });
    let whole = play(&policy, &limited(compact(55, 0), 87)).await;
    assert_eq!((&whole.end, whole.success), (&EndReason::Terminated, true));
    assert_eq!((whole.acting().count(), summaries(&whole).len()), (3, 2));
    assert_eq!(whole.total_reward(), 1.0);
    let summary = &whole.turns[1];
    assert!(summary.is_summary() && summary.parsed.is_invalid() && summary.step.valid);
    assert_eq!(summary.sampled.ids, policy.layout.encode_answer("1"));
    assert_eq!(summary.sampled.versions, [PolicyVersion(3); 2]);
    assert_eq!(summary.state_key, Turn::summary_key("at 1"));
    assert_eq!(summary.step.observation.state_key, "at 1");
    assert_eq!((summary.step.reward(), summary.counts.sampled), (0.0, Some(2)));
    let shown = policy.seen.lock().unwrap()[2].clone();
    assert_eq!(shown, ["Answer left or right.", "You are at 0.\n\nSo far: 1"]);
    assert_eq!(policy.seen.lock().unwrap()[1].last().unwrap(), "You are at 1.\n\nSum up.");
    // What the policy read before it is read on, and behind it only the task is.
    let before = &whole.turns[0];
    assert_eq!(summary.prompt.kept, before.prompt.appended.len() + before.sampled.ids.len());
    let task = "Answer left or right.".len() + 2 + 1 + "You are at 0.".len();
    assert_eq!(whole.turns[2].prompt.kept, task);
}

#[tokio::test]
async fn summaries_are_bounded_whatever_is_written() {
    // Nothing, and as much as there may be.
    for (summary, kept) in [("", 1), ("", 0), ("1234567", 1), ("1234567", 0)] {
        let policy = Walker::new(9, summary);
        let played = play(&policy, &configured(compact(100, kept), None)).await;
        assert!(played.success, "{summary:?}");
        let (acted, summed) = (played.acting().count(), summaries(&played).len());
        assert!(summed > 1 && summed <= acted, "{summed} of {acted}");
    }
    // The task and its summary alone are too long, and so is the task.
    for (tokens, turns) in [(45, 2), (20, 0)] {
        let policy = Walker::new(3, "1234567");
        let played = play(&policy, &configured(compact(tokens, 1), None)).await;
        assert_eq!(played.end, EndReason::Truncated { limit: Limit::Context }, "{tokens}");
        assert_eq!(played.turns.len(), turns, "{tokens}");
    }
    // What is asked for a summary does not fit any more.
    let mut asks_much = compact(70, 0);
    asks_much["prompt"] = format!("{}{ASK}", "-".repeat(100)).into();
    let played = play(&Walker::new(3, "1"), &configured(asks_much, Some(148))).await;
    assert_eq!(played.end, EndReason::Truncated { limit: Limit::Context });
    assert_eq!(summaries(&played).len(), 0);
}

#[tokio::test]
async fn what_is_left_of_the_context_is_enough_for_a_summary() {
    // Every byte is a token here, twice as many as was thought, so that no 512 are left for a summary.
    let prompt = format!("{} {} {ASK}", CompactOptions::default().prompt, "-".repeat(200));
    let compacts = json!({ "kind": "compact", "prompt": prompt });
    let mut config = configured(compacts, Some(2048));
    config.max_turns = Some(200);
    let played = play(&Walker::new(40, "1"), &config).await;
    assert_eq!((&played.end, played.success), (&EndReason::Terminated, true));
    let index = played.turns.iter().position(Turn::is_summary).expect("it was too long");
    let read = played.turns[index].counts.prompt.unwrap();
    assert!(read + 512 > 2048 && read + SummaryRules::MIN_TOKENS <= 2048, "{read}");
    // As much as is left, and no less than says something.
    let rules = SummaryRules::new(&CompactOptions::default()).unwrap();
    let behind = |prompt| rules.max_tokens_behind(prompt, Some(2048));
    assert_eq!([behind(1500), behind(1700), behind(2000), behind(3000)], [512, 348, 64, 64]);
    assert_eq!(rules.max_tokens_behind(3000, None), 512);
}

#[tokio::test]
async fn a_summary_earns_nothing_as_an_action() {
    let played = play(&Walker::new(2, "1"), &configured(compact(100, 1), None)).await;
    let turns = played.acting().cloned().collect();
    let without = Trajectory { turns, ..played.clone() };
    assert!(without.turns.len() < played.turns.len());
    let config = SpaConfig { grounding_weight: 0.5, normalize: false, ..SpaConfig::default() };
    let returns = |trajectory: &Trajectory| {
        let mut group = GroupView::default();
        group.push_recorded(trajectory);
        // Summaries contribute nothing here, so that grounding alone could tell them.
        let of_turn = |turn: &Turn| {
            let progress = if turn.is_summary() { 0.0 } else { 0.25 };
            std::iter::repeat_n(progress, turn.sampled.ids.len())
        };
        let mut signals = Signals::default();
        let progress = trajectory.turns.iter().flat_map(of_turn).collect();
        signals.insert(Signal::Progress, vec![progress]);
        let spa = Spa::new(config.clone()).unwrap();
        let found = spa.estimate(&BatchView::from(group), &signals).unwrap().advantages;
        let acting = trajectory.turns.iter().enumerate().filter(|(_, turn)| !turn.is_summary());
        acting.map(|(index, _)| found.at(0, index, 0)).collect::<Vec<f64>>()
    };
    assert_eq!(returns(&played), returns(&without));
    assert_eq!(returns(&without)[0], 0.75 * without.turns.len() as f64);
}

#[tokio::test]
async fn summaries_use_up_tokens_and_no_turns_unless_they_shall() {
    let mut config = configured(compact(60, 0), None);
    config.max_turns = Some(3);
    let policy = Walker::new(0, "1");
    assert!(play(&policy, &config).await.success);
    let mut counted = compact(60, 0);
    counted["counts_as_turn"] = true.into();
    let counted = EpisodeConfig { max_turns: Some(3), ..configured(counted, None) };
    let played = play(&policy, &counted).await;
    assert_eq!(played.end, EndReason::Truncated { limit: Limit::Turns });
    assert_eq!((played.turns.len(), played.acting().count()), (3, 2));
    // Six tokens for `right` and its end, two for the summary.
    config.max_sampled_tokens = Some(14);
    let played = play(&policy, &config).await;
    assert_eq!(played.end, EndReason::Truncated { limit: Limit::Tokens });
    assert_eq!(played.turns.len(), 3);
}

#[tokio::test]
async fn what_an_episode_was_worth_stands_where_it_acted_last() {
    let policy = Walker::new(0, "1");
    let config = EpisodeConfig { max_sampled_tokens: Some(8), ..configured(compact(55, 0), None) };
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let episode = episode!(1, &task, &policy, &cancellation);
    let mut environment = FakeEnvironment::new();
    let part = spar_core::RewardPart { name: "judge".to_owned(), value: 0.5 };
    let verdict = spar_core::Verdict { parts: vec![part], success: true, ..Default::default() };
    environment.verdict = Some(verdict);
    let played = run_episode(&mut environment, &episode, &config).await;
    assert!(played.turns[1].is_summary() && played.turns.len() == 2);
    assert_eq!((played.turns[0].step.reward(), played.turns[1].step.reward()), (0.5, 0.0));
    assert!(played.success);
    assert_eq!(played.end, EndReason::Truncated { limit: Limit::Tokens });
}

#[tokio::test]
async fn summaries_are_trained_like_other_turns() {
    let played = play(&Walker::new(2, "1"), &configured(compact(100, 1), None)).await;
    let advantages: Vec<f64> =
        played.turns.iter().map(|turn| if turn.is_summary() { 2.0 } else { -1.0 }).collect();
    let num_summaries = summaries(&played).len();
    assert!(num_summaries > 0);
    let group = spar_core::Group { task: played.task.clone(), trajectories: vec![played] };
    let samples = crate::group_samples(&group, &[advantages], crate::TurnMask::None).unwrap();
    assert_eq!(samples.len(), num_summaries + 1, "behind a summary a sample begins");
    let played = &group.trajectories[0];
    for (index, turn) in played.turns.iter().enumerate() {
        let advantage = if turn.is_summary() { 2.0 } else { -1.0 };
        let of_turn = samples.iter().flat_map(|sample| {
            let places = (0..sample.len()).filter(|t| sample.turns[*t] as usize == index);
            places.map(|t| (sample.tokens[t], sample.policy_weights[t], sample.advantages[t]))
        });
        let expected = turn.sampled.ids.iter().map(|id| (*id, 1.0, advantage));
        assert!(of_turn.eq(expected), "turn {index}");
    }
}

#[tokio::test]
async fn a_hint_before_a_summary_is_read_with_it() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let policy = Walker::new(0, "1");
    let config = configured(compact(60, 0), None);
    let episode = episode!(1, &task, &policy, &cancellation);
    let environment = Box::new(FakeEnvironment::new());
    let mut playing = EpisodeInProgress::start(environment, &episode, &config).await;
    playing.turn().await.unwrap();
    playing.inject(Message::new(spar_core::Role::User, "Go right."));
    let summary = playing.turn().await.unwrap();
    assert!(summary.is_summary());
    assert_eq!((summary.source, summary.injected.len()), (Source::Hinted, 1));
    assert_eq!(playing.turn().await.unwrap().source, Source::Sampled);
    let asked = policy.seen.lock().unwrap()[1].last().unwrap().clone();
    assert_eq!(asked, "Go right.\n\nSum up.");
}

#[test]
fn what_does_not_fit_is_refused() {
    let problems = |config: serde_json::Value| {
        let config: EpisodeConfig = serde_json::from_value(config).unwrap();
        config.validate().err().map(|error| error.problems).unwrap_or_default()
    };
    let context = |policy: serde_json::Value, more: serde_json::Value| {
        let mut context = json!({ "policy": policy });
        context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "context": context })
    };
    let none = json!({});
    for kind in ["window", "compact"] {
        assert!(problems(context(json!({ "kind": kind }), none.clone())).contains("give tokens"));
        let short = json!({ "max_context_tokens": 2048 });
        assert_eq!(problems(context(json!({ "kind": kind }), short.clone())), "");
        let limit = json!({ "max_context_tokens": 4096 });
        assert_eq!(problems(context(json!({ "kind": kind }), limit.clone())), "");
        let most = json!({ "kind": kind, "fraction": 1.0 });
        assert!(problems(context(most, limit)).contains("do not fit"));
        let window = json!({ "window_turns": 3 });
        let given = json!({ "kind": kind, "tokens": 1000 });
        assert!(problems(context(given, window)).contains("window_turns is given beside"));
    }
    // A summary fits, and what asks for it does not.
    let most = json!({ "kind": "compact", "fraction": 0.75 });
    let refused = problems(context(most, json!({ "max_context_tokens": 2048 })));
    assert!(refused.contains("summaries, with what asks for them, of"), "{refused}");
    let thoughts = json!({ "kind": "elide_observations", "thoughts": true });
    assert!(problems(context(thoughts.clone(), none)).contains("thoughts has no effect"));
    assert_eq!(problems(context(thoughts, json!({ "reasoning": "keep" }))), "");
    let refused = |policy: serde_json::Value| {
        serde_json::from_value::<ContextPolicyChoice>(policy).unwrap_err().to_string()
    };
    assert!(
        refused(json!({ "kind": "window", "tokens": 9, "fraction": 0.5 })).contains("no effect")
    );
    assert!(refused(json!({ "kind": "keep_all", "tokens": 9 })).contains("no option `tokens`"));
    assert!(
        refused(json!({ "kind": "elide_observations", "polling": 0 })).contains("polling is 0")
    );
}
