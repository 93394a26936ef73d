//! What the first user of a sandbox may do beyond what its files' permissions say.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Capabilities, as capabilities(7) has them, of commands that run as `root` inside. Other users have
/// none, and nobody gains any: programs with the set-user-ID bit run as who starts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapabilitySet {
    /// None at all: `root` is a user like others, who may neither become another user nor open files that
    /// are not its own.
    #[default]
    None,
    /// What package managers and `su` need: files of all users of the sandbox can be read, written and given away, and
    /// `root` can become another user and end its processes. Nothing that reaches the kernel or the host: no mounts,
    /// devices, network settings, tracing or clocks.
    Packages,
}

impl CapabilitySet {
    /// All of them, for those who choose.
    pub const ALL: [Self; 2] = [Self::None, Self::Packages];

    /// As specs and task files write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Packages => "packages",
        }
    }

    /// The capabilities by their name without `CAP_` and by their number, in the order of numbers.
    pub fn capabilities(self) -> &'static [(&'static str, u8)] {
        match self {
            Self::None => &[],
            Self::Packages => PACKAGES,
        }
    }

    /// One bit for each capability, the lowest being number 0.
    #[cfg(feature = "local")]
    pub(crate) fn mask(self) -> u64 {
        self.capabilities().iter().fold(0, |mask, (_, number)| mask | 1 << number)
    }
}

/// `apt`, `dpkg`, `rpm`, `pip` and `npm` unpack files of many owners, run scripts as other users and set capabilities of
/// files, which have no effect here; `useradd` and `su` write account files, change users and tell so to the audit.
const PACKAGES: &[(&str, u8)] = &[
    ("CHOWN", 0),
    ("DAC_OVERRIDE", 1),
    ("FOWNER", 3),
    ("FSETID", 4),
    ("KILL", 5),
    ("SETGID", 6),
    ("SETUID", 7),
    ("AUDIT_WRITE", 29),
    ("SETFCAP", 31),
];

impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CapabilitySet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|set| set.name() == text);
        found.ok_or_else(|| format!("it is one of {}", known.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_and_read_by_name_and_hold_nothing_that_reaches_the_host() {
        for set in CapabilitySet::ALL {
            assert_eq!(set.name().parse(), Ok(set));
            let text = serde_json::to_string(&set).unwrap();
            assert_eq!(text, format!("\"{set}\""));
            assert_eq!(serde_json::from_str::<CapabilitySet>(&text).unwrap(), set);
            // SYS_MODULE to SYS_TIME, MKNOD, NET_ADMIN, NET_RAW, the kernel's log, BPF and the like.
            let reaching = (16..=25).chain([2, 12, 13, 27, 32, 33, 34, 35, 36, 37, 38, 39, 40]);
            for number in reaching {
                assert!(set.capabilities().iter().all(|(_, held)| *held != number), "{number}");
            }
        }
        let error = "package".parse::<CapabilitySet>().unwrap_err();
        assert!(error.contains("none, packages"), "{error}");
    }
}
