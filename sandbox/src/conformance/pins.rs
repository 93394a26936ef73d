//! Which checks a backend has to pass.

use super::Verdict;

/// Which checks a backend has to pass: all but those that are named here. A check that is added is
/// one that every backend has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pins {
    /// What the backend cannot do, or cannot be asked, by its nature. It may not pass these either:
    /// once it does, they are to be pinned.
    pub never: &'static [&'static str],
    /// What depends on the machine: its kernel, its name, the engine's storage.
    pub depends: &'static [&'static str],
}

impl Pins {
    /// The verdict on a check of this name, told that it is a failure where the check was left out
    /// and is pinned.
    pub(super) fn judge(&self, name: &str, verdict: Verdict) -> Verdict {
        let is_never = self.never.contains(&name);
        let is_pinned = !is_never && !self.depends.contains(&name);
        let reason = match &verdict {
            Verdict::Unsupported if is_pinned => {
                "the backend has to pass it, and says that it cannot do this".to_owned()
            }
            Verdict::Skipped { reason } if is_pinned => {
                format!("the backend has to pass it, and it was skipped: {reason}")
            }
            Verdict::Passed if is_never => {
                "the backend passes it, and its row in the registry still leaves it out".to_owned()
            }
            _ => return verdict,
        };
        Verdict::Failed { reason }
    }

    /// All that are named.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.never.iter().chain(self.depends).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_left_out_fails_unless_the_row_says_so() {
        let pins = Pins { never: &["never"], depends: &["depends"] };
        let skipped = || Verdict::Skipped { reason: "no such program".into() };
        let failed = |name, verdict| matches!(pins.judge(name, verdict), Verdict::Failed { .. });
        assert!(failed("other", skipped()) && failed("other", Verdict::Unsupported));
        assert!(!failed("other", Verdict::Passed));
        assert!(!failed("never", skipped()) && !failed("never", Verdict::Unsupported));
        assert!(failed("never", Verdict::Passed), "the row is out of date");
        for verdict in [skipped(), Verdict::Unsupported, Verdict::Passed] {
            assert_eq!(pins.judge("depends", verdict.clone()), verdict);
        }
        let broken = Verdict::Failed { reason: "it does not hold".into() };
        assert_eq!(pins.judge("never", broken.clone()), broken);
    }
}
