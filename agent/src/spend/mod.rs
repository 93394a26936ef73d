//! What runs and evaluations spend on models, and where they stop.
//!
//! ```text
//!  HttpPolicy ──reserve──▶ Budget ──begun, ended──▶ Ledger (spend.jsonl)
//!      ▲   what it may take, before it is sent │
//!      └───────────── settle ──────────────────┤
//!           what it took, as the answer tells  │ a limit is reached
//!  episodes of a policy in this process ───────┤
//!                                              ▼
//!                                        Cancellation
//! ```
//!
//! A request is sent when what it may take at the most has room beside what was spent and what others under way may
//! take: so many requests at a time do not go beyond a limit together. Where there is only no room beside the others, it
//! waits for them; where there is none at all, the limit is reached, and all that is under way is told to stop.

mod budget;
mod config;
mod episode_tally;
mod error;
mod ledger;
mod prices;
mod report;

pub use budget::{Bound, Budget, Meter, Reservation, Told, Watch};
pub use config::SpendConfig;
pub use episode_tally::spend_of;
pub(crate) use episode_tally::{EpisodeTally, add};
pub use error::SpendError;
pub use ledger::{Ledger, read_ledger};
pub use prices::{PriceSource, Prices};
pub(crate) use report::rounded;
pub use report::{LimitReached, ScoreSpend, SpendReport};
