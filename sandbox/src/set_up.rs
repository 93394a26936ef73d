//! The commands that make a new sandbox ready.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::{ExecRequest, ExecResult, SandboxError, SandboxSpec};

/// Bytes kept of each stream of a set-up command, for the message if it fails.
const OUTPUT_LIMIT_BYTES: usize = 4096;

/// Runs [`SandboxSpec::setup`] through `exec`, all of it within
/// [`Lifetimes::setup_secs`](crate::Lifetimes::setup_secs).
///
/// # Errors
///
/// [`SandboxError::Setup`] at the first command that does not exit with 0, and those of `exec`.
pub(crate) async fn set_up<F, R>(spec: &SandboxSpec, mut exec: F) -> Result<(), SandboxError>
where
    F: FnMut(ExecRequest) -> R,
    R: Future<Output = Result<ExecResult, SandboxError>>,
{
    let all = Duration::from_secs(spec.lifetimes.setup_secs);
    let started = Instant::now();
    for command in &spec.setup {
        let left = all.saturating_sub(started.elapsed());
        let mut request = ExecRequest::sh(command).with_timeout(left);
        request.output_limit_bytes = OUTPUT_LIMIT_BYTES;
        let result = exec(request).await?;
        if !result.end.is_success() {
            let output = result.stdout.text() + &result.stderr.text();
            return Err(SandboxError::Setup {
                command: command.clone(),
                end: result.end,
                output: output.trim().to_owned(),
            });
        }
    }
    Ok(())
}
