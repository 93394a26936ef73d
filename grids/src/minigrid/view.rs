//! What an agent sees.

use super::object::{Cell, STEPS};
use super::world::World;

/// Columns and rows of what an agent sees.
pub const VIEW_SIZE: usize = 7;

/// What an agent sees: a square of cells in front of it, of which it stands in the middle of the lowest row and looks up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Column by column: kind, colour and state of each cell; all 0 where nothing can be seen.
    pub codes: [[u8; 3]; VIEW_SIZE * VIEW_SIZE],
}

impl View {
    /// What the agent of a world sees.
    pub(crate) fn of(world: &World, through_walls: bool) -> Self {
        const LAST: i8 = VIEW_SIZE as i8 - 1;
        const MIDDLE: usize = VIEW_SIZE / 2;
        let (dx, dy) = STEPS[usize::from(world.direction & 3)];
        let (width, height) = (world.width, world.height);
        // From the far left corner, columns go to the right and rows towards the agent.
        let left = world.agent.x + dx * LAST + dy * MIDDLE as i8;
        let top = world.agent.y + dy * LAST - dx * MIDDLE as i8;
        let mut cells = [[Cell::WALL; VIEW_SIZE]; VIEW_SIZE];
        let mut clear = [0_u8; VIEW_SIZE];
        for (row, (cells, clear)) in cells.iter_mut().zip(&mut clear).enumerate() {
            let (mut x, mut y) = (left - dx * row as i8, top - dy * row as i8);
            for (column, place) in cells.iter_mut().enumerate() {
                if x >= 0 && y >= 0 && x < width && y < height {
                    *place = world.cells[y as usize * width as usize + x as usize];
                    *clear |= u8::from(world.is_clear(*place)) << column;
                }
                (x, y) = (x - dy, y + dx);
            }
        }
        let seen = if through_walls { [0x7f; VIEW_SIZE] } else { visible(&clear) };
        cells[VIEW_SIZE - 1][MIDDLE] = world.carrying;
        let mut codes = [[0; 3]; VIEW_SIZE * VIEW_SIZE];
        for row in 0..VIEW_SIZE {
            for column in 0..VIEW_SIZE {
                if seen[row] >> column & 1 != 0 {
                    codes[column * VIEW_SIZE + row] = world.code(cells[row][column]);
                }
            }
        }
        Self { codes }
    }

    /// The code at a column from the left and a row from the far end.
    pub fn code(&self, column: usize, row: usize) -> [u8; 3] {
        self.codes[column * VIEW_SIZE + row]
    }
}

/// Which cells of each row can be seen, where some are clear: sight spreads sideways and away from the agent, through
/// cells that can be seen and are clear.
fn visible(clear: &[u8; VIEW_SIZE]) -> [u8; VIEW_SIZE] {
    let mut seen = [0_u8; VIEW_SIZE];
    seen[VIEW_SIZE - 1] = 1 << (VIEW_SIZE / 2);
    for row in (0..VIEW_SIZE).rev() {
        let mut here = seen[row];
        let mut beyond = if row > 0 { seen[row - 1] } else { 0 };
        for column in 0..VIEW_SIZE - 1 {
            let bit = 1 << column;
            if here & clear[row] & bit != 0 {
                here |= bit << 1;
                beyond |= bit | bit << 1;
            }
        }
        for column in (1..VIEW_SIZE).rev() {
            let bit = 1_u8 << column;
            if here & clear[row] & bit != 0 {
                here |= bit >> 1;
                beyond |= bit | bit >> 1;
            }
        }
        seen[row] = here;
        if row > 0 {
            seen[row - 1] = beyond;
        }
    }
    seen
}
