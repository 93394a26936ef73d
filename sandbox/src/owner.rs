//! Who a sandbox belongs to, and whether that process still lives.

use std::fs;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// The process that made a sandbox, told apart from a later one that has the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// A name of its own: labels, folders and control groups carry it.
    pub run: String,
    /// Number of the process.
    pub pid: u32,
    /// When it was started, in clock ticks since the machine was (field 22 of `/proc/PID/stat`).
    pub started: u64,
    /// The machine: a hash of its id (`/etc/machine-id`) and its name, since copies of a machine may
    /// share the id. Empty where there is no id, as in most containers.
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
    /// On another machine, or in another process namespace: only the time to live tells.
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
        if self.boot != own.boot {
            let is_known = !self.machine.is_empty() && !self.boot.is_empty();
            // Nothing outlives a restart of its machine.
            let is_here = is_known && self.machine == own.machine && !own.boot.is_empty();
            return if is_here { OwnerState::Dead } else { OwnerState::Unknown };
        }
        if self.namespace != own.namespace {
            return OwnerState::Unknown;
        }
        match process_start(self.pid) {
            Some(started) if started == self.started => OwnerState::Alive,
            _ => OwnerState::Dead,
        }
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn machine() -> String {
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

/// Field 22 of `/proc/PID/stat`; absent for a process that does not exist or is a zombie.
pub(crate) fn process_start(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
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
        ] {
            assert_eq!(other.state(), OwnerState::Unknown);
        }
    }
}
