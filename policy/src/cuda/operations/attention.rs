//! Attention over pages.
#![expect(unsafe_code, reason = "launches of kernels")]

use super::heads::LayerPages;
use super::{CHUNK, KEY_TILE, PAGE, TILE, blocks, expect, kernel_of, number};
use crate::cuda::DeviceError;
use crate::cuda::arguments::Arguments;
use crate::cuda::device::{Buffer, Device, Kind};
use crate::cuda::driver::{HeadKind, Kernel, Launch, Number};

/// Which tokens are matched.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct TokenMatch<'a> {
    /// `[heads, 2]`.
    pub(in crate::cuda) bias: &'a Buffer,
    /// `[row]`.
    pub(in crate::cuda) row_tokens: &'a Buffer,
    /// `[page, 32]`.
    pub(in crate::cuda) page_tokens: &'a Buffer,
}

/// The attention of a layer; see `kernels/attention.cuh`.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct DeviceAttention<'a> {
    pub(in crate::cuda) heads: usize,
    pub(in crate::cuda) key_heads: usize,
    pub(in crate::cuda) head_dim: usize,
    pub(in crate::cuda) window: usize,
    pub(in crate::cuda) rows: usize,
    pub(in crate::cuda) keys: LayerPages<'a>,
    pub(in crate::cuda) token_match: Option<TokenMatch<'a>>,
    /// Pages of the sequences.
    pub(in crate::cuda) tables: &'a Buffer,
    /// Four numbers each: first row, rows, position, start in the table.
    pub(in crate::cuda) tiles: &'a Buffer,
    /// The largest number of keys that a query has before it, itself included.
    pub(in crate::cuda) longest: usize,
}

/// Who sees the keys of a page; see `kernels/attention_backward.cu`.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct SeenPages<'a> {
    /// Where each page lies.
    pub(in crate::cuda) slots: &'a Buffer,
    /// Four numbers each: position, token before, range of `ranges`.
    pub(in crate::cuda) pages: &'a Buffer,
    /// Three numbers each: first row, rows, position.
    pub(in crate::cuda) ranges: &'a Buffer,
}

impl DeviceAttention<'_> {
    fn shape(&self) -> [u32; 4] {
        let scale = 1.0 / (self.head_dim as f32).sqrt();
        let window = u32::try_from(self.window).unwrap_or(u32::MAX);
        [self.heads as u32, self.key_heads as u32, window, scale.to_bits()]
    }

    fn layer(&self) -> [u64; 2] {
        [self.keys.page_stride as u64, self.keys.layer_start as u64]
    }

    fn match_addresses(&self) -> [u64; 3] {
        let addresses = |tokens: TokenMatch<'_>| {
            [tokens.bias.address(), tokens.row_tokens.address(), tokens.page_tokens.address()]
        };
        self.token_match.map_or([0; 3], addresses)
    }

    fn num_tiles(&self) -> usize {
        self.tiles.len() / 4
    }

    fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    fn kernel(&self, file: &'static str, name: &str, number: Number) -> Kernel {
        let heads = Some(HeadKind { width: self.head_dim, number });
        Kernel { heads, ..kernel_of(file, name, number) }
    }

    /// Elements of a row in shared memory.
    fn stride(&self, number: Number) -> usize {
        stride(self.head_dim, number)
    }
}

/// What the kernels have in shared memory besides what they are launched with.
const STATIC_SHARED_BYTES: usize = 1 << 10;
/// Memory for the parts of rows whose chunks of keys are computed apart.
const PART_BYTES: usize = 64 << 20;

/// Elements of a row of a head in shared memory.
fn stride(head_dim: usize, number: Number) -> usize {
    head_dim.next_multiple_of(16) + 16 / number.bytes()
}

/// Shared memory that a block of attention needs, forward and backward, for heads of so many channels.
pub(in crate::cuda) fn least_shared_bytes(head_dim: usize, number: Number) -> usize {
    4 * TILE * stride(head_dim, number) * number.bytes() + STATIC_SHARED_BYTES
}

impl Device {
    /// Attention: `out` is `[row, heads, head_dim]`, `log_sums` `[row, heads]`.
    pub(in crate::cuda) fn attention(
        &self,
        attention: &DeviceAttention<'_>,
        queries: &Buffer,
        out: &Buffer,
        log_sums: &Buffer,
    ) -> Result<(), DeviceError> {
        let number = number(queries);
        expect(queries, attention.keys.pages.kind(), attention.rows * attention.width());
        expect(out, queries.kind(), queries.len());
        expect(log_sums, Kind::F32, attention.rows * attention.heads);
        let (tiles, key_heads) = (attention.num_tiles(), attention.key_heads);
        let chunks = attention.longest.div_ceil(CHUNK);
        let stages = if number == Number::Bf16 { 4 } else { 2 };
        let depth = attention.head_dim.next_multiple_of(16);
        let of_tiles = stages * KEY_TILE * attention.stride(number) * number.bytes();
        // A block that goes through several chunks keeps its totals there as well.
        let totals = if chunks > 1 { TILE * depth * 4 } else { 0 };
        let has_room = of_tiles + totals + STATIC_SHARED_BYTES <= self.driver.shared_bytes();
        // Several blocks share the keys of few queries, and those of queries whose totals find no room.
        let splits = chunks > 1 && (tiles * key_heads < 2 * self.driver.processors() || !has_room);
        let of_tile = if splits { key_heads * chunks * TILE * (attention.head_dim + 2) } else { 0 };
        let at_once = if splits { (PART_BYTES / (4 * of_tile)).max(1) } else { tiles.max(1) };
        for first in (0..tiles).step_by(at_once) {
            let count = at_once.min(tiles - first);
            let parts =
                if splits { Some(self.allocate(Kind::F32, count * of_tile)?) } else { None };
            let of_these = attention.tiles.slice(4 * first..4 * (first + count));
            let arguments = Arguments::default().buffer(out).buffer(log_sums);
            let arguments = arguments.buffer_or_null(parts.as_ref()).buffer(queries);
            let arguments = arguments.buffer(attention.keys.pages).buffer(attention.tables);
            let arguments = arguments.buffer(&of_these).longs(&attention.layer());
            let arguments = arguments.words(&attention.shape());
            let arguments = arguments.longs(&attention.match_addresses());
            let along = if splits { chunks } else { 1 };
            let grid = [count as u32, key_heads as u32, along as u32];
            let shared = of_tiles + if splits { 0 } else { totals };
            let launch = Launch { grid, block: 128, shared_bytes: shared as u32 };
            let forward = attention.kernel("attention_forward", "attention_forward", number);
            // SAFETY: lengths have been checked; tiles and tables are the caller's to get right.
            unsafe { self.launch(&forward, launch, arguments)? };
            let Some(parts) = parts else { continue };
            let arguments = Arguments::default().buffer(out).buffer(log_sums).buffer(&parts);
            let arguments = arguments.buffer(&of_these).words(&attention.shape()).int(chunks);
            let grid = [count as u32, key_heads as u32, 1];
            let merge = attention.kernel("attention_forward", "attention_merge", number);
            // SAFETY: as above.
            unsafe {
                self.launch(&merge, Launch { grid, block: 128, shared_bytes: 0 }, arguments)?
            };
        }
        Ok(())
    }

    /// The gradients of [`Device::attention`]: of queries `[row, heads, head_dim]`, of keys and values
    /// `[page, 32, key_heads, head_dim]`, and added to `dbias` that of the bias.
    #[expect(clippy::too_many_arguments, reason = "a backward takes all that its forward took")]
    pub(in crate::cuda) fn attention_backward(
        &self,
        attention: &DeviceAttention<'_>,
        seen: SeenPages<'_>,
        queries: &Buffer,
        out: &Buffer,
        log_sums: &Buffer,
        dout: &Buffer,
        dqueries: &Buffer,
        (dkeys, dvalues): (&Buffer, &Buffer),
        dbias: Option<&Buffer>,
    ) -> Result<(), DeviceError> {
        let number = number(queries);
        let (rows, heads, key_heads) = (attention.rows, attention.heads, attention.key_heads);
        for buffer in [queries, out, dout] {
            expect(buffer, queries.kind(), rows * attention.width());
        }
        expect(dqueries, Kind::F32, rows * attention.width());
        expect(log_sums, Kind::F32, rows * heads);
        let pages = seen.slots.len();
        for buffer in [dkeys, dvalues] {
            expect(buffer, Kind::F32, pages * PAGE * key_heads * attention.head_dim);
        }
        expect(seen.pages, Kind::U32, 4 * pages);
        assert_eq!(attention.token_match.is_some(), dbias.is_some(), "a bias has a gradient");

        let deltas = self.allocate(Kind::F32, rows * heads)?;
        let arguments = Arguments::default().buffer(&deltas).buffer(out).buffer(dout);
        let grid = [blocks(rows * heads, 4), 1, 1];
        let kernel = attention.kernel("attention_backward", "attention_deltas", number);
        let launch = Launch { grid, block: 128, shared_bytes: 0 };
        // SAFETY: lengths have been checked.
        unsafe { self.launch(&kernel, launch, arguments.int(rows * heads))? };

        let row_bias = match dbias {
            Some(_) => Some(self.allocate(Kind::F32, rows * heads * 2)?),
            None => None,
        };
        let row_bytes = attention.stride(number) * number.bytes();
        let arguments = Arguments::default().buffer(dqueries).buffer_or_null(row_bias.as_ref());
        let arguments = arguments.buffer(queries).buffer(dout).buffer(log_sums).buffer(&deltas);
        let arguments = arguments.buffer(attention.keys.pages).buffer(attention.tables);
        let arguments = arguments.buffer(attention.tiles).longs(&attention.layer());
        let arguments = arguments.words(&attention.shape()).longs(&attention.match_addresses());
        let grid = [attention.num_tiles() as u32, key_heads as u32, 1];
        let shared_bytes = (4 * TILE * row_bytes) as u32;
        let kernel = attention.kernel("attention_backward", "attention_backward_queries", number);
        // SAFETY: lengths have been checked; tiles and tables are the caller's to get right.
        unsafe { self.launch(&kernel, Launch { grid, block: 128, shared_bytes }, arguments)? };
        if let (Some(row_bias), Some(dbias)) = (row_bias, dbias) {
            self.add_column_sums(&row_bias, dbias)?;
        }

        let arguments = Arguments::default().buffer(dkeys).buffer(dvalues).buffer(queries);
        let arguments = arguments.buffer(dout).buffer(log_sums).buffer(&deltas);
        let arguments = arguments.buffer(attention.keys.pages).buffer(seen.slots);
        let arguments = arguments.buffer(seen.pages).buffer(seen.ranges);
        let arguments = arguments.longs(&attention.layer()).words(&attention.shape());
        let arguments = arguments.longs(&attention.match_addresses());
        let grid = [pages as u32, key_heads as u32, 1];
        // Keys, values, and as many queries and their gradients.
        let shared_bytes = (4 * PAGE * row_bytes) as u32;
        let kernel = attention.kernel("attention_backward", "attention_backward_keys", number);
        // SAFETY: lengths have been checked; ranges and slots are the caller's to get right.
        unsafe { self.launch(&kernel, Launch { grid, block: 64, shared_bytes }, arguments) }
    }
}
