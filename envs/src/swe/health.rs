//! Waits until a sandbox is ready, by the rules of Harbor, which are those of Docker.

use std::time::Duration;

use spar_sandbox::{ExecRequest, Sandbox, SandboxError};
use spar_swe::HealthCheck;
use tokio::time::{Instant, sleep};

/// Bytes kept of what an attempt prints.
const OUTPUT_LIMIT_BYTES: usize = 4096;
/// The longest that is waited, whatever a check asks for.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Where and as whom a check runs.
pub(super) struct Checked<'a> {
    pub(super) workdir: Option<&'a str>,
    pub(super) user: Option<&'a str>,
    /// Of an attempt that has no limit of its own.
    pub(super) limit: Duration,
}

/// The longest that a check can take, all of its attempts together, where each has a limit of its own.
pub(super) fn longest(check: &HealthCheck) -> Duration {
    let attempt = secs(check.timeout_secs);
    let starting = secs(check.start_period_secs) + attempt + secs(check.start_interval_secs);
    let counted = (attempt + secs(check.interval_secs)).saturating_mul(check.retries.max(1));
    starting.saturating_add(counted).min(LONGEST)
}

/// Runs the check until it exits with 0. Failures count once the start period is over, and so many in a row are the end of
/// it. An attempt that takes too long is a failure like any other.
///
/// # Errors
///
/// [`SandboxError::Setup`] where it does not become ready; those of [`Sandbox::exec`].
pub(super) async fn ready(
    sandbox: &dyn Sandbox,
    check: &HealthCheck,
    at: &Checked<'_>,
) -> Result<(), SandboxError> {
    let counts_from = Instant::now() + secs(check.start_period_secs);
    // Harbor takes whole seconds, and 0 for no limit.
    let limit = match secs(check.timeout_secs.trunc()) {
        Duration::ZERO => at.limit,
        own => own,
    };
    let mut failures = 0;
    loop {
        let is_starting = Instant::now() < counts_from;
        let mut request = ExecRequest::sh(&check.command).with_timeout(limit);
        request.workdir = at.workdir.map(str::to_owned);
        request.user = at.user.map(str::to_owned);
        request.output_limit_bytes = OUTPUT_LIMIT_BYTES;
        let done = sandbox.exec(&request).await?;
        if done.end.is_success() {
            return Ok(());
        }
        if is_starting {
            sleep(secs(check.start_interval_secs)).await;
            continue;
        }
        failures += 1;
        if failures >= check.retries {
            let said = done.stdout.text() + &done.stderr.text();
            let output = format!("not ready after {failures} failures in a row: {}", said.trim());
            return Err(SandboxError::Setup {
                command: check.command.clone(),
                end: done.end,
                output,
            });
        }
        sleep(secs(check.interval_secs)).await;
    }
}

/// Seconds of a check, which lie between 0 and a day.
fn secs(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use spar_sandbox::backends::fake::{FakeBackend, FakeReply};
    use spar_sandbox::{Image, SandboxBackend, SandboxSpec};

    use super::*;

    /// How it ends where the first `failing` attempts fail and each takes `takes`; how many there were, and how long that took.
    async fn checked(
        failing: u32,
        takes: Duration,
        check: &HealthCheck,
    ) -> (Result<(), SandboxError>, u32, f64) {
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&attempts);
        let backend = FakeBackend::with_script(move |request, _| {
            assert_eq!(request.command, ["sh", "-c", "curl it"]);
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            let code = if number <= failing { 7 } else { 0 };
            Some(FakeReply::failed(code, "refused\n").after(takes))
        });
        let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await.unwrap();
        let began = Instant::now();
        let at = Checked { workdir: Some("/app"), user: None, limit: Duration::from_secs(600) };
        let ended = ready(&*sandbox, check, &at).await;
        (ended, attempts.load(Ordering::Relaxed), began.elapsed().as_secs_f64())
    }

    fn check() -> HealthCheck {
        HealthCheck {
            command: "curl it".to_owned(),
            interval_secs: 5.0,
            timeout_secs: 30.0,
            start_period_secs: 0.0,
            start_interval_secs: 0.5,
            retries: 3,
        }
    }

    /// Numbers that `BaseEnvironment.run_healthcheck` of Harbor 0.26 comes to, its clock and commands replaced.
    #[tokio::test(start_paused = true)]
    async fn failures_count_once_the_start_period_is_over() {
        let none = Duration::ZERO;
        let (ended, attempts, took) = checked(2, none, &check()).await;
        assert!(ended.is_ok());
        assert_eq!((attempts, took.round()), (3, 10.0));
        let (ended, attempts, took) = checked(3, none, &check()).await;
        assert_eq!(
            ended.unwrap_err().to_string(),
            "set up the sandbox: `curl it` exited with 7: not ready after 3 failures in a row: refused"
        );
        assert_eq!((attempts, took.round()), (3, 10.0));
        let slow_start = HealthCheck { start_period_secs: 2.0, ..check() };
        // At 0, 0.5, 1 and 1.5 s it starts; then three count.
        let (ended, attempts, took) = checked(u32::MAX, none, &slow_start).await;
        assert!(ended.is_err());
        assert_eq!((attempts, took.round()), (7, 12.0));
        let never = HealthCheck { retries: 0, ..check() };
        assert_eq!(checked(1, none, &never).await.1, 1);
        assert!(took < longest(&slow_start).as_secs_f64());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_takes_too_long_is_a_failure() {
        let brief = HealthCheck { timeout_secs: 2.9, retries: 2, ..check() };
        let (ended, attempts, took) = checked(0, Duration::from_secs(60), &brief).await;
        assert!(ended.unwrap_err().to_string().contains("not ready after 2 failures"));
        assert_eq!((attempts, took.round()), (2, 9.0));
        assert!(took < longest(&brief).as_secs_f64());
        // Without a limit of its own it has that of the set-up.
        let patient = HealthCheck { timeout_secs: 0.5, ..check() };
        assert!(checked(0, Duration::from_secs(60), &patient).await.0.is_ok());
        let endless = HealthCheck { retries: u32::MAX, ..check() };
        assert_eq!(longest(&endless), LONGEST);
    }
}
