//! The decoder's operations, with explicit forward and backward.
//!
//! ```text
//!  Page (keys, values) ─▶ attention ─┐
//!  Matrix (f32, bf16, f16) ─▶ matmul ├─▶ forward, backward of a layer (policy's `decoder`)
//!  rows ─▶ elementwise, heads, rotary ┘
//!                 │
//!                 └─ kernel: one twin per instruction set · parallel: pieces for threads
//! ```
//!
//! All work on flat slices and give, on one machine, the same bits for every batch size and for every
//! number of threads; on machines of other instruction sets the same but for rounding. They are a crate of their own so that they alone are compiled
//! with full optimisation where everything else is built for its tests.
//!
//! ```
//! use spar_ops::matmul::{Output, linear};
//!
//! // y = x W^T: one row of two numbers, a matrix of three rows.
//! let (x, w) = ([1.0, 2.0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
//! let mut y = [0.0; 3];
//! linear(&x, &w[..], &mut y, 1, 3, Output::Set);
//! assert_eq!(y, [1.0, 2.0, 3.0]);
//! ```

pub mod attention;
pub mod elementwise;
#[doc(hidden)]
pub mod gradient_check;
pub mod heads;
mod kernel;
pub mod matmul;
mod matrix;
pub mod page;
pub mod parallel;
mod rope_scaling;
pub mod rotary;
mod transpose;

pub use matrix::Matrix;
pub use rope_scaling::RopeScaling;
