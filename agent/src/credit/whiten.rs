//! Normalisation over a whole batch.

/// Added to counts and variances, as verl does.
const EPSILON: f64 = 1e-8;

/// Gives the values mean 0 and deviation 1, all of them together, each counting as much as its share says: what several
/// trajectories have in common counts once.
///
/// `x' = (x - mean) / sqrt(variance + 1e-8)` with `mean = sum s x / (n + 1e-8)`, `n = sum s` and the unbiased variance
/// `sum s (x - mean)^2 / (n + 1e-8) * n / (n - 1)`: verl's `masked_whiten`, where all shares `s` are 1. Deviation: where
/// all values are equal, one alone among them, they become exactly 0, where the rounding of the mean would leave crumbs
/// or the division fail.
pub(super) fn whiten<'v>(values: impl IntoIterator<Item = (&'v mut f64, f64)>) {
    let mut values: Vec<(&mut f64, f64)> = values.into_iter().collect();
    let Some(first) = values.first().map(|(value, _)| **value) else { return };
    if values.iter().all(|(value, _)| **value == first) {
        values.iter_mut().for_each(|(value, _)| **value = 0.0);
        return;
    }
    let count: f64 = values.iter().map(|(_, share)| share).sum();
    let mean = values.iter().map(|(value, share)| share * **value).sum::<f64>() / (count + EPSILON);
    let squares: f64 = values.iter().map(|(value, share)| share * (**value - mean).powi(2)).sum();
    // What differs and was sampled once, on several paths, is one value.
    let unbiased = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
    let variance = squares / (count + EPSILON) * unbiased;
    let scale = (variance + EPSILON).sqrt();
    values.iter_mut().for_each(|(value, _)| **value = (**value - mean) / scale);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_values_become_exactly_zero() {
        for count in 0..4 {
            let mut values = vec![0.1; count];
            whiten(values.iter_mut().map(|value| (value, 1.0)));
            assert!(values.iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    fn what_is_there_in_parts_counts_once() {
        let mut once = [1.0, 2.0, 6.0];
        whiten(once.iter_mut().map(|value| (value, 1.0)));
        let mut parts = [1.0, 2.0, 2.0, 6.0];
        whiten(parts.iter_mut().zip([1.0, 0.5, 0.5, 1.0]));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(once[0], parts[0]) && near(once[1], parts[2]) && near(once[2], parts[3]));
        // One token, on two paths.
        let mut single = [1.0, -1.0];
        whiten(single.iter_mut().map(|value| (value, 0.5)));
        assert!(near(single[0] + single[1], 0.0) && single[0].is_finite());
    }

    proptest! {
        #[test]
        fn mean_is_0_and_deviation_1(values in prop::collection::vec(-9.0..9.0, 3..30)) {
            let mut values: Vec<f64> = values;
            values[0] = 10.0;
            let order_before: Vec<bool> = values.windows(2).map(|pair| pair[0] < pair[1]).collect();
            whiten(values.iter_mut().map(|value| (value, 1.0)));
            let count = values.len() as f64;
            prop_assert!(values.iter().sum::<f64>().abs() < 1e-5);
            let variance = values.iter().map(|v| v * v).sum::<f64>() / (count - 1.0);
            prop_assert!((variance - 1.0).abs() < 1e-5);
            let order: Vec<bool> = values.windows(2).map(|pair| pair[0] < pair[1]).collect();
            prop_assert_eq!(order, order_before);
        }
    }
}
