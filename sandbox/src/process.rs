//! Processes that their starter talks to while they run.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{ExecEnd, SandboxError};

/// How long ending a process may take; what resists then is left to the sandbox's end.
const ENDING: Duration = Duration::from_secs(30);

/// A process that runs in a sandbox, with its streams.
///
/// What it writes has to be read: a process whose pipes are full waits, as on any POSIX system, and
/// one stream that nobody reads may hold up the other, and its input. It can be ended all the same.
pub struct Process {
    /// Its standard input; shutting it down or dropping it is its end.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output; it ends when nobody holds it any more.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Its end.
    pub handle: ProcessHandle,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// Waits for the end of a process, or brings it about. Dropping it ends the process with all that it
/// started.
#[derive(Debug)]
pub struct ProcessHandle {
    /// Until its result was told.
    task: Option<JoinHandle<Result<ExecEnd, SandboxError>>>,
    /// Dropping it asks the task to end the process.
    hang_up: Option<oneshot::Sender<()>>,
    end: Option<ExecEnd>,
}

impl ProcessHandle {
    /// Follows a process by a task of its own: `run` tells how it ended, and ends it when its starter
    /// has hung up.
    #[cfg(any(feature = "docker", feature = "local", test))]
    pub(crate) fn of<F>(run: impl FnOnce(oneshot::Receiver<()>) -> F) -> Self
    where
        F: Future<Output = Result<ExecEnd, SandboxError>> + Send + 'static,
    {
        let (hang_up, hung_up) = oneshot::channel();
        Self { task: Some(tokio::spawn(run(hung_up))), hang_up: Some(hang_up), end: None }
    }

    /// Waits until the process has ended: by itself, at its deadline, or with its sandbox. May be
    /// dropped and called again.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend, told once.
    pub async fn wait(&mut self) -> Result<ExecEnd, SandboxError> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let Some(task) = &mut self.task else {
            return Err(backend_error("its end was told before, as an error"));
        };
        let ended = task.await;
        self.task = None;
        let end = ended.map_err(|error| backend_error(error.to_string()))??;
        self.end = Some(end);
        Ok(end)
    }

    /// Ends the process with all that it started, and waits for that: how it ended, which may have been
    /// before.
    ///
    /// # Errors
    ///
    /// As [`ProcessHandle::wait`], and where it resists.
    pub async fn kill(&mut self) -> Result<ExecEnd, SandboxError> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        match self.hang_up().await {
            Some(end) => end,
            None => {
                let (doing, source) = ("end a process".into(), "it resists".into());
                Err(SandboxError::Backend { doing, source })
            }
        }
    }

    /// Ends the process: whether it is over, however it ended.
    #[cfg(feature = "docker")]
    pub(crate) async fn end(&mut self) -> bool {
        self.hang_up().await.is_some()
    }

    /// Asks for the end and waits for it; absent where the process resists.
    async fn hang_up(&mut self) -> Option<Result<ExecEnd, SandboxError>> {
        self.hang_up = None;
        let ended = tokio::time::timeout(ENDING, self.wait()).await.ok();
        if let (None, Some(task)) = (&ended, &self.task) {
            task.abort();
        }
        ended
    }
}

fn backend_error(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SandboxError {
    SandboxError::Backend { doing: "follow a process to its end".into(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_end_is_told_again_and_hanging_up_is_an_end() {
        let mut by_itself = ProcessHandle::of(async |_| Ok(ExecEnd::Exited { code: 3 }));
        for _ in 0..2 {
            assert_eq!(by_itself.wait().await.unwrap(), ExecEnd::Exited { code: 3 });
            assert_eq!(by_itself.kill().await.unwrap(), ExecEnd::Exited { code: 3 });
        }
        let until_hung_up = async |hung_up: oneshot::Receiver<()>| {
            let _ = hung_up.await;
            Ok(ExecEnd::Signalled { signal: 9 })
        };
        let mut killed = ProcessHandle::of(until_hung_up);
        let waited = tokio::time::timeout(Duration::from_millis(10), killed.wait()).await;
        assert!(waited.is_err(), "it runs");
        assert_eq!(killed.kill().await.unwrap(), ExecEnd::Signalled { signal: 9 });
        assert_eq!(killed.wait().await.unwrap(), ExecEnd::Signalled { signal: 9 });

        let (told, tells) = oneshot::channel();
        drop(ProcessHandle::of(move |hung_up| async move {
            let _ = hung_up.await;
            let _ = told.send(());
            Ok(ExecEnd::Signalled { signal: 9 })
        }));
        tells.await.expect("a dropped one is ended");
    }

    #[tokio::test]
    async fn an_error_is_told_once_and_a_second_time_as_such() {
        let died = async |_| Err(SandboxError::UsedUp { what: "processes" });
        let mut handle = ProcessHandle::of(died);
        assert!(matches!(handle.wait().await, Err(SandboxError::UsedUp { .. })));
        for _ in 0..2 {
            let again = handle.wait().await.unwrap_err();
            assert!(matches!(again, SandboxError::Backend { .. }), "{again}");
        }
        assert!(handle.kill().await.is_err());
    }
}
