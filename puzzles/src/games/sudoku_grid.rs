//! Grids of Sudokus: filled from a seed, and emptied as long as one solution is left.

use std::sync::OnceLock;

use spar_python::Random;

use crate::ItemError;
use crate::python_set::PythonSet;

/// A grid of `N` by `N` cells, 4 or 9; 0 is an empty cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid<const N: usize> {
    cells: [[u8; N]; N],
    /// Numbers that each row, column and box has, a bit each.
    rows: [u16; N],
    columns: [u16; N],
    boxes: [u16; N],
}

/// Numbers in the order in which the package tries them. In the large grid that is the order in which Python walks the set
/// of those that are possible.
fn order<const N: usize>(possible: u16) -> &'static [u8] {
    static TABLES: [OnceLock<Vec<Vec<u8>>>; 2] = [OnceLock::new(), OnceLock::new()];
    let is_large = N == 9;
    let table = TABLES[usize::from(is_large)].get_or_init(|| {
        let of =
            |possible: u16| (1..=N as u8).filter(move |number| possible >> (number - 1) & 1 == 1);
        (0..1_u16 << N)
            .map(|possible| {
                if !is_large {
                    return of(possible).collect();
                }
                let mut set = PythonSet::new();
                of(possible).for_each(|number| set.insert(u64::from(number), number));
                set.iter().copied().collect()
            })
            .collect()
    });
    &table[usize::from(possible)]
}

impl<const N: usize> Grid<N> {
    const ALL: u16 = (1 << N) - 1;
    const BOX: usize = if N == 9 { 3 } else { 2 };

    fn empty() -> Self {
        Self { cells: [[0; N]; N], rows: [0; N], columns: [0; N], boxes: [0; N] }
    }

    /// The cells, row by row.
    pub(crate) fn rows(&self) -> Vec<Vec<u8>> {
        self.cells.iter().map(|row| row.to_vec()).collect()
    }

    fn box_of(row: usize, column: usize) -> usize {
        row / Self::BOX * Self::BOX + column / Self::BOX
    }

    fn put(&mut self, row: usize, column: usize, number: u8) {
        self.cells[row][column] = number;
        self.flip(row, column, number);
    }

    fn take(&mut self, row: usize, column: usize) -> u8 {
        let number = std::mem::take(&mut self.cells[row][column]);
        self.flip(row, column, number);
        number
    }

    fn flip(&mut self, row: usize, column: usize, number: u8) {
        let bit = 1 << (number - 1);
        self.rows[row] ^= bit;
        self.columns[column] ^= bit;
        self.boxes[Self::box_of(row, column)] ^= bit;
    }

    fn possible(&self, row: usize, column: usize) -> u16 {
        Self::ALL & !(self.rows[row] | self.columns[column] | self.boxes[Self::box_of(row, column)])
    }

    /// A full grid: the boxes on the diagonal are drawn, and the rest is tried in order.
    pub(crate) fn solved(rng: &mut Random) -> Result<Self, ItemError> {
        const MOST_TRIES: u64 = 100;
        for _ in 0..MOST_TRIES {
            let mut grid = Self::empty();
            for start in (0..N).step_by(Self::BOX) {
                let mut numbers: Vec<u8> = (1..=N as u8).collect();
                rng.shuffle(&mut numbers);
                for (place, number) in numbers.into_iter().enumerate() {
                    grid.put(start + place / Self::BOX, start + place % Self::BOX, number);
                }
            }
            if grid.fill(0) {
                return Ok(grid);
            }
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }

    /// Fills empty cells from a place on; whether that could be done.
    fn fill(&mut self, from: usize) -> bool {
        let Some(place) = (from..N * N).find(|place| self.cells[place / N][place % N] == 0) else {
            return true;
        };
        let (row, column) = (place / N, place % N);
        for &number in order::<N>(self.possible(row, column)) {
            self.put(row, column, number);
            if self.fill(place + 1) {
                return true;
            }
            self.take(row, column);
        }
        false
    }

    /// Takes numbers out in a drawn order, where one solution is left, until so many are out.
    pub(crate) fn with_holes(mut self, rng: &mut Random, empty: i64) -> Self {
        let mut places: Vec<(usize, usize)> =
            (0..N * N).map(|place| (place / N, place % N)).collect();
        rng.shuffle(&mut places);
        let mut taken = 0;
        for (row, column) in places {
            let number = self.take(row, column);
            // There is a second solution where another number fits there.
            let bit = 1 << (number - 1);
            let others = self.possible(row, column) & !bit;
            let has_other =
                (1..=N as u8).filter(|other| others >> (other - 1) & 1 == 1).any(|other| {
                    let mut grid = self;
                    grid.put(row, column, other);
                    grid.can_be_filled()
                });
            if has_other {
                self.put(row, column, number);
                continue;
            }
            taken += 1;
            if taken == empty {
                break;
            }
        }
        self
    }

    /// Whether all empty cells can be filled; those with the fewest numbers first.
    fn can_be_filled(&mut self) -> bool {
        let mut best: Option<(usize, usize, u16)> = None;
        for row in 0..N {
            for column in 0..N {
                if self.cells[row][column] != 0 {
                    continue;
                }
                let possible = self.possible(row, column);
                if best.is_none_or(|(_, _, least)| possible.count_ones() < least.count_ones()) {
                    best = Some((row, column, possible));
                }
            }
        }
        let Some((row, column, possible)) = best else { return true };
        for number in (1..=N as u8).filter(|number| possible >> (number - 1) & 1 == 1) {
            self.put(row, column, number);
            if self.can_be_filled() {
                return true;
            }
            self.take(row, column);
        }
        false
    }
}
