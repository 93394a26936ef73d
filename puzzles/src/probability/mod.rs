//! Puzzles of probability.

pub(crate) mod coin_flip;
