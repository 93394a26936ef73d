//! `spar eval --against`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow, bail, ensure};
use serde::Serialize;
use spar::agent::spend::{Budget, SpendReport};
use spar::agent::statistics::{Interval, Match, Rating, elo_ratings};
use spar::agent::{
    Cancellation, Concurrency, EpisodeConfig, EvaluateConfig, EvaluateRequest, SeatPlayer, Seating,
    SharedPlayer, evaluate,
};
use spar::core::{Seed, Trajectory};
use spar::envs::games::RulePlayer;
use spar::envs::{Environment, EnvironmentError, open_environment};
use spar::sandboxes::first_tasks;
use spar::seats::{SeatPlayerConfig, SeatsConfig, TaskSeats};
use spar::tasks::{Suite, Task};

use super::eval::{Meter, check_results_path, refuse_idle_limits, why_none};
use super::player::OpenPlayer;
use super::suites::{Purpose, open_tasks};
use super::{cancel_on_ctrl_c, json, print, print_json, stopped, stopped_at_limit};
use crate::cli::EvalArguments;

/// Draws of the bootstrap that makes intervals of ratings.
const DRAWS: usize = 1000;

/// Who takes part.
struct Participant {
    label: String,
    player: SharedPlayer,
    /// How tasks are put to it; absent: in words, as to players of rules.
    episode: Option<EpisodeConfig>,
    /// Whom the environment's expert plays as, where this is one of the players for all games.
    rules: Option<RulePlayer>,
}

/// Games between two participants.
#[derive(Debug, Clone, Serialize)]
struct Pair {
    players: [String; 2],
    /// Games that came about.
    games: usize,
    /// Of the first of the two.
    wins: usize,
    draws: usize,
    losses: usize,
    /// Points of the first of the two a game, 0 to 1, a draw counting half.
    score: Option<f64>,
    /// Where that lies with 95 % confidence, by a normal approximation over tasks.
    interval: Interval,
    /// The same, where the first of the two took the first seat, and where it took the second.
    score_by_seat: [Option<f64>; 2],
}

#[derive(Debug, Clone, Serialize)]
struct Standing {
    player: String,
    #[serde(flatten)]
    rating: Rating,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    suite: String,
    split: String,
    seats: [String; 2],
    seed: u64,
    tasks: usize,
    attempts: usize,
    pairs: Vec<Pair>,
    ratings: Vec<Standing>,
    /// Whether half a draw was added to every pair, since somebody never lost or never won.
    is_penalised: bool,
    /// Whether every game came about.
    is_complete: bool,
    /// All that was spent, to find out whether the endpoint answers too.
    spend: SpendReport,
}

/// Plays everybody against everybody else, both sides alternately.
pub(crate) async fn against(arguments: &EvalArguments) -> anyhow::Result<ExitCode> {
    refuse_ignored(arguments)?;
    check_results_path(arguments.out.as_deref())?;
    let budget = Budget::new(arguments.spend.config())?;
    let player = OpenPlayer::open(&arguments.player, &budget).await?;
    player.keep_secrets()?;
    let (suite, splits) =
        open_tasks(&arguments.tasks, player.recipe.as_ref(), Purpose::Evaluation)?;
    let [split] = splits.as_slice() else {
        bail!("play against others: name one --split of `{}`", suite.manifest().name);
    };
    let seats = two_seats(suite.as_ref(), split)?;
    let first = first_tasks(suite.as_ref(), split)?;
    let own = player.episode(&arguments.player, Purpose::Evaluation, &first);
    let mut participants = vec![Participant {
        label: own_label(arguments, &player),
        player: player.player(),
        episode: Some(own),
        rules: None,
    }];
    for named in &arguments.against {
        let participant = open_opponent(named, &participants[0], &budget).await?;
        ensure!(
            participants.iter().all(|other| other.label != participant.label),
            "play against others: `{}` takes part twice",
            participant.label
        );
        participants.push(participant);
    }
    let is_endpoint = |named: &String| SeatPlayerConfig::typed(named).endpoint.is_some();
    let asks_endpoint = player.is_endpoint() || arguments.against.iter().any(is_endpoint);
    refuse_idle_limits(&budget, asks_endpoint)?;
    let cancellation = cancel_on_ctrl_c();
    let _watch = budget.watch(&cancellation);
    let seed = player.seed(&arguments.player);
    let size = suite.len(split)?.min(arguments.tasks.limit.unwrap_or(usize::MAX));
    let table = Table {
        arguments,
        suite: suite.as_ref(),
        split,
        seats: &seats,
        seed,
        concurrency: player.concurrency(&arguments.player, Concurrency::default()),
        is_human: player.is_human(),
        budget: &budget,
    };
    let (mut matches, mut num_missing) = (Vec::new(), 0);
    let mut pairs = Vec::new();
    let count = participants.len();
    let meetings: Vec<[usize; 2]> =
        (0..count).flat_map(|one| (one + 1..count).map(move |two| [one, two])).collect();
    for &players in &meetings {
        let sides = players.map(|number| &participants[number]);
        let (played, missing) = table.play(sides, &cancellation).await?;
        num_missing += missing;
        pairs.push(summed(sides, &played));
        let games = played.iter();
        matches.extend(games.map(|game| Match { cluster: game.task, players, score: game.score }));
        if cancellation.is_cancelled() {
            break;
        }
    }
    let is_complete = num_missing == 0 && pairs.len() == meetings.len();
    let seed_of_draws = Seed::from_u64(seed).derive("ratings", split);
    let (ratings, is_penalised) = elo_ratings(count, &matches, DRAWS, seed_of_draws);
    // Where it was stopped, some may have played nobody.
    let has_played = |number: usize| matches.iter().any(|game| game.players.contains(&number));
    let mut ratings: Vec<Standing> = (participants.iter().zip(ratings).enumerate())
        .filter(|(number, _)| has_played(*number))
        .map(|(_, (participant, rating))| Standing { player: participant.label.clone(), rating })
        .collect();
    ratings.sort_by(|one, two| two.rating.elo.total_cmp(&one.rating.elo));
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        suite: suite.manifest().name.clone(),
        split: split.clone(),
        seats,
        seed,
        tasks: size,
        attempts: arguments.attempts,
        pairs,
        ratings,
        is_penalised,
        is_complete,
        spend: budget.report(),
    };
    let printed = if arguments.json {
        print_json(&report)
    } else {
        let labels: Vec<&str> = participants.iter().map(|it| it.label.as_str()).collect();
        print(&told(&report, &labels)?)
    };
    // On the screen first: where the disk is full, it was not measured for nothing.
    if let Some(path) = &arguments.out {
        spar::trainer::write_atomically(path, json(&report)?.as_bytes())?;
    }
    printed?;
    if let Some(reached) = &report.spend.stopped_at {
        eprintln!("{reached}");
        return Ok(stopped_at_limit());
    }
    if cancellation.is_cancelled() {
        return Ok(stopped());
    }
    if !report.is_complete {
        eprintln!("warning: some games could not be played");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what was typed and games against others take no notice of.
fn refuse_ignored(arguments: &EvalArguments) -> anyhow::Result<()> {
    let EvalArguments { player, environment, judge, save, pass_at, max_missing, .. } = arguments;
    let options = [
        ("--seat", !player.seat.is_empty(), "all take both seats in turn"),
        ("--save", save.is_some(), "`spar rollout` keeps the games that it plays with --seat"),
        ("--pass-at", !pass_at.is_empty(), "games are summed up as points"),
        ("--max-missing", max_missing.is_some(), "any game that is missing is told"),
        ("--backend", environment.backend.is_some(), "games take no sandbox"),
        ("--image", environment.image.is_some(), "games take no sandbox"),
        ("--judge", judge.judge.is_some(), "the game says who has won"),
        ("--judge-checkpoint", judge.judge_checkpoint.is_some(), "the game says who has won"),
    ];
    let ignored = options.into_iter().filter(|(_, is_given, _)| *is_given);
    let ignored: Vec<String> =
        ignored.map(|(option, _, reason)| format!("{option} ({reason})")).collect();
    ensure!(
        ignored.is_empty(),
        "play against others: without effect beside --against, leave out {}",
        ignored.join(" and ")
    );
    Ok(())
}

/// The names of the two seats that all tasks of a split have.
fn two_seats(suite: &dyn Suite, split: &str) -> anyhow::Result<[String; 2]> {
    let tasks = TaskSeats::of(suite, &[split.to_owned()])?;
    let [task] = tasks.as_slice() else {
        bail!("play against others: the tasks of `{split}` are of several environments");
    };
    match task.seats.as_slice() {
        [one, two] => Ok([one.name.clone().into_owned(), two.name.clone().into_owned()]),
        seats => bail!(
            "play against others: `{}` has {} seats, and two are matched here",
            task.environment,
            seats.len()
        ),
    }
}

fn own_label(arguments: &EvalArguments, player: &OpenPlayer) -> String {
    let typed = &arguments.player;
    match (&player.checkpoint, &typed.endpoint) {
        (Some(folder), _) => folder.display().to_string(),
        (_, Some(url)) => format!("{url}#{}", typed.model.as_deref().unwrap_or_default()),
        _ => player.player().as_player().name().to_owned(),
    }
}

async fn open_opponent(
    named: &str,
    policy: &Participant,
    budget: &Budget,
) -> anyhow::Result<Participant> {
    let label = named.to_owned();
    // A name that the table of rules knows, `random` apart, which any environment has.
    if named != "random"
        && let Ok(rules) = RulePlayer::named(named)
    {
        let player = SharedPlayer::Expert { encoder: None };
        return Ok(Participant { label, player, episode: None, rules: Some(rules) });
    }
    if let Some(known) = SeatPlayer::named(named) {
        let player = known.player.ok_or_else(|| {
            anyhow!("play against `{named}`: that is the policy itself; name another checkpoint")
        })?;
        return Ok(Participant { label, player, episode: None, rules: None });
    }
    let config = SeatPlayerConfig::typed(named);
    let seats = SeatsConfig::default().with(&[(named.to_owned(), config)]);
    let problems = seats.problems();
    ensure!(problems.is_empty(), "play against `{named}`: {}", problems.join("; "));
    let opened = seats.open_one(named, budget).await;
    let opened = opened.with_context(|| {
        format!(
            "play against `{named}`: known are `random`, `oracle`, `expert`, `minimax`, `minimax:DEPTH`, `mcts`, \
             `mcts:ITERATIONS`, `script:FILE`, URL#MODEL and folders of checkpoints"
        )
    })?;
    let player = opened.player.context("a policy of its own")?;
    Ok(Participant { label, player, episode: policy.episode.clone(), rules: None })
}

/// What all games have in common.
struct Table<'a> {
    arguments: &'a EvalArguments,
    suite: &'a dyn Suite,
    split: &'a str,
    seats: &'a [String; 2],
    seed: u64,
    /// Games at one time.
    concurrency: Concurrency,
    is_human: bool,
    budget: &'a Budget,
}

/// A game as the first of two participants sees it.
#[derive(Debug, Clone, Copy)]
struct Played {
    task: usize,
    /// The seat that the first of the two took.
    seat: usize,
    score: f64,
}

impl Table<'_> {
    /// Plays all tasks twice, with sides exchanged; what came of it, and how many games are missing.
    async fn play(
        &self,
        sides: [&Participant; 2],
        cancellation: &Cancellation,
    ) -> anyhow::Result<(Vec<Played>, usize)> {
        let Self { arguments, suite, split, seats, seed, concurrency, is_human, budget } = *self;
        let tasks = suite.len(split)?.min(arguments.tasks.limit.unwrap_or(usize::MAX));
        let (mut all, mut missing) = (Vec::new(), 0);
        for own_seat in 0..2 {
            // The first of the two is the collection's own player.
            let [own, other] = sides;
            let other_seat = seats[1 - own_seat].clone();
            let taken =
                SeatPlayer { player: Some(other.player.clone()), episode: other.episode.clone() };
            let own_taken = SeatPlayer::own();
            let seating = Seating::new(
                [(other_seat, taken), (seats[own_seat].clone(), own_taken)].into_iter().collect(),
                [seats[own_seat].clone()],
            );
            let mut rules = [None, None];
            rules[own_seat] = own.rules;
            rules[1 - own_seat] = other.rules;
            let [a, b] = [&own.label, &other.label];
            let meter = Meter::new(&format!("{a} : {b}"), tasks * arguments.attempts, is_human);
            let found: Mutex<Vec<(String, f64)>> = Mutex::new(Vec::new());
            let request = EvaluateRequest {
                suite,
                player: own.player.clone(),
                seating,
                open: Arc::new(move |task| open_with(task, rules)),
                seed: Seed::from_u64(seed).derive("against", split),
                cancellation,
                on_episode: &|played| {
                    played.records().for_each(|record| budget.count_local(record));
                    meter.count(played);
                    if !played.is_failed() {
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.push((played.task.clone(), score(played)));
                    }
                },
                keep: None,
            };
            let config = EvaluateConfig {
                split: split.to_owned(),
                limit: arguments.tasks.limit,
                attempts: arguments.attempts,
                max_missing: arguments.max_missing.unwrap_or(EvaluateConfig::default().max_missing),
                concurrency,
                episode: own.episode.clone().unwrap_or_default(),
                ..EvaluateConfig::default()
            };
            config.validate()?;
            let (evaluation, last_failure) = evaluate(&request, &config).await?;
            drop(meter);
            ensure!(
                evaluation.counts.finished > 0 || cancellation.is_cancelled(),
                "play `{a}` against `{b}`: no game came about: {}",
                why_none(evaluation.counts.cancelled, last_failure)
            );
            missing += evaluation.missing;
            let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
            all.extend(found.into_iter().map(|(task, score)| (task, own_seat, score)));
        }
        // Tasks are numbered by their names, so that nothing depends on which game ended first.
        all.sort_by(|one, two| {
            one.0.cmp(&two.0).then(one.1.cmp(&two.1)).then(one.2.total_cmp(&two.2))
        });
        let mut names: Vec<&String> = all.iter().map(|(task, ..)| task).collect();
        names.dedup();
        let number = |task: &String| names.binary_search(&task).unwrap_or_default();
        let played = all.iter().map(|(task, seat, score)| Played {
            task: number(task),
            seat: *seat,
            score: *score,
        });
        Ok((played.collect(), missing))
    }
}

/// Opens a task whose experts play by these rules.
fn open_with(
    task: &Task,
    rules: [Option<RulePlayer>; 2],
) -> Result<Box<dyn Environment>, EnvironmentError> {
    let resources = spar::envs::Resources::default();
    if rules.iter().all(Option::is_none) {
        return open_environment(task, &resources);
    }
    let mut task = task.clone();
    let name = |rules: Option<RulePlayer>| rules.map_or("expert".to_owned(), |it| it.to_string());
    if let Some(parameters) = task.parameters.as_object_mut() {
        parameters.insert("players".to_owned(), serde_json::json!(rules.map(name)));
    }
    open_environment(&task, &resources)
}

/// 1 for a win, 0 for a loss, by what was earned.
fn score(trajectory: &Trajectory) -> f64 {
    let reward = trajectory.total_reward();
    if reward > 0.0 {
        1.0
    } else if reward < 0.0 {
        0.0
    } else {
        0.5
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn summed(sides: [&Participant; 2], played: &[Played]) -> Pair {
    let count = |wanted: f64| played.iter().filter(|game| game.score == wanted).count();
    let scores: Vec<f64> = played.iter().map(|game| game.score).collect();
    let of_seat = |seat: usize| {
        let of_seat = played.iter().filter(|game| game.seat == seat);
        mean(&of_seat.map(|game| game.score).collect::<Vec<_>>())
    };
    Pair {
        players: sides.map(|side| side.label.clone()),
        games: played.len(),
        wins: count(1.0),
        draws: count(0.5),
        losses: count(0.0),
        score: mean(&scores),
        interval: interval(played),
        score_by_seat: [of_seat(0), of_seat(1)],
    }
}

/// Where a score lies with 95 % confidence: games of one task are counted as one, since they resemble each other, and a
/// task more of each outcome is added, so that equal results are no point.
fn interval(played: &[Played]) -> Interval {
    let tasks = played.iter().map(|game| game.task + 1).max().unwrap_or_default();
    let mut of_task = vec![Vec::new(); tasks];
    played.iter().for_each(|game| of_task[game.task].push(game.score));
    let mut means: Vec<f64> = of_task.iter().filter_map(|scores| mean(scores)).collect();
    if means.is_empty() {
        return Interval::WHOLE;
    }
    means.extend([0.0, 1.0]);
    let n = means.len() as f64;
    let middle = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|it| (it - middle).powi(2)).sum::<f64>() / (n - 1.0);
    let half = 1.96 * (variance / n).sqrt();
    Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

fn told(report: &Report, labels: &[&str]) -> anyhow::Result<String> {
    let mut text = String::new();
    let Report { suite, split, seats, tasks, attempts, seed, .. } = report;
    writeln!(
        text,
        "`{suite}`, split `{split}`: {tasks} tasks, {attempts} games a side ({}, {}), seed {seed}\n",
        seats[0], seats[1]
    )?;
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or_default().max(6);
    writeln!(text, "points of the row against the column, 0 to 1, a draw counting half")?;
    write!(text, "{:width$}", "")?;
    labels.iter().try_for_each(|label| write!(text, "  {label:>width$}"))?;
    for row in labels {
        write!(text, "\n{row:width$}")?;
        for column in labels {
            let pair = report.pairs.iter().find_map(|pair| {
                let is_pair =
                    |one: &str, two: &str| pair.players[0] == one && pair.players[1] == two;
                match (is_pair(row, column), is_pair(column, row)) {
                    (true, _) => pair.score,
                    (_, true) => pair.score.map(|score| 1.0 - score),
                    _ => None,
                }
            });
            let cell = pair.map_or("-".to_owned(), |score| format!("{score:.3}"));
            write!(text, "  {cell:>width$}")?;
        }
    }
    writeln!(text, "\n")?;
    for pair in &report.pairs {
        let Pair { players, wins, draws, losses, score, interval, score_by_seat, .. } = pair;
        let tell =
            |score: &Option<f64>| score.map_or("-".to_owned(), |score| format!("{score:.3}"));
        writeln!(
            text,
            "{} : {}  {wins} won, {draws} drawn, {losses} lost; {} [{:.3}, {:.3}]; as {} {}, as {} {}",
            players[0],
            players[1],
            tell(score),
            interval.low,
            interval.high,
            seats[0],
            tell(&score_by_seat[0]),
            seats[1],
            tell(&score_by_seat[1]),
        )?;
    }
    writeln!(text, "\nElo (mean 0, 95 % by bootstrap over tasks)")?;
    for Standing { player, rating } in &report.ratings {
        let Interval { low, high } = rating.interval;
        writeln!(text, "{player:width$}  {:>7.0}  [{low:.0}, {high:.0}]", rating.elo)?;
    }
    if report.is_penalised {
        writeln!(
            text,
            "half a draw was added to every pair, a draw counting half a win for each: somebody never lost, or never won"
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_score_and_are_never_a_point() {
        let game = |task, seat, score| Played { task, seat, score };
        let won: Vec<Played> = (0..20).map(|number| game(number / 2, number % 2, 1.0)).collect();
        let Interval { low, high } = interval(&won);
        assert!(low < 0.95 && high == 1.0);
        let even: Vec<Played> =
            (0..40).map(|number| game(number / 2, 0, (number % 2) as f64)).collect();
        let Interval { low, high } = interval(&even);
        assert!(low < 0.5 && high > 0.5 && high - low < 0.3, "{low} {high}");
        assert_eq!(interval(&[]), Interval::WHOLE);
    }
}
