//! Islands in a grid.

use crate::prelude::*;

options! {
    /// Options of `largest_island`.
    LargestIslandOptions {
        /// Fewest rows, at least 1. Default 5.
        min_rows: i64 = 5,
        /// Most rows, up to 300. Default 10.
        max_rows: i64 = 10,
        /// Fewest columns, at least 1. Default 5.
        min_cols: i64 = 5,
        /// Most columns, up to 300. Default 10.
        max_cols: i64 = 10,
        /// Fewest islands that are drawn, at least 0. Default 0.
        min_num_islands: i64 = 0,
        /// Most islands that are drawn, up to 1000. Default 5.
        max_num_islands: i64 = 5,
        /// Fewest cells that an island grows by, at least 0. Default 0.
        min_island_size: i64 = 0,
        /// Most cells that an island grows by, up to 10000. Default 10.
        max_island_size: i64 = 10,
    }
    |given, problems| {
        problems.span(("min_rows", "max_rows"), (given.min_rows, given.max_rows), (1, 300));
        problems.span(("min_cols", "max_cols"), (given.min_cols, given.max_cols), (1, 300));
        problems.span(("min_num_islands", "max_num_islands"), (given.min_num_islands, given.max_num_islands), (0, 1_000));
        problems.span(("min_island_size", "max_island_size"), (given.min_island_size, given.max_island_size), (0, 10_000));
    }
}

/// A grid of land and water; the area of the largest island is asked for.
pub(crate) struct LargestIsland;

impl Generator for LargestIsland {
    type Options = LargestIslandOptions;

    fn item(options: &LargestIslandOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let rows = rng.int(options.min_rows, options.max_rows)?;
        let columns = rng.int(options.min_cols, options.max_cols)?;
        let islands = rng.int(options.min_num_islands, options.max_num_islands)?;
        let mut cells = vec![vec![0_u8; columns as usize]; rows as usize];
        let mut directions = [(-1, 0), (1, 0), (0, -1), (0, 1)];
        for _ in 0..islands {
            let (mut row, mut column) = (rng.int(0, rows - 1)?, rng.int(0, columns - 1)?);
            let size =
                rng.int(options.min_island_size, options.max_island_size)?.min(rows * columns);
            for _ in 0..size {
                cells[row as usize][column as usize] = 1;
                rng.shuffle(&mut directions);
                let water = directions
                    .iter()
                    .map(|(down, right)| (row + down, column + right))
                    .find(|&(row, column)| {
                        (0..rows).contains(&row)
                            && (0..columns).contains(&column)
                            && cells[row as usize][column as usize] == 0
                    });
                (row, column) = water.unwrap_or((row, column));
            }
        }
        let question = format!(
            "You are given the following {rows} x {columns} binary matrix grid:\n{}\n\nAn island is a group of 1's (representing land) connected 4-directionally (horizontal or vertical).\nYou may assume all four edges of the grid are surrounded by water.\n\nThe area of an island is the number of cells with a value 1 in the island.\n\nReturn the maximum area of an island in grid. If there is no island, return 0.\n",
            matrix(&cells)
        );
        Ok(Item::new(question, largest(cells)))
    }
}

fn largest(mut cells: Vec<Vec<u8>>) -> usize {
    let (rows, columns) = (cells.len(), cells[0].len());
    let mut largest = 0;
    for row in 0..rows {
        for column in 0..columns {
            let mut area = 0;
            let mut open = vec![(row, column)];
            while let Some((row, column)) = open.pop() {
                if row >= rows || column >= columns || cells[row][column] == 0 {
                    continue;
                }
                cells[row][column] = 0;
                area += 1;
                open.extend([
                    (row + 1, column),
                    (row.wrapping_sub(1), column),
                    (row, column + 1),
                    (row, column.wrapping_sub(1)),
                ]);
            }
            largest = largest.max(area);
        }
    }
    largest
}
