//! Normalisation over a whole batch.

/// Added to counts and variances, as verl does.
const EPSILON: f64 = 1e-8;

/// Mean and variance of values, each counting as much as its share says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Whitening {
    /// `sum s x / (n + 1e-8)`, `n = sum s`.
    pub(super) mean: f64,
    /// `sum s (x - mean)^2 / (n + 1e-8) * n / (n - 1)`.
    pub(super) variance: f64,
    /// Whether no two values differ.
    pub(super) all_equal: bool,
}

impl Whitening {
    /// Of the finite ones among these values with their shares.
    pub(super) fn of(values: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let values = values.filter(|(value, _)| value.is_finite());
        let first = values.clone().next().map(|(value, _)| value);
        let all_equal = values.clone().all(|(value, _)| Some(value) == first);
        let count: f64 = values.clone().map(|(_, share)| share).sum();
        let mean =
            values.clone().map(|(value, share)| share * value).sum::<f64>() / (count + EPSILON);
        let squares: f64 = values.map(|(value, share)| share * (value - mean).powi(2)).sum();
        // What differs and was sampled once, on several paths, is one value.
        let unbiased = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
        Self { mean, variance: squares / (count + EPSILON) * unbiased, all_equal }
    }
}

/// Gives the values mean 0 and deviation 1, all of them together, each counting as much as its share says: what several
/// trajectories have in common counts once.
///
/// `x' = (x - mean) / sqrt(variance + 1e-8)` with the mean and variance of [`Whitening`]: verl's `masked_whiten`, where
/// all shares are 1. Deviation: where all values are equal, one alone among them, they become exactly 0, where the rounding
/// of the mean would leave crumbs or the division fail. Values that are not finite count in nothing and become 0.
pub(super) fn whiten<'v>(values: impl IntoIterator<Item = (&'v mut f64, f64)>) {
    let mut values: Vec<(&mut f64, f64)> = values.into_iter().collect();
    let Whitening { mean, variance, all_equal } =
        Whitening::of(values.iter().map(|(value, share)| (**value, *share)));
    let scale = (variance + EPSILON).sqrt();
    for (value, _) in &mut values {
        let is_told = !all_equal && value.is_finite();
        **value = if is_told { (**value - mean) / scale } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::test_vectors::{cases, masked_rows};
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

    #[test]
    fn statistics_equal_the_reference() {
        cases("masked_stats", |case, near| {
            let mask = &case.inputs["mask"];
            let values: Vec<f64> = masked_rows(&case.inputs["values"], mask).concat();
            let found = Whitening::of(values.iter().map(|value| (*value, 1.0)));
            near(found.mean, case.outputs["masked_mean"].as_f64().unwrap());
            near(found.variance, case.outputs["masked_var_unbiased"].as_f64().unwrap());
            let count = values.len() as f64;
            let biased = found.variance * (count - 1.0) / count;
            near(biased, case.outputs["masked_var_biased"].as_f64().unwrap());
            let mut white = values;
            whiten(white.iter_mut().map(|value| (value, 1.0)));
            let shift = if case.params["shift_mean"].as_bool().unwrap() { 0.0 } else { found.mean };
            let expected = masked_rows(&case.outputs["masked_whiten"], mask).concat();
            white.iter().zip(expected).for_each(|(value, expected)| near(value + shift, expected));
        });
    }

    #[test]
    fn what_is_not_finite_counts_in_nothing() {
        let mut values = [1.0, f64::NAN, 3.0, f64::INFINITY];
        whiten(values.iter_mut().map(|value| (value, 1.0)));
        assert_eq!([values[1], values[3]], [0.0, 0.0]);
        assert!((values[0] + values[2]).abs() < 1e-7 && values[2] > 0.5);
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
