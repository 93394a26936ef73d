//! A real browser for environments: windows, what they show, and what can be done in them.
//!
//! ```text
//!  Browsers ──window(spec, server)──▶ LentWindow ─ Tab, Tab, ...      one process, one context each
//!                                        │
//!            Server ◀─every request──────┤   nothing reaches a network or the machine's files
//!                                        ▼
//!     action text ──Actor──▶ mouse, keyboard, navigation ──look──▶ View (elements), axtree
//!
//!  miniwob: pages of MiniWoB++, episodes, oracles      site: small sites and WebArena's judges
//! ```
//!
//! Actions and observations are BrowserGym's: calls such as `click('13')`, elements by the numbers that a script puts on
//! them, and the text of the accessibility tree, equal to that of BrowserGym 0.14.3 (`spar conformance miniwob`). The browser
//! is talked to over a pipe in its DevTools protocol: there is no port that a page could reach, and a browser whose pipe is
//! closed ends, so that none outlives this process. Time within pages can be the [page's own](WindowSpec::clock_start).
//!
//! ```
//! use spar_web::{ActionSet, find_browser};
//!
//! let actions = ActionSet::new(&["miniwob_liu18"]).unwrap();
//! assert!(actions.describe().contains("click(bid, button='left', modifiers=[])"));
//! // Where there is no browser, the error says the one thing to do.
//! assert!(find_browser().map_or_else(|error| error.hint().is_some(), |path| path.is_file()));
//! ```

mod action;
mod actor;
mod axtree;
mod browser;
mod browsers;
mod connection;
mod error;
mod files;
mod hands;
mod keyboard;
pub mod miniwob;
mod page;
mod server;
pub mod site;
mod tab;
#[cfg(test)]
mod tests;
mod view;
mod window;

pub use action::{
    ACTION_KINDS, ActionError, ActionKind, ActionSet, action_set_names, as_tool_call,
};
pub use actor::{Actor, ActorOptions, Due, Input, Performed};
pub use axtree::{AxOptions, flatten_axtree};
pub use browser::{BrowserOptions, PROGRAM_VARIABLE, browser_version, find_browser};
pub use browsers::{Browsers, LentWindow};
pub use error::WebError;
pub use server::{Nothing, Request, Response, Server, SlowAnswer};
pub use tab::{Navigation, Tab};
pub use view::{Element, ElementFacts, Looked, View, ViewOptions, look};
pub use window::{Window, WindowSpec};
