//! The policy gradient as it is.

use spar::core::Sample;
use spar::core::registry::{OptionSet, Row};
use spar::trainer::{
    BySample, Measured, Objective, ObjectiveRow, PreparedObjective, SampleLoss, Slopes, Tally,
    Update,
};

pub(crate) const ROW: ObjectiveRow = Row {
    name: "reinforce",
    about: "The policy gradient without ratio or bounds.",
    source: "REINFORCE, Williams 1992",
    formula: "l = -A log pi",
    options: OptionSet::NONE,
    open: |_| Ok(Box::new(Reinforce)),
};

/// `l = -A log pi` for every token that carries weight.
#[derive(Debug, Clone, Copy, Default)]
struct Reinforce;

impl Objective for Reinforce {
    fn name(&self) -> &'static str {
        "reinforce"
    }

    fn weight(&self, sample: &Sample) -> f64 {
        sample.policy_weights.iter().map(|weight| f64::from(*weight)).sum()
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        Box::new(BySample::new(update, sample_loss))
    }
}

fn sample_loss(sample: &Sample, measured: Measured<'_>, scale: f64) -> SampleLoss {
    let (mut loss, mut slopes) = (0.0, vec![0.0; sample.len()]);
    for (t, slope) in slopes.iter_mut().enumerate() {
        let weight = f64::from(sample.policy_weights[t]);
        if weight != 0.0 {
            let factor = scale * weight * f64::from(sample.advantages[t]);
            loss -= factor * f64::from(measured.logprobs[t]);
            *slope = -factor as f32;
        }
    }
    SampleLoss { loss, slopes: Slopes::from(slopes), tally: Tally::default() }
}
