//! Small learned functions that are not the policy.
//!
//! Features go in, numbers come out; no type of the tensor library crosses the crate's boundary.

mod segments;

pub use segments::{Segments, SegmentsError};
