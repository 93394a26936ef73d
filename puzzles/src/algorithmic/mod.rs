//! Puzzles that an algorithm solves.

pub(crate) mod ab;
pub(crate) mod base_conversion;
pub(crate) mod binary_alternation;
pub(crate) mod binary_matrix;
pub(crate) mod count_primes;
pub(crate) mod cryptarithm;
pub(crate) mod game_of_life;
pub(crate) mod graph_color;
pub(crate) mod jugs;
pub(crate) mod manipulate_matrix;
pub(crate) mod number_filtering;
pub(crate) mod number_sorting;
pub(crate) mod palindrome_generation;
pub(crate) mod palindrome_partitioning;
pub(crate) mod rotate_matrix;
pub(crate) mod rotten_oranges;
pub(crate) mod spiral_matrix;
pub(crate) mod string_insertion;
pub(crate) mod string_manipulation;
pub(crate) mod string_splitting;
pub(crate) mod string_synthesis;
