//! What an objective says of samples that are not trained on.

use std::collections::BTreeMap;

use spar_core::{Sample, Seed};

use crate::objectives::Pairs;
use crate::signal_stages::measure_all;
use crate::{
    FixedModel, LossAggregation, MeasureRequest, Measured, Objective, TrainerError, Update,
};

/// The loss of samples at the weights of a model and the objective's metrics, without a gradient.
///
/// Samples are read up to `micro_batch_tokens` tokens at a time, on which the result does not depend, to the bit. The
/// objective is one that looks at log-probabilities and entropies alone.
///
/// # Errors
///
/// [`TrainerError::HeldOutValues`] where the objective needs a value head, [`TrainerError::NoWeight`] where no sample has
/// weight, [`TrainerError::NoReference`] and [`TrainerError::PartedPair`] where one lacks what the objective needs,
/// [`TrainerError::Model`] when the model cannot be run on a sample.
pub fn measure_held_out(
    samples: &[&Sample],
    objective: &dyn Objective,
    aggregation: LossAggregation,
    model: &dyn FixedModel,
    micro_batch_tokens: usize,
) -> Result<(f64, BTreeMap<String, f64>), TrainerError> {
    let needs = objective.needs();
    if needs.values || needs.returns {
        return Err(TrainerError::HeldOutValues { objective: objective.name() });
    }
    let scales = aggregation.scales(objective, samples);
    if scales.iter().all(|scale| *scale == 0.0) {
        return Err(TrainerError::NoWeight { samples: samples.len() });
    }
    let lacks_reference = |sample: &&Sample| sample.reference_logprobs.is_empty();
    if needs.reference
        && let Some(sample) = samples.iter().position(lacks_reference)
    {
        return Err(TrainerError::NoReference { sample });
    }
    if needs.pairs {
        Pairs::of(samples).map_err(|sample| TrainerError::PartedPair { sample })?;
    }
    let measures = measure_all(samples, model, &MeasureRequest::default(), micro_batch_tokens)?;
    let present: Vec<Vec<f32>> = measures.iter().map(|of| of.logprobs.clone()).collect();
    let seed = Seed::from_u64(0);
    let update = Update { samples, present: Some(&present), seed, aggregation, state: &[] };
    let prepared = objective.begin(&update);
    let (mut loss, mut tally) = (0.0, prepared.tally());
    for (index, scale) in scales.into_iter().enumerate() {
        let entropies = &measures[index].entropies;
        let measured = Measured { logprobs: &present[index], entropies, ..Measured::default() };
        let found = prepared.loss(index, measured, scale);
        loss += found.loss;
        tally.merge(&found.tally);
    }
    Ok((loss, tally.values()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bigram, policy_sample};
    use crate::{ObjectiveConfig, SampleGradient, Supervised, ValueLossOptions};

    #[test]
    fn an_objective_that_needs_a_value_head_is_refused() {
        let (sample, model) =
            (policy_sample(&[(true, 1.0, -1.0)]), Bigram.prepare(&Bigram::new(5)));
        let told = |value_loss| {
            let objective = ObjectiveConfig { value_loss, ..Default::default() }.build().unwrap();
            let mode = LossAggregation::TokenMean;
            measure_held_out(&[&sample], &*objective, mode, model.as_ref(), 10)
        };
        assert!(told(None).is_ok());
        let error = told(Some(ValueLossOptions::default())).unwrap_err();
        assert!(matches!(error, TrainerError::HeldOutValues { objective: "clip" }), "{error}");
    }

    #[test]
    fn what_is_measured_does_not_depend_on_how_it_is_read() {
        let samples: Vec<Sample> = (0..6u32)
            .map(|start| {
                let mut sample = Sample::default();
                sample.push_observed(start % 5, 0.0);
                (1..4).for_each(|t| sample.push_observed((start + t) % 5, 1.0));
                sample
            })
            .collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        let model = Bigram.prepare(&Bigram::new(5));
        let measure = |budget| {
            let mode = LossAggregation::TokenMean;
            measure_held_out(&samples, &Supervised, mode, model.as_ref(), budget).unwrap()
        };
        let (loss, metrics) = measure(1);
        assert!((loss - 5_f64.ln()).abs() < 1e-6);
        assert!((metrics["logprob_mean"] + 5_f64.ln()).abs() < 1e-6);
        assert_eq!(measure(1000), (loss, metrics));
        let none =
            measure_held_out(&[], &Supervised, LossAggregation::TokenMean, model.as_ref(), 10);
        assert!(matches!(none, Err(TrainerError::NoWeight { samples: 0 })));
    }
}
