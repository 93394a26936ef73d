//! Operations with explicit forward and backward.
//!
//! All work on flat slices and give the same bits on every instruction set, for every batch size
//! and for every number of threads.

pub(crate) mod attention;
pub mod elementwise;
#[cfg(test)]
pub(crate) mod gradient_check;
pub(crate) mod heads;
mod kernel;
pub mod matmul;
mod matrix;
pub(crate) mod page;
pub mod parallel;
pub mod rotary;
mod transpose;

pub use matrix::Matrix;
