//! How programs are started, in a sandbox or without one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spar_core::redaction;
use spar_sandbox::pool::{PoolConfig, PooledSandbox, SandboxPool};
use spar_sandbox::{
    ExecRequest, Image, Mount, NetworkPolicy, Process as SandboxProcess, ProcessHandle, Sandbox,
    SandboxError, SandboxSpec, registry,
};
use spar_tasks::{ProgramSandbox, ProgramSpec};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::local_process::LocalProcess;
use super::program_error::{ProgramError, ProgramFault};
use crate::{EnvironmentError, SandboxPhase};
use spar_sandbox::output::LastWords;

/// Variables of spar's own that programs outside of sandboxes always get.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// How long the sandbox of a program may live: it serves many episodes.
const LIFETIME_SECS: u64 = 30 * 86_400;

/// A program that was started.
pub(crate) struct Launched {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) running: Running,
}

/// What ends a program when it is dropped.
pub(crate) enum Running {
    Local(LocalProcess),
    Sandboxed {
        handle: ProcessHandle,
        sandbox: Box<PooledSandbox>,
    },
    /// In a sandbox that others hold.
    Inside {
        handle: ProcessHandle,
    },
}

impl Running {
    /// Waits until the program itself has ended, and tells how. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> String {
        match self {
            Self::Local(process) => process.wait().await,
            Self::Sandboxed { handle, .. } | Self::Inside { handle } => {
                handle.wait().await.map_or_else(|error| error.to_string(), |end| end.to_string())
            }
        }
    }

    /// Ends it with all that it started.
    pub(crate) async fn end(self) {
        match self {
            // Looks for descendants, which is no work for a thread that others wait for.
            Self::Local(process) => drop(tokio::task::spawn_blocking(|| drop(process)).await),
            Self::Inside { handle } => drop(handle),
            Self::Sandboxed { handle, sandbox } => {
                drop(handle);
                if let Err(error) = sandbox.close().await {
                    tracing::warn!(%error, "could not close the sandbox of a program");
                }
            }
        }
    }
}

/// Starts programs of one kind.
pub(crate) struct Launcher {
    spec: Arc<ProgramSpec>,
    /// Made with the first program that wants one.
    sandboxes: OnceCell<SandboxPool>,
}

impl Launcher {
    pub(crate) fn new(spec: Arc<ProgramSpec>) -> Self {
        Self { spec, sandboxes: OnceCell::new() }
    }

    /// Starts a program.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Program`] or [`EnvironmentError::Sandbox`].
    pub(crate) async fn launch(&self) -> Result<Launched, EnvironmentError> {
        match &self.spec.sandbox {
            None => self.launch_here().map_err(|error| self.not_started(&error.to_string())),
            Some(sandbox) => self.launch_in(sandbox).await.map_err(|source| {
                EnvironmentError::Sandbox { phase: SandboxPhase::Create, source }
            }),
        }
    }

    /// Closes all sandboxes and waits for it.
    pub(crate) async fn close(&self) {
        if let Some(pool) = self.sandboxes.get() {
            pool.shutdown().await;
        }
    }

    fn not_started(&self, detail: &str) -> EnvironmentError {
        let fault = ProgramFault::Start { detail: detail.to_owned() };
        let command = spar_sandbox::output::shortened(&self.spec.command.join(" "), 60);
        let (name, last_words) = (self.spec.name.clone(), LastWords::default());
        let source = Arc::new(ProgramError { name, command, fault, last_words });
        EnvironmentError::Program { doing: "be started", source }
    }

    /// The variables of `pass_env`, whose values are kept out of what is written.
    fn handed_on(&self) -> Vec<(&str, OsString)> {
        let names = self.spec.pass_env.iter().map(String::as_str);
        let found: Vec<_> =
            names.filter_map(|name| Some((name, std::env::var_os(name)?))).collect();
        for (name, value) in &found {
            if !PASSED.contains(name)
                && let Some(value) = value.to_str()
                && let Err(error) = redaction::keep(name, value)
            {
                tracing::warn!(%error, "a variable of `pass_env` is not looked for");
            }
        }
        found
    }

    fn launch_here(&self) -> std::io::Result<Launched> {
        let ProgramSpec { folder, command, workdir, env, .. } = &*self.spec;
        let at = |path: &str| folder.as_deref().map_or_else(|| path.into(), |it| it.join(path));
        let program: PathBuf =
            if command[0].contains('/') { at(&command[0]) } else { command[0].as_str().into() };
        let mut started = Command::new(program);
        started.args(&command[1..]).env_clear();
        started.envs(PASSED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        started.envs(self.handed_on()).envs(env);
        if folder.is_some() {
            started.current_dir(at(workdir.as_deref().unwrap_or_default()));
        }
        let (process, (stdin, stdout, stderr)) = LocalProcess::start(started)?;
        Ok(Launched {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            running: Running::Local(process),
        })
    }

    async fn launch_in(&self, sandbox: &ProgramSandbox) -> Result<Launched, SandboxError> {
        let spec = self.sandbox_spec(sandbox)?;
        let open = async || {
            let backend = registry::open(&sandbox.backend)?;
            let max_live = self.spec.limits.programs.saturating_add(2);
            let config = PoolConfig { max_live, ..PoolConfig::default() };
            SandboxPool::new(backend, config).map_err(|error| {
                let doing = "keep the sandboxes of programs".to_owned();
                SandboxError::Backend { doing, source: Box::new(error) }
            })
        };
        let pool = self.sandboxes.get_or_try_init(open).await?;
        let sandbox = pool.acquire(&spec).await?;
        let mut command = self.spec.command.clone();
        if command[0].contains('/') && !command[0].starts_with('/') && self.spec.folder.is_some() {
            command[0] = format!("{}/{}", ProgramSandbox::FOLDER, command[0]);
        }
        let SandboxProcess { stdin, stdout, stderr, handle } =
            sandbox.spawn(&ExecRequest::new(command)).await?;
        let running = Running::Sandboxed { handle, sandbox: Box::new(sandbox) };
        Ok(Launched { stdin, stdout, stderr, running })
    }

    fn sandbox_spec(&self, sandbox: &ProgramSandbox) -> Result<SandboxSpec, SandboxError> {
        let ProgramSpec { folder, workdir, env, .. } = &*self.spec;
        let network: NetworkPolicy = sandbox
            .network
            .parse()
            .map_err(|problem| SandboxError::InvalidSpec { problems: vec![problem] })?;
        let mut spec = SandboxSpec::new(image(&sandbox.image, folder.as_deref()));
        spec.network = network;
        spec.limits = sandbox.limits.clone();
        for (name, value) in self.handed_on() {
            if let Ok(value) = value.into_string() {
                spec.env.insert(name.to_owned(), value);
            }
        }
        spec.env.extend(env.clone());
        spec.lifetimes.agent_secs = LIFETIME_SECS;
        if let Some(folder) = folder {
            let guest = ProgramSandbox::FOLDER.to_owned();
            spec.workdir = Some(match workdir {
                Some(workdir) => format!("{guest}/{workdir}"),
                None => guest.clone(),
            });
            spec.mounts = vec![Mount { host: folder.clone(), guest, read_only: true }];
        }
        Ok(spec)
    }
}

/// The image of this name, which may lie in a program's folder.
fn image(name: &str, folder: Option<&Path>) -> Image {
    let inside = folder.map(|folder| folder.join(name)).filter(|path| path.exists());
    let name = inside.map_or_else(|| name.to_owned(), |path| path.to_string_lossy().into_owned());
    let Ok(image) = name.parse();
    image
}
