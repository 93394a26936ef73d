//! Normalisation over a whole batch.

/// Added to counts and variances, as verl does.
const EPSILON: f64 = 1e-8;

/// Gives the values mean 0 and deviation 1, all of them together.
///
/// `x' = (x - mean) / sqrt(variance + 1e-8)` with `mean = sum x / (n + 1e-8)` and the unbiased variance
/// `sum (x - mean)^2 / (n + 1e-8) * n / (n - 1)`: verl's `masked_whiten`. Deviation: where all values are equal, one
/// alone among them, they become exactly 0, where the rounding of the mean would leave crumbs or the division fail.
pub(super) fn whiten<'v>(values: impl IntoIterator<Item = &'v mut f64>) {
    let mut values: Vec<&mut f64> = values.into_iter().collect();
    let Some(first) = values.first().map(|value| **value) else { return };
    if values.iter().all(|value| **value == first) {
        values.iter_mut().for_each(|value| **value = 0.0);
        return;
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|value| **value).sum::<f64>() / (count + EPSILON);
    let squares: f64 = values.iter().map(|value| (**value - mean).powi(2)).sum();
    let variance = squares / (count + EPSILON) * count / (count - 1.0);
    let scale = (variance + EPSILON).sqrt();
    values.iter_mut().for_each(|value| **value = (**value - mean) / scale);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_values_become_exactly_zero() {
        for count in 0..4 {
            let mut values = vec![0.1; count];
            whiten(&mut values);
            assert!(values.iter().all(|value| *value == 0.0));
        }
    }

    proptest! {
        #[test]
        fn mean_is_0_and_deviation_1(values in prop::collection::vec(-9.0..9.0, 3..30)) {
            let mut values: Vec<f64> = values;
            values[0] = 10.0;
            let order_before: Vec<bool> = values.windows(2).map(|pair| pair[0] < pair[1]).collect();
            whiten(&mut values);
            let count = values.len() as f64;
            prop_assert!(values.iter().sum::<f64>().abs() < 1e-5);
            let variance = values.iter().map(|v| v * v).sum::<f64>() / (count - 1.0);
            prop_assert!((variance - 1.0).abs() < 1e-5);
            let order: Vec<bool> = values.windows(2).map(|pair| pair[0] < pair[1]).collect();
            prop_assert_eq!(order, order_before);
        }
    }
}
