//! Crafting by recipes in words.
//!
//! ```text
//!  seed, depth ──▶ Book ◀── the user's folder of recipes
//!                   │
//!                   ▼
//!  Quest (book, commands that are shown, goal) ──▶ Bench ── act(words) ──▶ text, done
//! ```
//!
//! Actions and texts are those of TextCraft (Prasad et al., arXiv 2311.05772) as AgentGym has them (github.com/WooooDyy/AgentGym,
//! `agentenv-textcraft`, MIT, whose sentences stand here unchanged); recipes are own, written by hand or drawn from seeds, or those of a folder in Minecraft's form.
//!
//! ```
//! use spar_core::Seed;
//! use spar_crafting::{Bench, Quest};
//!
//! let quest = Quest::generated(Seed::from_u64(1), 2, 4);
//! let mut bench = Bench::new(quest.into());
//! while let Some(action) = bench.next_of_solution() {
//!     bench.act(&action);
//! }
//! assert!(bench.is_done());
//! ```

mod bench;
mod book;
mod quest;
mod words;

pub use bench::Bench;
pub use book::{Amount, Book, BookError, Item, Recipe};
pub use quest::Quest;
