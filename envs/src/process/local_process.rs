//! Programs of the user who runs spar, ended with all that they started.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// The environment variable by whose value a program's descendants are known.
pub(super) const MARK: &str = "SPAR_PROGRAM";
/// Looks for descendants that are left, at the most: one that multiplies faster is not caught.
const LOOKS: usize = 50;
/// Between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// Bytes of a process's variables that are looked through.
const MOST_VARIABLES: u64 = 1 << 20;

/// A program with all that it started: a process group, and whoever left that and still has the program's mark among its
/// environment variables. Dropping it ends them all by SIGKILL.
///
/// A descendant that leaves the group and clears its variables as well gets away: what is not to be trusted belongs in a
/// sandbox.
#[derive(Debug)]
pub(crate) struct LocalProcess {
    child: Child,
    /// Told whenever a process of this one has ended.
    endings: Signals,
    has_ended: bool,
    mark: String,
    is_reaped: bool,
}

/// The ends of a program's streams.
pub(super) type LocalStreams = (ChildStdin, ChildStdout, ChildStderr);

impl LocalProcess {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(super) fn start(mut command: Command) -> std::io::Result<(Self, LocalStreams)> {
        let mark = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
        command.env(MARK, &mark).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Listened to from before the program can end.
        let endings = signal(SignalKind::child())?;
        let mut child = command.spawn()?;
        let pipes = "its streams are pipes";
        let stdin = child.stdin.take().expect(pipes);
        let stdout = child.stdout.take().expect(pipes);
        let stderr = child.stderr.take().expect(pipes);
        let process = Self { child, endings, has_ended: false, mark, is_reaped: false };
        Ok((process, (stdin, stdout, stderr)))
    }

    /// Waits until the program itself has ended, ends what it left in its group, and tells how it ended. May be dropped and
    /// called again.
    pub(super) async fn wait(&mut self) -> String {
        while !self.has_ended && self.endings.recv().await.is_some() {
            self.has_ended = self.number().is_none_or(has_ended);
        }
        // Before it is reaped, and its number may be another's.
        self.end_group();
        let waited = self.child.wait().await;
        self.is_reaped = true;
        waited.map_or_else(|error| format!("cannot be waited for: {error}"), told)
    }
}

impl LocalProcess {
    /// Its number, as long as it is not reaped: only so long is that surely its own.
    fn number(&self) -> Option<Pid> {
        let id = self.child.id().filter(|_| !self.is_reaped);
        id.and_then(|id| Pid::from_raw(id.try_into().ok()?))
    }

    /// Ends all of its group.
    fn end_group(&self) {
        if let Some(group) = self.number() {
            // Whoever is gone already needs no signal.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        self.end_group();
        end_marked(&self.mark);
    }
}

/// Whether a process of this one has ended; it is not reaped by that.
fn has_ended(id: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    // Where nothing can be told of it, waiting for it tells why.
    waitid(WaitId::Pid(id), options).map_or(true, |status| status.is_some())
}

fn told(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Ends all processes that have this mark, until a look finds none.
fn end_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        if !end_those_with(wanted.as_bytes()) {
            return;
        }
    }
    tracing::warn!(mark, "a program's descendants multiply faster than they can be ended");
}

/// Ends all processes with this variable; whether there were any.
#[cfg(target_os = "linux")]
fn end_those_with(variable: &[u8]) -> bool {
    use std::io::Read;

    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let mut has_found = false;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // Opened before its variables are read, so that no other process of this number is meant.
        let Some(Ok(process)) = Pid::from_raw(id).map(|id| pidfd_open(id, PidfdFlags::empty()))
        else {
            continue;
        };
        let Ok(file) = std::fs::File::open(entry.path().join("environ")) else { continue };
        let mut variables = Vec::new();
        if file.take(MOST_VARIABLES).read_to_end(&mut variables).is_ok()
            && variables.split(|byte| *byte == 0).any(|found| found == variable)
        {
            has_found = true;
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
    has_found
}

/// Other systems do not show variables of processes: there the group is all that is ended.
#[cfg(not(target_os = "linux"))]
fn end_those_with(_: &[u8]) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Ends a program that has started `script` and says how many processes of it there are before and after.
    #[tokio::test]
    async fn descendants_are_ended_whether_or_not_they_left_the_group() {
        let mut command = Command::new("sh");
        // One in the group, one in a session of its own whose parent is gone.
        command.args(["-c", "sleep 300 & (setsid sleep 300 &) ; sleep 0.05; echo up; sleep 300"]);
        let (process, (_, mut stdout, _)) = LocalProcess::start(command).unwrap();
        let mut up = [0; 3];
        stdout.read_exact(&mut up).await.unwrap();
        let wanted = format!("{MARK}={}", process.mark);
        let running = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let variables =
                all.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
            variables.filter(|it| it.split(|b| *b == 0).any(|v| v == wanted.as_bytes())).count()
        };
        assert!(running() >= 3, "{}", running());
        drop(process);
        assert_eq!(running(), 0);
    }

    #[tokio::test]
    async fn what_a_program_leaves_in_its_group_ends_with_it_though_it_has_no_mark() {
        let mut command = Command::new("sh");
        command.args(["-c", "env -i sleep 300 >/dev/null 2>&1 & echo $!; sleep 0.05"]);
        let (mut process, (_, mut stdout, _)) = LocalProcess::start(command).unwrap();
        let mut id = String::new();
        stdout.read_to_string(&mut id).await.unwrap();
        let status = format!("/proc/{}/status", id.trim());
        // Whoever is gone may wait to be reaped.
        let is_running =
            || std::fs::read_to_string(&status).is_ok_and(|it| !it.contains("State:\tZ"));
        assert!(is_running());
        assert_eq!(process.wait().await, "exited with code 0");
        drop(process);
        for _ in 0..200 {
            if !is_running() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("process {id} goes on");
    }
}
