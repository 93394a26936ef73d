//! Who takes the seats of environments in which several act, as recipes and command lines say it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use spar_agent::policies::{HttpPolicy, HttpPolicyConfig, ScriptedPolicy};
use spar_agent::spend::Budget;
use spar_agent::{SeatPlayer, Seating, SharedPlayer};
use spar_core::registry::known_names;
use spar_core::{Policy, SeatSpec};
use spar_envs::{Resources, needs_sandbox, open_environment};
use spar_tasks::Suite;

use crate::judging::local_model;
use crate::sandboxes::first_tasks;

/// What a player is called whose lines are in a file.
const SCRIPT: &str = "script:";
/// The most bytes of a script.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// Who takes the seats of environments in which several act; no effect where one does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeatsConfig {
    /// The seats that are trained and scored, of those that `self` takes. Default empty: all of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub train: Vec<String>,
    /// Who takes a seat, by its name; a seat that is not here is taken as its environment says. Default empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub players: BTreeMap<String, SeatPlayerConfig>,
}

/// Who takes a seat: one of these three.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeatPlayerConfig {
    /// `self` (who is trained or evaluated, with its weights of that time), `random`, `oracle` or `expert` (the
    /// environment's own), or `script:FILE`, whose lines are said one after the other, the last one over and over. Default
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// An OpenAI-compatible endpoint. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<HttpPolicyConfig>,
    /// A checkpoint folder, such as an older one of the run, or a model's name on the hub; it plays with weights of its own
    /// in this process. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<PathBuf>,
}

impl SeatPlayerConfig {
    /// What was typed: a name, `script:FILE`, `URL#MODEL`, or a folder.
    pub fn typed(text: &str) -> Self {
        if SeatPlayer::NAMES.contains(&text) || text.starts_with(SCRIPT) {
            return Self { player: Some(text.to_owned()), ..Self::default() };
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            let (base_url, model) = text.split_once('#').unwrap_or((text, ""));
            let (base_url, model) = (base_url.to_owned(), model.to_owned());
            let endpoint = HttpPolicyConfig { base_url, model, ..HttpPolicyConfig::default() };
            return Self { endpoint: Some(endpoint), ..Self::default() };
        }
        Self { checkpoint: Some(PathBuf::from(text)), ..Self::default() }
    }

    /// What is wrong with it, as far as it shows before anybody is asked.
    pub(crate) fn problem(&self) -> Option<String> {
        let Self { player, endpoint, checkpoint } = self;
        let given = [player.is_some(), endpoint.is_some(), checkpoint.is_some()];
        if given.iter().filter(|is_given| **is_given).count() != 1 {
            return Some("it names one of `player`, `endpoint` and `checkpoint`".to_owned());
        }
        if let Some(endpoint) = endpoint
            && endpoint.model.is_empty()
        {
            return Some("its endpoint names no `model` (typed: URL#MODEL)".to_owned());
        }
        let name = player.as_ref()?;
        if SeatPlayer::NAMES.contains(&name.as_str()) || name.starts_with(SCRIPT) {
            return None;
        }
        let known = known_names(name, SeatPlayer::NAMES);
        Some(format!("there is no player `{name}`: known are {known}, and `{SCRIPT}FILE`"))
    }

    async fn open(&self, seat: &str, budget: &Budget) -> anyhow::Result<SeatPlayer> {
        let policy: Arc<dyn Policy> = match self {
            Self { endpoint: Some(endpoint), .. } => {
                let meter = budget.meter(&format!("seat {seat}"), endpoint.prices()?)?;
                Arc::new(HttpPolicy::open(endpoint.clone())?.metered(meter))
            }
            Self { checkpoint: Some(checkpoint), .. } => {
                local_model(&format!("{seat}: {}", checkpoint.display()), checkpoint).await?
            }
            Self { player: Some(name), .. } => match name.strip_prefix(SCRIPT) {
                Some(path) => Arc::new(script(path)?),
                None => {
                    return SeatPlayer::named(name)
                        .with_context(|| format!("find player `{name}`"));
                }
            },
            _ => anyhow::bail!("seat `{seat}` has no player"),
        };
        Ok(SeatPlayer::other(SharedPlayer::Policy(policy)))
    }
}

fn script(path: &str) -> anyhow::Result<ScriptedPolicy> {
    let size = std::fs::metadata(path).with_context(|| format!("read script `{path}`"))?.len();
    anyhow::ensure!(
        size <= MAX_SCRIPT_BYTES,
        "read script `{path}`: it has {size} bytes, at most {MAX_SCRIPT_BYTES} are read"
    );
    let text = std::fs::read_to_string(path).with_context(|| format!("read script `{path}`"))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    anyhow::ensure!(!lines.is_empty(), "read script `{path}`: it has no lines");
    Ok(ScriptedPolicy::new(lines))
}

impl SeatsConfig {
    /// All that is wrong with it, as far as it shows before suites are opened.
    pub fn problems(&self) -> Vec<String> {
        let players = self.players.iter();
        let told = players.filter_map(|(seat, player)| Some((seat, player.problem()?)));
        told.map(|(seat, problem)| format!("seats.players.{seat}: {problem}")).collect()
    }

    /// All that is wrong with it for tasks that have these seats.
    pub fn problems_in(&self, tasks: &[TaskSeats]) -> Vec<String> {
        let problems = self.unopened().problems(&TaskSeats::listed(tasks));
        problems.into_iter().map(|problem| format!("seats: {problem}")).collect()
    }

    /// The seats that it names and none of these tasks has.
    pub fn unknown_in(&self, tasks: &[TaskSeats]) -> Vec<String> {
        let problems = self.unopened().unknown(&TaskSeats::listed(tasks));
        problems.into_iter().map(|problem| format!("seats: {problem}")).collect()
    }

    /// The part of it that is about seats of these tasks.
    #[must_use]
    pub fn within(mut self, tasks: &[TaskSeats]) -> Self {
        let several = tasks.iter().filter(|task| task.seats.len() > 1);
        let known: Vec<&str> =
            several.flat_map(|task| &task.seats).map(|seat| &*seat.name).collect();
        self.players.retain(|seat, _| known.contains(&seat.as_str()));
        self.train.retain(|seat| known.contains(&seat.as_str()));
        self
    }

    /// Who takes the seats in evaluations, in which some are taken by others; what those play is not scored.
    #[must_use]
    pub fn in_evaluation(&self, others: &BTreeMap<String, SeatPlayerConfig>) -> Self {
        let is_own = |config: &SeatPlayerConfig| config.player.as_deref() == Some(SeatSpec::SELF);
        let mut evaluated = self.clone();
        evaluated.train.retain(|seat| others.get(seat).is_none_or(is_own));
        evaluated.players.extend(others.clone());
        evaluated
    }

    /// What is wrong with being measured so: environments in which `self` takes all seats, and wins what it loses.
    pub fn idle_scores(&self, tasks: &[TaskSeats]) -> Vec<String> {
        let seating = self.unopened();
        let is_idle = |task: &&TaskSeats| {
            let mut seats = task.seats.iter();
            task.is_zero_sum && task.seats.len() > 1 && seats.all(|seat| seating.is_own(seat))
        };
        let tell = |task: &TaskSeats| {
            let TaskSeats { environment, .. } = task;
            format!(
                "in `{environment}` `self` takes all seats, and one wins what another loses: success tells how many \
                 games had a winner, not how well they are played"
            )
        };
        tasks.iter().filter(is_idle).map(tell).collect()
    }

    /// Who takes the seats, as far as it matters before they are there.
    fn unopened(&self) -> Seating {
        let names = |config: &SeatPlayerConfig| match config.player.as_deref() {
            Some(name) => SeatPlayer::named(name),
            None => None,
        };
        // Who is out of reach yet is somebody else.
        let other = || SeatPlayer::other(SharedPlayer::Oracle { encoder: None });
        let players = self.players.iter();
        let players =
            players.map(|(seat, config)| (seat.clone(), names(config).unwrap_or_else(other)));
        Seating::new(players.collect(), self.train.iter().cloned())
    }

    /// The same with who takes single seats.
    #[must_use]
    pub fn with(mut self, players: &[(String, SeatPlayerConfig)]) -> Self {
        self.players.extend(players.iter().cloned());
        self
    }

    /// Loads and reaches whoever takes a seat, those behind endpoints within a budget.
    ///
    /// # Errors
    ///
    /// When one of them cannot be had.
    pub async fn open(&self, budget: &Budget) -> anyhow::Result<Seating> {
        let players = open_players(&self.players, budget).await?;
        Ok(Seating::new(players, self.train.iter().cloned()))
    }

    /// Loads or reaches whoever takes one of its seats.
    ///
    /// # Errors
    ///
    /// When nobody is named for it, or who is cannot be had.
    pub async fn open_one(&self, seat: &str, budget: &Budget) -> anyhow::Result<SeatPlayer> {
        let config = self.players.get(seat).with_context(|| format!("nobody takes `{seat}`"))?;
        config.open(seat, budget).await
    }

    /// As [`SeatsConfig::open`], in training and [in evaluations](SeatsConfig::in_evaluation).
    ///
    /// # Errors
    ///
    /// When one of them cannot be had.
    pub async fn open_both(
        &self,
        others: &BTreeMap<String, SeatPlayerConfig>,
        budget: &Budget,
    ) -> anyhow::Result<(Seating, Seating)> {
        let mut players = open_players(&self.players, budget).await?;
        let training = Seating::new(players.clone(), self.train.iter().cloned());
        players.extend(open_players(others, budget).await?);
        let evaluated = Seating::new(players, self.in_evaluation(others).train);
        Ok((training, evaluated))
    }
}

async fn open_players(
    configs: &BTreeMap<String, SeatPlayerConfig>,
    budget: &Budget,
) -> anyhow::Result<BTreeMap<String, SeatPlayer>> {
    let mut players = BTreeMap::new();
    for (seat, config) in configs {
        let opened = config.open(seat, budget).await;
        let opened = opened.with_context(|| format!("have seat `{seat}` taken"))?;
        players.insert(seat.clone(), opened);
    }
    Ok(players)
}

/// The seats of some tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSeats {
    /// Their environment.
    pub environment: String,
    /// Its seats.
    pub seats: Vec<SeatSpec>,
    /// Whether what all seats earn adds up to zero.
    pub is_zero_sum: bool,
}

impl TaskSeats {
    /// The seats of the tasks of these splits, as far as they can be opened without a sandbox; each environment once.
    ///
    /// # Errors
    ///
    /// When a task cannot be read or opened.
    pub fn of(suite: &dyn Suite, splits: &[String]) -> anyhow::Result<Vec<Self>> {
        let mut found = Vec::new();
        for split in splits {
            for task in first_tasks(suite, split)? {
                let (seats, is_zero_sum) = match needs_sandbox(&task) {
                    true => (SeatSpec::ONE.to_vec(), false),
                    false => {
                        let env = open_environment(&task, &Resources::default().without_graders())?;
                        (env.seats().to_vec(), env.is_zero_sum())
                    }
                };
                let of_task = Self { environment: task.environment, seats, is_zero_sum };
                if !found.contains(&of_task) {
                    found.push(of_task);
                }
            }
        }
        Ok(found)
    }

    fn listed(tasks: &[Self]) -> Vec<(String, Vec<SeatSpec>)> {
        tasks.iter().map(|task| (task.environment.clone(), task.seats.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use spar_tasks::{SuiteOptions, open_suite};

    use super::*;

    fn read(text: &str) -> SeatsConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn who_takes_a_seat_is_told_in_one_way() {
        let told = |player: &str| read(&format!("[players]\no = {{ {player} }}")).problems();
        for right in [
            "player = 'self'",
            "player = 'script:moves.txt'",
            "checkpoint = 'runs/a'",
            "endpoint = { base_url = 'http://a', model = 'm' }",
        ] {
            assert!(told(right).is_empty(), "{right}: {:?}", told(right));
        }
        assert!(told("player = 'self', checkpoint = 'a'")[0].contains("one of"));
        assert!(told("")[0].starts_with("seats.players.o: "));
        assert!(told("player = 'expart'")[0].contains("`expert`"));
        assert!(told("endpoint = { base_url = 'http://a', model = '' }")[0].contains("URL#MODEL"));
        assert!(toml::from_str::<SeatsConfig>("[players]\no = { chair = 1 }").is_err());
        let typed = SeatPlayerConfig::typed;
        assert_eq!(typed("expert").player.as_deref(), Some("expert"));
        assert_eq!(typed("http://a/v1#m").endpoint.unwrap().model, "m");
        assert_eq!(typed("runs/a").checkpoint, Some(PathBuf::from("runs/a")));
    }

    #[test]
    fn seats_are_held_against_the_suite_before_anything_is_played() {
        let suite = |name: &str| open_suite(name, &SuiteOptions::default()).unwrap();
        let told = |text: &str, name: &str| {
            let tasks = TaskSeats::of(suite(name).as_ref(), &["train".to_owned()]).unwrap();
            read(text).problems_in(&tasks).join("; ")
        };
        assert_eq!(told("", "tic-tac-toe"), "");
        assert_eq!(told("train = ['x']\n[players]\no = { player = 'expert' }", "tic-tac-toe"), "");
        assert!(told("[players]\nz = { player = 'self' }", "tic-tac-toe").contains("`o`, `x`"));
        assert!(told("train = ['user']", "errand").contains("is not `self`'s"));
        assert!(
            told("[players]\nagent = { checkpoint = 'c' }", "errand").contains("no seat is left")
        );
        assert!(told("train = ['x']", "sums").contains("one acts in these tasks"));
    }

    #[test]
    fn a_policy_is_not_measured_by_games_with_itself() {
        let tasks = |name: &str| {
            let suite = open_suite(name, &SuiteOptions::default()).unwrap();
            TaskSeats::of(suite.as_ref(), &["train".to_owned(), "test".to_owned()]).unwrap()
        };
        assert_eq!(tasks("tic-tac-toe").len(), 1, "each environment once");
        let both = read("train = ['x', 'o']");
        assert!(both.idle_scores(&tasks("tic-tac-toe"))[0].contains("takes all seats"));
        let others = BTreeMap::from([("o".to_owned(), SeatPlayerConfig::typed("expert"))]);
        let evaluated = both.in_evaluation(&others);
        assert_eq!(evaluated.train, ["x"], "what others play is not scored");
        assert!(evaluated.idle_scores(&tasks("tic-tac-toe")).is_empty());
        assert!(evaluated.problems_in(&tasks("tic-tac-toe")).is_empty());
        // Who serves and who is served win together, and one who acts alone wins from nobody.
        for name in ["errand", "sums"] {
            assert!(both.idle_scores(&tasks(name)).is_empty(), "{name}");
            assert_eq!(both.clone().within(&tasks(name)), SeatsConfig::default());
        }
    }

    #[tokio::test]
    async fn a_script_says_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("moves.txt");
        std::fs::write(&path, "1\n\n2\n").unwrap();
        let config = |path: &std::path::Path| {
            let player = SeatPlayerConfig::typed(&format!("script:{}", path.display()));
            SeatsConfig::default().with(&[("o".to_owned(), player)])
        };
        let budget = Budget::new(spar_agent::spend::SpendConfig::default()).unwrap();
        config(&path).open(&budget).await.unwrap();
        let missing = config(&folder.path().join("none")).open(&budget).await.err().unwrap();
        assert!(format!("{missing:#}").contains("have seat `o` taken: read script"), "{missing:#}");
        std::fs::write(&path, "\n").unwrap();
        assert!(config(&path).open(&budget).await.is_err());
    }
}
