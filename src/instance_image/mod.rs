//! Images of software-engineering instances, for those whose published ones cannot be had.
//!
//! ```text
//!  mirror ── base commit, alone ──┐
//!  interpreter of the version ────┼─▶ ImagePlan ── key ──▶ engine: there already | built, named as the row names it
//!  the row's pinned requirements ─┘
//! ```
//!
//! An image has what SWE-bench's own have where scripts of evaluation look for it: the repository in `/testbed`, the interpreter with
//! its packages in `/opt/miniconda3/envs/testbed`, and an `activate` that puts it in front of `PATH`. It is built in two stages, so
//! that compilers, certificates and indexes of packages stay out of it.

mod engine;
mod error;
mod interpreter;
mod mirror;
mod plan;
mod requirements;

pub use engine::{BuildEnd, Engine};
pub use error::ImageError;
pub use interpreter::Interpreter;
pub use mirror::Mirror;
pub use plan::{DEFAULT_BASE, ImagePlan, PlanOptions};
