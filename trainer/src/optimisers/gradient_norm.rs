//! The length of a gradient.

use spar_policy::ops::elementwise::{scale_all, sum_of_squares};

/// The Euclidean length of a gradient, summed in `f64` in an order of its own.
pub fn global_norm(gradient: &[f32]) -> f64 {
    sum_of_squares(gradient).sqrt()
}

/// Shortens a gradient to the length `max_norm` where it is longer, and returns its length before.
///
/// As PyTorch's `clip_grad_norm_`, without the 1e-6 in its denominator. A gradient that is not
/// finite stays as it is.
pub fn clip_global_norm(gradient: &mut [f32], max_norm: f64) -> f64 {
    let norm = global_norm(gradient);
    if let Some(factor) = clip_factor(norm, max_norm) {
        scale_all(gradient, factor);
    }
    norm
}

/// By what a gradient of this length is multiplied to be no longer than `max_norm`.
pub(crate) fn clip_factor(norm: f64, max_norm: f64) -> Option<f32> {
    (norm.is_finite() && norm > max_norm).then(|| (max_norm / norm) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_gradients_are_shortened_and_short_ones_left_alone() {
        let mut gradient = vec![3.0, -4.0];
        assert_eq!(clip_global_norm(&mut gradient, 10.0), 5.0);
        assert_eq!(gradient, [3.0, -4.0]);
        assert_eq!(clip_global_norm(&mut gradient, 1.0), 5.0);
        assert!((global_norm(&gradient) - 1.0).abs() < 1e-6);
    }
}
