//! Runs hidden tests over what the agent did.

use std::time::Duration;

use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{Carried, ExecEnd, ExecRequest, Sandbox, SandboxError, Stream};
use spar_swe::Verification;
use spar_swe::grade::{Edition, InfraTier, Outcome};
use tokio::time::timeout;

use super::disk::{expect_room, told_by_room, without_room};
use super::guard::{Canary, suspicions, unanswered, without_configuration};
use super::judge::{Judged, Reader, by_fraction, by_report, by_reward, edition};
use super::patch::unfit;
use super::place::{PATCHING, Plan, hide, overlap};
use super::repository::{Repository, expect_success, plain_request};
use super::verdict::{SweVerdict, TestsRun};
use crate::SandboxPhase::Verify;
use crate::terminal::machine::{at, in_time, own_fault};
use crate::{EnvironmentError, Sandboxes};

/// Where the script of the verification lies while it runs.
const SCRIPT: &str = "/tmp/.spar-eval.sh";
/// Where a patch lies while it is applied.
const PATCH: &str = "/tmp/.spar-attempt.patch";
/// Bytes of what tests print that are kept for readers.
const LOG_BYTES: usize = 16 << 10;
/// Bytes of a report that a script writes.
const REPORT_BYTES: u64 = 64 << 20;
/// What all runs beside the script may take beyond it.
const SLACK: Duration = Duration::from_secs(60);

/// What a run of the tests came to.
struct Ran {
    judged: Judged,
    run: TestsRun,
    /// Whether the disk of the host was full when they ended.
    lacked_room: bool,
}

/// Grades a patch in a sandbox in which nobody has worked, which is closed afterwards.
pub(super) async fn grade_patch(
    plan: &Plan,
    sandboxes: &Sandboxes,
    patch: &[u8],
) -> Result<SweVerdict, EnvironmentError> {
    let id = &plan.instance().id;
    let mut verdict = SweVerdict::without_run(id, Outcome::Failed, "");
    verdict.patch = Some(String::from_utf8_lossy(patch).into_owned());
    verdict.edition = if edition(plan.verification()) == Edition::Five { 5 } else { 4 };
    if let Some(reason) = unfit(patch, plan.task.patch_limit_bytes) {
        verdict.reason = reason;
        return Ok(verdict);
    }
    let (used, left_out) = match plan.task.guarded {
        true => without_configuration(patch, plan.instance()),
        false => (patch.to_vec(), Vec::new()),
    };
    verdict.left_out = left_out;
    let script = plan.verification().script();
    let (ran, applied) = match in_fresh(plan, sandboxes, &used, script).await {
        Ok(Ok(ran)) => ran,
        Ok(Err(reason)) => {
            verdict.reason = reason;
            return Ok(verdict);
        }
        Err(error) => return without_room(verdict, error),
    };
    verdict.applied_by = applied;
    let top = ran.1;
    let Ran { mut judged, run, .. } = ran.0;
    // What is worth something, to shapers of rewards too.
    let is_worth_it = matches!(judged.outcome, Outcome::Resolved | Outcome::Partial);
    let unanswered = match (plan.verification().expected(), &judged.tests) {
        (Some(expected), Some(tests)) if plan.task.guarded => unanswered(expected, tests),
        _ => 0,
    };
    if is_worth_it && unanswered > 0 {
        judged.outcome = Outcome::Failed;
        judged.reward = 0.0;
        judged.reason =
            format!("{unanswered} of the tests that failed neither pass nor fail, as skipped ones");
    } else if plan.task.guarded && is_worth_it && !used.is_empty() {
        verdict.suspicions = suspicions(&used);
        let again = match verdict.suspicions.is_empty() {
            true => Ok(None),
            false => look_again(plan, sandboxes, &used, &top).await,
        };
        match again {
            Ok(None) => {}
            Ok(Some(problem)) => {
                judged.outcome = Outcome::Failed;
                judged.reward = 0.0;
                judged.reason = problem;
            }
            Err(error) => return without_room(verdict, error),
        }
    }
    verdict.outcome = judged.outcome;
    verdict.reward = judged.reward;
    verdict.reason = judged.reason;
    verdict.run = Some(run);
    Ok(verdict)
}

/// Runs the tests once more with some that must fail: why the first run cannot be believed, if it cannot.
async fn look_again(
    plan: &Plan,
    sandboxes: &Sandboxes,
    patch: &[u8],
    top: &str,
) -> Result<Option<String>, EnvironmentError> {
    let script = plan.verification().script();
    // Whoever made the patch would have had to know its hash.
    let mut secret = plan.instance().id.clone().into_bytes();
    secret.extend_from_slice(patch);
    let Some(canary) = Canary::among(plan.instance(), script, top, &secret) else {
        return Ok(None);
    };
    Ok(match in_fresh(plan, sandboxes, patch, &canary.script).await? {
        Ok(((ran, _), _)) if ran.lacked_room => {
            let doing = "look at the tests a second time".to_owned();
            return Err(at(Verify)(SandboxError::DiskFull { doing }));
        }
        Ok(((ran, _), _)) => match ran.judged.outcome {
            Outcome::Infrastructure => {
                Some("the second look at the tests did not end in time".to_owned())
            }
            _ => canary.problem(&ran.judged.statuses),
        },
        Err(reason) => Some(reason),
    })
}

type FreshRun = ((Ran, String), Option<String>);

/// Applies a patch in a fresh sandbox and runs a script there; why the patch could not be applied, if it could not.
async fn in_fresh(
    plan: &Plan,
    sandboxes: &Sandboxes,
    patch: &[u8],
    script: &str,
) -> Result<Result<FreshRun, String>, EnvironmentError> {
    let (sandbox, repository) = plan.fresh(sandboxes).await?;
    let whole = plan.tests() + 2 * PATCHING + SLACK;
    let ran = timeout(whole, apply_and_run(plan, &sandbox, &repository, patch, script)).await;
    let ran = match in_time(Verify, whole, ran) {
        Ok(ran) => Ok(ran),
        // What tests do to their sandbox is the agent's own, where nothing speaks against backend or host.
        Err(error) => own_fault(&sandbox, &sandboxes.pool, Verify, error).await.map(|fault| {
            Err(format!("its tests left nothing that can be judged: could not {}", fault.text))
        }),
    };
    let closed = sandbox.close().await;
    let ran = ran?;
    // What was found holds, whether or not what is left can be removed now: the pool tries again.
    if let Err(error) = closed {
        tracing::warn!(%error, "could not close a sandbox after grading in it");
    }
    Ok(ran)
}

async fn apply_and_run(
    plan: &Plan,
    sandbox: &PooledSandbox,
    repository: &Repository,
    patch: &[u8],
    script: &str,
) -> Result<Result<FreshRun, String>, SandboxError> {
    // 1. The patch, by the first way that works.
    let mut applied = None;
    if !patch.is_empty() {
        sandbox.write_file(PATCH, patch, 0o644).await?;
        match repository.apply(sandbox, PATCH, PATCHING).await? {
            Ok(way) => applied = Some(way),
            Err(said) => {
                expect_room(sandbox, "apply the patch").await?;
                let last = said.trim().lines().last().unwrap_or_default().to_owned();
                return Ok(Err(format!("its patch cannot be applied: {last}")));
            }
        }
    }
    // 2. Files of tests are what they were, and hidden ones come.
    if !plan.instance().restored.is_empty() {
        repository.put_back(sandbox, &plan.instance().restored, PATCHING).await?;
    }
    hide(sandbox, &plan.instance().hidden).await?;
    // 3. The tests.
    let ran = run_script(plan, sandbox, script).await?;
    Ok(Ok(((ran, repository.top.clone()), applied)))
}

/// Judges what was carried out of the agent's sandbox in one that the verification has to itself, which is closed afterwards.
pub(super) async fn grade_carried(
    plan: &Plan,
    sandboxes: &Sandboxes,
    carried: &Carried,
) -> Result<SweVerdict, EnvironmentError> {
    let sandbox = plan.judging(sandboxes).await?;
    // What fails while nothing of the agent is there is none of its doing.
    let whole = plan.deadlines.whole_set_up();
    let made = timeout(whole, make_ready(plan, &sandbox, carried)).await;
    let graded = match in_time(Verify, whole, made) {
        Ok(()) => bring_and_judge(plan, sandboxes, &sandbox, carried).await,
        Err(error) => Err(at(Verify)(told_by_room(&sandbox, error).await)),
    };
    if let Err(error) = sandbox.close().await {
        tracing::warn!(%error, "could not close a sandbox after grading in it");
    }
    graded
}

/// Makes the places of what a verifier's own sandbox is given, and puts the tests there.
async fn make_ready(
    plan: &Plan,
    sandbox: &PooledSandbox,
    carried: &Carried,
) -> Result<(), SandboxError> {
    clear(plan, sandbox).await?;
    let_verifier_write(plan, sandbox).await?;
    hide(sandbox, &plan.instance().hidden).await?;
    // Folders are there and empty, and those of files are there, whatever the agent has made a folder of.
    const READY: &str = "set -eu\nempty=$1\nshift\nfor path in \"$@\"; do\n\
         at=$path\n\
         while [ \"$at\" != / ]; do\n\
         [ -d \"$at\" ] || rm -f -- \"$at\" || :\n\
         at=$(dirname \"$at\")\n\
         done\n\
         mkdir -p -- \"$path\"\n\
         if [ \"$empty\" -gt 0 ]; then\n\
         empty=$((empty - 1))\n\
         rm -rf -- \"$path\"/* \"$path\"/.[!.]* \"$path\"/..?*\n\
         chmod 777 -- \"$path\"\n\
         fi\ndone\n";
    let folders: Vec<&str> = carried.folders().collect();
    let count = folders.len().to_string();
    let mut arguments = vec![count.as_str()];
    arguments.extend(folders);
    arguments.extend(carried.folders_of_files());
    let done = sandbox.exec(&plain_request(READY, &arguments, PATCHING)).await?;
    expect_success(&done, "make room for what is judged").map(drop)
}

/// Brings what was carried into a sandbox that is ready for it, and judges it there.
async fn bring_and_judge(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &PooledSandbox,
    carried: &Carried,
) -> Result<SweVerdict, EnvironmentError> {
    let places = places(plan);
    let takes_places = carried
        .folders()
        .chain(carried.folders_of_files())
        .any(|folder| places.iter().any(|place| overlap(folder, place)));
    let whole = plan.tests() + 2 * PATCHING + SLACK;
    let graded = timeout(whole, async {
        carried.bring(sandbox).await?;
        match takes_places {
            // What was brought there makes room for the tests once more.
            true => grade_in_place(plan, sandbox).await,
            false => judge_by_script(plan, sandbox).await,
        }
    });
    match in_time(Verify, whole, graded.await) {
        Ok(verdict) => Ok(verdict),
        // What was carried can fill it, and tests that it breaks can end it.
        Err(error) => own_fault(sandbox, &sandboxes.pool, Verify, error).await.map(|fault| {
            let why =
                format!("its tests left nothing that can be judged: could not {}", fault.text);
            SweVerdict::without_run(&plan.instance().id, Outcome::Failed, why)
        }),
    }
}

/// The places of the tests and of rewards.
fn places(plan: &Plan) -> Vec<&str> {
    let hidden = plan.instance().hidden.iter();
    let mut places: Vec<&str> = hidden.map(|folder| folder.into.as_str()).collect();
    if let Verification::RewardFile { files, .. } = plan.verification() {
        places.extend(files.iter().map(String::as_str));
    }
    places
}

/// Clears these places; [`SandboxError::Setup`] where that cannot be done.
async fn clear(plan: &Plan, sandbox: &PooledSandbox) -> Result<(), SandboxError> {
    const CLEAR: &str = "set -eu\nfor path in \"$@\"; do rm -rf -- \"$path\"; mkdir -p -- \"$(dirname \"$path\")\"; done\n";
    let places = places(plan);
    if places.is_empty() {
        return Ok(());
    }
    let done = sandbox.exec(&plain_request(CLEAR, &places, PATCHING)).await?;
    expect_success(&done, "clear the places of the tests").map(drop)
}

/// Has whoever judges write where rewards lie.
async fn let_verifier_write(plan: &Plan, sandbox: &PooledSandbox) -> Result<(), SandboxError> {
    const OPEN: &str =
        "set -eu\nfor path in \"$@\"; do chmod 777 -- \"$(dirname \"$path\")\"; done\n";
    let (Some(_), Verification::RewardFile { files, .. }) =
        (&plan.instance().verifier_user, plan.verification())
    else {
        return Ok(());
    };
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let done = sandbox.exec(&plain_request(OPEN, &files, PATCHING)).await?;
    expect_success(&done, "let the verifier write").map(drop)
}

/// Judges a task in a sandbox where nothing of the agent runs: its own, a copy of that, or one that has what it left behind.
pub(super) async fn grade_in_place(
    plan: &Plan,
    sandbox: &PooledSandbox,
) -> Result<SweVerdict, SandboxError> {
    let instance = plan.instance();
    let mut verdict = SweVerdict::without_run(&instance.id, Outcome::Failed, "");
    // 1. Nothing that the agent left takes the place of what comes.
    match clear(plan, sandbox).await {
        Err(SandboxError::Setup { .. }) => {
            expect_room(sandbox, "clear the places of the tests").await?;
            verdict.reason = "the places of the tests cannot be cleared".to_owned();
            return Ok(verdict);
        }
        cleared => cleared?,
    }
    let_verifier_write(plan, sandbox).await?;
    // 2. The tests come, and run.
    match hide(sandbox, &instance.hidden).await {
        Err(error @ (SandboxError::PathRefused { .. } | SandboxError::NoSpace { .. })) => {
            verdict.reason = format!("the tests cannot be put into place: {error}");
            return Ok(verdict);
        }
        hidden => hidden?,
    }
    judge_by_script(plan, sandbox).await
}

/// Runs the script where the tests are, and judges by it.
async fn judge_by_script(plan: &Plan, sandbox: &PooledSandbox) -> Result<SweVerdict, SandboxError> {
    let mut verdict = SweVerdict::without_run(&plan.instance().id, Outcome::Failed, "");
    let Ran { judged, run, .. } = run_script(plan, sandbox, plan.verification().script()).await?;
    verdict.outcome = judged.outcome;
    verdict.reward = judged.reward;
    verdict.reason = judged.reason;
    verdict.rewards = judged.rewards;
    verdict.run = Some(run);
    Ok(verdict)
}

/// Runs a script and judges what it prints or writes.
async fn run_script(
    plan: &Plan,
    sandbox: &PooledSandbox,
    script: &str,
) -> Result<Ran, SandboxError> {
    let verification = plan.verification();
    let kills = |stats: &spar_sandbox::SandboxStats| stats.out_of_memory_kills.unwrap_or(0);
    let before = sandbox.stats().await.map(|stats| kills(&stats)).unwrap_or(0);
    sandbox.write_file(SCRIPT, script.as_bytes(), 0o755).await?;
    const RUN: &str = "if command -v bash >/dev/null 2>&1; then exec bash \"$0\" 2>&1; else exec sh \"$0\" 2>&1; fi";
    let mut request = ExecRequest::new(["sh", "-c", RUN, SCRIPT]).with_timeout(plan.tests());
    request.output_limit_bytes = LOG_BYTES;
    request.workdir = plan.verifier_workdir();
    request.user = plan.instance().verifier_user.clone();
    request.env = plan.verifier_env.clone();
    let mut reader = match Reader::open(verification, &plan.instance().id) {
        Ok(reader) => reader,
        Err(error) => {
            // Its name was looked up when the task was opened, so that this is of the instance.
            return Ok(Ran {
                judged: Judged::new(Outcome::Invalid, error.to_string()),
                run: no_run(),
                lacked_room: false,
            });
        }
    };
    let mut sink = |_: Stream, bytes: &[u8]| reader.push(bytes);
    let done = sandbox.exec_streaming(&request, &mut sink).await?;
    let mut judged = match done.end {
        ExecEnd::TimedOut => Judged::new(
            Outcome::Infrastructure,
            format!("the tests did not end within {} s", plan.tests().as_secs()),
        ),
        ExecEnd::OutOfMemory => Judged::new(Outcome::Infrastructure, "the tests ran out of memory"),
        end => match verification {
            Verification::TestReport { report, expected, .. } => {
                match report_file(sandbox, report).await? {
                    Some(bytes) => by_report(&bytes, expected),
                    None => Judged::new(Outcome::Invalid, format!("the tests left no `{report}`")),
                }
            }
            Verification::PassedFraction { report, .. } => {
                match report_file(sandbox, report).await? {
                    Some(bytes) => by_fraction(&bytes),
                    None => Judged::new(Outcome::Failed, format!("the tests left no `{report}`")),
                }
            }
            Verification::RewardFile { files, .. } => {
                let mut found = None;
                for file in files {
                    if let Some(bytes) = report_file(sandbox, file).await? {
                        found = Some(by_reward(file, &bytes));
                        break;
                    }
                }
                let none = || format!("the script {end} and left no reward");
                found.unwrap_or_else(|| Judged::new(Outcome::Failed, none()))
            }
            _ => reader.finish(verification),
        },
    };
    let mut lacked_room = false;
    // A worker that was killed for memory shows as a test that failed, as does a file that found no room.
    if judged.outcome != Outcome::Resolved && judged.outcome != Outcome::Infrastructure {
        let stats = sandbox.stats().await.unwrap_or_default();
        lacked_room = stats.is_host_disk_full(&sandbox.spec().limits);
        let why = match (lacked_room, kills(&stats) > before) {
            (true, _) => Some(format!(
                "the disk of the host is full behind the tests; {}",
                SandboxError::MAKE_ROOM
            )),
            (false, true) => Some("the tests ran out of memory".to_owned()),
            (false, false) => None,
        };
        if let Some(reason) = why {
            judged.outcome = Outcome::Infrastructure;
            judged.reward = 0.0;
            judged.reason = reason;
        }
    }
    let infra = judged.infra;
    let run = TestsRun {
        tests: judged.tests.clone(),
        infra_failure: infra.map(|sign| sign.reason.to_owned()),
        infra_is_sure: infra.is_some_and(|sign| sign.tier == InfraTier::Environment),
        log_bytes: done.stdout.total_bytes(),
        log: done.stdout.text(),
        wall: done.wall,
    };
    Ok(Ran { judged, run, lacked_room })
}

fn no_run() -> TestsRun {
    TestsRun {
        tests: None,
        infra_failure: None,
        infra_is_sure: false,
        log_bytes: 0,
        log: String::new(),
        wall: Duration::ZERO,
    }
}

/// A file that a script wrote, if it did.
async fn report_file(sandbox: &PooledSandbox, path: &str) -> Result<Option<Vec<u8>>, SandboxError> {
    match sandbox.read_file(path, REPORT_BYTES).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(
            SandboxError::NotFound { .. }
            | SandboxError::PathRefused { .. }
            | SandboxError::TooLarge { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}
