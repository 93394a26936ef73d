//! What is carried out of the agent's sandbox: hooks that gather it there, and files that go to another one.

use std::time::Duration;

use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{Carried, CarriedPath, ExecRequest, Sandbox, SandboxError};
use spar_swe::Instance;
use tokio::time::timeout;

use super::place::{PATCHING, Plan};
use crate::SandboxPhase::Verify;
use crate::terminal::machine::{in_time, own_fault};
use crate::{EnvironmentError, Sandboxes};

/// Where agents of Harbor publish what is to be kept, whatever the task says.
const PUBLISHED: &str = "/logs/artifacts";
/// Bytes kept of what a hook prints.
const OUTPUT_LIMIT_BYTES: usize = 4096;

/// How long the hooks of an instance may take in all.
pub(super) fn gathering(instance: &Instance) -> Duration {
    let each = instance.collect.iter().map(|hook| limit(hook.timeout_secs));
    each.fold(Duration::ZERO, Duration::saturating_add)
}

/// The whole seconds of a hook, and where there are none, as long as a patch may take.
fn limit(secs: f64) -> Duration {
    match Duration::try_from_secs_f64(secs.trunc()) {
        Ok(own) if !own.is_zero() => own.min(Duration::from_secs(86_400)),
        _ => PATCHING,
    }
}

/// Runs the hooks beside whatever the agent left running. One that fails changes nothing: what it was to gather is not there.
///
/// # Errors
///
/// [`EnvironmentError`] of a sandbox that could not do its part by no doing of the agent.
pub(super) async fn gather(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &PooledSandbox,
) -> Result<(), EnvironmentError> {
    for hook in &plan.instance().collect {
        let own = limit(hook.timeout_secs);
        let mut request = ExecRequest::sh(&hook.command).with_timeout(own);
        request.workdir.clone_from(&plan.instance().workdir);
        request.user.clone_from(&hook.user);
        request.output_limit_bytes = OUTPUT_LIMIT_BYTES;
        let whole = own + PATCHING;
        let ran = timeout(whole, sandbox.exec(&request)).await;
        match in_time(Verify, whole, ran) {
            Ok(done) if done.end.is_success() => {}
            Ok(done) => {
                let said = done.stdout.text() + &done.stderr.text();
                tracing::warn!(command = hook.command, end = %done.end, said, "a hook failed");
            }
            Err(error) => {
                own_fault(sandbox, &sandboxes.pool, Verify, error).await?;
            }
        }
    }
    Ok(())
}

/// What goes into a verifier's sandbox of its own.
///
/// # Errors
///
/// Those of [`Carried::take_fit`].
pub(super) async fn take(plan: &Plan, sandbox: &PooledSandbox) -> Result<Carried, SandboxError> {
    Carried::take_fit(sandbox, &paths(plan.instance()), plan.task.carry_limit_bytes).await
}

/// The artifacts, and first what is always published. What one of them has is not taken once more for another.
fn paths(instance: &Instance) -> Vec<CarriedPath> {
    let absolute = |source: &str| format!("/{}", source.trim_matches('/'));
    let published = CarriedPath { path: PUBLISHED.to_owned(), exclude: Vec::new() };
    let says_how = instance.artifacts.iter().any(|it| absolute(&it.source) == PUBLISHED);
    let implied = (!says_how).then_some(published);
    let named = instance.artifacts.iter().map(|artifact| CarriedPath {
        path: absolute(&artifact.source),
        exclude: artifact.exclude.clone(),
    });
    let mut found: Vec<CarriedPath> = Vec::new();
    for path in implied.into_iter().chain(named) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use spar_swe::{Artifact, CollectHook};

    use super::*;

    #[test]
    fn what_is_published_goes_along_unless_the_task_says_how() {
        let of = |sources: &[(&str, &str)]| {
            let artifact = |(source, exclude): &(&str, &str)| Artifact {
                source: (*source).to_owned(),
                exclude: vec![(*exclude).to_owned()],
                ..Artifact::default()
            };
            let artifacts = sources.iter().map(artifact).collect();
            let found = paths(&Instance { artifacts, ..Instance::default() });
            found.into_iter().map(|it| format!("{} {}", it.path, it.exclude.concat())).collect()
        };
        let list: Vec<String> = of(&[("/app/", "x"), ("out.txt", "y"), ("/app", "x")]);
        assert_eq!(list, ["/logs/artifacts ", "/app x", "/out.txt y"]);
        let list: Vec<String> = of(&[("/logs/artifacts/", "*.log")]);
        assert_eq!(list, ["/logs/artifacts *.log"]);
    }

    #[test]
    fn hooks_have_whole_seconds() {
        let hook =
            |timeout_secs| CollectHook { command: "true".to_owned(), timeout_secs, user: None };
        let collect = vec![hook(2.9), hook(0.5)];
        let instance = Instance { collect, ..Instance::default() };
        assert_eq!(gathering(&instance), Duration::from_secs(2) + PATCHING);
    }
}
