//! Operations with explicit forward and backward.
//!
//! All work on flat slices, on one thread, and give the same bits on every instruction set and for
//! every batch size; parallelism comes from working on several sequences at once.

pub mod attention;
pub mod elementwise;
#[cfg(test)]
pub(crate) mod gradient_check;
mod kernel;
pub mod matmul;
pub mod rotary;
