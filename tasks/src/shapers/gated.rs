//! What is earned on the way counts only where the outcome is good enough.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use crate::ShaperError;

const NAME: &str = "gated";

/// Options of [`Gated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatedOptions {
    /// The gates, the one that matters most first; at least one. Default one: the parts `success`, `goal`
    /// and `verified` have to come to 1.
    pub gates: Vec<Gate>,
    /// Parts that count whatever the gates say, such as penalties. Default empty.
    pub always: Vec<String>,
}

/// A level of rewards that opens those below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The parts of rewards that make the level.
    pub parts: Vec<String>,
    /// What they have to come to over the episode, so that lower levels count.
    pub threshold: f64,
}

impl Default for GatedOptions {
    fn default() -> Self {
        let parts = ["success", "goal", "verified"].map(str::to_owned).to_vec();
        Self { gates: vec![Gate { parts, threshold: 1.0 }], always: Vec::new() }
    }
}

impl NamedOptions for GatedOptions {
    fn problems(&self) -> Vec<String> {
        let GatedOptions { gates, always } = self;
        let mut problems = Vec::new();
        if gates.is_empty() {
            problems.push("gates is empty, must name what opens the rest".to_owned());
        }
        for (index, gate) in gates.iter().enumerate() {
            if gate.parts.is_empty() {
                problems.push(format!("gate {index} names no parts"));
            }
            if !gate.threshold.is_finite() {
                problems.push(format!("the threshold of gate {index} is {}", gate.threshold));
            }
        }
        let mut named = HashSet::new();
        for part in gates.iter().flat_map(|gate| &gate.parts).chain(always) {
            if !named.insert(part) {
                problems.push(format!("`{part}` is named twice"));
            }
        }
        problems
    }
}

/// Gated reward accumulation: rewards of a level count only where all levels above it reach their
/// thresholds, so that nobody learns to collect what is earned on the way in place of the goal.
///
/// `R = R_0 + sum_{l > 0} 1[R_k >= tau_k for all k < l] R_l`, where `R_l` is what the parts of gate `l` come to
/// over the episode and the last level is all parts that no gate names. A level that does not count loses
/// its parts, gains and penalties alike, in every turn.
///
/// Source: G-RA of "Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards",
/// reconstructed from its abstract, which has two levels and names no thresholds; that more levels open one
/// after the other, and parts that always count, are ours.
#[derive(Debug, Clone)]
pub struct Gated {
    gates: Vec<Gate>,
    always: HashSet<String>,
}

impl Gated {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] tells all that is wrong: no gate, a gate without parts or with a threshold that is
    /// no number, a part that is named twice.
    pub fn new(options: &GatedOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, NAME, options.problems())?;
        let GatedOptions { gates, always } = options;
        Ok(Self { gates: gates.clone(), always: always.iter().cloned().collect() })
    }

    /// The level of a part; `None` for one that always counts.
    fn level(&self, part: &RewardPart) -> Option<usize> {
        if self.always.contains(&part.name) {
            return None;
        }
        let of_gate = self.gates.iter().position(|gate| gate.parts.contains(&part.name));
        Some(of_gate.unwrap_or(self.gates.len()))
    }
}

impl RewardShaper for Gated {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let mut sums = vec![0.0; self.gates.len() + 1];
        for part in rewards.iter().flatten() {
            if let Some(level) = self.level(part) {
                sums[level] += part.value;
            }
        }
        let is_open = |(gate, sum): (&Gate, &f64)| *sum >= gate.threshold;
        let num_open = self.gates.iter().zip(&sums).take_while(|level| is_open(*level)).count();
        for parts in rewards {
            parts.retain(|part| self.level(part).is_none_or(|level| level <= num_open));
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use spar_core::Seed;

    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    fn gated(options: &str) -> RewardShapers {
        let options: GatedOptions = toml::from_str(options).unwrap();
        RewardShapers::new(vec![Box::new(Gated::new(&options).unwrap())])
    }

    #[test]
    fn what_is_earned_on_the_way_counts_with_success_alone() {
        let shapers = gated("always = ['invalid_action']");
        let turns: [&[(&str, f64)]; 3] = [
            &[("critic", 0.3), ("invalid_action", -0.1)],
            &[("critic", -0.2)],
            &[("success", 1.0)],
        ];
        assert_eq!(shapers.rewards(&episode(&turns)), [0.3 - 0.1, -0.2, 1.0]);
        assert_eq!(shapers.rewards(&episode(&turns[..2])), [-0.1, 0.0]);
        assert!(shapers.rewards(&episode(&[])).is_empty());
    }

    #[test]
    fn levels_open_one_after_the_other() {
        let shapers = gated(
            "gates = [{ parts = ['resolved'], threshold = 0.5 }, { parts = ['tests', 'build'], threshold = 1 }]",
        );
        let sum = |resolved, tests| {
            let parts =
                [("resolved", resolved), ("tests", tests), ("build", 0.5), ("format", 0.25)];
            shapers.rewards(&episode(&[&parts]))[0]
        };
        assert_eq!(sum(0.5, 0.5), 0.5 + 1.0 + 0.25);
        assert_eq!(sum(0.5, 0.25), 0.5 + 0.75, "the second gate is shut, its own parts count");
        assert_eq!(sum(0.25, 0.5), 0.25, "the first gate shuts out what the second would open");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let told = |options: &str| {
            let options: GatedOptions = toml::from_str(options).unwrap();
            Gated::new(&options).unwrap_err().to_string()
        };
        assert!(told("gates = []").contains("gates is empty"));
        let many = told(
            "gates = [{ parts = [], threshold = nan }, { parts = ['a', 'b'], threshold = 1 }]\nalways = ['b']",
        );
        for part in ["gate 0 names no parts", "threshold of gate 0 is NaN", "`b` is named twice"] {
            assert!(many.contains(part), "{many}");
        }
    }

    /// An open gate changes nothing, a shut one leaves nothing but its own level and what always counts.
    #[test]
    fn gates_let_all_or_nothing_through() {
        let shapers = gated("always = ['penalty']");
        let mut rng = Seed::from_u64(5).rng();
        for _ in 0..500 {
            let outcome: f64 = rng.random_range(-1.0..2.0);
            let way: Vec<f64> =
                (0..rng.random_range(0..6)).map(|_| rng.random_range(-1.0..1.0)).collect();
            let mut turns: Vec<Vec<(&str, f64)>> =
                way.iter().map(|value| vec![("step", *value), ("penalty", -0.5)]).collect();
            turns.push(vec![("goal", outcome)]);
            let turns: Vec<&[(&str, f64)]> = turns.iter().map(Vec::as_slice).collect();
            let episode = episode(&turns);
            let expected: Vec<f64> = if outcome >= 1.0 {
                RewardShapers::default().rewards(&episode)
            } else {
                way.iter().map(|_| -0.5).chain([outcome]).collect()
            };
            assert_eq!(shapers.rewards(&episode), expected);
        }
    }
}
