//! How the backend is set up.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the WebAssembly backend is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WasmSettings {
    /// Where `python.wasm`, `javascript.wasm` and `shell.wasm` lie. Default the variable `SPAR_GUESTS`,
    /// else `spar/guests` in the user's cache folder.
    pub guests: PathBuf,
    /// Where compiled guests are kept; only its owner may write into it. Default `spar/wasm` in the
    /// user's cache folder.
    pub cache: PathBuf,
    /// Where instances get their memory. Default pooled, 1,024 instances.
    pub allocation: Allocation,
    /// Bytes of files of a sandbox whose spec names no limit. Default 1 GiB.
    pub disk_bytes: u64,
    /// Bytes of memory of a sandbox whose spec names no limit. Default 4 GiB, the most that a 32-bit
    /// memory can have.
    pub memory_bytes: u64,
    /// Table elements of an instance. Default 100,000.
    pub table_elements: usize,
}

/// Where instances get their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Allocation {
    /// Slots that are reserved once and used again: 4 GiB of address space each, no memory. An
    /// instance more than there are slots is [`SandboxError::Saturated`](crate::SandboxError).
    Pooled {
        /// Instances at one time.
        instances: u32,
    },
    /// Memory from the system for each instance, for machines that limit address space. Creating
    /// takes three times as long.
    OnDemand,
}

impl Default for WasmSettings {
    fn default() -> Self {
        let cache = user_cache();
        Self {
            guests: std::env::var_os("SPAR_GUESTS")
                .map_or_else(|| cache.join("guests"), PathBuf::from),
            cache: cache.join("wasm"),
            allocation: Allocation::Pooled { instances: 1024 },
            disk_bytes: 1 << 30,
            memory_bytes: 4 << 30,
            table_elements: 100_000,
        }
    }
}

fn user_cache() -> PathBuf {
    let of_user = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let base = of_user
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("spar")
}
