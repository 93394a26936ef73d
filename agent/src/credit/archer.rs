//! ArCHer: how much better a turn is than the situation before it, by a critic of turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signal, Signals};

use super::predicted::{of_turns, whiten_turns};
use super::{AdvantageEstimator, BatchView, CreditError};

/// Options of [`Archer`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArcherConfig {
    /// Whether advantages get mean 0 and deviation 1 over the turns of the batch. Default false, as in ArCHer's code.
    pub normalize: bool,
}

impl NamedOptions for ArcherConfig {}

/// The advantage of ArCHer's actor (arXiv 2402.19446, and its code, `archer/algorithms/archer/trainer.py`), the same for
/// every token of a turn.
///
/// ```text
/// A_t = Q(s_t, a_t) - V(s_t),    Q = min(Q_1, Q_2),    V = min(V_1, V_2)
/// ```
///
/// What the critic learned is its own affair; the rewards of the batch are not looked at. Deviation: the code's actor acts
/// anew in remembered situations; here the turns that were played are judged. A turn without tokens has no value, and an
/// advantage of 0.
#[derive(Debug, Clone, Default)]
pub struct Archer {
    config: ArcherConfig,
}

impl Archer {
    /// An estimator with these options.
    pub fn new(config: ArcherConfig) -> Self {
        Self { config }
    }
}

impl AdvantageEstimator for Archer {
    fn name(&self) -> &'static str {
        "archer"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::ActionValues, Signal::StateValues]
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let mut advantages = of_turns(batch, signals, Signal::ActionValues)?;
        let before = of_turns(batch, signals, Signal::StateValues)?;
        for (value, before) in advantages.iter_mut().flatten().zip(before.iter().flatten()) {
            *value -= before;
        }
        if self.config.normalize {
            whiten_turns(batch, &mut advantages)?;
        }
        Ok(Credit::of_turns(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::GroupView;
    use super::super::test_vectors::step_of;
    use super::*;

    #[test]
    fn a_turn_is_compared_with_the_situation_before_it() {
        let mut group = GroupView::default();
        group.push([step_of(9.0, 2), step_of(9.0, 0), step_of(9.0, 1)]);
        group.push([step_of(9.0, 1)]);
        let batch = BatchView::from(group);
        let mut signals = Signals::default();
        signals.insert(Signal::ActionValues, vec![vec![1.0, 1.0, 0.5], vec![2.0]]);
        signals.insert(Signal::StateValues, vec![vec![0.75, 0.75, 1.5], vec![1.0]]);
        let estimate = |normalize| {
            let archer = Archer::new(ArcherConfig { normalize });
            archer.estimate(&batch, &signals).unwrap().advantages
        };
        let turns = vec![vec![0.25, 0.0, -1.0], vec![1.0]];
        assert_eq!(estimate(false), spar_core::PerTurnOrToken::Turns(turns));
        let normal = estimate(true);
        let found = [normal.at(0, 0, 0), normal.at(0, 2, 0), normal.at(1, 0, 0)];
        assert!(found.iter().sum::<f64>().abs() < 1e-6 && found[2] > found[0]);
        assert_eq!(normal.at(0, 1, 0), 0.0);
    }
}
