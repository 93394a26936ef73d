//! One tab of a window.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::connection::{Event, Reply, Session};
use crate::server::{Request, Server};
use crate::{Response, WebError};

/// The largest body of a request that is read.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Dialogs of a tab that are answered; a page that opens more has its scripts ended.
const MAX_DIALOGS: u32 = 200;
/// Requests of a tab whose answers are waited for at one time; more are blocked.
const MAX_AWAITED: usize = 256;
/// Messages of dialogs that are kept.
const KEPT_DIALOGS: usize = 8;

/// One tab. Clones are the same tab.
#[derive(Debug, Clone)]
pub struct Tab(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    session: Session,
    target: String,
    patience: Duration,
    server: Arc<Mutex<Arc<dyn Server>>>,
    state: Mutex<TabState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct TabState {
    url: String,
    /// How many documents it has shown.
    documents: u64,
    /// A navigation is under way, or asked for.
    is_loading: bool,
    /// It has begun.
    has_begun: bool,
    is_closed: bool,
    dialogs: u32,
    /// Requests whose answers take time, and have not come.
    awaited: usize,
    /// What the last dialogs said.
    dialog_texts: VecDeque<String>,
    /// What is being dragged, where a page has begun to drag by the browser's own means.
    drag: Option<Value>,
    /// Whether a download was refused since anybody asked.
    refused_download: bool,
    /// Addresses that were blocked since anybody asked; the last few.
    blocked: VecDeque<String>,
    /// The document, by its number, that was small and had no frames when it was looked at last.
    plain: Option<u64>,
}

/// A request whose answer takes its time, for as long as that lasts.
struct Awaited(Tab);

impl Awaited {
    fn begin(tab: Tab) -> Self {
        tab.state().awaited += 1;
        Self(tab)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.state().awaited -= 1;
    }
}

/// How a window was sent to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Navigation {
    /// A document came, or is on its way.
    Done,
    /// Nothing came; the browser's word for why, such as `net::ERR_BLOCKED_BY_CLIENT`.
    Failed(String),
}

impl Tab {
    /// A tab that was attached and waits; it goes on when it is watched over.
    pub(crate) fn open(
        root: &Session,
        session: &str,
        target: &str,
        server: &Arc<Mutex<Arc<dyn Server>>>,
        setting: &TabSetting,
    ) -> Self {
        let (sender, events) = Session::event_channel();
        let session = root.of(session, sender);
        let tab = Self(Arc::new(Inner {
            session,
            target: target.to_owned(),
            patience: setting.patience,
            server: Arc::clone(server),
            state: Mutex::new(TabState { url: "about:blank".to_owned(), ..TabState::default() }),
            changed: Notify::new(),
        }));
        tokio::spawn(follow(events, tab.clone()));
        // Carried out in this order, and before the page does anything; what fails is found by whoever uses the tab.
        for (method, params) in setting.commands() {
            drop(tab.0.session.send(method, params));
        }
        tab
    }

    /// The browser's name of it.
    pub(crate) fn target(&self) -> &str {
        &self.0.target
    }

    /// The address that it shows.
    pub fn url(&self) -> String {
        self.state().url.clone()
    }

    /// How many documents it has shown; it grows with every page that another one takes the place of, and with every reload.
    pub fn documents(&self) -> u64 {
        self.state().documents
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// What the last few dialogs of pages said; they are answered with no as they come.
    pub fn take_dialogs(&self) -> Vec<String> {
        self.state().dialog_texts.drain(..).collect()
    }

    /// Whether a download was refused since this was asked last.
    pub fn take_refused_download(&self) -> bool {
        std::mem::take(&mut self.state().refused_download)
    }

    /// Whether what it shows was small and had no frames when it was looked at last.
    pub(crate) fn is_plain(&self) -> bool {
        let state = self.state();
        state.plain == Some(state.documents)
    }

    /// Says whether what it shows is small and has no frames.
    pub(crate) fn set_plain(&self, is_plain: bool) {
        let mut state = self.state();
        state.plain = is_plain.then_some(state.documents);
    }

    /// The last few addresses that were blocked since this was asked last.
    pub fn take_blocked(&self) -> Vec<String> {
        self.state().blocked.drain(..).collect()
    }

    pub(crate) fn take_drag(&self) -> Option<Value> {
        self.state().drag.take()
    }

    /// Sends a command behind all that were sent before.
    pub(crate) fn send(&self, method: &'static str, params: Value) -> Reply {
        self.0.session.send(method, params)
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn call(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Value, WebError> {
        self.0.session.call(method, params, self.0.patience).await
    }

    /// How long a command may take.
    pub(crate) fn patience(&self) -> Duration {
        self.0.patience
    }

    /// Sends it to an address, and waits for the document; what the address may be is for the caller to see to.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the tab cannot do it, or nothing has come in time.
    pub async fn navigate(&self, url: &str) -> Result<Navigation, WebError> {
        let before = self.documents();
        let answer = self.call("Page.navigate", json!({ "url": url })).await?;
        if let Some(error) = answer.get("errorText").and_then(Value::as_str) {
            self.wait_until_loaded().await?;
            return Ok(Navigation::Failed(error.to_owned()));
        }
        if answer.get("loaderId").is_some() {
            // Within one document there is none.
            self.wait("load a page", |state| state.documents > before).await?;
        }
        self.wait_until_loaded().await?;
        Ok(Navigation::Done)
    }

    /// Goes back or forward in its history; whether there was something to go to.
    ///
    /// # Errors
    ///
    /// As [`Tab::navigate`].
    pub async fn go(&self, places: i64) -> Result<bool, WebError> {
        let history = self.call("Page.getNavigationHistory", Value::Null).await?;
        let current = history.get("currentIndex").and_then(Value::as_i64).unwrap_or(0) + places;
        let entry = usize::try_from(current)
            .ok()
            .and_then(|at| history.get("entries")?.get(at)?.get("id"))
            .cloned();
        let Some(entry) = entry else { return Ok(false) };
        self.state().is_loading = true;
        self.call("Page.navigateToHistoryEntry", json!({ "entryId": entry })).await?;
        self.wait_until_loaded().await?;
        Ok(true)
    }

    /// Waits until no navigation is under way.
    ///
    /// # Errors
    ///
    /// [`WebError::Late`] where one does not come to its end.
    pub async fn wait_until_loaded(&self) -> Result<(), WebError> {
        self.wait("load a page", |state| !state.is_loading).await
    }

    /// Whether a navigation is under way.
    pub fn is_loading(&self) -> bool {
        self.state().is_loading
    }

    /// Evaluates an expression in the page, or waits for the promise that it is, and gives its value.
    ///
    /// # Errors
    ///
    /// [`WebError::Script`] where it raises, [`WebError::Late`] where the page is busy for too long: then what it does is
    /// ended as far as it can be.
    pub async fn evaluate(&self, expression: &str) -> Result<Value, WebError> {
        let reply = self.send_expression(expression);
        self.value_of(reply).await
    }

    /// As [`Tab::evaluate`], sent now and waited for later.
    pub(crate) fn send_expression(&self, expression: &str) -> Reply {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        self.send("Runtime.evaluate", params)
    }

    /// The value of what was sent.
    pub(crate) async fn value_of(&self, reply: Reply) -> Result<Value, WebError> {
        match reply.within(self.0.patience).await {
            Ok(mut answer) => {
                if let Some(raised) = answer.get("exceptionDetails") {
                    let described =
                        raised.pointer("/exception/description").and_then(Value::as_str);
                    let text = described.or_else(|| raised.get("text").and_then(Value::as_str));
                    let message: String =
                        text.unwrap_or("an exception").chars().take(500).collect();
                    return Err(WebError::Script { message });
                }
                let value = answer.get_mut("result").and_then(|result| result.get_mut("value"));
                Ok(value.map(Value::take).unwrap_or_default())
            }
            Err(WebError::Late { millis, .. }) => {
                drop(self.send("Runtime.terminateExecution", Value::Null));
                Err(WebError::Late { doing: "have a page that is busy run a script", millis })
            }
            Err(error) => Err(error),
        }
    }

    /// Shows so many pixels from now on, width and height.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the tab cannot do it.
    pub async fn set_viewport(&self, viewport: (u32, u32)) -> Result<(), WebError> {
        self.send_viewport(viewport).within(self.0.patience).await.map(drop)
    }

    /// As [`Tab::set_viewport`], sent now and waited for later.
    pub(crate) fn send_viewport(&self, viewport: (u32, u32)) -> Reply {
        self.send("Emulation.setDeviceMetricsOverride", metrics(viewport))
    }

    /// A picture of what it shows, as PNG, with so many pixels to a pixel of the page.
    ///
    /// # Errors
    ///
    /// [`WebError`] where none can be had.
    pub async fn screenshot(&self, viewport: (u32, u32), scale: f64) -> Result<Vec<u8>, WebError> {
        const METHOD: &str = "Page.captureScreenshot";
        let (width, height) = viewport;
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": scale });
        let params = json!({ "format": "png", "clip": clip, "captureBeyondViewport": false });
        let answer = self.call(METHOD, params).await?;
        let data = answer.get("data").and_then(Value::as_str).unwrap_or_default();
        let foreign =
            |detail: &str| WebError::Foreign { method: METHOD, detail: detail.to_owned() };
        let bytes = BASE64.decode(data).map_err(|_| foreign("its picture is no base64"))?;
        match bytes.starts_with(b"\x89PNG") {
            true => Ok(bytes),
            false => Err(foreign("its picture is no PNG")),
        }
    }

    /// Waits until something holds of its state.
    async fn wait(
        &self,
        doing: &'static str,
        holds: impl Fn(&TabState) -> bool,
    ) -> Result<(), WebError> {
        let deadline = Instant::now() + self.0.patience;
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let state = self.state();
                if state.is_closed {
                    return Err(WebError::Closed);
                }
                if holds(&state) {
                    return Ok(());
                }
            }
            if let Some(error) = self.0.session.failure() {
                return Err(error);
            }
            if timeout_at(deadline, changed).await.is_err() {
                let millis = self.0.patience.as_millis() as u64;
                return Err(WebError::Late { doing, millis });
            }
        }
    }

    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.0.session.forget();
        self.0.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, TabState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request that a page makes.
    fn answer(&self, params: &Value) {
        let text =
            |pointer: &str| params.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let id = text("/requestId");
        let url = text("/request/url");
        let body = text("/request/postData");
        let mut cookies = String::new();
        let mut headers = Vec::new();
        let told = params.pointer("/request/headers").and_then(Value::as_object);
        for (name, value) in told.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            match name.eq_ignore_ascii_case("cookie") {
                true => cookies = value,
                false => headers.push((name.clone(), value)),
            }
        }
        let server = Arc::clone(&self.0.server.lock().unwrap_or_else(PoisonError::into_inner));
        // The browser leaves out what is large, or comes from files.
        let is_lost = params.pointer("/request/postData").is_none()
            && params.pointer("/request/hasPostData").and_then(Value::as_bool) == Some(true);
        let request = (body.len() <= MAX_BODY_BYTES && !is_lost).then(|| Request {
            method: text("/request/method").to_owned(),
            url: url.split('#').next().unwrap_or_default().to_owned(),
            body: body.to_owned(),
            cookies,
            headers,
        });
        if let Some(slow) = request.as_ref().and_then(|request| server.answer_slowly(request)) {
            if self.state().awaited >= MAX_AWAITED {
                return self.reply(id, url, None);
            }
            let awaited = Awaited::begin(self.clone());
            let (id, url) = (id.to_owned(), url.to_owned());
            tokio::spawn(async move {
                let response = slow.await;
                // The answer is sent before it counts as given.
                awaited.0.reply(&id, &url, response);
            });
            return;
        }
        let response = request.and_then(|request| server.answer(&request));
        self.reply(id, url, response);
    }

    /// Whether a request of a page waits for its answer.
    pub fn is_awaiting(&self) -> bool {
        self.state().awaited > 0
    }

    fn reply(&self, id: &str, url: &str, response: Option<Response>) {
        let Some(Response { status, content_type, headers, body }) = response else {
            if !url.ends_with("/favicon.ico") {
                let mut state = self.state();
                if state.blocked.len() >= KEPT_DIALOGS {
                    state.blocked.pop_front();
                }
                state.blocked.push_back(url.chars().take(200).collect());
            }
            let params = json!({ "requestId": id, "errorReason": "BlockedByClient" });
            return drop(self.send("Fetch.failRequest", params));
        };
        let mut told = vec![json!({ "name": "Content-Type", "value": content_type })];
        told.extend(headers.iter().map(|(name, value)| json!({ "name": name, "value": value })));
        let params = json!({
            "requestId": id,
            "responseCode": status,
            "responseHeaders": told,
            "body": BASE64.encode(&body),
        });
        drop(self.send("Fetch.fulfillRequest", params));
    }

    fn take(&self, event: &Event) {
        let params = &event.params;
        let text =
            |pointer: &str| params.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let is_main = |pointer: &str| text(pointer) == self.0.target;
        match event.method.as_str() {
            "Fetch.requestPaused" => return self.answer(params),
            "Page.javascriptDialogOpening" => {
                let leaves = text("/type") == "beforeunload";
                drop(self.send("Page.handleJavaScriptDialog", json!({ "accept": leaves })));
                let mut state = self.state();
                state.dialogs += 1;
                if state.dialog_texts.len() >= KEPT_DIALOGS {
                    state.dialog_texts.pop_front();
                }
                state.dialog_texts.push_back(text("/message").chars().take(500).collect());
                if state.dialogs > MAX_DIALOGS {
                    drop(state);
                    drop(self.send("Runtime.terminateExecution", Value::Null));
                }
            }
            "Page.frameNavigated" if is_main("/frame/id") => {
                let mut state = self.state();
                state.url = text("/frame/url").to_owned() + text("/frame/urlFragment");
                state.documents += 1;
                state.dialogs = 0;
            }
            "Page.navigatedWithinDocument" if is_main("/frameId") => {
                let mut state = self.state();
                state.url = text("/url").to_owned();
                state.is_loading = false;
            }
            "Page.frameRequestedNavigation" if is_main("/frameId") => {
                if text("/disposition") == "currentTab" && !text("/url").starts_with("javascript:")
                {
                    self.state().is_loading = true;
                }
            }
            "Page.frameStartedLoading" | "Page.frameStartedNavigating" if is_main("/frameId") => {
                let mut state = self.state();
                (state.is_loading, state.has_begun) = (true, true);
            }
            "Page.frameStoppedLoading" if is_main("/frameId") => {
                let mut state = self.state();
                (state.is_loading, state.has_begun) = (false, false);
            }
            // It is told as well of one that has begun, and is no end of that.
            "Page.frameClearedScheduledNavigation" if is_main("/frameId") => {
                let mut state = self.state();
                state.is_loading = state.has_begun;
            }
            "Page.downloadWillBegin" => {
                let mut state = self.state();
                state.refused_download = true;
                state.is_loading = false;
            }
            "Input.dragIntercepted" => self.state().drag = params.get("data").cloned(),
            "Inspector.targetCrashed" => self.0.session.fail(&WebError::Crashed),
            _ => return,
        }
        self.0.changed.notify_waiters();
    }
}

/// What all tabs of a window have in common.
#[derive(Debug, Clone)]
pub(crate) struct TabSetting {
    pub(crate) patience: Duration,
    pub(crate) viewport: (u32, u32),
    /// The script that runs in every document before its own.
    pub(crate) first_script: String,
}

impl TabSetting {
    fn commands(&self) -> Vec<(&'static str, Value)> {
        let first_script = json!({ "source": self.first_script });
        vec![
            ("Page.enable", Value::Null),
            ("Inspector.enable", Value::Null),
            ("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })),
            ("Emulation.setDeviceMetricsOverride", metrics(self.viewport)),
            ("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })),
            ("Emulation.setTimezoneOverride", json!({ "timezoneId": "UTC" })),
            ("Emulation.setLocaleOverride", json!({ "locale": "en-US" })),
            ("Page.setInterceptFileChooserDialog", json!({ "enabled": true })),
            ("Input.setInterceptDrags", json!({ "enabled": true })),
            ("Page.addScriptToEvaluateOnNewDocument", first_script),
            ("Runtime.runIfWaitingForDebugger", Value::Null),
        ]
    }
}

fn metrics((width, height): (u32, u32)) -> Value {
    json!({
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false, "screenWidth": width,
        "screenHeight": height,
    })
}

async fn follow(mut events: mpsc::Receiver<Event>, tab: Tab) {
    while let Some(event) = events.recv().await {
        tab.take(&event);
    }
    tab.0.changed.notify_waiters();
}
