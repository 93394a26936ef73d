//! Group filters: which trajectories of a group are trained.
//!
//! ```text
//!  GroupView ──▶ GroupFilter ──kept or not, per trajectory──▶ settle_ownership, CutBatch::weigh
//! ```
//!
//! Credit is estimated before, over whole groups, so that what is left out was still compared with. What is
//! left out counts in nothing behind that: neither in the loss nor in what the loss is divided by. A new
//! filter is one file and one row of [`filter_registry`].

mod all;
mod consistent;
mod error;
mod filter;
mod max_variance;
mod registry;
mod top_bottom;
mod with_signal;

pub use all::All;
pub use consistent::{Consistent, ConsistentConfig};
pub use error::FilterError;
pub use filter::{GroupFilter, kept};
pub use max_variance::{MaxVariance, MaxVarianceConfig};
pub use registry::{FilterConfig, FilterRow, OpenFilter, filter_registry, open_filter};
pub use top_bottom::{PfPpoMethod, TopBottom, TopBottomConfig, pf_ppo_weights};
pub use with_signal::WithSignal;
