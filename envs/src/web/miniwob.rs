//! MiniWoB++ in a real browser.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolSpec};
use spar_tasks::Task;
use spar_web::miniwob::{
    Episode, Observing, Options, Pages, Reset, RewardKind, Shown, has_oracle, next_action,
    only_clicks_and_fills, task_rows,
};
use spar_web::{ACTION_KINDS, ActionSet, Input, WebError, find_browser};

use super::Windows;
use super::turn::{Place, Seen, Turn, carry_out, in_words, of_player};
use crate::environment::{NO_ORACLE_TAG, SCORED_TAG, TimeRules};
use crate::{Environment, EnvironmentError, Resources};

/// How long a reset may take: the browser comes up, a window is waited for, and the page is loaded.
pub(super) const RESET: Duration = Duration::from_secs(240);
/// How long a step may take: a few commands of the browser, of which each keeps its own time.
pub(super) const STEP: Duration = Duration::from_secs(120);

/// A task of MiniWoB++, with BrowserGym's observations, actions, seeds and rewards.
///
/// Parameters: `seed`, BrowserGym's; `task`, or `tasks`, which take turns by seed: a list of names, `all` (default) or `oracle` (those that have a
/// player by rules). `observation`: `axtree` (default), `dom`, `both` or `none`; `screenshot`, a picture beside it (default false). `reward`: `success`
/// (default), `raw` or `time-scaled`; `time_ms`, the time of an episode (default 1000000). `reset`: `load` (default) or `in-page`. `actions`, BrowserGym's sets
/// (default `chat`, `infeas`, `bid`, `nav`, `tab`). `input`: `devices` (default) or `script`. `settle_ms`, how long the page goes on behind an action (default 600).
///
/// The page's own clock goes on with actions alone, so that equal actions show equal pages. The part of the reward is `success`, or `page` where it is the
/// page's own. Whoever leaves the page or loads it anew ends the episode with nothing.
#[derive(Debug)]
pub struct MiniWob {
    setting: Arc<Setting>,
    windows: Windows,
    uses_tools: bool,
    play: Option<Play>,
}

#[derive(Debug)]
struct Setting {
    task: String,
    seed: u64,
    options: Options,
    pages: Arc<Pages>,
    actions: String,
    tools: Arc<[ToolSpec]>,
    /// Whether there is a player by rules, whose actions are there: those of the set `bid`, or clicking and filling.
    has_oracle: bool,
}

#[derive(Debug)]
struct Play {
    episode: Episode,
    shown: Shown,
    /// What the turn has earned.
    earned: f64,
    is_over: bool,
    is_solved: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    task: Option<String>,
    tasks: Option<Tasks>,
    #[serde(default)]
    observation: Observing,
    #[serde(default)]
    screenshot: bool,
    #[serde(default)]
    reward: RewardKind,
    #[serde(default)]
    reset: Reset,
    actions: Option<Vec<String>>,
    #[serde(default)]
    input: Input,
    time_ms: Option<u32>,
    settle_ms: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Tasks {
    Named(Vec<String>),
    Group(Group),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Group {
    All,
    Oracle,
}

impl Parameters {
    /// The name of the task that is played.
    fn name(&self) -> Result<String, String> {
        let of = |names: Vec<&str>| match names.len() {
            0 => Err("`tasks` is empty".to_owned()),
            len => Ok(names[(self.seed % len as u64) as usize].to_owned()),
        };
        let all = || task_rows().map(|row| row.name);
        let name = match (&self.task, &self.tasks) {
            (Some(_), Some(_)) => return Err("give either `task` or `tasks`".to_owned()),
            (Some(name), None) => name.clone(),
            (None, Some(Tasks::Named(names))) => of(names.iter().map(String::as_str).collect())?,
            (None, None | Some(Tasks::Group(Group::All))) => of(all().collect())?,
            (None, Some(Tasks::Group(Group::Oracle))) => {
                of(all().filter(|name| has_oracle(name)).collect())?
            }
        };
        match all().any(|known| known == name) {
            true => Ok(name),
            false => {
                Err(format!("there is no task `{name}`: {}", all().collect::<Vec<_>>().join(", ")))
            }
        }
    }
}

impl MiniWob {
    /// The registry's name of it.
    pub const NAME: &'static str = "miniwob";

    /// Opens a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, [`EnvironmentError::Browser`] where there is no
    /// browser, or nobody has the pages.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let given =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let name = given.name().map_err(refuse)?;
        let usual = Options::default();
        let options = Options {
            reset: given.reset,
            reward: given.reward,
            observing: given.observation,
            has_screenshot: given.screenshot,
            input: given.input,
            actions: given.actions.unwrap_or(usual.actions),
            time_ms: given.time_ms.unwrap_or(usual.time_ms),
            settle_ms: given.settle_ms.unwrap_or(usual.settle_ms),
            ..Options::default()
        };
        let mut problems = options.problems();
        if options.observing == Observing::None && !options.has_screenshot {
            problems.push("nothing is shown: `observation` is none and `screenshot` false".into());
        }
        if !problems.is_empty() {
            return Err(refuse(problems.join("; ")));
        }
        let actions = ActionSet::new(&options.actions).map_err(refuse)?;
        find_browser()?;
        let has_kind = |name: &str| actions.kinds().iter().any(|kind| kind.name == name);
        let mut of_oracle =
            ACTION_KINDS.iter().filter(|kind| match only_clicks_and_fills(&name, options.input) {
                true => ["click", "fill"].contains(&kind.name),
                false => kind.sets.contains(&"bid"),
            });
        let has_oracle = has_oracle(&name) && of_oracle.all(|kind| has_kind(kind.name));
        let setting = Setting {
            has_oracle,
            task: name,
            seed: given.seed,
            pages: Pages::shared()?,
            actions: in_words(&actions),
            tools: actions.tools().into(),
            options,
        };
        let windows = resources.windows.clone();
        Ok(Self { setting: Arc::new(setting), windows, uses_tools: false, play: None })
    }

    /// The task of the benchmark that a task of a suite is.
    pub(crate) fn drawn(task: &Task) -> Option<String> {
        Parameters::deserialize(&task.parameters).ok()?.name().ok()
    }

    fn end(&mut self) {
        if let Some(play) = self.play.take() {
            self.windows.end(play.episode, &self.setting.options);
        }
    }
}

impl Play {
    fn seen(&self) -> Seen {
        Seen {
            text: self.shown.text.clone(),
            screenshot: self.shown.screenshot.clone(),
            error: self.shown.error.clone(),
            is_over: self.is_over,
        }
    }

    fn after(&mut self, shown: Shown) -> Seen {
        self.earned += shown.reward;
        self.is_over |= shown.is_over;
        self.is_solved |= shown.is_success;
        self.shown = shown;
        self.seen()
    }
}

#[async_trait]
impl Place for Play {
    async fn act(&mut self, text: &str) -> Result<Seen, WebError> {
        let shown = self.episode.act(text).await?;
        Ok(self.after(shown))
    }

    async fn call(&mut self, call: &ToolCall) -> Result<Seen, WebError> {
        let shown = self.episode.call(&call.name, &call.arguments).await?;
        Ok(self.after(shown))
    }
}

#[async_trait]
impl Environment for MiniWob {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        let mut tags = vec![self.setting.task.clone()];
        if self.setting.options.reward != RewardKind::Success {
            tags.push(SCORED_TAG.to_owned());
        }
        if !self.setting.has_oracle {
            tags.push(NO_ORACLE_TAG.to_owned());
        }
        tags
    }

    fn time_rules(&self) -> TimeRules {
        TimeRules { reset: Some(RESET), step: Some(STEP), ..TimeRules::default() }
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match self.uses_tools {
            true => Arc::clone(&self.setting.tools),
            false => Arc::default(),
        }
    }

    fn reads_whole_answers(&self) -> bool {
        true
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.end();
        let Setting { task, seed, options, pages, actions, .. } = &*self.setting;
        let (episode, shown) = self.windows.begin(pages, task, *seed, options).await?;
        let is_over = shown.is_over;
        let play = Play { episode, shown, earned: 0.0, is_over, is_solved: false };
        let words = (!self.uses_tools).then_some(actions.as_str());
        let first = play.seen().first(play.episode.goal(), words);
        self.play = Some(play);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        // Of what broke, the window is closed where it is dropped.
        let mut play = self.play.take().ok_or(misused("before reset"))?;
        if play.is_over {
            self.play = Some(play);
            return Err(misused("after the end"));
        }
        let Turn { observation, is_valid } = carry_out(&mut play, action).await?;
        let name = match self.setting.options.reward {
            RewardKind::Success => "success",
            RewardKind::Raw | RewardKind::TimeScaled => "page",
        };
        let earned = std::mem::take(&mut play.earned);
        let part = RewardPart { name: name.to_owned(), value: earned };
        let step = Step {
            observation,
            rewards: if earned == 0.0 { Vec::new() } else { vec![part] },
            terminated: play.is_over,
            success: play.is_solved,
            valid: is_valid,
            wall_time: start.elapsed(),
        };
        self.play = Some(play);
        Ok(step)
    }

    fn oracle_action(&self) -> Option<Action> {
        let play = self.play.as_ref().filter(|play| !play.is_over && self.setting.has_oracle)?;
        let Setting { task, options, .. } = &*self.setting;
        let text = next_action(task, play.episode.goal(), &play.shown.view, options.input)?;
        Some(of_player(text, self.uses_tools))
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.end();
        Ok(())
    }
}
