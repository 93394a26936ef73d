//! One episode on a site.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use spar_core::ToolSpec;

use super::judge::{exact_match, fuzzy_match, must_include, url_match};
use super::webarena::{HtmlCheck, WebArenaTask};
use crate::{
    ActionSet, Actor, ActorOptions, AxOptions, Browsers, Input, Navigation, Performed, Server,
    View, ViewOptions, WebError, WindowSpec, look,
};

/// Asks a page, behind the tasks that stand before, whether all of it is there.
const READY: &str = "new Promise((done) => { const hop = new MessageChannel(); \
                     hop.port1.onmessage = () => done(document.readyState === 'complete'); hop.port2.postMessage(0); })";
/// How often a page is asked before it is looked at; at rest is one that has been ready so many times.
const MAX_ASKED: usize = 200;
const AT_REST: usize = 3;
/// How long answers that take their time are waited for.
const MOST_AWAITED: Duration = Duration::from_secs(15);
const BETWEEN: Duration = Duration::from_millis(8);

/// How episodes are played.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteOptions {
    /// The sets of actions. Default WebArena's.
    pub actions: Vec<String>,
    /// Width and height of the window in pixels. Default 1280 by 720.
    pub viewport: (u32, u32),
    /// What the accessibility tree tells beside its defaults.
    pub axtree: AxOptions,
    /// Whether a screenshot is shown.
    pub has_screenshot: bool,
    /// How long a page goes on behind an action before it is looked at, in milliseconds. Default 600.
    pub settle_ms: u32,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            actions: vec!["webarena".to_owned()],
            viewport: (1280, 720),
            axtree: AxOptions::default(),
            has_screenshot: false,
            settle_ms: 600,
        }
    }
}

/// An episode under way.
#[derive(Debug)]
pub struct SiteEpisode {
    actor: Actor,
    server: Arc<dyn Server>,
    task: WebArenaTask,
    options: SiteOptions,
}

/// What an episode shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SiteShown {
    /// The text of the accessibility tree.
    pub text: String,
    /// The elements.
    pub view: View,
    /// The address of the tab that is looked at.
    pub url: String,
    /// A picture as PNG, where one was asked for.
    pub screenshot: Option<Vec<u8>>,
    /// The answer, which ends the episode.
    pub answer: Option<String>,
    /// Why the action was not carried out.
    pub error: Option<String>,
}

impl SiteEpisode {
    /// Begins a task on the sites that `server` answers for, which are its own.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part, or the task cannot be begun or judged.
    pub async fn begin(
        browsers: &Browsers,
        server: Arc<dyn Server>,
        task: WebArenaTask,
        options: SiteOptions,
    ) -> Result<(Self, SiteShown), WebError> {
        let refuse = |detail: String| WebError::Pages { benchmark: "a site", detail };
        task.check().map_err(refuse)?;
        let actions = ActionSet::new(&options.actions).map_err(refuse)?;
        let spec =
            WindowSpec { viewport: options.viewport, clock_start: Some(WindowSpec::CLOCK_START) };
        let window = browsers.window(&spec, Arc::clone(&server)).await?;
        let input = Input::Devices;
        let actor_options =
            ActorOptions { actions, scale: 1.0, settle_ms: options.settle_ms, input };
        let actor = Actor::new(window, Arc::clone(&server), actor_options);
        for (place, url) in task.start_url.split(" |AND| ").enumerate() {
            if !server.is_allowed(url) {
                return Err(refuse(format!("`{url}` is none of its addresses")));
            }
            let tab =
                if place == 0 { actor.window().tab()? } else { actor.window().new_tab().await? };
            if let Navigation::Failed(error) = tab.navigate(url).await? {
                return Err(refuse(format!("`{url}` was not loaded: {error}")));
            }
        }
        actor.window().focus_tab(0).await?;
        let mut episode = Self { actor, server, task, options };
        let shown = episode.look(None, None).await?;
        Ok((episode, shown))
    }

    /// The task.
    pub fn task(&self) -> &WebArenaTask {
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
    pub async fn act(&mut self, text: &str) -> Result<SiteShown, WebError> {
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
    ) -> Result<SiteShown, WebError> {
        let performed = self.actor.perform_call(name, arguments).await?;
        self.after(performed).await
    }

    async fn after(&mut self, performed: Performed) -> Result<SiteShown, WebError> {
        let (answer, error) = match performed {
            Performed::Done => (None, None),
            Performed::Message(text) => (Some(text), None),
            // As WebArena has it, what cannot be done is answered so.
            Performed::Infeasible(_) => (Some("N/A".to_owned()), None),
            Performed::Failed(text) => (None, Some(text)),
        };
        self.look(answer, error).await
    }

    /// Waits until nothing that an action has set off is under way: a form is sent in a task of its own, and what the browser tells
    /// of that comes on another way than its answers.
    async fn come_to_rest(&self) -> Result<(), WebError> {
        let (mut ready, began) = (0, Instant::now());
        for asked in 0.. {
            let tab = self.actor.window().tab()?;
            // Answers that take their time are waited for, and bounded by whoever gives them.
            if asked >= MAX_ASKED && !(tab.is_awaiting() && began.elapsed() < MOST_AWAITED) {
                break;
            }
            if tab.is_loading() {
                tab.wait_until_loaded().await?;
                ready = 0;
            }
            match tab.evaluate(READY).await {
                Ok(Value::Bool(true)) if !tab.is_awaiting() => ready += 1,
                // A page that goes takes the question with it.
                Ok(_) | Err(WebError::Script { .. } | WebError::Refused { .. }) => ready = 0,
                Err(error) => return Err(error),
            }
            if ready == AT_REST {
                break;
            }
            tokio::time::sleep(BETWEEN).await;
        }
        Ok(())
    }

    async fn look(
        &mut self,
        answer: Option<String>,
        error: Option<String>,
    ) -> Result<SiteShown, WebError> {
        let before = self.actor.settle().await?.expression();
        self.come_to_rest().await?;
        let tab = self.actor.window().tab()?;
        let mut options =
            ViewOptions { axtree: Some(self.options.axtree), colors: false, scale: 1.0, before };
        let looked = match look(&tab, &options).await {
            // A page that goes elsewhere while it is read takes the script with it: what comes is read.
            Err(WebError::Script { .. } | WebError::Refused { .. }) => {
                tab.wait_until_loaded().await?;
                options.before = String::new();
                look(&tab, &options).await?
            }
            looked => looked?,
        };
        let mut screenshot = None;
        if self.options.has_screenshot {
            screenshot = Some(tab.screenshot(self.options.viewport, 1.0).await?);
        }
        let text = match looked.view.is_too_large {
            true => "The page has more elements than can be shown.".to_owned(),
            false => looked.axtree.unwrap_or_default(),
        };
        Ok(SiteShown { text, view: looked.view, url: tab.url(), screenshot, answer, error })
    }

    /// Judges the episode by its answer, by where the window is, and by what pages show; every kind that the task names has to
    /// be satisfied.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part.
    pub async fn judge(&mut self, answer: &str) -> Result<bool, WebError> {
        let url = self.actor.window().tab()?.url();
        let eval = self.task.eval.clone();
        for kind in &eval.eval_types {
            let holds = match kind.as_str() {
                "string_match" => says(eval.reference_answers.as_ref(), answer),
                "url_match" => url_match(eval.reference_url.as_deref().unwrap_or_default(), &url),
                _ => self.shows(eval.program_html.as_deref().unwrap_or_default()).await?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn shows(&self, checks: &[HtmlCheck]) -> Result<bool, WebError> {
        for check in checks {
            let tab = self.actor.window().tab()?;
            if check.url != "last" {
                if !self.server.is_allowed(&check.url) {
                    return Ok(false);
                }
                if let Navigation::Failed(_) = tab.navigate(&check.url).await? {
                    return Ok(false);
                }
                self.come_to_rest().await?;
            }
            let expression = match check.locator.trim() {
                "" => "document.documentElement.outerHTML",
                locator => locator,
            };
            // What is not there is nothing.
            let text = match tab.evaluate(&format!("String({expression})")).await {
                Ok(value) => value.as_str().unwrap_or_default().to_owned(),
                Err(WebError::Script { .. }) => String::new(),
                Err(error) => return Err(error),
            };
            let contents = &check.required_contents;
            let is_exact =
                contents.exact_match.as_ref().is_none_or(|whole| exact_match(whole, &text));
            let includes =
                contents.must_include.as_deref().unwrap_or_default().iter().all(|wanted| {
                    wanted.split(" |OR| ").any(|one| must_include(one, &text, false))
                });
            if !is_exact || !includes {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the window back.
    pub fn leave(self) {
        self.actor.leave();
    }
}

fn says(wanted: Option<&super::webarena::ReferenceAnswers>, answer: &str) -> bool {
    let Some(wanted) = wanted else { return false };
    let texts = wanted.must_include.as_deref().unwrap_or_default();
    let Some(fuzzy) = wanted.fuzzy_texts() else { return false };
    wanted.exact_match.as_ref().is_none_or(|whole| exact_match(whole, answer))
        && texts.iter().all(|text| must_include(text, answer, texts.len() == 1))
        && fuzzy.iter().all(|text| fuzzy_match(text, answer))
}
