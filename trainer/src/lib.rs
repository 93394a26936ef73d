//! Learning: samples become updates, and what a run leaves behind goes into its folder.
//!
//! ```text
//!  Sample ─▶ Trainer ─▶ shards ─▶ SampleGradient (the model) ─log-probabilities─▶ Objective
//!            │                        ▲                                       │
//!            │                        └──────── d loss / d log-probability ───┘
//!            │ gradient
//!            ├─▶ Optimizer, ScheduleConfig ─▶ Parameters, PolicyVersion ─▶ WeightAverage
//!            └─▶ UpdateMetrics, Drift ─▶ RunFolder: MetricsLog, EventWriter, Checkpoints
//!                                                     └─▶ LearningCurve
//! ```
//!
//! Objectives and optimisers are found by name through registries; the trainer knows none of them.
//! Weights depend on samples, config and state, never on the number of threads.
//!
//! ```
//! use std::error::Error;
//!
//! use spar_core::Sample;
//! use spar_policy::{ParameterKind, Parameters};
//! use spar_trainer::{
//!     FixedModel, HeadGradient, LossAggregation, MeasureRequest, Measured, Measures, PreparedModel, SampleGradient,
//!     SampleLossFn, Supervised, Trainer, TrainerConfig,
//! };
//!
//! /// A coin: token 1 has the probability `sigmoid(weight)`.
//! struct Coin;
//! struct CoinAt(f32);
//!
//! impl SampleGradient for Coin {
//!     fn prepare(&self, parameters: &Parameters) -> Box<dyn PreparedModel> {
//!         Box::new(CoinAt(parameters.data[0]))
//!     }
//! }
//!
//! impl FixedModel for CoinAt {
//!     fn measure(
//!         &self,
//!         samples: &[&Sample],
//!         request: &MeasureRequest<'_>,
//!     ) -> Result<Vec<Measures>, Box<dyn Error + Send + Sync>> {
//!         if request.sum_squares || request.head.is_some() {
//!             return Err("a coin tells log-probabilities alone".into());
//!         }
//!         let of_token = |token: &u32| {
//!             let sign = if *token == 1 { 1.0 } else { -1.0 };
//!             -(-sign * self.0).exp().ln_1p()
//!         };
//!         let measure = |sample: &&Sample| Measures {
//!             logprobs: sample.tokens.iter().map(of_token).collect(),
//!             ..Measures::default()
//!         };
//!         Ok(samples.iter().map(measure).collect())
//!     }
//! }
//!
//! impl PreparedModel for CoinAt {
//!     fn accumulate(
//!         &self,
//!         samples: &[&Sample],
//!         loss: &SampleLossFn<'_>,
//!         gradient: &mut [f32],
//!         _head: Option<HeadGradient<'_>>,
//!     ) -> Result<(), Box<dyn Error + Send + Sync>> {
//!         for (index, logprobs) in self.logprobs(samples)?.iter().enumerate() {
//!             // A loss that depends on entropies needs them here.
//!             let measured = Measured { logprobs, ..Measured::default() };
//!             for (t, slope) in loss(index, measured).logprobs.into_iter().enumerate() {
//!                 let sign = if samples[index].tokens[t] == 1 { 1.0 } else { -1.0 };
//!                 gradient[0] += slope * sign * (1.0 - logprobs[t].exp());
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut sample = Sample::default();
//! sample.push_observed(0, 0.0);
//! sample.push_observed(1, 1.0);
//!
//! let start = Parameters::zeros(vec![("coin".into(), vec![1], ParameterKind::Vector)]);
//! let mut trainer = Trainer::new(TrainerConfig::default(), start)?;
//! let mode = LossAggregation::TokenMean;
//! let metrics = trainer.update(&[&sample], &Supervised, mode, &Coin, 0.0)?;
//! assert!((metrics.loss - 2f64.ln()).abs() < 1e-6);
//! assert!(trainer.parameters()?.data[0] > 0.0);
//! # Ok::<(), spar_trainer::TrainerError>(())
//! ```

mod average;
pub mod batches;
mod decoder_gradient;
mod drift;
mod error;
mod grammar_replay;
mod held_out;
mod home;
mod learning_curve;
mod objectives;
mod optimisers;
mod reading;
mod reference;
mod run;
mod sample_gradient;
mod schedule;
mod signal_stages;
mod staleness;
#[cfg(test)]
mod testing;
mod trainer;
mod trainer_config;
mod turn_features;
mod update_metrics;

pub use average::{AverageConfig, WeightAverage};
pub use decoder_gradient::{DecoderGradient, Trained};
pub use drift::{Distances, Drift};
pub use error::{RunFolderError, TrainerError};
pub use held_out::measure_held_out;
pub use learning_curve::{CurvePoint, CurveRun, CurveSeries, LearningCurve};
pub use objectives::{
    ALol, ALolOptions, ALolRatio, AdaptiveKl, AnswerScore, Awr, AwrOptions, BatchWeight,
    BoundedDivergence, BySample, Cispo, CispoOptions, Clip, ClipCov, ClipCovOptions, ClipOptions,
    CorrectionOptions, Cpl, CplOptions, Denominator, DirectAdvantage, DirectAdvantageOptions,
    Disco, DiscoOptions, Divergence, Dpo, DpoOptions, Dppo, DppoOptions, Dro, DroOptions, Drpo,
    DrpoOptions, EffectiveSize, EntropySmoothingOptions, FDpg, FDpgOptions, FiberPo,
    FiberPoOptions, Gmpo, GmpoOptions, Gspo, GspoOptions, ImportanceLevel, ImportanceOptions, Kdrl,
    KdrlOptions, Kimi, KimiOptions, KlCov, KlCovOptions, KlEstimator, KlOptions,
    LearningRateOptions, LearningRateRule, LossAggregation, MAX_LOG_RATIO, MinPro, MinProOptions,
    Needs, Nft, NftOptions, Objective, ObjectiveConfig, ObjectiveRow, OffPolicyMetrics,
    OpenObjective, Opmd, OpmdOptions, Outside, Pacs, PacsOptions, PartitionOf, PolicyBatch,
    PolicyGradient, PolicyLoss, PolicyLosses, PolicyToken, PolicyTokens, PreferenceDivergence,
    PreferenceLoss, PreparedObjective, QuestionWeight, Rec, RecClip, RecOptions, RecRegularizer,
    RecWeight, Refuel, RefuelOptions, RehearsalOptions, RehearsedDivergence, Rejected,
    RejectionOptions, ResamplingOptions, ResamplingWeight, RlPlus, RlPlusOptions, SampleLoss,
    SampleStatistic, SapoGate, SapoGateOptions, SelectionOptions, SignWeights, Sppo, SppoOptions,
    Statistic, Supervised, Tally, TargetDivergence, TokenScore, Topr, ToprOptions, Update,
    ValueLossOptions, ValuesAlone, Vespo, VespoOptions, explained_variance, objective_registry,
    off_policy_metrics, with_rehearsal,
};
pub use optimisers::{
    AdamW, AdamWOptions, Muon, MuonOptions, OpenOptimizer, Optimizer, OptimizerConfig,
    OptimizerRow, StatePlace, StateReader, StateTensor, clip_global_norm, global_norm,
    optimizer_registry, orthogonalize,
};
pub use reference::fill_reference;
pub use run::{
    Checkpoint, CheckpointMark, Checkpoints, EventWriter, Manifest, MetricRecord, MetricsLog,
    RunFolder, RunLock, git_revision, read_metrics, rfc3339, write_atomically,
};
pub use sample_gradient::{
    DeviceModel, FixedModel, HeadGradient, Histograms, MeasureRequest, Measured, MeasuredTokens,
    Measures, PreparedModel, SampleGradient, SampleLossFn, Slopes,
};
pub use schedule::{ScheduleConfig, ScheduleShape};
pub use signal_stages::{
    MeasuredAt, SignalRow, SignalSource, SignalStage, fill_signals, signal_stages,
};
pub use staleness::StalenessLimit;
pub use trainer::{Division, Pass, Trainer};
pub use trainer_config::{OptimizerPlace, TrainerConfig, WeightPrecision};
pub use turn_features::{
    FrozenModel, HashedTokens, HashedTokensOptions, HiddenStateFeatures, OpenTurnFeatures,
    TurnFeatures, TurnFeaturesConfig, TurnFeaturesRow, TurnRows, open_turn_features,
    turn_features_registry,
};
pub use update_metrics::UpdateMetrics;
