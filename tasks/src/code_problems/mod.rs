//! Files of programming problems, as benchmarks publish them.
//!
//! ```text
//!  .jsonl ──Schema::of(first line)──▶ CodeProblemSuite ──line──▶ CodeTask { prompt, tests } of environment `code`
//! ```

mod livecodebench;
mod schema;
mod suite;

pub use schema::Schema;
pub use suite::CodeProblemSuite;
