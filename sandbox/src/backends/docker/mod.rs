//! Containers through the API of Docker (Engine 20.10 and later) or Podman.
//!
//! ```text
//!   DockerBackend ──▶ Engine (one per host) ──▶ container ──▶ /dev/spar/exec init
//!        │ places                                               /dev/spar/exec run ... ──▶ command
//!        ▼                                                              │ subreaper, deadline,
//!   DockerSandbox ──▶ Conversation ◀───────── frames ───────────────────┘ output, how it ended
//! ```
//!
//! A container has no network unless the spec asks for one, no capabilities, `no-new-privileges`,
//! the engine's default seccomp filter and no log. What it needs of spar is one static program on
//! a read-only volume at `/dev/spar` (`helper/`): it is the first process, and it stands above each
//! command, so that neither a deadline nor a file operation depends on what the image has.
//!
//! Everything is made with labels that name its owner; [`reap`](crate::SandboxBackend::reap) goes
//! by them alone.

mod backend;
mod build_context;
mod changes;
mod container;
mod conversation;
mod credentials;
mod dial;
mod dockerignore;
mod end_all;
mod engine;
mod files;
mod health;
mod helper;
mod host;
mod image;
mod input;
mod labels;
mod mux;
mod network;
mod process;
mod reach;
mod reap;
mod relay;
mod sandbox;
mod shell;
#[cfg(test)]
mod tests;

pub use backend::DockerBackend;
pub use host::DockerHost;

/// The backend's name in the registry.
const NAME: &str = "docker";
