//! Whether the host's disk let what was found come about.
//!
//! Programs that find no room fail in words of their own: git makes no patch, a test fails. Where the disk is full of what
//! others wrote, that says nothing about who is judged.

use spar_sandbox::{Evidence, Sandbox, SandboxError};
use spar_swe::grade::Outcome;

use super::verdict::SweVerdict;
use crate::EnvironmentError;
use crate::terminal::machine::with_sources;

/// Asks whether the disk that a sandbox shares with the host is full, and not by what it wrote, after something failed in it.
///
/// # Errors
///
/// [`SandboxError::DiskFull`] where it is.
pub(super) async fn expect_room(sandbox: &dyn Sandbox, doing: &str) -> Result<(), SandboxError> {
    match Evidence::of(sandbox).await.is_host_disk_full {
        true => Err(SandboxError::DiskFull { doing: doing.to_owned() }),
        false => Ok(()),
    }
}

/// An error that came in a sandbox, told as [`SandboxError::DiskFull`] where the host's disk is full.
pub(super) async fn told_by_room(sandbox: &dyn Sandbox, error: SandboxError) -> SandboxError {
    if error.is_host_disk_full() {
        return error;
    }
    let doing = with_sources(&error);
    expect_room(sandbox, &doing).await.err().unwrap_or(error)
}

/// Whether what a sandbox wrote has filled its disk, or the host's where it has no limit of its own.
pub(super) async fn has_filled(sandbox: &dyn Sandbox) -> bool {
    Evidence::of(sandbox).await.filled_disk
}

/// Whether it is a full disk of the host that an error tells of.
pub(super) fn lacks_room(error: &EnvironmentError) -> bool {
    matches!(error, EnvironmentError::Sandbox { source, .. } if source.is_host_disk_full())
}

/// What a verdict becomes that a full disk of the host stood in the way of, where it is the agent who has filled that: nothing can be
/// judged by the agent's own doing.
pub(super) fn of_who_filled_it(verdict: SweVerdict) -> SweVerdict {
    let is_of_room = verdict.outcome == Outcome::Infrastructure
        && verdict.reason.ends_with(SandboxError::MAKE_ROOM);
    if !is_of_room {
        return verdict;
    }
    let reason = "it left nothing that can be judged: it has filled the disk".to_owned();
    SweVerdict { outcome: Outcome::Failed, reward: 0.0, reason, ..verdict }
}

/// What a verdict becomes that a full disk of the host stood in the way of; the error where it was something else.
pub(super) fn without_room(
    verdict: SweVerdict,
    error: EnvironmentError,
) -> Result<SweVerdict, EnvironmentError> {
    let EnvironmentError::Sandbox { source, .. } = &error else { return Err(error) };
    if !source.is_host_disk_full() {
        return Err(error);
    }
    let reason = format!("could not {}; {}", with_sources(source), SandboxError::MAKE_ROOM);
    tracing::warn!(reason, "a full disk kept an attempt from being judged");
    Ok(SweVerdict { outcome: Outcome::Infrastructure, reward: 0.0, reason, ..verdict })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxPhase::Verify;
    use crate::terminal::machine::at;

    #[test]
    fn who_filled_a_disk_has_failed_and_nobody_else() {
        let verdict = || SweVerdict::without_run("i", Outcome::Failed, "");
        let full = at(Verify)(SandboxError::DiskFull { doing: "restore".to_owned() });
        assert!(lacks_room(&full));
        let masked = without_room(verdict(), full).unwrap();
        assert_eq!(masked.outcome, Outcome::Infrastructure);
        assert_eq!(of_who_filled_it(masked).outcome, Outcome::Failed);
        let late = SweVerdict::without_run("i", Outcome::Infrastructure, "it took too long");
        assert_eq!(of_who_filled_it(late).outcome, Outcome::Infrastructure);
    }
}
