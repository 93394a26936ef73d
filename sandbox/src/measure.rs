//! What sandboxes cost on this machine.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::{ExecRequest, Sandbox, SandboxBackend, SandboxError, SandboxSpec};

/// Medians of what sandboxes of one spec cost on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Latencies {
    /// A new sandbox, its image being there.
    pub create: Duration,
    /// A command that does nothing.
    pub exec: Duration,
    /// A fork; absent where the backend has none.
    pub fork: Option<Duration>,
}

/// Measures sandboxes of `spec`: creates, forks and closes `rounds` of them in turn and runs
/// `command` several times in each.
///
/// The image is made available before the clock starts. It takes as long as it takes; a caller who
/// has no time drops the future.
///
/// # Errors
///
/// Those of the backend. How `command` ends does not matter.
pub async fn measure(
    backend: &dyn SandboxBackend,
    spec: &SandboxSpec,
    command: &ExecRequest,
    rounds: usize,
) -> Result<Latencies, SandboxError> {
    backend.prepare(spec).await?;
    let (mut creates, mut execs, mut forks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let begin = Instant::now();
        let sandbox = backend.create(spec).await?;
        creates.push(begin.elapsed());
        let measured = of_one(sandbox.as_ref(), command, &mut execs, &mut forks).await;
        sandbox.close().await?;
        measured?;
    }
    Ok(Latencies {
        create: median(creates).expect("one round at least"),
        exec: median(execs).expect("one exec per round"),
        fork: median(forks),
    })
}

/// Execs per sandbox; the first, which may warm something up, is not counted.
const EXECS: usize = 5;

async fn of_one(
    sandbox: &dyn Sandbox,
    command: &ExecRequest,
    execs: &mut Vec<Duration>,
    forks: &mut Vec<Duration>,
) -> Result<(), SandboxError> {
    sandbox.exec(command).await?;
    for _ in 0..EXECS {
        let begin = Instant::now();
        sandbox.exec(command).await?;
        execs.push(begin.elapsed());
    }
    if sandbox.capabilities().fork {
        let begin = Instant::now();
        let fork = sandbox.fork().await?;
        forks.push(begin.elapsed());
        fork.close().await?;
    }
    Ok(())
}

/// The middle one; absent where there is none.
fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    durations.sort();
    durations.get(durations.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;
    use crate::backends::fake::FakeBackend;

    #[test]
    fn the_median_is_the_middle_one() {
        let seconds =
            |seconds: &[u64]| median(seconds.iter().copied().map(Duration::from_secs).collect());
        assert_eq!(seconds(&[9, 1, 2]), Some(Duration::from_secs(2)));
        assert_eq!(seconds(&[]), None);
    }

    #[tokio::test]
    async fn measuring_leaves_no_sandbox_behind() {
        let backend = FakeBackend::new();
        let spec = SandboxSpec::new(Image::Default);
        let command = ExecRequest::new(["true"]);
        let found = measure(&backend, &spec, &command, 3).await.unwrap();
        assert_eq!(found.fork.is_some(), backend.capabilities().fork);
        assert!(backend.list().await.unwrap().is_empty());
    }
}
