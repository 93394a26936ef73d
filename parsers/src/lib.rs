//! Reads actions in what a policy wrote, in each of the common syntaxes.
//!
//! A policy writes text; an environment takes an [`Action`](spar_core::Action): words, or calls of
//! tools. Between them stands a parser, which is chosen by name, so that a model can act in the
//! syntax that it was trained in:
//!
//! ```text
//!                     open_parser("hermes")
//!                              │
//!                              ▼
//!  text, tools ──▶ ActionParser::parse ──▶ Parsed { action, spans, reasoning }
//!                              │      └──▶ FormatError { kind, span, message }
//!                              ▼
//!  action, tools ─▶ ActionParser::write ──▶ text that is read as that action, or WriteError
//! ```
//!
//! Parsers see whole texts and keep no state. What is inside a `<think>` block is none of their
//! business: thoughts are split off before.
//!
//! They hold to four rules:
//!
//! - **One fault is a fault of the whole answer.** Several of the parsers that models ship with
//!   drop a call that they cannot read and carry on; here the policy is told what was wrong.
//! - **Nothing that was cut off is acted on.** A call whose arguments end with the text is an
//!   error, never a shorter call.
//! - **Whether a call makes sense is the environment's business.** Tools that nobody offered and
//!   arguments that do not fit are passed on. Schemas are read only where a syntax has no types of
//!   its own.
//! - **Hostile text does no harm.** Time is linear in the text, depth and number of calls are
//!   bounded, and nothing panics.
//!
//! JSON is read strictly, apart from keys that stand twice: the last one counts, as in Python and
//! JavaScript. Integers beyond 64 bits become floating-point numbers.
//!
//! ```
//! use spar_core::Action;
//! use spar_parsers::{FormatErrorKind, open_parser};
//!
//! let parser = open_parser("hermes")?;
//! let text = r#"I look. <tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>"#;
//! let parsed = parser.parse(text, &[]).unwrap();
//! let Action::Calls { text: said, calls } = &parsed.action else { panic!() };
//! assert_eq!((said.as_str(), calls[0].name.as_str()), ("I look.", "read"));
//! assert_eq!(&text[parsed.spans[0].clone()], &text[8..]);
//!
//! let error = parser.parse("<tool_call>{", &[]).unwrap_err();
//! assert_eq!(error.kind, FormatErrorKind::Json);
//! # Ok::<(), spar_core::registry::RowError>(())
//! ```

mod action_parser;
mod call_grammar;
mod call_list;
#[cfg(test)]
mod conformance;
mod error;
#[cfg(test)]
mod golden;
mod json;
mod marks;
mod parsed;
mod python_literal;
mod registry;
mod syntaxes;
mod typed_value;

pub use action_parser::ActionParser;
pub use call_grammar::{CallRules, CallWords};
pub use call_list::MAX_CALLS;
pub use error::{FormatError, FormatErrorKind, WriteError};
pub use parsed::Parsed;
pub use registry::{ParserRow, Syntax, open_parser, parser_registry};
