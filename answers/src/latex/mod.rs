//! Reads formulas, in LaTeX or as they are typed.
//!
//! ```text
//!  text ──tokens──▶ [Token] ──parse──▶ Expression
//! ```
//!
//! Length, depth and the size of numbers are bounded; recursion ends at [`MAX_DEPTH`].

mod parser;
mod token;

use crate::Unclear;
use crate::expression::Expression;

/// How many bytes of an answer are read.
pub(crate) const MAX_BYTES: usize = 16_384;
/// How deeply formulas may be nested.
pub(crate) const MAX_DEPTH: usize = 64;

/// How words behind numbers are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Units {
    /// Single letters are variables: `12 m` is a product.
    Words,
    /// Single letters of units behind a number and a space are none: `12 m` is 12.
    Letters,
}

/// The formula that a text is; a sign that stands for two makes two of it.
pub(crate) fn read(text: &str, units: Units) -> Result<Expression, Unclear> {
    if text.len() > MAX_BYTES {
        return Err(Unclear::TooLong { bytes: text.len(), limit: MAX_BYTES });
    }
    let tokens = token::tokens(text, units)?;
    parser::parse(tokens)
}

/// Whether reading a text otherwise makes a difference.
pub(crate) fn has_unit_letters(text: &str) -> bool {
    text.len() <= MAX_BYTES && token::has_unit_letters(text)
}
