//! A head at one version of its weights.

use std::sync::Arc;

use spar_core::Seed;
use spar_core::registry::RowError;
use spar_ops::parallel;

use super::{StateHead, StateHeadConfig, ValueHistogram, open_state_head};
use crate::Parameters;

/// A head at one version of its weights; a clone costs nothing until one side changes them.
#[derive(Debug, Clone)]
pub struct HeadWeights {
    head: Arc<dyn StateHead>,
    config: StateHeadConfig,
    parameters: Parameters,
}

impl HeadWeights {
    /// The head of `config` on states of `width` numbers, where every number it reads is 0: so is the value, or it is in the
    /// middle of a histogram.
    ///
    /// # Errors
    ///
    /// [`RowError`] when there is no such head, or its options are wrong.
    pub fn fresh(config: &StateHeadConfig, width: usize, seed: Seed) -> Result<Self, RowError> {
        let head = open_state_head(config)?;
        let parameters = head.initial(width, seed);
        Ok(Self { head, config: config.clone(), parameters })
    }

    /// The settings that it was made by.
    pub fn config(&self) -> &StateHeadConfig {
        &self.config
    }

    /// The weights.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The weights, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// How its numbers are told and trained as one value; absent where each state has one number, which is the value.
    pub fn histogram(&self) -> Option<&ValueHistogram> {
        self.head.histogram()
    }

    /// Numbers that it reads off a state.
    pub fn num_outputs(&self) -> usize {
        self.histogram().map_or(1, ValueHistogram::bins)
    }

    /// The numbers of states, `[rows, width]`, as many per row as [`Self::num_outputs`] says; they depend on the row
    /// alone, to the bit.
    pub fn forward(&self, states_rd: &[f32]) -> Vec<f32> {
        parallel::in_pool(|| self.head.forward(&self.parameters, states_rd))
    }

    /// The values that [numbers](Self::forward) tell, one per row.
    pub fn values(&self, numbers: &[f32]) -> Vec<f32> {
        match self.histogram() {
            None => numbers.to_vec(),
            Some(bins) => numbers.chunks_exact(bins.bins()).map(|row| bins.value(row)).collect(),
        }
    }

    /// Adds to `gradient`, in the layout of the weights, the gradient of a loss, given that by the numbers of the same
    /// states; returns that by the states, `[rows, width]`, or nothing where it is not to go into the decoder.
    pub fn backward(
        &self,
        states_rd: &[f32],
        dnumbers: &[f32],
        gradient: &mut [f32],
    ) -> Option<Vec<f32>> {
        let mut dstates = self.config.trunk_gradient.then(|| vec![0.0; states_rd.len()]);
        parallel::in_pool(|| {
            let by_states = dstates.as_deref_mut();
            self.head.backward(&self.parameters, states_rd, dnumbers, by_states, gradient);
        });
        dstates
    }
}

#[cfg(test)]
mod tests {
    use spar_ops::gradient_check::{assert_gradient, numbers};

    use super::super::state_head_registry;
    use super::*;

    const WIDTH: usize = 10;

    fn heads() -> impl Iterator<Item = HeadWeights> {
        state_head_registry().iter().map(|entry| {
            let config = StateHeadConfig { kind: entry.name.to_owned(), ..Default::default() };
            HeadWeights::fresh(&config, WIDTH, Seed::from_u64(4)).unwrap()
        })
    }

    #[test]
    fn every_head_begins_at_zero_and_can_leave_it() {
        let states = numbers(3 * WIDTH, 0.3);
        for mut head in heads() {
            let outputs = head.num_outputs();
            assert_eq!(head.forward(&states), vec![0.0; 3 * outputs], "{}", head.config.kind);
            let values = head.values(&head.forward(&states));
            assert!(values.iter().all(|value| value.abs() < 1e-6), "{values:?}");
            let mut gradient = vec![0.0; head.parameters.data.len()];
            let slopes = [1.0, 0.5, -0.25].map(|slope| vec![slope; outputs]).concat();
            head.backward(&states, &slopes, &mut gradient);
            let weights = head.parameters.data.iter_mut().zip(&gradient);
            weights.for_each(|(weight, slope)| *weight -= 0.1 * slope);
            assert!(head.forward(&states)[0] < 0.0, "{}", head.config.kind);
        }
    }

    #[test]
    fn every_gradient_is_the_derivative() {
        let states = numbers(3 * WIDTH, 0.3);
        for mut head in heads() {
            let slopes = numbers(3 * head.num_outputs(), 0.7);
            let loss = |head: &HeadWeights, states: &[f32]| -> f64 {
                let found = head.forward(states);
                let pairs = found.iter().zip(&slopes);
                pairs.map(|(number, slope)| f64::from(*number) * f64::from(*slope)).sum()
            };
            let weights = numbers(head.parameters.data.len(), 0.4);
            head.parameters.data.copy_from_slice(&weights);
            let mut gradient = vec![0.0; weights.len()];
            let dstates = head.backward(&states, &slopes, &mut gradient).unwrap();
            assert_gradient(&states, &dstates, |states| loss(&head, states));
            assert_gradient(&weights, &gradient, |weights| {
                let mut moved = head.clone();
                moved.parameters.data.copy_from_slice(weights);
                loss(&moved, &states)
            });
            // Its own gradient is the same where that of the states is not asked for.
            head.config.trunk_gradient = false;
            let mut alone = vec![0.0; weights.len()];
            assert_eq!(head.backward(&states, &slopes, &mut alone), None);
            assert_eq!(alone, gradient);
        }
    }

    #[test]
    fn the_cross_entropy_of_a_histogram_has_its_derivatives_by_weights_and_states() {
        let states = numbers(3 * WIDTH, 0.3);
        for (kind, width) in [("hl_gauss", ""), ("two_hot", r#", "width": 6"#)] {
            let config =
                format!(r#"{{ "kind": "histogram", "histogram": "{kind}", "bins": 9{width} }}"#);
            let config: StateHeadConfig = serde_json::from_str(&config).unwrap();
            let mut head = HeadWeights::fresh(&config, WIDTH, Seed::from_u64(4)).unwrap();
            let weights = numbers(head.parameters.data.len(), 0.4);
            head.parameters.data.copy_from_slice(&weights);
            let losses = |head: &HeadWeights, states: &[f32]| -> Vec<(f64, Vec<f64>)> {
                let (numbers, bins) = (head.forward(states), head.histogram().unwrap());
                let rows = numbers.chunks_exact(bins.bins()).zip([-0.4, 0.1, 1.0]);
                rows.map(|(logits, target)| bins.loss(logits, target)).collect()
            };
            let loss = |head: &HeadWeights, states: &[f32]| -> f64 {
                losses(head, states).iter().map(|(loss, _)| loss).sum()
            };
            let slopes: Vec<f32> = losses(&head, &states)
                .iter()
                .flat_map(|(_, slopes)| slopes.iter().map(|slope| *slope as f32))
                .collect();
            let mut gradient = vec![0.0; weights.len()];
            let dstates = head.backward(&states, &slopes, &mut gradient).unwrap();
            assert_gradient(&states, &dstates, |states| loss(&head, states));
            assert_gradient(&weights, &gradient, |weights| {
                let mut moved = head.clone();
                moved.parameters.data.copy_from_slice(weights);
                loss(&moved, &states)
            });
        }
    }

    #[test]
    fn numbers_depend_on_their_state_alone() {
        let states = numbers(5 * WIDTH, 0.3);
        for mut head in heads() {
            let weights = numbers(head.parameters.data.len(), 0.4);
            head.parameters.data.copy_from_slice(&weights);
            let together = head.forward(&states);
            let rows = together.chunks_exact(head.num_outputs());
            for (state, numbers) in states.chunks_exact(WIDTH).zip(rows) {
                assert_eq!(head.forward(state), numbers, "{}", head.config.kind);
            }
        }
    }
}
