//! Takes out what the agent did, and has it graded.

use std::sync::Arc;
use std::time::Duration;

use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{NetworkPolicy, Sandbox, SandboxError, SandboxSpec, Snapshot};
use spar_swe::grade::Outcome;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::disk::{has_filled, lacks_room, of_who_filled_it, without_room};
use super::evidence::{gather, take as take_artifacts};
use super::grader::{grade_carried, grade_in_place, grade_patch};
use super::patch::{Taken, ended, take};
use super::place::{PATCHING, Plan};
use super::repository::Repository;
use super::verdict::SweVerdict;
use crate::SandboxPhase::Verify;
use crate::terminal::machine::{Machine, at, held_room, in_time, own_fault};
use crate::{EnvironmentError, Sandboxes};

pub(super) type SharedPlace = Arc<Mutex<Place>>;

/// The agent's sandbox, until it is judged.
pub(super) struct Place {
    pub(super) machine: Machine,
    pub(super) repository: Option<Repository>,
    /// The patch that the agent has written out itself.
    pub(super) handed_in: Option<String>,
}

fn failed(plan: &Plan, reason: String) -> SweVerdict {
    SweVerdict::without_run(&plan.instance().id, Outcome::Failed, reason)
}

fn unjudged(plan: &Plan, why: &str) -> SweVerdict {
    failed(plan, format!("it left nothing that can be judged: could not {why}"))
}

/// Grades what the agent left behind, whose sandbox is of no use any more.
pub(super) async fn judge(
    plan: &Plan,
    sandboxes: &Sandboxes,
    place: &mut Place,
) -> Result<SweVerdict, EnvironmentError> {
    let mut filled = false;
    let judged = judge_at_last(plan, sandboxes, place, &mut filled).await;
    settled(plan, judged, filled)
}

/// What was judged, or kept from it by a full disk; `filled` is whether the agent has filled that.
fn settled(
    plan: &Plan,
    judged: Result<SweVerdict, EnvironmentError>,
    filled: bool,
) -> Result<SweVerdict, EnvironmentError> {
    let judged = judged.or_else(|error| without_room(failed(plan, String::new()), error));
    judged.map(|verdict| if filled { of_who_filled_it(verdict) } else { verdict })
}

/// `filled` becomes whether the agent has filled the disk, where judging goes on elsewhere than in its own sandbox: no other can tell.
async fn judge_at_last(
    plan: &Plan,
    sandboxes: &Sandboxes,
    place: &mut Place,
    filled: &mut bool,
) -> Result<SweVerdict, EnvironmentError> {
    let Place { machine, repository, handed_in } = place;
    let sandbox = Arc::clone(&machine.sandbox);
    let whole = plan.deadlines.whole_verify();
    // 1. What is gathered from what the agent left running.
    if let Err(error) = gather(plan, sandboxes, &sandbox).await {
        // What the agent left running may be what takes the room.
        return match lacks_room(&error) && held_room(&sandbox).await {
            true => Ok(unjudged(plan, "run the hooks on the disk that it has filled")),
            false => Err(error),
        };
    }
    // 2. Nothing of the agent runs from here on, or nothing is judged.
    let ended = timeout(whole, sandbox.end_all()).await;
    if let Err(error) = in_time(Verify, whole, ended) {
        let fault = own_fault(&sandbox, &sandboxes.pool, Verify, error).await?;
        return Ok(unjudged(plan, &fault.text));
    }
    let is_elsewhere =
        repository.is_some() || plan.has_own_verifier() || plan.other_network().is_some();
    *filled = is_elsewhere && has_filled(&*sandbox).await;
    let Some(repository) = repository else {
        if plan.has_own_verifier() {
            return carried(plan, sandboxes, &sandbox, true).await;
        }
        if let Some(network) = plan.other_network() {
            return in_other_network(plan, sandboxes, &sandbox, network, true).await;
        }
        return in_place(plan, sandboxes, &sandbox).await;
    };
    // 3. The patch is all that leaves its sandbox, which is given back: episodes that each hold one must not wait for each
    //    other.
    let taken = taken(plan, sandboxes, &sandbox, repository, handed_in.take()).await?;
    sandbox.close().await.map_err(at(Verify))?;
    match taken {
        Taken::Unfit(reason) => Ok(failed(plan, reason)),
        // 4. Tests run where the agent never was.
        Taken::Patch(patch) => grade_patch(plan, sandboxes, &patch).await,
    }
}

/// Grades what the agent has done so far, whose sandbox goes on as it is: nothing of the tests ever lies there.
pub(super) async fn judge_beside(
    plan: &Plan,
    sandboxes: &Sandboxes,
    patience: Duration,
    place: &mut Place,
) -> Result<SweVerdict, EnvironmentError> {
    let mut filled = false;
    let judged = judge_meanwhile(plan, sandboxes, patience, place, &mut filled).await;
    settled(plan, judged, filled)
}

async fn judge_meanwhile(
    plan: &Plan,
    sandboxes: &Sandboxes,
    patience: Duration,
    place: &mut Place,
    filled: &mut bool,
) -> Result<SweVerdict, EnvironmentError> {
    let Place { machine, repository, handed_in } = place;
    let sandbox = Arc::clone(&machine.sandbox);
    // A second sandbox for this episode, of which there are only as many at one time as there is room for beside those of
    // agents, so that episodes do not wait for each other.
    let _turn = sandboxes.judging(patience).await.map_err(at(Verify))?;
    gather(plan, sandboxes, &sandbox).await?;
    *filled = has_filled(&*sandbox).await;
    if let Some(repository) = repository {
        return match taken(plan, sandboxes, &sandbox, repository, handed_in.clone()).await? {
            Taken::Unfit(reason) => Ok(failed(plan, reason)),
            Taken::Patch(patch) => grade_patch(plan, sandboxes, &patch).await,
        };
    }
    if plan.has_own_verifier() {
        return carried(plan, sandboxes, &sandbox, false).await;
    }
    if let Some(network) = plan.other_network() {
        return in_other_network(plan, sandboxes, &sandbox, network, false).await;
    }
    let whole = plan.deadlines.whole_verify();
    let copied = timeout(whole, sandbox.fork_pooled()).await;
    let copy = match in_time(Verify, whole, copied) {
        Ok(copy) => copy,
        Err(error) => {
            let fault = own_fault(&sandbox, &sandboxes.pool, Verify, error).await?;
            return Ok(unjudged(plan, &fault.text));
        }
    };
    in_copy(plan, sandboxes, copy).await
}

/// Grades in a copy of the agent's sandbox, which is closed afterwards.
async fn in_copy(
    plan: &Plan,
    sandboxes: &Sandboxes,
    copy: PooledSandbox,
) -> Result<SweVerdict, EnvironmentError> {
    let whole = plan.deadlines.whole_verify();
    // Where copies hold memory, processes of the agent run on there.
    let ended = timeout(whole, copy.end_all()).await;
    let graded = match in_time(Verify, whole, ended) {
        Ok(()) => in_place(plan, sandboxes, &copy).await,
        Err(error) => {
            let fault = own_fault(&copy, &sandboxes.pool, Verify, error).await;
            fault.map(|fault| unjudged(plan, &fault.text))
        }
    };
    if let Err(error) = copy.close().await {
        tracing::warn!(%error, "could not close a sandbox after grading in it");
    }
    graded
}

/// Grades in a copy of the agent's sandbox that reaches what the verification may: not all backends can change the network of
/// a sandbox that runs, and all that keep snapshots make a copy with another.
async fn in_other_network(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &PooledSandbox,
    network: &NetworkPolicy,
    is_last: bool,
) -> Result<SweVerdict, EnvironmentError> {
    let whole = plan.deadlines.whole_verify();
    let kept = timeout(whole, sandbox.snapshot_pooled()).await;
    let kept = match in_time(Verify, whole, kept) {
        Ok(kept) => kept,
        Err(error @ SandboxError::Unsupported { .. }) => return Err(at(Verify)(error)),
        Err(error) => {
            let fault = own_fault(sandbox, &sandboxes.pool, Verify, error).await?;
            return Ok(unjudged(plan, &fault.text));
        }
    };
    let snapshot = kept.snapshot().clone();
    let spec = SandboxSpec { network: network.clone(), ..snapshot.spec.clone() };
    let elsewhere = Snapshot { spec, ..snapshot };
    // Whoever stops waiting for this drops what was kept, by which the pool removes it.
    let graded = async {
        if is_last {
            // Episodes that each hold one must not wait for each other.
            sandbox.close().await.map_err(at(Verify))?;
        }
        let copy = sandboxes.pool.restore(&elsewhere).await.map_err(at(Verify))?;
        in_copy(plan, sandboxes, copy).await
    };
    let graded = graded.await;
    if let Err(error) = kept.remove().await {
        tracing::warn!(%error, "could not remove a snapshot after grading from it");
    }
    graded
}

/// Grades what is carried out of the agent's sandbox, where the verification has another to itself.
async fn carried(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &PooledSandbox,
    is_last: bool,
) -> Result<SweVerdict, EnvironmentError> {
    let whole = plan.deadlines.whole_verify();
    let taken = timeout(whole, take_artifacts(plan, sandbox)).await;
    let taken = match in_time(Verify, whole, taken) {
        Ok(taken) => taken,
        Err(error) => {
            let fault = own_fault(sandbox, &sandboxes.pool, Verify, error).await?;
            return Ok(unjudged(plan, &fault.text));
        }
    };
    if is_last {
        sandbox.close().await.map_err(at(Verify))?;
    }
    grade_carried(plan, sandboxes, &taken).await
}

/// Grades in a sandbox where nothing runs any more.
async fn in_place(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &PooledSandbox,
) -> Result<SweVerdict, EnvironmentError> {
    let whole = plan.deadlines.whole_verify();
    let graded = timeout(whole, grade_in_place(plan, sandbox)).await;
    match in_time(Verify, whole, graded) {
        Ok(verdict) => Ok(verdict),
        Err(error) => {
            let fault = own_fault(sandbox, &sandboxes.pool, Verify, error).await?;
            Ok(unjudged(plan, &fault.text))
        }
    }
}

/// The patch that the agent has handed in itself, or what differs in its repository.
async fn taken(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &PooledSandbox,
    repository: &Repository,
    handed_in: Option<String>,
) -> Result<Taken, EnvironmentError> {
    let (limit, whole) = (plan.task.patch_limit_bytes, plan.deadlines.whole_verify());
    if let Some(patch) = handed_in {
        return Ok(Taken::of(ended(&patch), limit));
    }
    let taken = timeout(whole, take(sandbox, repository, limit, PATCHING)).await;
    match in_time(Verify, whole, taken) {
        Ok(taken) => Ok(taken),
        Err(error) => {
            let fault = own_fault(sandbox, &sandboxes.pool, Verify, error).await?;
            Ok(Taken::Unfit(format!("it left no patch: could not {}", fault.text)))
        }
    }
}
