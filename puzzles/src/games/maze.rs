//! Mazes.

use std::collections::VecDeque;

use crate::prelude::*;

options! {
    /// Options of `maze`.
    MazeOptions {
        /// Fewest steps to the goal, at least 1. Default 5.
        min_dist: i64 = 5,
        /// Most steps to the goal, up to 10000. Default 10.
        max_dist: i64 = 10,
        /// Fewest cells of a side, at least 3. Default 5.
        min_grid_size: i64 = 5,
        /// Most cells of a side, up to 100. Default 10.
        max_grid_size: i64 = 10,
    }
    |given, problems| {
        problems.span(("min_dist", "max_dist"), (given.min_dist, given.max_dist), (1, 10_000));
        // A side of two cells has no passage; the package raises an exception.
        problems.span(("min_grid_size", "max_grid_size"), (given.min_grid_size, given.max_grid_size), (3, 100));
    }
}

/// Mazes drawn, and cells drawn of one.
const MOST_TRIES: u64 = 1_000;

/// A maze in characters of its own; how many steps lead to the goal is asked.
pub(crate) struct Maze;

impl Generator for Maze {
    type Options = MazeOptions;

    fn item(options: &MazeOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let signs: Vec<char> = ('0'..='9')
            .chain('a'..='z')
            .chain('A'..='Z')
            .chain("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~".chars())
            .collect();
        let drawn = rng.sample(&signs, 4)?;
        let [wall, path, start, goal] = [drawn[0], drawn[1], drawn[2], drawn[3]];
        for _ in 0..MOST_TRIES {
            let size = rng.int(options.min_grid_size, options.max_grid_size)? as usize;
            let mut cells = vec![vec![wall; size]; size];
            for row in &mut cells[1..size - 1] {
                for cell in &mut row[1..size - 1] {
                    *cell = if rng.random() < 0.7 { path } else { wall };
                }
            }
            let from = floor(rng, &cells, path)?;
            cells[from.0][from.1] = start;
            let to = floor(rng, &cells, path)?;
            cells[to.0][to.1] = goal;
            let steps = steps(&cells, from, to, wall)
                .filter(|steps| (options.min_dist..=options.max_dist).contains(steps));
            let Some(steps) = steps else { continue };
            let picture = joined(cells.iter().map(|row| row.iter().collect::<String>()), "\n");
            let question = format!(
                "Navigate from '{start}' (start) to '{goal}' (goal):\n\n```\n{picture}\n```\nLegend: '{wall}' = Wall, '{path}' = Passage\n\nWhat is the minimum number of steps to reach the goal?\nGive only the number of steps as your final answer, no other text or formatting."
            );
            return Ok(Item::new(question, steps));
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }
}

fn floor(rng: &mut Random, cells: &[Vec<char>], path: char) -> Result<(usize, usize), ItemError> {
    let last = cells.len() as i64 - 2;
    for _ in 0..MOST_TRIES {
        let (row, column) = (rng.int(1, last)? as usize, rng.int(1, last)? as usize);
        if cells[row][column] == path {
            return Ok((row, column));
        }
    }
    Err(ItemError::TooManyTries { tries: MOST_TRIES })
}

fn steps(cells: &[Vec<char>], from: (usize, usize), to: (usize, usize), wall: char) -> Option<i64> {
    let size = cells.len();
    let mut seen = vec![vec![false; size]; size];
    seen[from.0][from.1] = true;
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some(((row, column), steps)) = queue.pop_front() {
        if (row, column) == to {
            return Some(steps);
        }
        for (row, column) in [
            (row.wrapping_sub(1), column),
            (row, column + 1),
            (row + 1, column),
            (row, column.wrapping_sub(1)),
        ] {
            if row < size && column < size && !seen[row][column] && cells[row][column] != wall {
                seen[row][column] = true;
                queue.push_back(((row, column), steps + 1));
            }
        }
    }
    None
}
