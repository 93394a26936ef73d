//! All weights of a model in half precision.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{to_bf16, to_half};
use crate::{ParameterKind, ParameterSpec, Parameters};
use spar_ops::Matrix;

/// A number of two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HalfType {
    /// The upper half of a single-precision number: its range with 8 bits of precision.
    Bf16,
    /// Half precision: 11 bits, up to 65,504.
    F16,
}

impl HalfType {
    /// The nearest number of this type, the even one of two; infinite where it is too large.
    pub(crate) fn round(self, value: f32) -> u16 {
        match self {
            Self::Bf16 => to_bf16(value),
            Self::F16 => to_half(value),
        }
    }

    /// Whether a finite number becomes infinite.
    pub(crate) fn overflows(self, value: f32) -> bool {
        let infinite = match self {
            Self::Bf16 => 0x7f80,
            Self::F16 => 0x7c00,
        };
        self.round(value) & 0x7fff >= infinite
    }
}

/// All weights of a model, matrices in half precision and vectors in single precision.
///
/// Matrices lie at their places in the layout of [`Parameters`]; products widen them where they read
/// them.
#[derive(Debug, Clone, PartialEq)]
pub struct HalfParameters {
    specs: Arc<[ParameterSpec]>,
    half: HalfType,
    bits: Vec<u16>,
    vectors: Vec<f32>,
    /// Where each vector begins in the layout, and where in `vectors`.
    places: Vec<(usize, usize)>,
}

/// Elements that are worth a piece of their own.
const PIECE: usize = 1 << 16;

impl HalfParameters {
    /// Zeros in the layout of `specs`.
    pub fn zeros(specs: Arc<[ParameterSpec]>, half: HalfType) -> Self {
        let len = specs.last().map_or(0, |spec| spec.range().end);
        let mut places = Vec::new();
        let mut end = 0;
        for spec in specs.iter().filter(|spec| spec.kind == ParameterKind::Vector) {
            places.push((spec.offset, end));
            end += spec.len();
        }
        Self { specs, half, bits: vec![0; len], vectors: vec![0.0; end], places }
    }

    /// `parameters`, all rounded to the nearest.
    pub fn rounded(parameters: &Parameters, half: HalfType) -> Self {
        let mut rounded = Self::zeros(parameters.specs.clone(), half);
        let pieces = rounded.bits.par_chunks_mut(PIECE).zip(parameters.data.par_chunks(PIECE));
        pieces.for_each(|(bits, values)| {
            for (bits, value) in bits.iter_mut().zip(values) {
                *bits = half.round(*value);
            }
        });
        for spec in parameters.specs.iter().filter(|spec| spec.kind == ParameterKind::Vector) {
            let mut values = Vec::new();
            rounded.matrix(&spec.range()).widened(&mut values);
            rounded.write(spec, 0, &values);
        }
        rounded
    }

    /// What lies where.
    pub fn specs(&self) -> &Arc<[ParameterSpec]> {
        &self.specs
    }

    /// The type of the matrices' numbers.
    pub fn half_type(&self) -> HalfType {
        self.half
    }

    /// Bytes that the numbers take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.bits[..]) + size_of_val(&self.vectors[..])
    }

    /// Sets numbers of a parameter from element `first` on: a matrix's are rounded, a vector's stay as
    /// they are.
    pub fn write(&mut self, spec: &ParameterSpec, first: usize, values: &[f32]) {
        if spec.kind == ParameterKind::Vector {
            let start = self.place(spec.offset) + first;
            self.vectors[start..start + values.len()].copy_from_slice(values);
            return;
        }
        let start = spec.offset + first;
        for (bits, value) in self.bits[start..].iter_mut().zip(values) {
            *bits = self.half.round(*value);
        }
    }

    /// Whether a matrix has these numbers from element `first` on, once they are rounded.
    pub(crate) fn holds(&self, spec: &ParameterSpec, first: usize, values: &[f32]) -> bool {
        let start = spec.offset + first;
        let is_zero = |bits: u16| bits & 0x7fff == 0;
        self.bits[start..start + values.len()].iter().zip(values).all(|(bits, value)| {
            let other = self.half.round(*value);
            *bits == other || (is_zero(*bits) && is_zero(other))
        })
    }

    /// In single precision.
    pub fn widened(&self) -> Parameters {
        let mut data = vec![0.0; self.bits.len()];
        let pieces = data.par_chunks_mut(PIECE).zip(self.bits.par_chunks(PIECE));
        pieces.for_each(|(values, bits)| {
            values.copy_from_slice(self.numbers(bits).widened(&mut Vec::new()));
        });
        for spec in self.specs.iter().filter(|spec| spec.kind == ParameterKind::Vector) {
            data[spec.range()].copy_from_slice(self.vector(&spec.range()));
        }
        Parameters { specs: self.specs.clone(), data: data.into() }
    }

    /// All places of the layout, of which those of matrices count.
    pub(crate) fn bits_mut(&mut self) -> &mut [u16] {
        &mut self.bits
    }

    /// The matrices in a range of the layout.
    pub(crate) fn matrix(&self, range: &Range<usize>) -> Matrix<'_> {
        self.numbers(&self.bits[range.clone()])
    }

    /// The vectors in a range of the layout that lie side by side.
    pub(crate) fn vector(&self, range: &Range<usize>) -> &[f32] {
        if range.is_empty() {
            return &[];
        }
        let start = self.place(range.start);
        &self.vectors[start..start + range.len()]
    }

    fn numbers<'a>(&self, bits: &'a [u16]) -> Matrix<'a> {
        match self.half {
            HalfType::Bf16 => Matrix::Bf16(bits),
            HalfType::F16 => Matrix::F16(bits),
        }
    }

    fn place(&self, offset: usize) -> usize {
        let index = self.places.binary_search_by_key(&offset, |(start, _)| *start);
        self.places[index.expect("a vector begins there")].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        let mut parameters = Parameters::zeros(vec![
            ("m".to_owned(), vec![3, 5], ParameterKind::Matrix),
            ("v".to_owned(), vec![4], ParameterKind::Vector),
            ("w".to_owned(), vec![2], ParameterKind::Vector),
            ("e".to_owned(), vec![2, 2], ParameterKind::Embedding),
            ("z".to_owned(), vec![3], ParameterKind::Vector),
        ]);
        for (i, value) in parameters.data.iter_mut().enumerate() {
            *value = (i as f32 * 0.7).sin();
        }
        parameters
    }

    #[test]
    fn rounding_is_done_once() {
        for half in [HalfType::Bf16, HalfType::F16] {
            let original = parameters();
            let rounded = HalfParameters::rounded(&original, half);
            let widened = rounded.widened();
            assert_ne!(widened, original);
            assert_eq!(HalfParameters::rounded(&widened, half), rounded);
            for (value, original) in widened.data.iter().zip(&original.data) {
                assert!((value - original).abs() <= original.abs() / 256.0);
            }
            // Vectors that lie side by side are one.
            assert_eq!(rounded.vector(&(15..21)), &widened.data[15..21]);
            assert_eq!(rounded.vector(&(25..28)), &widened.data[25..28]);
            assert_eq!(rounded.vector(&(0..0)), &[] as &[f32]);
            assert_eq!(rounded.bytes(), 28 * 2 + 9 * 4);
        }
    }

    #[test]
    fn vectors_keep_what_is_written() {
        let original = parameters();
        let mut halves = HalfParameters::zeros(original.specs.clone(), HalfType::Bf16);
        for spec in original.specs.iter() {
            let values = original.view(spec);
            halves.write(spec, 0, &values[..2]);
            halves.write(spec, 2, &values[2..]);
        }
        let widened = halves.widened();
        for spec in original.specs.iter() {
            let is_equal = widened.view(spec) == original.view(spec);
            assert_eq!(is_equal, spec.kind == ParameterKind::Vector, "{}", spec.name);
        }
    }
}
