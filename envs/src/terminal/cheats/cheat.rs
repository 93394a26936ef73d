//! One way to cheat.

use std::fmt;

use spar_tasks::{TerminalTask, VerifierSandbox};

use super::Problem;

/// One way to cheat: an agent that is after the reward of a problem by other means than solving it.
#[derive(Debug, Clone, Copy)]
pub struct Cheat {
    /// What it does, after "an agent".
    pub name: &'static str,
    /// What it is after.
    pub problem: Problem,
    /// What has to be there for it to be tried.
    pub needs: &'static [Need],
    /// What holds it off: it scores, or gets another try, where all of these are missing.
    pub guards: &'static [Guard],
    /// What is judged.
    pub play: Play,
    /// Its commands. None of them holds the solution.
    pub commands: &'static [&'static str],
}

impl Cheat {
    /// Where it is judged, all guards being there.
    pub(super) fn sandbox(&self) -> VerifierSandbox {
        match self.guards.contains(&Guard::Fresh) {
            true => VerifierSandbox::Fresh,
            false => VerifierSandbox::Same,
        }
    }

    /// The task, with the limits that the cheat is after.
    pub(super) fn task(&self, sandbox: VerifierSandbox) -> TerminalTask {
        let mut task = self.problem.task(sandbox);
        if self.needs.contains(&Need::MemoryLimit) {
            task.limits.memory_bytes = Some(64 << 20);
        }
        if self.needs.contains(&Need::DiskLimit) {
            task.limits.disk_bytes = Some(16 << 20);
        }
        task
    }
}

/// What is judged of a cheat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// Its own episode.
    Own,
    /// A fork of its episode, in which nothing more is done.
    Fork,
    /// The next episode, in which nothing is done; in its own the problem is solved as well.
    Next,
}

/// What a cheat needs of the backend or the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// [`Capabilities::posix`](spar_sandbox::Capabilities::posix).
    Posix,
    /// [`Capabilities::fork`](spar_sandbox::Capabilities::fork).
    Fork,
    /// [`Capabilities::memory_limit`](spar_sandbox::Capabilities::memory_limit).
    MemoryLimit,
    /// [`Capabilities::pids_limit`](spar_sandbox::Capabilities::pids_limit).
    ProcessLimit,
    /// [`Capabilities::disk_limit`](spar_sandbox::Capabilities::disk_limit).
    DiskLimit,
    /// A program of this name.
    Program(&'static str),
    /// That a process sees what other commands have started, and can write to its memory.
    OtherProcesses,
}

impl Need {
    /// Scripts that run in turn, each a command of its own, the last of which exits with 0 where it is
    /// there; none where capabilities tell.
    pub(super) fn probe(self) -> &'static [&'static str] {
        match self {
            Self::Program("cc") => {
                &["command -v cc && printf 'int x;' | cc -shared -fPIC -x c - -o /tmp/x"]
            }
            Self::Program("git") => &["command -v git"],
            Self::Program("python3") => &["command -v python3"],
            Self::Program(_) => &["false"],
            Self::OtherProcesses => &[
                "(setsid sleep 98764 </dev/null >/dev/null 2>&1 &)",
                "for p in /proc/[0-9]*; do case $(tr '\\000' ' ' <$p/cmdline) in 'sleep 98764 ') \
                 : >>$p/mem && exit 0;; esac; done; exit 1",
            ],
            _ => &[],
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Posix => write!(f, "programs of POSIX"),
            Self::Fork => write!(f, "forks"),
            Self::MemoryLimit => write!(f, "limit of memory"),
            Self::ProcessLimit => write!(f, "limit of processes"),
            Self::DiskLimit => write!(f, "limit of the disk"),
            Self::Program(name) => write!(f, "`{name}`"),
            Self::OtherProcesses => write!(f, "sight of what other commands started"),
        }
    }
}

/// What holds a cheat off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Everything in the sandbox is ended before the verifier comes.
    EndAll,
    /// The verifier runs in a shell of its own.
    OwnShell,
    /// The verifier's files come when the agent is done, not before.
    Late,
    /// What lies where the verifier's files and its reward come is removed before.
    Clear,
    /// A reward is a small regular file with a number from 0 to 1 and nothing else.
    StrictReward,
    /// The exit code counts, not what was printed.
    ExitCode,
    /// What the agent's own commands bring about is its result, not a failure of the sandbox.
    Blame,
    /// No episode gets the sandbox of another.
    Unused,
    /// The verifier runs in a sandbox of its own, with the agreed files carried over.
    Fresh,
}
