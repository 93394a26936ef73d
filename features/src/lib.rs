//! No code: one set of features of the dependencies that several crates share.
//!
//! Cargo compiles a dependency once for every set of features that is asked of it. Without this crate each selection of
//! the workspace's crates (`cargo test -p spar-agent`, `cargo clippy --workspace`) would ask for another set and compile
//! tokio, hyper and all that stands on them anew. Every crate depends on it, so that all selections ask for the same;
//! what is compiled is the same as before, since the binary has all of it.
