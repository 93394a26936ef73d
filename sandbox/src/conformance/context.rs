//! What the trials share.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use super::{Options, Program};
use crate::nonce::nonce;
use crate::{
    Capabilities, CapabilitySet, ExecRequest, ExecResult, Sandbox, SandboxBackend, SandboxError,
    SandboxSpec,
};

/// Why a check did not pass.
pub(super) enum Finding {
    Failed(String),
    Skipped(String),
    Unsupported,
}

impl From<SandboxError> for Finding {
    fn from(error: SandboxError) -> Self {
        let mut text = format!("could not {error}");
        let mut source = error.source();
        while let Some(inner) = source {
            text += &format!(": {inner}");
            source = inner.source();
        }
        Self::Failed(text)
    }
}

/// Fails the check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::conformance::context::Finding::Failed(format!($($what)+)));
        }
    };
}
pub(super) use ensure;

pub(super) struct Context<'c> {
    pub(super) backend: &'c dyn SandboxBackend,
    pub(super) options: &'c Options,
    /// Of the sandboxes that are made.
    pub(super) capabilities: CapabilitySet,
    /// Sandboxes of this process that are not the checks'.
    pub(super) before: Vec<String>,
}

impl<'c> Context<'c> {
    pub(super) async fn new(backend: &'c dyn SandboxBackend, options: &'c Options) -> Self {
        // A backend that cannot list fails the checks of that.
        let listed = backend.list().await.unwrap_or_default();
        let before = listed.into_iter().map(|record| record.id).collect();
        Self { backend, options, capabilities: CapabilitySet::None, before }
    }

    pub(super) fn can(&self) -> Capabilities {
        self.backend.capabilities()
    }

    pub(super) fn spec(&self) -> SandboxSpec {
        let spec = SandboxSpec::new(self.options.image.clone());
        SandboxSpec { capabilities: self.capabilities, ..spec }
    }

    pub(super) async fn create(&self) -> Result<Box<dyn Sandbox>, Finding> {
        Ok(self.backend.create(&self.spec()).await?)
    }

    /// The program, and a spec of the image it is in.
    pub(super) fn program<'p>(
        &self,
        program: &'p Option<Program>,
    ) -> Result<(&'p Program, SandboxSpec), Finding> {
        let program = program.as_ref().ok_or_else(|| Finding::Skipped("no such program".into()))?;
        let image = program.image.as_ref().unwrap_or(&self.options.image);
        let spec = SandboxSpec::new(image.clone());
        Ok((program, SandboxSpec { capabilities: self.capabilities, ..spec }))
    }

    /// Runs a program in a new sandbox, after `prepare` had its way with spec and request.
    pub(super) async fn once(
        &self,
        program: &Option<Program>,
        prepare: impl FnOnce(&mut SandboxSpec, &mut ExecRequest),
    ) -> Result<ExecResult, Finding> {
        let (program, mut spec) = self.program(program)?;
        let mut request = program.request();
        prepare(&mut spec, &mut request);
        let sandbox = self.backend.create(&spec).await?;
        let result = sandbox.exec(&request).await;
        sandbox.close().await?;
        Ok(result?)
    }

    /// For checks that are scripts of `sh`.
    pub(super) fn needs_posix(&self) -> Result<(), Finding> {
        if self.can().posix { Ok(()) } else { Err(Finding::Skipped("no programs of POSIX".into())) }
    }

    /// A new sandbox of a POSIX system.
    pub(super) async fn posix(&self) -> Result<Box<dyn Sandbox>, Finding> {
        self.needs_posix()?;
        self.create().await
    }

    /// For checks that are scripts of `sh` and need no processes beside it.
    pub(super) fn needs_scripts(&self) -> Result<(), Finding> {
        if self.can().posix || self.options.programs.scripts {
            return Ok(());
        }
        Err(Finding::Skipped("no scripts of `sh`".into()))
    }

    /// A new sandbox that runs scripts of `sh`, if not all that a POSIX system has.
    pub(super) async fn scripted(&self) -> Result<Box<dyn Sandbox>, Finding> {
        self.needs_scripts()?;
        self.create().await
    }

    /// Asking for what the backend lacks is `Unsupported`, and that is the end of the check.
    pub(super) async fn must_refuse(&self, spec: &SandboxSpec) -> Result<(), Finding> {
        match self.backend.create(spec).await {
            Ok(sandbox) => {
                sandbox.close().await?;
                Err(Finding::Failed("it does what it says it cannot".into()))
            }
            Err(error) => is_unsupported(error),
        }
    }
}

/// What a call that the backend cannot do has to end with.
pub(super) fn is_unsupported(error: SandboxError) -> Result<(), Finding> {
    match error {
        SandboxError::Unsupported { .. } => Err(Finding::Unsupported),
        other => Err(Finding::Failed(format!("not told as unsupported: {other}"))),
    }
}

/// Runs a script; it has to end by itself with 0. What it wrote to standard output.
pub(super) async fn sh(sandbox: &dyn Sandbox, script: &str) -> Result<String, Finding> {
    let result = sandbox.exec(&ExecRequest::sh(script)).await?;
    ensure!(
        result.end.is_success(),
        "`{script}` {}: {}{}",
        result.end,
        result.stdout.text(),
        result.stderr.text()
    );
    Ok(result.stdout.text())
}

/// Runs a script however it ends, for at most `limit`.
pub(super) async fn sh_for(
    sandbox: &dyn Sandbox,
    script: &str,
    limit: Duration,
) -> Result<ExecResult, Finding> {
    Ok(sandbox.exec(&ExecRequest::sh(script).with_timeout(limit)).await?)
}

/// A folder of the host; removed when dropped.
pub(super) struct HostFolder {
    pub(super) path: PathBuf,
}

impl HostFolder {
    pub(super) fn new() -> Result<Self, Finding> {
        let path = std::env::temp_dir().join(format!("spar-conformance-{}", nonce()));
        let made = std::fs::create_dir(&path);
        made.map_err(|error| Finding::Skipped(format!("no folder on the host: {error}")))?;
        Ok(Self { path })
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Finding> {
        let path = self.path.join(name);
        let written = std::fs::write(&path, bytes);
        written.map_err(|error| Finding::Skipped(format!("no file on the host: {error}")))?;
        Ok(path)
    }
}

impl Drop for HostFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
