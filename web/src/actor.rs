//! Carries out actions in a window.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use spar_core::ToolSpec;

use crate::action::{Act, ActionSet};
use crate::browsers::LentWindow;
use crate::hands::{Button, Hands, UnknownKey, insert_text};
use crate::page::ask;
use crate::tab::{Navigation, Tab};
use crate::window::MAX_TABS;
use crate::{ActionError, Server, WebError};
use std::sync::Arc;

/// With what elements are clicked and filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// The browser's mouse and keyboard, as BrowserGym has it.
    #[default]
    Devices,
    /// Events that a script makes in the page, as MiniWoB++'s own environment has it: elements are clicked wherever they are and
    /// whatever is in front of them. Plain clicks, `fill`, `clear`, `focus` and `select_option` are carried out so, in one question to the
    /// page together with what it shows then; other actions need the devices.
    Script,
}

/// How actions are carried out.
#[derive(Debug, Clone)]
pub struct ActorOptions {
    /// The actions there are.
    pub actions: ActionSet,
    /// Pixels in which places are given, to a pixel of the page; BrowserGym's screenshots of MiniWoB++ are magnified by 1.5.
    pub scale: f64,
    /// How long pages go on behind each action before they are looked at, in milliseconds. BrowserGym waits 500, and about
    /// 100 for each call of its browser.
    pub settle_ms: u32,
    /// With what elements are clicked and filled.
    pub input: Input,
}

/// Somebody at a window.
#[derive(Debug)]
pub struct Actor {
    window: LentWindow,
    server: Arc<dyn Server>,
    hands: Hands,
    options: ActorOptions,
    /// Milliseconds by which the page is to go on before it is looked at.
    due_ms: f64,
    /// An action that a script is to carry out before.
    scripted: Option<Scripted>,
}

/// An action that a script carries out.
#[derive(Debug)]
struct Scripted {
    call: String,
    purpose: Purpose,
    bid: String,
}

/// What is evaluated in a page before it is looked at.
#[derive(Debug, Default)]
pub struct Due {
    scripted: Option<Scripted>,
    advance: String,
}

impl Due {
    /// The expression, for [`ViewOptions::before`](crate::ViewOptions::before).
    pub fn expression(&self) -> String {
        let advance = if self.advance.is_empty() { "undefined" } else { &self.advance };
        match &self.scripted {
            None => format!("({advance}, undefined)"),
            Some(Scripted { call, .. }) => {
                format!("((acted) => {{ {advance}; return acted; }})({call})")
            }
        }
    }

    /// What is left of it where another document has come, which the action has been carried out before.
    pub fn without_action(&self) -> Self {
        Self { scripted: None, advance: self.advance.clone() }
    }

    /// Whether it carries out an action.
    pub fn has_action(&self) -> bool {
        self.scripted.is_some()
    }

    /// Why the action could not be carried out, by the value of the expression.
    ///
    /// # Errors
    ///
    /// [`WebError::Foreign`] where the page told something else.
    pub fn error(&self, told: &Value) -> Result<Option<String>, WebError> {
        match &self.scripted {
            None => Ok(None),
            Some(scripted) => scripted.error(told),
        }
    }
}

impl Scripted {
    fn error(&self, told: &Value) -> Result<Option<String>, WebError> {
        Ok(Located::read(told)?.error(&self.bid, self.purpose))
    }
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Performed {
    /// It was carried out.
    Done,
    /// It could not be; the text is for the policy, and begins with the name of an exception.
    Failed(String),
    /// It was a message to the user.
    Message(String),
    /// It said that the task cannot be done.
    Infeasible(String),
}

/// What a script says of an element.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Located {
    missing: bool,
    ready: bool,
    #[serde(rename = "isFilled")]
    is_filled: bool,
    #[serde(rename = "isOutOfSight")]
    is_out_of_sight: bool,
    why: String,
    error: String,
    x: f64,
    y: f64,
}

/// What an element is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Click,
    Hover,
    Fill,
    Select,
    Press,
    Focus,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::Hover => "hover",
            Self::Fill => "fill",
            Self::Select => "select",
            Self::Press => "press",
            Self::Focus => "focus",
        }
    }
}

/// What stops an action: the policy's mistake, or the browser's.
enum Stop {
    Told(String),
    Broken(WebError),
}

impl From<WebError> for Stop {
    fn from(error: WebError) -> Self {
        Self::Broken(error)
    }
}

impl From<UnknownKey> for Stop {
    fn from(UnknownKey(name): UnknownKey) -> Self {
        let name: String = name.chars().take(100).collect();
        Self::Told(format!("Error: Unknown key: \"{name}\""))
    }
}

impl Actor {
    /// Somebody at this window, whose pages `server` answers.
    pub fn new(window: LentWindow, server: Arc<dyn Server>, options: ActorOptions) -> Self {
        Self { window, server, hands: Hands::default(), options, due_ms: 0.0, scripted: None }
    }

    /// The window.
    pub fn window(&self) -> &LentWindow {
        &self.window
    }

    /// Gives the window back.
    pub fn leave(self) {
        self.window.give_back();
    }

    /// The tools by which actions are called.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.options.actions.tools()
    }

    /// Lets go of all that is held, as where another episode begins.
    pub fn let_go(&mut self) {
        self.hands = Hands::default();
        self.due_ms = 0.0;
        self.scripted = None;
    }

    /// Carries out the action that stands in a text.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part.
    pub async fn perform_text(&mut self, text: &str) -> Result<Performed, WebError> {
        let act = self.options.actions.read(text);
        self.perform_read(act).await
    }

    /// Carries out the action that a call of a tool is.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do its part.
    pub async fn perform_call(
        &mut self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Performed, WebError> {
        let act = self.options.actions.of_call(name, arguments);
        self.perform_read(act).await
    }

    async fn perform_read(&mut self, act: Result<Act, ActionError>) -> Result<Performed, WebError> {
        let act = match act {
            Ok(act) => act,
            Err(ActionError(text)) => return Ok(Performed::Failed(text)),
        };
        self.due_ms += f64::from(self.options.settle_ms);
        if let Some(scripted) = self.scripted(&act) {
            // With a clock of its own the page is asked once, for all of it.
            if self.window.spec().clock_start.is_some() {
                self.scripted = Some(scripted);
                return Ok(Performed::Done);
            }
            let told = ask(&self.window.tab()?, &scripted.call).await?;
            self.settle_navigation().await?;
            return Ok(scripted.error(&told)?.map_or(Performed::Done, Performed::Failed));
        }
        let performed = match self.perform(act).await {
            Ok(performed) => performed,
            Err(Stop::Told(text)) => Performed::Failed(text),
            Err(Stop::Broken(error)) => return Err(error),
        };
        self.settle_navigation().await?;
        Ok(performed)
    }

    /// Waits for a navigation that an action has set off.
    async fn settle_navigation(&self) -> Result<(), WebError> {
        let tab = self.window.tab()?;
        if tab.is_loading() { tab.wait_until_loaded().await } else { Ok(()) }
    }

    /// Has the page go on for what is due, before it is looked at: by what is evaluated on a page with a clock of its own, an action
    /// that a script carries out before it, or the time by the machine's.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser has ended.
    pub async fn settle(&mut self) -> Result<Due, WebError> {
        let millis = std::mem::take(&mut self.due_ms);
        if self.window.spec().clock_start.is_some() {
            let advance = format!("window.__spar_clock && __spar_clock.advance({millis})");
            return Ok(Due { scripted: self.scripted.take(), advance });
        }
        tokio::time::sleep(Duration::from_millis(millis as u64)).await;
        self.settle_navigation().await?;
        Ok(Due::default())
    }

    /// The action as a script carries it out, where it is one of those.
    fn scripted(&self, act: &Act) -> Option<Scripted> {
        if self.options.input == Input::Devices {
            return None;
        }
        let (bid, purpose, argument) = match act {
            Act::Click { bid, button: Button::Left, modifiers: 0, times: 1 } => {
                (bid, Purpose::Click, Value::Null)
            }
            Act::Fill { bid, value, with_menu: false } => {
                (bid, Purpose::Fill, value.as_str().into())
            }
            Act::Clear(bid) => (bid, Purpose::Fill, "".into()),
            Act::SelectOption { bid, options } => (bid, Purpose::Select, json!(options)),
            Act::Focus(bid) => (bid, Purpose::Focus, Value::Null),
            _ => return None,
        };
        // What is no number of an element is answered on the other way.
        let call = is_bid(bid).then(|| locate_call(bid, purpose, &argument, false, true))?;
        Some(Scripted { call, purpose, bid: bid.clone() })
    }

    async fn perform(&mut self, act: Act) -> Result<Performed, Stop> {
        let tab = self.window.tab()?;
        let scale = self.options.scale;
        match act {
            Act::Noop { wait_ms } => self.due_ms += wait_ms,
            Act::Message(text) => return Ok(Performed::Message(text)),
            Act::Infeasible(reason) => return Ok(Performed::Infeasible(reason)),
            Act::Scroll { dx, dy } => self.wheel(&tab, dx / scale, dy / scale).await?,
            Act::ScrollAt { x, y, dx, dy } => {
                self.hands.move_to(&tab, x / scale, y / scale).await?;
                self.wheel(&tab, dx / scale, dy / scale).await?;
            }
            Act::Fill { bid, value, with_menu } => self.fill(&tab, &bid, &value, with_menu).await?,
            Act::Clear(bid) => self.fill(&tab, &bid, "", false).await?,
            Act::SelectOption { bid, options } => {
                self.locate(&tab, &bid, Purpose::Select, json!(options)).await?;
            }
            Act::Click { bid, button, modifiers, times } => {
                let at = self.locate(&tab, &bid, Purpose::Click, Value::Null).await?;
                let held = self.hands.hold(modifiers);
                let clicked = self.hands.click(&tab, (at.x, at.y), button, times).await;
                self.hands.set_held(held);
                self.unless_gone(clicked, ())?;
            }
            Act::Hover(bid) => {
                let at = self.locate(&tab, &bid, Purpose::Hover, Value::Null).await?;
                self.hands.move_to(&tab, at.x, at.y).await?;
            }
            Act::Press { bid, keys } => {
                self.locate(&tab, &bid, Purpose::Press, Value::Null).await?;
                let pressed = self.hands.press_keys(&tab, &keys).await;
                self.unless_gone(pressed, Ok(()))??;
            }
            Act::Focus(bid) => {
                self.locate(&tab, &bid, Purpose::Focus, Value::Null).await?;
            }
            Act::DragAndDrop { from, to } => {
                let at = self.locate(&tab, &from, Purpose::Hover, Value::Null).await?;
                self.hands.move_to(&tab, at.x, at.y).await?;
                self.hands.press_button(&tab, Button::Left).await?;
                // Where there is nothing to drop it on, the button stays down, as BrowserGym has it.
                let at = self.locate(&tab, &to, Purpose::Hover, Value::Null).await?;
                self.hands.move_to(&tab, at.x, at.y).await?;
                self.hands.release_button(&tab, Button::Left).await?;
            }
            Act::Upload => {
                let text = "Error: There are no files that could be chosen.";
                return Ok(Performed::Failed(text.to_owned()));
            }
            Act::MouseMove { x, y } => self.hands.move_to(&tab, x / scale, y / scale).await?,
            Act::MouseUp { x, y, button } => {
                self.hands.move_to(&tab, x / scale, y / scale).await?;
                let released = self.hands.release_button(&tab, button).await;
                self.unless_gone(released, ())?;
            }
            Act::MouseDown { x, y, button } => {
                self.hands.move_to(&tab, x / scale, y / scale).await?;
                self.hands.press_button(&tab, button).await?;
            }
            Act::MouseClick { x, y, button, times } => {
                let clicked = self.hands.click(&tab, (x / scale, y / scale), button, times).await;
                self.unless_gone(clicked, ())?;
            }
            Act::MouseDrag { from, to } => {
                self.hands.move_to(&tab, from.0 / scale, from.1 / scale).await?;
                self.hands.press_button(&tab, Button::Left).await?;
                self.hands.move_to(&tab, to.0 / scale, to.1 / scale).await?;
                self.hands.release_button(&tab, Button::Left).await?;
            }
            Act::KeyDown(key) => self.hands.hold_key(&tab, &key, true).await??,
            Act::KeyUp(key) => self.hands.hold_key(&tab, &key, false).await??,
            Act::KeyPress(keys) => {
                let pressed = self.hands.press_keys(&tab, &keys).await;
                self.unless_gone(pressed, Ok(()))??;
            }
            Act::KeyType(text) => self.hands.type_text(&tab, &text).await?,
            Act::InsertText(text) => insert_text(&tab, &text).await?,
            Act::Goto(url) => return self.goto(&tab, &url).await,
            Act::GoBack => {
                tab.go(-1).await?;
            }
            Act::GoForward => {
                tab.go(1).await?;
            }
            Act::NewTab => {
                // One more would be closed as it opens.
                if self.window.tabs().len() >= MAX_TABS {
                    let text =
                        format!("Error: There are {MAX_TABS} tabs, and no more can be opened.");
                    return Ok(Performed::Failed(text));
                }
                self.window.new_tab().await?;
            }
            Act::TabClose => self.window.close_tab().await?,
            Act::TabFocus(index) => {
                let count = self.window.tabs().len() as i64;
                // As in Python, numbers below zero count from the end.
                let place = if index < 0 { index + count } else { index };
                let has_it = match usize::try_from(place) {
                    Ok(place) => self.window.focus_tab(place).await?,
                    Err(_) => false,
                };
                if !has_it {
                    return Ok(Performed::Failed("IndexError: list index out of range".to_owned()));
                }
            }
        }
        Ok(Performed::Done)
    }

    /// What became of an action after which the tab may be gone, since that is what it did.
    fn unless_gone<T>(&self, result: Result<T, WebError>, done: T) -> Result<T, Stop> {
        match result {
            Err(WebError::Closed) if self.window.tab().is_ok() => Ok(done),
            Err(error) => Err(error.into()),
            Ok(value) => Ok(value),
        }
    }

    /// Turns the wheel, and waits for what it moves: a page is scrolled in its next frame.
    async fn wheel(&mut self, tab: &Tab, dx: f64, dy: f64) -> Result<(), WebError> {
        self.hands.wheel(tab, dx, dy).await?;
        tab.call(
            "Page.captureScreenshot",
            json!({ "format": "jpeg", "quality": 1,
            "clip": { "x": 0, "y": 0, "width": 1, "height": 1, "scale": 1 } }),
        )
        .await
        .map(drop)
    }

    async fn fill(
        &mut self,
        tab: &Tab,
        bid: &str,
        value: &str,
        with_menu: bool,
    ) -> Result<(), Stop> {
        let written = if with_menu {
            let end = value.char_indices().next_back().map_or(0, |(at, _)| at);
            &value[..end]
        } else {
            value
        };
        let located = self.locate(tab, bid, Purpose::Fill, value.into()).await?;
        if !located.is_filled {
            match written.is_empty() {
                true => self.hands.press_keys(tab, "Delete").await??,
                false => insert_text(tab, written).await?,
            }
            if with_menu {
                self.hands.type_text(tab, &value[written.len()..]).await?;
            }
        }
        Ok(())
    }

    async fn goto(&mut self, tab: &Tab, url: &str) -> Result<Performed, Stop> {
        let shown: String = url.chars().take(200).collect();
        if !self.server.is_allowed(url) {
            let text = format!("Error: Page.goto: net::ERR_BLOCKED_BY_CLIENT at {shown}");
            return Ok(Performed::Failed(text));
        }
        Ok(match tab.navigate(url).await? {
            Navigation::Done => Performed::Done,
            Navigation::Failed(error) => {
                Performed::Failed(format!("Error: Page.goto: {error} at {shown}"))
            }
        })
    }

    /// Finds an element and makes it ready.
    async fn locate(
        &mut self,
        tab: &Tab,
        bid: &str,
        purpose: Purpose,
        argument: Value,
    ) -> Result<Located, Stop> {
        if !is_bid(bid) {
            let located = Located { missing: true, ..Located::default() };
            return Err(Stop::Told(located.error(bid, purpose).unwrap_or_default()));
        }
        let call = |is_scrolled: bool| locate_call(bid, purpose, &argument, is_scrolled, false);
        let mut located = Located::read(&ask(tab, &call(false)).await?)?;
        if located.is_out_of_sight {
            scroll_into_sight(tab).await?;
            located = Located::read(&ask(tab, &call(true)).await?)?;
        }
        match located.error(bid, purpose) {
            None => Ok(located),
            Some(text) => Err(Stop::Told(text)),
        }
    }
}

fn is_bid(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64
}

/// The call by which an element is found and made ready, or by script acted on.
fn locate_call(
    bid: &str,
    purpose: Purpose,
    argument: &Value,
    is_scrolled: bool,
    is_by_script: bool,
) -> String {
    let (bid, name) = (json!(bid), json!(purpose.name()));
    format!("__spar_page.locate({bid}, {name}, {argument}, {is_scrolled}, {is_by_script})")
}

impl Located {
    fn read(told: &Value) -> Result<Self, WebError> {
        Self::deserialize(told).map_err(|error| WebError::Foreign {
            method: "Runtime.evaluate",
            detail: error.to_string(),
        })
    }

    /// Why the element cannot be acted on, in BrowserGym's words.
    fn error(&self, bid: &str, purpose: Purpose) -> Option<String> {
        if self.ready {
            return None;
        }
        if self.missing {
            let shown: String = bid.chars().take(100).collect();
            return Some(format!("ValueError: Could not find element with bid \"{shown}\""));
        }
        let name = match purpose {
            Purpose::Select => "select_option",
            purpose => purpose.name(),
        };
        Some(match self.error.is_empty() {
            false => format!("Error: Locator.{name}: Error: {}", self.error),
            true => {
                format!("TimeoutError: Locator.{name}: Timeout 500ms exceeded: {}", self.why)
            }
        })
    }
}

/// Scrolls the element that a script has put aside into sight, by the browser's own rule.
async fn scroll_into_sight(tab: &Tab) -> Result<(), WebError> {
    let params = json!({ "expression": "window.__spar_element" });
    let answer = tab.call("Runtime.evaluate", params).await?;
    let Some(id) = answer.pointer("/result/objectId").cloned() else { return Ok(()) };
    match tab.call("DOM.scrollIntoViewIfNeeded", json!({ "objectId": id })).await {
        // What has no box cannot be scrolled to, and the script says why it cannot be touched.
        Ok(_) | Err(WebError::Refused { .. }) => {}
        Err(error) => return Err(error),
    }
    tab.call("Runtime.releaseObject", json!({ "objectId": id })).await.map(drop)
}
