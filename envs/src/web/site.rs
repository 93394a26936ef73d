//! Small sites, and WebArena's judges.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolSpec, Verdict};
use spar_tasks::Task;
use spar_web::site::{
    Folder, Problem, SiteEpisode, SiteOptions, SiteShown, Sites, WebArenaTask, next_site_action,
};
use spar_web::{ActionSet, Server, WebError, find_browser};

use super::Windows;
use super::miniwob::{RESET, STEP};
use super::served::{Application, Served};
use super::turn::{Place, Seen, Turn, carry_out, in_words, of_player};
use crate::environment::{NO_ORACLE_TAG, TimeRules, idle_tag};
use crate::resources::Sandboxes;
use crate::{Environment, EnvironmentError, Resources};

/// Something to do or to find out on small sites: a forum, the administration of a shop, and a map with routes.
///
/// Parameters: `seed`, of the sites and of the task on them; or `task`, one in WebArena's form, on the sites of the seed `world` (default 0), or on the pages
/// of a `folder`, which are `http://site.test/`, or on those of an application that is started in a sandbox, `serve`: `folder`, a copy of which is `/site`
/// there, `command`, a line of sh, `port`, and where wanted `image`, `env`, `ready_secs` (default 30) and `limits`. Of both: `actions`, BrowserGym's sets (default `webarena`), `viewport`, width and height in pixels
/// (default 1280 and 720), `screenshot`, a picture beside the accessibility tree (default false), `settle_ms`, how long a page goes on behind an action
/// (default 600).
///
/// A message to the user is the answer and ends the task; what cannot be done is answered `N/A`. Then, or where a limit ends the episode, WebArena's judges
/// look at the answer, at where the window is and at what pages show: all of it right is the part `success`, 1.
#[derive(Debug)]
pub struct Site {
    setting: Arc<Setting>,
    windows: Windows,
    uses_tools: bool,
    play: Option<Play>,
}

#[derive(Debug)]
struct Setting {
    task: WebArenaTask,
    world: World,
    /// For the player by rules.
    problem: Option<Problem>,
    options: SiteOptions,
    actions: String,
    tools: Arc<[ToolSpec]>,
}

/// Whose pages they are.
#[derive(Debug)]
enum World {
    /// The sites that ship, anew in every episode.
    Seed(u64),
    /// Pages that do not change.
    Folder(Arc<Folder>),
    /// An application, started anew for every episode.
    Served(Box<Application>, Sandboxes),
}

#[derive(Debug)]
struct Play {
    episode: SiteEpisode,
    shown: SiteShown,
    answer: Option<String>,
    /// Whether the player by rules has pressed what it had to.
    has_pressed: bool,
    /// The application, where there is one.
    served: Option<Served>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: Option<u64>,
    task: Option<WebArenaTask>,
    world: Option<u64>,
    folder: Option<PathBuf>,
    serve: Option<Application>,
    actions: Option<Vec<String>>,
    viewport: Option<(u32, u32)>,
    #[serde(default)]
    screenshot: bool,
    settle_ms: Option<u32>,
}

impl Site {
    /// The registry's name of it.
    pub const NAME: &'static str = "site";

    /// Opens a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or it is on other sites;
    /// [`EnvironmentError::Browser`] where there is no browser, or the folder cannot be read.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let given =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let usual = SiteOptions::default();
        let options = SiteOptions {
            actions: given.actions.unwrap_or(usual.actions),
            viewport: given.viewport.unwrap_or(usual.viewport),
            has_screenshot: given.screenshot,
            settle_ms: given.settle_ms.unwrap_or(usual.settle_ms),
            axtree: usual.axtree,
        };
        if let Some(problem) = problem(&options) {
            return Err(refuse(problem));
        }
        let actions = ActionSet::new(&options.actions).map_err(refuse)?;
        let (of_task, problem, world) = match (given.seed, given.task) {
            (Some(seed), None) => {
                if given.world.is_some() || given.folder.is_some() || given.serve.is_some() {
                    let detail = "`world`, `folder` and `serve` are for a `task`".to_owned();
                    return Err(refuse(detail));
                }
                let problem = Problem::new(seed);
                (problem.task.clone(), Some(problem), World::Seed(seed))
            }
            (None, Some(of_task)) => {
                of_task.check().map_err(refuse)?;
                let world = match (&given.folder, given.world, given.serve) {
                    (Some(folder), None, None) => World::Folder(Arc::new(Folder::open(folder)?)),
                    (None, None, Some(application)) => {
                        if let Some(problem) = application.problem() {
                            return Err(refuse(problem));
                        }
                        let sandboxes = resources.sandboxes(Self::NAME)?.clone();
                        World::Served(Box::new(application), sandboxes)
                    }
                    (None, world, None) => World::Seed(world.unwrap_or(0)),
                    _ => {
                        let detail = "give one of `world`, `folder` and `serve`".to_owned();
                        return Err(refuse(detail));
                    }
                };
                (of_task, None, world)
            }
            _ => return Err(refuse("give either `seed` or `task`".to_owned())),
        };
        let elsewhere = of_task.start_url.split(" |AND| ").find(|url| !world.has(url));
        if let Some(url) = elsewhere {
            let there = match &world {
                World::Seed(_) => "http://forum.test, http://shop.test and http://map.test",
                World::Folder(_) | World::Served(..) => "http://site.test",
            };
            return Err(refuse(format!("it begins at `{url}`, and its sites are {there}")));
        }
        find_browser()?;
        let (tools, actions) = (actions.tools().into(), in_words(&actions));
        let setting = Setting { task: of_task, world, problem, options, actions, tools };
        let windows = resources.windows.clone();
        Ok(Self { setting: Arc::new(setting), windows, uses_tools: false, play: None })
    }

    /// The family of a task from a seed, or the sites of one that is given.
    pub(crate) fn kind(task: &Task) -> Option<String> {
        match task.parameters.get("seed").and_then(serde_json::Value::as_u64) {
            Some(seed) => Some(Problem::family_of(seed).to_owned()),
            None => {
                let sites = task.parameters.get("task")?.get("sites")?.as_array()?;
                let names: Vec<&str> = sites.iter().filter_map(serde_json::Value::as_str).collect();
                Some(names.join("-"))
            }
        }
    }

    /// Whether its pages are those of an application that runs in a sandbox.
    pub(crate) fn is_served(task: &Task) -> bool {
        task.environment == Self::NAME && task.parameters.get("serve").is_some()
    }

    async fn end(&mut self) -> Result<(), EnvironmentError> {
        let Some(Play { episode, served, .. }) = self.play.take() else { return Ok(()) };
        if matches!(self.setting.world, World::Seed(_)) {
            episode.leave();
            return Ok(());
        }
        // What other pages have stored goes with their window.
        drop(episode);
        match served {
            Some(served) => served.close().await,
            None => Ok(()),
        }
    }
}

/// What of the options is out of range.
pub(super) fn problem(options: &SiteOptions) -> Option<String> {
    let (width, height) = options.viewport;
    if !(200..=4000).contains(&width) || !(200..=4000).contains(&height) {
        return Some(format!("`viewport` is {width} by {height}, allowed are 200 to 4000"));
    }
    let settle_ms = options.settle_ms;
    (settle_ms > 60_000).then(|| format!("`settle_ms` is {settle_ms}, must be at most 60000"))
}

impl World {
    fn has(&self, url: &str) -> bool {
        match self {
            Self::Seed(seed) => Sites::new(Problem::world(*seed)).is_allowed(url),
            Self::Folder(folder) => folder.is_allowed(url),
            Self::Served(..) => super::served::is_its(url),
        }
    }
}

/// Fails where the sandbox of the application could not do its part, whatever pages have shown since.
async fn check(served: Option<Served>, world: &World) -> Result<(), EnvironmentError> {
    match (served, world) {
        (Some(served), World::Served(_, sandboxes)) => served.check(sandboxes).await,
        _ => Ok(()),
    }
}

impl Play {
    fn seen(&self) -> Seen {
        Seen::of_site(&self.shown, self.answer.is_some())
    }

    fn after(&mut self, shown: SiteShown) -> Seen {
        self.answer = self.answer.take().or_else(|| shown.answer.clone());
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
impl Environment for Site {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        let setting = &self.setting;
        match &setting.problem {
            Some(problem) => vec![problem.family.to_owned(), idle_tag(0.0)],
            None => {
                let mut tags = setting.task.sites.clone();
                tags.extend(setting.task.eval.eval_types.iter().cloned());
                tags.push(NO_ORACLE_TAG.to_owned());
                tags
            }
        }
    }

    fn time_rules(&self) -> TimeRules {
        let started = match &self.setting.world {
            World::Served(application, sandboxes) => application.start_time(sandboxes),
            World::Seed(_) | World::Folder(_) => Duration::ZERO,
        };
        TimeRules { reset: Some(RESET + started), step: Some(STEP), ..TimeRules::default() }
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
        self.end().await?;
        let Setting { task, world, options, actions, .. } = &*self.setting;
        let mut served = None;
        let server: Arc<dyn Server> = match world {
            World::Seed(seed) => Arc::new(Sites::new(Problem::world(*seed))),
            World::Folder(folder) => Arc::clone(folder) as _,
            World::Served(application, sandboxes) => {
                Arc::new(served.insert(application.start(sandboxes).await?).clone())
            }
        };
        let (browsers, waiting) = self.windows.browsers();
        let begun = SiteEpisode::begin(browsers, server, task.clone(), options.clone()).await;
        drop(waiting);
        let (episode, shown) = begun?;
        let play = Play { episode, shown, answer: None, has_pressed: false, served };
        check(play.served.clone(), &self.setting.world).await?;
        let words = (!self.uses_tools).then_some(actions.as_str());
        let first = play.seen().first(&task.intent, words);
        self.play = Some(play);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let expected = self.oracle_action();
        // Of what broke, the window is closed where it is dropped.
        let mut play = self.play.take().ok_or(misused("before reset"))?;
        if play.answer.is_some() {
            self.play = Some(play);
            return Err(misused("after the end"));
        }
        let Turn { observation, is_valid } = carry_out(&mut play, action).await?;
        check(play.served.clone(), &self.setting.world).await?;
        // What the player by rules clicks on is the button of a form.
        let is_click = |action: &Action| action.key().starts_with("click");
        play.has_pressed |=
            is_valid && expected.is_some_and(|it| is_click(&it) && it.key() == action.key());
        let terminated = play.answer.is_some();
        self.play = Some(play);
        Ok(Step {
            observation,
            rewards: Vec::new(),
            terminated,
            success: false,
            valid: is_valid,
            wall_time: start.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let start = Instant::now();
        let misused = EnvironmentError::Misused { call: "verify", when: "before reset" };
        let mut play = self.play.take().ok_or(misused)?;
        let answer = play.answer.clone().unwrap_or_default();
        let problem = self.setting.problem.as_ref();
        let is_plain = problem.is_none_or(|problem| problem.is_plain(&answer));
        let success = play.episode.judge(&answer).await? && is_plain;
        check(play.served.clone(), &self.setting.world).await?;
        // No step comes after it: the pages are not where they were.
        play.answer = Some(answer);
        self.play = Some(play);
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        Ok(Some(Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!(
                "{}: {}",
                self.setting.task.eval.eval_types.join(", "),
                if success { "holds" } else { "does not hold" }
            ),
            duration: start.elapsed(),
            ..Verdict::default()
        }))
    }

    fn oracle_action(&self) -> Option<Action> {
        let play = self.play.as_ref().filter(|play| play.answer.is_none())?;
        let problem = self.setting.problem.as_ref()?;
        let Play { shown, has_pressed, .. } = play;
        let text = next_site_action(problem, &shown.url, &shown.view, *has_pressed)?;
        Some(of_player(text, self.uses_tools))
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.end().await
    }
}
