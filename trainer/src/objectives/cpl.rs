//! Contrastive preference learning: segments are compared by how likely the policy finds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::pairs::{Pair, Pairs};
use super::sigmoid::{sigmoid, softplus};
use super::{LossAggregation, Needs, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::{Measured, Slopes};

/// Options of [`Cpl`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CplOptions {
    /// The temperature of the advantages behind preferences; positive. Default 0.1.
    pub alpha: f64,
    /// What a turn counts less than the one before it; above 0, at most 1. Default 1.
    pub discount: f64,
    /// The `lambda` by which rejected segments count less, so that segments like those of the data stay likely; above 0, at most 1. Default 0.5.
    pub bias: f64,
}

impl Default for CplOptions {
    fn default() -> Self {
        Self { alpha: 0.1, discount: 1.0, bias: 0.5 }
    }
}

impl NamedOptions for CplOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = positive("alpha", self.alpha).into_iter().collect();
        for (name, value) in [("discount", self.discount), ("bias", self.bias)] {
            if !(value > 0.0 && value <= 1.0) {
                problems.push(format!("`{name}` {value} must be above 0 and at most 1"));
            }
        }
        problems
    }
}

/// Contrastive preference learning (CPL, arXiv 2310.13639, equations 5 and 7): preferences of segments by regret, without a reward or a reference model.
///
/// With `s(y) = alpha sum_t w_t discount^turn(t) log pi(y_t)` over the tokens of a segment, whose turns are counted from its first, the loss of a pair is `-log sigmoid(s(chosen) - bias s(rejected))`, and that of an update the mean over its
/// pairs. The weight `w` of a token is as of the objective `dpo`. Off policy, for any environment: who has drawn the segments is not asked.
///
/// Metrics, over pairs: `preference_accuracy`, the share with `s(chosen) > s(rejected)`; `segment_margin`, `s(chosen) - bias s(rejected)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cpl {
    options: CplOptions,
}

impl Cpl {
    /// The objective with these options.
    pub fn new(options: CplOptions) -> Self {
        Self { options }
    }

    /// What the score of a segment changes by with the log-probability of each token of one of its samples.
    fn slopes(&self, sample: &Sample, first_turn: u32) -> Vec<f64> {
        let CplOptions { alpha, discount, .. } = self.options;
        let of = |t: usize| {
            let sampled = sample.policy_weights[t];
            let weight = if sampled != 0.0 { sampled } else { sample.cross_entropy_weights[t] };
            if weight == 0.0 {
                return 0.0;
            }
            let turn = sample.turns.get(t).copied().filter(|turn| *turn != Sample::OBSERVED);
            let turns = turn.map_or(0, |turn| turn.saturating_sub(first_turn));
            alpha * f64::from(weight) * discount.powf(f64::from(turns))
        };
        (0..sample.len()).map(of).collect()
    }
}

/// The first turn of a segment.
fn first_turn(samples: &[&Sample], parts: &[usize]) -> u32 {
    let turns = parts.iter().flat_map(|part| samples[*part].turns.iter());
    turns.copied().filter(|turn| *turn != Sample::OBSERVED).min().unwrap_or(0)
}

impl Objective for Cpl {
    fn name(&self) -> &'static str {
        "cpl"
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let is_other = aggregation != LossAggregation::TokenMean;
        let tell = || "it is a mean over pairs: leave `aggregation` at \"token_mean\"".to_owned();
        is_other.then(tell).into_iter().collect()
    }

    /// The samples of a pair weigh 1 together, half of it for each answer.
    fn weight(&self, sample: &Sample) -> f64 {
        sample.preference.map_or(0.0, |preference| 0.5 / f64::from(preference.parts.max(1)))
    }

    fn takes_value_loss(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs { present: true, pairs: true, ..Needs::default() }
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        let present = update.present.expect("it was asked for");
        let samples = update.samples;
        let Pairs { pairs, of_sample } =
            Pairs::of(samples).expect("updates with parted pairs are refused");
        let compare = |pair: Pair| {
            let firsts = [first_turn(samples, &pair.chosen), first_turn(samples, &pair.rejected)];
            let score = |parts: &[usize], first: u32| -> f64 {
                let of_part = |part: &usize| {
                    let slopes = self.slopes(samples[*part], first);
                    let told =
                        slopes.iter().zip(&present[*part]).filter(|(slope, _)| **slope != 0.0);
                    told.map(|(slope, logprob)| slope * f64::from(*logprob)).sum::<f64>()
                };
                parts.iter().map(of_part).sum()
            };
            let scores = [score(&pair.chosen, firsts[0]), score(&pair.rejected, firsts[1])];
            Compared { told_by: pair.chosen[0], firsts, scores }
        };
        let pairs = pairs.into_iter().map(compare).collect();
        Box::new(Prepared { cpl: self, samples, pairs, of_sample })
    }
}

/// A pair whose segments have been compared.
struct Compared {
    /// The sample that tells what came of the pair.
    told_by: usize,
    /// The first turn of the chosen and of the rejected segment.
    firsts: [u32; 2],
    /// Their scores.
    scores: [f64; 2],
}

/// An update of which all pairs have been compared.
struct Prepared<'a> {
    cpl: &'a Cpl,
    samples: &'a [&'a Sample],
    pairs: Vec<Compared>,
    of_sample: Vec<Option<usize>>,
}

impl PreparedObjective for Prepared<'_> {
    fn loss(&self, index: usize, _: Measured<'_>, scale: f64) -> SampleLoss {
        let sample = self.samples[index];
        let mut tally = Tally::default();
        let (Some(place), Some(preference)) = (self.of_sample[index], sample.preference) else {
            let slopes = Slopes::from(vec![0.0; sample.len()]);
            return SampleLoss { loss: 0.0, slopes, tally };
        };
        let Compared { told_by, firsts, scores: [chosen, rejected] } = &self.pairs[place];
        let bias = self.cpl.options.bias;
        let margin = chosen - bias * rejected;
        let by_margin = -sigmoid(-margin);
        let (first, by_score) = match preference.is_chosen {
            true => (firsts[0], by_margin),
            false => (firsts[1], -bias * by_margin),
        };
        let slopes = self.cpl.slopes(sample, first);
        let slopes: Vec<f32> =
            slopes.iter().map(|slope| (scale * by_score * slope) as f32).collect();
        if index == *told_by {
            tally.add_mean("preference_accuracy", (chosen > rejected).into());
            tally.add_mean("segment_margin", margin);
        }
        let loss = scale * self.cpl.weight(sample) * softplus(-margin);
        SampleLoss { loss, slopes: Slopes::from(slopes), tally }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Preference;

    use super::*;
    use crate::objectives::BatchWeight;
    use crate::testing::assert_close;

    /// A segment whose tokens were sampled in these turns.
    fn segment(is_chosen: bool, turns: &[u32]) -> Sample {
        let preference = Some(Preference { pair: 0, is_chosen, parts: 1 });
        let mut sample = Sample { preference, ..Sample::default() };
        sample.push_observed(0, 0.0);
        turns.iter().for_each(|_| sample.push_observed(1, 1.0));
        sample.turns = std::iter::once(Sample::OBSERVED).chain(turns.iter().copied()).collect();
        sample
    }

    fn losses(cpl: &Cpl, samples: &[&Sample], present: &[Vec<f32>]) -> Vec<SampleLoss> {
        let update = crate::testing::update(samples, Some(present));
        let batch = BatchWeight::of(cpl, samples.iter().copied());
        let prepared = cpl.begin(&update);
        let of = |(index, sample): (usize, &&Sample)| {
            let scale = LossAggregation::TokenMean.scale(cpl.weight(sample), batch);
            let measured = Measured { logprobs: &present[index], ..Measured::default() };
            prepared.loss(index, measured, scale)
        };
        samples.iter().enumerate().map(of).collect()
    }

    #[test]
    fn turns_are_discounted_rejected_segments_count_less_and_slopes_are_derivatives() {
        // Segments may begin in the middle of an episode.
        let samples = [segment(true, &[3, 3, 4]), segment(false, &[3, 4, 5])];
        let samples: Vec<&Sample> = samples.iter().collect();
        let present = vec![vec![9.0, -0.5, -1.0, -2.0], vec![9.0, -0.25, -0.5, -4.0]];
        let cpl = Cpl::new(CplOptions { alpha: 0.5, discount: 0.5, bias: 0.25 });
        let sum = |present: &[Vec<f32>]| -> f64 {
            losses(&cpl, &samples, present).iter().map(|part| part.loss).sum()
        };
        let (chosen, rejected) = (0.5 * (-1.5 - 1.0), 0.5 * (-0.25 - 0.25 - 1.0));
        let margin: f64 = chosen - 0.25 * rejected;
        assert_close(sum(&present), (1.0 + (-margin).exp()).ln(), 1e-6);
        let found = losses(&cpl, &samples, &present);
        assert_eq!(found[0].tally.values()["segment_margin"], margin);
        for index in 0..2 {
            assert_eq!(found[index].slopes.logprobs[0], 0.0);
            for t in 1..4 {
                let moved = |shift: f32| {
                    let mut moved = present.clone();
                    moved[index][t] += shift;
                    sum(&moved)
                };
                let wanted = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                assert_close(found[index].slopes.logprobs[t].into(), wanted, 2e-4);
            }
        }
        let wrong = CplOptions { alpha: 0.0, discount: 0.0, bias: 2.0 };
        assert_eq!(wrong.problems().len(), 3);
    }
}
