//! Windows for many episodes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::WebError;
use crate::browser::{Browser, BrowserOptions};
use crate::server::Server;
use crate::window::{Window, WindowSpec};

/// How long it is waited for a window that others have.
const WAIT: Duration = Duration::from_secs(60);

/// A browser that comes up when the first window is asked for, and its windows, which are used again. Clones share it; it
/// ends with the last of them.
#[derive(Debug, Clone)]
pub struct Browsers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: BrowserOptions,
    browser: tokio::sync::Mutex<Option<Arc<Browser>>>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Window>>,
}

/// A window for as long as an episode has it.
#[derive(Debug)]
pub struct LentWindow {
    window: Option<Window>,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

impl Default for Browsers {
    fn default() -> Self {
        Self::new(BrowserOptions::default())
    }
}

impl Browsers {
    /// None yet, with these options for when there will be one.
    pub fn new(options: BrowserOptions) -> Self {
        let permits = Arc::new(Semaphore::new(options.max_windows.max(1)));
        Self(Arc::new(Shared {
            options,
            browser: tokio::sync::Mutex::default(),
            permits,
            idle: Mutex::default(),
        }))
    }

    /// A window, as good as new, whose pages `server` answers.
    ///
    /// # Errors
    ///
    /// [`WebError`] where there is no browser, it does not do its part, or all windows are taken for a minute.
    pub async fn window(
        &self,
        spec: &WindowSpec,
        server: Arc<dyn Server>,
    ) -> Result<LentWindow, WebError> {
        let shared = Arc::clone(&self.0);
        let permit = timeout(WAIT, Arc::clone(&shared.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| WebError::NoWindow { seconds: WAIT.as_secs() })?;
        let permit = permit.map_err(|_| WebError::Closed)?;
        let browser = self.browser().await?;
        loop {
            let idle = {
                let mut idle = shared.idle();
                let at = idle.iter().position(|window| window.spec() == spec);
                at.map(|at| idle.swap_remove(at))
            };
            let Some(window) = idle else { break };
            if window.renew(Arc::clone(&server)).await {
                return Ok(LentWindow { window: Some(window), shared, _permit: permit });
            }
        }
        // One of another kind makes room: there are no more windows than permits.
        let surplus = {
            let mut idle = shared.idle();
            let room = shared.options.max_windows.saturating_sub(idle.len() + 1);
            (room == 0 && !idle.is_empty()).then(|| idle.remove(0))
        };
        drop(surplus);
        let window = Window::open(browser, spec, server).await?;
        Ok(LentWindow { window: Some(window), shared, _permit: permit })
    }

    /// Whether as many windows are lent as there may be.
    pub fn has_no_more(&self) -> bool {
        self.0.permits.available_permits() == 0
    }

    /// Ends the browser, and waits for it; the next window brings up another one.
    pub async fn close(&self) {
        self.0.idle().clear();
        if let Some(browser) = self.0.browser.lock().await.take() {
            browser.close().await;
        }
    }

    /// The browser that runs, started where there is none or it has ended.
    async fn browser(&self) -> Result<Arc<Browser>, WebError> {
        let mut place = self.0.browser.lock().await;
        if let Some(browser) = place.as_ref().filter(|browser| browser.failure().is_none()) {
            return Ok(Arc::clone(browser));
        }
        self.0.idle().clear();
        *place = None;
        let browser = Arc::new(Browser::start(&self.0.options).await?);
        *place = Some(Arc::clone(&browser));
        Ok(browser)
    }

    #[cfg(test)]
    pub(crate) async fn process_id(&self) -> Option<u32> {
        self.0.browser.lock().await.as_ref().and_then(|browser| browser.process_id())
    }
}

impl Shared {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Window>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LentWindow {
    /// Gives the window to whoever asks next. What is merely dropped is closed.
    pub fn give_back(mut self) {
        if let Some(window) = self.window.take().filter(|window| window.tab().is_ok()) {
            self.shared.idle().push(window);
        }
    }
}

impl std::ops::Deref for LentWindow {
    type Target = Window;

    fn deref(&self) -> &Window {
        self.window.as_ref().expect("it is taken where this value goes")
    }
}
