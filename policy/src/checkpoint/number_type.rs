//! Types of numbers that weights are stored as.

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::HalfType;

/// How weights are stored. They are computed with in single precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberType {
    /// Single precision, four bytes; nothing is lost.
    #[default]
    F32,
    /// The upper half of a single-precision number: its range with 8 bits of precision.
    Bf16,
    /// Half precision: 11 bits, up to 65,504.
    F16,
}

impl From<HalfType> for NumberType {
    fn from(half: HalfType) -> Self {
        match half {
            HalfType::Bf16 => Self::Bf16,
            HalfType::F16 => Self::F16,
        }
    }
}

impl NumberType {
    /// The type of a tensor in a file; `None` for those that are not read.
    pub(super) fn from_file(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F32 => Some(Self::F32),
            Dtype::BF16 => Some(Self::Bf16),
            Dtype::F16 => Some(Self::F16),
            _ => None,
        }
    }

    pub(super) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }

    /// The same among the types of two bytes.
    pub fn half(self) -> Option<HalfType> {
        match self {
            Self::F32 => None,
            Self::Bf16 => Some(HalfType::Bf16),
            Self::F16 => Some(HalfType::F16),
        }
    }

    /// Bytes of a number.
    pub(super) fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    /// Name in `config.json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::F16 => "float16",
        }
    }

    /// Reads as many numbers as `values` has from as many bytes.
    pub(crate) fn decode(self, bytes: &[u8], values: &mut [f32]) {
        let halves = || bytes.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
        match self {
            Self::F32 => {
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *value = f32::from_le_bytes(*bytes);
                }
            }
            Self::Bf16 => {
                for (value, half) in values.iter_mut().zip(halves()) {
                    *value = f32::from_bits(u32::from(half) << 16);
                }
            }
            Self::F16 => {
                for (value, half) in values.iter_mut().zip(halves()) {
                    *value = from_half(half);
                }
            }
        }
    }

    /// Writes finite numbers, rounded to the nearest that the type has, to the even one of two;
    /// `Err` has the index of the first that is too large for it.
    pub(super) fn encode(self, values: &[f32]) -> Result<Vec<u8>, usize> {
        let mut bytes = Vec::with_capacity(values.len() * self.size());
        let convert = |value: f32| match self {
            Self::Bf16 => (to_bf16(value), 0x7f80),
            _ => (to_half(value), 0x7c00),
        };
        if self == Self::F32 {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            return Ok(bytes);
        }
        for (index, value) in values.iter().enumerate() {
            let (half, infinite) = convert(*value);
            if half & 0x7fff >= infinite {
                return Err(index);
            }
            bytes.extend(half.to_le_bytes());
        }
        Ok(bytes)
    }
}

/// An IEEE half-precision number, exactly.
fn from_half(half: u16) -> f32 {
    let sign = if half >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 1023));
    sign * match exponent {
        // 2^-24 for each unit of a subnormal number.
        0 => fraction as f32 / 16_777_216.0,
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        _ => f32::from_bits((exponent + 127 - 15) << 23 | fraction << 13),
    }
}

/// The nearest bf16 number, the even one of two.
pub(crate) fn to_bf16(value: f32) -> u16 {
    // What is no number stays so: the sum would carry it into the sign.
    let bits = if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The nearest IEEE half-precision number, the even one of two.
pub(crate) fn to_half(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7e00;
    }
    let bits = value.to_bits();
    let (sign, bits) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    let half = if bits < 0x3880_0000 {
        // Below 2^-14 a half has the precision that single numbers from 1/2 on have.
        (f32::from_bits(bits) + 0.5).to_bits() - 0.5_f32.to_bits()
    } else if bits >= 0x4780_0000 {
        0x7c00
    } else {
        (bits + 0xfff + (bits >> 13 & 1) - (112 << 23)) >> 13
    };
    sign | half as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_read_exactly() {
        for (half, expected) in [
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(from_half(half), expected);
        }
        assert!(from_half(0x7e00).is_nan());
    }

    #[test]
    fn every_half_comes_back() {
        for half in 0..=u16::MAX {
            let (from_f16, from_bf16) = (from_half(half), f32::from_bits(u32::from(half) << 16));
            if from_f16.is_finite() {
                assert_eq!(to_half(from_f16), half);
            }
            if from_bf16.is_finite() {
                assert_eq!(to_bf16(from_bf16), half);
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_and_to_even() {
        // Between every two neighbours: the middle goes to the even one, all else to the nearer.
        let check = |type_: NumberType, low: u16, infinite: u16| {
            let number = |half: u16| {
                let mut value = [0.0];
                type_.decode(&half.to_le_bytes(), &mut value);
                value[0]
            };
            let (a, b) = (number(low), number(low + 1));
            if low + 1 == infinite {
                return;
            }
            let middle = ((f64::from(a) + f64::from(b)) / 2.0) as f32;
            let even = if low.is_multiple_of(2) { low } else { low + 1 };
            for (value, expected) in
                [(middle, even), (middle.next_down(), low), (middle.next_up(), low + 1)]
            {
                let bytes = type_.encode(&[value, -value]).unwrap();
                let [first, second] = [0, 2].map(|i| u16::from_le_bytes([bytes[i], bytes[i + 1]]));
                assert_eq!((first, second), (expected, expected | 0x8000), "{type_:?} {value:e}");
            }
        };
        for low in (0..0x7bff).step_by(7).chain([0x3ff, 0x400, 0x7bfe]) {
            check(NumberType::F16, low, 0x7c00);
        }
        // Subnormal numbers of both types have middles that single precision cannot hold.
        for low in (0x80..0x7f7f).step_by(7).chain([0x7f7e]) {
            check(NumberType::Bf16, low, 0x7f80);
        }
        assert_eq!(NumberType::F16.encode(&[1.0, 65519.0, 65520.0]), Err(2));
        assert_eq!(NumberType::Bf16.encode(&[f32::MAX]), Err(0));
        assert_eq!(NumberType::F32.encode(&[1.5]), Ok(1.5_f32.to_le_bytes().to_vec()));
    }
}
