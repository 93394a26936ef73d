//! Matrices as they are kept: in single precision, or in half of it and widened where they are read.
//!
//! Widening is exact, so a product gives the same bits whichever of them holds its numbers.
#![expect(unsafe_code, reason = "vector instructions and unchecked loads in innermost loops")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, _mm_loadu_si128, _mm256_castsi256_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps,
    _mm256_loadu_ps, _mm256_slli_epi32,
};
use std::ops::Range;

/// The numbers of a matrix, by rows.
#[derive(Debug, Clone, Copy)]
pub enum Matrix<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// The upper halves of single-precision numbers.
    Bf16(&'a [u16]),
    /// Half precision, finite.
    F16(&'a [u16]),
}

impl<'a> From<&'a [f32]> for Matrix<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a Vec<f32>> for Matrix<'a> {
    fn from(values: &'a Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl<'a> Matrix<'a> {
    /// Elements.
    pub fn len(self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(bits) | Self::F16(bits) => bits.len(),
        }
    }

    /// One of its elements in single precision.
    ///
    /// # Panics
    ///
    /// When there are fewer.
    pub fn number(self, index: usize) -> f32 {
        match self {
            Self::F32(values) => values[index],
            Self::Bf16(bits) => Bf16(bits[index]).widen(),
            Self::F16(bits) => F16(bits[index]).widen(),
        }
    }

    /// Whether it has no element.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// A part of it.
    #[must_use]
    pub fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&values[range]),
            Self::Bf16(bits) => Self::Bf16(&bits[range]),
            Self::F16(bits) => Self::F16(&bits[range]),
        }
    }

    /// Its numbers in single precision; in `buffer` where they are not kept so.
    pub fn widened<'b>(self, buffer: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        buffer.clear();
        match self {
            Self::F32(values) => return values,
            Self::Bf16(bits) => buffer.extend(bits.iter().map(|bits| Bf16(*bits).widen())),
            Self::F16(bits) => buffer.extend(bits.iter().map(|bits| F16(*bits).widen())),
        }
        buffer
    }
}

/// A number as a matrix keeps it.
pub(crate) trait Element: Copy {
    /// In single precision.
    fn widen(self) -> f32;

    /// Eight adjacent numbers in single precision.
    ///
    /// # Safety
    ///
    /// `source` must be valid for eight numbers.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load8(source: *const Self) -> __m256;
}

/// The upper half of a single-precision number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bf16(pub(crate) u16);

/// A half-precision number, finite.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(pub(crate) u16);

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn load8(source: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(source) }
    }
}

impl Element for Bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn load8(source: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        let halves = unsafe { _mm_loadu_si128(source.cast()) };
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
    }
}

impl Element for F16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        /// What the bits of a half, in the places of a single's, are too small by.
        const FACTOR: f32 = f32::from_bits((127 + 112) << 23);
        let sign = u32::from(self.0 & 0x8000) << 16;
        let magnitude = f32::from_bits(u32::from(self.0 & 0x7fff) << 13) * FACTOR;
        f32::from_bits(magnitude.to_bits() | sign)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn load8(source: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(source.cast()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number by the definition of IEEE 754: exponent bits, bias and mantissa bits of the format.
    fn by_definition(bits: u16, mantissa_bits: i32, bias: i32) -> f64 {
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let exponent = i32::from((bits & 0x7fff) >> mantissa_bits);
        let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
        match exponent {
            0 => sign * mantissa * 2.0_f64.powi(1 - bias),
            exponent => sign * (1.0 + mantissa) * 2.0_f64.powi(exponent - bias),
        }
    }

    #[test]
    fn every_number_is_widened_exactly() {
        type Widen = fn(u16) -> f32;
        let bf16: Widen = |bits| Bf16(bits).widen();
        let f16: Widen = |bits| F16(bits).widen();
        for (infinite, mantissa_bits, bias, widen) in
            [(0x7f80, 7, 127, bf16), (0x7c00, 10, 15, f16)]
        {
            for bits in (0..=u16::MAX).filter(|bits| bits & 0x7fff < infinite) {
                let expected = by_definition(bits, mantissa_bits, bias);
                assert_eq!(f64::from(widen(bits)).to_bits(), expected.to_bits(), "{bits:#x}");
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn eight_at_a_time_are_the_same() {
        use crate::kernel::Isa;

        #[target_feature(enable = "avx2,fma,f16c")]
        fn check<E: Element>(numbers: &[E]) {
            for eight in numbers.chunks_exact(8) {
                // SAFETY: a chunk has eight numbers; the vector is as large as eight of them.
                let found: [f32; 8] = unsafe { std::mem::transmute(E::load8(eight.as_ptr())) };
                for (found, number) in found.into_iter().zip(eight) {
                    assert_eq!(found.to_bits(), number.widen().to_bits());
                }
            }
        }
        if Isa::detect() == Isa::Portable {
            return;
        }
        let finite = |infinite: u16| (0..=u16::MAX).filter(move |bits| bits & 0x7fff < infinite);
        // SAFETY: the machine has 256-bit vectors.
        unsafe {
            check(&finite(0x7f80).map(Bf16).collect::<Vec<_>>());
            check(&finite(0x7c00).map(F16).collect::<Vec<_>>());
            check(&(0..64).map(|i| i as f32 * 0.3).collect::<Vec<_>>());
        }
    }
}
