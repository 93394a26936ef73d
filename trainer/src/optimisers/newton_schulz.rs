//! The orthogonal matrix nearest to a given one, roughly and quickly.

use spar_policy::ops::matmul::{Output, Panels, multiply};

/// Coefficients of the quintic whose iterates come near 1 fastest.
const COEFFICIENTS: (f32, f32, f32) = (3.4445, -4.7750, 2.0315);
const EPSILON: f32 = 1e-7;

/// Replaces a matrix by one with the same singular vectors and singular values near 1.
///
/// For `matrix = U S V^T` of shape `[rows, columns]`, stored by rows, the result is `U S' V^T` with
/// `S'` within about 0.7 to 1.2 for singular values that are not tiny. With `X` divided by its
/// Frobenius norm, each of the `iterations` does
///
/// ```text
/// A = X X^T        X <- 3.4445 X + (-4.7750 A + 2.0315 A A) X
/// ```
///
/// on the side that makes `A` small. Source: Jordan et al., "Muon" (2024). Here in `f32`, where
/// the original uses bfloat16. A matrix of zeros stays one.
pub fn orthogonalize(matrix: &mut [f32], rows: usize, columns: usize, iterations: usize) {
    let norm = super::global_norm(matrix) as f32;
    matrix.iter_mut().for_each(|value| *value /= norm.max(EPSILON));
    let is_tall = rows > columns;
    let (short, long) = (rows.min(columns), rows.max(columns));
    let mut x = if is_tall { transposed(matrix, rows, columns) } else { matrix.to_vec() };
    let (a, b, c) = COEFFICIENTS;
    let mut gram = vec![0.0; short * short];
    let mut polynomial = vec![0.0; short * short];
    let mut product = vec![0.0; short * long];
    for _ in 0..iterations {
        multiply(&x, &Panels::from_transposed(&x, short, long), &mut gram, short, Output::Set);
        let gram_panels = Panels::from_rows(&gram, short, short);
        multiply(&gram, &gram_panels, &mut polynomial, short, Output::Set);
        for (value, linear) in polynomial.iter_mut().zip(&gram) {
            *value = b * linear + c * *value;
        }
        let x_panels = Panels::from_rows(&x, short, long);
        multiply(&polynomial, &x_panels, &mut product, short, Output::Set);
        for (value, change) in x.iter_mut().zip(&product) {
            *value = a * *value + change;
        }
    }
    let result = if is_tall { transposed(&x, short, long) } else { x };
    matrix.copy_from_slice(&result);
}

fn transposed(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; matrix.len()];
    for (row, values) in matrix.chunks_exact(columns.max(1)).enumerate() {
        for (column, value) in values.iter().enumerate() {
            out[column * rows + row] = *value;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::Rng;
    use spar_core::Seed;

    use super::*;

    fn random(rows: usize, columns: usize, seed: u64) -> Vec<f32> {
        let mut rng = Seed::from_u64(seed).rng();
        (0..rows * columns).map(|_| rng.next_u32() as f32 / u32::MAX as f32 - 0.5).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn singular_values_come_near_one(
            rows in 1usize..40, extra in 8usize..40, is_tall: bool, seed: u64,
        ) {
            // Clearly oblong, so that the singular values of random numbers stay away from 0.
            let (short, long) = (rows, 2 * rows + extra);
            let (rows, columns) = if is_tall { (long, short) } else { (short, long) };
            let mut matrix = random(rows, columns, seed);
            orthogonalize(&mut matrix, rows, columns, 5);
            let x = if is_tall { transposed(&matrix, rows, columns) } else { matrix };
            // Every direction is stretched by a singular value: |x^T d| / |d|.
            for trial in 0..8 {
                let direction = random(1, short, seed ^ trial);
                let image: Vec<f32> = (0..long)
                    .map(|j| (0..short).map(|i| direction[i] * x[i * long + j]).sum())
                    .collect();
                let stretch = super::super::global_norm(&image)
                    / super::super::global_norm(&direction);
                prop_assert!((0.6..1.3).contains(&stretch), "stretch {}", stretch);
            }
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        let mut matrix = vec![0.0; 12];
        orthogonalize(&mut matrix, 3, 4, 5);
        assert_eq!(matrix, [0.0; 12]);
    }
}
