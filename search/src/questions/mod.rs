//! Files of questions, as those who published them lay them out.
//!
//! ```text
//!  file ──first row──▶ QuestionFormat::detect
//!       ──every row──▶ QuestionFormat::read ──▶ QuestionRecord { question, answers, supporting, paragraphs }
//! ```

mod file;
mod record;

pub use file::{QuestionFile, read_paragraphs};
pub use record::{QuestionFormat, QuestionRecord};
