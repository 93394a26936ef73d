use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
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

impl InfraFailure {
    /// The sign of SWE-bench's word for it; absent where it has no such word.
    pub fn named(reason: &str) -> Option<Self> {
        let (reason, tier, _) = SIGNS.into_iter().find(|(name, _, _)| *name == reason)?;
        Some(Self { reason, tier })
    }
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

/// One of these is in every line that has a sign: patterns are held against such lines alone.
const WORDS: [&str; 18] = [
    "Failed to launch",
    "Failed to connect",
    "cannot open display",
    "Missing X server",
    "unable to open X",
    "Cannot allocate memory",
    "OutOfMemoryError",
    "Killed",
    "Error response from",
    "Cannot connect to the Docker",
    "Could not resolve host",
    "Temporary failure in name",
    "Cannot find module",
    "MODULE_NOT_FOUND",
    "ModuleNotFoundError",
    "no tests ran",
    "collected 0 items",
    "Timeout error: ",
];

fn may_have_sign(line: &str) -> bool {
    static FINDER: LazyLock<AhoCorasick> =
        LazyLock::new(|| AhoCorasick::new(WORDS).expect("few short words"));
    FINDER.is_match(line)
}

fn patterns() -> &'static RegexSet {
    static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
        RegexSet::new(SIGNS.map(|(_, _, pattern)| pattern))
            .expect("patterns that were written here")
    });
    &PATTERNS
}

/// Looks for signs in logs, line by line.
#[derive(Clone, Copy, Debug, Default)]
pub struct InfraScan(Option<usize>);

impl InfraScan {
    /// Reads a line, without its end.
    pub fn line(&mut self, line: &str) {
        // A log has few signs; once the first of the list is there, no other counts.
        if self.0 != Some(0)
            && may_have_sign(line)
            && let Some(first) = patterns().matches(line).iter().next()
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
    use proptest::prelude::*;

    use super::*;

    /// Pieces of the patterns, whole and cut, and what joins them.
    fn piece() -> impl Strategy<Value = String> {
        let words = SIGNS.into_iter().flat_map(|(_, _, pattern)| pattern.split('|'));
        let words: Vec<String> =
            words.map(|word| word.replace(r"\d+", "60").replace(['^', '$'], "")).collect();
        (0..words.len(), any::<bool>(), 0..4usize, "[ \u{1b}é]{0,2}").prop_map(
            move |(word, is_whole, cut, join)| {
                let word = &words[word];
                word[..word.len() - if is_whole { 0 } else { cut }].to_owned() + &join
            },
        )
    }

    proptest! {
        #[test]
        fn lines_that_are_left_out_have_no_sign(
            pieces in proptest::collection::vec(piece(), 0..4), before in "[ x]{0,1}",
        ) {
            let line = before + &pieces.concat();
            let mut scan = InfraScan::default();
            scan.line(&line);
            prop_assert_eq!(scan.0, patterns().matches(&line).iter().next());
        }
    }

    #[test]
    fn the_first_of_the_list_counts() {
        let mut scan = InfraScan::default();
        assert_eq!(scan.found(), None);
        scan.text("collected 0 items\nnot Killed\n");
        assert_eq!(scan.found().unwrap().reason, "no_tests_collected");
        scan.text("a\rKilled\r\nb");
        let found = scan.found().unwrap();
        assert_eq!((found.reason, found.tier), ("out_of_memory", InfraTier::Environment));
        assert_eq!(InfraFailure::named("out_of_memory"), Some(found));
        assert_eq!(InfraFailure::named("nothing"), None);
    }
}
