//! Windows of a browser: cookies of their own, tabs, and one server for all that they ask for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::WebError;
use crate::browser::Browser;
use crate::connection::Session;
use crate::page::first_script;
use crate::server::Server;
use crate::tab::{Tab, TabSetting};

/// Tabs of a window; more are closed as they open.
pub(crate) const MAX_TABS: usize = 12;

/// What a window is to be like.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowSpec {
    /// Width and height of what it shows, in pixels.
    pub viewport: (u32, u32),
    /// Pages have a clock that goes on with actions and by as much as these say, in the place of the machine's: when it
    /// begins, in milliseconds since 1970. Absent: the machine's.
    pub clock_start: Option<i64>,
}

impl WindowSpec {
    /// The time at which clocks of pages usually begin: 2024-01-01T00:00:00Z.
    pub const CLOCK_START: i64 = 1_704_067_200_000;
}

/// A window that is worked in. It goes when it is dropped.
#[derive(Debug)]
pub struct Window {
    browser: Arc<Browser>,
    context: String,
    state: Arc<WindowState>,
    spec: WindowSpec,
}

/// What the browser's own task knows of a window.
#[derive(Debug)]
pub(crate) struct WindowState {
    server: Arc<Mutex<Arc<dyn Server>>>,
    setting: TabSetting,
    tabs: Mutex<Tabs>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Tabs {
    open: Vec<(String, Tab)>,
    /// The name of the one that is looked at.
    active: String,
}

impl WindowState {
    fn tabs(&self) -> MutexGuard<'_, Tabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tab has opened and waits.
    pub(crate) fn add_tab(&self, root: &Session, session: &str, target: &str) {
        let mut tabs = self.tabs();
        if tabs.open.len() >= MAX_TABS {
            return drop(root.send("Target.closeTarget", json!({ "targetId": target })));
        }
        let tab = Tab::open(root, session, target, &self.server, &self.setting);
        tabs.open.push((session.to_owned(), tab));
        // Whatever opens is looked at, as in a browser.
        tabs.active = target.to_owned();
        drop(tabs);
        self.changed.notify_waiters();
    }

    /// A tab has closed.
    pub(crate) fn remove_tab(&self, session: &str) {
        let mut tabs = self.tabs();
        let Some(at) = tabs.open.iter().position(|(of, _)| of == session) else { return };
        let (_, tab) = tabs.open.remove(at);
        if tabs.active == tab.target() {
            tabs.active =
                tabs.open.last().map(|(_, tab)| tab.target().to_owned()).unwrap_or_default();
        }
        drop(tabs);
        tab.close();
        self.changed.notify_waiters();
    }
}

impl Window {
    pub(crate) async fn open(
        browser: Arc<Browser>,
        spec: &WindowSpec,
        server: Arc<dyn Server>,
    ) -> Result<Self, WebError> {
        const METHOD: &str = "Target.createBrowserContext";
        let patience = browser.patience;
        let answer =
            browser.root().call(METHOD, json!({ "disposeOnDetach": true }), patience).await?;
        let context = answer.get("browserContextId").and_then(Value::as_str);
        let context = context
            .ok_or_else(|| WebError::Foreign { method: METHOD, detail: "no id".to_owned() })?;
        let first_script = first_script(spec.clock_start);
        let setting = TabSetting { patience, viewport: spec.viewport, first_script };
        let state = Arc::new(WindowState {
            server: Arc::new(Mutex::new(server)),
            setting,
            tabs: Mutex::default(),
            changed: Notify::new(),
        });
        browser.register(context, &state);
        let window = Self { context: context.to_owned(), state, spec: spec.clone(), browser };
        let deny = json!({ "behavior": "deny", "browserContextId": context });
        drop(window.browser.root().send("Browser.setDownloadBehavior", deny));
        window.new_tab().await?;
        Ok(window)
    }

    /// What it was asked to be like.
    pub fn spec(&self) -> &WindowSpec {
        &self.spec
    }

    /// The tabs, in the order in which they opened.
    pub fn tabs(&self) -> Vec<Tab> {
        self.state.tabs().open.iter().map(|(_, tab)| tab.clone()).collect()
    }

    /// The tab that is looked at.
    ///
    /// # Errors
    ///
    /// [`WebError`] where there is none, or the browser has ended.
    pub fn tab(&self) -> Result<Tab, WebError> {
        if let Some(error) = self.browser.failure() {
            return Err(error);
        }
        let tabs = self.state.tabs();
        let mut open = tabs.open.iter().map(|(_, tab)| tab);
        open.find(|tab| tab.target() == tabs.active).cloned().ok_or(WebError::Closed)
    }

    /// Where the tab that is looked at stands among all.
    pub fn active(&self) -> usize {
        let tabs = self.state.tabs();
        tabs.open.iter().position(|(_, tab)| tab.target() == tabs.active).unwrap_or(0)
    }

    /// Opens an empty tab, and looks at it.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not open it.
    pub async fn new_tab(&self) -> Result<Tab, WebError> {
        const METHOD: &str = "Target.createTarget";
        let patience = self.browser.patience;
        let params = json!({ "url": "about:blank", "browserContextId": self.context });
        let answer = self.browser.root().call(METHOD, params, patience).await?;
        let target = answer.get("targetId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let deadline = Instant::now() + patience;
        let tab = loop {
            let changed = self.state.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let found = {
                let tabs = self.state.tabs();
                tabs.open.iter().map(|(_, tab)| tab).find(|tab| tab.target() == target).cloned()
            };
            if let Some(tab) = found {
                break tab;
            }
            if let Some(error) = self.browser.failure() {
                return Err(error);
            }
            if timeout_at(deadline, changed).await.is_err() {
                return Err(WebError::Late { doing: METHOD, millis: patience.as_millis() as u64 });
            }
        };
        // Behind the commands that set it up: when this is answered they are carried out.
        tab.call("Runtime.evaluate", json!({ "expression": "1" })).await?;
        Ok(tab)
    }

    /// Looks at another tab; whether there is one of this number.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do it.
    pub async fn focus_tab(&self, index: usize) -> Result<bool, WebError> {
        let tab = {
            let mut tabs = self.state.tabs();
            let Some((_, tab)) = tabs.open.get(index).cloned() else { return Ok(false) };
            tabs.active = tab.target().to_owned();
            tab
        };
        tab.call("Page.bringToFront", Value::Null).await?;
        Ok(true)
    }

    /// Closes the tab that is looked at; where it was the last one, an empty one opens.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do it.
    pub async fn close_tab(&self) -> Result<(), WebError> {
        let tab = self.tab()?;
        self.close_one(&tab).await?;
        if self.tabs().is_empty() {
            self.new_tab().await?;
        }
        Ok(())
    }

    async fn close_one(&self, tab: &Tab) -> Result<(), WebError> {
        const METHOD: &str = "Target.closeTarget";
        let patience = self.browser.patience;
        let params = json!({ "targetId": tab.target() });
        self.browser.root().call(METHOD, params, patience).await?;
        let deadline = Instant::now() + patience;
        loop {
            let changed = self.state.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if tab.is_closed() {
                return Ok(());
            }
            if timeout_at(deadline, changed).await.is_err() {
                return Err(WebError::Late { doing: METHOD, millis: patience.as_millis() as u64 });
            }
        }
    }

    /// Makes it as good as new for somebody else: one tab, nothing kept, another server; whether that could be done.
    pub(crate) async fn renew(&self, server: Arc<dyn Server>) -> bool {
        self.try_renew(server).await.is_ok()
    }

    async fn try_renew(&self, server: Arc<dyn Server>) -> Result<(), WebError> {
        let tabs = self.tabs();
        let (first, others) = tabs.split_first().ok_or(WebError::Closed)?;
        for tab in others {
            self.close_one(tab).await?;
        }
        *self.state.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
        self.focus_tab(0).await?;
        let patience = Duration::from_secs(5);
        let of_context = json!({ "browserContextId": self.context });
        let cleared = self.browser.root().send("Storage.clearCookies", of_context);
        first.navigate("about:blank").await?;
        first.call("Page.resetNavigationHistory", Value::Null).await?;
        cleared.within(patience).await?;
        first.take_dialogs();
        first.take_blocked();
        first.take_refused_download();
        Ok(())
    }

    /// Forgets what pages of this origin have stored.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser does not do it.
    pub async fn clear_origin(&self, origin: &str) -> Result<(), WebError> {
        let params = json!({ "origin": origin, "storageTypes": "all" });
        self.tab()?.call("Storage.clearDataForOrigin", params).await.map(drop)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.browser.dispose(&self.context);
    }
}
