//! A head at one version of its weights.

use std::sync::Arc;

use spar_core::Seed;
use spar_core::registry::RowError;
use spar_ops::parallel;

use super::{StateHead, StateHeadConfig, open_state_head};
use crate::Parameters;

/// A head at one version of its weights; a clone costs nothing until one side changes them.
#[derive(Debug, Clone)]
pub struct HeadWeights {
    head: Arc<dyn StateHead>,
    config: StateHeadConfig,
    parameters: Parameters,
}

impl HeadWeights {
    /// The head of `config` on states of `width` numbers, where every number it reads is 0.
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

    /// The numbers of states, `[rows, width]`, one per row; each depends on its row alone, to the bit.
    pub fn forward(&self, states_rd: &[f32]) -> Vec<f32> {
        parallel::in_pool(|| self.head.forward(&self.parameters, states_rd))
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
            assert_eq!(head.forward(&states), [0.0; 3], "{}", head.config.kind);
            let mut gradient = vec![0.0; head.parameters.data.len()];
            head.backward(&states, &[1.0, 0.5, -0.25], &mut gradient);
            let weights = head.parameters.data.iter_mut().zip(&gradient);
            weights.for_each(|(weight, slope)| *weight -= 0.1 * slope);
            assert!(head.forward(&states)[0] < 0.0, "{}", head.config.kind);
        }
    }

    #[test]
    fn every_gradient_is_the_derivative() {
        let (states, slopes) = (numbers(3 * WIDTH, 0.3), [0.7, -0.4, 0.2]);
        let loss = |head: &HeadWeights, states: &[f32]| -> f64 {
            let found = head.forward(states);
            found.iter().zip(slopes).map(|(number, slope)| f64::from(number * slope)).sum()
        };
        for mut head in heads() {
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
    fn a_number_depends_on_its_state_alone() {
        let states = numbers(5 * WIDTH, 0.3);
        for mut head in heads() {
            let weights = numbers(head.parameters.data.len(), 0.4);
            head.parameters.data.copy_from_slice(&weights);
            let together = head.forward(&states);
            for (state, number) in states.chunks_exact(WIDTH).zip(together) {
                assert_eq!(head.forward(state), [number], "{}", head.config.kind);
            }
        }
    }
}
