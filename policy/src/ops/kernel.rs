//! The innermost loops, one twin per instruction set.
//!
//! Every twin computes each output element by the same chain of fused multiply-adds, so results
//! are equal to the bit on all of them, whatever the number of rows in a call.
#![expect(unsafe_code, reason = "vector instructions and unchecked loads in the innermost loop")]

use std::sync::OnceLock;

/// Columns of a panel: the width of a register tile.
pub(crate) const PANEL: usize = 32;
/// Most rows of a register tile.
const MAX_ROWS: usize = 12;

/// The instruction sets that there are twins for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What the compiler makes of plain Rust.
    Portable,
}

impl Isa {
    /// The best of this machine.
    pub(crate) fn detect() -> Self {
        static ISA: OnceLock<Isa> = OnceLock::new();
        *ISA.get_or_init(|| Self::available()[0])
    }

    /// All that this machine can run, best first.
    pub(crate) fn available() -> Vec<Self> {
        let mut available = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
            if fma
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                available.push(Self::Avx512);
            }
            if fma {
                available.push(Self::Avx2);
            }
        }
        available.push(Self::Portable);
        available
    }
}

/// Defines a function whose body is compiled once per instruction set and chosen when called.
///
/// The body is an `#[inline(always)]` function of its own, so that it takes on the features of
/// the twin that it is inlined into.
macro_rules! per_isa {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[expect(clippy::allow_attributes, reason = "not every twin is large")]
        #[allow(clippy::too_many_arguments, reason = "gradients take what their forward took")]
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                match $crate::ops::kernel::Isa::detect() {
                    // SAFETY: `Isa::detect` names only what this machine has.
                    $crate::ops::kernel::Isa::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    $crate::ops::kernel::Isa::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::ops::kernel::Isa::Portable => {}
                }
            }
            body($($argument),*)
        }
    };
}
pub(crate) use per_isa;

/// A matrix that is read element by element: `(row, column)` lies at `row * row_stride + column *
/// column_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

/// `out[row, ..width] (+)= left[row, ..depth] * panel[..depth, ..width]` for `rows` rows.
///
/// `panel` has the shape `[depth, PANEL]`; rows of `out` are `out_stride` apart.
#[expect(clippy::too_many_arguments, reason = "the innermost loop takes its strides as they are")]
pub(crate) fn multiply_panel(
    isa: Isa,
    left: Left<'_>,
    panel: &[f32],
    out: &mut [f32],
    out_stride: usize,
    rows: usize,
    depth: usize,
    width: usize,
    add: bool,
) {
    if rows == 0 || width == 0 {
        return;
    }
    assert!(width <= PANEL && panel.len() >= depth * PANEL, "panel holds depth x PANEL elements");
    if depth > 0 {
        let last = (rows - 1) * left.row_stride + (depth - 1) * left.column_stride;
        assert!(last < left.data.len(), "left matrix holds rows x depth elements");
    }
    assert!((rows - 1) * out_stride + width <= out.len(), "out holds rows x width elements");
    // A panel that is cut short by the matrix's edge goes through a buffer of whole rows.
    let mut edge = [0.0_f32; MAX_ROWS * PANEL];
    let mut row = 0;
    while row < rows {
        let tile = tile_rows(isa, rows - row);
        let source = if depth > 0 { row * left.row_stride } else { 0 };
        let start = row * out_stride;
        // SAFETY: the assertions above bound every element that the tile's rows touch in `left`,
        // `panel` and `out`; `edge` holds `MAX_ROWS` rows of a panel; `isa` is one this machine has.
        unsafe {
            let first = left.data.as_ptr().add(source);
            if width == PANEL {
                let out = Out { data: out.as_mut_ptr().add(start), stride: out_stride, add };
                run_tile(isa, tile, first, left, panel.as_ptr(), depth, out);
            } else {
                let out = Out { data: edge.as_mut_ptr(), stride: PANEL, add: false };
                run_tile(isa, tile, first, left, panel.as_ptr(), depth, out);
            }
        }
        if width < PANEL {
            for (i, result) in edge.chunks_exact(PANEL).take(tile).enumerate() {
                let start = start + i * out_stride;
                let target = &mut out[start..start + width];
                if add {
                    for (target, value) in target.iter_mut().zip(result) {
                        *target += value;
                    }
                } else {
                    target.copy_from_slice(&result[..width]);
                }
            }
        }
        row += tile;
    }
}

/// Where a tile goes: rows of a panel's width, `stride` apart, replaced or added to.
#[derive(Clone, Copy)]
struct Out {
    data: *mut f32,
    stride: usize,
    add: bool,
}

/// How many rows the next tile takes when `left` remain.
fn tile_rows(isa: Isa, left: usize) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => match left {
            12.. => 12,
            8..=11 => 8,
            4..=7 => 4,
            2..=3 => 2,
            _ => 1,
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => match left {
            6.. => 6,
            4..=5 => 4,
            _ => left,
        },
        Isa::Portable => left.min(3),
    }
}

/// # Safety
///
/// `first` must be valid for `tile` rows of `left`'s strides and `depth` columns, `panel` for
/// `depth * PANEL` elements, `out` for `tile` rows of `PANEL` elements; the machine must have `isa`.
unsafe fn run_tile(
    isa: Isa,
    tile: usize,
    first: *const f32,
    left: Left<'_>,
    panel: *const f32,
    depth: usize,
    out: Out,
) {
    let (rs, cs) = (left.row_stride, left.column_stride);
    // SAFETY: the caller's promise is the one these functions ask for.
    unsafe {
        match (isa, tile) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 12) => x86::tile_avx512::<12>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 8) => x86::tile_avx512::<8>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 4) => x86::tile_avx512::<4>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 2) => x86::tile_avx512::<2>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _) => x86::tile_avx512::<1>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 6) => x86::tile_avx2_halves::<6>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 4) => x86::tile_avx2_halves::<4>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 3) => x86::tile_avx2::<3>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 2) => x86::tile_avx2::<2>(first, rs, cs, panel, depth, out),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _) => x86::tile_avx2::<1>(first, rs, cs, panel, depth, out),
            (Isa::Portable, 3) => tile_portable::<3>(first, rs, cs, panel, depth, out),
            (Isa::Portable, 2) => tile_portable::<2>(first, rs, cs, panel, depth, out),
            (Isa::Portable, _) => tile_portable::<1>(first, rs, cs, panel, depth, out),
        }
    }
}

/// # Safety
///
/// As [`run_tile`], for `ROWS` rows.
unsafe fn tile_portable<const ROWS: usize>(
    first: *const f32,
    row_stride: usize,
    column_stride: usize,
    panel: *const f32,
    depth: usize,
    out: Out,
) {
    let mut sums = [[0.0_f32; PANEL]; ROWS];
    for p in 0..depth {
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row `i < ROWS` and column `p < depth`.
            let a = unsafe { *first.add(i * row_stride + p * column_stride) };
            for (j, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the panel has `depth` rows of `PANEL` elements.
                *sum = a.mul_add(unsafe { *panel.add(p * PANEL + j) }, *sum);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate() {
        for (j, sum) in sums.iter().enumerate() {
            // SAFETY: `out` holds `ROWS` rows of `PANEL` elements.
            unsafe {
                let target = out.data.add(i * out.stride + j);
                *target = if out.add { *target + sum } else { *sum };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::{Out, PANEL};

    /// # Safety
    ///
    /// As [`super::run_tile`], for `ROWS` rows.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn tile_avx512<const ROWS: usize>(
        first: *const f32,
        row_stride: usize,
        column_stride: usize,
        panel: *const f32,
        depth: usize,
        out: Out,
    ) {
        let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
        for p in 0..depth {
            // SAFETY: the panel has `depth` rows of 32 elements.
            let (b0, b1) = unsafe {
                (_mm512_loadu_ps(panel.add(p * PANEL)), _mm512_loadu_ps(panel.add(p * PANEL + 16)))
            };
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: row `i < ROWS` and column `p < depth`.
                let a = _mm512_set1_ps(unsafe { *first.add(i * row_stride + p * column_stride) });
                sums[0] = _mm512_fmadd_ps(a, b0, sums[0]);
                sums[1] = _mm512_fmadd_ps(a, b1, sums[1]);
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                // SAFETY: `out` holds `ROWS` rows of 32 elements.
                unsafe {
                    let target = out.data.add(i * out.stride + 16 * j);
                    let sum =
                        if out.add { _mm512_add_ps(_mm512_loadu_ps(target), *sum) } else { *sum };
                    _mm512_storeu_ps(target, sum);
                }
            }
        }
    }

    /// One half of the panel after the other, so that twelve sums, two elements of the panel and
    /// one of the left matrix fit into the sixteen registers.
    ///
    /// # Safety
    ///
    /// As [`super::run_tile`], for `ROWS` rows.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tile_avx2_halves<const ROWS: usize>(
        first: *const f32,
        row_stride: usize,
        column_stride: usize,
        panel: *const f32,
        depth: usize,
        out: Out,
    ) {
        for half in [0, PANEL / 2] {
            // SAFETY: the caller's promise; each half holds two vectors of eight columns.
            unsafe {
                let out = Out { data: out.data.add(half), ..out };
                block_avx2::<ROWS, 2>(
                    first,
                    row_stride,
                    column_stride,
                    panel.add(half),
                    depth,
                    out,
                );
            }
        }
    }

    /// For at most three rows, which need the whole panel's sums to keep the units busy.
    ///
    /// # Safety
    ///
    /// As [`super::run_tile`], for `ROWS` rows.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tile_avx2<const ROWS: usize>(
        first: *const f32,
        row_stride: usize,
        column_stride: usize,
        panel: *const f32,
        depth: usize,
        out: Out,
    ) {
        // SAFETY: the caller's promise; the panel holds four vectors of eight columns.
        unsafe { block_avx2::<ROWS, 4>(first, row_stride, column_stride, panel, depth, out) }
    }

    /// `VECTORS` vectors of eight columns each, from the first column of `panel` on.
    ///
    /// # Safety
    ///
    /// As [`super::run_tile`], for `ROWS` rows and `8 * VECTORS` columns.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn block_avx2<const ROWS: usize, const VECTORS: usize>(
        first: *const f32,
        row_stride: usize,
        column_stride: usize,
        panel: *const f32,
        depth: usize,
        out: Out,
    ) {
        let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
        for p in 0..depth {
            // SAFETY: row `i < ROWS` and column `p < depth`; the panel has `depth` rows.
            unsafe {
                let a = |i| _mm256_set1_ps(*first.add(i * row_stride + p * column_stride));
                let b = |j| _mm256_loadu_ps(panel.add(p * PANEL + 8 * j));
                if ROWS > VECTORS {
                    let b: [_; VECTORS] = std::array::from_fn(b);
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let a = a(i);
                        for (sum, b) in sums.iter_mut().zip(b) {
                            *sum = _mm256_fmadd_ps(a, b, *sum);
                        }
                    }
                } else {
                    // The fewer of both stay in registers.
                    let a: [_; ROWS] = std::array::from_fn(a);
                    for j in 0..VECTORS {
                        let b = b(j);
                        for (sums, a) in sums.iter_mut().zip(a) {
                            sums[j] = _mm256_fmadd_ps(a, b, sums[j]);
                        }
                    }
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                // SAFETY: `out` holds `ROWS` rows of these columns.
                unsafe {
                    let target = out.data.add(i * out.stride + 8 * j);
                    let sum =
                        if out.add { _mm256_add_ps(_mm256_loadu_ps(target), *sum) } else { *sum };
                    _mm256_storeu_ps(target, sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_twins_agree_to_the_bit() {
        for (rows, depth, width) in [(17, 45, 29), (17, 45, PANEL)] {
            let left: Vec<f32> = (0..rows * depth).map(|i| (i as f32 * 0.37).sin()).collect();
            let panel: Vec<f32> = (0..depth * PANEL).map(|i| (i as f32 * 0.11).cos()).collect();
            let run = |isa, rows| {
                let mut out = vec![1.0; rows * width];
                let left = Left { data: &left, row_stride: depth, column_stride: 1 };
                multiply_panel(isa, left, &panel, &mut out, width, rows, depth, width, true);
                out
            };
            let expected = run(Isa::Portable, rows);
            for isa in Isa::available() {
                assert_eq!(run(isa, rows), expected, "{isa:?}");
                // A row's result does not depend on how many rows stand beside it.
                assert_eq!(run(isa, 1)[..], expected[..width], "{isa:?}");
            }
        }
    }
}
