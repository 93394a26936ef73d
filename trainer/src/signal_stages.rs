//! Stages that fill streams of samples with what is measured before credit is estimated.

use rayon::prelude::*;
use spar_core::registry::{Axis, OptionSet, Row, Table};
use spar_core::{Sample, Signal};
use spar_policy::ops::parallel::Batches;
use spar_policy::state_heads::HeadWeights;

use crate::batches::{prefix_order, shared_prefixes, split_shared_by_budget};
use crate::{FixedModel, MeasureRequest, MeasuredTokens, Measures, TrainerError};

/// Whose weights a signal is measured at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredAt {
    /// The learner's, before the first update of the iteration.
    Present,
    /// The reference model's.
    Reference,
}

/// Fills one stream of samples.
#[derive(Debug, Clone, Copy)]
pub struct SignalStage {
    /// What it fills.
    pub signal: Signal,
    /// Whose weights it is measured at; all that are measured at the same ones take one pass.
    pub weights: MeasuredAt,
    read: fn(&Measures) -> &[f32],
    stream: fn(&mut Sample) -> &mut Vec<f32>,
}

/// A signal that something fills, under its own name.
pub type SignalRow = Row<SignalStage>;

const ROWS: &[SignalRow] = &[
    Row {
        name: "reference",
        about: "Log-probabilities under the reference model.",
        source: "the divergence from a reference model, InstructGPT, arXiv 2203.02155",
        formula: "ln pi_ref(a)",
        options: OptionSet::NONE,
        open: SignalStage {
            signal: Signal::Reference,
            weights: MeasuredAt::Reference,
            read: |measures| &measures.logprobs,
            stream: |sample| &mut sample.reference_logprobs,
        },
    },
    Row {
        name: "old",
        about: "Log-probabilities before the first update of the iteration.",
        source: "the proximal policy of decoupled PPO, arXiv 2110.00641",
        formula: "ln pi_old(a)",
        options: OptionSet::NONE,
        open: SignalStage {
            signal: Signal::Old,
            weights: MeasuredAt::Present,
            read: |measures| &measures.logprobs,
            stream: |sample| &mut sample.old_logprobs,
        },
    },
    Row {
        name: "values",
        about: "What the value head expects before each token is drawn.",
        source: "PPO, arXiv 1707.06347, equation 9",
        formula: "",
        options: OptionSet::NONE,
        open: SignalStage {
            signal: Signal::Values,
            weights: MeasuredAt::Present,
            read: |measures| &measures.values,
            stream: |sample| &mut sample.values,
        },
    },
    Row {
        name: "entropies",
        about: "Entropies of what tokens were drawn from, in nats.",
        source: "Shannon 1948",
        formula: "H = -sum p ln p",
        options: OptionSet::NONE,
        open: SignalStage {
            signal: Signal::Entropies,
            weights: MeasuredAt::Present,
            read: |measures| &measures.entropies,
            stream: |sample| &mut sample.entropies,
        },
    },
    Row {
        name: "sum_squares",
        about: "Sums of the squared probabilities of what tokens were drawn from.",
        source: "the optimal token baseline of verl's `compute_optimal_token_baseline_advantage`",
        formula: "sum p^2",
        options: OptionSet::NONE,
        open: SignalStage {
            signal: Signal::SumSquares,
            weights: MeasuredAt::Present,
            read: |measures| &measures.sum_squares,
            stream: |sample| &mut sample.sum_squares,
        },
    },
];

static SIGNALS: Table<SignalStage> = Table::new(
    Axis {
        name: "signals",
        what: "signal",
        about: "What is measured of every sampled token before credit is assigned.",
    },
    ROWS,
);

/// All signals that something fills; a new one is a row here, and a stream of samples.
///
/// What ships is all there is: a signal has a field of [`Sample`] and a variant of [`Signal`], so that no row of another
/// crate could fill one.
pub fn signal_stages() -> &'static Table<SignalStage> {
    &SIGNALS
}

/// A model that signals are measured with.
#[derive(Clone, Copy)]
pub struct SignalSource<'a> {
    /// Whose weights it has.
    pub weights: MeasuredAt,
    /// The model.
    pub model: &'a dyn FixedModel,
    /// The value head on it; absent where there is none.
    pub head: Option<&'a HeadWeights>,
    /// Tokens that are read at a time, what samples begin with counting once.
    pub micro_batch_tokens: usize,
}

/// Fills the streams of those of `signals` that are measured at the source's weights, all in one pass; the others are
/// left to another source. Nothing is read where there are none.
///
/// Samples that begin alike are read together. The result depends on neither that nor on threads, to the bit. Entries
/// of other tokens than those asked for are 0.
///
/// # Errors
///
/// [`TrainerError::Model`] when the model cannot be run on a sample or does not give a signal,
/// [`TrainerError::LogprobCount`] when it contradicts itself; no stream is filled then.
pub fn fill_signals(
    samples: &mut [Sample],
    signals: &[Signal],
    tokens: MeasuredTokens,
    source: &SignalSource<'_>,
) -> Result<(), TrainerError> {
    let is_asked =
        |stage: &&SignalRow| stage.weights == source.weights && signals.contains(&stage.signal);
    let stages: Vec<&SignalRow> = signal_stages().iter().filter(is_asked).collect();
    if stages.is_empty() {
        return Ok(());
    }
    let asks = |signal| stages.iter().any(|stage| stage.signal == signal);
    let head = source.head.filter(|_| asks(Signal::Values));
    let request = MeasureRequest { tokens, sum_squares: asks(Signal::SumSquares), head };
    let given: Vec<&Sample> = samples.iter().collect();
    let measures = measure_all(&given, source.model, &request, source.micro_batch_tokens)?;
    for (sample, measures) in samples.iter().zip(&measures) {
        for stage in &stages {
            if (stage.read)(measures).len() != sample.len() {
                let source = format!("it gives no signal `{}`", stage.signal).into();
                return Err(TrainerError::Model { source });
            }
        }
    }
    for (sample, measures) in samples.iter_mut().zip(&measures) {
        for stage in &stages {
            *(stage.stream)(sample) = (stage.read)(measures).to_vec();
        }
    }
    Ok(())
}

/// Measures samples, of which those that begin alike are read together, up to `micro_batch_tokens` at a time.
pub(crate) fn measure_all(
    samples: &[&Sample],
    model: &dyn FixedModel,
    request: &MeasureRequest<'_>,
    micro_batch_tokens: usize,
) -> Result<Vec<Measures>, TrainerError> {
    let measured =
        in_batches(samples, micro_batch_tokens, |batch, _| model.measure(batch, request))?;
    for (sample, measures) in measured.iter().enumerate() {
        let (tokens, found) = (samples[sample].len(), measures.logprobs.len());
        if found != tokens {
            return Err(TrainerError::LogprobCount { sample, tokens, found });
        }
    }
    Ok(measured)
}

/// What a model says of each sample, those that begin alike being read together, up to `micro_batch_tokens` at a time.
///
/// `read` is given samples with their places among all, and answers for each of them.
pub(crate) fn in_batches<T: Default + Clone + Send>(
    samples: &[&Sample],
    micro_batch_tokens: usize,
    read: impl Fn(&[&Sample], &[usize]) -> Result<Vec<T>, ModelError> + Sync,
) -> Result<Vec<T>, TrainerError> {
    let order = prefix_order(samples);
    let sorted: Vec<&Sample> = order.iter().map(|sample| samples[*sample]).collect();
    let lengths: Vec<usize> = sorted.iter().map(|sample| sample.len()).collect();
    let ranges = split_shared_by_budget(&lengths, &shared_prefixes(&sorted), micro_batch_tokens);
    let batches = Batches::new(ranges.len());
    let read = |range: std::ops::Range<usize>| {
        let found = batches.run(|| read(&sorted[range.clone()], &order[range.clone()]));
        let found = found.map_err(|source| TrainerError::Model { source })?;
        Ok(order[range].iter().copied().zip(found).collect::<Vec<_>>())
    };
    let parts: Result<Vec<_>, TrainerError> = ranges.into_par_iter().map(read).collect();
    let mut by_sample = vec![T::default(); samples.len()];
    parts?.into_iter().flatten().for_each(|(sample, found)| by_sample[sample] = found);
    Ok(by_sample)
}

/// What a model says when it cannot be run.
type ModelError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(test)]
mod tests {
    use spar_core::{PolicyVersion, Seed};
    use spar_policy::state_heads::StateHeadConfig;

    use super::*;
    use crate::SampleGradient;
    use crate::testing::Bigram;

    fn samples() -> Vec<Sample> {
        (0..5)
            .map(|start: u32| {
                let mut sample = Sample::default();
                for t in 0..4 + start % 3 {
                    let is_sampled = t > 1;
                    let weight = f32::from(u8::from(is_sampled && t % 2 == 0));
                    let token = (start / 2 + t) % 5;
                    sample.push(token, weight, 1.0, 0.0, 0.0, PolicyVersion(0), &[]);
                    sample.turns.push(if is_sampled { 0 } else { Sample::OBSERVED });
                }
                sample
            })
            .collect()
    }

    fn head() -> HeadWeights {
        let mut head =
            HeadWeights::fresh(&StateHeadConfig::default(), 5, Seed::from_u64(1)).unwrap();
        head.parameters_mut().data.copy_from_slice(&[0.5, -1.0, 2.0, 0.0, 0.25, 0.125]);
        head
    }

    #[test]
    fn every_stage_fills_its_own_stream_whatever_is_read_at_a_time() {
        let mut parameters = Bigram::new(5);
        parameters.data.iter_mut().zip(0..).for_each(|(value, n)| *value = (n % 7) as f32 / 3.0);
        let (model, head) = (Bigram.prepare(&parameters), head());
        let fill = |signals: &[Signal], weights, micro_batch_tokens| {
            let mut samples = samples();
            let model: &dyn FixedModel = model.as_ref();
            let source = SignalSource { weights, model, head: Some(&head), micro_batch_tokens };
            fill_signals(&mut samples, signals, MeasuredTokens::Sampled, &source).unwrap();
            samples
        };
        let filled = |sample: &Sample| {
            let streams: [(Signal, &[f32]); 5] = [
                (Signal::Reference, &sample.reference_logprobs),
                (Signal::Old, &sample.old_logprobs),
                (Signal::Values, &sample.values),
                (Signal::Entropies, &sample.entropies),
                (Signal::SumSquares, &sample.sum_squares),
            ];
            streams
                .into_iter()
                .filter(|(_, of)| !of.is_empty())
                .map(|(signal, _)| signal)
                .collect::<Vec<_>>()
        };
        for stage in signal_stages() {
            assert_eq!(stage.name, stage.signal.name());
            let found = fill(&[stage.signal], stage.weights, 1);
            assert!(found.iter().all(|sample| filled(sample) == [stage.signal]));
            assert_eq!(fill(&[stage.signal], stage.weights, 1000), found);
        }
        // Those at other weights are left to them.
        let found = fill(&Signal::ALL, MeasuredAt::Reference, 10);
        assert!(found.iter().all(|sample| filled(sample) == [Signal::Reference]));
        let found = fill(&Signal::ALL, MeasuredAt::Present, 10);
        let sample = &found[3];
        assert_eq!(
            filled(sample),
            [Signal::Old, Signal::Values, Signal::Entropies, Signal::SumSquares]
        );
        // Token 2 stands behind token 2 of the vocabulary.
        assert_eq!((sample.tokens[1], sample.values[2]), (2, 2.0 + 0.125));
        assert!(sample.sum_squares[2] > 0.2 && sample.entropies[2] < 5_f32.ln());
    }

    #[test]
    fn a_model_without_a_head_gives_no_values() {
        let model = Bigram.prepare(&Bigram::new(5));
        let source = SignalSource {
            weights: MeasuredAt::Present,
            model: model.as_ref(),
            head: None,
            micro_batch_tokens: 100,
        };
        let mut all = samples();
        let tokens = MeasuredTokens::Sampled;
        let error = fill_signals(&mut all, &[Signal::Old, Signal::Values], tokens, &source);
        let TrainerError::Model { source: told } = error.unwrap_err() else { panic!() };
        assert_eq!(told.to_string(), "it gives no signal `values`");
        assert_eq!(all, samples(), "no stream is filled");
    }
}
