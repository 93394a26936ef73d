//! A model that computes with the roundings of what is trained.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::{HalfParameters, HalfType, Parameters, Weights};

/// A model whose master weights are in single precision, and which computes with their roundings to
/// half precision.
///
/// Rollout and training both run on the [rounded](Self::rounded) weights, so that they agree to the
/// bit; the gradient by a rounded weight is taken for that by its master.
#[derive(Debug)]
pub struct RoundedModel {
    base: Arc<Weights>,
    half: HalfType,
    /// The masters that were rounded last, and the result, as long as somebody uses it.
    last: Mutex<Option<Rounding>>,
}

#[derive(Debug)]
struct Rounding {
    masters: Weak<Vec<f32>>,
    weights: Weak<Weights>,
}

impl RoundedModel {
    /// The model that `base` is any version of.
    pub fn new(base: Arc<Weights>, half: HalfType) -> Self {
        Self { base, half, last: Mutex::new(None) }
    }

    /// What gives the shape.
    pub fn base(&self) -> &Arc<Weights> {
        &self.base
    }

    /// The rounded weights; equal masters that share their memory are rounded once, as long as the
    /// result is in use.
    pub fn rounded(&self, masters: &Parameters) -> Arc<Weights> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && masters.data.is(&last.masters)
            && let Some(weights) = last.weights.upgrade()
        {
            return weights;
        }
        let halves = HalfParameters::rounded(masters, self.half);
        let weights = Arc::new(self.base.with_halves(halves));
        let masters = masters.data.downgrade();
        *last = Some(Rounding { masters, weights: Arc::downgrade(&weights) });
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelConfig, initial_parameters};

    #[test]
    fn masters_are_rounded_once_until_they_change() {
        let config = ModelConfig { vocab_size: 7, hidden_size: 16, ..ModelConfig::default() };
        let mut masters = initial_parameters(&config, spar_core::Seed::from_u64(1));
        let base = Arc::new(Weights::new(&config, masters.clone()));
        let model = RoundedModel::new(base, HalfType::Bf16);
        let first = model.rounded(&masters);
        assert!(Arc::ptr_eq(&first, &model.rounded(&masters.clone())));
        masters.data[3] += 0.5;
        let second = model.rounded(&masters);
        assert!(!Arc::ptr_eq(&first, &second));
        let expected = HalfParameters::rounded(&masters, HalfType::Bf16).widened();
        assert_eq!(second.to_parameters(), expected);
        assert_ne!(first.to_parameters(), expected);
    }
}
