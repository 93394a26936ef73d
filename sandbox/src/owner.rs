//! Who a sandbox belongs to, and whether that process still lives.

use std::fs;
use std::io::ErrorKind;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// The process-number namespace that a machine boots with, as the kernel fixes it.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The process that made a sandbox, told apart from a later one that has the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// A name of its own: labels, folders and control groups carry it.
    pub run: String,
    /// Number of the process.
    pub pid: u32,
    /// When it was started, in clock ticks since the machine was (field 22 of `/proc/PID/stat`); 0
    /// where it could not see that.
    pub started: u64,
    /// The machine: a hash of its id (`/etc/machine-id`) and its name, since copies of a machine may
    /// share the id. Empty where there is no id, and in containers, whose id may be their image's.
    #[serde(default)]
    pub machine: String,
    /// The boot of the machine (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// The process-number namespace, since two containers of one machine count separately.
    pub namespace: String,
}

/// Whether an owner lives, as far as can be told from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerState {
    /// This process.
    Own,
    /// Another process that runs.
    Alive,
    /// It does not run any more; so does nothing of an earlier boot of this machine.
    Dead,
    /// It cannot be seen from here: it is on another machine or in another process namespace, or
    /// `/proc` does not show it. Only the time to live tells.
    Unknown,
}

impl Owner {
    /// This process, under a name that no other process has.
    pub fn this_process() -> &'static Self {
        static OWNER: OnceLock<Owner> = OnceLock::new();
        OWNER.get_or_init(|| {
            let pid = std::process::id();
            let (started, boot, namespace) = (process_start(pid).unwrap_or(0), boot(), namespace());
            let who = format!("{pid} {started} {boot} {namespace}");
            let run = blake3::hash(who.as_bytes()).to_hex()[..16].to_owned();
            Self { run, pid, started, machine: machine(), boot, namespace }
        })
    }

    /// Whether it lives.
    pub fn state(&self) -> OwnerState {
        let own = Self::this_process();
        if self == own {
            return OwnerState::Own;
        }
        if self.boot.is_empty() || own.boot.is_empty() {
            return OwnerState::Unknown;
        }
        if self.boot != own.boot {
            // Nothing outlives a restart of its machine.
            let is_here = !self.machine.is_empty() && self.machine == own.machine;
            return if is_here { OwnerState::Dead } else { OwnerState::Unknown };
        }
        if self.namespace != own.namespace || own.namespace.is_empty() || self.started == 0 {
            return OwnerState::Unknown;
        }
        match process(self.pid) {
            Process::Runs { started } if started == self.started => OwnerState::Alive,
            Process::Runs { .. } | Process::Gone => OwnerState::Dead,
            Process::Unseen => OwnerState::Unknown,
        }
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn machine() -> String {
    if namespace() != FIRST_NAMESPACE {
        return String::new();
    }
    let read = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let id = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .map(read)
        .into_iter()
        // "uninitialized" stands there until the first boot.
        .find(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let Some(id) = id else { return String::new() };
    let who = format!("{id} {}", read("/proc/sys/kernel/hostname"));
    blake3::hash(who.as_bytes()).to_hex()[..16].to_owned()
}

fn namespace() -> String {
    fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// A process as it can be seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// It runs since then (field 22 of `/proc/PID/stat`).
    Runs {
        /// In clock ticks since the machine was started.
        started: u64,
    },
    /// There is none of this number, or one that ended and that nobody has waited for.
    Gone,
    /// It may run: `/proc` is not ours, hides it, or cannot be understood.
    Unseen,
}

/// The process of a number in this process's namespace.
pub(crate) fn process(pid: u32) -> Process {
    if !sees_processes() {
        return Process::Unseen;
    }
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => read_stat(&stat),
        // So it is, too, where `/proc` shows the processes of its user alone (`hidepid`).
        Err(error) if error.kind() == ErrorKind::NotFound && !is_there(pid) => Process::Gone,
        // It ended while it was looked at.
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Process::Gone,
        Err(_) => Process::Unseen,
    }
}

/// When a process was started; absent for one that is gone or cannot be seen.
pub(crate) fn process_start(pid: u32) -> Option<u64> {
    match process(pid) {
        Process::Runs { started } => Some(started),
        Process::Gone | Process::Unseen => None,
    }
}

/// Whether `/proc` counts processes as this one does: it may be absent, or that of a namespace
/// around this one.
fn sees_processes() -> bool {
    let own = std::process::id().to_string();
    fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str())
}

/// Whether there is a process of this number, whoever may see it.
fn is_there(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    test_kill_process(pid) != Err(Errno::SRCH)
}

fn read_stat(stat: &str) -> Process {
    let read = || {
        // The second field is the program's name in parentheses, which may hold anything.
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return Some(Process::Gone);
        }
        Some(Process::Runs { started: fields.nth(18)?.parse().ok()? })
    };
    read().unwrap_or(Process::Unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_its_own() {
        assert_eq!(Owner::this_process().state(), OwnerState::Own);
        assert!(Owner::this_process().started > 0);
    }

    #[test]
    fn a_process_that_ended_is_dead_even_before_it_was_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = Owner::this_process();
        let owner = Owner {
            run: "x".into(),
            pid: child.id(),
            started: process_start(child.id()).unwrap(),
            ..own.clone()
        };
        assert_eq!(owner.state(), OwnerState::Alive);
        let reused = Owner { started: owner.started + 1, ..owner.clone() };
        assert_eq!(reused.state(), OwnerState::Dead);
        child.kill().unwrap();
        while process_start(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(owner.state(), OwnerState::Dead);
        child.wait().unwrap();
        assert_eq!(owner.state(), OwnerState::Dead);
    }

    #[test]
    fn an_owner_of_an_earlier_boot_of_this_machine_is_dead() {
        let own = Owner::this_process();
        let earlier = Owner { boot: "earlier".into(), ..own.clone() };
        let told = !own.machine.is_empty() && !own.boot.is_empty();
        let expected = if told { OwnerState::Dead } else { OwnerState::Unknown };
        assert_eq!(earlier.state(), expected);
    }

    #[test]
    fn labels_from_before_machines_were_told_apart_are_still_read() {
        let own = Owner::this_process();
        let mut value = serde_json::to_value(own).unwrap();
        value.as_object_mut().unwrap().remove("machine");
        let read: Owner = serde_json::from_value(value).unwrap();
        assert_eq!(read, Owner { machine: String::new(), ..own.clone() });
    }

    #[test]
    fn what_cannot_be_seen_from_here_is_unknown() {
        let own = Owner::this_process();
        for other in [
            Owner { boot: "another".into(), machine: "another".into(), ..own.clone() },
            Owner { boot: "another".into(), machine: String::new(), ..own.clone() },
            Owner { namespace: "another".into(), run: "x".into(), ..own.clone() },
            // Of a process that could not see itself, and of a system without these files.
            Owner { started: 0, pid: u32::MAX, ..own.clone() },
            Owner { boot: String::new(), pid: u32::MAX, ..own.clone() },
        ] {
            assert_eq!(other.state(), OwnerState::Unknown, "{other:?}");
        }
    }

    #[test]
    fn a_process_that_is_hidden_or_not_understood_is_not_taken_for_dead() {
        assert!(is_there(std::process::id()) && is_there(1));
        assert!(!is_there(u32::MAX) && !is_there(0));
        assert_eq!(process(u32::MAX), Process::Gone);
        assert_eq!(read_stat("7 (a) b) S 1"), Process::Unseen);
        assert_eq!(read_stat(""), Process::Unseen);
        let fields = ["0"; 18].join(" ");
        assert_eq!(read_stat(&format!("7 (a) b) S {fields} 42 0")), Process::Runs { started: 42 });
        assert_eq!(read_stat(&format!("7 (a) b) Z {fields} 42 0")), Process::Gone);
    }
}
