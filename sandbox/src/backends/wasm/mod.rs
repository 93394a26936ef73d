//! WebAssembly guests through wasmtime.
//!
//! A sandbox is a program (a guest), files in memory, and what chance and clocks it is given. Every
//! command is a fresh instance of the program that works on these files; a shell is an instance that
//! lives on. There are no processes, no users and no network, and no path of the host: a guest
//! reaches its tree of files, its standard streams, a clock, random numbers, and nothing else.
//!
//! ```text
//!   WasmBackend ── Runtime (engine, linkers, compiled programs) ◀── Cache on disk
//!        │
//!        └─ Inner ── Tree (files) ── Surroundings (clock, random) ── Usage (memory, time)
//!             │ exec: Launch ──▶ Store<GuestState> ──▶ preview1 | preview2 ──▶ ExecEnd
//!             └ shell: Session ──▶ Live ──image──▶ SessionImage ──▶ Live in a fork
//! ```
//!
//! Memory of sessions is part of snapshots and forks: the first [`open_shell`] in a fork goes on
//! where the session of the original was.
//!
//! Read-only mounts are copied in when the sandbox is created; what the host changes later is not
//! seen.
//!
//! [`open_shell`]: crate::Sandbox::open_shell

mod backend;
mod engine;
mod errno;
mod file_data;
mod host;
mod opaque;
mod output;
mod precompiled;
mod preview1;
mod preview2;
mod run;
mod sandbox;
mod session;
mod settings;
mod surroundings;
mod tree;
mod tree_tar;
mod usage;

#[cfg(test)]
mod tests;

pub use backend::WasmBackend;
pub use settings::{Allocation, WasmSettings};

use crate::Capabilities;

/// The backend's name in the registry.
const NAME: &str = "wasm";

/// What the backend can do; [`Capabilities::shell`] is up to the guest.
fn capabilities() -> Capabilities {
    Capabilities {
        posix: false,
        shell: true,
        spawn: false,
        pty: false,
        connect: false,
        snapshot: true,
        fork: true,
        memory_in_snapshot: true,
        cpu_limit: false,
        memory_limit: true,
        // Guests start no processes; commands that run at one time are counted instead.
        pids_limit: true,
        pids_reserve: 0,
        disk_limit: true,
        shm_limit: false,
        open_files_limit: false,
        fuel_limit: true,
        network: false,
        network_allow_list: false,
        network_change: false,
        bridge_change: false,
        capability_sets: false,
        determinism: true,
        image_build: false,
        image_root_tar: false,
    }
}
