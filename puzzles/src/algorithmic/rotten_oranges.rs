//! Oranges that rot.

use crate::prelude::*;

options! {
    /// Options of `rotten_oranges`.
    RottenOrangesOptions {
        /// Fewest rows, at least 2. Default 10.
        min_n: i64 = 10,
        /// Most rows, up to 300. Default 30.
        max_n: i64 = 30,
        /// How many cells have an orange, above 0 up to 1. Default 0.85.
        p_oranges: f64 = 0.85,
        /// How many oranges are rotten, above 0 up to 1. Default 0.1.
        p_rotten: f64 = 0.1,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (2, 300));
        problems.between("p_oranges", given.p_oranges, f64::MIN_POSITIVE, 1.0);
        problems.between("p_rotten", given.p_rotten, f64::MIN_POSITIVE, 1.0);
    }
}

/// A square of oranges; after how many minutes all are rotten is asked.
pub(crate) struct RottenOranges;

impl Generator for RottenOranges {
    type Options = RottenOrangesOptions;

    fn item(options: &RottenOrangesOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let size = rng.int(options.min_n, options.max_n)? as usize;
        let mut cells = vec![vec![0_u8; size]; size];
        for cell in cells.iter_mut().flatten() {
            if rng.random() < options.p_oranges {
                *cell = 1 + u8::from(rng.random() < options.p_rotten);
            }
        }
        let question = format!(
            "You are given an n x n grid where each cell can have one of three values:\n- 0 representing an empty cell\n- 1 representing a fresh orange\n- 2 representing a rotten orange\n\nEvery minute, any fresh orange that is 4-directionally adjacent to a rotten orange becomes rotten.\n\nYour task is determine the minimum number of minutes that must elapse until no cell has a fresh orange.\nIf this is impossible, return -1.\n\nNow, determine the minimum number of minutes that must elapse until no cell in the grid below has a fresh orange:\n{}\n",
            matrix(&cells)
        );
        Ok(Item::new(question, minutes(cells)))
    }
}

/// Minutes until all oranges are rotten, -1 where some stay fresh.
fn minutes(mut cells: Vec<Vec<u8>>) -> i64 {
    let size = cells.len();
    let places = || (0..size).flat_map(|row| (0..size).map(move |column| (row, column)));
    let mut next: Vec<(usize, usize)> = places().filter(|&(r, c)| cells[r][c] == 2).collect();
    let mut minutes = 0;
    loop {
        let mut rotten = Vec::new();
        for (row, column) in next {
            let around = [
                (row + 1, column),
                (row.wrapping_sub(1), column),
                (row, column + 1),
                (row, column.wrapping_sub(1)),
            ];
            for (row, column) in around {
                if row < size && column < size && cells[row][column] == 1 {
                    cells[row][column] = 2;
                    rotten.push((row, column));
                }
            }
        }
        if rotten.is_empty() {
            return if cells.iter().flatten().any(|cell| *cell == 1) { -1 } else { minutes };
        }
        minutes += 1;
        next = rotten;
    }
}
