//! Isolated machines that an agent's actions run in.
//!
//! ```text
//!   SandboxSpec ──▶ SandboxBackend::create ──▶ Sandbox ──exec──▶ ExecResult { end, stdout, stderr }
//!        ▲            docker · wasm ·             │ ├──open_shell──▶ Shell::run
//!        │            local · fake                │ ├──read / write / list / tar
//!   Image, Limits,                                │ ├──spawn / spawn_pty──▶ Process: streams, wait, kill
//!                                                 │ ├──connect──▶ ByteStream to a port inside
//!                                                 │ ├──changes──▶ what differs from where it began
//!                                                 │ └──snapshot──▶ Snapshot ──▶ SandboxBackend::restore
//!   NetworkPolicy                                 ▼
//!                                          fork: a second Sandbox        reap: what dead owners left
//! ```
//!
//! A command that fails is an observation ([`ExecEnd`]); a sandbox that cannot do its part is an
//! error ([`SandboxError`]). What a backend cannot do it says ([`Capabilities`], and
//! [`SandboxError::Unsupported`] when asked all the same); nothing is imitated.
//!
//! ```
//! use spar_sandbox::backends::fake::FakeBackend;
//! use spar_sandbox::{ExecEnd, ExecRequest, Image, SandboxBackend, SandboxSpec};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let backend = FakeBackend::new();
//! let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await?;
//! let result = sandbox.exec(&ExecRequest::new(["echo", "hello"])).await?;
//! assert_eq!(result.end, ExecEnd::Exited { code: 0 });
//! assert_eq!(result.stdout.text(), "hello\n");
//! sandbox.close().await?;
//! # Ok::<(), spar_sandbox::SandboxError>(())
//! # }).unwrap();
//! ```

pub mod allow_list;
mod archive;
pub mod backends;
mod byte_stream;
mod capability_set;
mod captured;
mod changes;
pub mod conformance;
mod error;
mod exec;
mod fault;
#[cfg(any(feature = "wasm", feature = "local"))]
mod folder_lock;
pub mod interpreter;
mod measure;
mod nonce;
pub mod output;
mod owner;
pub mod pool;
mod process;
mod pty;
pub mod registry;
mod sandbox;
mod set_up;
mod shell;
mod spec;

pub use archive::{Carried, CarriedPath};
pub use byte_stream::ByteStream;
pub use capability_set::CapabilitySet;
pub use captured::Captured;
pub use changes::{Change, ChangeKind, Changes, FileState};
pub use error::{Death, SandboxError};
pub use exec::{ExecEnd, ExecRequest, ExecResult, OutputSink, Stream};
pub use fault::{Evidence, Fault, Vitals};
pub use measure::{Latencies, measure};
pub use owner::{Owner, OwnerState};
pub use process::{Process, ProcessHandle};
pub use pty::{PtyProcess, PtySize, PtyWindow};
pub use sandbox::{
    Capabilities, FileEntry, FileKind, ReapReport, Sandbox, SandboxBackend, SandboxRecord,
    SandboxStats, Snapshot,
};
pub use shell::{Shell, ShellOptions, ShellResult};
pub use spec::{Determinism, Image, Lifetimes, Limits, Mount, NetworkPolicy, SandboxSpec};
