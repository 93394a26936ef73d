//! What becomes of episodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use spar_core::{
    Action, Boundary, Completion, CompletionRequest, EndReason, GrammarSource, Limit, Message,
    Observation, Policy, PolicyError, PolicyVersion, RewardPart, Role, Sample, SampledTokens, Seat,
    Seed, Source, Spend, Step, StopCause, Trajectory, Verdict,
};
use spar_envs::{Environment, EnvironmentError, ReasoningGym, TimeRules};
use spar_tasks::Task;
use tokio::time::{Instant, sleep};

use super::*;
use crate::contexts::said_in;
use crate::fake_environment::{FakeEnvironment, fake_task};
use crate::policies::{RandomPolicy, ScriptedPolicy};
use crate::samples::{DemonstrationConfig, cut_samples, demonstration_samples};
use crate::spend::EpisodeTally;
use crate::{ContextConfig, EpisodeConfig, Guide, ParserChoice, RollIn};

async fn run_with(
    environment: &mut dyn Environment,
    player: Player<'_>,
    config: &EpisodeConfig,
) -> Trajectory {
    run_seeded(environment, player, config, Seed::from_u64(1)).await
}

async fn run_seeded(
    environment: &mut dyn Environment,
    player: Player<'_>,
    config: &EpisodeConfig,
    seed: Seed,
) -> Trajectory {
    let cancellation = Cancellation::new();
    let task = fake_task(0);
    let episode = Episode {
        id: 7,
        task: &task,
        player,
        seat: Seat::FIRST,
        seed,
        environment_seed: seed,
        cancellation: &cancellation,
    };
    let trajectory = run_episode(environment, &episode, config).await;
    trajectory.validate().unwrap();
    trajectory
}

pub(super) async fn run(player: Player<'_>, config: &EpisodeConfig) -> Trajectory {
    run_with(&mut FakeEnvironment::new(), player, config).await
}

#[tokio::test]
async fn a_solved_task_terminates_the_episode() {
    let policy = ScriptedPolicy::new(["right", "right", "right"]);
    let trajectory = run(Player::Policy(&policy), &EpisodeConfig::default()).await;
    assert_eq!(trajectory.end, EndReason::Terminated);
    assert!(trajectory.success);
    assert_eq!((trajectory.turns.len(), trajectory.total_reward()), (3, 1.0));
    assert_eq!(trajectory.turns[1].state_key, "at 1");
    assert!(!trajectory.lineage.guided);
    assert_eq!(trajectory.turns[1].prompt.kept, {
        let first = &trajectory.turns[0];
        first.prompt.appended.len() + first.sampled.ids.len()
    });
}

/// A corridor in which everybody is led to the right.
#[derive(Clone)]
struct Led(FakeEnvironment);

#[async_trait]
impl Environment for Led {
    fn name(&self) -> &'static str {
        "led"
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        self.0.reset(seed).await
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let right = Action::from("right");
        let mut step = self.0.step(&right).await?;
        if *action != right {
            step.valid = false;
            step.observation.carried_out = Some(right);
        }
        Ok(step)
    }
}

#[tokio::test]
async fn what_was_carried_out_stands_in_the_place_of_an_answer_and_weighs_nothing() {
    let policy = ScriptedPolicy::new(["wrong", "right", "right"]);
    let config = EpisodeConfig { constrain_to_admissible: false, ..EpisodeConfig::default() };
    let mut led = Led(FakeEnvironment::new());
    let trajectory = run_with(&mut led, Player::Policy(&policy), &config).await;
    let texts: Vec<&str> = trajectory.turns.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!((texts, trajectory.success), (vec!["wrong", "right", "right"], true));
    let conversation = config.conversation(&fake_task(0), &trajectory);
    let said = conversation.iter().filter(|message| message.role == Role::Assistant);
    let said: Vec<String> = said.map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["right", "right", "right"]);

    // The answer is trained behind what came before it, and is not there any more afterwards.
    let samples = cut_samples(&trajectory).unwrap();
    let answer = &trajectory.turns[0].sampled.ids;
    let encoded = policy.encode(None, &Message::new(Role::Assistant, "right"));
    assert_ne!(*answer, encoded);
    let [first, second] = &samples[..] else { panic!("two samples: {samples:?}") };
    assert!(first.tokens.ends_with(answer));
    let start = first.len() - answer.len();
    assert!(second.tokens.starts_with(&first.tokens[..start]));
    let put: Vec<u32> = second.tokens[start..start + encoded.len()].to_vec();
    assert_eq!(put, encoded);
    let of_turns = |sample: &Sample| -> Vec<u32> {
        let mut turns = sample.turns.clone();
        turns.retain(|turn| *turn != Sample::OBSERVED);
        turns.dedup();
        turns
    };
    assert_eq!((of_turns(first), of_turns(second)), (vec![0], vec![1, 2]));
}

#[tokio::test]
async fn guides_leave_demonstrations() {
    let policy = ScriptedPolicy::new(["unused"]);
    for (player, turns) in [
        (Player::Oracle { encoder: Some(&policy) }, 3),
        (Player::Expert { encoder: Some(&policy) }, 5),
    ] {
        let trajectory = run(player, &EpisodeConfig::default()).await;
        assert!(trajectory.success && trajectory.lineage.guided);
        assert_eq!(trajectory.turns.len(), turns);
        let turn = &trajectory.turns[0];
        assert_eq!(turn.author, player.name());
        let message = Message::new(Role::Assistant, turn.text.as_str());
        assert_eq!(turn.sampled.ids, policy.encode(None, &message));
    }
    let trajectory = run(Player::Oracle { encoder: None }, &EpisodeConfig::default()).await;
    assert!(trajectory.success && trajectory.turns[0].sampled.ids.is_empty());
}

/// A policy that is forced to its first token by whatever grammar.
struct Held;

#[async_trait]
impl Policy for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
        vec![1, 2]
    }

    async fn encode_answer_in(
        &self,
        _: &str,
        grammar: Arc<GrammarSource>,
    ) -> Result<SampledTokens, PolicyError> {
        Ok(SampledTokens {
            allowed: vec![vec![7], Vec::new()],
            grammar: Some(grammar.hash()),
            ..SampledTokens::unrestricted(vec![7, 8])
        })
    }

    async fn complete(&self, _: CompletionRequest) -> Result<Completion, PolicyError> {
        unreachable!("it is shown what to say")
    }
}

#[tokio::test]
async fn demonstrations_have_the_tokens_that_a_grammar_has_them_sampled_in() {
    let grammar = Arc::new(GrammarSource::regex("[a-z ]+"));
    let config = EpisodeConfig {
        grammar: Some(grammar.clone()),
        constrain_to_admissible: false,
        ..EpisodeConfig::default()
    };
    let trajectory = run(Player::Oracle { encoder: Some(&Held) }, &config).await;
    assert!(trajectory.success && trajectory.turns.len() == 3);
    for turn in &trajectory.turns {
        assert_eq!(turn.sampled.allowed, [vec![7], Vec::new()]);
    }
    assert_eq!(trajectory.grammars.get(&grammar.hash()), Some(&grammar));
    let samples = demonstration_samples(&trajectory, &DemonstrationConfig::default()).unwrap();
    let places = samples[0].grammars[0].places.clone();
    assert_eq!(samples[0].tokens[places.clone()], [7, 8]);
    assert_eq!(samples[0].cross_entropy_weights[places], [0.0, 1.0]);
    // Chosen from a list, an answer is held to no grammar.
    let config = EpisodeConfig { constrain_to_admissible: true, ..config };
    let trajectory = run(Player::Oracle { encoder: Some(&Held) }, &config).await;
    assert_eq!((&*trajectory.turns[0].sampled.ids, trajectory.grammars.len()), (&[1, 2][..], 0));
}

#[tokio::test]
async fn a_demonstrator_goes_on_from_where_the_policy_led() {
    let policy = ScriptedPolicy::new(["right", "left", "right", "left"]);
    let roll_in = RollIn { share: 1.0, min_turns: 1, max_turns: 3 };
    let config = EpisodeConfig::default();
    let mut led = [0; 4];
    for seed in 0..40 {
        let player = Player::RollIn { policy: &policy, guide: Guide::Oracle, roll_in };
        let seed = Seed::from_u64(seed);
        let trajectory = run_seeded(&mut FakeEnvironment::new(), player, &config, seed).await;
        assert!(trajectory.success && trajectory.lineage.guided);
        assert_eq!(trajectory.policy, "oracle");
        let authors: Vec<_> = trajectory.turns.iter().map(|turn| &*turn.author).collect();
        let num_led = authors.iter().take_while(|author| **author == "scripted").count();
        assert!(authors[num_led..].iter().all(|author| *author == "oracle"), "{authors:?}");
        led[num_led] += 1;
    }
    assert!(led[0] == 0 && led[1..].iter().all(|times| *times > 5), "{led:?}");
}

#[tokio::test]
async fn demonstrators_write_as_policies_have_to() {
    let config = EpisodeConfig {
        parser: Some(ParserChoice::named("tags").unwrap()),
        ..EpisodeConfig::default()
    };
    for player in [Player::Oracle { encoder: None }, Player::Policy(&RandomPolicy)] {
        let trajectory = run(player, &config).await;
        assert!(!trajectory.turns.is_empty());
        for turn in &trajectory.turns {
            let action = said_in(&turn.parsed).unwrap();
            assert_eq!(turn.text, format!("<action>{action}</action>"));
        }
    }
}

#[tokio::test]
async fn environments_that_find_what_counts_are_given_whole_answers() {
    let parameters = json!({ "seed": 1, "dataset": "rotate_matrix" });
    let task = Task { environment: "reasoning-gym".to_owned(), parameters, ..fake_task(0) };
    let mut puzzle = ReasoningGym::open(&task).unwrap();
    let config = EpisodeConfig::default();
    let shown = run_with(&mut puzzle, Player::Oracle { encoder: None }, &config).await;
    let right = &shown.turns[0].text;
    assert!(shown.success && right.lines().count() > 1, "{right}");

    let said = format!("First I turn it.\n\n{right}");
    let policy = ScriptedPolicy::new([&*said]);
    let told = run_with(&mut puzzle, Player::Policy(&policy), &config).await;
    assert!(told.success && said_in(&told.turns[0].parsed) == Some(&*said), "{:?}", told.turns);
    // Who chooses a parser has that one.
    let config = EpisodeConfig { parser: Some(ParserChoice::default()), ..config };
    let cut = run_with(&mut puzzle, Player::Policy(&policy), &config).await;
    assert!(!cut.success && said_in(&cut.turns[0].parsed) == Some("First I turn it."));
}

#[tokio::test]
async fn an_invalid_action_is_an_observation_with_a_penalty() {
    let policy = ScriptedPolicy::new(["right", "<action>right</action>"]);
    let config = EpisodeConfig {
        parser: Some(ParserChoice::named("tags").unwrap()),
        invalid_penalty: 0.1,
        ..EpisodeConfig::default()
    };
    let trajectory = run(Player::Policy(&policy), &config).await;
    assert!(trajectory.success);
    assert_eq!(trajectory.turns.len(), 4);
    let step = &trajectory.turns[0].step;
    assert_eq!(step.reward(), -0.1);
    assert!(step.observation.text.contains("<action>"));
    assert_eq!(trajectory.turns[1].state_key, "at 0");
}

#[tokio::test]
async fn actions_that_cannot_be_executed_are_penalized_on_demand() {
    let policy = ScriptedPolicy::new(["fly", "right"]);
    let mut config = EpisodeConfig { invalid_penalty: 0.5, ..EpisodeConfig::default() };
    assert_eq!(run(Player::Policy(&policy), &config).await.total_reward(), 1.0);
    config.penalize_invalid = true;
    assert_eq!(run(Player::Policy(&policy), &config).await.total_reward(), 0.5);
}

#[tokio::test]
async fn turns_are_limited() {
    let policy = ScriptedPolicy::new(["left"]);
    let config = EpisodeConfig { max_turns: Some(4), ..EpisodeConfig::default() };
    let trajectory = run(Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Turns });
    assert_eq!(trajectory.turns.len(), 4);
    let trajectory = run(Player::Policy(&policy), &EpisodeConfig::default()).await;
    assert_eq!(trajectory.turns.len(), fake_task(0).max_turns as usize);
}

#[tokio::test]
async fn a_full_context_truncates() {
    let policy = ScriptedPolicy::new(["left"]);
    let context = ContextConfig { max_context_tokens: Some(120), ..ContextConfig::default() };
    let config = EpisodeConfig { context, ..EpisodeConfig::default() };
    let trajectory = run(Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Context });
    assert!(!trajectory.turns.is_empty());
}

#[tokio::test]
async fn the_random_policy_plays_what_is_admissible() {
    let trajectory = run(Player::Policy(&RandomPolicy), &EpisodeConfig::default()).await;
    assert!(!trajectory.is_failed());
    assert!(trajectory.turns.iter().all(|turn| turn.step.valid));
    let config = EpisodeConfig { constrain_to_admissible: false, ..EpisodeConfig::default() };
    let trajectory = run(Player::Policy(&RandomPolicy), &config).await;
    // It says words of the conversation then, which is seldom an action.
    assert!(!trajectory.is_failed());
    assert!(trajectory.turns.iter().any(|turn| !turn.step.valid));
}

/// Fails as told before it answers, and counts.
struct Moody {
    failures: usize,
    /// What each answer costs.
    cost: f64,
    error: fn() -> Option<PolicyError>,
    asked: AtomicUsize,
    forgotten: AtomicUsize,
    reported_tokens: Option<usize>,
}

impl Moody {
    fn new(failures: usize, error: fn() -> Option<PolicyError>) -> Self {
        let (asked, forgotten) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { failures, cost: 0.0, error, asked, forgotten, reported_tokens: None }
    }
}

#[async_trait]
impl Policy for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, _: CompletionRequest) -> Result<Completion, PolicyError> {
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.failures {
            match (self.error)() {
                Some(error) => return Err(error),
                None => std::future::pending().await,
            }
        }
        EpisodeTally::count(Spend { requests: 1, cost: self.cost, ..Spend::default() });
        let completion = Completion::new("moody", "right", StopCause::Length);
        Ok(Completion { reported_tokens: self.reported_tokens, ..completion })
    }

    fn forget(&self, episode: u64) {
        assert_eq!(episode, 7);
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

fn unreachable() -> Option<PolicyError> {
    Some(PolicyError::Unreachable { name: "moody".to_owned(), detail: "line cut".to_owned() })
}

#[tokio::test(start_paused = true)]
async fn a_policy_out_of_reach_is_asked_again_a_few_times() {
    let policy = Moody::new(2, unreachable);
    assert!(run(Player::Policy(&policy), &EpisodeConfig::default()).await.success);
    let policy = Moody::new(3, unreachable);
    let end = run(Player::Policy(&policy), &EpisodeConfig::default()).await.end;
    let EndReason::Failed { boundary: Boundary::Policy, detail } = end else {
        panic!("{end:?}");
    };
    assert!(detail.contains("line cut"));
    assert_eq!(policy.forgotten.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_a_policy_reports_decides_the_end() {
    let end = async |error| {
        let policy = Moody::new(1, error);
        run(Player::Policy(&policy), &EpisodeConfig::default()).await.end
    };
    let full = end(|| Some(PolicyError::ContextFull { tokens: None, limit: Some(1) })).await;
    assert_eq!(full, EndReason::Truncated { limit: Limit::Context });
    let closed = end(|| Some(PolicyError::Closed { name: "moody".to_owned() })).await;
    assert!(matches!(closed, EndReason::Failed { boundary: Boundary::Cancelled, .. }));
    let nonsense =
        end(|| Some(PolicyError::Nonsense { name: "moody".to_owned(), detail: String::new() }));
    assert!(matches!(nonsense.await, EndReason::Failed { boundary: Boundary::Policy, .. }));
}

#[tokio::test(start_paused = true)]
async fn who_misses_a_deadline_has_failed_and_is_not_scored() {
    let policy = Moody::new(1, || None);
    let config = EpisodeConfig { turn_timeout_secs: 5, ..EpisodeConfig::default() };
    let started = Instant::now();
    let trajectory = run(Player::Policy(&policy), &config).await;
    let detail = "it did not answer within 5 s".to_owned();
    assert_eq!(trajectory.end, EndReason::Failed { boundary: Boundary::Policy, detail });
    assert_eq!(started.elapsed().as_secs(), 5);
    // An environment whose steps no action can make long.
    let policy = ScriptedPolicy::new(["left"]);
    let mut environment = FakeEnvironment::new();
    environment.step_time = Duration::from_secs(6);
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    let detail = "it did not carry out a step within 5 s".to_owned();
    assert_eq!(trajectory.end, EndReason::Failed { boundary: Boundary::Environment, detail });
    assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (0, 5));
    // One that is slow, but in time, is played to the end, however long that takes.
    environment.step_time = Duration::from_secs(4);
    let config = EpisodeConfig { command_time_secs: 10, ..config };
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Turns });
    assert_eq!(trajectory.wall_time.as_secs(), 40);
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_commands_hang_uses_up_its_own_time() {
    let policy = ScriptedPolicy::new(["left"]);
    let mut environment = FakeEnvironment::new();
    environment.step_time = Duration::from_secs(4);
    environment.time_rules =
        TimeRules { command: Some(Duration::from_secs(30)), ..TimeRules::default() };
    // Neither the turn's deadline nor the number of turns comes first.
    let config =
        EpisodeConfig { turn_timeout_secs: 3, command_time_secs: 10, ..EpisodeConfig::default() };
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::CommandTime });
    assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (3, 10));
    // The turn that took the rest is there to be learned from.
    let last = &trajectory.turns[2];
    assert_eq!((last.text.as_str(), last.step.valid), ("left", true));
    assert!(last.step.observation.text.contains("time was over"));
    // What the environment itself took beyond the command's limit is not the agent's.
    environment.time_rules =
        TimeRules { command: Some(Duration::from_secs(1)), ..TimeRules::default() };
    let config = EpisodeConfig { command_time_secs: 5, ..config };
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::CommandTime });
    assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (5, 20));
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_task_gives_counts_the_policy_too_and_is_named() {
    let rules = |task| TimeRules {
        task: Some(Duration::from_secs(task)),
        command: Some(Duration::from_secs(30)),
        ..TimeRules::default()
    };
    let mut environment = FakeEnvironment::new();
    environment.time_rules = rules(3);
    // It hangs at the first question; the task's time is over before its own.
    let policy = Moody::new(1, || None);
    let config = EpisodeConfig { turn_timeout_secs: 5, ..EpisodeConfig::default() };
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::TaskTime });
    assert_eq!(trajectory.wall_time.as_secs(), 3);
    // A server that misses its own deadline has failed, whatever the task's.
    environment.time_rules = rules(8);
    let policy = Moody::new(1, || None);
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert!(trajectory.is_failed(), "{:?}", trajectory.end);
    // The task's rule takes the place of the run's bound on commands.
    environment.step_time = Duration::from_secs(4);
    let config = EpisodeConfig { command_time_secs: 1, ..config };
    let policy = ScriptedPolicy::new(["left"]);
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::TaskTime });
    assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (2, 8));
    // What the environment does of its own in a step, such as judging, is not the agent's time.
    environment.own_time = Duration::from_secs(3);
    let policy = ScriptedPolicy::new(["left"]);
    let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::TaskTime });
    assert!(trajectory.turns.len() >= 5, "{}", trajectory.turns.len());
}

#[tokio::test]
async fn what_an_episode_costs_is_a_budget_of_its_own() {
    let played = async |config: EpisodeConfig| {
        let policy = Moody { cost: 0.4, ..Moody::new(0, || None) };
        let tally = EpisodeTally::default();
        tally.counting(run(Player::Policy(&policy), &config)).await
    };
    // The third answer would have been the last: what is spent is looked at before one is asked for.
    let config = |max_cost| EpisodeConfig { max_cost, ..EpisodeConfig::default() };
    let trajectory = played(config(Some(0.7))).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Cost });
    assert_eq!(trajectory.turns.len(), 2);
    assert!(played(config(Some(0.9))).await.success);
    assert!(played(config(None)).await.success);
}

#[tokio::test]
async fn sampled_tokens_are_a_budget_of_their_own() {
    // Five characters and the end of the turn.
    let policy = ScriptedPolicy::new(["left "]);
    let config = EpisodeConfig { max_sampled_tokens: Some(13), ..EpisodeConfig::default() };
    let trajectory = run(Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Tokens });
    assert_eq!(trajectory.turns.len(), 3);
    // A policy without tokens may tell their number; one that does not cannot be held to it.
    let policy = Moody { reported_tokens: Some(7), ..Moody::new(0, || None) };
    let trajectory = run(Player::Policy(&policy), &config).await;
    assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Tokens });
    assert_eq!(trajectory.turns.len(), 2);
    let end = run(Player::Policy(&Moody::new(0, || None)), &config).await.end;
    assert!(matches!(end, EndReason::Failed { boundary: Boundary::Policy, .. }), "{end:?}");
    // Those who demonstrate sample nothing.
    assert!(run(Player::Oracle { encoder: None }, &config).await.success);
}

#[tokio::test]
async fn why_a_completion_ended_is_kept() {
    let trajectory = run(Player::Policy(&Moody::new(0, || None)), &EpisodeConfig::default()).await;
    assert!(trajectory.turns.iter().all(|turn| turn.stop == Some(StopCause::Length)));
    assert!(trajectory.turns[0].is_cut_off());
    let trajectory = run(Player::Oracle { encoder: None }, &EpisodeConfig::default()).await;
    assert_eq!(trajectory.turns[0].stop, Some(StopCause::EndOfTurn));
}

#[tokio::test]
async fn an_environment_that_breaks_fails_the_episode() {
    let policy = ScriptedPolicy::new(["right"]);
    let mut environment = FakeEnvironment::new();
    environment.breaks_after = Some(1);
    let trajectory =
        run_with(&mut environment, Player::Policy(&policy), &EpisodeConfig::default()).await;
    let end = &trajectory.end;
    assert!(matches!(end, EndReason::Failed { boundary: Boundary::Environment, .. }));
    assert_eq!((trajectory.turns.len(), trajectory.success), (1, false));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_an_episode_in_the_middle_of_a_call() {
    let policy = Moody::new(1, || None);
    let cancellation = Cancellation::new();
    let (task, seed) = (fake_task(0), Seed::from_u64(1));
    let episode = Episode {
        id: 7,
        task: &task,
        player: Player::Policy(&policy),
        seat: Seat::FIRST,
        seed,
        environment_seed: seed,
        cancellation: &cancellation,
    };
    let mut environment = FakeEnvironment::new();
    let config = EpisodeConfig::default();
    let (trajectory, ()) = tokio::join!(run_episode(&mut environment, &episode, &config), async {
        sleep(Duration::from_secs(1)).await;
        cancellation.cancel();
    });
    let end = &trajectory.end;
    assert!(matches!(end, EndReason::Failed { boundary: Boundary::Cancelled, .. }), "{end:?}");
    assert_eq!(policy.forgotten.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn equal_seeds_give_equal_episodes() {
    let config = EpisodeConfig::default();
    let mut first = run(Player::Policy(&RandomPolicy), &config).await;
    let mut second = run(Player::Policy(&RandomPolicy), &config).await;
    for trajectory in [&mut first, &mut second] {
        trajectory.wall_time = Duration::ZERO;
        for turn in &mut trajectory.turns {
            (turn.policy_time, turn.environment_time) = (Duration::ZERO, Duration::ZERO);
        }
    }
    assert_eq!(first, second);
}

/// Starts an episode in an environment of its own.
async fn start<'a>(
    environment: FakeEnvironment,
    episode: &Episode<'a>,
    config: &'a EpisodeConfig,
) -> EpisodeInProgress<'a> {
    EpisodeInProgress::start(Box::new(environment), episode, config).await
}

async fn at_its_start(mut environment: FakeEnvironment) -> Box<dyn Environment> {
    environment.reset(Seed::from_u64(1)).await.unwrap();
    Box::new(environment)
}

async fn to_the_end(mut playing: EpisodeInProgress<'_>) -> Trajectory {
    while playing.turn().await.is_some() {}
    let (trajectory, _) = playing.finish().await;
    trajectory.validate().unwrap();
    trajectory
}

fn actions(trajectory: &Trajectory) -> Vec<&str> {
    trajectory.turns.iter().map(|turn| turn.text.as_str()).collect()
}

/// What is not a matter of clocks.
fn timeless(mut trajectory: Trajectory) -> Trajectory {
    trajectory.wall_time = Duration::ZERO;
    for turn in &mut trajectory.turns {
        (turn.policy_time, turn.environment_time) = (Duration::ZERO, Duration::ZERO);
    }
    trajectory
}

macro_rules! episode {
    ($id:expr, $task:expr, $policy:expr, $cancellation:expr) => {
        Episode {
            id: $id,
            task: $task,
            player: Player::Policy($policy),
            seat: Seat::FIRST,
            seed: Seed::from_u64($id),
            environment_seed: Seed::from_u64(1),
            cancellation: $cancellation,
        }
    };
}

#[tokio::test]
async fn a_fork_shares_the_past_and_nothing_else() {
    let (task, cancellation, config) =
        (fake_task(0), Cancellation::new(), EpisodeConfig::default());
    let trunk = ScriptedPolicy::new(["right", "right", "left", "right", "right"]);
    let other = ScriptedPolicy::new(["right"]);
    let episode = episode!(1, &task, &trunk, &cancellation);
    for can_fork in [true, false] {
        let environment = FakeEnvironment { can_fork, ..FakeEnvironment::new() };
        let mut origin = start(environment.clone(), &episode, &config).await;
        for _ in 0..2 {
            origin.turn().await.unwrap();
        }
        let replays = AtomicUsize::new(0);
        let mut fork = async |id, turn| {
            let again = async || {
                replays.fetch_add(1, Ordering::SeqCst);
                Ok(at_its_start(environment.clone()).await)
            };
            let fork = episode!(id, &task, &other, &cancellation);
            origin.fork(BranchPoint::before(turn), &fork, again).await.unwrap()
        };
        let (late, early) = (fork(2, 2).await, fork(3, 0).await);
        assert_eq!(replays.into_inner(), if can_fork { 1 } else { 2 }, "where it stands it forks");
        // The fork goes another way than its origin, between whose turns it plays.
        let late = to_the_end(late).await;
        let origin = to_the_end(origin).await;
        let early = to_the_end(early).await;
        assert_eq!(actions(&origin), ["right", "right", "left", "right", "right"]);
        assert_eq!(actions(&late), ["right"; 3]);
        assert_eq!(actions(&early), ["right"; 3]);
        assert!(origin.success && late.success && early.success);
        let sources: Vec<_> = late.turns.iter().map(|turn| turn.source).collect();
        assert_eq!(sources, [Source::Inherited, Source::Inherited, Source::Sampled]);
        assert_eq!(late.turns[1].prompt, origin.turns[1].prompt);
        let lineage = &late.lineage;
        assert_eq!((lineage.parent, lineage.fork_turn, lineage.fork_token), (Some(1), 2, None));
        assert_eq!((early.lineage.parent, early.lineage.fork_turn), (Some(1), 0));
    }
}

#[tokio::test]
async fn a_replay_leads_where_a_fork_leads() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let context = ContextConfig { window_turns: Some(1), reminder: true, ..Default::default() };
    let config = EpisodeConfig { context, ..EpisodeConfig::default() };
    let (trunk, other) =
        (ScriptedPolicy::new(["right", "x", "left", "right"]), ScriptedPolicy::new(["right"]));
    let mut found = Vec::new();
    for can_fork in [true, false] {
        let environment = FakeEnvironment { can_fork, ..FakeEnvironment::new() };
        let episode = episode!(1, &task, &trunk, &cancellation);
        let mut origin = start(environment.clone(), &episode, &config).await;
        for _ in 0..3 {
            origin.turn().await.unwrap();
        }
        let again = async || Ok(at_its_start(environment).await);
        let fork = episode!(2, &task, &other, &cancellation);
        let fork = origin.fork(BranchPoint::before(3), &fork, again).await.unwrap();
        found.push(timeless(to_the_end(fork).await));
    }
    assert_eq!(found[0], found[1]);
}

#[tokio::test]
async fn a_replay_that_comes_out_differently_is_refused() {
    let (task, cancellation, config) =
        (fake_task(0), Cancellation::new(), EpisodeConfig::default());
    let policy = ScriptedPolicy::new(["right", "left"]);
    let episode = episode!(1, &task, &policy, &cancellation);
    let mut origin = start(FakeEnvironment::new(), &episode, &config).await;
    for _ in 0..2 {
        origin.turn().await.unwrap();
    }
    // It is not where it says that it is.
    let mut elsewhere = FakeEnvironment { can_fork: false, ..FakeEnvironment::new() };
    elsewhere.step(&"right".into()).await.unwrap();
    let fork = episode!(2, &task, &policy, &cancellation);
    let again = async || Ok(Box::new(elsewhere) as Box<dyn Environment>);
    let refused = origin.fork(BranchPoint::before(1), &fork, again).await.unwrap();
    assert_fails(refused, Boundary::Environment, "turn 0 was played again").await;
    let mut breaks = FakeEnvironment::new();
    breaks.breaks_after = Some(0);
    let again = async || Ok(at_its_start(breaks).await);
    let broke = origin.fork(BranchPoint::before(1), &fork, again).await.unwrap();
    assert_fails(broke, Boundary::Environment, "too often").await;
    let none = EnvironmentError::Misused { call: "open", when: "again" };
    let none = origin.fork(BranchPoint::before(1), &fork, async || Err(none)).await.err().unwrap();
    assert!(matches!(none, BranchError::Environment { turn: 1, .. }), "{none}");
    let never = async || panic!("an episode that cannot be forked there needs no environment");
    let early = origin.fork(BranchPoint::before(7), &fork, never).await.err().unwrap();
    assert!(matches!(early, BranchError::NoSuchTurn { turn: 7, turns: 2 }), "{early}");
}

/// Fails unless the episode has broken there, for this reason, before it had a turn.
async fn assert_fails(mut playing: EpisodeInProgress<'_>, at: Boundary, because: &str) {
    assert!(playing.turn().await.is_none());
    let (trajectory, _environment) = playing.finish().await;
    assert!(trajectory.turns.is_empty());
    let EndReason::Failed { boundary, detail } = &trajectory.end else { panic!("{trajectory:?}") };
    assert_eq!(*boundary, at);
    assert!(detail.contains(because), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_replay_can_be_cancelled_and_ends_with_a_panic() {
    let (task, config) = (fake_task(0), EpisodeConfig::default());
    let policy = ScriptedPolicy::new(["right", "left", "right", "right", "right"]);
    let calm = Cancellation::new();
    let episode = episode!(1, &task, &policy, &calm);
    let origin = to_the_end(start(FakeEnvironment::new(), &episode, &config).await).await;
    let cancellation = Cancellation::new();
    let fork = episode!(2, &task, &policy, &cancellation);
    let mut slow = FakeEnvironment::new();
    slow.step_time = Duration::from_secs(60);
    let started = Instant::now();
    let at = BranchPoint::before(3);
    let slow = at_its_start(slow).await;
    let (branch, ()) =
        tokio::join!(EpisodeInProgress::branch(slow, &origin, at, &fork, &config), async {
            sleep(Duration::from_secs(1)).await;
            cancellation.cancel();
        });
    assert_eq!(started.elapsed().as_secs(), 1);
    assert_fails(branch, Boundary::Cancelled, "told to stop").await;
    let mut panics = FakeEnvironment::new();
    panics.panics_after = Some(1);
    let panics = at_its_start(panics).await;
    let fork = episode!(3, &task, &policy, &calm);
    let branch = EpisodeInProgress::branch(panics, &origin, at, &fork, &config).await;
    assert_fails(branch, Boundary::Environment, "it panicked: the floor").await;
    let branch = at_its_start(FakeEnvironment::new()).await;
    let (end, fork) = (BranchPoint::before(9), episode!(4, &task, &policy, &calm));
    let branch = EpisodeInProgress::branch(branch, &origin, end, &fork, &config).await;
    assert_fails(branch, Boundary::Environment, "goes on from turns up to 4").await;
}

#[tokio::test(start_paused = true)]
async fn commands_have_their_time_when_they_are_played_again_too() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let config = EpisodeConfig { turn_timeout_secs: 3, ..EpisodeConfig::default() };
    let policy = ScriptedPolicy::new(["right"]);
    let mut environment = FakeEnvironment::new();
    environment.step_time = Duration::from_secs(20);
    environment.time_rules =
        TimeRules { command: Some(Duration::from_secs(30)), ..TimeRules::default() };
    let episode = episode!(1, &task, &policy, &cancellation);
    let origin = to_the_end(start(environment.clone(), &episode, &config).await).await;
    assert!(origin.success);
    let fork = episode!(2, &task, &policy, &cancellation);
    let at = BranchPoint::before(2);
    let again = at_its_start(environment.clone()).await;
    let branch = EpisodeInProgress::branch(again, &origin, at, &fork, &config).await;
    assert!(to_the_end(branch).await.success);
    // A step that no command makes long is late all the same.
    environment.time_rules = TimeRules::default();
    let again = at_its_start(environment).await;
    let branch = EpisodeInProgress::branch(again, &origin, at, &fork, &config).await;
    let because = "it did not play turn 0 again within 3 s";
    assert_fails(branch, Boundary::Environment, because).await;
}

/// Ends the word that an answer begins with, and says `right` where nothing was begun.
struct Finisher;

#[async_trait]
impl Policy for Finisher {
    fn name(&self) -> &'static str {
        "finisher"
    }

    fn encode(&self, _: Option<&Message>, message: &Message) -> Vec<u32> {
        message.text().bytes().map(u32::from).collect()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let begun = &request.partial.ids;
        let text = if begun.first() == Some(&u32::from(b'l')) { "left" } else { "right" };
        let mut tokens = request.partial.clone();
        for byte in &text.as_bytes()[begun.len()..] {
            tokens.ids.push((*byte).into());
            tokens.logprobs.push(-0.5);
            tokens.versions.push(PolicyVersion(7));
        }
        Ok(Completion { tokens, ..Completion::new("finisher", text, StopCause::EndOfTurn) })
    }
}

#[tokio::test]
async fn a_turn_is_sampled_anew_from_a_token_on() {
    let (task, cancellation, config) =
        (fake_task(0), Cancellation::new(), EpisodeConfig::default());
    let trunk = ScriptedPolicy::new(["right", "left", "right", "right", "right"]);
    let episode = episode!(1, &task, &trunk, &cancellation);
    let origin = to_the_end(start(FakeEnvironment::new(), &episode, &config).await).await;
    let at = BranchPoint { turn: 1, token: 2 };
    let fork = episode!(2, &task, &Finisher, &cancellation);
    let environment = at_its_start(FakeEnvironment::new()).await;
    let fork = EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
    let fork = to_the_end(fork).await;
    assert_eq!(actions(&fork), ["right", "left", "right", "right", "right"]);
    let sources: Vec<_> = fork.turns.iter().map(|turn| turn.source).collect();
    assert_eq!(sources[..3], [Source::Inherited, Source::Regenerated, Source::Sampled]);
    let sampled = &fork.turns[1].sampled;
    assert_eq!(sampled.first(2), origin.turns[1].sampled.first(2), "as they were sampled first");
    assert_eq!(sampled.versions[2..], [PolicyVersion(7); 2]);
    assert_eq!((fork.lineage.fork_turn, fork.lineage.fork_token), (1, Some(2)));
    // A policy that cannot go on behind a partial answer says so.
    let unable = episode!(3, &task, &trunk, &cancellation);
    let environment = at_its_start(FakeEnvironment::new()).await;
    let fork = EpisodeInProgress::branch(environment, &origin, at, &unable, &config).await;
    let fork = to_the_end(fork).await;
    assert!(matches!(fork.end, EndReason::Failed { boundary: Boundary::Policy, .. }));
}

#[tokio::test]
async fn what_is_injected_is_read_recorded_and_taken_over() {
    let (task, cancellation, config) =
        (fake_task(0), Cancellation::new(), EpisodeConfig::default());
    let policy = ScriptedPolicy::new(["left", "right"]);
    let episode = episode!(1, &task, &policy, &cancellation);
    let mut origin = start(FakeEnvironment::new(), &episode, &config).await;
    origin.turn().await.unwrap();
    let hint = Message::new(Role::User, "Hint: the right end is the goal.");
    origin.inject(hint.clone());
    let hinted = origin.turn().await.unwrap();
    assert_eq!((&hinted.injected[..], hinted.source), (&[hint][..], Source::Hinted));
    let plain = origin.turn().await.unwrap();
    assert_eq!((plain.injected.len(), plain.source), (0, Source::Sampled));
    let origin = to_the_end(origin).await;
    for turn in [1, 2] {
        let fork = episode!(2, &task, &policy, &cancellation);
        let environment = at_its_start(FakeEnvironment::new()).await;
        let at = BranchPoint::before(turn);
        let fork = EpisodeInProgress::branch(environment, &origin, at, &fork, &config);
        let fork = to_the_end(fork.await).await;
        assert_eq!(fork.turns[turn].prompt, origin.turns[turn].prompt, "fork at {turn}");
    }
}

#[tokio::test]
async fn what_is_used_up_before_a_fork_is_used_up_in_it() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let config = EpisodeConfig { max_sampled_tokens: Some(18), ..EpisodeConfig::default() };
    let policy = ScriptedPolicy::new(["right", "left"]);
    let episode = episode!(1, &task, &policy, &cancellation);
    let origin = to_the_end(start(FakeEnvironment::new(), &episode, &config).await).await;
    assert_eq!(origin.end, EndReason::Truncated { limit: Limit::Tokens });
    let whole = origin.turns.len();
    let fork = episode!(2, &task, &policy, &cancellation);
    let environment = at_its_start(FakeEnvironment::new()).await;
    let at = BranchPoint::before(whole - 1);
    let branch = EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
    let branch = to_the_end(branch).await;
    assert_eq!((&branch.end, branch.turns.len()), (&origin.end, whole));
    // In mid-turn, where what is taken over is all that may be sampled.
    let config = EpisodeConfig { max_sampled_tokens: Some(9), ..EpisodeConfig::default() };
    let environment = at_its_start(FakeEnvironment::new()).await;
    let at = BranchPoint { turn: 1, token: 3 };
    let branch = EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
    let branch = to_the_end(branch).await;
    assert_eq!((&branch.end, branch.turns.len()), (&origin.end, 1));
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_the_time_for_commands_that_its_origin_had_left() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let policy = ScriptedPolicy::new(["left"]);
    let mut environment = FakeEnvironment::new();
    environment.step_time = Duration::from_secs(4);
    environment.time_rules =
        TimeRules { command: Some(Duration::from_secs(3)), ..TimeRules::default() };
    let config = EpisodeConfig { command_time_secs: 10, ..EpisodeConfig::default() };
    let episode = episode!(1, &task, &policy, &cancellation);
    let origin = to_the_end(start(environment.clone(), &episode, &config).await).await;
    assert_eq!(origin.end, EndReason::Truncated { limit: Limit::CommandTime });
    // Three times three seconds are the agent's, and one that is left.
    assert_eq!(origin.turns.len(), 4);
    let fork = episode!(2, &task, &policy, &cancellation);
    let at = BranchPoint::before(2);
    let again = at_its_start(environment).await;
    let branch = EpisodeInProgress::branch(again, &origin, at, &fork, &config).await;
    let branch = to_the_end(branch).await;
    assert_eq!((&branch.end, branch.turns.len()), (&origin.end, 4));
}

#[tokio::test]
async fn whoever_told_or_wrote_tokens_uses_up_as_much_in_a_fork() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let config = EpisodeConfig { max_sampled_tokens: Some(13), ..EpisodeConfig::default() };
    // A policy that shows no tokens, but tells their number.
    let policy = Moody { reported_tokens: Some(7), ..Moody::new(0, || None) };
    let episode = episode!(7, &task, &policy, &cancellation);
    let origin = to_the_end(start(FakeEnvironment::new(), &episode, &config).await).await;
    assert_eq!((origin.turns.len(), origin.turns[0].num_tokens()), (2, 7));
    let at = BranchPoint::before(1);
    let environment = at_its_start(FakeEnvironment::new()).await;
    let branch = EpisodeInProgress::branch(environment, &origin, at, &episode, &config).await;
    let branch = to_the_end(branch).await;
    assert_eq!((&branch.end, branch.turns.len()), (&origin.end, 2));
    // What a demonstrator wrote was not sampled.
    let policy = ScriptedPolicy::new(["right"]);
    let player = Player::Oracle { encoder: Some(&policy) };
    let guided = Episode { player, ..episode!(1, &task, &policy, &cancellation) };
    let origin = to_the_end(start(FakeEnvironment::new(), &guided, &config).await).await;
    assert_eq!(origin.turns[0].num_tokens(), 6);
    let fork = episode!(2, &task, &policy, &cancellation);
    let environment = at_its_start(FakeEnvironment::new()).await;
    let at = BranchPoint::before(2);
    let branch = EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
    assert!(to_the_end(branch).await.success);
}

#[tokio::test]
async fn a_fork_has_the_hints_that_its_origin_was_just_given() {
    let (task, cancellation, config) =
        (fake_task(0), Cancellation::new(), EpisodeConfig::default());
    let policy = ScriptedPolicy::new(["right", "left"]);
    for can_fork in [true, false] {
        let environment = FakeEnvironment { can_fork, ..FakeEnvironment::new() };
        let episode = episode!(1, &task, &policy, &cancellation);
        let mut origin = start(environment.clone(), &episode, &config).await;
        origin.turn().await.unwrap();
        let hint = Message::new(Role::User, "Hint: the right end is the goal.");
        origin.inject(hint.clone());
        let fork = episode!(2, &task, &policy, &cancellation);
        let again = async || Ok(at_its_start(environment.clone()).await);
        let mut fork = origin.fork(BranchPoint::before(1), &fork, again).await.unwrap();
        let (theirs, own) = (fork.turn().await.unwrap(), origin.turn().await.unwrap());
        assert_eq!((&theirs.injected[..], theirs.source), (&[hint][..], Source::Hinted));
        assert_eq!(theirs.prompt, own.prompt);
        // Further back nothing had been said.
        let early = episode!(3, &task, &policy, &cancellation);
        let again = async || Ok(at_its_start(environment).await);
        let mut early = origin.fork(BranchPoint::before(0), &early, again).await.unwrap();
        assert!(early.turn().await.unwrap().injected.is_empty());
    }
}

#[tokio::test]
async fn a_fork_does_not_earn_what_its_origin_earned_by_ending() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let short = EpisodeConfig { max_turns: Some(2), ..EpisodeConfig::default() };
    let policy = ScriptedPolicy::new(["right"]);
    let part = RewardPart { name: "verified".to_owned(), value: 0.5 };
    let verdict = Verdict { parts: vec![part], success: true, ..Verdict::default() };
    let environment = FakeEnvironment { verdict: Some(verdict), ..FakeEnvironment::new() };
    let episode = episode!(1, &task, &policy, &cancellation);
    let origin = to_the_end(start(environment.clone(), &episode, &short).await).await;
    assert_eq!((origin.success, origin.total_reward()), (true, 0.5));
    let config = EpisodeConfig::default();
    let fork = episode!(2, &task, &policy, &cancellation);
    let environment = at_its_start(environment).await;
    let at = BranchPoint::before(2);
    let branch = EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
    assert!(!branch.trajectory().turns[1].step.success);
    let branch = to_the_end(branch).await;
    assert_eq!((branch.turns.len(), branch.total_reward()), (3, 1.5), "its own end and verdict");
}

/// Lays every conversation out as a whole, as chat templates do, and counts how often.
struct Whole {
    scripted: ScriptedPolicy,
    laid_out: AtomicUsize,
}

#[async_trait]
impl Policy for Whole {
    fn name(&self) -> &str {
        self.scripted.name()
    }

    fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<u32> {
        self.scripted.encode(before, message)
    }

    fn encode_conversation(
        &self,
        conversation: &spar_core::Conversation<'_>,
    ) -> Result<spar_core::Encoded, PolicyError> {
        self.laid_out.fetch_add(1, Ordering::SeqCst);
        let whole = spar_core::Conversation { encoded: 0, ..*conversation };
        let spar_core::Encoded::Alone(ids) = self.scripted.encode_conversation(&whole)? else {
            panic!("it has words alone")
        };
        Ok(spar_core::Encoded::Anew(ids))
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        self.scripted.complete(request).await
    }
}

#[tokio::test]
async fn a_branch_takes_the_prompts_of_its_origin_over() {
    let (task, cancellation) = (fake_task(0), Cancellation::new());
    let policy = Whole { scripted: ScriptedPolicy::new(["left"]), laid_out: AtomicUsize::new(0) };
    for (window_turns, before) in [(None, 1), (Some(9), 3)] {
        let context = ContextConfig { window_turns, ..ContextConfig::default() };
        let config = EpisodeConfig { context, max_turns: Some(5), ..EpisodeConfig::default() };
        let episode = episode!(1, &task, &policy, &cancellation);
        let origin = to_the_end(start(FakeEnvironment::new(), &episode, &config).await).await;
        assert!(origin.turns.len() > 3, "{}", origin.turns.len());
        let fork = episode!(2, &task, &policy, &cancellation);
        let environment = at_its_start(FakeEnvironment::new()).await;
        policy.laid_out.store(0, Ordering::SeqCst);
        let at = BranchPoint::before(3);
        let mut branch = EpisodeInProgress::branch(environment, &origin, at, &fork, &config).await;
        let laid_out = policy.laid_out.load(Ordering::SeqCst);
        assert!(if before == 1 { laid_out == 1 } else { laid_out >= before }, "{laid_out}");
        assert_eq!(branch.turn().await.unwrap().prompt, origin.turns[3].prompt);
    }
}
