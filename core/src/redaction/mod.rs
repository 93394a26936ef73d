//! Secrets, kept out of what is written.
//!
//! ```text
//!  keys, tokens, passwords ──keep──▶ the secrets of this process ──▶ Redactor
//!                                                                      │
//!     what an environment shows ─▶ [redacted NAME] ─▶ policy, record ◀─┤
//!     records, messages, reports ─▶ [redacted NAME] ─▶ files, screen ◀─┘
//! ```
//!
//! A [`Redactor`] knows values (and their usual encodings) and [rules](SecretRule) of what looks like a secret. Whoever
//! reads a secret tells it to the process's own set ([`keep`]), and whoever writes asks for that set's redactor
//! ([`current`]), so that no secret has to be handed from one to the other. Where nothing is secret, that is one atomic
//! read.
//!
//! ```
//! use spar_core::redaction::Redactor;
//!
//! let redactor = Redactor::new([("API_KEY", "correct horse battery")], &[]);
//! let told = "curl -H 'Authorization: correct horse battery'";
//! assert_eq!(redactor.text(told), "curl -H 'Authorization: [redacted API_KEY]'");
//! ```
//!
//! What cannot be known is not found: a secret that somebody writes backwards, in pieces, or enciphered.

mod encodings;
mod error;
mod process;
mod record;
mod redactor;
mod rules;
mod stream;
mod writer;

pub use error::SecretError;
pub use process::{current, keep, look_for, to_json, told};
pub use redactor::{MIN_CUT_BYTES, MIN_SECRET_BYTES, Redactor};
pub use rules::SecretRule;
pub use stream::StreamRedactor;
pub use writer::RedactingWriter;
