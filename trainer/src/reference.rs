//! Log-probabilities under a reference model.

use rayon::prelude::*;
use spar_core::Sample;
use spar_policy::ops::parallel::Batches;

use crate::batches::{prefix_order, shared_prefixes, split_shared_by_budget};
use crate::{PreparedModel, TrainerError};

/// Fills the samples' `reference_logprobs`, once for all epochs and minibatches of an iteration.
///
/// Rows that begin alike are read together, up to `micro_batch_tokens` at a time. The result does
/// not depend on that, nor on threads, to the bit.
///
/// # Errors
///
/// [`TrainerError::Model`] when the model cannot be run on a sample, [`TrainerError::LogprobCount`]
/// when it contradicts itself; no sample is filled then.
pub fn fill_reference(
    samples: &mut [Sample],
    reference: &dyn PreparedModel,
    micro_batch_tokens: usize,
) -> Result<(), TrainerError> {
    let found = read_logprobs(&samples.iter().collect::<Vec<_>>(), reference, micro_batch_tokens)?;
    for (sample, logprobs) in samples.iter_mut().zip(found) {
        sample.reference_logprobs = logprobs;
    }
    Ok(())
}

/// The log-probabilities of samples, those that begin alike being read together, up to `micro_batch_tokens` at a time.
pub(crate) fn read_logprobs(
    samples: &[&Sample],
    model: &dyn PreparedModel,
    micro_batch_tokens: usize,
) -> Result<Vec<Vec<f32>>, TrainerError> {
    let order = prefix_order(samples);
    let sorted: Vec<&Sample> = order.iter().map(|sample| samples[*sample]).collect();
    let lengths: Vec<usize> = sorted.iter().map(|sample| sample.len()).collect();
    let ranges = split_shared_by_budget(&lengths, &shared_prefixes(&sorted), micro_batch_tokens);
    let batches = Batches::new(ranges.len());
    let read = |range: std::ops::Range<usize>| {
        let logprobs = batches.run(|| model.logprobs(&sorted[range.clone()]));
        let logprobs = logprobs.map_err(|source| TrainerError::Model { source })?;
        Ok(order[range].iter().copied().zip(logprobs).collect::<Vec<_>>())
    };
    let parts: Result<Vec<_>, TrainerError> = ranges.into_par_iter().map(read).collect();
    let mut by_sample = vec![Vec::new(); samples.len()];
    for (sample, logprobs) in parts?.into_iter().flatten() {
        let (tokens, found) = (samples[sample].len(), logprobs.len());
        if found != tokens {
            return Err(TrainerError::LogprobCount { sample, tokens, found });
        }
        by_sample[sample] = logprobs;
    }
    Ok(by_sample)
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
