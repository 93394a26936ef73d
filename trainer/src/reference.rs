//! Log-probabilities under a reference model.

use spar_core::{Sample, Signal};

use crate::{FixedModel, MeasuredAt, MeasuredTokens, SignalSource, TrainerError, fill_signals};

/// Fills the `reference_logprobs` of the samples' tokens that weigh, once for all epochs and minibatches of an iteration:
/// [`fill_signals`] of that signal alone.
///
/// # Errors
///
/// As [`fill_signals`].
pub fn fill_reference(
    samples: &mut [Sample],
    reference: &dyn FixedModel,
    micro_batch_tokens: usize,
) -> Result<(), TrainerError> {
    let weights = MeasuredAt::Reference;
    let source = SignalSource { weights, model: reference, head: None, micro_batch_tokens };
    fill_signals(samples, &[Signal::Reference], MeasuredTokens::Weighed, &source)
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::testing::Bigram;
    use crate::{
        Clip, ClipOptions, LossAggregation, SampleGradient, Trainer, TrainerConfig, TrainerError,
    };

    #[test]
    fn a_reference_holds_the_policy_back() {
        let mut samples: Vec<Sample> = (0..5)
            .map(|start| {
                let mut sample = Sample::default();
                sample.push_observed(start, 0.0);
                (1..4).for_each(|t| {
                    let version = spar_core::PolicyVersion(0);
                    sample.push((start + t) % 5, 1.0, 1.0, 0.0, -(5_f32.ln()), version, &[]);
                });
                sample
            })
            .collect();
        let start = Bigram::new(5);
        let objective = |kl_weight| Clip::new(ClipOptions { kl_weight, ..ClipOptions::default() });
        let mode = LossAggregation::TokenMean;
        let mut trainer = Trainer::new(TrainerConfig::default(), start.clone()).unwrap();
        let all: Vec<&Sample> = samples.iter().collect();
        let error = trainer.update(&all, &objective(0.1), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::NoReference { sample: 0 }));

        // However the samples are read.
        let reference = Bigram.prepare(&start);
        let mut again = samples.clone();
        fill_reference(&mut samples, reference.as_ref(), 1).unwrap();
        fill_reference(&mut again, reference.as_ref(), 1000).unwrap();
        assert_eq!(samples, again);
        let wanted = reference.logprobs(&[&samples[1]]).unwrap().remove(0);
        assert_eq!(samples[1].reference_logprobs, wanted);

        let moved = |kl_weight| {
            let mut trainer = Trainer::new(TrainerConfig::default(), start.clone()).unwrap();
            let mut last = None;
            for iteration in 0..400 {
                let seed = Seed::from_u64(iteration);
                let objective = objective(kl_weight);
                let metrics = trainer.iterate(&samples, &objective, mode, &Bigram, seed, 0.0);
                last = metrics.unwrap().pop();
            }
            let kl = last.unwrap().objective.get("kl_reference").copied();
            (kl, trainer.parameters().unwrap().data.iter().map(|value| value.abs()).sum::<f32>())
        };
        let ((none, free), (held, near)) = (moved(0.0), moved(3.0));
        assert_eq!(none, None);
        assert!(held.unwrap() > 0.0 && near < free, "{near} {free}");
    }
}
