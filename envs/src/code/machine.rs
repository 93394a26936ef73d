//! The sandbox of one episode, with the interpreter in it.

use std::sync::Arc;
use std::time::Duration;

use spar_sandbox::interpreter::{Cell, Interpreter, InterpreterOptions, Language};
use spar_sandbox::pool::{PooledSandbox, SandboxPool};
use spar_sandbox::{Determinism, Image, NetworkPolicy, Sandbox, SandboxError, SandboxSpec};
use spar_tasks::CodeInterpreter;
use spar_tasks::graders::FreshSandbox;
use tokio::time::timeout;

use crate::SandboxPhase::{Close, Create, Fork, SetUp, Step};
use crate::terminal::machine::own_fault;
use crate::{EnvironmentError, SandboxPhase, Sandboxes};

/// Where code works.
const WORKDIR: &str = "/work";
/// How long an interpreter may take to be there.
const START: Duration = Duration::from_secs(60);
/// How long packages may take to be installed.
const SETUP_SECS: u64 = 600;
/// Where packages come from.
const REGISTRIES: [&str; 3] = ["pypi.org", "files.pythonhosted.org", "registry.npmjs.org"];

/// The sandbox of one episode, with the interpreter in it.
pub(crate) struct Machine {
    sandbox: Arc<PooledSandbox>,
    interpreter: Interpreter,
    pool: Arc<SandboxPool>,
}

/// What came of code.
pub(crate) enum Ran {
    /// It ended somehow.
    Ended(Cell),
    /// By what it did, the sandbox cannot go on.
    Lost(String),
}

impl Ran {
    /// What whoever wrote the code is told.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Ended(cell) => cell.text.clone(),
            Self::Lost(reason) => format!(
                "[the interpreter was lost: {reason}]\n[it was restarted, its variables and files are gone]"
            ),
        }
    }
}

impl Machine {
    /// Takes a sandbox from the pool and starts the interpreter in it.
    pub(crate) async fn begin(
        sandboxes: &Sandboxes,
        asked: &CodeInterpreter,
    ) -> Result<Self, EnvironmentError> {
        let spec = spec_of(sandboxes, asked);
        sandboxes.warm_up(&spec);
        let sandbox = Arc::new(acquire(sandboxes, &spec, asked).await?);
        let interpreter = open(&sandbox, asked).await.map_err(at(SetUp))?;
        Ok(Self { sandbox, interpreter, pool: Arc::clone(&sandboxes.pool) })
    }

    /// Runs code.
    pub(crate) async fn run(&mut self, code: &str) -> Result<Ran, EnvironmentError> {
        self.run_within(code, Duration::MAX).await
    }

    /// The same in less than its own time where that is longer.
    pub(crate) async fn run_within(
        &mut self,
        code: &str,
        limit: Duration,
    ) -> Result<Ran, EnvironmentError> {
        let error = match self.interpreter.run_within(code, limit).await {
            Ok(cell) => return Ok(Ran::Ended(cell)),
            Err(error) => error,
        };
        let fault = own_fault(&self.sandbox, &self.pool, Step, error).await?;
        Ok(Ran::Lost(fault.text))
    }

    /// A second machine that goes on as this one, variables included; absent where snapshots of the sandbox hold no memory.
    pub(crate) async fn fork(
        &mut self,
        asked: &CodeInterpreter,
    ) -> Result<Option<Self>, EnvironmentError> {
        if !self.sandbox.capabilities().memory_in_snapshot {
            return Ok(None);
        }
        let sandbox = Arc::new(self.sandbox.fork_pooled().await.map_err(at(Fork))?);
        let interpreter = open(&sandbox, asked).await.map_err(at(Fork))?;
        Ok(Some(Self { sandbox, interpreter, pool: Arc::clone(&self.pool) }))
    }

    /// Removes the sandbox.
    pub(crate) async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.sandbox.close().await.map_err(at(Close))
    }
}

/// A sandbox in which nobody has worked yet, with the task's files.
pub(super) async fn fresh(
    sandboxes: &Sandboxes,
    asked: &CodeInterpreter,
) -> Result<FreshSandbox, EnvironmentError> {
    let sandbox = acquire(sandboxes, &spec_of(sandboxes, asked), asked).await?;
    let backend = sandboxes.pool.backend().name().to_owned();
    Ok(FreshSandbox { sandbox: Arc::new(sandbox), backend })
}

async fn acquire(
    sandboxes: &Sandboxes,
    spec: &SandboxSpec,
    asked: &CodeInterpreter,
) -> Result<PooledSandbox, EnvironmentError> {
    let sandbox = sandboxes.pool.acquire(spec).await.map_err(at(Create))?;
    for (path, file) in &asked.files {
        let text = file.text().unwrap_or_default();
        let path = format!("{WORKDIR}/{path}");
        sandbox.write_file(&path, text.as_bytes(), file.mode()).await.map_err(at(SetUp))?;
    }
    Ok(sandbox)
}

async fn open(
    sandbox: &Arc<PooledSandbox>,
    asked: &CodeInterpreter,
) -> Result<Interpreter, SandboxError> {
    let options = InterpreterOptions {
        cell: Duration::from_secs(asked.cell_secs),
        output_limit_bytes: asked.output_limit_bytes,
        workdir: Some(WORKDIR.to_owned()),
        ..InterpreterOptions::default()
    };
    let sandbox: Arc<dyn Sandbox> = Arc::clone(sandbox) as _;
    let opened = timeout(START, Interpreter::open(&sandbox, asked.language, &options)).await;
    opened.unwrap_or_else(|_| {
        Err(SandboxError::Backend {
            doing: format!("start an interpreter of {}", asked.language.title()),
            source: format!("it was not there after {} s", START.as_secs()).into(),
        })
    })
}

/// What the sandbox of a task is made from.
fn spec_of(sandboxes: &Sandboxes, asked: &CodeInterpreter) -> SandboxSpec {
    let backend = sandboxes.pool.backend();
    let image = match (&asked.image, &sandboxes.image) {
        (Some(image), _) => {
            let Ok(image) = image.parse::<Image>();
            image
        }
        (None, Image::Default) => asked.language.image(backend.name()),
        (None, image) => image.clone(),
    };
    let mut spec = SandboxSpec::new(image);
    spec.limits.memory_bytes = Some(asked.memory_bytes);
    spec.limits.disk_bytes = asked.disk_bytes;
    spec.workdir = Some(WORKDIR.to_owned());
    spec.lifetimes.agent_secs = sandboxes.commands.as_secs().saturating_add(
        sandboxes.answer.as_secs().saturating_mul(u64::from(sandboxes.max_turns.unwrap_or(64))),
    );
    // The same cells write the same, in a fork and when they are run again.
    if backend.capabilities().determinism {
        spec.determinism = Some(Determinism { seed: 1, start_secs: 1_700_000_000 });
    }
    if !asked.packages.is_empty() {
        let words: Vec<String> = asked.packages.iter().map(|name| format!("'{name}'")).collect();
        let words = words.join(" ");
        spec.setup = vec![match asked.language {
            Language::Python => {
                format!("python3 -m pip install --quiet --disable-pip-version-check {words}")
            }
            Language::Javascript => format!("npm install --silent --no-fund --no-audit {words}"),
        }];
        spec.lifetimes.setup_secs = SETUP_SECS;
        let hosts = REGISTRIES.iter().filter_map(|host| host.parse().ok());
        spec.network = NetworkPolicy::allow(hosts);
    }
    spec
}

fn at(phase: SandboxPhase) -> impl Fn(SandboxError) -> EnvironmentError {
    move |source| EnvironmentError::Sandbox { phase, source }
}
