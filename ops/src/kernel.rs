//! The innermost loops, one twin per instruction set.
//!
//! Every twin computes each output element by the same chain of multiply-adds, whatever the number of rows
//! in a call, so that on one machine a row's result is the same to the bit. Between machines it is the same
//! but for rounding: where the processor has no fused multiply-add, the portable twin does without.
#![expect(unsafe_code, reason = "vector instructions and unchecked loads in the innermost loop")]

use std::sync::OnceLock;

use super::matrix::Element;

/// Columns of a panel: the least width of a register tile.
pub(crate) const PANEL: usize = 16;
/// Most rows of a register tile.
const MAX_ROWS: usize = 12;
/// Most panels of a register tile.
pub(crate) const MAX_PANELS: usize = 2;
/// Columns of what [`multiply_wide`] multiplies by.
pub(crate) const WIDE: usize = MAX_PANELS * PANEL;

/// The instruction sets that there are twins for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit vectors with fused multiply-add and half precision.
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
            let fma = is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("f16c");
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

/// `a * b + c`, fused where the target has an instruction for it: elsewhere that would be a call of the
/// mathematical library for each number.
#[inline(always)]
pub(crate) fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(all(target_arch = "x86_64", not(target_feature = "fma"))) {
        a * b + c
    } else {
        a.mul_add(b, c)
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
                match $crate::kernel::Isa::detect() {
                    // SAFETY: `Isa::detect` names only what this machine has.
                    $crate::kernel::Isa::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    $crate::kernel::Isa::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::kernel::Isa::Portable => {}
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
    pub data: &'a [f32],
    pub row_stride: usize,
    pub column_stride: usize,
}

/// The product of some rows and adjacent panels: `out[i, ..] (+)= sum over p of left[i, p] *
/// right[p, ..]`.
///
/// Element `(i, p)` of the left matrix lies at `i * left_row + p * left_column`, row `p` of panel
/// `n` at `n * right_panel + p * right_row`, and row `i` of the result at `i * out_row`.
#[derive(Clone, Copy)]
pub(crate) struct Tile<E = f32> {
    pub left: *const f32,
    pub left_row: usize,
    pub left_column: usize,
    pub right: *const E,
    pub right_panel: usize,
    pub right_row: usize,
    /// What is read a while later, as much of it as of the right-hand side; [`run_columns`] has it
    /// fetched in the order of memory. Need not be valid.
    pub ahead: *const E,
    pub depth: usize,
    pub out: *mut f32,
    pub out_row: usize,
    /// Whether the sum is added to what is there.
    pub add: bool,
}

impl Tile {
    /// The tile with a right-hand side that is stored by columns, which are `stride` apart.
    pub(crate) fn with_columns<E>(
        self,
        columns: *const E,
        stride: usize,
        ahead: *const E,
    ) -> Tile<E> {
        let Self { left, left_row, left_column, depth, out, out_row, add, .. } = self;
        let (right, right_panel, right_row) = (columns, stride, 1);
        Tile {
            left,
            left_row,
            left_column,
            right,
            right_panel,
            right_row,
            ahead,
            depth,
            out,
            out_row,
            add,
        }
    }

    /// The tile with a right-hand side in panels that are `stride` apart.
    pub(crate) fn with_panels<E>(self, panels: *const E, stride: usize) -> Tile<E> {
        let tile = self.with_columns(panels, stride, std::ptr::null());
        Tile { right_row: PANEL, ..tile }
    }
}

impl Isa {
    /// How many rows a tile takes when `left` remain.
    pub(crate) fn tile_rows(self, left: usize) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => match left {
                12.. => 12,
                8..=11 => 8,
                4..=7 => 4,
                2..=3 => 2,
                _ => left,
            },
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => left.min(6),
            Self::Portable => left.min(3),
        }
    }

    /// How many panels a tile of so many rows takes at the most: enough sums to keep the units
    /// busy, and not more than there are registers for.
    pub(crate) fn tile_panels(self, rows: usize) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => 2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if rows <= 3 => 2,
            _ => 1,
        }
    }
}

/// Computes a tile of `width` columns, of which the last panel may be cut short.
///
/// # Safety
///
/// `rows` must be one of [`Isa::tile_rows`], `width` must not exceed the panels of
/// [`Isa::tile_panels`], and the machine must have `isa`. The left matrix must be valid for `rows`
/// by `depth` elements, each panel for `depth` rows of [`PANEL`] elements, also where it is cut
/// short, and the result for `rows` rows of `width` elements that nobody else touches meanwhile.
pub(crate) unsafe fn run_tile(isa: Isa, rows: usize, width: usize, tile: Tile) {
    let panels = width.div_ceil(PANEL);
    if width.is_multiple_of(PANEL) {
        // SAFETY: the caller's promise.
        unsafe { run_whole(isa, rows, panels, tile) };
        return;
    }
    let mut edge = [0.0_f32; MAX_ROWS * MAX_PANELS * PANEL];
    let whole = Tile { out: edge.as_mut_ptr(), out_row: panels * PANEL, add: false, ..tile };
    // SAFETY: the caller's promise; `edge` holds the rows of the most panels.
    unsafe { run_whole(isa, rows, panels, whole) };
    for (i, sums) in edge.chunks_exact(panels * PANEL).take(rows).enumerate() {
        // SAFETY: the result has `width` elements in row `i`.
        let target =
            unsafe { std::slice::from_raw_parts_mut(tile.out.add(i * tile.out_row), width) };
        for (target, sum) in target.iter_mut().zip(sums) {
            *target = if tile.add { *target + sum } else { *sum };
        }
    }
}

/// # Safety
///
/// As [`run_tile`], for whole panels.
unsafe fn run_whole(isa: Isa, rows: usize, panels: usize, tile: Tile) {
    // SAFETY: the caller's promise is the one these functions ask for.
    unsafe {
        match (isa, rows, panels) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 12, 2) => x86::tile_avx512::<12, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 12, _) => x86::tile_avx512::<12, 1>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 8, 2) => x86::tile_avx512::<8, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 8, _) => x86::tile_avx512::<8, 1>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 4, 2) => x86::tile_avx512::<4, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 4, _) => x86::tile_avx512::<4, 1>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 2, 2) => x86::tile_avx512::<2, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, 2, _) => x86::tile_avx512::<2, 1>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _, 2) => x86::tile_avx512::<1, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _, _) => x86::tile_avx512::<1, 1>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 6, _) => x86::tile_avx2::<f32, 6, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 5, _) => x86::tile_avx2::<f32, 5, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 4, _) => x86::tile_avx2::<f32, 4, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 3, 2) => x86::tile_avx2::<f32, 3, 4>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 3, _) => x86::tile_avx2::<f32, 3, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 2, 2) => x86::tile_avx2::<f32, 2, 4>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, 2, _) => x86::tile_avx2::<f32, 2, 2>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _, 2) => x86::tile_avx2::<f32, 1, 4>(tile),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _, _) => x86::tile_avx2::<f32, 1, 2>(tile),
            (Isa::Portable, 3, _) => tile_portable::<3>(tile),
            (Isa::Portable, 2, _) => tile_portable::<2>(tile),
            (Isa::Portable, _, _) => tile_portable::<1>(tile),
        }
    }
}

/// # Safety
///
/// As [`run_tile`], for `ROWS` rows and one panel.
unsafe fn tile_portable<const ROWS: usize>(tile: Tile) {
    let mut sums = [[0.0_f32; PANEL]; ROWS];
    for p in 0..tile.depth {
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row `i < ROWS` and column `p < depth`.
            let a = unsafe { *tile.left.add(i * tile.left_row + p * tile.left_column) };
            for (j, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the panel has `depth` rows of `PANEL` elements.
                let b = unsafe { *tile.right.add(p * tile.right_row + j) };
                *sum = multiply_add(a, b, *sum);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate() {
        for (j, sum) in sums.iter().enumerate() {
            // SAFETY: the result holds `ROWS` rows of `PANEL` elements.
            unsafe {
                let target = tile.out.add(i * tile.out_row + j);
                *target = if tile.add { *target + sum } else { *sum };
            }
        }
    }
}

/// `out[row, ..width] (+)= left[row, ..depth] * right[..depth, ..width]` for `rows` rows, on this
/// thread.
///
/// `right` has the shape `[depth, WIDE]`; rows of `out` are `out_stride` apart.
#[expect(clippy::too_many_arguments, reason = "the innermost loop takes its strides as they are")]
pub(crate) fn multiply_wide(
    isa: Isa,
    left: Left<'_>,
    right: &[f32],
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
    assert!(width <= WIDE && right.len() >= depth * WIDE, "right holds depth x WIDE elements");
    if depth > 0 {
        let last = (rows - 1) * left.row_stride + (depth - 1) * left.column_stride;
        assert!(last < left.data.len(), "left matrix holds rows x depth elements");
    }
    assert!((rows - 1) * out_stride + width <= out.len(), "out holds rows x width elements");
    let mut row = 0;
    while row < rows {
        let count = isa.tile_rows(rows - row);
        let columns = isa.tile_panels(count) * PANEL;
        for first in (0..width).step_by(columns) {
            let tile = Tile {
                left: left.data.as_ptr().wrapping_add(row * left.row_stride),
                left_row: left.row_stride,
                left_column: left.column_stride,
                right: right.as_ptr().wrapping_add(first),
                right_panel: PANEL,
                right_row: WIDE,
                ahead: std::ptr::null(),
                depth,
                out: out.as_mut_ptr().wrapping_add(row * out_stride + first),
                out_row: out_stride,
                add,
            };
            // SAFETY: the assertions above bound every element that the tile's rows touch; `isa` is
            // one this machine has.
            unsafe { run_tile(isa, count, columns.min(width - first), tile) };
        }
        row += count;
    }
}

/// A tile of one or two whole panels whose numbers are widened where they are read.
///
/// # Safety
///
/// As [`run_tile`], for at most [`MAX_COLUMN_ROWS`] rows.
pub(crate) unsafe fn run_panels<E: Element>(isa: Isa, rows: usize, panels: usize, tile: Tile<E>) {
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::Portable {
        // SAFETY: a machine with 512-bit vectors has 256-bit ones; the rest is the caller's promise.
        unsafe {
            match (rows, panels) {
                (3, 2) => x86::tile_avx2::<E, 3, 4>(tile),
                (3, _) => x86::tile_avx2::<E, 3, 2>(tile),
                (2, 2) => x86::tile_avx2::<E, 2, 4>(tile),
                (2, _) => x86::tile_avx2::<E, 2, 2>(tile),
                (_, 2) => x86::tile_avx2::<E, 1, 4>(tile),
                (_, _) => x86::tile_avx2::<E, 1, 2>(tile),
            }
        }
        return;
    }
    let _ = isa;
    for (i, column) in (0..rows).flat_map(|i| (0..panels * PANEL).map(move |j| (i, j))) {
        let mut sum = 0.0_f32;
        for p in 0..tile.depth {
            let place = column / PANEL * tile.right_panel + p * tile.right_row + column % PANEL;
            // SAFETY: the caller's promise.
            let (a, b) = unsafe {
                let a = *tile.left.add(i * tile.left_row + p * tile.left_column);
                (a, (*tile.right.add(place)).widen())
            };
            sum = multiply_add(a, b, sum);
        }
        // SAFETY: the result holds `rows` rows of these panels.
        unsafe {
            let target = tile.out.add(i * tile.out_row + column);
            *target = if tile.add { *target + sum } else { sum };
        }
    }
}

/// Rows that [`run_columns`] takes at the most.
pub(crate) const MAX_COLUMN_ROWS: usize = 3;

/// A tile of one whole panel whose right-hand side is stored by columns: column `j` begins at
/// `right + j * right_panel` and is contiguous. Reads it once, without packing it first.
///
/// # Safety
///
/// As [`run_tile`], for at most [`MAX_COLUMN_ROWS`] rows; the right-hand side must be valid for
/// [`PANEL`] columns of `depth` elements, and `left_column` must be 1.
pub(crate) unsafe fn run_columns<E: Element>(isa: Isa, rows: usize, tile: Tile<E>) {
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::Portable {
        // SAFETY: a machine with 512-bit vectors has 256-bit ones; the rest is the caller's promise.
        unsafe {
            match rows {
                3 => x86::columns_avx2::<E, 3>(tile),
                2 => x86::columns_avx2::<E, 2>(tile),
                _ => x86::columns_avx2::<E, 1>(tile),
            }
        }
        return;
    }
    let _ = isa;
    for j in 0..PANEL {
        for i in 0..rows {
            let mut sum = 0.0_f32;
            for p in 0..tile.depth {
                // SAFETY: the caller's promise.
                let (a, b) = unsafe {
                    (
                        *tile.left.add(i * tile.left_row + p),
                        (*tile.right.add(j * tile.right_panel + p)).widen(),
                    )
                };
                sum = multiply_add(a, b, sum);
            }
            // SAFETY: the result holds `rows` rows of a panel.
            unsafe {
                let target = tile.out.add(i * tile.out_row + j);
                *target = if tile.add { *target + sum } else { sum };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, _MM_HINT_T1, _mm_prefetch, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps,
        _mm256_set_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps,
        _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use std::ops::Range;

    use super::{PANEL, Tile};
    use crate::matrix::Element;
    use crate::transpose;

    /// Bytes at whose multiples addresses share a place in the nearest cache.
    const PAGE: usize = 4096;

    /// # Safety
    ///
    /// As [`super::run_tile`], for `ROWS` rows and `PANELS` whole panels.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn tile_avx512<const ROWS: usize, const PANELS: usize>(tile: Tile) {
        let mut sums = [[_mm512_setzero_ps(); PANELS]; ROWS];
        for p in 0..tile.depth {
            // SAFETY: panel `n < PANELS` and row `p < depth` of 16 elements.
            let b: [_; PANELS] = std::array::from_fn(|n| unsafe {
                _mm512_loadu_ps(tile.right.add(n * tile.right_panel + p * tile.right_row))
            });
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: row `i < ROWS` and column `p < depth`.
                let a = unsafe { *tile.left.add(i * tile.left_row + p * tile.left_column) };
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = _mm512_fmadd_ps(_mm512_set1_ps(a), b, *sum);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (n, sum) in sums.iter().enumerate() {
                // SAFETY: the result holds `ROWS` rows of these panels.
                unsafe {
                    let target = tile.out.add(i * tile.out_row + n * PANEL);
                    let sum =
                        if tile.add { _mm512_add_ps(_mm512_loadu_ps(target), *sum) } else { *sum };
                    _mm512_storeu_ps(target, sum);
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`super::run_tile`], for `ROWS` rows and whole panels of two vectors each.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn tile_avx2<E: Element, const ROWS: usize, const VECTORS: usize>(
        tile: Tile<E>,
    ) {
        let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
        for p in 0..tile.depth {
            // SAFETY: row `i < ROWS` and column `p < depth`; each panel has `depth` rows.
            unsafe {
                let a =
                    |i| _mm256_set1_ps(*tile.left.add(i * tile.left_row + p * tile.left_column));
                let b = |v| {
                    let panel = tile.right.add(v / 2 * tile.right_panel);
                    E::load8(panel.add(p * tile.right_row + v % 2 * 8))
                };
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
        // SAFETY: the result holds `ROWS` rows of these panels.
        unsafe { store_avx2(tile, sums) }
    }

    /// # Safety
    ///
    /// As [`super::run_columns`], for `ROWS` rows.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn columns_avx2<E: Element, const ROWS: usize>(tile: Tile<E>) {
        // Eight columns at a time are as many streams as the nearest cache and what follows memory
        // can do with. Only a single row of halves waits for its sums rather than for memory, if its
        // columns do not push each other out.
        let apart = tile.right_panel * size_of::<E>();
        let both = ROWS == 1 && size_of::<E>() < size_of::<f32>() && !apart.is_multiple_of(PAGE);
        // SAFETY: the caller's promise; the result holds `ROWS` rows of a panel.
        unsafe {
            let sums = if both {
                sum_columns::<E, ROWS, 2>(tile, 0)
            } else {
                let [first] = sum_columns::<E, ROWS, 1>(tile, 0);
                let [second] = sum_columns::<E, ROWS, 1>(tile, 1);
                [first, second]
            };
            let by_rows = std::array::from_fn(|i| [sums[0][i], sums[1][i]]);
            store_avx2::<E, ROWS, 2>(tile, by_rows);
        }
    }

    /// The sums of `VECTORS` times eight columns, from a vector of the panel on.
    ///
    /// # Safety
    ///
    /// As [`super::run_columns`], for `ROWS` rows.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn sum_columns<E: Element, const ROWS: usize, const VECTORS: usize>(
        tile: Tile<E>,
        first_vector: usize,
    ) -> [[__m256; ROWS]; VECTORS] {
        let mut sums = [[_mm256_setzero_ps(); ROWS]; VECTORS];
        // A whole cache line of each column at a time: more of them than the nearest cache has ways
        // push each other out where they are a power of two apart.
        let line = 64 / size_of::<E>();
        let (lines, eights) = (tile.depth / line * line, tile.depth / 8 * 8);
        let ahead = tile.ahead.wrapping_add(first_vector * 8 * tile.depth);
        for first in (0..lines).step_by(line) {
            // Columns side by side are as many streams of memory, more than the processor follows:
            // what comes next is fetched as one stream.
            for column in 0..8 * VECTORS {
                let ahead = ahead.wrapping_add(first * 8 * VECTORS + column * line);
                _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
            }
            for (vector, sums) in sums.iter_mut().enumerate() {
                // SAFETY: each vector has eight columns of `depth` elements, of which a line is read.
                unsafe { multiply_columns(sums, tile, first..first + line, first_vector + vector) };
            }
        }
        for (vector, sums) in sums.iter_mut().enumerate() {
            let vector = first_vector + vector;
            // SAFETY: as above, up to `depth`.
            unsafe { multiply_columns(sums, tile, lines..eights, vector) };
            for p in eights..tile.depth {
                // SAFETY: eight columns of `depth` elements each.
                let b = unsafe {
                    let e = |j: usize| {
                        (*tile.right.add((vector * 8 + j) * tile.right_panel + p)).widen()
                    };
                    _mm256_set_ps(e(7), e(6), e(5), e(4), e(3), e(2), e(1), e(0))
                };
                for (i, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: row `i < ROWS` and column `p < depth`.
                    let a = unsafe { *tile.left.add(i * tile.left_row + p) };
                    *sum = _mm256_fmadd_ps(_mm256_set1_ps(a), b, *sum);
                }
            }
        }
        sums
    }

    /// Steps of depth, a multiple of eight, for eight columns.
    ///
    /// # Safety
    ///
    /// As [`super::run_columns`]; these columns must have that many elements.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn multiply_columns<E: Element, const ROWS: usize>(
        sums: &mut [__m256; ROWS],
        tile: Tile<E>,
        steps: Range<usize>,
        vector: usize,
    ) {
        let columns = tile.right.wrapping_add(vector * 8 * tile.right_panel);
        for first in steps.step_by(8) {
            // SAFETY: the caller's promise.
            let b =
                unsafe { transpose::load_transposed::<E, 8>(columns.add(first), tile.right_panel) };
            for (p, b) in b.into_iter().enumerate() {
                for (i, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: row `i < ROWS` and column `first + p < depth`.
                    let a = unsafe { *tile.left.add(i * tile.left_row + first + p) };
                    *sum = _mm256_fmadd_ps(_mm256_set1_ps(a), b, *sum);
                }
            }
        }
    }

    /// # Safety
    ///
    /// The result of `tile` must hold `ROWS` rows of `VECTORS` vectors.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn store_avx2<E: Element, const ROWS: usize, const VECTORS: usize>(
        tile: Tile<E>,
        sums: [[__m256; VECTORS]; ROWS],
    ) {
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe {
                    let target = tile.out.add(i * tile.out_row + 8 * j);
                    let sum =
                        if tile.add { _mm256_add_ps(_mm256_loadu_ps(target), *sum) } else { *sum };
                    _mm256_storeu_ps(target, sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Bf16, F16};

    /// `out += left * right` for `rows` rows and one or two panels, cut to `width` columns.
    fn run(isa: Isa, rows: usize, depth: usize, width: usize, by_columns: bool) -> Vec<f32> {
        let left: Vec<f32> = (0..17 * depth).map(|i| (i as f32 * 0.37).sin()).collect();
        let panels: Vec<f32> = (0..2 * depth * PANEL).map(|i| (i as f32 * 0.11).cos()).collect();
        let mut columns = vec![0.0; 2 * depth * PANEL];
        for (i, value) in columns.iter_mut().enumerate() {
            let (p, column) = (i % depth, i / depth);
            *value = panels[(column / PANEL * depth + p) * PANEL + column % PANEL];
        }
        let mut out = vec![1.0; rows * width];
        let mut row = 0;
        while row < rows {
            let count = if by_columns {
                MAX_COLUMN_ROWS.min(rows - row)
            } else {
                isa.tile_rows(rows - row)
            };
            let group = if by_columns { PANEL } else { isa.tile_panels(count) * PANEL };
            for first in (0..width).step_by(group) {
                let tile = Tile {
                    left: left[row * depth..].as_ptr(),
                    left_row: depth,
                    left_column: 1,
                    right: panels[first * depth..].as_ptr(),
                    right_panel: depth * PANEL,
                    right_row: PANEL,
                    ahead: std::ptr::null(),
                    depth,
                    out: out[row * width + first..].as_mut_ptr(),
                    out_row: width,
                    add: true,
                };
                // SAFETY: the buffers above have the sizes that the strides ask for.
                unsafe {
                    if by_columns {
                        let right = columns[first * depth..].as_ptr();
                        let tile = Tile { right, right_panel: depth, ..tile };
                        run_columns(isa, count, tile);
                    } else {
                        run_tile(isa, count, group.min(width - first), tile);
                    }
                }
            }
            row += count;
        }
        out
    }

    /// Twins of different instruction sets agree but for the rounding of so many products.
    fn assert_close(found: &[f32], expected: &[f32], depth: usize, what: &str) {
        assert_eq!(found.len(), expected.len());
        let tolerance = 2.0 * depth as f32 * f32::EPSILON;
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}");
        }
    }

    #[test]
    fn a_row_is_the_same_beside_any_others_and_twins_agree_but_for_rounding() {
        for (rows, depth, width) in [(17, 45, 29), (17, 45, 2 * PANEL), (12, 64, PANEL), (5, 8, 3)]
        {
            let portable = run(Isa::Portable, rows, depth, width, false);
            for isa in Isa::available() {
                let expected = run(isa, rows, depth, width, false);
                assert_close(&expected, &portable, depth, &format!("{isa:?}"));
                for rows in 1..=rows {
                    // A row's result does not depend on how many rows stand beside it.
                    let found = run(isa, rows, depth, width, false);
                    assert_eq!(found[..], expected[..rows * width], "{isa:?}, {rows} rows");
                }
            }
        }
    }

    #[test]
    fn what_is_stored_by_columns_gives_the_same_bits() {
        for (depth, width) in [(1, PANEL), (8, 2 * PANEL), (45, PANEL), (45, 2 * PANEL)] {
            for isa in Isa::available() {
                let expected = run(isa, 6, depth, width, false);
                for rows in 1..=6 {
                    let found = run(isa, rows, depth, width, true);
                    assert_eq!(found[..], expected[..rows * width], "{isa:?}, {rows} rows");
                }
            }
        }
    }

    #[test]
    fn halves_by_columns_are_widened_exactly() {
        fn run<E: Element>(isa: Isa, rows: usize, depth: usize, columns: &[E]) -> Vec<f32> {
            let left: Vec<f32> = (0..3 * depth).map(|i| (i as f32 * 0.37).sin()).collect();
            let mut out = vec![1.0; rows * PANEL];
            let tile = Tile {
                left: left.as_ptr(),
                left_row: depth,
                left_column: 1,
                right: std::ptr::null(),
                right_panel: 0,
                right_row: 0,
                ahead: std::ptr::null(),
                depth,
                out: out.as_mut_ptr(),
                out_row: PANEL,
                add: true,
            };
            // SAFETY: the buffers have the sizes that the strides ask for.
            unsafe {
                run_columns(isa, rows, tile.with_columns(columns.as_ptr(), depth, columns.as_ptr()))
            };
            out
        }
        fn check<E: Element>(rows: usize, depth: usize, columns: &[E]) {
            let singles: Vec<f32> = columns.iter().map(|number| number.widen()).collect();
            for isa in Isa::available() {
                let expected = run(isa, rows, depth, &singles);
                let found = run(isa, rows, depth, columns);
                assert_eq!(found, expected, "{isa:?}, {rows} rows, depth {depth}");
            }
        }
        for depth in [1, 8, 31, 32, 45, 64, 105, 2048] {
            let bits = |i: usize| 0x3c00 + (i as u16).wrapping_mul(977) % 0x300;
            let bf16: Vec<Bf16> = (0..depth * PANEL).map(|i| Bf16(bits(i) + 0x200)).collect();
            let f16: Vec<F16> = (0..depth * PANEL).map(|i| F16(bits(i) | 0x8000)).collect();
            for rows in 1..=MAX_COLUMN_ROWS {
                check(rows, depth, &bf16);
                check(rows, depth, &f16);
            }
        }
    }
}
