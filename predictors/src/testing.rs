//! What tests of predictors have in common.

use candle_core::Tensor;
use rand::RngExt;
use spar_core::Seed;

use crate::network::Network;

/// Numbers from 0 to 1 that look random.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = Seed::from_u64(seed).rng();
    (0..count).map(|_| rng.random_range(0.0..1.0)).collect()
}

/// Compares the derivatives of `differentiated` by every weight of a network with the differences that `loss` of that
/// network shows when the weight is moved.
pub(crate) fn assert_network_gradient(
    network: &Network,
    differentiated: &Tensor,
    loss: impl Fn(&Network) -> f64,
) {
    const STEP: f32 = 1e-3;
    let gradients = differentiated.backward().unwrap();
    let mut num_checked = 0;
    for (index, var) in network.variables().iter().enumerate() {
        let found = gradients.get(var).expect("it depends on every variable");
        let found = found.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for (place, found) in found.into_iter().enumerate() {
            let moved = |by: f32| {
                let moved = network.copy().unwrap();
                let var = &moved.variables()[index];
                let mut values = var.as_detached_tensor().flatten_all().unwrap().to_vec1().unwrap();
                let values: &mut Vec<f32> = &mut values;
                values[place] += by;
                let values = Tensor::from_slice(values, var.dims(), var.device()).unwrap();
                var.set(&values).unwrap();
                loss(&moved)
            };
            let difference = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
            let near = (f64::from(found) - difference).abs() <= 0.02 * difference.abs() + 1e-3;
            assert!(near, "variable {index}, place {place}: {found} and {difference}");
            num_checked += 1;
        }
    }
    assert!(num_checked > 10);
}
