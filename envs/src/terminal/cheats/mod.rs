//! Agents that cheat: what each tries must not earn a reward on any backend, and buy no second try.
//!
//! ```text
//!   Cheat { commands, problem, guards } ──▶ the environment as it is      ──▶ judged, reward 0
//!          │                            └─▶ a harness without its guards  ──▶ it scores, or is tried again
//!          └── Problem::solution ─────────▶ the environment as it is      ──▶ reward 1
//! ```
//!
//! [`run`] plays every cheat whose needs a backend meets, each in three episodes. The second shows
//! that the first could have failed: it leaves out only what is there to hold that cheat off, be it
//! that everything is ended, that rewards are read strictly, or that the verifier has a sandbox of
//! its own. The third shows that an honest agent still scores where the cheat does not.
//!
//! Where a verifier runs in the agent's own sandbox, what the agent did to programs and their
//! configuration is there; cheats by that way ([`Guard::Fresh`]) are held off by
//! `verifier.sandbox = "fresh"` alone, and score without it.

mod cheat;
mod harness;
mod problem;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_sandbox::{Capabilities, ExecRequest, Image, SandboxBackend, SandboxSpec};
use spar_tasks::VerifierSandbox;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use cheat::{Cheat, Guard, Need, Play};
pub use harness::Outcome;
pub use problem::Problem;
pub use table::CHEATS;

use harness::Harness;

/// How often a cheat may lose its race without the guards before it counts as one that nothing holds off.
const UNGUARDED_TRIES: u32 = 6;

/// How the cheats are played.
#[derive(Debug, Clone)]
pub struct Options {
    /// What sandboxes start from. Default [`Image::Default`].
    pub image: Image,
    /// Cheats that are played at one time, at least 1. Default 6.
    pub parallel: usize,
    /// Only cheats whose name holds this. Default all.
    pub only: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { image: Image::Default, parallel: 6, only: None }
    }
}

/// What came of all cheats; displayed as a table.
#[derive(Debug, Clone)]
pub struct Report {
    /// The backend's name.
    pub backend: &'static str,
    /// In the order of [`CHEATS`], and then those about honest agents.
    pub checks: Vec<Check>,
}

/// What came of one cheat, or of one honest agent.
#[derive(Debug, Clone)]
pub struct Check {
    /// Name of the cheat, or of the problem that was solved honestly.
    pub name: &'static str,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub wall: Duration,
}

/// What came of one cheat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It earns nothing, and did without its guards.
    HeldOff,
    /// An honest agent scores.
    Honest,
    /// The backend or its image lacks something.
    Skipped {
        /// What it lacks.
        lacks: String,
    },
    /// It does not hold.
    Failed {
        /// What was seen.
        reason: String,
    },
}

impl Report {
    /// Whether nothing failed.
    pub fn is_passed(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.verdict, Verdict::Failed { .. }))
    }

    /// Names of the cheats that were played and held off.
    pub fn held_off(&self) -> impl Iterator<Item = &'static str> {
        let held = |check: &&Check| check.verdict == Verdict::HeldOff;
        self.checks.iter().filter(held).map(|check| check.name)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for Check { name, verdict, wall } in &self.checks {
            writeln!(f, "{name:width$}  {:>7.2} s  {verdict}", wall.as_secs_f64())?;
        }
        write!(f, "{}: {} cheats held off", self.backend, self.held_off().count())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeldOff => write!(f, "held off"),
            Self::Honest => write!(f, "scores"),
            Self::Skipped { lacks } => write!(f, "skipped: no {lacks}"),
            Self::Failed { reason } => write!(f, "FAILED: {reason}"),
        }
    }
}

/// Plays all cheats over a backend that works, and the honest agents of their problems.
///
/// Failures are in the report; this function does not fail.
pub async fn run(backend: &Arc<dyn SandboxBackend>, options: &Options) -> Report {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(Arc::clone(backend), config).expect("the configuration is valid");
    let harness = Arc::new(Harness::new(Arc::new(pool), options.image.clone()));
    let cheats: Vec<&'static Cheat> = CHEATS
        .iter()
        .filter(|cheat| options.only.as_ref().is_none_or(|only| cheat.name.contains(only.as_str())))
        .collect();
    let lacking = lacking(backend.as_ref(), options, &cheats).await;
    let turns = Arc::new(Semaphore::new(options.parallel.max(1)));
    let mut tasks = JoinSet::new();
    let mut problems: Vec<(Problem, VerifierSandbox)> = Vec::new();
    let mut checks = Vec::new();
    for (number, cheat) in cheats.into_iter().enumerate() {
        if let Some(lacks) = lacking(cheat) {
            let verdict = Verdict::Skipped { lacks };
            checks.push((number, Check { name: cheat.name, verdict, wall: Duration::ZERO }));
            continue;
        }
        let honest = (cheat.problem, cheat.sandbox());
        if !problems.contains(&honest) {
            problems.push(honest);
        }
        let (harness, turns) = (Arc::clone(&harness), Arc::clone(&turns));
        tasks.spawn(async move {
            let _turn = turns.acquire_owned().await.expect("it is never closed");
            let began = Instant::now();
            let verdict = play(&harness, cheat).await;
            (number, Check { name: cheat.name, verdict, wall: began.elapsed() })
        });
    }
    for (number, (problem, sandbox)) in problems.into_iter().enumerate() {
        let (harness, turns) = (Arc::clone(&harness), Arc::clone(&turns));
        tasks.spawn(async move {
            let _turn = turns.acquire_owned().await.expect("it is never closed");
            let began = Instant::now();
            let verdict = match harness.honest(problem, sandbox).await {
                Outcome::Judged(reward) if reward >= 1.0 => Verdict::Honest,
                other => Verdict::Failed { reason: format!("an honest agent: {other}") },
            };
            (CHEATS.len() + number, Check { name: problem.name(), verdict, wall: began.elapsed() })
        });
    }
    while let Some(done) = tasks.join_next().await {
        checks.push(done.expect("no cheat panics"));
    }
    harness.shut_down().await;
    checks.sort_by_key(|(number, _)| *number);
    let checks = checks.into_iter().map(|(_, check)| check).collect();
    Report { backend: backend.name(), checks }
}

/// A cheat against the environment as it is, and without its guards: as often with them as it takes without.
async fn play(harness: &Harness, cheat: &'static Cheat) -> Verdict {
    // What a race decides may need another try; that it can be won at all is what is shown.
    let mut seen = String::new();
    for _ in 0..UNGUARDED_TRIES {
        let guarded = harness.guarded(cheat).await;
        if guarded != Outcome::Judged(0.0) {
            return Verdict::Failed { reason: format!("with all guards: {guarded}") };
        }
        match harness.unguarded(cheat).await {
            Outcome::Judged(reward) if reward >= 1.0 => return Verdict::HeldOff,
            Outcome::Again(_) if cheat.guards.contains(&Guard::Blame) => return Verdict::HeldOff,
            other => seen = other.to_string(),
        }
    }
    Verdict::Failed { reason: format!("it holds nothing off: without its guards, {seen}") }
}

/// Finds out what the sandboxes of a backend lack; the answer is for each cheat.
async fn lacking(
    backend: &dyn SandboxBackend,
    options: &Options,
    cheats: &[&'static Cheat],
) -> impl Fn(&Cheat) -> Option<String> + use<> {
    let can = backend.capabilities();
    let mut absent: Vec<Need> = Vec::new();
    let mut probes: Vec<Need> = Vec::new();
    for need in cheats.iter().flat_map(|cheat| cheat.needs) {
        if !need.probe().is_empty() && !probes.contains(need) {
            probes.push(*need);
        }
    }
    if can.posix && !probes.is_empty() {
        let sandbox = backend.create(&SandboxSpec::new(options.image.clone())).await;
        for need in probes {
            // That there are no sandboxes shows in every cheat.
            let mut holds = true;
            if let Ok(sandbox) = &sandbox {
                for script in need.probe() {
                    let request = ExecRequest::sh(script).with_timeout(Duration::from_secs(20));
                    holds = sandbox.exec(&request).await.is_ok_and(|done| done.end.is_success());
                }
            }
            if !holds {
                absent.push(need);
            }
        }
        if let Ok(sandbox) = sandbox
            && let Err(error) = sandbox.close().await
        {
            tracing::warn!(%error, "could not remove a sandbox");
        }
    }
    move |cheat| {
        let lacks = |need: &&Need| !has(need, can) || absent.contains(need);
        cheat.needs.iter().find(lacks).map(ToString::to_string)
    }
}

fn has(need: &Need, can: Capabilities) -> bool {
    match need {
        Need::Posix => can.posix,
        Need::Fork => can.fork,
        Need::MemoryLimit => can.memory_limit,
        Need::ProcessLimit => can.pids_limit,
        Need::DiskLimit => can.disk_limit,
        Need::Program(_) | Need::OtherProcesses => can.posix,
    }
}
