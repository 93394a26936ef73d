//! Finite differences, for the tests of every operation that is trained through.

/// Reproducible numbers of order 1.
pub fn numbers(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| ((i as f32 + 1.0) * step * 1.7).sin()).collect()
}

/// Asserts that `gradient` is the derivative of `loss` at `point`, by central differences.
///
/// # Panics
///
/// When they part by more than 0.5 % of the largest element of the gradient.
pub fn assert_gradient(point: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    const STEP: f32 = 1e-2;
    assert_eq!(point.len(), gradient.len());
    let scale = gradient.iter().fold(1e-3_f32, |scale, g| scale.max(g.abs()));
    for i in 0..point.len() {
        let shifted = |by: f32| {
            let mut point = point.to_vec();
            point[i] += by;
            loss(&point)
        };
        // Richardson's step removes the error of second order, which the coarse step would leave.
        let coarse = (shifted(STEP) - shifted(-STEP)) / (2.0 * f64::from(STEP));
        let fine = (shifted(STEP / 2.0) - shifted(-STEP / 2.0)) / f64::from(STEP);
        let expected = (4.0 * fine - coarse) / 3.0;
        let error = (f64::from(gradient[i]) - expected).abs() / f64::from(scale);
        assert!(error < 5e-3, "element {i}: gradient {} expected {expected}", gradient[i]);
    }
}
