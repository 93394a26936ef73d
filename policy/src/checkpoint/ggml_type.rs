//! How ggml stores numbers, and what they stand for.
//!
//! Source: the blocks of ggml, `ggml-common.h` and `dequantize_row_*` in `ggml-quants.c`. Products and sums are rounded to single
//! precision where the package `gguf` rounds them, which transformers widens such files with, so that the numbers are the same to
//! the bit.

use super::NumberType;

/// Numbers of a block of the types `*_K`.
const SUPER_BLOCK: usize = 256;

/// How the numbers of a tensor are stored: in blocks along its rows, each with scales of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GgmlType {
    F32,
    F16,
    Bf16,
    /// `d q`, of 4 bits about 8.
    Q4_0,
    /// `d q + m`, of 4 bits.
    Q4_1,
    /// `d q`, of 5 bits about 16.
    Q5_0,
    /// `d q + m`, of 5 bits.
    Q5_1,
    /// `d q`, of 8 bits.
    Q8_0,
    /// `d s q - e m`, of 2 bits; scales `s` and `m` of 4 bits for every 16 numbers.
    Q2K,
    /// `d s q`, of 3 bits about 4; a scale of 6 bits about 32 for every 16.
    Q3K,
    /// `d s q - e m`, of 4 bits; scales of 6 bits for every 32.
    Q4K,
    /// As `Q4K`, of 5 bits.
    Q5K,
    /// `d s q`, of 6 bits about 32; a scale of 8 bits for every 16.
    Q6K,
}

impl GgmlType {
    /// All that are read.
    pub(super) const ALL: [Self; 13] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    /// The type of a number in a file; `None` for those that are not read.
    pub(super) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.row().0 == number)
    }

    /// As ggml writes it.
    pub(super) fn name(self) -> &'static str {
        self.row().1
    }

    /// Numbers of a block.
    pub(super) fn block_len(self) -> usize {
        self.row().2
    }

    /// Bytes of a block.
    pub(super) fn block_bytes(self) -> usize {
        self.row().3
    }

    /// What the numbers lose nothing as.
    pub(super) fn number_type(self) -> NumberType {
        match self {
            Self::F16 => NumberType::F16,
            Self::Bf16 => NumberType::Bf16,
            _ => NumberType::F32,
        }
    }

    /// Number in a file, name, numbers and bytes of a block.
    fn row(self) -> (u32, &'static str, usize, usize) {
        match self {
            Self::F32 => (0, "F32", 1, 4),
            Self::F16 => (1, "F16", 1, 2),
            Self::Q4_0 => (2, "Q4_0", 32, 18),
            Self::Q4_1 => (3, "Q4_1", 32, 20),
            Self::Q5_0 => (6, "Q5_0", 32, 22),
            Self::Q5_1 => (7, "Q5_1", 32, 24),
            Self::Q8_0 => (8, "Q8_0", 32, 34),
            Self::Q2K => (10, "Q2_K", SUPER_BLOCK, 84),
            Self::Q3K => (11, "Q3_K", SUPER_BLOCK, 110),
            Self::Q4K => (12, "Q4_K", SUPER_BLOCK, 144),
            Self::Q5K => (13, "Q5_K", SUPER_BLOCK, 176),
            Self::Q6K => (14, "Q6_K", SUPER_BLOCK, 210),
            Self::Bf16 => (30, "BF16", 1, 2),
        }
    }

    /// Reads whole blocks into as many numbers as they hold.
    pub(super) fn widen(self, bytes: &[u8], values: &mut [f32]) {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => self.number_type().decode(bytes, values),
            Self::Q4_0 => blocks(bytes, values, q4_0),
            Self::Q4_1 => blocks(bytes, values, q4_1),
            Self::Q5_0 => blocks(bytes, values, q5_0),
            Self::Q5_1 => blocks(bytes, values, q5_1),
            Self::Q8_0 => blocks(bytes, values, q8_0),
            Self::Q2K => blocks(bytes, values, q2_k),
            Self::Q3K => blocks(bytes, values, q3_k),
            Self::Q4K => blocks(bytes, values, q4_k),
            Self::Q5K => blocks(bytes, values, q5_k),
            Self::Q6K => blocks(bytes, values, q6_k),
        }
    }
}

/// Widens block by block.
fn blocks<const BYTES: usize, const LEN: usize>(
    bytes: &[u8],
    values: &mut [f32],
    widen: impl Fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    for (block, values) in bytes.as_chunks().0.iter().zip(values.as_chunks_mut().0) {
        widen(block, values);
    }
}

/// The half-precision number at a byte.
fn half(block: &[u8], at: usize) -> f32 {
    let mut value = [0.0];
    NumberType::F16.decode(&block[at..at + 2], &mut value);
    value[0]
}

/// The nibble of number `i` of 32, the upper ones behind all lower ones.
fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 16] >> (i / 16 * 4) & 15
}

/// Bit `i` of 32.
fn bit(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 8] >> (i % 8) & 1
}

fn q4_0(block: &[u8; 18], values: &mut [f32; 32]) {
    let d = half(block, 0);
    for (i, value) in values.iter_mut().enumerate() {
        *value = d * (f32::from(nibble(&block[2..], i)) - 8.0);
    }
}

fn q4_1(block: &[u8; 20], values: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    for (i, value) in values.iter_mut().enumerate() {
        *value = d * f32::from(nibble(&block[4..], i)) + m;
    }
}

fn q5_0(block: &[u8; 22], values: &mut [f32; 32]) {
    let d = half(block, 0);
    for (i, value) in values.iter_mut().enumerate() {
        let q = nibble(&block[6..], i) | bit(&block[2..6], i) << 4;
        *value = d * (f32::from(q) - 16.0);
    }
}

fn q5_1(block: &[u8; 24], values: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    for (i, value) in values.iter_mut().enumerate() {
        let q = nibble(&block[8..], i) | bit(&block[4..8], i) << 4;
        *value = d * f32::from(q) + m;
    }
}

fn q8_0(block: &[u8; 34], values: &mut [f32; 32]) {
    let d = half(block, 0);
    for (value, q) in values.iter_mut().zip(&block[2..]) {
        *value = d * f32::from(q.cast_signed());
    }
}

/// The bits of number `i` that lie two in a byte's pair, four to a byte: those of 32 numbers side by side, then the next 32.
fn pair(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3
}

fn q2_k(block: &[u8; 84], values: &mut [f32; 256]) {
    let (scales, q) = (&block[..16], &block[16..80]);
    let (d, e) = (half(block, 80), half(block, 82));
    for (part, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let (s, m) = (d * f32::from(scales[part] & 15), e * f32::from(scales[part] >> 4));
        for (i, value) in values.iter_mut().enumerate() {
            *value = s * f32::from(pair(q, part * 16 + i)) - m;
        }
    }
}

fn q3_k(block: &[u8; 110], values: &mut [f32; 256]) {
    let (high, q, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let d = half(block, 108);
    for (part, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let low = scales[part % 8] >> (part / 8 * 4) & 15;
        let scale = low | (scales[8 + part % 4] >> (part / 4 * 2) & 3) << 4;
        let s = d * (f32::from(scale) - 32.0);
        for (i, value) in values.iter_mut().enumerate() {
            let i = part * 16 + i;
            // The third bit is kept inverted: where it is not set, 4 is taken off.
            let third = high[i % 32] >> (i / 32) & 1;
            *value = s * (f32::from(pair(q, i)) - f32::from((third ^ 1) << 2));
        }
    }
}

/// Scale and minimum, of 6 bits each, of one of eight parts: the first four in the lower bits of eight bytes, the others in nibbles
/// of the last four, their upper bits above the first ones.
fn scale_and_minimum(scales: &[u8], part: usize) -> (f32, f32) {
    let (s, m) = if part < 4 {
        (scales[part] & 63, scales[part + 4] & 63)
    } else {
        let both = scales[part + 4];
        let upper = |byte: u8| byte >> 2 & 0x30;
        (both & 15 | upper(scales[part - 4]), both >> 4 | upper(scales[part]))
    };
    (f32::from(s), f32::from(m))
}

fn q4_k(block: &[u8; 144], values: &mut [f32; 256]) {
    let (d, e, q) = (half(block, 0), half(block, 2), &block[16..]);
    for (part, values) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (s, m) = scale_and_minimum(&block[4..16], part);
        let (s, m) = (d * s, e * m);
        for (i, value) in values.iter_mut().enumerate() {
            *value = s * f32::from(q[part / 2 * 32 + i] >> (part % 2 * 4) & 15) - m;
        }
    }
}

fn q5_k(block: &[u8; 176], values: &mut [f32; 256]) {
    let (d, e, high, q) = (half(block, 0), half(block, 2), &block[16..48], &block[48..]);
    for (part, values) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (s, m) = scale_and_minimum(&block[4..16], part);
        let (s, m) = (d * s, e * m);
        for (i, value) in values.iter_mut().enumerate() {
            let low = q[part / 2 * 32 + i] >> (part % 2 * 4) & 15;
            *value = s * f32::from(low | (high[i] >> part & 1) << 4) - m;
        }
    }
}

fn q6_k(block: &[u8; 210], values: &mut [f32; 256]) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half(block, 208);
    for (part, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let s = d * f32::from(scales[part].cast_signed());
        for (i, value) in values.iter_mut().enumerate() {
            let i = part * 16 + i;
            let nibble = low[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4) & 15;
            *value = s * (f32::from(nibble | pair(high, i) << 4) - 32.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_numbers_of_a_file_have_their_types() {
        for kind in GgmlType::ALL {
            assert_eq!(GgmlType::of(kind.row().0), Some(kind));
        }
        // Q8_1, which only sums are kept in, and IQ2_XXS.
        assert_eq!((GgmlType::of(9), GgmlType::of(16)), (None, None));
        assert_eq!(GgmlType::Bf16.number_type(), NumberType::Bf16);
    }

    #[test]
    fn blocks_stand_for_what_their_formulas_say() {
        let one = 0x3c00_u16.to_le_bytes();
        let mut block = [0; 20];
        block[..2].copy_from_slice(&one);
        block[2..4].copy_from_slice(&one);
        block[4] = 0x52;
        let mut values = [0.0; 32];
        GgmlType::Q4_1.widen(&block, &mut values);
        assert_eq!((values[0], values[16], values[1]), (3.0, 6.0, 1.0));
        let mut block = [0xff; 34];
        block[..2].copy_from_slice(&one);
        GgmlType::Q8_0.widen(&block, &mut values);
        assert_eq!(values, [-1.0; 32]);
    }
}
