//! A device is tried before it is relied upon.

use super::device::Kind;
use super::driver::Number;
use super::{Device, DeviceError};

/// Rows, columns and depth of the product.
const SHAPE: (usize, usize, usize) = (16, 24, 32);
/// What rounding to bf16 may take from a number of this trial, relative to the largest.
const TOLERANCE: f32 = 2e-2;

impl Device {
    /// Computes a product and runs a kernel, in the numbers that decoders use there, and looks whether what
    /// comes out is right: a driver, a compiler and libraries that open may still not work together.
    ///
    /// # Errors
    ///
    /// What failed, or [`DeviceError::WrongResult`].
    pub fn try_out(&self) -> Result<(), DeviceError> {
        let (rows, columns, depth) = SHAPE;
        let numbers = |count: usize, step: f32| -> Vec<f32> {
            // Representable in bf16.
            (0..count).map(|i| ((i as f32 * step).sin() * 16.0).round() / 16.0).collect()
        };
        let (left, right) = (numbers(rows * depth, 0.7), numbers(columns * depth, 0.3));
        let gain = vec![1.0_f32; columns];

        // 1. A product of the library, 2. a kernel on what came of it.
        let [of_left, of_right, of_gain] =
            [&left, &right, &gain].map(|values| self.upload_numbers(Number::Bf16, values));
        let (of_left, of_right, of_gain) = (of_left?, of_right?, of_gain?);
        let product = self.allocate(Kind::F32, rows * columns)?;
        self.multiply((&of_left, false), (&of_right, true), &product, rows, columns, depth, false)?;
        let normed = self.allocate(Kind::Number(Number::Bf16), rows * columns)?;
        let inverse = self.allocate(Kind::F32, rows)?;
        self.rms_norm(&product, &of_gain, 1e-6, &normed, &inverse)?;

        // 3. The same here.
        let dot = |i: usize, j: usize| -> f32 {
            let pairs = left[i * depth..][..depth].iter().zip(&right[j * depth..][..depth]);
            pairs.map(|(a, b)| a * b).sum()
        };
        let expected: Vec<f32> =
            (0..rows * columns).map(|at| dot(at / columns, at % columns)).collect();
        let norm = |row: &[f32]| -> Vec<f32> {
            let squares: f32 = row.iter().map(|value| value * value).sum();
            let inverse = 1.0 / (squares / columns as f32 + 1e-6).sqrt();
            row.iter().map(|value| value * inverse).collect()
        };
        let expected_norm: Vec<f32> = expected.chunks_exact(columns).flat_map(norm).collect();
        compare("a product", &product.read()?, &expected, 1e-3)?;
        compare("a norm", &normed.read()?, &expected_norm, TOLERANCE)
    }
}

/// An error where a number is further from what it should be than a part of the largest.
fn compare(
    what: &'static str,
    found: &[f32],
    expected: &[f32],
    tolerance: f32,
) -> Result<(), DeviceError> {
    let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        // What is no number is not close to any.
        let is_close = (found - expected).abs() <= tolerance * largest;
        if !is_close {
            let (found, expected) = (found.to_string(), expected.to_string());
            return Err(DeviceError::WrongResult { what, found, expected });
        }
    }
    Ok(())
}
