//! The shop as pages in a real browser.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolSpec};
use spar_python::repr_str;
use spar_shop::{PurchaseReward, Session, ShopAction, oracle, reader};
use spar_tasks::Task;
use spar_web::site::{SiteEpisode, SiteOptions, SiteShown, WebArenaTask, parameter};
use spar_web::{ActionSet, Request, Response, Server, WebError, find_browser};

use super::Windows;
use super::miniwob::{RESET, STEP};
use super::turn::{Place, Seen, Turn, carry_out, in_words, of_player};
use crate::environment::TimeRules;
use crate::{Environment, EnvironmentError, Resources};

/// The host of its pages.
const HOST: &str = "webshop.test";
/// Where visits begin.
const START: &str = "http://webshop.test/";
/// Pages of one episode that are kept; behind so many nothing leads on.
const MOST_PAGES: usize = 1_000;
/// Parameters of this environment; the others are those of `shop`.
const OWN: [&str; 4] = ["actions", "viewport", "screenshot", "settle_ms"];

/// The shop of the environment `shop`, as pages of HTML.
///
/// Parameters: those of `shop`, and `actions`, BrowserGym's sets (default `bid` and `nav`), `viewport`, width and height in pixels (default 1280 and 720),
/// `screenshot` (default false) and `settle_ms` (default 600), as those of `site`.
///
/// The first purchase ends the task and earns the reward part `purchase`, 0 to 1, by WebShop's rule. Every page has an address of its own, from which one can
/// go on, as often as one likes; a message to the user ends the task with nothing.
#[derive(Debug)]
pub struct WebShop {
    setting: Arc<Setting>,
    windows: Windows,
    uses_tools: bool,
    play: Option<Play>,
}

#[derive(Debug)]
struct Setting {
    /// A visit that has not begun.
    beginning: Session,
    task: WebArenaTask,
    options: SiteOptions,
    actions: String,
    tools: Arc<[ToolSpec]>,
}

#[derive(Debug)]
struct Play {
    episode: SiteEpisode,
    pages: Arc<ShopPages>,
    shown: SiteShown,
    is_over: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    actions: Option<Vec<String>>,
    viewport: Option<(u32, u32)>,
    #[serde(default)]
    screenshot: bool,
    settle_ms: Option<u32>,
}

/// The pages of one episode: `/visit/N` is the Nth that came about.
#[derive(Debug)]
struct ShopPages(Mutex<Visits>);

#[derive(Debug)]
struct Visits {
    pages: Vec<Session>,
    /// The first purchase.
    bought: Option<PurchaseReward>,
}

impl WebShop {
    /// The registry's name of it.
    pub const NAME: &'static str = "web-shop";

    /// Opens the shop of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or its files cannot be read;
    /// [`EnvironmentError::Browser`] where there is no browser.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let (mut own, mut of_shop) = (serde_json::Map::new(), task.parameters.clone());
        if let Value::Object(all) = &mut of_shop {
            for name in OWN {
                own.extend(all.remove_entry(name));
            }
        }
        let given = Parameters::deserialize(Value::Object(own))
            .map_err(|error| refuse(error.to_string()))?;
        let (catalogue, goal, showing) = crate::shop::beginning(&of_shop).map_err(refuse)?;
        let usual = SiteOptions::default();
        let options = SiteOptions {
            actions: given.actions.unwrap_or_else(|| vec!["bid".to_owned(), "nav".to_owned()]),
            viewport: given.viewport.unwrap_or(usual.viewport),
            has_screenshot: given.screenshot,
            settle_ms: given.settle_ms.unwrap_or(usual.settle_ms),
            axtree: usual.axtree,
        };
        if let Some(problem) = super::site::problem(&options) {
            return Err(refuse(problem));
        }
        let actions = ActionSet::new(&options.actions).map_err(refuse)?;
        find_browser()?;
        // Nobody asks WebArena's judges: the shop tells what was bought.
        let of_browser = json!({
            "task_id": 0, "intent": goal.instruction, "start_url": START,
            "eval": { "eval_types": ["url_match"], "reference_url": START },
        });
        let setting = Setting {
            task: WebArenaTask::deserialize(of_browser)
                .map_err(|error| refuse(error.to_string()))?,
            beginning: Session::new(catalogue, goal, showing),
            actions: in_words(&actions),
            tools: actions.tools().into(),
            options,
        };
        let windows = resources.windows.clone();
        Ok(Self { setting: Arc::new(setting), windows, uses_tools: false, play: None })
    }

    fn end(&mut self) {
        if let Some(play) = self.play.take() {
            play.episode.leave();
        }
    }

    /// What a player of the shop in words would do here, by what stands on the page.
    fn by_player(&self, player: impl Fn(&Session) -> Option<String>) -> Option<Action> {
        let play = self.play.as_ref().filter(|play| !play.is_over)?;
        let session = play.pages.at(&play.shown.url)?;
        let wanted = player(&session)?;
        let (elements, view) = (play.shown.view.elements(), &play.shown.view);
        let pressed = |tag: &str, name: &str| {
            let is_it = |place: &usize| {
                elements[*place].tag == tag && view.text_of(*place).to_lowercase() == name
            };
            let place = (0..elements.len()).find(is_it)?;
            Some(format!("click({})", repr_str(&elements[place].bid)))
        };
        let text = match ShopAction::read(&wanted)? {
            ShopAction::Search(words) => {
                let field = elements.iter().find(|element| element.tag == "input");
                match field {
                    None => pressed("button", "back to search")?,
                    Some(field) if field.value.as_deref() == Some(words) => {
                        pressed("button", "search")?
                    }
                    Some(field) => format!("fill({}, {})", repr_str(&field.bid), repr_str(words)),
                }
            }
            ShopAction::Click(what) => {
                let what = what.to_lowercase();
                pressed("button", &what).or_else(|| pressed("a", &what))?
            }
        };
        Some(of_player(text, self.uses_tools))
    }
}

impl ShopPages {
    fn new(beginning: Session) -> Self {
        Self(Mutex::new(Visits { pages: vec![beginning], bought: None }))
    }

    fn bought(&self) -> Option<PurchaseReward> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bought
    }

    /// The visit that an address shows.
    fn at(&self, url: &str) -> Option<Session> {
        let path = path(url)?;
        let visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, _) = place(path.split('?').next()?)?;
        visits.pages.get(number).cloned()
    }
}

impl Visits {
    /// Carries out an action from a page: the number of the page that it leads to.
    fn act(&mut self, number: usize, action: ShopAction<'_>) -> usize {
        let mut session = self.pages[number].clone();
        // What was bought stays bought, and nothing comes behind it.
        let can_go_on = self.bought.is_none() && self.pages.len() < MOST_PAGES;
        if !can_go_on || !session.act(action) {
            return number;
        }
        self.bought = session.bought().copied();
        self.pages.push(session);
        self.pages.len() - 1
    }
}

/// The path and query of an address of the shop.
fn path(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://")?.strip_prefix(HOST)?;
    (rest.is_empty() || rest.starts_with(['/', '?', '#'])).then_some(rest)
}

/// The number of a page, and what is done from it.
fn place(path: &str) -> Option<(usize, &str)> {
    if path.is_empty() || path == "/" {
        return Some((0, ""));
    }
    let rest = path.strip_prefix("/visit/")?;
    let (number, rest) = rest.split_once('/').unwrap_or((rest, ""));
    Some((number.parse().ok()?, rest))
}

impl Server for ShopPages {
    fn answer(&self, request: &Request) -> Option<Response> {
        let path = path(&request.url)?;
        if request.method != "GET" {
            return Some(Response { status: 405, ..Response::not_found() });
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((number, doing)) = place(path).filter(|(number, _)| *number < visits.pages.len())
        else {
            return Some(Response::not_found());
        };
        let to = match doing {
            "" => {
                let html = visits.pages[number].html(&format!("/visit/{number}"));
                return Some(Response::html(html));
            }
            "search" => parameter(query, "words")
                .filter(|words| !words.is_empty())
                .map(|words| visits.act(number, ShopAction::Search(&words))),
            "click" => {
                parameter(query, "what").map(|what| visits.act(number, ShopAction::Click(&what)))
            }
            _ => return Some(Response::not_found()),
        };
        Some(Response::redirect(format!("/visit/{}", to.unwrap_or(number))))
    }

    fn is_allowed(&self, url: &str) -> bool {
        url == "about:blank" || path(url).is_some()
    }
}

impl Play {
    fn seen(&self) -> Seen {
        Seen::of_site(&self.shown, self.is_over)
    }

    fn after(&mut self, shown: SiteShown) -> Seen {
        self.is_over |= shown.answer.is_some() || self.pages.bought().is_some();
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
impl Environment for WebShop {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        let goal = self.setting.beginning.goal();
        vec![format!("demands-{}", (goal.attributes.len() + goal.options.len()).min(9))]
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
        let Setting { beginning, task, options, actions, .. } = &*self.setting;
        let pages = Arc::new(ShopPages::new(beginning.clone()));
        let server: Arc<dyn Server> = Arc::clone(&pages) as _;
        let (browsers, waiting) = self.windows.browsers();
        let begun = SiteEpisode::begin(browsers, server, task.clone(), options.clone()).await;
        drop(waiting);
        let (episode, shown) = begun?;
        let play = Play { episode, pages, shown, is_over: false };
        let words = (!self.uses_tools).then_some(actions.as_str());
        let first = play.seen().first(&task.intent, words);
        self.play = Some(play);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let mut play = self.play.take().ok_or(misused("before reset"))?;
        if play.is_over {
            self.play = Some(play);
            return Err(misused("after the end"));
        }
        // Of what broke, the window is closed where it is dropped.
        let Turn { observation, is_valid } = carry_out(&mut play, action).await?;
        let bought = play.pages.bought().filter(|_| play.is_over);
        let earned = bought.map_or(0.0, |reward| reward.total);
        let part = RewardPart { name: "purchase".to_owned(), value: earned };
        let terminated = play.is_over;
        self.play = Some(play);
        Ok(Step {
            observation,
            rewards: if earned > 0.0 { vec![part] } else { Vec::new() },
            terminated,
            success: bought.is_some_and(|reward| reward.is_success()),
            valid: is_valid,
            wall_time: start.elapsed(),
        })
    }

    fn oracle_action(&self) -> Option<Action> {
        self.by_player(oracle)
    }

    /// The reader, as in `shop`.
    fn expert_action(&mut self) -> Option<Action> {
        self.by_player(reader)
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.end();
        Ok(())
    }
}
