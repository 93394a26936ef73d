//! Objectives: advantages and log-probabilities become a loss and its gradient.
//!
//! An objective first sees all samples of an update, with their log-probabilities at the present weights where it
//! [needs](Needs) them. Then it is given what a model told of one sample at a time, and returns the derivatives by the
//! sample's log-probabilities, entropies and values; the model carries them on to the weights. A batch is split over samples,
//! shards and micro-batches, so what the loss is divided by comes from outside, as a scale per sample: see
//! [`LossAggregation`]. Which samples count in it is the objective's word, and is settled before any sample
//! is left out: one that has no gradient, such as one without advantage, is not computed but counts.

mod a_lol;
mod aggregation;
mod awr;
mod bounds;
mod cispo;
mod clip;
mod clip_cov;
mod correction;
mod covariance;
mod cpl;
mod direct_advantage;
mod disco;
mod dpo;
mod dppo;
mod dro;
mod drpo;
mod entropy_smoothing;
mod f_dpg;
mod fiberpo;
mod gmpo;
mod gspo;
mod kdrl;
mod kimi;
mod kl;
mod kl_cov;
mod minpro;
mod nft;
mod objective_config;
mod opmd;
mod pacs;
mod pairs;
mod policy_gradient;
mod policy_loss;
mod policy_tokens;
mod questions;
mod rec;
mod refuel;
mod rehearsal;
mod resampling;
mod rl_plus;
mod sapo_gate;
mod selection;
mod sigmoid;
mod sign_weights;
mod sppo;
mod supervised;
mod tally;
#[cfg(test)]
mod tests;
mod topr;
mod value_loss;
mod values_alone;
mod vespo;

use spar_core::{Sample, Seed, Signal};

pub use a_lol::{ALol, ALolOptions, ALolRatio};
pub use aggregation::{BatchWeight, LossAggregation};
pub use awr::{Awr, AwrOptions};
pub use cispo::{Cispo, CispoOptions};
pub use clip::{Clip, ClipOptions};
pub use clip_cov::{ClipCov, ClipCovOptions};
pub use correction::{
    CorrectionOptions, Denominator, EffectiveSize, ImportanceLevel, ImportanceOptions,
    LearningRateOptions, LearningRateRule, OffPolicyMetrics, Outside, Rejected, RejectionOptions,
    SampleStatistic, Statistic, off_policy_metrics,
};
pub use cpl::{Cpl, CplOptions};
pub use direct_advantage::{DirectAdvantage, DirectAdvantageOptions};
pub use disco::{AnswerScore, BoundedDivergence, Disco, DiscoOptions};
pub use dpo::{Dpo, DpoOptions, PreferenceDivergence, PreferenceLoss};
pub use dppo::{Divergence, Dppo, DppoOptions};
pub use dro::{Dro, DroOptions};
pub use drpo::{Drpo, DrpoOptions};
pub use entropy_smoothing::EntropySmoothingOptions;
pub use f_dpg::{FDpg, FDpgOptions, PartitionOf, TargetDivergence};
pub use fiberpo::{FiberPo, FiberPoOptions};
pub use gmpo::{Gmpo, GmpoOptions};
pub use gspo::{Gspo, GspoOptions};
pub use kdrl::{Kdrl, KdrlOptions};
pub use kimi::{Kimi, KimiOptions};
pub use kl::{AdaptiveKl, KlEstimator, KlOptions};
pub use kl_cov::{KlCov, KlCovOptions};
pub use minpro::{MinPro, MinProOptions};
pub use nft::{Nft, NftOptions, QuestionWeight};
pub use objective_config::{ObjectiveConfig, ObjectiveRow, OpenObjective, objective_registry};
pub use opmd::{Opmd, OpmdOptions};
pub use pacs::{Pacs, PacsOptions};
pub(crate) use pairs::Pairs;
pub use policy_gradient::PolicyGradient;
pub use policy_loss::{PolicyBatch, PolicyLoss, PolicyLosses};
pub use policy_tokens::{MAX_LOG_RATIO, PolicyToken, PolicyTokens};
pub use rec::{Rec, RecClip, RecOptions, RecRegularizer, RecWeight};
pub use refuel::{Refuel, RefuelOptions};
pub use rehearsal::{RehearsalOptions, RehearsedDivergence, with_rehearsal};
pub use resampling::{ResamplingOptions, ResamplingWeight};
pub use rl_plus::{RlPlus, RlPlusOptions};
pub use sapo_gate::{SapoGate, SapoGateOptions};
pub use selection::{SelectionOptions, TokenScore};
pub use sign_weights::SignWeights;
pub use sppo::{Sppo, SppoOptions};
pub use supervised::Supervised;
pub use tally::Tally;
pub use topr::{Topr, ToprOptions};
pub use value_loss::{ValueLossOptions, explained_variance};
pub use values_alone::ValuesAlone;
pub use vespo::{Vespo, VespoOptions};

use crate::{Measured, Slopes};

/// A loss over the tokens of samples.
///
/// With `w` a token's weight and `l` its loss, the loss of a batch is
/// `sum over samples i of scale_i * sum over tokens t of w_it * l_it`.
pub trait Objective: Send + Sync + std::fmt::Debug {
    /// The name in configs and metrics.
    fn name(&self) -> &'static str;

    /// What the sample adds to the denominator of the loss; 0 leaves the sample out of it.
    fn weight(&self, sample: &Sample) -> f64;

    /// Whether the sample's part of the loss can have a gradient. A sample of which none is to be
    /// expected is not computed, and counts in the denominator all the same. Default: whether it
    /// has weight.
    fn has_gradient(&self, sample: &Sample) -> bool {
        self.weight(sample) > 0.0
    }

    /// Whether the loss of a value head can stand beside it, which counts the tokens that weigh in the policy gradient.
    /// Default true.
    fn takes_value_loss(&self) -> bool {
        true
    }

    /// Whether a token that stands in several samples may be trained in one of them alone, with the mean of its
    /// advantages: its loss is linear in the advantage where nothing is clipped, and does not depend on the rest of
    /// its sample. Default true.
    fn takes_mean_advantages(&self) -> bool {
        true
    }

    /// What it asks for. Default nothing.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// All that is wrong with how its losses would become one number; empty by default: nothing is.
    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let _ = aggregation;
        Vec::new()
    }

    /// The loss of the policy that it is, which a correction, a divergence and a selection of tokens can stand beside.
    /// Default none: it takes none of these.
    fn into_policy_loss(self: Box<Self>) -> Option<Box<dyn PolicyLoss>> {
        None
    }

    /// Sees all samples of an update that are computed, before it is asked for their parts of the loss.
    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a>;
}

/// What an objective asks for beside a sample's own streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Log-probabilities under a reference model, in the samples.
    pub reference: bool,
    /// Log-probabilities at the weights before the update, of all its samples: one pass more.
    pub present: bool,
    /// Pairs of answers: samples tell which answer of which pair they are, and no pair is parted between updates.
    pub pairs: bool,
    /// What the value head expected before the first update of the iteration, in the samples.
    pub values: bool,
    /// A value head, and the returns that it is to learn in the samples.
    pub returns: bool,
    /// Log-probabilities before the first update of the iteration, in the samples.
    pub old: bool,
    /// Entropies before the first update of the iteration, in the samples.
    pub entropies: bool,
    /// Samples with the same prompt in the same update.
    pub groups: bool,
}

impl Needs {
    /// What either asks for.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            reference: self.reference || other.reference,
            present: self.present || other.present,
            pairs: self.pairs || other.pairs,
            values: self.values || other.values,
            returns: self.returns || other.returns,
            old: self.old || other.old,
            entropies: self.entropies || other.entropies,
            groups: self.groups || other.groups,
        }
    }

    /// The signals that have to be in the samples.
    pub fn signals(self) -> impl Iterator<Item = Signal> {
        let asked = [
            (Signal::Reference, self.reference),
            (Signal::Old, self.old),
            (Signal::Values, self.values),
            (Signal::Entropies, self.entropies),
        ];
        asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(signal, _)| signal)
    }
}

/// The samples of an update, before it is made: those that are computed. An objective that needs all of them, such as
/// for a mean over the update, says of each that weighs that it has a gradient.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// Those that are computed, in the order in which they are asked for.
    pub samples: &'a [&'a Sample],
    /// Their log-probabilities at the present weights, one per token, where they were asked for.
    pub present: Option<&'a [Vec<f32>]>,
    /// Where the update's random choices start.
    pub seed: Seed,
    /// How the losses of tokens become that of the update.
    pub aggregation: LossAggregation,
    /// What the objective's last update [left](PreparedObjective::state); empty before the first.
    pub state: &'a [f64],
}

/// An objective that has seen the samples of an update.
pub trait PreparedObjective: Send + Sync {
    /// The part of the loss of the sample with this index, given what a model told of its tokens.
    ///
    /// Entries of tokens without weight are not read, so that they may be anything, even not finite. All lists are as
    /// long as the sample.
    fn loss(&self, index: usize, measured: Measured<'_>, scale: f64) -> SampleLoss;

    /// What the learning rate of the update is multiplied by, 0 to 1. Default 1.
    fn learning_rate_scale(&self) -> f64 {
        1.0
    }

    /// What the next update begins with, by the metrics of this one; the trainer keeps it, and so do checkpoints. Default
    /// nothing.
    fn state(&self, tally: &Tally) -> Vec<f64> {
        let _ = tally;
        Vec::new()
    }

    /// What is worth knowing about the update as a whole. Default nothing.
    fn tally(&self) -> Tally {
        Tally::default()
    }
}

/// An objective that looks at each sample by itself: a function from a sample, what a model told of it, and its scale.
pub struct BySample<'a, F> {
    samples: &'a [&'a Sample],
    loss: F,
}

impl<'a, F> BySample<'a, F>
where
    F: Fn(&Sample, Measured<'_>, f64) -> SampleLoss + Send + Sync,
{
    /// Asks `loss` for the samples of an update.
    pub fn new(update: &Update<'a>, loss: F) -> Self {
        Self { samples: update.samples, loss }
    }
}

impl<F> PreparedObjective for BySample<'_, F>
where
    F: Fn(&Sample, Measured<'_>, f64) -> SampleLoss + Send + Sync,
{
    fn loss(&self, index: usize, measured: Measured<'_>, scale: f64) -> SampleLoss {
        (self.loss)(self.samples[index], measured, scale)
    }
}

/// A sample's part of the loss of a batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleLoss {
    /// The loss, scaled; the loss of the batch is the sum over its samples.
    pub loss: f64,
    /// Derivatives of `loss`; 0 for tokens without weight.
    pub slopes: Slopes,
    /// What is worth knowing about the sample, not scaled.
    pub tally: Tally,
}
