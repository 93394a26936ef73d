//! The backends.

#[cfg(feature = "docker")]
pub mod docker;
pub mod fake;
#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "wasm")]
pub mod wasm;
