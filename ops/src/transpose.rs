//! Small transposes: how matrices are brought into the order that tiles read.
#![expect(unsafe_code, reason = "vector instructions and unchecked loads in an inner loop")]

use super::kernel::{Isa, PANEL};
use super::matrix::Element;

/// `target[p * target_stride + i] = source[i * row_stride + p]` for `i < rows` and `p < depth`.
///
/// # Safety
///
/// `source` must be valid for `rows` rows of `depth` elements, `target` for `depth` rows of `rows`
/// elements, and the machine must have `isa`.
pub(crate) unsafe fn interleave_rows<E: Element>(
    isa: Isa,
    source: *const E,
    row_stride: usize,
    rows: usize,
    depth: usize,
    target: *mut f32,
    target_stride: usize,
) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::Portable {
        while done < rows {
            // SAFETY: rows from `done` on, as many as are taken; the machine has 256-bit vectors.
            unsafe {
                let (source, target) = (source.add(done * row_stride), target.add(done));
                let take = |rows| (source, row_stride, depth, target, target_stride, rows);
                done += match rows - done {
                    8.. => x86::interleave::<E, 8>(take(8)),
                    6..=7 => x86::interleave::<E, 6>(take(6)),
                    4..=5 => x86::interleave::<E, 4>(take(4)),
                    2..=3 => x86::interleave::<E, 2>(take(2)),
                    _ => break,
                };
            }
        }
    }
    let _ = isa;
    for i in done..rows {
        for p in 0..depth {
            // SAFETY: the caller's promise.
            unsafe {
                *target.add(p * target_stride + i) = (*source.add(i * row_stride + p)).widen();
            }
        }
    }
}

/// `target[p * PANEL + i] = source[p * stride + i]` for `i < columns` and `p < depth`: packs adjacent
/// columns into a panel.
///
/// # Safety
///
/// `source` must be valid for `depth` rows of `columns <= PANEL` elements, `target` for `depth` rows
/// of a panel, and the machine must have `isa`.
pub(crate) unsafe fn copy_rows<E: Element>(
    isa: Isa,
    source: *const E,
    stride: usize,
    columns: usize,
    depth: usize,
    target: *mut f32,
) {
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::Portable && columns == PANEL {
        // SAFETY: the caller's promise; the machine has 256-bit vectors.
        return unsafe { x86::copy_whole_rows(source, stride, depth, target) };
    }
    let _ = isa;
    for p in 0..depth {
        for i in 0..columns {
            // SAFETY: the caller's promise.
            unsafe { *target.add(p * PANEL + i) = (*source.add(p * stride + i)).widen() };
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::load_transposed;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, _mm_store_sd, _mm_storeu_ps, _mm256_castpd_ps, _mm256_castpd256_pd128,
        _mm256_castps_pd, _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_permute2f128_ps,
        _mm256_setzero_ps, _mm256_storeu_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps,
        _mm256_unpacklo_pd, _mm256_unpacklo_ps,
    };

    use crate::kernel::PANEL;
    use crate::matrix::Element;

    /// Eight elements of each of `ROWS <= 8` rows, `stride` apart; entry `p` of the result holds
    /// element `p` of every row, and 0 beyond the last row.
    ///
    /// # Safety
    ///
    /// `source` must be valid for these rows.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    pub(crate) unsafe fn load_transposed<E: Element, const ROWS: usize>(
        source: *const E,
        stride: usize,
    ) -> [__m256; 8] {
        let row = |i: usize| {
            if i < ROWS {
                // SAFETY: the caller's promise.
                unsafe { E::load8(source.add(i * stride)) }
            } else {
                _mm256_setzero_ps()
            }
        };
        let pair = |a, b| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (t0, t1) = pair(row(0), row(1));
        let (t2, t3) = pair(row(2), row(3));
        let (t4, t5) = pair(row(4), row(5));
        let (t6, t7) = pair(row(6), row(7));
        let quad = |a: __m256, b: __m256| {
            let (a, b) = (_mm256_castps_pd(a), _mm256_castps_pd(b));
            (_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)))
        };
        let (q0, q1) = quad(t0, t2);
        let (q2, q3) = quad(t1, t3);
        let (q4, q5) = quad(t4, t6);
        let (q6, q7) = quad(t5, t7);
        let low = |a, b| _mm256_permute2f128_ps::<0x20>(a, b);
        let high = |a, b| _mm256_permute2f128_ps::<0x31>(a, b);
        [
            low(q0, q4),
            low(q1, q5),
            low(q2, q6),
            low(q3, q7),
            high(q0, q4),
            high(q1, q5),
            high(q2, q6),
            high(q3, q7),
        ]
    }

    /// # Safety
    ///
    /// As [`super::copy_rows`], for whole panels.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn copy_whole_rows<E: Element>(
        source: *const E,
        stride: usize,
        depth: usize,
        target: *mut f32,
    ) {
        for p in 0..depth {
            for first in (0..PANEL).step_by(8) {
                // SAFETY: the caller's promise.
                unsafe {
                    let eight = E::load8(source.add(p * stride + first));
                    _mm256_storeu_ps(target.add(p * PANEL + first), eight);
                }
            }
        }
    }

    type Block<E> = (*const E, usize, usize, *mut f32, usize, usize);

    /// Takes `ROWS` rows of `interleave_rows` and returns their number.
    ///
    /// # Safety
    ///
    /// As there.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn interleave<E: Element, const ROWS: usize>(block: Block<E>) -> usize {
        let (source, row_stride, depth, target, target_stride, rows) = block;
        let whole = depth / 8 * 8;
        for first in (0..whole).step_by(8) {
            // SAFETY: the rows have at least `first + 8` elements.
            let columns = unsafe { load_transposed::<E, ROWS>(source.add(first), row_stride) };
            for (p, column) in columns.into_iter().enumerate() {
                // SAFETY: `ROWS` elements from there on belong to the target.
                unsafe {
                    let target = target.add((first + p) * target_stride);
                    match ROWS {
                        8 => _mm256_storeu_ps(target, column),
                        6 => {
                            _mm_storeu_ps(target, _mm256_castps256_ps128(column));
                            let rest = _mm256_extractf128_ps::<1>(column);
                            let rest = std::arch::x86_64::_mm_castps_pd(rest);
                            _mm_store_sd(target.add(4).cast(), rest);
                        }
                        4 => _mm_storeu_ps(target, _mm256_castps256_ps128(column)),
                        _ => {
                            let pair = _mm256_castpd256_pd128(_mm256_castps_pd(column));
                            _mm_store_sd(target.cast(), pair);
                        }
                    }
                }
            }
        }
        for p in whole..depth {
            for i in 0..rows {
                // SAFETY: the caller's promise.
                unsafe {
                    *target.add(p * target_stride + i) = (*source.add(i * row_stride + p)).widen();
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_interleaved_on_every_instruction_set() {
        for isa in Isa::available() {
            for (rows, depth) in [(1, 3), (3, 8), (6, 21), (12, 16), (16, 33), (5, 9)] {
                let source: Vec<f32> = (0..rows * 40).map(|i| i as f32).collect();
                let mut target = vec![-1.0; depth * 17];
                // SAFETY: both have room for the strides used.
                unsafe {
                    let target = target.as_mut_ptr();
                    interleave_rows(isa, source.as_ptr(), 40, rows, depth, target, 17);
                }
                for (p, found) in target.chunks(17).enumerate() {
                    for (i, found) in found.iter().enumerate() {
                        let expected = if i < rows { (i * 40 + p) as f32 } else { -1.0 };
                        assert_eq!(*found, expected, "{isa:?}: row {i}, place {p}");
                    }
                }
            }
        }
    }
}
