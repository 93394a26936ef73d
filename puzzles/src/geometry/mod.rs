//! Puzzles of geometry.

pub(crate) mod simple_geometry;
