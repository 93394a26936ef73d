use std::sync::LazyLock;

use regex::RegexSet;
use serde::{Deserialize, Serialize};

/// How sure it is that the machinery was at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InfraTier {
    /// No patch to the repository's sources causes it.
    Environment,
    /// The machinery or the patch.
    Ambiguous,
}

/// A sign in a log that something other than the attempt went wrong. It is advice: it resolves nothing and excuses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfraFailure {
    /// SWE-bench's word for it, such as `out_of_memory`.
    pub reason: &'static str,
    /// How sure it is.
    pub tier: InfraTier,
}

/// What is looked for, the first that fits in this order.
const SIGNS: [(&str, InfraTier, &str); 8] = [
    (
        "browser_launch_failed",
        InfraTier::Environment,
        "Failed to launch|Failed to connect to the bus",
    ),
    (
        "display_unavailable",
        InfraTier::Environment,
        "cannot open display|Missing X server|unable to open X display",
    ),
    ("out_of_memory", InfraTier::Environment, "Cannot allocate memory|OutOfMemoryError|^Killed$"),
    (
        "container_unavailable",
        InfraTier::Environment,
        "Error response from daemon|Cannot connect to the Docker daemon",
    ),
    (
        "network_unreachable",
        InfraTier::Environment,
        "Could not resolve host|Temporary failure in name resolution",
    ),
    (
        "missing_module",
        InfraTier::Ambiguous,
        "Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError",
    ),
    ("no_tests_collected", InfraTier::Ambiguous, "no tests ran|collected 0 items"),
    ("tests_timed_out", InfraTier::Ambiguous, r"Timeout error: \d+ seconds exceeded"),
];

/// Looks for signs in logs, line by line.
#[derive(Clone, Copy, Debug, Default)]
pub struct InfraScan(Option<usize>);

impl InfraScan {
    /// Reads a line, without its end.
    pub fn line(&mut self, line: &str) {
        static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
            RegexSet::new(SIGNS.map(|(_, _, pattern)| pattern))
                .expect("patterns that were written here")
        });
        // A log has few signs; once the first of the list is there, no other counts.
        if self.0 != Some(0)
            && let Some(first) = PATTERNS.matches(line).iter().next()
        {
            self.0 = Some(self.0.map_or(first, |known| known.min(first)));
        }
    }

    /// Reads a text of any number of lines.
    pub fn text(&mut self, text: &str) {
        text.split(['\n', '\r']).for_each(|line| self.line(line));
    }

    /// What was found.
    pub fn found(self) -> Option<InfraFailure> {
        let (reason, tier, _) = SIGNS[self.0?];
        Some(InfraFailure { reason, tier })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_list_counts() {
        let mut scan = InfraScan::default();
        assert_eq!(scan.found(), None);
        scan.text("collected 0 items\nnot Killed\n");
        assert_eq!(scan.found().unwrap().reason, "no_tests_collected");
        scan.text("a\rKilled\r\nb");
        let found = scan.found().unwrap();
        assert_eq!((found.reason, found.tier), ("out_of_memory", InfraTier::Environment));
    }
}
