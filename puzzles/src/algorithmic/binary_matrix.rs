//! Distances in a matrix of bits.

use spar_python::{NoNames, Value as PythonValue, eval, iterate, to_str};

use crate::prelude::*;

options! {
    /// Options of `binary_matrix`.
    BinaryMatrixOptions {
        /// Fewest rows, at least 1. Default 3.
        min_n: i64 = 3,
        /// Most rows, up to 300. Default 10.
        max_n: i64 = 10,
        /// How many cells are 0, above 0 up to 1. Default 0.25.
        p_zero: f64 = 0.25,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (1, 300));
        problems.between("p_zero", given.p_zero, f64::MIN_POSITIVE, 1.0);
    }
}

/// A square of bits; for each cell the distance of the next 0 is asked for.
pub(crate) struct BinaryMatrix;

impl Generator for BinaryMatrix {
    type Options = BinaryMatrixOptions;

    fn item(options: &BinaryMatrixOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let size = rng.int(options.min_n, options.max_n)? as usize;
        let mut cells = vec![0; size * size];
        for cell in &mut cells[1..] {
            *cell = i64::from(rng.random() >= options.p_zero);
        }
        rng.shuffle(&mut cells);
        let shown: Vec<Vec<i64>> = cells.chunks(size).map(<[i64]>::to_vec).collect();
        let question = format!(
            "Given a square matrix, your job is to find the taxicab (Manhattan) distance of the nearest 0 for each cell.\n\nThe output should be a matrix of the same size as the input matrix, where each cell contains the distance to the nearest 0.\n\nFind the distance to the nearest 0 for each cell in the matrix below:\n{}\n",
            matrix(&shown)
        );
        Ok(Item::new(question, matrix(&distances(shown))))
    }

    fn score(_: &BinaryMatrixOptions, answer: Option<&str>, item: &Item) -> f64 {
        match answer {
            Some(answer) if answer == item.gold() => 1.0,
            Some(answer) if written(answer).as_deref() == Some(item.gold()) => 0.1,
            _ => 0.0,
        }
    }
}

/// The distance of the next 0 for each cell; there is one in every matrix.
fn distances(mut cells: Vec<Vec<i64>>) -> Vec<Vec<i64>> {
    let size = cells.len();
    let mut next = Vec::new();
    for (row, values) in cells.iter_mut().enumerate() {
        for (column, value) in values.iter_mut().enumerate() {
            match *value {
                0 => next.push((row, column)),
                _ => *value = i64::MAX,
            }
        }
    }
    let mut distance = 0;
    while !next.is_empty() {
        distance += 1;
        for (row, column) in std::mem::take(&mut next) {
            let around = [
                (row + 1, column),
                (row.wrapping_sub(1), column),
                (row, column + 1),
                (row, column.wrapping_sub(1)),
            ];
            for (row, column) in around {
                if row < size && column < size && cells[row][column] == i64::MAX {
                    cells[row][column] = distance;
                    next.push((row, column));
                }
            }
        }
    }
    cells
}

/// A matrix that is an expression of Python, in lines.
fn written(answer: &str) -> Option<String> {
    let rows = iterate(&eval(answer, &mut NoNames).ok()?).ok()?;
    let mut lines = Vec::new();
    for row in rows {
        let cells: Option<Vec<String>> =
            iterate(&row).ok()?.into_iter().map(|cell: PythonValue| to_str(&cell).ok()).collect();
        lines.push(cells?.join(" "));
    }
    Some(lines.join("\n"))
}
