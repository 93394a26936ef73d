use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use spar_sandbox::{
    ExecRequest, Limits, Mount, ProcessHandle, Sandbox, SandboxBackend, SandboxSpec,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use crate::{RunnerError, SourcePackage};

/// Where packages stand inside of a sandbox.
const INSIDE: &str = "/testbed";
/// Processes and threads of a sandbox: tests start some of their own.
const PIDS: u32 = 512;

/// An interpreter of Python with pytest, named by the user, who trusts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The interpreter.
    pub program: PathBuf,
    /// Folders that it needs: its environment, and what that stands on.
    pub folders: Vec<PathBuf>,
    /// Its version, such as `3.11.7`.
    pub version: String,
    /// The version of pytest.
    pub pytest: String,
    /// All that is installed, as `name==version`, for whoever builds the same environment.
    pub packages: Vec<String>,
}

const ASK: &str = r"
import json, os, sys
try:
    import pytest
except ImportError:
    sys.exit('it has no pytest: install it with `-m pip install pytest`')
try:
    from importlib.metadata import distributions
    packages = sorted({'%s==%s' % (d.metadata['Name'], d.version) for d in distributions()})
except ImportError:
    packages = []
folders = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
print(json.dumps({'folders': folders, 'version': sys.version.split()[0], 'pytest': pytest.__version__, 'packages': packages}))
";

impl Python {
    /// Asks an interpreter what it is. It runs on this machine, as the user named it.
    ///
    /// # Errors
    ///
    /// [`RunnerError::Interpreter`] when it does not run or has no pytest.
    pub async fn ask(program: &Path) -> Result<Self, RunnerError> {
        #[derive(serde::Deserialize)]
        struct Answer {
            folders: Vec<PathBuf>,
            version: String,
            pytest: String,
            packages: Vec<String>,
        }
        let wrong = |what: String| RunnerError::Interpreter { python: program.to_owned(), what };
        let asked = Command::new(program).args(["-I", "-c", ASK]).stdin(Stdio::null()).output();
        let output = tokio::time::timeout(std::time::Duration::from_secs(60), asked)
            .await
            .map_err(|_| wrong("it does not answer".to_owned()))?
            .map_err(|error| wrong(error.to_string()))?;
        if !output.status.success() {
            return Err(wrong(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let answer: Answer =
            serde_json::from_slice(&output.stdout).map_err(|error| wrong(error.to_string()))?;
        let program = std::path::absolute(program).map_err(|error| wrong(error.to_string()))?;
        let Answer { folders, version, pytest, packages } = answer;
        Ok(Self { program, folders, version, pytest, packages })
    }
}

/// Limits of what runs the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceOptions {
    /// Memory of all its processes, in bytes.
    pub memory_bytes: u64,
}

/// Where the tests of a package run: with its files, and what they need.
pub enum Place {
    /// A sandbox that holds a copy of the package.
    Sandbox(Box<dyn Sandbox>),
    /// A folder of this machine: what the tests do, they do with the rights of this process.
    Host(tempfile::TempDir),
}

impl Place {
    /// A sandbox without a network, in which the package stands and the folders of the interpreter can be read.
    ///
    /// # Errors
    ///
    /// [`RunnerError::Sandbox`], and [`RunnerError::Io`] when the package cannot be packed.
    pub async fn sandbox(
        backend: &dyn SandboxBackend,
        package: &SourcePackage,
        folders: &[PathBuf],
        options: &PlaceOptions,
    ) -> Result<Self, RunnerError> {
        let mut spec = SandboxSpec::new(spar_sandbox::Image::Default);
        let can = backend.capabilities();
        let default = Limits::default();
        spec.limits = Limits {
            memory_bytes: if can.memory_limit {
                Some(options.memory_bytes)
            } else {
                default.memory_bytes
            },
            pids: if can.pids_limit { Some(PIDS) } else { default.pids },
            ..default
        };
        // The host's programs are there as they are; what lies elsewhere is mounted under its own name.
        let mut mounts: Vec<&Path> = folders
            .iter()
            .map(PathBuf::as_path)
            .filter(|folder| {
                !["/usr", "/bin", "/lib", "/opt"].iter().any(|shared| folder.starts_with(shared))
            })
            .collect();
        mounts.sort_unstable();
        mounts.dedup_by(|next, kept| next.starts_with(*kept));
        spec.mounts = mounts
            .into_iter()
            .filter_map(|folder| {
                let guest = folder.to_str()?.to_owned();
                Some(Mount { host: folder.to_owned(), guest, read_only: true })
            })
            .collect();
        spec.workdir = Some(INSIDE.to_owned());
        // Long runs hold one sandbox each.
        spec.lifetimes.agent_secs = 7 * 24 * 3600;
        let sandbox = backend.create(&spec).await?;
        let folder = tempfile::tempdir().map_err(io("make a folder for the package"))?;
        let archive = folder.path().join("package.tar");
        pack(package, &archive).map_err(io("pack the package"))?;
        sandbox.upload_tar(INSIDE, &archive).await?;
        Ok(Self::Sandbox(sandbox))
    }

    /// A folder of this machine with the package in it. Nothing keeps the tests from what this process may do.
    ///
    /// # Errors
    ///
    /// [`RunnerError::Io`] when it cannot be written.
    pub fn host(package: &SourcePackage) -> Result<Self, RunnerError> {
        let folder = tempfile::Builder::new().prefix("spar-repair-").tempdir();
        let folder = folder.map_err(io("make a folder for the package"))?;
        package.write_to(&folder.path().join("testbed")).map_err(io("write the package"))?;
        Ok(Self::Host(folder))
    }

    /// The package's folder, as what runs there sees it.
    pub fn root(&self) -> String {
        match self {
            Self::Sandbox(_) => INSIDE.to_owned(),
            Self::Host(folder) => folder.path().join("testbed").to_string_lossy().into_owned(),
        }
    }

    /// Starts a process there, with nothing of this process's environment.
    pub(super) async fn spawn(
        &self,
        command: Vec<String>,
        mut env: BTreeMap<String, String>,
    ) -> Result<Running, RunnerError> {
        match self {
            Self::Sandbox(sandbox) => {
                env.insert("HOME".to_owned(), "/tmp".to_owned());
                let mut request = ExecRequest::new(command);
                request.env = env;
                request.workdir = Some(INSIDE.to_owned());
                request.timeout = Some(std::time::Duration::from_secs(7 * 24 * 3600));
                let process = sandbox.spawn(&request).await?;
                Ok(Running {
                    stdin: process.stdin,
                    stdout: process.stdout,
                    stderr: process.stderr,
                    end: End::Sandbox(process.handle),
                })
            }
            Self::Host(folder) => {
                let scratch = folder.path().join("tmp");
                std::fs::create_dir_all(&scratch).map_err(io("make a folder for the tests"))?;
                let scratch = scratch.to_string_lossy().into_owned();
                env.insert("HOME".to_owned(), scratch.clone());
                env.insert("TMPDIR".to_owned(), scratch);
                let mut process = Command::new(&command[0]);
                process.args(&command[1..]).env_clear().envs(env);
                process.current_dir(folder.path().join("testbed"));
                process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                process.kill_on_drop(true);
                let mut child =
                    process.spawn().map_err(io("start the process that runs the tests"))?;
                let piped = "all three are piped";
                Ok(Running {
                    stdin: Box::new(child.stdin.take().expect(piped)),
                    stdout: Box::new(child.stdout.take().expect(piped)),
                    stderr: Box::new(child.stderr.take().expect(piped)),
                    end: End::Host(child),
                })
            }
        }
    }

    /// Removes it.
    ///
    /// # Errors
    ///
    /// What the sandbox or the system says.
    pub async fn close(self) -> Result<(), RunnerError> {
        match self {
            Self::Sandbox(sandbox) => Ok(sandbox.close().await?),
            Self::Host(folder) => folder.close().map_err(io("remove the folder of the package")),
        }
    }
}

/// A process with its streams.
pub(super) struct Running {
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) stderr: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) end: End,
}

pub(super) enum End {
    Sandbox(ProcessHandle),
    Host(Child),
}

impl End {
    /// Ends the process; what it started ends with it in a sandbox, and by its own doing elsewhere.
    pub(super) async fn kill(&mut self) {
        match self {
            // What resists ends with its sandbox.
            Self::Sandbox(handle) => drop(handle.kill().await),
            Self::Host(child) => drop(child.kill().await),
        }
    }
}

pub(super) fn io(doing: &'static str) -> impl Fn(std::io::Error) -> RunnerError {
    move |source| RunnerError::Io { doing, source }
}

fn pack(package: &SourcePackage, archive: &Path) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(std::io::BufWriter::new(std::fs::File::create(archive)?));
    for (path, file) in &package.files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.is_executable { 0o755 } else { 0o644 });
        header.set_mtime(1_000_000_000);
        tar.append_data(&mut header, path, &file.bytes[..])?;
    }
    tar.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}
