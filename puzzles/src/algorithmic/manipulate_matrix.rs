//! Matrices that are changed step by step.

use super::rotate_matrix::{digits, turned};
use crate::prelude::*;
use crate::scoring::is_stripped_equal;

options! {
    /// Options of `manipulate_matrix`.
    ManipulateMatrixOptions {
        /// Fewest rows, at least 2. Default 2.
        min_rows: i64 = 2,
        /// Fewest columns, at least 2. Default 2.
        min_cols: i64 = 2,
        /// Most rows, up to 200. Default 10.
        max_rows: i64 = 10,
        /// Most columns, up to 200. Default 10.
        max_cols: i64 = 10,
        /// Fewest changes, at least 1. Default 1.
        min_transforms: i64 = 1,
        /// Most changes, up to 1000. Default 10.
        max_transforms: i64 = 10,
        /// Weight of turns, by its exponential as all weights here, -50 to 50. Default 1.
        w_rotate: f64 = 1.0,
        /// Weight of horizontal mirrors. Default 1.
        w_hmirror: f64 = 1.0,
        /// Weight of vertical mirrors. Default 1.
        w_vmirror: f64 = 1.0,
        /// Weight of mirrors along the diagonal. Default 1.
        w_dmirror: f64 = 1.0,
        /// Weight of mirrors along the other diagonal. Default 1.
        w_cmirror: f64 = 1.0,
        /// Weight of digits that are mapped. Default 1.
        w_map: f64 = 1.0,
        /// Weight that the package lists as that of crops. Default 1.
        w_crop: f64 = 1.0,
        /// Weight that the package lists as that of rows removed. Default 1.
        w_remove_every_nth_row: f64 = 1.0,
        /// Weight that the package lists as that of columns removed. Default 1.
        w_remove_every_nth_col: f64 = 1.0,
        /// Weight that the package lists as that of divisible numbers. Default 1.
        w_zero_divisible: f64 = 1.0,
    }
    |given, problems| {
        problems.span(("min_rows", "max_rows"), (given.min_rows, given.max_rows), (2, 200));
        problems.span(("min_cols", "max_cols"), (given.min_cols, given.max_cols), (2, 200));
        problems.span(("min_transforms", "max_transforms"), (given.min_transforms, given.max_transforms), (1, 1_000));
        for (name, weight) in given.weights() {
            problems.between(name, weight, -50.0, 50.0);
        }
    }
}

impl ManipulateMatrixOptions {
    /// The weights in the order in which the package lists them, which is not that of what they weigh.
    fn weights(&self) -> [(&'static str, f64); 10] {
        [
            ("w_rotate", self.w_rotate),
            ("w_hmirror", self.w_hmirror),
            ("w_vmirror", self.w_vmirror),
            ("w_dmirror", self.w_dmirror),
            ("w_cmirror", self.w_cmirror),
            ("w_map", self.w_map),
            ("w_crop", self.w_crop),
            ("w_remove_every_nth_row", self.w_remove_every_nth_row),
            ("w_remove_every_nth_col", self.w_remove_every_nth_col),
            ("w_zero_divisible", self.w_zero_divisible),
        ]
    }
}

/// Changes drawn beyond which options are taken to allow no more: nothing is left that could be removed.
const MOST_TRIES: u64 = 100_000;

/// The changes, in the order of the weights.
const CHANGES: [&str; 10] = [
    "rotate",
    "hmirror",
    "vmirror",
    "dmirror",
    "cmirror",
    "map",
    "zero_divisible",
    "crop",
    "remove_every_nth_row",
    "remove_every_nth_col",
];

/// A matrix to be turned, mirrored, cropped and changed in several steps.
pub(crate) struct ManipulateMatrix;

impl Generator for ManipulateMatrix {
    type Options = ManipulateMatrixOptions;

    fn item(options: &ManipulateMatrixOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let rows = rng.int(options.min_rows, options.max_rows)? as usize;
        let columns = rng.int(options.min_cols, options.max_cols)? as usize;
        let mut cells = digits(rng, rows, columns)?;
        let first = matrix(&cells);
        let count = rng.int(options.min_transforms, options.max_transforms)? as usize;
        let exponentials = options.weights().map(|(_, weight)| weight.exp());
        // As NumPy adds up ten numbers: eight sums, in pairs, and then the rest.
        let [a, b, c, d, e, f, g, h, i, j] = exponentials;
        let sum = ((a + b) + (c + d)) + ((e + f) + (g + h)) + i + j;
        let weights = exponentials.map(|weight| weight / sum);
        let mut told = Vec::new();
        let mut tries = 0;
        while told.len() < count {
            let change = *rng.weighted_choices(&CHANGES, &weights, 1)?[0];
            told.extend(changed(change, &mut cells, rng)?);
            tries += 1;
            if tries > MOST_TRIES {
                return Err(ItemError::TooManyTries { tries });
            }
        }
        let question = format!(
            "For the following matrix:\n{first}\n\nPerform the following series of operations in order:\n- Identity transformation, i.e. no change\n{}\n",
            told.join("\n")
        );
        Ok(Item::new(question, matrix(&cells)))
    }

    fn score(_: &ManipulateMatrixOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let gold = strip(item.gold());
        if is_stripped_equal(answer, gold) {
            return 1.0;
        }
        let rows = strip(answer).split('\n').map(|row| joined(words(row), " "));
        let answer = joined(rows, "\n");
        let answer = strip(&answer);
        match answer == gold {
            true => 1.0,
            false if answer.is_empty() => 0.0,
            false => share(answer, gold),
        }
    }
}

/// Changes a matrix, and what was done in words; nothing where the change has no effect here.
fn changed(
    change: &str,
    cells: &mut Vec<Vec<i64>>,
    rng: &mut Random,
) -> Result<Option<String>, ItemError> {
    let rows = cells.len() as i64;
    let columns = cells.first().map_or(0, Vec::len) as i64;
    let mapped = |cells: &mut Vec<Vec<i64>>, map: &dyn Fn(i64) -> i64| {
        cells.iter_mut().flatten().for_each(|cell| *cell = map(*cell));
    };
    let transposed = |cells: &[Vec<i64>]| -> Vec<Vec<i64>> {
        (0..columns as usize).map(|column| cells.iter().map(|row| row[column]).collect()).collect()
    };
    let ending = |n: i64| if n == 2 { "nd" } else { "th" };
    Ok(Some(match change {
        "rotate" => {
            let turns = 1 + rng.below(4);
            (0..turns % 4).for_each(|_| *cells = turned(cells));
            format!("- Rotate the matrix {} degrees", turns * 90)
        }
        "hmirror" => {
            cells.reverse();
            "- Horizontally mirror the matrix".to_owned()
        }
        "vmirror" => {
            cells.iter_mut().for_each(|row| row.reverse());
            "- Vertically mirror the matrix".to_owned()
        }
        "dmirror" => {
            *cells = transposed(cells);
            "- Mirror the matrix along the diagonal".to_owned()
        }
        "cmirror" => {
            cells.reverse();
            cells.iter_mut().for_each(|row| row.reverse());
            *cells = transposed(cells);
            "- Mirror the matrix along the counterdiagonal".to_owned()
        }
        "map" => {
            let drawn = rng.sample(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 2)?;
            let (from, to) = (drawn[0], drawn[1]);
            mapped(cells, &|cell| if cell == from { to } else { cell });
            format!("- Map each occurrence of {from} to {to}")
        }
        "zero_divisible" => {
            let divisor = rng.int(1, 9)?;
            mapped(cells, &|cell| if cell % divisor == 0 { 0 } else { cell });
            format!("- Set all elements divisible by {divisor} to zero")
        }
        "crop" => {
            let top = rng.int(1, rows)?;
            let bottom = rng.int(top, rows)?;
            let left = rng.int(1, columns)?;
            let right = rng.int(left, columns)?;
            let kept = cells[top as usize - 1..bottom as usize].iter();
            *cells = kept.map(|row| row[left as usize - 1..right as usize].to_vec()).collect();
            format!(
                "- Crop the matrix to rows {top}-{bottom} and columns {left}-{right} (1-indexed)"
            )
        }
        "remove_every_nth_row" if rows > 1 => {
            let n = rng.int(2, rows)?;
            let mut place = 0;
            cells.retain(|_| {
                place += 1;
                place % n != 0
            });
            format!("- Remove every {n}-{} row (1-indexed)", ending(n))
        }
        "remove_every_nth_col" if columns > 1 => {
            let n = rng.int(2, columns)?;
            for row in cells.iter_mut() {
                let mut place = 0;
                row.retain(|_| {
                    place += 1;
                    place % n != 0
                });
            }
            format!("- Remove every {n}-{} column (1-indexed)", ending(n))
        }
        _ => return Ok(None),
    }))
}
