//! How good a player is on a suite.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::strategies::Independent;
use serde::{Deserialize, Serialize};
use spar_core::{Group, Seat, Seed, Spend, Trajectory};
use spar_envs::{IDLE_TAG, shuffled_tasks};
use spar_tasks::{Suite, SuiteError, stated_confidence};

use crate::collect::{
    CollectConfig, CollectRequest, CollectionCounts, CollectionSink, FinishedGroup, GroupSeat,
    OpenEnvironment, PlayedEpisode, stream_groups,
};
use crate::spend::{ScoreSpend, SpendReport, add, rounded, spend_of};
use crate::statistics::{
    CalibrationScore, Interval, Tally, calibration, cluster_bootstrap, pass_at_k, weighted_vote,
    wilson_interval,
};
use crate::{
    Cancellation, Concurrency, ConfigError, EpisodeConfig, LimitCounts, Seating, SharedPlayer,
};

/// How a player is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateConfig {
    /// The split of the suite. Default `test`.
    pub split: String,
    /// Tasks: a sample of the split that follows from the request's seed, stratified where the suite
    /// knows strata. Default absent: all of them.
    pub limit: Option<usize>,
    /// Episodes per task; at least 1. Default 1.
    pub attempts: usize,
    /// The `k` of pass@k to report; each from 1 to `attempts`. Default none.
    pub pass_at: Vec<usize>,
    /// Environments and sandboxes in use at the same time.
    pub concurrency: Concurrency,
    /// How often a failed episode is played anew. Default 3.
    pub refills: u32,
    /// The share of the episodes, 0 to below 1, that may be missing, for reasons that are not the
    /// player's; where more are, there is no score. Of a mixture's suites each has none where more of its own
    /// are. Default 0.05.
    pub max_missing: f64,
    /// Draws of the bootstrap that makes the interval where `attempts` is above 1; at least 1.
    /// Default 1000.
    pub bootstrap_draws: usize,
    /// How episodes are played.
    pub episode: EpisodeConfig,
}

impl Default for EvaluateConfig {
    fn default() -> Self {
        Self {
            split: "test".to_owned(),
            limit: None,
            attempts: 1,
            pass_at: Vec::new(),
            concurrency: Concurrency::default(),
            refills: 3,
            max_missing: 0.05,
            bootstrap_draws: 1000,
            episode: EpisodeConfig::default(),
        }
    }
}

impl EvaluateConfig {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all settings that are outside their range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems: Vec<_> =
            self.episode.problems().iter().map(|problem| format!("episode.{problem}")).collect();
        problems.extend(self.concurrency.problems());
        for (name, value) in [
            ("attempts", self.attempts),
            ("bootstrap_draws", self.bootstrap_draws),
            ("limit", self.limit.unwrap_or(1)),
        ] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if !(0.0..1.0).contains(&self.max_missing) {
            problems.push(format!("max_missing is {}, must be in [0, 1)", self.max_missing));
        }
        for k in &self.pass_at {
            if !(1..=self.attempts).contains(k) {
                let attempts = self.attempts;
                problems.push(format!("pass_at has {k}, must be 1 to the {attempts} attempts"));
            }
        }
        ConfigError::refuse(problems)
    }

    fn collect_config(&self) -> CollectConfig {
        CollectConfig {
            group_size: self.attempts,
            concurrency: self.concurrency,
            refills: self.refills,
            episode: self.episode.clone(),
            ..CollectConfig::default()
        }
    }
}

/// A player cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The suite has no such tasks.
    #[error("take the tasks")]
    Suite(#[from] SuiteError),
}

/// Results over a set of episodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Tasks with at least one episode.
    pub tasks: usize,
    /// Episodes.
    pub episodes: usize,
    /// Tries at these episodes that broke for reasons that are not the player's, so that it got
    /// another one.
    #[serde(default)]
    pub refills: usize,
    /// Episodes that a limit ended, by limit.
    #[serde(default)]
    pub limits: LimitCounts,
    /// Episodes that were wanted and did not come about, for reasons that are not the player's; they
    /// are not among `episodes`.
    #[serde(default)]
    pub missing: usize,
    /// Episodes that solved their task.
    pub successes: usize,
    /// Successes per episode, 0 to 1; absent where there are no episodes, or too few came about.
    pub success_rate: Option<f64>,
    /// Where that lies with 95 % confidence: Wilson's interval, or with several attempts per task
    /// the bootstrap over tasks; 0 to 1 where there is no rate.
    pub interval: Interval,
    /// Turns per episode.
    pub mean_turns: f64,
    /// Reward per episode.
    pub mean_reward: f64,
    /// Turns in which no action could be read, per turn, 0 to 1.
    pub invalid_rate: f64,
    /// Turns whose action could not be executed, per turn, 0 to 1; the invalid ones among them.
    pub not_executable_rate: f64,
    /// What these episodes took, with the tries before them that broke; absent where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// How far they went along demonstrations; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semi_online: Option<SemiOnlineScore>,
}

/// How far episodes went along demonstrations: semi-online performance (UI-S1, arXiv 2509.11543, section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SemiOnlineScore {
    /// Episodes that were measured.
    pub episodes: usize,
    /// The share of a demonstration's steps before the first that differed, averaged over them.
    pub progress: f64,
    /// The share of them in which none differed, and the task was solved.
    pub success_rate: f64,
    /// The mean of both.
    pub sop: f64,
}

impl Score {
    /// What an episode cost; absent where that of one is unknown.
    pub fn cost_per_episode(&self) -> Option<f64> {
        let cost = self.spend.filter(|spend| spend.cost > 0.0)?.known_cost()?;
        (self.episodes > 0).then(|| cost / self.episodes as f64)
    }
}

/// One value of pass@k.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassAtK {
    /// The number of attempts.
    pub k: usize,
    /// The probability that one of them succeeds, averaged over the tasks, 0 to 1; where several seats are evaluated that
    /// of each seat's own, averaged over them. Absent where no task had so many, or the evaluation has no score.
    pub value: Option<f64>,
    /// The tasks it is averaged over: those with at least `k` episodes.
    #[serde(default)]
    pub tasks: usize,
}

/// The results of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// The task's id.
    pub task: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its episodes.
    #[serde(flatten)]
    pub tally: Tally,
    /// Turns per episode.
    pub mean_turns: f64,
    /// What its episodes took, those of the tries before them among it; absent where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
}

/// The results of one seat, where several act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeatResult {
    /// Who took it.
    pub player: String,
    /// Its episodes.
    #[serde(flatten)]
    pub score: Score,
    /// Episodes in which no seat succeeded, such as draws.
    pub draws: usize,
}

/// How good a player is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The suite's name.
    pub suite: String,
    /// Hash of all that determines its tasks.
    pub suite_hash: String,
    /// The split.
    pub split: String,
    /// The player's name.
    pub player: String,
    /// All episodes; where several act, as each seat that is evaluated has played them.
    pub overall: Score,
    /// What came of all that was played, failures by their place included.
    #[serde(default)]
    pub counts: CollectionCounts,
    /// Episodes that were wanted and did not come about, for reasons that are not the player's.
    pub missing: usize,
    /// Whether more are missing than allowed, so that there is no score: those that came about may
    /// be of another kind than those that did not.
    #[serde(default)]
    pub is_refused: bool,
    /// Whether it was told to stop before all was played: the score is that of what was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stopped: bool,
    /// pass@k for the numbers that were asked for.
    pub pass_at_k: Vec<PassAtK>,
    /// The episodes of each suite, where several are mixed; empty where there is one. One of which more are missing
    /// than allowed has no rate, as have all where the whole has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_suite: BTreeMap<String, Score>,
    /// The episodes as each seat has played them, evaluated or not, by its name; empty where one acts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_seat: BTreeMap<String, SeatResult>,
    /// The episodes of the tasks with each tag.
    pub by_tag: BTreeMap<String, Score>,
    /// Every task.
    pub tasks: Vec<TaskResult>,
    /// How well the confidence that last turns state, `<confidence>0.8</confidence>`, agrees with success; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationScore>,
    /// What it cost; absent where nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<ScoreSpend>,
}

/// Who is evaluated on what, for [`evaluate`].
pub struct EvaluateRequest<'a> {
    /// The suite.
    pub suite: &'a dyn Suite,
    /// Who chooses the actions.
    pub player: SharedPlayer,
    /// Who takes the seats where several act, `player` being `self` there.
    pub seating: Seating,
    /// Makes a task interactive.
    pub open: OpenEnvironment,
    /// Where all random choices start.
    pub seed: Seed,
    /// Tells it to stop; what was finished is then evaluated.
    pub cancellation: &'a Cancellation,
    /// Told of every episode that ended, as [`CollectRequest::on_episode`] is.
    pub on_episode: &'a (dyn Fn(&PlayedEpisode<'_>) + Sync),
    /// Takes the episodes as they end, to be kept; absent: they are let go of. The evaluation itself holds none.
    pub keep: Option<&'a dyn CollectionSink>,
}

/// Plays the tasks of a split and sums up; details of the last failure come along, to tell the user.
///
/// # Errors
///
/// [`EvaluateError`] when the settings are wrong or the suite has no such tasks; nothing was
/// played then.
pub async fn evaluate(
    request: &EvaluateRequest<'_>,
    config: &EvaluateConfig,
) -> Result<(Evaluation, Option<String>), EvaluateError> {
    config.validate()?;
    let (suite, split) = (request.suite, config.split.as_str());
    let shuffled = shuffled_tasks(suite, split, request.seed.derive("tasks", split))?;
    let tasks = shuffled.sample(config.limit)?;
    let collect = CollectRequest {
        tasks: &tasks,
        player: request.player.clone(),
        seating: request.seating.clone(),
        strategy: &Independent,
        open: request.open.clone(),
        seed: request.seed,
        cancellation: request.cancellation,
        on_episode: request.on_episode,
    };
    let results = Results { keep: request.keep, groups: Mutex::default() };
    let (counts, last_failure) = stream_groups(&collect, &config.collect_config(), &results).await;
    let groups = results.into_groups();
    // Where several seats are evaluated, a task has as many records of each episode.
    let seats = groups.iter().map(|group| group.evaluated_seats).max().unwrap_or(1).max(1);
    let attempts = config.attempts * seats;
    let bootstrap = (attempts > 1).then_some(config.bootstrap_draws);
    let score = |name: &str, chosen: &[&GroupResult]| {
        let seed = request.seed.derive("bootstrap", name);
        let mut builder = ScoreBuilder::default();
        chosen.iter().for_each(|group| builder.merge(&group.score));
        let score = builder.finish(attempts, bootstrap, seed);
        let wanted: usize =
            chosen.iter().map(|group| config.attempts * group.evaluated_seats).sum();
        Score { missing: wanted.saturating_sub(score.episodes), ..score }
    };
    let all: Vec<_> = groups.iter().collect();
    let mut by_suite: BTreeMap<&str, Vec<&GroupResult>> = BTreeMap::new();
    let mut by_tag: BTreeMap<&String, Vec<&GroupResult>> = BTreeMap::new();
    for group in &groups {
        let share = suite.share_of(&group.task.task);
        share.into_iter().for_each(|share| by_suite.entry(share).or_default().push(group));
        // What doing nothing earns is a column, not a tag among the others.
        let tags = group.task.tags.iter().filter(|tag| !tag.starts_with(IDLE_TAG));
        tags.for_each(|tag| by_tag.entry(tag).or_default().push(group));
    }
    let (wanted, missing) = (counts.wanted, counts.missing());
    // Who was told to stop has no score of what was asked for, and nothing has failed.
    let is_stopped = request.cancellation.is_cancelled() && missing > 0;
    let are_too_many = |missing: usize, wanted: usize| {
        !is_stopped && missing as f64 > config.max_missing * wanted as f64
    };
    let is_refused = are_too_many(missing, wanted);
    let unless = |is_refused: bool, score: Score| match is_refused {
        true => Score { success_rate: None, interval: Interval::WHOLE, ..score },
        false => score,
    };
    let overall = unless(is_refused, score("", &all));
    let by_suite = by_suite
        .iter()
        .map(|(name, groups)| {
            let score = score(&format!("suite {name}"), groups);
            let lacks = are_too_many(score.missing, score.missing + score.episodes);
            ((*name).to_owned(), unless(is_refused || lacks, score))
        })
        .collect();
    let by_tag = by_tag
        .iter()
        .map(|(tag, groups)| ((*tag).clone(), unless(is_refused, score(tag, groups))))
        .collect();
    let by_seat = by_seat(&groups, config, request.seed);
    let by_seat = by_seat
        .into_iter()
        .map(|(name, result)| {
            let score = unless(is_refused, result.score);
            (name, SeatResult { score, ..result })
        })
        .collect();
    let pass_at = config.pass_at.iter();
    let mut pass_at_k: Vec<_> = pass_at.map(|k| PassAtK::of(&groups, *k)).collect();
    let calibrated = calibration_of(&groups).filter(|_| !is_refused);
    let tasks: Vec<_> = groups.into_iter().map(|group| group.task).collect();
    if is_refused {
        pass_at_k.iter_mut().for_each(|pass| pass.value = None);
    }
    let evaluation = Evaluation {
        suite: suite.manifest().name.clone(),
        suite_hash: suite.manifest().content_hash.clone(),
        split: split.to_owned(),
        player: request.player.as_player().name().to_owned(),
        overall,
        counts,
        missing,
        is_refused,
        is_stopped,
        pass_at_k,
        by_suite,
        by_seat,
        by_tag,
        tasks,
        calibration: calibrated,
        spend: None,
    };
    Ok((evaluation, last_failure))
}

/// Keeps of every group what the results need, and hands its episodes on.
struct Results<'a> {
    keep: Option<&'a dyn CollectionSink>,
    groups: Mutex<Vec<(usize, GroupResult)>>,
}

/// What one group adds to the results.
struct GroupResult {
    task: TaskResult,
    score: ScoreBuilder,
    /// The attempts of each seat that is evaluated.
    tries: Vec<Tally>,
    /// The seats that are evaluated; 1 where one acts.
    evaluated_seats: usize,
    /// What each seat's records add, with its name and player; empty where one acts.
    seats: Vec<(GroupSeat, ScoreBuilder)>,
    /// Episodes in which no seat succeeded.
    draws: usize,
    /// What was answered last in each episode, with the confidence that it states, and whether it was right; empty where none states one.
    stated: Vec<Stated>,
}

/// An answer with its confidence.
struct Stated {
    answer: String,
    confidence: Option<f64>,
    success: bool,
}

impl Stated {
    /// What the episodes of a group state; none where none does.
    fn all(group: &Group) -> Vec<Self> {
        let of = |trajectory: &Trajectory| {
            let text = trajectory.last_acting().map_or("", |turn| turn.text.as_str());
            let opening = format!("<{CONFIDENCE}>");
            // What stands before it, or else behind it, is what it is about.
            let answer = text.split(opening.as_str()).next().unwrap_or_default().trim();
            Self {
                answer: answer.to_owned(),
                confidence: stated_confidence(trajectory, CONFIDENCE),
                success: trajectory.success,
            }
        };
        let all: Vec<Self> = group.trajectories.iter().map(of).collect();
        if all.iter().any(|it| it.confidence.is_some()) { all } else { Vec::new() }
    }
}

/// Between which tags confidence stands.
const CONFIDENCE: &str = "confidence";

/// The calibration over all groups; `None` where no episode states a confidence.
fn calibration_of(groups: &[GroupResult]) -> Option<CalibrationScore> {
    let all = groups.iter().flat_map(|group| &group.stated);
    let stated: Vec<(f64, bool)> =
        all.filter_map(|it| Some((it.confidence?, it.success))).collect();
    let votes = groups.iter().filter_map(|group| {
        let answers: Vec<(&str, Option<f64>)> =
            group.stated.iter().map(|it| (it.answer.as_str(), it.confidence)).collect();
        let values: Vec<f64> =
            group.stated.iter().map(|it| f64::from(u8::from(it.success))).collect();
        weighted_vote(&answers, &values)
    });
    let votes: Vec<f64> = votes.collect();
    let weighted_vote = mean(votes.iter().sum(), votes.len());
    Some(CalibrationScore { weighted_vote, ..calibration(&stated)? })
}

/// The results of each seat over all groups.
fn by_seat(
    groups: &[GroupResult],
    config: &EvaluateConfig,
    seed: Seed,
) -> BTreeMap<String, SeatResult> {
    let mut builders: BTreeMap<&str, (&str, ScoreBuilder, usize)> = BTreeMap::new();
    for group in groups {
        for (seat, score) in &group.seats {
            let first = || (seat.player.as_str(), ScoreBuilder::default(), 0);
            let (_, builder, draws) = builders.entry(&seat.name).or_insert_with(first);
            builder.merge(score);
            *draws += group.draws;
        }
    }
    let bootstrap = (config.attempts > 1).then_some(config.bootstrap_draws);
    let result = |(name, (player, builder, draws)): (&str, (&str, ScoreBuilder, usize))| {
        let seed = seed.derive("bootstrap", format!("seat {name}"));
        let score = builder.finish(config.attempts, bootstrap, seed);
        (name.to_owned(), SeatResult { player: player.to_owned(), score, draws })
    };
    builders.into_iter().map(result).collect()
}

impl GroupResult {
    fn of(finished: &FinishedGroup) -> Self {
        let FinishedGroup { group, others, seats, tags, .. } = finished;
        let mut score = ScoreBuilder::default();
        score.add(group);
        let task = TaskResult::of(group, tags);
        let same = |a: &Trajectory, b: &Trajectory| a.seat == b.seat;
        let tries = group.trajectories.chunk_by(same).map(tally).collect();
        let all = || group.trajectories.iter().chain(others);
        let of_seat = |(index, seat): (usize, &GroupSeat)| {
            let records = all().filter(|it| it.seat == Seat::at(index));
            let mut score = ScoreBuilder::default();
            score.add_each(records);
            (seat.clone(), score)
        };
        let episodes: BTreeSet<u64> = all().map(|it| it.episode).collect();
        let won: BTreeSet<u64> = all().filter(|it| it.success).map(|it| it.episode).collect();
        Self {
            task,
            score,
            tries,
            evaluated_seats: seats.iter().filter(|seat| seat.is_grouped).count().max(1),
            seats: seats.iter().enumerate().map(of_seat).collect(),
            draws: episodes.len() - won.len(),
            stated: Stated::all(group),
        }
    }
}

impl Results<'_> {
    /// In the order of the tasks, whichever ended first.
    fn into_groups(self) -> Vec<GroupResult> {
        let mut groups = self.groups.into_inner().unwrap_or_else(PoisonError::into_inner);
        groups.sort_by_key(|(index, _)| *index);
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

impl CollectionSink for Results<'_> {
    fn trajectory(&self, index: usize, trajectory: &Trajectory) {
        if let Some(keep) = self.keep {
            keep.trajectory(index, trajectory);
        }
    }

    fn group(&self, finished: FinishedGroup) {
        let result = (finished.index, GroupResult::of(&finished));
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        if let Some(keep) = self.keep {
            keep.group(finished);
        }
    }
}

impl Score {
    /// The results of these groups of `attempts` episodes each; the interval comes from a bootstrap
    /// with as many draws as `bootstrap` says, or is Wilson's.
    pub fn of(groups: &[&Group], attempts: usize, bootstrap: Option<usize>, seed: Seed) -> Self {
        let mut builder = ScoreBuilder::default();
        groups.iter().for_each(|group| builder.add(group));
        builder.finish(attempts, bootstrap, seed)
    }
}

/// A [`Score`] in the making: of every group only its tally is held, so that the groups need not be.
#[derive(Debug, Clone, Default)]
pub struct ScoreBuilder {
    tallies: Vec<Tally>,
    limits: LimitCounts,
    refills: usize,
    turns: usize,
    invalid: usize,
    not_executable: usize,
    reward: f64,
    spend: Option<Spend>,
    /// Episodes along demonstrations, the sum of their progress, and those without a difference.
    semi_online: (usize, f64, usize),
}

impl ScoreBuilder {
    /// Counts a group.
    pub fn add(&mut self, group: &Group) {
        self.add_each(&group.trajectories);
    }

    /// Counts trajectories of one task.
    fn add_each<'t>(&mut self, trajectories: impl IntoIterator<Item = &'t Trajectory>) {
        let mut tally = Tally::default();
        for trajectory in trajectories {
            tally.successes += usize::from(trajectory.success);
            tally.attempts += 1;
            self.limits.count(&trajectory.end);
            self.refills += trajectory.refills as usize;
            self.turns += trajectory.acting().count();
            self.reward += trajectory.total_reward();
            self.spend = add(self.spend, spend_of(trajectory));
            if let Some((progress, success)) = semi_online(trajectory) {
                self.semi_online.0 += 1;
                self.semi_online.1 += progress;
                self.semi_online.2 += usize::from(success);
            }
            for turn in trajectory.acting() {
                self.invalid += usize::from(turn.parsed.is_invalid());
                self.not_executable += usize::from(!turn.step.valid);
            }
        }
        self.tallies.push(tally);
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.tallies.extend(&other.tallies);
        self.limits += other.limits;
        self.refills += other.refills;
        self.turns += other.turns;
        self.invalid += other.invalid;
        self.not_executable += other.not_executable;
        self.reward += other.reward;
        self.spend = add(self.spend, other.spend);
        let (episodes, progress, successes) = other.semi_online;
        self.semi_online.0 += episodes;
        self.semi_online.1 += progress;
        self.semi_online.2 += successes;
    }

    /// The results of the groups that were counted; as for [`Score::of`].
    pub fn finish(&self, attempts: usize, bootstrap: Option<usize>, seed: Seed) -> Score {
        let sum = Tally {
            successes: self.tallies.iter().map(|tally| tally.successes).sum(),
            attempts: self.tallies.iter().map(|tally| tally.attempts).sum(),
        };
        Score {
            tasks: self.tallies.iter().filter(|tally| tally.attempts > 0).count(),
            episodes: sum.attempts,
            refills: self.refills,
            limits: self.limits,
            missing: (self.tallies.len() * attempts).saturating_sub(sum.attempts),
            successes: sum.successes,
            success_rate: mean(sum.successes as f64, sum.attempts),
            interval: match bootstrap {
                Some(draws) => cluster_bootstrap(&self.tallies, draws, seed),
                None => wilson_interval(sum),
            },
            mean_turns: ratio(self.turns as f64, sum.attempts),
            mean_reward: ratio(self.reward, sum.attempts),
            invalid_rate: ratio(self.invalid as f64, self.turns),
            not_executable_rate: ratio(self.not_executable as f64, self.turns),
            spend: self.spend,
            semi_online: SemiOnlineScore::of(self.semi_online),
        }
    }
}

impl SemiOnlineScore {
    fn of((episodes, progress, successes): (usize, f64, usize)) -> Option<Self> {
        let progress = mean(progress, episodes)?;
        let success_rate = mean(successes as f64, episodes)?;
        let sop = f64::midpoint(progress, success_rate);
        Some(Self { episodes, progress, success_rate, sop })
    }
}

/// The progress of an episode along a demonstration, and whether it did not differ at all; absent where it had none.
fn semi_online(trajectory: &Trajectory) -> Option<(f64, bool)> {
    let told = trajectory.verdict.as_ref()?.artifacts.get("semi_online")?;
    Some((told.get("progress")?.as_f64()?, told.get("success")?.as_bool()?))
}

impl TaskResult {
    fn of(group: &Group, tags: &[String]) -> Self {
        let turns: usize = group.trajectories.iter().map(|t| t.acting().count()).sum();
        let tally = tally(&group.trajectories);
        let mean_turns = ratio(turns as f64, tally.attempts);
        let spend = group.trajectories.iter().map(spend_of).fold(None, add);
        Self { task: group.task.clone(), tags: tags.to_vec(), tally, mean_turns, spend }
    }
}

impl PassAtK {
    /// Over the tasks with at least `k` attempts.
    fn of(groups: &[GroupResult], k: usize) -> Self {
        let of_group = |group: &GroupResult| {
            let tries = group.tries.iter().filter(|tries| tries.attempts >= k);
            let values: Vec<_> = tries.map(|tries| pass_at_k(*tries, k)).collect();
            mean(values.iter().sum(), values.len())
        };
        let values: Vec<_> = groups.iter().filter_map(of_group).collect();
        Self { k, value: mean(values.iter().sum(), values.len()), tasks: values.len() }
    }
}

impl Evaluation {
    /// The same beside what was spent for it.
    #[must_use]
    pub fn with_spend(self, spent: SpendReport) -> Self {
        let Score { episodes, tasks, successes, .. } = self.overall;
        Self { spend: Some(ScoreSpend::new(spent, episodes, tasks, successes)), ..self }
    }
}

/// The name of the line of all episodes.
const ALL: &str = "all";

impl Evaluation {
    /// What doing nothing earns in the tasks of a line: all, those of a suite, or those with a tag; absent where no
    /// environment knows.
    fn idle_reward(&self, line: &str) -> Option<f64> {
        let is_of = |task: &&TaskResult| {
            line == ALL
                || task.tags.iter().any(|tag| tag == line)
                || task.task.strip_prefix(line).is_some_and(|rest| rest.starts_with('/'))
        };
        let of_task = |task: &TaskResult| {
            task.tags.iter().find_map(|tag| tag.strip_prefix(IDLE_TAG)?.parse::<f64>().ok())
        };
        let known: Vec<_> = self.tasks.iter().filter(is_of).filter_map(of_task).collect();
        mean(known.iter().sum(), known.len())
    }
}

impl fmt::Display for Evaluation {
    /// A table with a line for all episodes, one per suite where several are mixed, and one per tag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {}/{}", self.player, self.suite, self.split)?;
        let all = ALL.to_owned();
        let parts = self.by_suite.iter().chain(&self.by_tag);
        let has_idle = self.idle_reward(ALL).is_some();
        let lines: Vec<_> = [(&all, &self.overall)].into_iter().chain(parts).collect();
        let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        write!(
            f,
            "{:width$}  {:>6}  {:>8}  {:>7}  {:>7}  {:>9}  {:>15}  {:>6}  {:>9}",
            "",
            "tasks",
            "episodes",
            "missing",
            "refills",
            "success %",
            "95 % interval",
            "turns",
            "invalid %"
        )?;
        let has_cost = lines.iter().any(|(_, score)| score.cost_per_episode().is_some());
        write!(f, "{}", if has_cost { "  cost/episode" } else { "" })?;
        writeln!(f, "{}", if has_idle { "  no-op reward" } else { "" })?;
        for (name, score) in lines {
            let (rate, interval) = match score.success_rate {
                Some(rate) => {
                    let Interval { low, high } = score.interval;
                    (percent(rate), format!("{} - {}", percent(low), percent(high)))
                }
                None => ("-".to_owned(), "-".to_owned()),
            };
            write!(
                f,
                "{name:width$}  {:>6}  {:>8}  {:>7}  {:>7}  {rate:>9}  {interval:>15}  {:>6.1}  \
                 {:>9.1}",
                score.tasks,
                score.episodes,
                score.missing,
                score.refills,
                score.mean_turns,
                100.0 * score.invalid_rate,
            )?;
            let cost = score.cost_per_episode().map_or_else(|| "-".to_owned(), rounded);
            if has_cost {
                write!(f, "  {cost:>12}")?;
            }
            let idle =
                self.idle_reward(name).map_or_else(|| "-".to_owned(), |it| format!("{it:.3}"));
            if has_idle { writeln!(f, "  {idle:>12}")? } else { writeln!(f)? }
        }
        for PassAtK { k, value, tasks } in &self.pass_at_k {
            match value {
                Some(value) => writeln!(f, "pass@{k}: {} % of {tasks} tasks", percent(*value))?,
                None => writeln!(f, "pass@{k}: -")?,
            }
        }
        for (name, SeatResult { player, score, draws }) in &self.by_seat {
            let rate = score.success_rate.map_or("-".to_owned(), percent);
            let (low, high) = (percent(score.interval.low), percent(score.interval.high));
            writeln!(
                f,
                "seat {name} ({player}): success {rate} % ({low} - {high}), {draws} of {} episodes without success of \
                 any seat, reward {:.3}",
                score.episodes, score.mean_reward
            )?;
        }
        if let Some(measured) = &self.overall.semi_online {
            let SemiOnlineScore { episodes, progress, success_rate, sop } = measured;
            writeln!(
                f,
                "semi-online performance {} %: progress {} %, success {} % of {episodes} episodes",
                percent(*sop),
                percent(*progress),
                percent(*success_rate)
            )?;
        }
        if self.overall.limits.total() > 0 {
            writeln!(f, "ended by a limit: {}", self.overall.limits)?;
        }
        for (name, Score { missing, episodes, success_rate, .. }) in &self.by_suite {
            if success_rate.is_none() && *missing > 0 && !self.is_refused && !self.is_stopped {
                let wanted = missing + episodes;
                writeln!(
                    f,
                    "{missing} of {wanted} episodes of `{name}` could not be played, more than allowed: \
                     no score of it"
                )?;
            }
        }
        if let Some(spend) = self.spend.as_ref().filter(|spend| !spend.spent.total.is_empty()) {
            writeln!(f, "{spend}")?;
        }
        let (missing, wanted) = (self.missing, self.missing + self.overall.episodes);
        match (missing, self.is_refused) {
            (0, _) => Ok(()),
            _ if self.is_stopped => writeln!(
                f,
                "stopped: {} of {wanted} episodes were played, and the score is of these",
                self.overall.episodes
            ),
            (_, false) => writeln!(
                f,
                "{missing} of {wanted} episodes could not be played and are not counted"
            ),
            (_, true) => writeln!(
                f,
                "{missing} of {wanted} episodes could not be played, more than allowed: no score"
            ),
        }
    }
}

fn tally(trajectories: &[Trajectory]) -> Tally {
    let successes = trajectories.iter().filter(|trajectory| trajectory.success).count();
    Tally { successes, attempts: trajectories.len() }
}

/// A share of one as it is printed, in percent.
fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Absent where there is nothing to divide by.
fn mean(sum: f64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// 0 where there is nothing to divide by.
fn ratio(sum: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;

    use spar_tasks::TemplateSuite;

    use std::sync::Arc;

    use super::*;
    use crate::fake_environment::FakeEnvironment;
    use crate::policies::{RandomPolicy, ScriptedPolicy};

    fn suite() -> TemplateSuite {
        let text = r#"
            name = "corridor"
            version = "1"
            about = "a"
            environment = "corridor"
            instruction = "i"
            max_turns = 4
            tags = ["fake"]
            [splits.test]
            count = 20
            first_seed = 0
        "#;
        TemplateSuite::parse(text, Path::new("suite.toml")).unwrap()
    }

    async fn run(
        player: SharedPlayer,
        config: &EvaluateConfig,
    ) -> Result<Evaluation, EvaluateError> {
        run_in(&FakeEnvironment::new(), player, config).await
    }

    async fn run_in(
        origin: &FakeEnvironment,
        player: SharedPlayer,
        config: &EvaluateConfig,
    ) -> Result<Evaluation, EvaluateError> {
        let suite = suite();
        let request = EvaluateRequest {
            suite: &suite,
            player,
            seating: Seating::default(),
            open: origin.opener(),
            seed: Seed::from_u64(1),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
            keep: None,
        };
        evaluate(&request, config).await.map(|(evaluation, _)| evaluation)
    }

    #[tokio::test]
    async fn a_perfect_player_has_a_perfect_score() {
        let config = EvaluateConfig { limit: Some(10), ..EvaluateConfig::default() };
        let evaluation = run(SharedPlayer::Oracle { encoder: None }, &config).await.unwrap();
        let overall = &evaluation.overall;
        assert_eq!((overall.episodes, overall.successes, overall.mean_turns), (10, 10, 3.0));
        assert_eq!(overall.interval.high, 1.0);
        assert!((overall.interval.low - 0.7225).abs() < 1e-4);
        assert_eq!(evaluation.by_tag.keys().collect::<Vec<_>>(), ["fake", "short"]);
        let expected = "\
oracle on corridor/test
        tasks  episodes  missing  refills  success %    95 % interval   turns  invalid %
all        10        10        0        0      100.0     72.2 - 100.0     3.0        0.0
fake       10        10        0        0      100.0     72.2 - 100.0     3.0        0.0
short      10        10        0        0      100.0     72.2 - 100.0     3.0        0.0
";
        assert_eq!(evaluation.to_string(), expected);
        let mut known = evaluation.clone();
        for (at, task) in known.tasks.iter_mut().enumerate() {
            task.tags.push(spar_envs::idle_tag(if at < 4 { 1.0 } else { 0.0 }));
        }
        let told = known.to_string();
        let lines: Vec<_> = told.lines().collect();
        assert!(lines[1].ends_with("invalid %  no-op reward"), "{told}");
        assert!(lines[2].ends_with("0.0         0.400") && lines.len() == 5, "{told}");
        let json = serde_json::to_string(&evaluation).unwrap();
        assert_eq!(serde_json::from_str::<Evaluation>(&json).unwrap(), evaluation);
    }

    #[tokio::test]
    async fn a_limit_draws_the_same_sample_for_every_player() {
        let config = EvaluateConfig { limit: Some(8), ..EvaluateConfig::default() };
        let tasks_of = |evaluation: Evaluation| -> Vec<String> {
            evaluation.tasks.into_iter().map(|task| task.task).collect()
        };
        let oracle = tasks_of(run(SharedPlayer::Oracle { encoder: None }, &config).await.unwrap());
        let random = tasks_of(run(SharedPlayer::of(RandomPolicy), &config).await.unwrap());
        assert_eq!(oracle, random);
        let prefix: Vec<_> = (0..8).map(|index| format!("corridor/test/{index}")).collect();
        assert!(oracle.len() == 8 && oracle != prefix, "{oracle:?}");
    }

    #[tokio::test]
    async fn several_attempts_give_pass_at_k_and_the_same_numbers_every_time() {
        let config = EvaluateConfig {
            attempts: 4,
            pass_at: vec![1, 4],
            concurrency: 3.into(),
            ..EvaluateConfig::default()
        };
        let evaluation = run(SharedPlayer::of(RandomPolicy), &config).await.unwrap();
        let rate = evaluation.overall.success_rate.unwrap();
        assert!(rate > 0.0 && rate < 1.0);
        assert!((evaluation.pass_at_k[0].value.unwrap() - rate).abs() < 1e-9);
        assert!(evaluation.pass_at_k[1].value.unwrap() > rate);
        assert!(evaluation.overall.interval.low < rate && rate < evaluation.overall.interval.high);
        let config = EvaluateConfig { concurrency: 80.into(), ..config };
        assert_eq!(run(SharedPlayer::of(RandomPolicy), &config).await.unwrap(), evaluation);
    }

    #[tokio::test]
    async fn invalid_actions_are_counted() {
        let policy = Arc::new(ScriptedPolicy::new(["", "right"]));
        let evaluation =
            run(SharedPlayer::Policy(policy.clone()), &EvaluateConfig::default()).await.unwrap();
        assert_eq!((evaluation.overall.successes, evaluation.overall.invalid_rate), (20, 0.25));
    }

    #[tokio::test]
    async fn nothing_played_is_no_score() {
        let mut origin = FakeEnvironment::new();
        origin.breaks_after = Some(1);
        let config = EvaluateConfig { refills: 0, pass_at: vec![1], ..Default::default() };
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let evaluation =
            run_in(&origin, SharedPlayer::Policy(policy.clone()), &config).await.unwrap();
        let overall = &evaluation.overall;
        assert_eq!((overall.episodes, overall.missing, overall.success_rate), (0, 20, None));
        assert_eq!(evaluation.pass_at_k, [PassAtK { k: 1, value: None, tasks: 0 }]);
        assert!(evaluation.is_refused);
        let expected = "\
scripted on corridor/test
        tasks  episodes  missing  refills  success %    95 % interval   turns  invalid %
all         0         0       20        0          -                -     0.0        0.0
fake        0         0       20        0          -                -     0.0        0.0
short       0         0       20        0          -                -     0.0        0.0
pass@1: -
20 of 20 episodes could not be played, more than allowed: no score
";
        assert_eq!(evaluation.to_string(), expected);
        let json = serde_json::to_value(&evaluation).unwrap();
        assert!(
            json["overall"]["success_rate"].is_null() && json["pass_at_k"][0]["value"].is_null()
        );
        assert_eq!((&json["overall"]["missing"], &json["is_refused"]), (&20.into(), &true.into()));
    }

    #[tokio::test]
    async fn missing_episodes_are_told_and_too_many_are_refused() {
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        // One of twenty, then two.
        for (mishaps, is_refused) in [(1, false), (2, true)] {
            let origin = FakeEnvironment::new();
            origin.mishaps.store(mishaps, Ordering::SeqCst);
            let config = EvaluateConfig { refills: 0, concurrency: 1.into(), ..Default::default() };
            let evaluation =
                run_in(&origin, SharedPlayer::Policy(policy.clone()), &config).await.unwrap();
            let overall = &evaluation.overall;
            assert_eq!((evaluation.missing, overall.missing), (mishaps, mishaps));
            assert_eq!((overall.episodes, overall.successes), (20 - mishaps, 20 - mishaps));
            assert_eq!(evaluation.is_refused, is_refused);
            assert_eq!(overall.success_rate, (!is_refused).then_some(1.0));
            let text = evaluation.to_string();
            assert!(
                text.contains(&format!("{mishaps} of 20 episodes could not be played")),
                "{text}"
            );
            assert_eq!(text.contains("no score"), is_refused);
            let generous = EvaluateConfig { max_missing: 0.5, ..config };
            origin.mishaps.store(mishaps, Ordering::SeqCst);
            let evaluation =
                run_in(&origin, SharedPlayer::Policy(policy.clone()), &generous).await.unwrap();
            assert_eq!(evaluation.overall.success_rate, Some(1.0));
        }
    }

    /// A suite whose tasks of these ids are a share of their own.
    struct Mixed {
        suite: TemplateSuite,
        few: Vec<String>,
    }

    impl Suite for Mixed {
        fn manifest(&self) -> &spar_tasks::SuiteManifest {
            self.suite.manifest()
        }

        fn about(&self) -> &str {
            self.suite.about()
        }

        fn make_task(&self, split: &str, index: usize) -> Result<spar_tasks::Task, SuiteError> {
            self.suite.make_task(split, index)
        }

        fn share_of(&self, id: &str) -> Option<&str> {
            Some(if self.few.iter().any(|few| few == id) { "few" } else { "many" })
        }
    }

    #[tokio::test]
    async fn a_share_of_which_too_much_is_missing_has_no_score() {
        let player = SharedPlayer::Policy(Arc::new(ScriptedPolicy::new(["right"])));
        let config = EvaluateConfig { refills: 0, concurrency: 1.into(), ..Default::default() };
        let order = run(player.clone(), &config).await.unwrap().tasks;
        let few = order.iter().take(2).map(|task| task.task.clone()).collect();
        let suite = Mixed { suite: suite(), few };
        // One of the few, of whom there are two of twenty; then both.
        for (mishaps, is_refused) in [(0, false), (1, false), (2, true)] {
            let origin = FakeEnvironment::new();
            origin.mishaps.store(mishaps, Ordering::SeqCst);
            let request = EvaluateRequest {
                suite: &suite,
                player: player.clone(),
                seating: Seating::default(),
                open: origin.opener(),
                seed: Seed::from_u64(1),
                cancellation: &Cancellation::new(),
                on_episode: &|_| {},
                keep: None,
            };
            let (evaluation, _) = evaluate(&request, &config).await.unwrap();
            let (few, many) = (&evaluation.by_suite["few"], &evaluation.by_suite["many"]);
            assert_eq!((few.missing, many.missing), (mishaps, 0));
            assert_eq!(evaluation.is_refused, is_refused);
            assert_eq!(few.success_rate, (mishaps == 0).then_some(1.0));
            let rate = (!is_refused).then_some(1.0);
            assert_eq!((evaluation.overall.success_rate, many.success_rate), (rate, rate));
            assert_eq!(evaluation.by_tag["fake"].success_rate, rate);
            assert_eq!(few.interval == Interval::WHOLE, mishaps > 0);
            let told = "1 of 2 episodes of `few` could not be played, more than allowed";
            assert_eq!(evaluation.to_string().contains(told), mishaps == 1);
        }
    }

    #[tokio::test]
    async fn wrong_settings_are_refused_before_anything_is_played() {
        let config = EvaluateConfig {
            pass_at: vec![2],
            limit: Some(0),
            max_missing: f64::NAN,
            ..Default::default()
        };
        let error = run(SharedPlayer::of(RandomPolicy), &config).await.unwrap_err().to_string();
        assert!(error.contains("pass_at has 2") && error.contains("limit is 0"), "{error}");
        assert!(error.contains("max_missing is NaN"), "{error}");
        let config = EvaluateConfig { split: "exam".to_owned(), ..Default::default() };
        let error = run(SharedPlayer::of(RandomPolicy), &config).await.unwrap_err();
        assert!(matches!(error, EvaluateError::Suite(SuiteError::UnknownSplit { .. })));
    }
}
