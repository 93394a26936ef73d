//! Handing something in is worth something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::test_results::Attempt;
use crate::ShaperError;

const NAME: &str = "completion";

/// Options of [`Completion`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompletionOptions {
    /// What an episode earns whose agent hands in before a limit ends it; at least 0. Default 0.1.
    pub completed: f64,
    /// What one earns in which the repository was changed; at least 0. Default 0.1.
    pub modified: f64,
}

impl Default for CompletionOptions {
    fn default() -> Self {
        Self { completed: 0.1, modified: 0.1 }
    }
}

impl NamedOptions for CompletionOptions {
    fn problems(&self) -> Vec<String> {
        let all = [("completed", self.completed), ("modified", self.modified)];
        let wrong = all.into_iter().filter(|(_, value)| !(value.is_finite() && *value >= 0.0));
        wrong.map(|(name, value)| format!("{name} is {value}, must be at least 0")).collect()
    }
}

/// What comes before tests: `r += completed * 1[handed in] + modified * 1[patch is not empty]`, as parts `completed` and
/// `modified` of the last turn.
///
/// These are the rates by which G-RA (arXiv 2508.10548) tells an agent that gives up from one that works. Anybody can earn them
/// without solving anything: behind [`gated`](super::Gated) with a gate on `resolved` they count only for what is solved. Episodes of other
/// environments are left as they are.
#[derive(Debug, Clone)]
pub struct Completion {
    options: CompletionOptions,
}

impl Completion {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is below 0.
    pub fn new(options: &CompletionOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, NAME, options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for Completion {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let (Some(attempt), Some(last)) = (Attempt::of(trajectory), rewards.last_mut()) else {
            return;
        };
        for (name, is_so, value) in [
            ("completed", attempt.submitted, self.options.completed),
            ("modified", attempt.has_changes(), self.options.modified),
        ] {
            if is_so && value > 0.0 {
                last.push(RewardPart { name: name.to_owned(), value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_results::judged;
    use super::super::tests::episode;
    use super::super::{RewardShapers, ShaperConfig};
    use super::*;

    #[test]
    fn what_is_handed_in_earns_and_a_gate_closes_it() {
        let open = |text: &str| {
            #[derive(Deserialize)]
            struct Named {
                shapers: Vec<ShaperConfig>,
            }
            let named: Named = toml::from_str(text).unwrap();
            RewardShapers::open(&named.shapers).unwrap()
        };
        let own = "{ name = 'completion', options = { completed = 0.25, modified = 0.5 } }";
        let gate =
            "{ name = 'gated', options = { gates = [{ parts = ['resolved'], threshold = 1.0 }] } }";
        let (alone, gated) =
            (open(&format!("shapers = [{own}]")), open(&format!("shapers = [{own}, {gate}]")));
        let mut lost = judged("failed", &[], &["a"]);
        let failed = Trajectory { verdict: Some(lost.clone()), ..episode(&[&[]]) };
        assert_eq!(alone.rewards(&failed), [0.75]);
        assert_eq!(gated.rewards(&failed), [0.0]);
        lost.artifacts.get_mut("swe").unwrap()["submitted"] = false.into();
        lost.artifacts.get_mut("swe").unwrap()["patch"] = "\n".into();
        assert_eq!(alone.rewards(&Trajectory { verdict: Some(lost), ..failed }), [0.0]);
        let solved = Some(judged("resolved", &["a"], &[]));
        let solved = Trajectory { verdict: solved, ..episode(&[&[("resolved", 1.0)]]) };
        assert_eq!(gated.rewards(&solved), [1.75]);
        assert_eq!(alone.rewards(&episode(&[&[("success", 1.0)]])), [1.0]);
    }
}
