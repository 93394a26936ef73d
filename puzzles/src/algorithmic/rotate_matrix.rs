//! Matrices to be turned.

use crate::prelude::*;

options! {
    /// Options of `rotate_matrix`.
    RotateMatrixOptions {
        /// Fewest rows, at least 2. Default 2.
        min_n: i64 = 2,
        /// Most rows, up to 300. Default 10.
        max_n: i64 = 10,
        /// Fewest quarter turns, at least 0. Default 0.
        min_rotations: i64 = 0,
        /// Most quarter turns, up to a million. Default 10.
        max_rotations: i64 = 10,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (2, 300));
        let turns = (given.min_rotations, given.max_rotations);
        problems.span(("min_rotations", "max_rotations"), turns, (0, 1_000_000));
    }
}

/// A square matrix, turned clockwise.
pub(crate) struct RotateMatrix;

impl Generator for RotateMatrix {
    type Options = RotateMatrixOptions;

    fn item(options: &RotateMatrixOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let size = rng.int(options.min_n, options.max_n)? as usize;
        let mut rows = digits(rng, size, size)?;
        let turns = rng.int(options.min_rotations, options.max_rotations)?;
        let question = format!(
            "Given a square matrix, your job is to rotate it clockwise.\n\nYour output should be a matrix in the same format as the input.\n\nRotate the matrix below by {} degrees clockwise:\n{}\n",
            turns * 90,
            matrix(&rows)
        );
        for _ in 0..turns % 4 {
            rows = turned(&rows);
        }
        Ok(Item::new(question, matrix(&rows)))
    }
}

/// A matrix of digits.
pub(crate) fn digits(
    rng: &mut Random,
    rows: usize,
    columns: usize,
) -> Result<Vec<Vec<i64>>, ItemError> {
    let mut row = || (0..columns).map(|_| rng.int(0, 9)).collect::<Result<Vec<i64>, _>>();
    (0..rows).map(|_| row().map_err(ItemError::from)).collect()
}

/// A matrix turned clockwise by a quarter; one without rows or columns has none.
pub(crate) fn turned(rows: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| rows.iter().rev().map(|row| row[column]).collect()).collect()
}
