//! Patterns of remainders.

use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::{Item, ItemError};

/// Draws after which options are taken to allow no pattern; the package goes on for ever.
const MOST_TRIES: u64 = 10_000;

options! {
    /// Options of `modulo_grid`.
    ModuloGridOptions {
        /// Columns, 6 to 200. Default 20.
        size_x: i64 = 20,
        /// Rows, 6 to 200. Default 20.
        size_y: i64 = 20,
        /// Largest divisor, 1 to a million. Default 20.
        max_divisor: i64 = 20,
        /// Largest remainder that is marked, 1 to a million. Default 20.
        max_target: i64 = 20,
        /// Question marks, 1 to 10000; some can fall on one place. Default 1.
        max_holes: i64 = 1,
    }
    |given, problems| {
        problems.between("size_x", given.size_x, 6, 200);
        problems.between("size_y", given.size_y, 6, 200);
        problems.between("max_divisor", given.max_divisor, 1, 1_000_000);
        problems.between("max_target", given.max_target, 1, 1_000_000);
        problems.between("max_holes", given.max_holes, 1, 10_000);
    }
}

/// A grid in which a rule about remainders marks cells, with holes to be filled.
pub(crate) struct ModuloGrid;

impl Generator for ModuloGrid {
    type Options = ModuloGridOptions;

    fn item(options: &ModuloGridOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let (width, height) = (options.size_x as usize, options.size_y as usize);
        let mut tries = 0;
        let (grid, divisor, target, operation) = loop {
            let divisor = rng.int(1, options.max_divisor)?;
            let target = rng.int(1, options.max_target)?;
            let operation = *rng.choice(&["sum", "diff", "prod", "pow"])?;
            let marks =
                |x: usize, y: usize| remainder(operation, x as i64, y as i64, divisor) == target;
            let grid: Vec<bool> = (0..height)
                .flat_map(|y| (0..width).map(move |x| (x, y)))
                .map(|(x, y)| marks(x, y))
                .collect();
            if grid.contains(&true) {
                break (grid, divisor, target, operation);
            }
            tries += 1;
            if tries == MOST_TRIES {
                return Err(ItemError::TooManyTries { tries });
            }
        };
        let mut holes = vec![false; grid.len()];
        for _ in 0..options.max_holes {
            let row = rng.below(height as u64) as usize;
            holes[row * width + rng.below(width as u64) as usize] = true;
        }
        let drawn = |with_holes: bool| {
            let mut out = String::with_capacity(grid.len() * 3 + height);
            for (place, marked) in grid.iter().enumerate() {
                if place > 0 && place % width == 0 {
                    out.push('\n');
                }
                out.push(match (with_holes && holes[place], marked) {
                    (true, _) => '❔',
                    (false, true) => '✅',
                    (false, false) => '❌',
                });
            }
            out
        };
        let question = format!(
            "Identify the mathematical pattern which defines this grid, then use that pattern to fill in the question marks. Return the entire completed grid as your answer.\n\n{}",
            drawn(true)
        );
        let item = Item::new(question, drawn(false));
        Ok(item.with("divisor", divisor).with("target", target).with("operation", operation))
    }
}

fn remainder(operation: &str, x: i64, y: i64, divisor: i64) -> i64 {
    match operation {
        "sum" => (x + y) % divisor,
        "diff" => (x - y).abs() % divisor,
        "prod" => x * y % divisor,
        _ => (0..y).fold(1 % divisor, |power, _| power * x % divisor),
    }
}
