//! Conway's Game of Life.

use crate::prelude::*;

options! {
    /// Options of `game_of_life`.
    GameOfLifeOptions {
        /// Rows, 3 to 200. Default 10.
        grid_size_x: i64 = 10,
        /// Columns, 3 to 200. Default 10.
        grid_size_y: i64 = 10,
        /// Has no effect, as in the package. Default 0.1.
        filled_cells_weights: f64 = 0.1,
        /// Cells that are drawn to be alive, some more than once, up to all. Default 10.
        filled_cells: i64 = 10,
        /// Steps, 0 to 1000. Default 1.
        simulation_steps: i64 = 1,
    }
    |given, problems| {
        problems.between("grid_size_x", given.grid_size_x, 3, 200);
        problems.between("grid_size_y", given.grid_size_y, 3, 200);
        problems.between("filled_cells", given.filled_cells, 0, given.grid_size_x.saturating_mul(given.grid_size_y));
        problems.between("simulation_steps", given.simulation_steps, 0, 1_000);
    }
}

/// A board whose state after some steps is asked for.
pub(crate) struct GameOfLife;

impl Generator for GameOfLife {
    type Options = GameOfLifeOptions;

    fn item(options: &GameOfLifeOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let (rows, columns) = (options.grid_size_x as usize, options.grid_size_y as usize);
        let mut board = vec![vec![0_u8; columns]; rows];
        for _ in 0..options.filled_cells {
            let row = rng.below(rows as u64) as usize;
            board[row][rng.below(columns as u64) as usize] = 1;
        }
        let written = |board: &[Vec<u8>], between: &str| {
            let rows = board.iter().map(|row| format!("[{}]", joined(row, ",")));
            format!("[{}]", joined(rows, between))
        };
        let first = written(&board, ",\n ");
        for _ in 0..options.simulation_steps {
            board = step(&board);
        }
        // The one question of the package is drawn as well, of one.
        rng.below(1);
        let question = format!(
            "What will this Game of Life board look like after {} steps of simulation? Assume a Moore neighborhood and wrapping topology. Reply as array of arrays representing rows in the grid from top to bottom in JSON format. (An empty 3x3 grid would look like this: [[0,0,0],[0,0,0],[0,0,0]])\n\n{first}.",
            options.simulation_steps
        );
        Ok(Item::new(question, written(&board, ",")))
    }

    fn score(_: &GameOfLifeOptions, answer: Option<&str>, item: &Item) -> f64 {
        let read = || Some((json_loads(answer?)?, json_loads(item.gold())?));
        let Some((given, gold)) = read() else { return 0.0 };
        // Indexing anything but lists and texts raises an exception that is not caught where it is a table.
        if given.is_object() {
            return 0.0;
        }
        let (mut right, mut all) = (0, 0);
        for (place, row) in gold.as_array().into_iter().flatten().enumerate() {
            for (column, cell) in row.as_array().into_iter().flatten().enumerate() {
                all += 1;
                match given.get(place) {
                    Some(Value::Object(_)) => return 0.0,
                    Some(row) => {
                        right += usize::from(
                            row.get(column).is_some_and(|given| is_json_equal(given, cell)),
                        )
                    }
                    None => {}
                }
            }
        }
        right as f64 / all as f64
    }
}

/// The next state on a torus.
fn step(board: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (rows, columns) = (board.len(), board[0].len());
    let mut next = vec![vec![0; columns]; rows];
    for row in 0..rows {
        let around = [(row + rows - 1) % rows, row, (row + 1) % rows];
        for column in 0..columns {
            let sides = [(column + columns - 1) % columns, column, (column + 1) % columns];
            let sum: u8 =
                around.iter().flat_map(|r| sides.iter().map(move |c| board[*r][*c])).sum();
            let is_alive = sum == 3 || (sum == 4 && board[row][column] == 1);
            next[row][column] = u8::from(is_alive);
        }
    }
    next
}
