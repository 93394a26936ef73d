//! Episodes of a cheat: with all guards, and without some.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use spar_core::Seed;
use spar_sandbox::pool::{PooledSandbox, SandboxPool};
use spar_sandbox::{ExecEnd, Image, Sandbox, SandboxError, SandboxSpec, Shell, ShellOptions};
use spar_tasks::{Task, TerminalTask, VERIFIER_FOLDER, VerifierSandbox};

use super::{Cheat, Guard, Play, Problem};
use crate::terminal::{Deadlines, SUBMIT, Terminal};
use crate::{Environment, EnvironmentError, Resources, Sandboxes};

/// The longest that a command beside the agent's may take.
const ASIDE: Duration = Duration::from_secs(20);

/// What came of an episode.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was judged, with this reward.
    Judged(f64),
    /// It was not, and is played again: why.
    Again(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Judged(reward) => write!(f, "it was judged with {reward}"),
            Self::Again(why) => write!(f, "it is played again, since {why}"),
        }
    }
}

/// Where episodes are played.
pub(super) struct Harness {
    pool: Arc<SandboxPool>,
    sandboxes: Sandboxes,
}

impl Harness {
    pub(super) fn new(pool: Arc<SandboxPool>, image: Image) -> Self {
        let mut sandboxes = Sandboxes::new(Arc::clone(&pool));
        sandboxes.image = image;
        Self { pool, sandboxes }
    }

    pub(super) async fn shut_down(&self) {
        self.pool.shutdown().await;
    }

    /// The environment as it is, judging in a fresh sandbox where the cheat needs that.
    pub(super) async fn guarded(&self, cheat: &Cheat) -> Outcome {
        self.played(cheat, cheat.sandbox()).await
    }

    /// Without what holds the cheat off.
    pub(super) async fn unguarded(&self, cheat: &Cheat) -> Outcome {
        if cheat.guards.contains(&Guard::Fresh) {
            return self.played(cheat, VerifierSandbox::Same).await;
        }
        let loose = Loose { missing: cheat.guards };
        let played = async {
            let task = cheat.task(VerifierSandbox::Same);
            let sandbox = self.pool.acquire(&self.spec(&task)).await?;
            let outcome = loose.episode(&sandbox, &task, cheat).await;
            let closed = sandbox.close().await;
            outcome.and_then(|outcome| closed.map(|()| outcome))
        };
        played.await.unwrap_or_else(|error| Outcome::Again(format!("could not {error}")))
    }

    /// The solution of a problem, with all guards.
    pub(super) async fn honest(&self, problem: Problem, sandbox: VerifierSandbox) -> Outcome {
        let task = problem.task(sandbox);
        let commands: Vec<&str> = task.solution.iter().map(String::as_str).collect();
        let outcome = self.episode(&task, &commands, Play::Own).await;
        outcome.unwrap_or_else(|error| Outcome::Again(chain(&error)))
    }

    async fn played(&self, cheat: &Cheat, sandbox: VerifierSandbox) -> Outcome {
        let task = cheat.task(sandbox);
        let outcome = self.episode(&task, cheat.commands, cheat.play).await;
        outcome.unwrap_or_else(|error| Outcome::Again(chain(&error)))
    }

    /// An episode of the environment.
    async fn episode(
        &self,
        task: &TerminalTask,
        commands: &[&str],
        play: Play,
    ) -> Result<Outcome, EnvironmentError> {
        let mut env = self.open(task)?;
        let judged = async {
            env.reset(Seed::from_u64(0)).await?;
            // What takes its own sandbox away has ended its episode.
            let mut is_over = false;
            for command in commands {
                is_over = is_over || env.step(&(*command).into()).await?.terminated;
            }
            match play {
                Play::Own => {
                    if !is_over {
                        env.step(&SUBMIT.into()).await?;
                    }
                    reward(&mut env).await
                }
                Play::Fork => {
                    let mut fork = env.fork().await?.expect("the terminal forks");
                    let of_fork = reward(fork.as_mut()).await;
                    fork.close().await?;
                    // The origin is judged as well: the better of both counts.
                    Ok(of_fork?.max(reward(&mut env).await?))
                }
                Play::Next => {
                    for command in &task.solution {
                        env.step(&command.as_str().into()).await?;
                    }
                    let mut next = self.open(task)?;
                    next.reset(Seed::from_u64(0)).await?;
                    next.prepare().await?;
                    let of_next = reward(&mut next).await;
                    next.close().await?;
                    of_next
                }
            }
        };
        let judged = judged.await;
        env.close().await?;
        Ok(Outcome::Judged(judged?))
    }

    fn open(&self, task: &TerminalTask) -> Result<Terminal, EnvironmentError> {
        let task = Task {
            id: "cheats/test/0".to_owned(),
            environment: "terminal".to_owned(),
            parameters: serde_json::to_value(task).expect("a task has only string keys"),
            instruction: String::new(),
            max_turns: 8,
            tags: Vec::new(),
            graders: Vec::new(),
        };
        Terminal::open(&task, &Resources::with_sandboxes(self.sandboxes.clone()))
    }

    fn spec(&self, task: &TerminalTask) -> SandboxSpec {
        SandboxSpec {
            limits: task.limits.clone(),
            capabilities: task.capabilities,
            workdir: Some(task.workdir.clone()),
            lifetimes: Deadlines::of(task, Duration::from_secs(600), Duration::ZERO).lifetimes(),
            ..SandboxSpec::new(self.sandboxes.image.clone())
        }
    }
}

async fn reward(env: &mut dyn Environment) -> Result<f64, EnvironmentError> {
    Ok(env.verify().await?.unwrap_or_default().reward())
}

fn chain(error: &EnvironmentError) -> String {
    let mut text = format!("could not {error}");
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

/// A harness that lacks some guards; for the rest it judges as the environment does.
struct Loose<'a> {
    missing: &'a [Guard],
}

impl Loose<'_> {
    fn lacks(&self, guard: Guard) -> bool {
        self.missing.contains(&guard)
    }

    async fn episode(
        &self,
        sandbox: &PooledSandbox,
        task: &TerminalTask,
        cheat: &Cheat,
    ) -> Result<Outcome, SandboxError> {
        for (path, file) in &task.files {
            let text = file.text().unwrap_or_default();
            sandbox.write_file(&task.absolute(path), text.as_bytes(), file.mode()).await?;
        }
        if !task.setup.is_empty() {
            let mut shell = sandbox.open_shell(&options(&task.workdir)).await?;
            for command in &task.setup {
                shell.run(command, ASIDE).await?;
            }
            shell.close().await?;
        }
        if self.lacks(Guard::Late) {
            self.verifier_files(sandbox, task).await?;
        }
        let mut shell = sandbox.open_shell(&options(&task.workdir)).await?;
        for command in cheat.commands {
            let limit = Duration::from_secs(task.command_secs);
            let result = shell.run(command, limit).await?;
            let is_ordinary = matches!(result.end, ExecEnd::Exited { .. }) && !result.restarted;
            if self.lacks(Guard::Blame) && !is_ordinary {
                return Ok(Outcome::Again(format!("a command {}", result.end)));
            }
        }
        match cheat.play {
            Play::Own => self.judge(sandbox, task, shell).await,
            Play::Fork => {
                // As it would be without care: everything of the agent's shell comes along.
                shell.run("export -p >/tmp/exported", ASIDE).await?;
                let fork = sandbox.fork_pooled().await?;
                let mut twin = fork.open_shell(&options(&task.workdir)).await?;
                twin.run(". /tmp/exported", ASIDE).await?;
                let outcome = self.judge(&fork, task, twin).await;
                fork.close().await?;
                outcome
            }
            Play::Next => {
                for command in &task.solution {
                    shell.run(command, ASIDE).await?;
                }
                shell.close().await?;
                let next = sandbox.open_shell(&options(&task.workdir)).await?;
                self.judge(sandbox, task, next).await
            }
        }
    }

    async fn verifier_files(
        &self,
        sandbox: &dyn Sandbox,
        task: &TerminalTask,
    ) -> Result<(), SandboxError> {
        for (path, file) in &task.verifier.files {
            let (path, text) = (format!("{VERIFIER_FOLDER}/{path}"), file.text());
            let bytes = text.unwrap_or_default().as_bytes();
            match sandbox.write_file(&path, bytes, file.mode()).await {
                Err(SandboxError::PathRefused { .. }) if self.lacks(Guard::Clear) => {}
                written => written?,
            }
        }
        Ok(())
    }

    async fn judge(
        &self,
        sandbox: &dyn Sandbox,
        task: &TerminalTask,
        mut agents: Box<dyn Shell>,
    ) -> Result<Outcome, SandboxError> {
        let mut shell = if self.lacks(Guard::OwnShell) {
            agents
        } else if self.lacks(Guard::EndAll) {
            sandbox.open_shell(&options("/")).await?
        } else {
            let _ = agents.close().await;
            sandbox.end_all().await?;
            sandbox.open_shell(&options("/")).await?
        };
        let reward_file = task.verifier.reward_file.as_deref().map(|file| task.absolute(file));
        if !self.lacks(Guard::Clear) && !self.lacks(Guard::Late) {
            let reward_file = reward_file.as_deref().unwrap_or_default();
            shell.run(&format!("rm -rf {VERIFIER_FOLDER} {reward_file}"), ASIDE).await?;
        }
        if !self.lacks(Guard::Late) {
            self.verifier_files(sandbox, task).await?;
        }
        let entered = shell.run(&format!("cd {}", task.workdir), ASIDE).await?;
        if !entered.end.is_success() {
            return Ok(match self.lacks(Guard::Blame) {
                true => Outcome::Again("the working directory is gone".to_owned()),
                false => Outcome::Judged(0.0),
            });
        }
        let limit = Duration::from_secs(task.verifier.verify_secs);
        let result = shell.run(&task.verifier.command, limit).await?;
        let printed = result.stdout.text().lines().any(|line| line.trim() == "PASSED");
        match (result.end, reward_file) {
            _ if self.lacks(Guard::ExitCode) && printed => Ok(Outcome::Judged(1.0)),
            (ExecEnd::Exited { code: 0 }, None) => Ok(Outcome::Judged(1.0)),
            (ExecEnd::Exited { code: 0 }, Some(path)) => {
                let head = shell.run(&format!("head -n 1 {path}"), ASIDE).await?;
                Ok(Outcome::Judged(self.number(&head.stdout.text())))
            }
            (ExecEnd::Exited { .. }, _) => Ok(Outcome::Judged(0.0)),
            (end, _) if self.lacks(Guard::Blame) => Ok(Outcome::Again(format!("it {end}"))),
            _ => Ok(Outcome::Judged(0.0)),
        }
    }

    /// The reward as somebody reads it who trusts the file.
    fn number(&self, text: &str) -> f64 {
        let text = text.trim();
        let number = match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) if value.is_object() => value["reward"].as_f64(),
            _ => text.parse().ok(),
        };
        match number {
            // What is neither below nor above counts as full marks.
            Some(number) if self.lacks(Guard::StrictReward) => {
                if number < 1.0 {
                    number.max(0.0)
                } else {
                    1.0
                }
            }
            Some(number) if (0.0..=1.0).contains(&number) => number,
            _ => 0.0,
        }
    }
}

fn options(workdir: &str) -> ShellOptions {
    ShellOptions { workdir: Some(workdir.to_owned()), ..ShellOptions::default() }
}
