//! Software-engineering instances as others publish them, and the rules by which attempts at them are graded. No sandbox and no
//! episode is known here: texts and values in, texts and values out.
//!
//! ```text
//!  rows, folders ─▶ Instance ─ issue, image, tests that have to pass, limits, what is unsupported
//!  log of a test runner ─▶ LogParser ─▶ test statuses ─▶ rules ─▶ resolved | partial | failed | invalid
//! ```

pub mod grade;
pub mod log;
mod python_text;
pub mod report;
pub mod similarity;
mod test_status;

pub use test_status::TestStatus;
