//! Puzzles of patterns and attention.

pub(crate) mod color_cube_rotation;
pub(crate) mod modulo_grid;
pub(crate) mod number_sequence;
pub(crate) mod rectangle_count;
