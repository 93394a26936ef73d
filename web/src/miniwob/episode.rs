//! One episode.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use spar_core::ToolSpec;

use super::pages::{ORIGIN, Pages};
use super::seed::page_seed;
use crate::connection::Reply;
use crate::{
    ActionSet, Actor, ActorOptions, AxOptions, Browsers, Due, Input, Looked, Navigation, Performed,
    Server, Tab, View, ViewOptions, WebError, WindowSpec, look,
};

/// The window as BrowserGym opens it, in pixels.
const VIEWPORT: (u32, u32) = (332, 214);
/// What the window of BrowserGym shows from its first screenshot on, in which its size is lost (measured with Chromium 156).
const GROWN: (u32, u32) = (780, 493);
/// Pixels of screenshots, and of places in actions, to a pixel of the page, as BrowserGym has it.
const SCALE: f64 = 1.5;
const BEGIN: &str = include_str!("../script/miniwob.js");
const PICTURES: &str = include_str!("../script/pictures.js");
/// What is asked of the page behind every action. Where the document is another one than the episode began in, it is over.
const STATE: &str = "window.__spar_miniwob ? [__spar_miniwob.episode, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_GLOBAL, WOB_DONE_GLOBAL] : null";

/// How an episode begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// With the page loaded anew, which shows what BrowserGym shows.
    #[default]
    Load,
    /// In the page of the episode before where the task forgets that [wholly](super::TaskRow::is_safe_in_page), else as `Load`.
    InPage,
}

/// What an episode earns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardKind {
    /// 1 where the page's own reward, time left aside, is above 0, and else 0: BrowserGym's.
    #[default]
    Success,
    /// The page's reward, from -1 to 1, time left aside.
    Raw,
    /// The page's reward, where most tasks take off what of their time has passed.
    TimeScaled,
}

/// What is shown as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observing {
    /// The accessibility tree, as BrowserGym writes it.
    #[default]
    Axtree,
    /// The elements, as HTML.
    Dom,
    /// Both, the elements first.
    Both,
    /// No text, for whoever looks at screenshots.
    None,
}

/// How episodes are played.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How they begin.
    pub reset: Reset,
    /// What they earn.
    pub reward: RewardKind,
    /// What is shown as text.
    pub observing: Observing,
    /// What the accessibility tree tells beside its defaults.
    pub axtree: AxOptions,
    /// Whether a screenshot is shown.
    pub has_screenshot: bool,
    /// The sets of actions; `noop` is always there.
    pub actions: Vec<String>,
    /// With what elements are clicked and filled.
    pub input: Input,
    /// The time of an episode in milliseconds, after which the page ends it. Default BrowserGym's million; MiniWoB++'s own
    /// is 10000 for most tasks.
    pub time_ms: u32,
    /// How long the page goes on behind an action before it is looked at, in milliseconds. Default 600.
    pub settle_ms: u32,
    /// Whether the window grows behind the first look as BrowserGym's does, from 332 by 214 to 780 by 493 pixels, so that more is in
    /// sight and less is scrolled. Screenshots show what the small window does. With [`Input::Script`], to which that makes no
    /// difference, it never does. Default true.
    pub grows: bool,
    /// When the page's own clock begins, in milliseconds since 1970; absent, the page has the machine's clock.
    pub clock_start: Option<i64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reset: Reset::Load,
            reward: RewardKind::Success,
            observing: Observing::Axtree,
            axtree: AxOptions::default(),
            has_screenshot: false,
            actions: ["chat", "infeas", "bid", "nav", "tab"].map(str::to_owned).to_vec(),
            input: Input::Devices,
            time_ms: 1_000_000,
            settle_ms: 600,
            grows: true,
            clock_start: Some(WindowSpec::CLOCK_START),
        }
    }
}

/// An episode under way.
#[derive(Debug)]
pub struct Episode {
    actor: Actor,
    pages: Arc<Pages>,
    task: String,
    options: Options,
    goal: String,
    tab: Tab,
    /// The number that the page gives the episode.
    number: u64,
    is_over: bool,
    is_grown: bool,
    /// The window grows, for which nobody has waited yet.
    growing: Option<Reply>,
}

/// What an episode shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    /// The text that was asked for.
    pub text: String,
    /// The elements.
    pub view: View,
    /// A picture as PNG, where one was asked for.
    pub screenshot: Option<Vec<u8>>,
    /// What the episode has earned; anything but 0 only at its end.
    pub reward: f64,
    /// Whether the page's own reward is above 0.
    pub is_success: bool,
    /// Whether it is over.
    pub is_over: bool,
    /// Why the action was not carried out.
    pub error: Option<String>,
}

impl Options {
    /// What is wrong with them.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = ActionSet::new(&self.actions).err().into_iter().collect();
        if self.settle_ms > 60_000 {
            problems.push(format!("settle_ms is {}, must be at most 60000", self.settle_ms));
        }
        if self.time_ms == 0 {
            problems.push("time_ms is 0, must be at least 1".to_owned());
        }
        problems
    }

    fn reads_tree(&self) -> bool {
        matches!(self.observing, Observing::Axtree | Observing::Both)
    }

    fn view_options(&self, task: &str, before: String) -> ViewOptions {
        ViewOptions {
            axtree: self.reads_tree().then_some(self.axtree),
            colors: super::tasks::needs_colors(task),
            scale: SCALE,
            before,
        }
    }
}

impl Episode {
    /// Begins an episode of a task with BrowserGym's seed.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part, or there is no such task.
    pub async fn begin(
        browsers: &Browsers,
        pages: &Arc<Pages>,
        task: &str,
        seed: u64,
        options: Options,
    ) -> Result<(Self, Shown), WebError> {
        if !pages.tasks().iter().any(|known| known == task) {
            let detail = format!("they have no task `{task}`");
            return Err(WebError::Pages { benchmark: "MiniWoB++", detail });
        }
        let actions = ActionSet::new(&options.actions);
        let actions =
            actions.map_err(|detail| WebError::Pages { benchmark: "MiniWoB++", detail })?;
        let spec = WindowSpec { viewport: VIEWPORT, clock_start: options.clock_start };
        let server: Arc<dyn Server> = Arc::clone(pages) as _;
        let window = browsers.window(&spec, Arc::clone(&server)).await?;
        let actor = Actor::new(
            window,
            server,
            ActorOptions {
                actions,
                scale: SCALE,
                settle_ms: options.settle_ms,
                input: options.input,
            },
        );
        let tab = actor.window().tab()?;
        let mut episode = Self {
            actor,
            pages: Arc::clone(pages),
            task: task.to_owned(),
            options,
            goal: String::new(),
            tab,
            number: 0,
            is_over: false,
            is_grown: false,
            growing: None,
        };
        let shown = episode.load(seed).await?;
        Ok((episode, shown))
    }

    /// Begins another episode in the same window.
    ///
    /// # Errors
    ///
    /// As [`Episode::begin`]; the window cannot be used any longer then.
    pub async fn again(&mut self, seed: u64) -> Result<Shown, WebError> {
        self.has_grown().await?;
        let stays = !self.tab.is_closed() && !self.tab.is_loading();
        let is_same = stays && is_at(&self.tab, &self.task);
        let is_safe = super::tasks::is_safe_in_page(&self.task, self.options.reads_tree());
        if self.options.reset == Reset::InPage && is_same && is_safe && self.has_one_tab() {
            return self.start(seed).await;
        }
        // It takes a sixth of the time of a fresh page, and is left out where there can be nothing.
        if self.pages.keep_anything() {
            self.forget_stored().await?;
        }
        self.load(seed).await
    }

    /// Whether an episode of another task may begin in the window with [`Episode::again_with`].
    pub fn has_one_tab(&self) -> bool {
        self.actor.window().tabs().len() == 1
    }

    /// Begins an episode of another task in the same window.
    ///
    /// # Errors
    ///
    /// As [`Episode::begin`]; the window cannot be used any longer then.
    pub async fn again_with(&mut self, task: &str, seed: u64) -> Result<Shown, WebError> {
        task.clone_into(&mut self.task);
        self.again(seed).await
    }

    /// The tab that it is played in.
    #[cfg(test)]
    pub(super) fn tab(&self) -> &Tab {
        &self.tab
    }

    /// What the task demands.
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// The task's name.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The tools by which actions are called.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.actor.tools()
    }

    /// Carries out the action that stands in a text.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part.
    pub async fn act(&mut self, text: &str) -> Result<Shown, WebError> {
        self.has_grown().await?;
        let performed = self.actor.perform_text(text).await?;
        self.after(performed).await
    }

    /// Carries out the action that a call of a tool is.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part.
    pub async fn call(
        &mut self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Shown, WebError> {
        self.has_grown().await?;
        let performed = self.actor.perform_call(name, arguments).await?;
        self.after(performed).await
    }

    /// Gives the window back.
    pub fn leave(self) {
        self.actor.leave();
    }

    /// Forgets what pages have stored, cookies included.
    async fn forget_stored(&mut self) -> Result<(), WebError> {
        let window = self.actor.window();
        // What is the tab's alone is forgotten where it shows one of these pages; no command clears it from elsewhere.
        let of_tab = "try { sessionStorage.clear(); } catch { }";
        drop(window.tab()?.send_expression(of_tab));
        window.clear_origin(ORIGIN).await
    }

    async fn load(&mut self, seed: u64) -> Result<Shown, WebError> {
        self.tab = self.actor.window().tab()?;
        // What was small and had no frames is so again: its tree is asked for at once.
        let is_plain = is_at(&self.tab, &self.task) && self.tab.is_plain();
        // Meanwhile the window is made as small as a new one.
        let shrunk = std::mem::take(&mut self.is_grown).then(|| self.tab.send_viewport(VIEWPORT));
        let url = Pages::url(&self.task);
        if let Navigation::Failed(error) = self.tab.navigate(&url).await? {
            let detail = format!("`{url}` was not loaded: {error}");
            return Err(WebError::Pages { benchmark: "MiniWoB++", detail });
        }
        if let Some(shrunk) = shrunk {
            shrunk.within(self.tab.patience()).await?;
        }
        self.tab.set_plain(is_plain);
        // Elements are as large as their pictures: these are there before anybody looks, however long that takes.
        let pictures = self.pages.pictures(&self.task);
        if !pictures.is_empty() {
            self.tab.evaluate(&format!("({PICTURES})({})", json!(pictures))).await?;
        }
        self.start(seed).await
    }

    async fn start(&mut self, seed: u64) -> Result<Shown, WebError> {
        self.actor.let_go();
        if std::mem::take(&mut self.is_grown) {
            self.tab.set_viewport(VIEWPORT).await?;
        }
        let (drawn, time, task) = (page_seed(seed), self.options.time_ms, Value::from(&*self.task));
        self.number = 0;
        self.is_over = false;
        // Half of what an action gets: BrowserGym makes a few calls and does not wait.
        let begin = format!(
            "((begun) => {{ window.__spar_clock && __spar_clock.advance({}); return begun; }})(({BEGIN})({drawn}, {time}, {task}, {}))",
            self.options.settle_ms / 2,
            super::tasks::renews(&self.task)
        );
        let tab = self.actor.window().tab()?;
        // Nobody goes back to what was played, or to the empty page, before: the window may be fresh or not.
        let forgotten = tab.send("Page.resetNavigationHistory", Value::Null);
        let mut looked = look(&tab, &self.view_options(&begin)).await?;
        forgotten.within(tab.patience()).await?;
        let begun = told(&mut looked);
        self.goal = begun.get("goal").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.show(&tab, looked, None).await
    }

    /// Waits until the window has grown.
    async fn has_grown(&mut self) -> Result<(), WebError> {
        match self.growing.take() {
            Some(growing) => growing.within(self.tab.patience()).await.map(drop),
            None => Ok(()),
        }
    }

    fn view_options(&self, before: &str) -> ViewOptions {
        self.options.view_options(&self.task, format!("[{before}, {STATE}]"))
    }

    async fn after(&mut self, performed: Performed) -> Result<Shown, WebError> {
        let (mut error, mut is_given_up) = (None, false);
        match performed {
            Performed::Done | Performed::Message(_) => {}
            Performed::Infeasible(_) => is_given_up = true,
            Performed::Failed(text) => error = Some(text),
        }
        let due = self.actor.settle().await?;
        let mut shown = self.look(&due, error).await?;
        if is_given_up {
            shown.is_over = true;
            self.is_over = true;
        }
        Ok(shown)
    }

    /// Lets the page go on, and reads it.
    async fn look(&mut self, due: &Due, error: Option<String>) -> Result<Shown, WebError> {
        let tab = self.actor.window().tab()?;
        let documents = tab.documents();
        let (looked, error) = match look(&tab, &self.view_options(&due.expression())).await {
            Ok(mut looked) => {
                let error = error.or(due.error(&told(&mut looked))?);
                let has_left = due.has_action() && tab.is_loading();
                ((!has_left).then_some(looked), error)
            }
            // In a page that stays what it is the action's script has raised.
            Err(WebError::Script { message })
                if due.has_action() && !tab.is_loading() && tab.documents() == documents =>
            {
                let raised = message.lines().next().unwrap_or_default().to_owned();
                (None, error.or(Some(format!("Error: {raised}"))))
            }
            // A page that goes elsewhere while it is read takes the script with it; a command is refused where that is so.
            Err(WebError::Script { .. } | WebError::Refused { .. }) => (None, error),
            Err(error) => return Err(error),
        };
        let looked = match looked {
            Some(looked) => looked,
            // What comes is read.
            None => {
                tab.wait_until_loaded().await?;
                let rest = due.without_action().expression();
                let mut looked = look(&tab, &self.view_options(&rest)).await?;
                told(&mut looked);
                looked
            }
        };
        self.show(&tab, looked, error).await
    }

    /// What was read off the page, and what it earns.
    async fn show(
        &mut self,
        tab: &Tab,
        looked: Looked,
        error: Option<String>,
    ) -> Result<Shown, WebError> {
        let Looked { view, axtree, before: state } = looked;
        let number = |at: usize| state.get(at).and_then(Value::as_f64);
        let episode = number(0).map(|number| number as u64);
        if self.number == 0 {
            self.number = episode.unwrap_or(0);
        }
        // Another tab, another address or another document: nothing is earned there.
        let is_left = tab.target() != self.tab.target()
            || !is_at(tab, &self.task)
            || episode != Some(self.number);
        let (raw, scaled) = (number(1).unwrap_or(0.0), number(2).unwrap_or(0.0));
        let is_done = state.get(3).and_then(Value::as_bool).unwrap_or(false);
        let is_over = is_left || is_done;
        let is_success = is_done && !is_left && raw > 0.0 && !self.is_over;
        let reward = match self.options.reward {
            _ if !is_done || is_left || self.is_over => 0.0,
            RewardKind::Success => f64::from(u8::from(is_success)),
            RewardKind::Raw => raw,
            RewardKind::TimeScaled => scaled,
        };
        self.is_over |= is_over;
        let mut screenshot = None;
        if self.options.has_screenshot {
            if self.is_grown {
                tab.set_viewport(VIEWPORT).await?;
            }
            screenshot = Some(tab.screenshot(VIEWPORT, SCALE).await?);
        }
        let is_small = !self.is_grown || self.options.has_screenshot;
        let grows = self.options.grows && self.options.input == Input::Devices;
        if grows && is_small && !is_left {
            self.growing = Some(tab.send_viewport(GROWN));
            self.is_grown = true;
        }
        let text = self.text(&view, axtree);
        Ok(Shown { text, view, screenshot, reward, is_success, is_over, error })
    }

    fn text(&self, view: &View, axtree: Option<String>) -> String {
        if view.is_too_large {
            return "The page has more elements than can be shown.".to_owned();
        }
        let axtree = axtree.unwrap_or_default();
        match self.options.observing {
            Observing::Axtree => axtree,
            Observing::Dom => view.dom_text(),
            Observing::Both => format!("{}\n\n{axtree}", view.dom_text()),
            Observing::None => String::new(),
        }
    }
}

/// Takes what was told before the state, which alone is left.
fn told(looked: &mut Looked) -> Value {
    let parts = looked.before.as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut parts = parts.into_iter();
    let told = parts.next().unwrap_or_default();
    looked.before = parts.next().unwrap_or_default();
    told
}

/// Whether a tab shows the page of a task, wherever on it: links to `#` lead to no other one.
fn is_at(tab: &Tab, task: &str) -> bool {
    tab.url().split('#').next() == Some(Pages::url(task).as_str())
}
