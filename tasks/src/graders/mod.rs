//! Graders: what becomes of an episode when it is over.

mod exact;

pub use exact::{Exact, ExactOptions};
