//! What the agent did, as a diff that may be given to a repository.

use std::time::Duration;

use spar_sandbox::{ExecEnd, Sandbox, SandboxError, Stream};
use spar_swe::{Patch, PatchLimits};

use super::disk::expect_room;
use super::repository::Repository;

/// Files that a patch may change.
const MAX_FILES: usize = 10_000;

/// What was taken out of the agent's sandbox.
pub(super) enum Taken {
    /// A patch, maybe an empty one.
    Patch(Vec<u8>),
    /// Nothing that could be graded, by what the agent did.
    Unfit(String),
}

impl Taken {
    /// What a patch is that was made there.
    pub(super) fn of(patch: Vec<u8>, limit_bytes: usize) -> Self {
        match unfit(&patch, limit_bytes) {
            Some(reason) => Self::Unfit(reason),
            None => Self::Patch(patch),
        }
    }
}

/// A patch that somebody wrote out, whose last line has an end: texts lose theirs on their way, and git calls such a patch corrupt,
/// while `patch` reads it.
pub(super) fn ended(patch: &str) -> Vec<u8> {
    let mut bytes = patch.as_bytes().to_vec();
    if !matches!(bytes.last(), None | Some(b'\n')) {
        bytes.push(b'\n');
    }
    bytes
}

/// Takes out what the agent did. Its sandbox is not trusted: what comes out is bounded, and read before it is used.
pub(super) async fn take(
    sandbox: &dyn Sandbox,
    repository: &Repository,
    limit_bytes: usize,
    limit: Duration,
) -> Result<Taken, SandboxError> {
    let (mut patch, mut is_cut) = (Vec::new(), false);
    let mut sink = |stream: Stream, bytes: &[u8]| {
        if stream == Stream::Stdout {
            let room = limit_bytes.saturating_sub(patch.len());
            is_cut |= bytes.len() > room;
            patch.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    };
    let mut request = repository.extraction(limit);
    request.output_limit_bytes = 4096;
    let done = sandbox.exec_streaming(&request, &mut sink).await?;
    if is_cut {
        return Ok(Taken::Unfit(format!("its patch has more than {limit_bytes} bytes")));
    }
    match done.end {
        ExecEnd::Exited { code: 0 } => Ok(Taken::of(patch, limit_bytes)),
        end => {
            expect_room(sandbox, "make a patch of the repository").await?;
            let said = done.stderr.text();
            let said = said.trim().lines().last().unwrap_or_default().to_owned();
            Ok(Taken::Unfit(format!("no patch could be made of its repository: git {end}: {said}")))
        }
    }
}

/// Why a patch may not be given to a repository; absent where it may.
pub(super) fn unfit(patch: &[u8], limit_bytes: usize) -> Option<String> {
    let limits = PatchLimits { bytes: limit_bytes, files: MAX_FILES };
    match Patch::parse(patch, &limits) {
        Err(error) => Some(format!("its patch is none: {error}")),
        Ok(read) => {
            let found = read.unsafe_changes(patch);
            let first = found.first()?;
            let more = match found.len() {
                1 => String::new(),
                count => format!(", and {} more", count - 1),
            };
            Some(format!("its patch is not applied: {first}{more}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_that_leave_the_repository_are_not_applied() {
        let change = |path: &str| {
            format!(
                "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+y\n"
            )
        };
        assert_eq!(unfit(change("a.py").as_bytes(), 1000), None);
        assert_eq!(unfit(b"", 1000), None);
        for path in ["../a.py", ".git/hooks/post-checkout", "a/.GIT/config"] {
            assert!(unfit(change(path).as_bytes(), 1000).is_some(), "{path}");
        }
        assert!(unfit(change("a.py").as_bytes(), 10).is_some());
        // Whose last line lost its end is read as if it had it; nothing stays nothing.
        let short = change("a.py").trim_end().to_owned();
        assert!(unfit(short.as_bytes(), 1000).is_some());
        assert_eq!(ended(&short), change("a.py").into_bytes());
        assert_eq!((ended(&change("a.py")), ended("")), (change("a.py").into_bytes(), Vec::new()));
        let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n";
        assert!(unfit(link.as_bytes(), 1000).is_some());
    }
}
