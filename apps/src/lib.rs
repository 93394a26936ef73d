//! A small world of applications behind tools: contacts, mail, calendar, files and payments, with tasks and a judge of what
//! changed.
//!
//! ```text
//!  Seed ──▶ AppTask ── World, Goal, demonstration
//!              │
//!              ▼          name, arguments
//!           Session  ◀──────────────────── call ──▶ result, or why not
//!              │
//!              └─ finish ──▶ Judgement: required changes, answer, minefields, damage
//! ```
//!
//! State is plain records in tables that clones share, so that a [`Session`] is copied in less than a microsecond. A task is
//! judged by what differs between the world at its beginning and at its end: every difference has to be demanded, and
//! every demand has to be met. The form is AppWorld's (arXiv 2407.18901) and ToolSandbox's (arXiv 2408.04682); people, words
//! and tasks are own, made from seeds.
//!
//! ```
//! use std::sync::Arc;
//!
//! use spar_apps::{AppTask, Families, Session};
//! use spar_core::Seed;
//!
//! let task = AppTask::draw(Seed::from_u64(1), Families::Seen, &[3]).expect("there are families of level 3");
//! let mut session = Session::new(Arc::new(task));
//! while let Some(gold) = session.next_gold().cloned() {
//!     session.call(gold.tool, &gold.arguments).expect("the demonstration can be carried out");
//! }
//! assert!(session.judgement().is_some_and(|judgement| judgement.success));
//! ```

mod app;
mod arguments;
mod calendar;
mod contacts;
mod diff;
#[cfg(test)]
mod documentation;
mod draft;
mod facts;
mod families;
mod files;
mod goal;
mod mail;
mod moment;
mod payments;
mod phone;
mod problem;
mod session;
mod table;
mod task;
mod tool;
mod words;
mod world;

pub use app::App;
pub use diff::{Change, changes};
pub(crate) use draft::Draft;
pub use families::{FAMILIES, Family};
pub use session::{Judgement, Session};
pub use task::{AppTask, Families, GoldCall, Offer};
pub use tool::{AppTool, call, specs, tools};
pub use world::World;
