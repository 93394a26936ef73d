//! The browser of all episodes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spar_web::miniwob::{Episode, Options, Pages, Reset, Shown};
use spar_web::{Browsers, WebError};

/// The browser of all episodes, and pages of MiniWoB++ in which another one can begin. Clones share it; it comes up with the
/// first episode.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    browsers: Browsers,
    idle: Arc<Mutex<Idle>>,
}

#[derive(Debug, Default)]
struct Idle {
    pages: Vec<(Episode, Options)>,
    /// How many episodes wait for a window.
    waiting: usize,
}

/// Somebody waits for a window: nothing is kept idle as long as that lasts.
#[derive(Debug)]
pub(super) struct Waiting(Arc<Mutex<Idle>>);

impl Windows {
    /// The browser, of which a window will be asked for; a page that lies idle gives its own for that.
    pub(super) fn browsers(&self) -> (&Browsers, Waiting) {
        let mut idle = lock(&self.idle);
        idle.waiting += 1;
        let surplus = idle.pages.pop();
        drop(idle);
        if let Some((episode, _)) = surplus {
            episode.leave();
        }
        (&self.browsers, Waiting(Arc::clone(&self.idle)))
    }

    /// Begins an episode of MiniWoB++, in a window that another one has left where there is one: in its page where that is wanted and
    /// possible, else with the page loaded anew. Who played before leaves nothing to go back to, and where a page is loaded nothing stored.
    pub(super) async fn begin(
        &self,
        pages: &Arc<Pages>,
        task: &str,
        seed: u64,
        options: &Options,
    ) -> Result<(Episode, Shown), WebError> {
        if let Some(mut episode) = self.take(task, options) {
            // Where the page is broken, another one is loaded.
            if let Ok(shown) = episode.again_with(task, seed).await {
                return Ok((episode, shown));
            }
        }
        let (browsers, _waiting) = self.browsers();
        Episode::begin(browsers, pages, task, seed, options.clone()).await
    }

    /// Ends an episode; its window is kept for the next one where that may begin in it.
    pub(super) fn end(&self, episode: Episode, options: &Options) {
        let mut idle = lock(&self.idle);
        if idle.waiting == 0 && episode.has_one_tab() {
            idle.pages.push((episode, options.clone()));
            return;
        }
        drop(idle);
        episode.leave();
    }

    /// Ends the browser, and waits for it.
    pub(crate) async fn close(&self) {
        lock(&self.idle).pages.clear();
        self.browsers.close().await;
    }

    fn take(&self, task: &str, options: &Options) -> Option<Episode> {
        let mut idle = lock(&self.idle);
        let of_task = |(episode, of): &(Episode, Options)| episode.task() == task && of == options;
        let place = idle.pages.iter().position(of_task).or_else(|| {
            // A page to go on in is opened for every task, as long as there are windows for that.
            let may_turn = options.reset == Reset::Load || self.browsers.has_no_more();
            idle.pages.iter().position(|(_, of)| of == options).filter(|_| may_turn)
        })?;
        // Behind the others, which wait longer.
        Some(idle.pages.remove(place).0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.0).waiting -= 1;
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
