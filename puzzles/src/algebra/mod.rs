//! Puzzles of algebra.

pub(crate) mod complex_arithmetic;
pub(crate) mod simple_equations;
