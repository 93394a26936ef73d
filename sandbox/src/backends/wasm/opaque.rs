//! Engines, programs and instances, as asynchronous code sees them.
//!
//! Of an asynchronous function the compiler proves that it is `Send`, for which it looks through every type that the
//! function holds while it waits. Those of wasmtime are many and hold one another: each function that reaches one of
//! them takes a second to compile. Through these traits none of them is reached.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;

use super::output::Output;
use super::precompiled::Cache;
use super::run::Launch;
use super::session::SessionImage;
use crate::SandboxError;

/// An engine that programs are loaded into.
pub(crate) trait Load: Send + Sync {
    /// The program of these contents, if it was loaded before.
    fn loaded(&self, hash: &blake3::Hash) -> Option<Arc<dyn Start>>;

    /// Loads a program, which may take seconds.
    fn load(
        &self,
        cache: &Cache,
        hash: blake3::Hash,
        wasm: &[u8],
    ) -> wasmtime::Result<Arc<dyn Start>>;
}

/// A program that can be started.
pub(crate) trait Start: Send + Sync {
    /// Whether instances can live on between commands.
    fn has_sessions(&self) -> bool;

    /// One command in a fresh instance.
    fn command(&self, launch: Launch) -> Result<Box<dyn Command>, SandboxError>;

    /// An instance that lives on: a new one, or one that goes on from `image`.
    fn session(
        &self,
        launch: Launch,
        image: Option<SessionImage>,
    ) -> Result<BoxFuture<'_, wasmtime::Result<Box<dyn Live>>>, SandboxError>;
}

/// One command, which gives back what it took when dropped.
pub(crate) trait Command: Send {
    /// Runs it to its end: its code.
    fn run(&mut self) -> BoxFuture<'_, wasmtime::Result<i32>>;

    /// Whether the guest was refused memory in a way that it could see.
    fn was_refused_memory(&self) -> bool;
}

/// An instance that waits for its next command.
pub(crate) trait Live: Send {
    /// A copy of its state.
    fn image(&mut self) -> SessionImage;

    /// Sets when the next command is ended, and how much fuel it has where fuel is counted.
    fn limit(&mut self, deadline: Instant, fuel: Option<u64>) -> wasmtime::Result<()>;

    /// Where it writes.
    fn output(&self) -> Arc<Output>;

    /// Runs one command: its code, and the working directory afterwards.
    fn command<'a>(
        &'a mut self,
        command: &'a str,
    ) -> BoxFuture<'a, wasmtime::Result<(i32, Option<String>)>>;

    /// Whether the guest was refused memory in a way that it could see.
    fn was_refused_memory(&self) -> bool;
}
