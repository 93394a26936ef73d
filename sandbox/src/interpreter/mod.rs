//! Interpreters of a language whose state lives on between pieces of code.
//!
//! ```text
//!  Interpreter::run(code) ──▶ Shell ──▶ Cell { text, end, restarted }
//!                               ├─ wasm: the session of a guest (fork and snapshot hold its memory)
//!                               └─ docker, local: ProcessSession ── python3 or node, which runs a driver
//! ```
//!
//! Whatever a cell does ends as text within its limits: a loop at its deadline, memory without end, a gigabyte of
//! output, an interpreter that ends. The cell behind it runs in order, in a new interpreter where the old one is gone.

mod cell;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod interpreter;
mod language;
#[cfg(any(feature = "docker", feature = "local", test))]
mod process_session;
#[cfg(test)]
mod tests;

pub use cell::{Cell, CellEnd};
pub use interpreter::{Interpreter, InterpreterOptions};
pub use language::Language;
