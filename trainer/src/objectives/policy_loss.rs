//! Losses of a policy, and what can stand beside any of them.
//!
//! ```text
//! Sample ─▶ PolicyTokens ─▶ correction ─▶ PolicyLoss ─▶ + divergence ─▶ SampleLoss
//!           (that weigh)    (importance    (method)      from a
//!                            weights,                    reference
//!                            masks)                      model
//! ```

use spar_core::{Sample, Seed};

use super::entropy_smoothing::EntropyHistory;
use super::policy_tokens::groups_of;
use super::{
    BatchWeight, CorrectionOptions, Denominator, EntropySmoothingOptions, KlOptions,
    LossAggregation, Needs, Objective, PolicyToken, PolicyTokens, PreparedObjective,
    ResamplingOptions, SampleLoss, SelectionOptions, SignWeights, Tally, Update,
};
use crate::{Measured, Slopes};

/// A loss of the policy gradient: what most methods differ in.
///
/// It sees a sample's tokens that weigh, in double precision, and knows neither models nor batches beyond its
/// [notes](PolicyLoss::notes). Every such loss is an [`Objective`], and takes a [correction](CorrectionOptions) and a
/// [divergence](KlOptions) beside it.
pub trait PolicyLoss: Send + Sync + std::fmt::Debug + 'static {
    /// The name in configs and metrics.
    fn name(&self) -> &'static str;

    /// As [`Objective::needs`]. Default nothing.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// As [`Objective::has_gradient`]. Default: whether the sample has an advantage.
    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.has_advantage()
    }

    /// As [`Objective::takes_mean_advantages`]. Default true.
    fn takes_mean_advantages(&self) -> bool {
        true
    }

    /// As [`Objective::aggregation_problems`]. Default none.
    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let _ = aggregation;
        Vec::new()
    }

    /// What the loss has to know of an update as a whole: numbers for every sample, which it is given again with the
    /// sample. Asked only where it [needs](Needs) the present log-probabilities. Default none.
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let _ = batch;
        Vec::new()
    }

    /// The loss of a sample's tokens; `notes` are its own, empty where there are none.
    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses;
}

/// The samples of an update, as a loss of the policy sees them.
#[derive(Debug, Clone, Copy)]
pub struct PolicyBatch<'a> {
    /// Their tokens, with the present log-probabilities.
    pub samples: &'a [PolicyTokens],
    /// The group of each: those with the same prompt have the same number, counted from 0.
    pub groups: &'a [usize],
    /// Where random choices start.
    pub seed: Seed,
}

impl PolicyBatch<'_> {
    /// The samples of each group, by their indices.
    pub fn by_group(&self) -> Vec<Vec<usize>> {
        let count = self.groups.iter().max().map_or(0, |most| most + 1);
        let mut members = vec![Vec::new(); count];
        self.groups.iter().enumerate().for_each(|(index, group)| members[*group].push(index));
        members
    }
}

/// The loss of a sample's tokens, before it is scaled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyLosses {
    /// The sum over tokens, each times what it weighs.
    pub loss: f64,
    /// Its derivatives by the tokens' log-probabilities.
    pub slopes: Vec<f64>,
    /// Its derivatives by their entropies; empty where it does not depend on them.
    pub entropies: Vec<f64>,
}

impl PolicyLosses {
    /// The sum of the losses of tokens that do not depend on each other: `of` gives a token's loss and its derivative by
    /// the token's log-probability, both before weights.
    pub fn by_token(
        tokens: &PolicyTokens,
        mut of: impl FnMut(usize, PolicyToken) -> (f64, f64),
    ) -> Self {
        let mut sum = Self::zero(tokens.len());
        for index in 0..tokens.len() {
            let (loss, slope) = of(index, tokens.token(index));
            sum.add(tokens, index, loss, slope);
        }
        sum
    }

    /// Nothing, of so many tokens.
    pub fn zero(tokens: usize) -> Self {
        Self { loss: 0.0, slopes: vec![0.0; tokens], entropies: Vec::new() }
    }

    /// A loss that is known at the present log-probabilities, `share`, and changes by `slope` with each: the part of a
    /// sample in a loss of several samples.
    pub fn linear(tokens: &PolicyTokens, share: f64, slope: f64) -> Self {
        let mut sum =
            Self::by_token(tokens, |_, token| (slope * (token.logprob - token.detached), slope));
        sum.loss += share;
        sum
    }

    /// Adds the loss of one token and its derivative, both before weights.
    pub fn add(&mut self, tokens: &PolicyTokens, index: usize, loss: f64, slope: f64) {
        let factor = tokens.factor(index);
        // What is masked is not read, so that it may be infinite.
        if factor != 0.0 {
            self.loss += factor * loss;
            self.slopes[index] += factor * slope;
        }
    }
}

/// What stands beside a loss of the policy; by default nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) correction: Option<CorrectionOptions>,
    pub(crate) kl: Option<KlOptions>,
    pub(crate) selection: Option<SelectionOptions>,
    pub(crate) entropy_smoothing: Option<EntropySmoothingOptions>,
    pub(crate) resampling: Option<ResamplingOptions>,
    pub(crate) sign_weights: Option<SignWeights>,
}

impl Beside {
    fn needs(&self) -> Needs {
        let correction = self.correction.as_ref();
        Needs {
            reference: self.kl.is_some(),
            present: correction.is_some_and(CorrectionOptions::needs_present),
            old: correction.is_some_and(|correction| !correction.bypass),
            entropies: self.entropy_smoothing.is_some()
                || self.selection.as_ref().is_some_and(SelectionOptions::needs_entropies),
            ..Needs::default()
        }
    }

    /// Whether an update leaves something to the next.
    fn has_state(&self) -> bool {
        self.entropy_smoothing.is_some() || self.kl.as_ref().is_some_and(|kl| kl.adaptive.is_some())
    }

    /// Whether something depends on all samples of an update, those without advantage among them.
    fn is_of_all(&self) -> bool {
        self.kl.is_some()
            || self.selection.is_some()
            || self.entropy_smoothing.is_some()
            || self.resampling.is_some()
            || self.correction.as_ref().is_some_and(CorrectionOptions::is_of_batch)
    }
}

/// A loss of the policy with something beside it.
#[derive(Debug)]
pub(super) struct PolicyObjective {
    loss: Box<dyn PolicyLoss>,
    beside: Beside,
}

impl PolicyObjective {
    pub(super) fn new(loss: Box<dyn PolicyLoss>, beside: Beside) -> Self {
        Self { loss, beside }
    }
}

impl Objective for PolicyObjective {
    fn name(&self) -> &'static str {
        self.loss.name()
    }

    fn weight(&self, sample: &Sample) -> f64 {
        sample.num_weighed() as f64
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        self.loss.has_gradient(sample) || (self.beside.is_of_all() && sample.num_weighed() > 0)
    }

    fn takes_mean_advantages(&self) -> bool {
        // A mask looks at the sign of an advantage, or at the whole sample.
        self.beside.correction.is_none()
            && self.beside.selection.is_none()
            && self.beside.resampling.is_none()
            && self.beside.sign_weights.is_none()
            && self.loss.takes_mean_advantages()
    }

    fn needs(&self) -> Needs {
        self.loss.needs().and(self.beside.needs())
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        self.loss.aggregation_problems(aggregation)
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        begin(self.loss.as_ref(), Some(&self.beside), update)
    }
}

impl<L: PolicyLoss> Objective for L {
    fn name(&self) -> &'static str {
        PolicyLoss::name(self)
    }

    fn weight(&self, sample: &Sample) -> f64 {
        sample.num_weighed() as f64
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        PolicyLoss::has_gradient(self, sample)
    }

    fn takes_mean_advantages(&self) -> bool {
        PolicyLoss::takes_mean_advantages(self)
    }

    fn needs(&self) -> Needs {
        PolicyLoss::needs(self)
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        PolicyLoss::aggregation_problems(self, aggregation)
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        begin(self, None, update)
    }

    fn into_policy_loss(self: Box<Self>) -> Option<Box<dyn PolicyLoss>> {
        Some(self)
    }
}

fn begin<'a>(
    loss: &'a dyn PolicyLoss,
    beside: Option<&'a Beside>,
    update: &Update<'a>,
) -> Box<dyn PreparedObjective + 'a> {
    let old = beside.is_some_and(|beside| beside.needs().old);
    let rows = |needed: bool| -> Vec<PolicyTokens> {
        let of = |(index, sample): (usize, &&Sample)| {
            let logprobs = match update.present {
                Some(present) => &present[index],
                None => &sample.behavior_logprobs,
            };
            let mut tokens = PolicyTokens::of(sample, logprobs, &sample.entropies);
            if old {
                tokens.relative_to_old(sample);
            }
            tokens
        };
        match needed {
            true => update.samples.iter().enumerate().map(of).collect(),
            false => Vec::new(),
        }
    };
    let needs_all = loss.needs().present || beside.is_some_and(Beside::is_of_all);
    let groups = if loss.needs().groups { groups_of(update.samples) } else { Vec::new() };
    let update_of =
        UpdateOf { aggregation: update.aggregation, seed: update.seed, state: update.state };
    let begun = Begun::new(loss, beside, rows(needs_all), &groups, &update_of);
    Box::new(PreparedPolicy { begun, samples: update.samples, relative_to_old: old })
}

/// What is settled for a whole update.
pub(super) struct UpdateOf<'a> {
    pub(super) aggregation: LossAggregation,
    pub(super) seed: Seed,
    /// What the update before left, of what stands beside an objective: the weight of the divergence, and entropies.
    pub(super) state: &'a [f64],
}

/// A loss of the policy, with what stands beside it, that has seen an update.
pub(super) struct Begun<'a> {
    loss: &'a dyn PolicyLoss,
    beside: Option<&'a Beside>,
    notes: Vec<Vec<f64>>,
    /// What importance weights are divided by.
    mean_importance: f64,
    /// The tokens of each sample that a selection keeps; empty where there is none.
    selected: Vec<Vec<bool>>,
    /// The aggregation and what is kept, where losses are divided by that.
    kept: Option<(LossAggregation, BatchWeight)>,
    learning_rate_scale: f64,
    /// How often each sample was drawn again; empty where none is.
    drawn: Vec<f64>,
    kl_weight: f64,
    num_samples: f64,
    entropies: EntropyHistory,
    next_entropies: EntropyHistory,
    tally: Tally,
}

/// The part of the loss of a sample.
pub(super) struct Row {
    pub(super) loss: f64,
    /// By the tokens that were left.
    pub(super) places: Vec<usize>,
    pub(super) slopes: Vec<f64>,
    pub(super) entropies: Vec<f64>,
    pub(super) tally: Tally,
}

impl<'a> Begun<'a> {
    /// Sees all rows of an update; none where nothing depends on all of them.
    pub(super) fn new(
        loss: &'a dyn PolicyLoss,
        beside: Option<&'a Beside>,
        mut rows: Vec<PolicyTokens>,
        groups: &[usize],
        update: &UpdateOf<'_>,
    ) -> Self {
        let (kl_weight, entropies) = Self::open_state(beside, update.state);
        let mut begun = Self {
            loss,
            beside,
            notes: Vec::new(),
            mean_importance: 1.0,
            selected: Vec::new(),
            kept: None,
            learning_rate_scale: 1.0,
            drawn: Vec::new(),
            kl_weight,
            num_samples: rows.len() as f64,
            next_entropies: entropies.after(&rows),
            entropies,
            tally: Tally::default(),
        };
        if let Some(weights) = beside.and_then(|beside| beside.sign_weights.as_ref()) {
            rows.iter_mut().for_each(|row| weights.apply(row));
        }
        if let Some(resampling) = beside.and_then(|beside| beside.resampling.as_ref()) {
            begun.drawn = resampling.draw(&rows, update.seed);
            for (row, drawn) in rows.iter_mut().zip(&begun.drawn) {
                row.importance.iter_mut().for_each(|importance| *importance *= drawn);
                begun.tally.add_mean("drawn_again_fraction", (*drawn > 0.0).into());
            }
        }
        let correction = beside.and_then(|beside| beside.correction.as_ref());
        if let Some(correction) = correction.filter(|_| !rows.is_empty()) {
            correction.tally(&rows, &mut begun.tally);
            begun.learning_rate_scale = correction.learning_rate_scale(&rows, &mut begun.tally);
            begun.mean_importance = correction.mean_importance(&rows);
        }
        if let Some(correction) = correction {
            let mean = begun.mean_importance;
            rows.iter_mut().for_each(|row| correction.apply(row, mean, &mut Tally::default()));
            if correction.denominator == Denominator::Kept {
                let lengths = rows.iter().map(|row| row.len() as f64).filter(|len| *len > 0.0);
                let mut batch = BatchWeight::default();
                lengths.for_each(|len| {
                    batch.tokens += len;
                    batch.samples += 1.0;
                });
                begun.kept = Some((update.aggregation, batch));
            }
        }
        if let Some(selection) = beside.and_then(|beside| beside.selection.as_ref()) {
            begun.selected = selection.select(&rows);
            for (row, selected) in rows.iter_mut().zip(&begun.selected) {
                hide(row, selected);
            }
        }
        if loss.needs().present {
            let batch = PolicyBatch { samples: &rows, groups, seed: update.seed };
            begun.notes = loss.notes(&batch);
        }
        begun
    }

    /// The part of the loss of the row at this index.
    pub(super) fn row(&self, index: usize, mut tokens: PolicyTokens, scale: f64) -> Row {
        let mut tally = Tally::default();
        let mut scale = scale;
        // Neither a mask nor an objective that does not look at it is to hide what is undefined.
        let is_undefined = tokens.is_undefined();
        if let Some(weights) = self.beside.and_then(|beside| beside.sign_weights.as_ref()) {
            weights.apply(&mut tokens);
        }
        if let Some(drawn) = self.drawn.get(index) {
            tokens.importance.iter_mut().for_each(|importance| *importance *= drawn);
        }
        if let Some(correction) = self.beside.and_then(|beside| beside.correction.as_ref()) {
            correction.apply(&mut tokens, self.mean_importance, &mut tally);
        }
        if let Some((aggregation, batch)) = self.kept {
            scale = aggregation.scale(tokens.len() as f64, batch);
        }
        if let Some(selected) = self.selected.get(index) {
            hide(&mut tokens, selected);
        }
        let notes = self.notes.get(index).map_or(&[][..], Vec::as_slice);
        let mut found = self.loss.loss(&tokens, notes, &mut tally);
        if let Some(kl) = self.beside.and_then(|beside| beside.kl.as_ref()) {
            kl.add(&tokens, self.kl_weight, &mut found, &mut tally);
        }
        if let Some(smoothing) = self.beside.and_then(|beside| beside.entropy_smoothing.as_ref()) {
            smoothing.add(&tokens, &self.entropies, &mut found, &mut tally);
        }
        if is_undefined {
            found.loss = f64::NAN;
        }
        let scaled = |values: Vec<f64>| values.into_iter().map(|value| scale * value).collect();
        Row {
            loss: scale * found.loss,
            places: tokens.places,
            slopes: scaled(found.slopes),
            entropies: scaled(found.entropies),
            tally,
        }
    }

    pub(super) fn learning_rate_scale(&self) -> f64 {
        self.learning_rate_scale
    }

    /// The weight of the divergence, and what is remembered of entropies.
    fn open_state(beside: Option<&Beside>, state: &[f64]) -> (f64, EntropyHistory) {
        let first = beside.and_then(|beside| beside.kl.as_ref()).map_or(0.0, |kl| kl.weight);
        match state.split_first() {
            None => (first, EntropyHistory::default()),
            Some((weight, entropies)) => (*weight, EntropyHistory::from_numbers(entropies)),
        }
    }

    /// What the next update begins with, where this one found the metrics.
    pub(super) fn state(&self, tally: &Tally) -> Vec<f64> {
        let Some(beside) = self.beside.filter(|beside| beside.has_state()) else {
            return Vec::new();
        };
        let follow = beside.kl.as_ref().and_then(|kl| kl.adaptive.as_ref());
        let weight = match (follow, tally.mean("kl_reference")) {
            (Some(follow), Some(kl)) => follow.next(self.kl_weight, kl, self.num_samples),
            _ => self.kl_weight,
        };
        let mut state = vec![weight];
        if beside.entropy_smoothing.is_some() {
            state.extend(self.next_entropies.to_numbers());
        }
        state
    }
}

/// Leaves tokens in the sample, and lets them weigh nothing.
fn hide(tokens: &mut PolicyTokens, shown: &[bool]) {
    for (importance, _) in tokens.importance.iter_mut().zip(shown).filter(|(_, shown)| !**shown) {
        *importance = 0.0;
    }
}

struct PreparedPolicy<'a> {
    begun: Begun<'a>,
    samples: &'a [&'a Sample],
    relative_to_old: bool,
}

impl PreparedObjective for PreparedPolicy<'_> {
    fn loss(&self, index: usize, measured: Measured<'_>, scale: f64) -> SampleLoss {
        let sample = self.samples[index];
        let mut tokens = PolicyTokens::of(sample, measured.logprobs, measured.entropies);
        if self.relative_to_old {
            tokens.relative_to_old(sample);
        }
        let row = self.begun.row(index, tokens, scale);
        let spread = |values: &[f64]| {
            let mut all = vec![0.0; sample.len()];
            row.places.iter().zip(values).for_each(|(place, value)| all[*place] = *value as f32);
            all
        };
        let mut slopes = Slopes::from(spread(&row.slopes));
        if !row.entropies.is_empty() {
            slopes.entropies = spread(&row.entropies);
        }
        SampleLoss { loss: row.loss, slopes, tally: row.tally }
    }

    fn learning_rate_scale(&self) -> f64 {
        self.begun.learning_rate_scale()
    }

    fn tally(&self) -> Tally {
        self.begun.tally.clone()
    }

    fn state(&self, tally: &Tally) -> Vec<f64> {
        self.begun.state(tally)
    }
}
