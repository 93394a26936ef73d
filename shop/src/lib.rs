//! A shop in text: a catalogue, its search, its pages, and what a purchase is worth.
//!
//! ```text
//!  seed, size ──▶ Catalogue ◀── WebShop's files
//!                    │  └─ draw_goal(seed, part) ──▶ Goal
//!                    ▼                                │
//!                 Session ◀──────────────────────────┘
//!   ShopAction ──▶  act ──▶ text, clickables ── Buy Now ──▶ PurchaseReward
//! ```
//!
//! Pages, actions and rewards are those of WebShop (Yao et al., arXiv 2207.01206; github.com/princeton-nlp/WebShop, MIT, whose words on pages
//! stand here unchanged); products, words and goals are own, drawn from seeds, and the search is own. A catalogue of 100,000 products is
//! an index of words and the rule by which a product is drawn from its number; all episodes share it, and a
//! [`Session`] is copied in well under a microsecond.
//!
//! ```
//! use std::sync::Arc;
//!
//! use spar_core::Seed;
//! use spar_shop::{Catalogue, Part, Session, ShopAction, Showing, oracle};
//!
//! let catalogue = Catalogue::generated(0, 1_000)?;
//! let goal = catalogue.draw_goal(Seed::from_u64(1), Part::Any).expect("it is generated");
//! let mut session = Session::new(catalogue, Arc::new(goal), Showing::default());
//! while let Some(action) = oracle(&session) {
//!     assert!(session.act(ShopAction::read(&action).expect("it is an action")));
//! }
//! assert!(session.bought().is_some_and(|reward| reward.is_success()));
//! # Ok::<(), spar_shop::ShopError>(())
//! ```

mod action;
mod catalogue;
mod colors;
mod conformance;
mod error;
mod files;
mod fuzzy;
mod generated;
mod goal;
mod html;
mod index;
mod nouns;
mod page;
mod part;
mod players;
mod product;
mod reward;
mod session;

pub use action::ShopAction;
pub use catalogue::Catalogue;
pub use conformance::{VisitsReport, replay_visits};
pub use error::ShopError;
pub use files::{GoalSource, WebShopFiles};
pub use fuzzy::token_set_ratio;
pub use goal::{Goal, GoalOptions};
pub use nouns::nouns;
pub use page::PageText;
pub use part::Part;
pub use players::{oracle, reader};
pub use product::{Product, Review};
pub use reward::{PurchaseReward, purchase_reward};
pub use session::{Place, Session, Showing, SubPage};
