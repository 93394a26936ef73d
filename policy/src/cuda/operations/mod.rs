//! The kernels as functions on buffers.
//!
//! Every function checks the lengths that its kernel relies on; what indices point at is the caller's
//! to get right.
#![expect(unsafe_code, reason = "launches of kernels")]

mod adamw;
mod attention;
mod draw;
mod elementwise;
mod embedding;
mod head_tile;
mod heads;
mod linear;
mod low_rank;
mod norms;
mod sums;

pub(super) use self::attention::{DeviceAttention, SeenPages, TokenMatch, least_shared_bytes};
pub(super) use self::draw::ROOM;
pub(crate) use self::draw::{Candidates, Drawing, Drawn, Truncation};
pub(super) use self::head_tile::HeadTile;
pub(super) use self::heads::{HeadsShape, LayerPages};
pub(super) use self::linear::Columns;
pub(super) use self::low_rank::LowRank;
use super::DeviceError;
use super::arguments::Arguments;
use super::device::{Buffer, Device, Kind};
use super::driver::{Kernel, Launch, Number};

/// Rows whose sums are added up first; fixed, because it takes part in the rounding.
const PIECE_ROWS: usize = 64;
/// Queries of a tile, the heads of a key head counted.
pub(super) const TILE: usize = 64;
/// Keys of a tile.
const KEY_TILE: usize = 64;
/// Keys after which a softmax is begun anew.
pub(super) const CHUNK: usize = 512;
/// Tokens of a page.
const PAGE: usize = spar_ops::page::PAGE;

fn kernel(file: &'static str, name: &str) -> Kernel {
    Kernel { file, heads: None, name: name.to_owned() }
}

fn kernel_of(file: &'static str, name: &str, number: Number) -> Kernel {
    kernel(file, &format!("{name}_{}", number.suffix()))
}

/// The number type of a buffer.
fn number(buffer: &Buffer) -> Number {
    match buffer.kind() {
        Kind::Number(number) => number,
        Kind::U32 => panic!("a buffer of numbers holds indices"),
    }
}

fn expect(buffer: &Buffer, kind: Kind, len: usize) {
    assert_eq!((buffer.kind(), buffer.len()), (kind, len), "what a kernel relies on");
}

/// Threads for a row, whole warps of them.
fn threads(width: usize) -> u32 {
    width.next_multiple_of(32).clamp(32, 256) as u32
}

fn blocks(count: usize, of: usize) -> u32 {
    count.div_ceil(of) as u32
}

impl Device {
    /// # Safety
    ///
    /// The arguments are those of the kernel, and its buffers are as long as it reads and writes.
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: Launch,
        arguments: Arguments,
    ) -> Result<(), DeviceError> {
        if launch.grid.contains(&0) {
            return Ok(());
        }
        // SAFETY: as this function's.
        unsafe { self.driver.launch(kernel, launch, &arguments) }
    }
}
