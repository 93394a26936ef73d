//! The backends.

#[cfg(feature = "docker")]
pub mod docker;
pub mod fake;
#[cfg(feature = "local")]
pub mod local;
#[cfg(all(test, any(feature = "docker", feature = "local")))]
mod services;
#[cfg(feature = "wasm")]
pub mod wasm;
