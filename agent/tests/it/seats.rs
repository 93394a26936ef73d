//! Episodes in which several act.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use proptest::prelude::*;
use rand::RngExt;
use spar_agent::credit::{BatchView, CreditConfig, open_estimator};
use spar_agent::policies::{RandomPolicy, ScriptedPolicy};
use spar_agent::strategies::Independent;
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, Collection, Episode, EpisodeConfig,
    EvaluateConfig, EvaluateRequest, Player, ScaffoldChoice, SeatPlayer, SeatedEpisode, Seating,
    SharedPlayer, TableInProgress, collect_groups, evaluate,
};
use spar_core::{
    Action, Boundary, Completion, CompletionRequest, EndReason, Limit, Message, Observation,
    Policy, PolicyError, RewardPart, Seat, SeatSpec, Seed, Signals, Step, StopCause, Told,
    Trajectory,
};
use spar_envs::{Environment, EnvironmentError, Resources, TimeRules, open_environment};
use spar_tasks::{RewardShapers, SuiteOptions, Task, open_suite};

fn task(suite: &str, index: usize) -> Task {
    open_suite(suite, &SuiteOptions::default()).unwrap().task("train", index).unwrap()
}

async fn collect(
    tasks: &[Task],
    player: SharedPlayer,
    seating: Seating,
    config: &CollectConfig,
) -> Collection {
    let request = CollectRequest {
        tasks,
        player,
        seating,
        strategy: &Independent,
        open: Arc::new(|task| open_environment(task, &Resources::default())),
        seed: Seed::from_u64(5),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    collect_groups(&request, config).await
}

fn seating(players: &[(&str, &str)]) -> Seating {
    let player =
        |(seat, name): &(&str, &str)| ((*seat).to_owned(), SeatPlayer::named(name).unwrap());
    Seating::new(players.iter().map(player).collect(), [])
}

fn timeless(mut trajectories: Vec<Trajectory>) -> Vec<Trajectory> {
    for trajectory in &mut trajectories {
        trajectory.wall_time = Duration::ZERO;
        for turn in &mut trajectory.turns {
            (turn.policy_time, turn.environment_time) = (Duration::ZERO, Duration::ZERO);
            turn.step.wall_time = Duration::ZERO;
        }
    }
    trajectories
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn self_play_pays_what_one_wins_from_the_other() {
    let tasks: Vec<_> = (0..6).map(|index| task("tic-tac-toe", index)).collect();
    let config = CollectConfig { group_size: 4, ..CollectConfig::default() };
    let play = |config| async move {
        let player = SharedPlayer::of(RandomPolicy);
        let tasks: Vec<_> = (0..6).map(|index| task("tic-tac-toe", index)).collect();
        collect(&tasks, player, Seating::default(), &config).await
    };
    let collection = play(config.clone()).await;
    assert_eq!(collection.counts.finished, tasks.len() * 4, "an episode counts once");
    let mut won = 0;
    for group in &collection.groups {
        let seats: Vec<u32> = group.trajectories.iter().map(|it| it.seat.0).collect();
        assert_eq!(seats, [0, 0, 0, 0, 1, 1, 1, 1], "seat by seat");
        let (x, o) = group.trajectories.split_at(4);
        for (x, o) in x.iter().zip(o) {
            x.validate().unwrap();
            assert_eq!((x.episode, &x.end), (o.episode, &EndReason::Terminated));
            assert_ne!(x.seed, o.seed, "they do not draw alike");
            assert_eq!((x.total_reward() + o.total_reward()).to_bits(), 0.0_f64.to_bits());
            assert!(!(x.success && o.success));
            assert_eq!(x.success, x.total_reward() == 1.0);
            assert!(x.turns.iter().all(|turn| turn.seat == Seat(0)));
            assert!(o.turns.iter().all(|turn| turn.seat == Seat(1)));
            assert!(o.first_observation.text.contains("You are o."));
            won += usize::from(x.success || o.success);
        }
    }
    assert!(won > 8, "{won} of 24");
    // Equal seeds repeat, whatever goes on at one time.
    let again = play(CollectConfig { concurrency: 1.into(), ..config }).await;
    for (one, other) in collection.groups.into_iter().zip(again.groups) {
        assert_eq!(timeless(one.trajectories), timeless(other.trajectories));
    }
}

#[tokio::test]
async fn the_seats_of_a_group_are_compared_among_themselves() {
    let config = CollectConfig { group_size: 6, ..CollectConfig::default() };
    let player = SharedPlayer::of(RandomPolicy);
    let collection = collect(&[task("tic-tac-toe", 1)], player, Seating::default(), &config).await;
    let batch = BatchView::shaped(&collection.groups, &RewardShapers::default());
    assert_eq!(batch.groups().len(), 2);
    let credit: CreditConfig = serde_json::from_str(r#"{ "kind": "grpo" }"#).unwrap();
    let credit = open_estimator(&credit).unwrap().estimate(&batch, &Signals::default()).unwrap();
    let tokens = batch.num_tokens();
    let advantages = credit.advantages.into_tokens(&tokens);
    assert_eq!(advantages.len(), 12);
    // By hand: each seat against the mean of its own.
    let by_seat = |seat: u32| -> Vec<f64> {
        let all = collection.groups[0].trajectories.iter();
        all.filter(|it| it.seat.0 == seat).map(Trajectory::total_reward).collect()
    };
    for (view, seat) in batch.groups().iter().zip([0, 1]) {
        assert_eq!(view.returns(), by_seat(seat));
    }
}

#[tokio::test]
async fn a_seat_that_another_takes_is_played_and_not_grouped() {
    let tasks: Vec<_> = (0..10).map(|index| task("tic-tac-toe", index)).collect();
    let config = CollectConfig { group_size: 2, ..CollectConfig::default() };
    let player = SharedPlayer::of(RandomPolicy);
    let collection = collect(&tasks, player, seating(&[("o", "oracle")]), &config).await;
    let all = collection.groups.iter().flat_map(|group| &group.trajectories);
    let (mut wins, mut losses) = (0, 0);
    for trajectory in all {
        assert_eq!((trajectory.seat, &*trajectory.policy), (Seat(0), "random"));
        wins += usize::from(trajectory.success);
        losses += usize::from(trajectory.total_reward() == -1.0);
    }
    assert!(losses > 10 && wins < losses, "{wins} wins, {losses} losses against perfect play");
}

#[tokio::test]
async fn an_evaluation_tells_every_seat() {
    let suite = open_suite("tic-tac-toe", &SuiteOptions::default()).unwrap();
    // Every record of a game is told of once, so that what all seats took can be counted.
    let told = std::sync::atomic::AtomicUsize::new(0);
    let run = |seating: Seating| {
        let (suite, told) = (suite.as_ref(), &told);
        async move {
            let request = EvaluateRequest {
                suite,
                player: SharedPlayer::of(RandomPolicy),
                seating,
                open: Arc::new(|task| open_environment(task, &Resources::default())),
                seed: Seed::from_u64(2),
                cancellation: &Cancellation::new(),
                on_episode: &|played| {
                    let seats: Vec<_> = played.records().map(|record| record.seat).collect();
                    assert!(seats == [Seat(0), Seat(1)], "{seats:?}");
                    told.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                },
                keep: None,
            };
            let config =
                EvaluateConfig { limit: Some(60), pass_at: vec![1], ..EvaluateConfig::default() };
            evaluate(&request, &config).await.unwrap().0
        }
    };
    let against = run(seating(&[("o", "oracle")])).await;
    assert_eq!((against.overall.episodes, against.missing), (60, 0));
    let (x, o) = (&against.by_seat["x"], &against.by_seat["o"]);
    assert_eq!((&*x.player, &*o.player), ("random", "oracle"));
    assert_eq!(x.draws, o.draws);
    assert_eq!(x.score.successes + o.score.successes + x.draws, 60);
    assert!(o.score.successes > 30 && x.score.mean_reward == -o.score.mean_reward);
    assert!(against.to_string().contains("seat o (oracle): success"), "{against}");
    let both = run(Seating::default()).await;
    let share = |seat: &str| both.by_seat[seat].score.success_rate.unwrap();
    let value = both.pass_at_k[0].value.unwrap();
    assert!((value - (share("x") + share("o")) / 2.0).abs() < 1e-9, "a seat's tries are its own");
    assert_eq!((both.overall.episodes, both.overall.missing), (120, 0));
    assert_eq!(told.into_inner(), 120, "games, of both evaluations");
    let alone = open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
    assert_eq!(alone.manifest().name, "frozen-lake");
}

#[tokio::test]
async fn a_simulated_user_is_served_by_who_asks() {
    let tasks: Vec<_> = (0..12).map(|index| task("errand", index)).collect();
    let config = CollectConfig { group_size: 1, ..CollectConfig::default() };
    let expert = SharedPlayer::Expert { encoder: None };
    let served = collect(&tasks, expert, Seating::default(), &config).await;
    assert_eq!((served.counts.successes, served.counts.finished), (12, 12));
    for trajectory in served.groups.iter().flat_map(|group| &group.trajectories) {
        assert_eq!((trajectory.seat, trajectory.turns.len()), (Seat(0), 3));
    }
    // One that never asks is right by luck alone, and the user hears what it says.
    let guess = SharedPlayer::of(ScriptedPolicy::new(["order small red hat"]));
    let guessed = collect(&tasks, guess, Seating::default(), &config).await;
    assert!(guessed.counts.successes < 3);
    // A user that says nothing: its budget is used up, and the errand is over for both.
    let silent = SeatPlayer::other(SharedPlayer::of(ScriptedPolicy::new([" "])));
    let silent = Seating::new([("user".to_owned(), silent)].into(), []);
    let expert = SharedPlayer::Expert { encoder: None };
    let lost = collect(&tasks[..1], expert, silent, &config).await;
    let [agent] = &lost.groups[0].trajectories[..] else { panic!("{lost:?}") };
    assert_eq!((agent.turns.len(), &agent.end), (0, &EndReason::Terminated));
}

/// A game of `seats` whose every move draws what happens: who is next, what is paid, when it is over. What a seat is shown
/// has its secret in it.
#[derive(Clone)]
struct Chaos {
    specs: Vec<SeatSpec>,
    seed: Seed,
    to_move: Option<Seat>,
    moves: u32,
    owed: Vec<f64>,
    breaks_at: Option<u32>,
    forks: bool,
    goes_on_without: bool,
    gone: Vec<bool>,
}

impl Chaos {
    fn new(seats: u32) -> Self {
        let spec = |seat: u32| SeatSpec {
            name: format!("s{seat}").into(),
            about: "".into(),
            player: SeatSpec::SELF.into(),
        };
        Self {
            specs: (0..seats).map(spec).collect(),
            seed: Seed::from_u64(0),
            to_move: Some(Seat(0)),
            moves: 0,
            owed: vec![0.0; seats as usize],
            breaks_at: None,
            forks: true,
            goes_on_without: false,
            gone: vec![false; seats as usize],
        }
    }

    fn observe(&self, seat: Seat) -> Observation {
        Observation::new(format!("secret{seat} after {} moves", self.moves))
    }

    fn next(&mut self) {
        let seats = self.specs.len();
        let from = self.seed.derive("next", self.moves).rng().random_range(0..seats);
        let next = (from..from + seats).map(|it| it % seats).find(|seat| !self.gone[*seat]);
        self.to_move = next.map(Seat::at);
    }
}

#[async_trait]
impl Environment for Chaos {
    fn name(&self) -> &'static str {
        "chaos"
    }

    fn seats(&self) -> &[SeatSpec] {
        &self.specs
    }

    fn to_move(&self) -> Option<Seat> {
        self.to_move
    }

    fn told(&mut self, seat: Seat) -> Told {
        let value = std::mem::take(&mut self.owed[seat.index()]);
        let part = RewardPart { name: "share".to_owned(), value };
        let rewards = if value == 0.0 { Vec::new() } else { vec![part] };
        Told { observation: self.observe(seat), rewards, success: value > 0.0 }
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        *self = Self { seed, moves: 0, to_move: Some(Seat(0)), ..self.clone() };
        Ok(self.observe(Seat(0)))
    }

    async fn step(&mut self, _: &Action) -> Result<Step, EnvironmentError> {
        let seat = self.to_move.ok_or(EnvironmentError::Misused { call: "step", when: "late" })?;
        if self.breaks_at == Some(self.moves) {
            return Err(EnvironmentError::Misused { call: "step", when: "in a test" });
        }
        self.moves += 1;
        // What one pays another gets.
        let other = (seat.index() + 1) % self.specs.len();
        self.owed[seat.index()] -= 1.0;
        self.owed[other] += 1.0;
        self.next();
        let is_over =
            self.moves >= 24 || self.seed.derive("end", self.moves).rng().random_bool(0.08);
        if is_over {
            self.to_move = None;
        }
        let observation = self.observe(seat);
        let rewards = if is_over { self.told(seat).rewards } else { Vec::new() };
        Ok(Step {
            observation,
            rewards,
            terminated: is_over,
            success: false,
            valid: true,
            wall_time: Duration::ZERO,
        })
    }

    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        self.gone[seat.index()] = true;
        match self.goes_on_without {
            true => self.next(),
            false => self.to_move = None,
        }
        Ok(())
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(self.forks.then(|| Box::new(self.clone()) as Box<dyn Environment>))
    }
}

/// Says something, or fails as drawn.
struct Moody {
    /// The share of answers that do not come.
    fails: f64,
}

#[async_trait]
impl Policy for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        if request.seed.derive("mood", 0).rng().random_bool(self.fails) {
            let (name, detail) = ("moody".to_owned(), "in a test".to_owned());
            return Err(PolicyError::Unreachable { name, detail });
        }
        let said = request.seed.as_u64() % 1000;
        Ok(Completion::new("moody", format!("go {said}"), StopCause::EndOfTurn))
    }
}

fn chaos_task() -> Task {
    Task {
        id: "chaos/train/0".to_owned(),
        environment: "chaos".to_owned(),
        parameters: serde_json::Value::Null,
        instruction: String::new(),
        max_turns: 50,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

/// How a random game is played.
#[derive(Debug, Clone)]
struct Plan {
    seats: u32,
    seed: u64,
    fails: f64,
    max_turns: u32,
    breaks_at: Option<u32>,
    forks: bool,
    goes_on_without: bool,
    fork_at: usize,
}

fn plans() -> impl Strategy<Value = Plan> {
    let fails = prop_oneof![3 => Just(0.0), 1 => Just(0.1)];
    let breaks_at = prop_oneof![3 => Just(None), 1 => (0_u32..10).prop_map(Some)];
    let sizes = (2_u32..5, any::<u64>(), fails, 1_u32..8, breaks_at);
    (sizes, any::<bool>(), any::<bool>(), 0_usize..12).prop_map(
        |((seats, seed, fails, max_turns, breaks_at), forks, goes_on_without, fork_at)| Plan {
            seats,
            seed,
            fails,
            max_turns,
            breaks_at,
            forks,
            goes_on_without,
            fork_at,
        },
    )
}

/// Plays a game, and from its fork on a second one, which asks the same.
async fn play(plan: &Plan) -> (Vec<Trajectory>, Vec<Trajectory>) {
    let (policy, task, cancellation) =
        (Moody { fails: plan.fails }, chaos_task(), Cancellation::new());
    let config = EpisodeConfig {
        max_turns: Some(plan.max_turns),
        policy_retries: 0,
        ..EpisodeConfig::default()
    };
    let seated: Vec<SeatedEpisode<'_>> = (0..plan.seats)
        .map(|seat| {
            let seed = Seed::from_u64(plan.seed).derive("seat", seat);
            let episode = Episode {
                id: 4,
                task: &task,
                player: Player::Policy(&policy),
                seat: Seat(seat),
                seed,
                environment_seed: Seed::from_u64(plan.seed),
                cancellation: &cancellation,
            };
            SeatedEpisode { episode, config: &config }
        })
        .collect();
    let open = || {
        let mut env = Chaos::new(plan.seats);
        (env.breaks_at, env.forks) = (plan.breaks_at, plan.forks);
        env.goes_on_without = plan.goes_on_without;
        env
    };
    let seed = Seed::from_u64(plan.seed);
    let mut env = open();
    let first = env.reset(seed).await.unwrap();
    let mut table = TableInProgress::start_from(Box::new(env), first, seated.clone()).await;
    for _ in 0..plan.fork_at {
        if table.turn().await.is_none() {
            break;
        }
    }
    let again = async || {
        let mut env = open();
        env.reset(seed).await?;
        Ok(Box::new(env) as Box<dyn Environment>)
    };
    let mut fork = table.fork(seated, again).await.unwrap();
    while table.turn().await.is_some() {}
    while fork.turn().await.is_some() {}
    (timeless(table.finish().await.0), timeless(fork.finish().await.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_a_seat_does_every_game_ends_and_forks_go_on_alike(plan in plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (played, forked) = runtime.block_on(play(&plan));
        let (again, _) = runtime.block_on(play(&plan));
        prop_assert_eq!(&played, &again, "equal seeds repeat");
        prop_assert_eq!(played.len(), plan.seats as usize);
        let failed = played.iter().filter(|it| it.is_failed()).count();
        prop_assert!(failed == 0 || failed == played.len(), "who fails takes the others along");
        for (seat, trajectory) in played.iter().enumerate() {
            trajectory.validate().unwrap();
            prop_assert_eq!(trajectory.seat.index(), seat);
            prop_assert!(trajectory.turns.len() <= plan.max_turns as usize);
            // Nobody is shown what is another's.
            let shown = trajectory.turns.iter().map(|turn| &turn.step.observation.text);
            for text in shown.chain([&trajectory.first_observation.text]) {
                let own = format!("secret{seat} ");
                prop_assert!(text.is_empty() || text.starts_with(&own), "{}", text);
            }
        }
        if failed == 0 {
            let sum: f64 = played.iter().map(Trajectory::total_reward).sum();
            prop_assert_eq!(sum, 0.0, "what one pays another gets");
            prop_assert!(plan.breaks_at.is_none_or(|at| at > 0), "the first move breaks");
        }
        // A fork's own turns, and what the others have earned until then, are its origin's.
        let unforked = |mut trajectories: Vec<Trajectory>| {
            for trajectory in &mut trajectories {
                trajectory.lineage = Default::default();
                trajectory.turns.iter_mut().for_each(|turn| turn.source = Default::default());
            }
            trajectories
        };
        prop_assert_eq!(unforked(played), unforked(forked));
    }
}

#[tokio::test]
async fn a_budget_that_is_used_up_ends_the_game_by_its_rule() {
    // x may move twice: it forfeits then, and o wins.
    let mut config = CollectConfig { group_size: 1, ..CollectConfig::default() };
    let (mut forfeits, mut tasks) = (0, Vec::new());
    for index in 0..8 {
        tasks.push(Task { max_turns: 2, ..task("tic-tac-toe", index) });
    }
    config.episode.max_turns = Some(2);
    let player = SharedPlayer::of(RandomPolicy);
    let collection = collect(&tasks, player, Seating::default(), &config).await;
    for group in &collection.groups {
        let [x, o] = &group.trajectories[..] else { panic!("{group:?}") };
        if (EndReason::Truncated { limit: Limit::Turns }) == x.end {
            forfeits += 1;
            assert_eq!((x.total_reward(), o.total_reward()), (-1.0, 1.0));
            assert!(o.success && o.end == EndReason::Terminated);
            assert_eq!(x.turns.last().unwrap().step.reward(), -1.0, "its last turn carries it");
            // What it came to is final: a critic expects nothing behind it.
            let mut forfeited = group.clone();
            forfeited.trajectories.truncate(1);
            let groups = [forfeited];
            let batch = BatchView::shaped(&groups, &RewardShapers::default());
            let view = batch.groups()[0].trajectories().next().unwrap();
            assert!(view.episode.is_terminated);
        }
    }
    assert!(forfeits > 3);
}

#[tokio::test]
async fn one_that_fails_takes_the_game_along_and_is_played_anew() {
    let failures = std::sync::Mutex::new(Vec::new());
    let broken = SeatPlayer::other(SharedPlayer::of(Moody { fails: 1.0 }));
    let mut config = CollectConfig { group_size: 1, refills: 1, ..CollectConfig::default() };
    (config.episode.policy_retries, config.episode.retry_delay_ms) = (0, 0);
    let request = CollectRequest {
        tasks: &[task("tic-tac-toe", 0)],
        player: SharedPlayer::of(RandomPolicy),
        seating: Seating::new([("o".to_owned(), broken)].into(), []),
        strategy: &Independent,
        open: Arc::new(|task| open_environment(task, &Resources::default())),
        seed: Seed::from_u64(5),
        cancellation: &Cancellation::new(),
        on_episode: &|played| failures.lock().unwrap().push(played.record.clone()),
    };
    let collection = collect_groups(&request, &config).await;
    let counts = collection.counts;
    assert_eq!((counts.finished, counts.refills, counts.missing()), (0, 1, 1));
    assert!(collection.last_failure.unwrap().contains("seat `o`"));
    let failures = failures.into_inner().unwrap();
    assert_eq!(failures.len(), 4, "both seats of both tries are kept");
    for trajectory in &failures {
        let EndReason::Failed { boundary, .. } = &trajectory.end else { panic!("{trajectory:?}") };
        assert_eq!(*boundary, Boundary::Policy);
    }
}

#[tokio::test(start_paused = true)]
async fn time_that_others_take_is_not_a_seats_own() {
    /// Thinks for a while.
    struct Slow;
    #[async_trait]
    impl Policy for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
            Vec::new()
        }

        async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
            tokio::time::sleep(Duration::from_secs(100)).await;
            RandomPolicy.complete(request).await
        }
    }
    let slow = SeatPlayer {
        player: Some(SharedPlayer::of(Slow)),
        episode: Some(EpisodeConfig::default()),
    };
    let seating = Seating::new([("o".to_owned(), slow)].into(), []);
    let config = CollectConfig { group_size: 1, ..CollectConfig::default() };
    let tasks = [task("tic-tac-toe", 0)];
    let collection = collect(&tasks, SharedPlayer::of(RandomPolicy), seating, &config).await;
    let x = &collection.groups[0].trajectories[0];
    assert!(x.turns.len() > 1, "{:?}", x.end);
    assert!(x.wall_time < Duration::from_secs(10), "{:?}", x.wall_time);
    assert!(x.turns.iter().all(|turn| turn.environment_time < Duration::from_secs(10)));
}

/// A game of words that can be played by calls as well, and says so in what it shows first. It notes in which order it
/// is asked.
struct Noting {
    seats: Vec<SeatSpec>,
    heard: Arc<std::sync::Mutex<Vec<&'static str>>>,
    uses_tools: bool,
    is_over: bool,
    /// Whether it says that a reset may take long, and takes that long.
    is_slow: bool,
    /// Whether it cannot be prepared.
    is_broken: bool,
}

#[async_trait]
impl Environment for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }

    fn seats(&self) -> &[SeatSpec] {
        &self.seats
    }

    fn to_move(&self) -> Option<Seat> {
        (!self.is_over).then_some(Seat::at(self.seats.len() - 1))
    }

    fn time_rules(&self) -> TimeRules {
        let reset = self.is_slow.then_some(Duration::from_secs(500));
        TimeRules { reset, ..TimeRules::default() }
    }

    fn use_tools(&mut self) {
        self.heard.lock().unwrap().push("tools");
        self.uses_tools = true;
    }

    async fn reset(&mut self, _: Seed) -> Result<Observation, EnvironmentError> {
        self.heard.lock().unwrap().push("reset");
        if self.is_slow {
            tokio::time::sleep(Duration::from_secs(400)).await;
        }
        Ok(Observation::new(if self.uses_tools { "by calls" } else { "in words" }))
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        match self.is_broken {
            true => Err(EnvironmentError::Misused { call: "prepare", when: "in a test" }),
            false => Ok(()),
        }
    }

    async fn step(&mut self, _: &Action) -> Result<Step, EnvironmentError> {
        self.is_over = true;
        Ok(Step {
            observation: Observation::new("over"),
            rewards: Vec::new(),
            terminated: true,
            success: true,
            valid: true,
            wall_time: Duration::ZERO,
        })
    }
}

/// What is collected of it with a scaffold, and what it heard.
async fn collect_noting(
    seats: usize,
    kind: (bool, bool),
    scaffold: &str,
    answer: &'static str,
) -> (Collection, Vec<&'static str>, Vec<Trajectory>) {
    collect_group_noting(1, seats, kind, scaffold, answer).await
}

/// The same of a group of several.
async fn collect_group_noting(
    group_size: usize,
    seats: usize,
    (is_slow, is_broken): (bool, bool),
    scaffold: &str,
    answer: &'static str,
) -> (Collection, Vec<&'static str>, Vec<Trajectory>) {
    let heard: Arc<std::sync::Mutex<Vec<&'static str>>> = Arc::default();
    let noted = Arc::clone(&heard);
    let spec = |seat: usize| SeatSpec {
        name: format!("s{seat}").into(),
        about: "".into(),
        player: SeatSpec::SELF.into(),
    };
    let open = move |_: &Task| {
        let env = Noting {
            seats: (0..seats).map(spec).collect(),
            heard: Arc::clone(&noted),
            uses_tools: false,
            is_over: false,
            is_slow,
            is_broken,
        };
        Ok(Box::new(env) as Box<dyn Environment>)
    };
    let failed = std::sync::Mutex::new(Vec::new());
    let request = CollectRequest {
        tasks: &[chaos_task()],
        player: SharedPlayer::of(ScriptedPolicy::new([answer])),
        seating: Seating::default(),
        strategy: &Independent,
        open: Arc::new(open),
        seed: Seed::from_u64(5),
        cancellation: &Cancellation::new(),
        on_episode: &|played| failed.lock().unwrap().push(played.record.clone()),
    };
    let mut config = CollectConfig { group_size, refills: 0, ..CollectConfig::default() };
    config.episode.scaffold = ScaffoldChoice::named(scaffold).unwrap();
    let collection = collect_groups(&request, &config).await;
    let heard = heard.lock().unwrap().clone();
    (collection, heard, failed.into_inner().unwrap())
}

#[tokio::test]
async fn an_environment_knows_whether_its_tools_are_called_before_it_is_reset() {
    for seats in [1, 2] {
        let call = "<tool_call>\n{\"name\": \"none\", \"arguments\": {}}\n</tool_call>";
        let (collection, heard, _) =
            collect_group_noting(2, seats, (false, false), "tools", call).await;
        assert_eq!(heard[..2], ["tools", "reset"], "{seats} seats");
        // The first member has the environment that the group was begun with; that of the second was brought up anew, and is told as early.
        assert_eq!(heard.iter().filter(|it| **it == "reset").count(), 2, "{heard:?}");
        let again = heard.iter().rposition(|it| *it == "reset").unwrap();
        assert!(again > 1 && heard[again - 1] == "tools", "{heard:?}");
        let all = &collection.groups[0].trajectories;
        let seen = all.iter().find(|it| it.seat.index() == seats - 1).unwrap();
        assert_eq!(seen.first_observation.text, "by calls");
        let (collection, heard, _) = collect_noting(seats, (false, false), "plain", "go").await;
        assert!(!heard.contains(&"tools"));
        let all = &collection.groups[0].trajectories;
        let seen = all.iter().find(|it| it.seat.index() == seats - 1).unwrap();
        assert_eq!(seen.first_observation.text, "in words");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_may_take_as_long_as_its_environment_says() {
    let (collection, _, _) = collect_noting(1, (true, false), "plain", "go").await;
    assert_eq!(collection.counts.finished, 1, "{:?}", collection.last_failure);
}

#[tokio::test]
async fn of_an_episode_that_never_began_only_who_was_to_move_has_seen_anything() {
    let (collection, _, failed) = collect_noting(2, (false, true), "plain", "go").await;
    assert_eq!(collection.counts.finished, 0);
    let shown: Vec<_> =
        failed.iter().map(|it| (it.seat, &*it.first_observation.text, it.is_failed())).collect();
    assert_eq!(shown, [(Seat(0), "", true), (Seat(1), "in words", true)]);
    assert_ne!(failed[0].seed, failed[1].seed, "each has the record that it would have had");
}

#[tokio::test]
async fn tools_are_in_the_instruction_of_who_calls_them() {
    let config = |scaffold: &str| {
        let mut config = CollectConfig { group_size: 1, ..CollectConfig::default() };
        config.episode.scaffold = ScaffoldChoice::named(scaffold).unwrap();
        config
    };
    let mut shown = Vec::new();
    for scaffold in ["tools", "plain"] {
        let expert = SharedPlayer::Expert { encoder: None };
        let tasks = [task("errand", 0)];
        let served = collect(&tasks, expert, Seating::default(), &config(scaffold)).await;
        let agent = &served.groups[0].trajectories[0];
        shown.push(agent.first_observation.instruction.clone().unwrap());
    }
    assert!(shown[0].ends_with("then call `order`"), "{}", shown[0]);
    assert!(shown[1].ends_with("then answer `order SIZE COLOUR ITEM`"), "{}", shown[1]);
}
