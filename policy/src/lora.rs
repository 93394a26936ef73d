//! Training a low-rank adapter on frozen weights.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use crate::adapter::Adapter;
use crate::checkpoint::{LoraAdapter, LowRank};
use crate::cuda::DeviceError;
use crate::layout;
use crate::weight_gradient::{AdapterGradient, Memory, WeightGradient};
use crate::{ModelConfig, ParameterKind, Parameters, SharedBuffer, Weights};
use spar_ops::elementwise::add_scaled;
use spar_ops::parallel;

/// The matrices of a layer that can be adapted, by the last part of their name.
pub const LORA_TARGETS: [&str; 7] =
    ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// How an adapter is made: `W + s B A` in place of `W` (Hu et al. 2021, arXiv 2106.09685).
///
/// There is no dropout: the forward of training is that of rollouts, to the bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoraConfig {
    /// Rows of every `A` and columns of every `B`; 1 to 65536. Default 16.
    pub rank: usize,
    /// `s` is this divided by the rank, or by its root; positive. Default 32.
    pub alpha: f32,
    /// Whether `alpha` is divided by the root of the rank (rsLoRA, Kalajdzievski 2023, arXiv
    /// 2312.03732). Default false.
    pub scale_by_root: bool,
    /// The matrices that are adapted, in every layer. Default all seven of [`LORA_TARGETS`].
    pub targets: Vec<String>,
}

impl Default for LoraConfig {
    fn default() -> Self {
        let targets = LORA_TARGETS.map(str::to_owned).to_vec();
        Self { rank: 16, alpha: 32.0, scale_by_root: false, targets }
    }
}

impl LoraConfig {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(1..=1 << 16).contains(&self.rank) {
            problems.push(format!("`rank` is {}, must be 1 to 65536", self.rank));
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            problems.push(format!("`alpha` is {}, must be positive", self.alpha));
        }
        if self.targets.is_empty() {
            problems.push("`targets` is empty, nothing would be trained".to_owned());
        }
        for (index, target) in self.targets.iter().enumerate() {
            if !LORA_TARGETS.contains(&&**target) {
                let known = LORA_TARGETS.join(", ");
                problems.push(format!("`targets` has `{target}`; known are {known}"));
            }
            if self.targets[..index].contains(target) {
                problems.push(format!("`targets` has `{target}` twice"));
            }
        }
        problems
    }

    /// What the product of the factors is multiplied by.
    pub fn scale(&self) -> f32 {
        let rank = self.rank as f32;
        self.alpha / if self.scale_by_root { rank.sqrt() } else { rank }
    }

    /// Numbers that an adapter of such a model has.
    pub fn num_parameters(&self, model: &ModelConfig) -> usize {
        let adapted = layout::shapes(model).into_iter().filter(|(name, ..)| self.adapts(name));
        adapted.map(|(_, shape, _)| self.rank * (shape[0] + shape[1])).sum()
    }

    /// Whether the parameter of this name is adapted.
    fn adapts(&self, name: &str) -> bool {
        let module = name.strip_suffix(".weight").and_then(|name| name.rsplit('.').next());
        module.is_some_and(|module| self.targets.iter().any(|target| target == module))
    }
}

/// A matrix with the factors that change it.
#[derive(Debug, Clone)]
pub(crate) struct AdaptedMatrix {
    name: String,
    /// Where it lies in the model's buffer.
    pub(crate) weight: Range<usize>,
    pub(crate) outputs: usize,
    pub(crate) inputs: usize,
    /// Where `A`, `[rank, inputs]`, lies in the adapter's buffer.
    pub(crate) a: Range<usize>,
    /// And `B`, `[outputs, rank]`.
    pub(crate) b: Range<usize>,
}

/// A model whose weights are frozen, below an adapter that is trained.
///
/// What is trained are [`Parameters`] of their own: the factors of every adapted matrix, under the
/// names of PEFT's tensors. Rollout and training both run on the same [weights](Self::weights), so
/// that they agree; backward collects the factors' gradient alone.
#[derive(Debug)]
pub struct LoraModel {
    base: Arc<Weights>,
    config: LoraConfig,
    matrices: Arc<[AdaptedMatrix]>,
    /// Zeros in the adapter's layout.
    empty: Parameters,
    /// Whether the factors stand beside the frozen weights on the CPU, too.
    is_apart: bool,
    /// The factors that were merged last, and the result.
    last: Mutex<Option<(SharedBuffer, Arc<Weights>)>>,
}

impl LoraModel {
    /// The model with frozen weights `base`.
    pub fn new(base: Arc<Weights>, config: &LoraConfig) -> Self {
        let mut shapes = Vec::new();
        let mut matrices = Vec::new();
        let mut end = 0;
        for spec in base.parameters.specs.iter() {
            if spec.kind != ParameterKind::Matrix || !config.adapts(&spec.name) {
                continue;
            }
            let (outputs, inputs) = (spec.shape[0], spec.shape[1]);
            let a = end..end + config.rank * inputs;
            let b = a.end..a.end + outputs * config.rank;
            end = b.end;
            for (factor, shape) in
                [("A", vec![config.rank, inputs]), ("B", vec![outputs, config.rank])]
            {
                let name = LoraAdapter::tensor_name(&spec.name, factor);
                shapes.push((name, shape, ParameterKind::Matrix));
            }
            let (name, weight) = (spec.name.clone(), spec.range());
            matrices.push(AdaptedMatrix { name, weight, outputs, inputs, a, b });
        }
        let (config, empty) = (config.clone(), Parameters::zeros(shapes));
        let (matrices, is_apart, last) = (matrices.into(), false, Mutex::new(None));
        Self { base, config, matrices, empty, is_apart, last }
    }

    /// The model with its factors beside the frozen weights on the CPU, too, as engines of several adapters play it:
    /// what [`LoraModel::weights`] gives then is what these compute with, to the bit, and shares the memory of the
    /// frozen weights. Every product takes one of `[tokens, rank]` more.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Whether the factors stand beside the frozen weights on the CPU, too.
    pub fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// The factors as they stand beside the frozen weights, whose memory they share.
    pub fn adapter(&self, factors: &Parameters) -> Arc<Adapter> {
        let (rank, scale) = (self.config.rank, self.config.scale());
        let (matrices, factors) = (self.matrices.clone(), factors.data.clone());
        Arc::new(Adapter { matrices, rank, scale, factors })
    }

    /// How the adapter is made.
    pub fn config(&self) -> &LoraConfig {
        &self.config
    }

    /// The frozen weights.
    pub fn base(&self) -> &Arc<Weights> {
        &self.base
    }

    /// Fresh factors as PEFT draws them: `A` uniform within `1 / sqrt(inputs)` (Kaiming's bound
    /// for a slope of `sqrt(5)`), `B` zero, so that nothing is changed yet.
    pub fn initial(&self, seed: Seed) -> Parameters {
        let mut parameters = self.empty.clone();
        for matrix in self.matrices.iter() {
            let bound = 1.0 / (matrix.inputs as f32).sqrt();
            let mut rng = seed.derive("parameter", &matrix.name).rng();
            for value in &mut parameters.data[matrix.a.clone()] {
                *value = rng.random_range(-bound..bound);
            }
        }
        parameters
    }

    /// The model with its frozen weights where `place` puts them.
    ///
    /// # Errors
    ///
    /// Those of `place`.
    pub fn placed<E>(&self, place: impl FnOnce(Weights) -> Result<Weights, E>) -> Result<Self, E> {
        let base = Arc::new(place((*self.base).clone())?);
        let Self { config, matrices, empty, is_apart, .. } = self;
        let (config, matrices, empty) = (config.clone(), matrices.clone(), empty.clone());
        Ok(Self { base, config, matrices, empty, is_apart: *is_apart, last: Mutex::new(None) })
    }

    /// The decoder with the adapter: its weights [merged](Self::merged) on the CPU, unless they are kept
    /// [apart](Self::apart); on a device, where narrow numbers would swallow small changes of weights, the factors beside
    /// the frozen weights.
    ///
    /// # Errors
    ///
    /// When the device has no room.
    pub fn weights(&self, factors: &Parameters) -> Result<Arc<Weights>, DeviceError> {
        self.base.backend.adapted(self, factors)
    }

    /// The decoder on its device with the factors beside the frozen weights.
    pub(crate) fn with_factors(&self, factors: &Parameters) -> Result<Weights, DeviceError> {
        let product = (self.config.rank, self.config.scale());
        self.base.with_adapter(&self.matrices, product, &factors.data)
    }

    /// The weights with the adapter's changes; made once for equal factors that share their memory.
    pub fn merged(&self, factors: &Parameters) -> Arc<Weights> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, weights)) = &*last
            && known.is_shared_with(&factors.data)
        {
            return weights.clone();
        }
        // Free before the next one is made.
        *last = None;
        let mut merged = self.base.to_parameters();
        for matrix in self.matrices.iter() {
            let (a, b) = (&factors.data[matrix.a.clone()], &factors.data[matrix.b.clone()]);
            let weight = &mut merged.data[matrix.weight.clone()];
            add_low_rank(weight, a, b, self.config.rank, self.config.scale());
        }
        let weights = Arc::new(self.base.with_parameters(merged));
        *last = Some((factors.data.clone(), weights.clone()));
        weights
    }

    /// Where the backward on [`LoraModel::weights`] puts the gradient of the factors, which
    /// is added to `gradient`.
    pub fn gradient<'a>(
        &'a self,
        factors: &'a Parameters,
        gradient: &'a mut [f32],
    ) -> WeightGradient<'a> {
        WeightGradient::Adapter(AdapterGradient {
            matrices: &self.matrices,
            rank: self.config.rank,
            scale: self.config.scale(),
            factors: &factors.data,
            gradient,
            memory: Memory::default(),
        })
    }

    /// The factors as an adapter that can be written.
    pub fn to_adapter(&self, factors: &Parameters) -> LoraAdapter {
        let change = |matrix: &AdaptedMatrix| {
            let part = |range: &Range<usize>| factors.data[range.clone()].to_vec();
            let change = LowRank { a: part(&matrix.a), b: part(&matrix.b) };
            (matrix.name.clone(), change)
        };
        LoraAdapter {
            rank: self.config.rank,
            alpha: self.config.alpha,
            scales_by_root: self.config.scale_by_root,
            changes: self.matrices.iter().map(change).collect::<BTreeMap<_, _>>(),
        }
    }

    /// The factors of an adapter; `None` where it is not of this shape.
    pub fn factors_of(&self, adapter: &LoraAdapter) -> Option<Parameters> {
        let is_same = adapter.rank == self.config.rank
            && adapter.alpha == self.config.alpha
            && adapter.scales_by_root == self.config.scale_by_root
            && adapter.changes.len() == self.matrices.len();
        let mut factors = self.empty.clone();
        for matrix in self.matrices.iter().filter(|_| is_same) {
            let LowRank { a, b } = adapter.changes.get(&matrix.name)?;
            if a.len() != matrix.a.len() || b.len() != matrix.b.len() {
                return None;
            }
            factors.data[matrix.a.clone()].copy_from_slice(a);
            factors.data[matrix.b.clone()].copy_from_slice(b);
        }
        is_same.then_some(factors)
    }
}

/// `weight[outputs, inputs] += scale * b[outputs, rank] * a[rank, inputs]`, to the same bits on any
/// number of threads.
pub(crate) fn add_low_rank(weight: &mut [f32], a: &[f32], b: &[f32], rank: usize, scale: f32) {
    let inputs = a.len() / rank;
    let rows = weight.par_chunks_exact_mut(inputs).zip(b.par_chunks_exact(rank));
    parallel::run(rows, |(row, b)| {
        for (b, a) in b.iter().zip(a.chunks_exact(inputs)) {
            add_scaled(row, scale * b, a);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{Segment, SequenceCache, Tape, forward};
    use crate::initial_parameters;
    use spar_ops::gradient_check::{assert_gradient, numbers};

    fn model(targets: &[&str]) -> LoraModel {
        let config = ModelConfig {
            vocab_size: 13,
            hidden_size: 16,
            intermediate_size: 24,
            head_dim: 8,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        };
        let mut parameters = initial_parameters(&config, Seed::from_u64(1));
        parameters.data.iter_mut().for_each(|value| *value *= 4.0);
        let base = Arc::new(Weights::new(&config, parameters));
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        LoraModel::new(base, &LoraConfig { rank: 3, alpha: 5.0, targets, ..LoraConfig::default() })
    }

    #[test]
    fn a_fresh_adapter_changes_nothing_and_its_factors_come_back() {
        for targets in [&LORA_TARGETS[..], &["v_proj", "down_proj"]] {
            let model = model(targets);
            let factors = model.initial(Seed::from_u64(2));
            assert_eq!(model.merged(&factors).parameters().data, model.base.parameters().data);
            assert_eq!(factors, model.initial(Seed::from_u64(2)));
            assert_ne!(factors, model.initial(Seed::from_u64(3)));
            let adapter = model.to_adapter(&factors);
            assert_eq!(adapter.changes.len(), 2 * targets.len());
            assert_eq!(model.factors_of(&adapter), Some(factors.clone()));
            assert_eq!(model.factors_of(&LoraAdapter { alpha: 6.0, ..adapter }), None);
            assert_eq!(factors.data.len(), model.config.num_parameters(&model.base.config));
            // Equal factors are merged once.
            let again = model.merged(&factors.clone());
            assert!(Arc::ptr_eq(&again, &model.merged(&factors)));
        }
    }

    #[test]
    fn merging_is_what_the_file_says() {
        let model = model(&LORA_TARGETS);
        let mut factors = model.initial(Seed::from_u64(2));
        let values = numbers(factors.data.len(), 0.4);
        factors.data.copy_from_slice(&values);
        let mut parameters = model.base.parameters().clone();
        model.to_adapter(&factors).merge_into(&mut parameters);
        assert_eq!(model.merged(&factors).parameters().data, parameters.data);
    }

    #[test]
    fn beside_the_weights_is_merged_but_for_rounding() {
        for targets in [&LORA_TARGETS[..], &["k_proj", "down_proj"]] {
            let model = model(targets).apart();
            let mut factors = model.initial(Seed::from_u64(2));
            let read = |weights: &Weights| {
                let mut cache = SequenceCache::new(weights);
                forward(weights, &mut [Segment::new(&mut cache, &[1, 5, 2, 8, 5, 12, 0])], None)
            };
            // One that changes nothing yet is the base, to the bit.
            let beside = model.weights(&factors).unwrap();
            assert_eq!(read(&beside), read(&model.base));
            let values = numbers(factors.data.len(), 0.3);
            factors.data.iter_mut().zip(values).for_each(|(factor, value)| *factor = 0.1 * value);
            let beside = model.weights(&factors).unwrap();
            assert!(beside.parameters().data.is_shared_with(&model.base.parameters().data));
            let (found, wanted) = (read(&beside), read(&model.merged(&factors)));
            let largest = wanted.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((found - wanted).abs() <= 1e-5 * largest, "{found} {wanted}");
            }
            assert_ne!(found, read(&model.base));
        }
    }

    #[test]
    fn the_gradient_of_the_factors_is_the_derivative() {
        for (targets, is_apart) in
            [(&LORA_TARGETS[..], false), (&["k_proj", "up_proj"], false), (&LORA_TARGETS, true)]
        {
            let model = if is_apart { model(targets).apart() } else { model(targets) };
            let mut factors = model.initial(Seed::from_u64(2));
            let values = numbers(factors.data.len(), 0.3);
            // Small, so that a step is small beside what the factors bend.
            factors.data.iter_mut().zip(values).for_each(|(factor, value)| *factor = 0.1 * value);
            let tokens = [1, 5, 2, 8, 5, 12, 0];
            let slopes = numbers(tokens.len() * 16, 0.7);
            let read = |factors: &Parameters, tape: Option<&mut Tape>| {
                let weights = model.weights(factors).unwrap();
                let mut cache = SequenceCache::new(&weights);
                forward(&weights, &mut [Segment::new(&mut cache, &tokens)], tape)
            };
            let mut tape = Tape::default();
            read(&factors, Some(&mut tape));
            let mut gradient = vec![0.0; factors.data.len()];
            let weights = model.weights(&factors).unwrap();
            let into = &mut model.gradient(&factors, &mut gradient);
            weights.backend.backward(&weights, &tape, &slopes, into).unwrap();
            assert!(gradient.iter().filter(|value| **value != 0.0).count() * 2 > gradient.len());
            assert_gradient(&factors.data, &gradient, |values| {
                let mut factors = factors.clone();
                factors.data.copy_from_slice(values);
                let hidden = read(&factors, None);
                hidden.iter().zip(&slopes).map(|(h, s)| f64::from(*h) * f64::from(*s)).sum()
            });
        }
    }

    #[test]
    fn settings_that_cannot_be_are_told_together() {
        assert!(LoraConfig::default().problems().is_empty());
        let config: LoraConfig = toml_like(0, -1.0, &["q_proj", "q_proj", "lm_head"]);
        assert_eq!(config.problems().len(), 4);
        assert_eq!(toml_like(4, 1.0, &[]).problems().len(), 1);
    }

    fn toml_like(rank: usize, alpha: f32, targets: &[&str]) -> LoraConfig {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        LoraConfig { rank, alpha, targets, ..LoraConfig::default() }
    }
}
