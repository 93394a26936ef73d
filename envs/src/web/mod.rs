//! Environments in a real browser: MiniWoB++, small sites with WebArena's judges, and the shop as pages. docs/web.md.
//!
//! Actions are calls in BrowserGym's words, `click('13')`, or calls of tools of the same names. Of what a browser or a tab does
//! wrong the episode fails, and is played anew; what a page does with an action is an observation.

mod miniwob;
mod served;
mod shop;
mod site;
#[cfg(test)]
mod tests;
mod turn;
mod windows;

pub use miniwob::MiniWob;
pub use shop::WebShop;
pub use site::Site;
pub use spar_web::miniwob::{ConformanceReport, Pages};
pub use spar_web::{WebError, browser_version, find_browser};

pub(crate) use windows::Windows;

use std::path::Path;

use spar_web::Browsers;

/// Plays recordings of BrowserGym on MiniWoB++ below a path (a file, or a folder of `.jsonl` files) and compares what is shown.
///
/// # Errors
///
/// [`WebError`] where there is no browser, there are no pages, or there are no recordings.
pub async fn replay_traces(path: &Path) -> Result<ConformanceReport, WebError> {
    let browsers = Browsers::default();
    let report = spar_web::miniwob::replay_traces(&browsers, &Pages::shared()?, path).await;
    browsers.close().await;
    report
}
