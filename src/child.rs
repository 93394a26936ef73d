//! Programs beside this one, waited for no longer than one has patience.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

/// Patience with a program that only has to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// Patience with one that carries files about: a checkout, a download, an archive of an image.
pub(crate) const TRANSFER: Duration = Duration::from_secs(3600);
/// Patience with one that builds.
pub(crate) const BUILD: Duration = Duration::from_secs(4 * 3600);

/// A program that did not do its part; what it says of its work is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// It does not run.
    #[error("run `{program}`")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It ran for longer than it may, and was ended with all that it started.
    #[error("run `{program}`: it was ended after {} s, the longest that it may take", patience.as_secs())]
    Late {
        /// The program.
        program: String,
        /// How long it may take.
        patience: Duration,
    },
}

/// A running program in a process group of its own, which is ended when this is dropped.
///
/// A key at the terminal does not reach the group: whoever waits for it drops this in place of that.
#[derive(Debug)]
pub(crate) struct Group {
    /// The program itself; its streams are as the command had them.
    pub(crate) child: Child,
}

impl Group {
    /// Starts a program, without anything to read from.
    pub(crate) fn start(command: &mut Command) -> Result<Self, ChildError> {
        command.stdin(Stdio::null()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let started = command.spawn();
        Ok(Self { child: started.map_err(|source| start_error(command, source))? })
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};

        // As long as it is not reaped, the number is surely its own.
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        if let Some(group) = pid {
            // Whoever is gone already needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn program_of(command: &Command) -> String {
    command.as_std().get_program().to_string_lossy().into_owned()
}

fn start_error(command: &Command, source: std::io::Error) -> ChildError {
    ChildError::Start { program: program_of(command), source }
}

/// What became of `work` on a program, if it is done in time.
///
/// # Errors
///
/// [`ChildError::Late`] where it is not; then `work`, and the [`Group`] that it owns, is dropped.
pub(crate) async fn in_time<T>(
    program: &str,
    patience: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ChildError> {
    let late = |_| ChildError::Late { program: program.to_owned(), patience };
    tokio::time::timeout(patience, work).await.map_err(late)
}

/// Runs a program to its end and gives what it printed. Streams that the command names itself stay so.
///
/// # Errors
///
/// [`ChildError`] where it does not run, or has not ended within `patience`, closed streams included: then it is ended with
/// all of its group.
pub(crate) async fn output(
    command: &mut Command,
    patience: Duration,
) -> Result<Output, ChildError> {
    command.stdout(Stdio::piped());
    output_into(command, patience).await
}

/// As [`output`], with the standard output as the command has it.
///
/// # Errors
///
/// As [`output`].
pub(crate) async fn output_into(
    command: &mut Command,
    patience: Duration,
) -> Result<Output, ChildError> {
    use tokio::io::{AsyncRead, AsyncReadExt};

    async fn all(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).await?;
        }
        Ok(bytes)
    }

    let program = program_of(command);
    let mut group = Group::start(command.stderr(Stdio::piped()))?;
    let ran = in_time(&program, patience, async {
        let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
        // It is reaped only when its streams are closed: until then whoever holds them can be ended by its number.
        let (stdout, stderr) = tokio::try_join!(all(out), all(err))?;
        Ok(Output { status: group.child.wait().await?, stdout, stderr })
    });
    ran.await?.map_err(|source| start_error(command, source))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn what_a_program_prints_is_given_with_how_it_ended() {
        let ran = output(&mut shell("echo out; echo err >&2; exit 3"), ANSWER).await.unwrap();
        assert_eq!(ran.status.code(), Some(3));
        assert_eq!((&*ran.stdout, &*ran.stderr), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let error = output(&mut Command::new("/no/such/program"), ANSWER).await.unwrap_err();
        assert_eq!(error.to_string(), "run `/no/such/program`");
    }

    /// Whether a process runs; one that has ended and was not waited for does not.
    fn runs(pid: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        status.is_ok_and(|status| !status.rsplit(')').next().unwrap().trim().starts_with('Z'))
    }

    /// Waits until a process that was ended is gone.
    async fn assert_ends(pid: &str) {
        for _ in 0..500 {
            if !runs(pid) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("process {pid} runs on");
    }

    #[tokio::test]
    async fn one_that_takes_too_long_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        // The shell ends at once; what holds its streams open is a grandchild.
        for rest in ["wait", "exit 0"] {
            let script = format!("sleep 1000 & echo $! > '{}'; {rest}", file.display());
            let patience = Duration::from_millis(1500);
            let error = output(&mut shell(&script), patience).await.unwrap_err();
            assert!(matches!(error, ChildError::Late { .. }), "{error}");
            assert_eq!(
                error.to_string(),
                "run `sh`: it was ended after 1 s, the longest that it may take"
            );
            assert_ends(&std::fs::read_to_string(&file).unwrap()).await;
        }
    }

    #[tokio::test]
    async fn whoever_no_longer_waits_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut command = shell(&format!("sleep 1000 & echo $! > '{}'; wait", file.display()));
        let told = {
            let mut waiting = Box::pin(output(&mut command, TRANSFER));
            loop {
                let nap = tokio::time::timeout(Duration::from_millis(20), &mut waiting).await;
                assert!(nap.is_err(), "it runs on");
                match std::fs::read_to_string(&file) {
                    Ok(pid) if pid.ends_with('\n') => break pid,
                    _ => {}
                }
            }
        };
        assert_ends(&told).await;
    }
}
