//! Survo: numbers that add up.

use crate::prelude::*;

options! {
    /// Options of `survo`.
    SurvoOptions {
        /// Fewest rows, sums included, at least 4. Default 4.
        min_board_size: i64 = 4,
        /// Most rows, sums included, up to 100. Default 5.
        max_board_size: i64 = 5,
        /// Fewest empty cells, at least 1. Default 3.
        min_empty: i64 = 3,
        /// Most empty cells, up to those of the smallest board. Default 5.
        max_empty: i64 = 5,
        /// Least number, at least 1. Default 1.
        min_num: i64 = 1,
        /// Largest number, above the least, up to 10^9. Default 9.
        max_num: i64 = 9,
    }
    |given, problems| {
        problems.span(("min_board_size", "max_board_size"), (given.min_board_size, given.max_board_size), (4, 100));
        let most = given.min_board_size.clamp(1, 100) - 1;
        problems.span(("min_empty", "max_empty"), (given.min_empty, given.max_empty), (1, most * most));
        problems.span(("min_num", "max_num"), (given.min_num, given.max_num), (1, 1_000_000_000));
        problems.require(given.max_num > given.min_num, || "max_num must be above min_num".to_owned());
    }
}

/// A matrix with its sums, into which numbers are to be put.
pub(crate) struct Survo;

impl Generator for Survo {
    type Options = SurvoOptions;

    fn item(options: &SurvoOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let n = rng.int(options.min_board_size, options.max_board_size)? as usize;
        let empty = rng.int(options.min_empty, options.max_empty)? as usize;
        let mut cells = vec![vec![0_i64; n]; n];
        for row in &mut cells[..n - 1] {
            for cell in &mut row[..n - 1] {
                *cell = rng.int(options.min_num, options.max_num)?;
            }
            row[n - 1] = row[..n - 1].iter().sum();
        }
        for column in 0..n {
            cells[n - 1][column] = cells[..n - 1].iter().map(|row| row[column]).sum();
        }
        let solution = matrix(&cells);
        let places: Vec<(usize, usize)> =
            (0..n - 1).flat_map(|row| (0..n - 1).map(move |column| (row, column))).collect();
        let numbers: Vec<i64> = rng
            .sample(&places, empty)?
            .into_iter()
            .map(|(row, column)| std::mem::take(&mut cells[row][column]))
            .collect();
        let (puzzle, numbers) = (matrix(&cells), list(numbers));
        let question = match rng.below(5) {
            0 => format!(
                "Given a {n}*{n} matrix where the last element of each row and column equals the sum of the other elements in that row or column. The matrix is:\n{puzzle}\nwhere some elements are replaced with 0. You have a set of numbers {numbers} that can be filled into the 0 positions to satisfy the rules. Please fill in the matrix. Each number can only be used once."
            ),
            1 => format!(
                "You have a {n}*{n} matrix with some positions already filled with numbers and others marked with 0. The matrix is:\n{puzzle}\nThe last number in each row and column represents the sum of all other numbers in that row or column. You need to fill in the 0 positions using the numbers {numbers} to satisfy these conditions. Each number can only be used once."
            ),
            2 => format!(
                "Complete the following Survo puzzle. In this {n}*{n} matrix:\n{puzzle}\nthe cells marked with 0 need to be filled with numbers. The last number in each row and column equals the sum of all other numbers in that row or column. You can use the following numbers: {numbers}. Each number can only be used once."
            ),
            3 => format!(
                "In this {n}*{n} Survo matrix puzzle:\n{puzzle}\nthe 0 cells need to be filled with numbers from the set {numbers}. The last element in each row and column is the sum of all other elements in that row or column. Each number can only be used once. Provide the completed matrix."
            ),
            _ => format!(
                "Solve this {n}*{n} matrix puzzle:\n{puzzle}\nwhere 0 represents empty cells that need to be filled. The last number in each row and column equals the sum of all other numbers in that row or column. You have the numbers {numbers} to place in the empty cells. Each number can only be used once."
            ),
        };
        Ok(Item::new(question, solution).with("board_size", n))
    }

    fn score(_: &SurvoOptions, answer: Option<&str>, item: &Item) -> f64 {
        let read = |text: &str| -> Vec<Vec<num_bigint::BigInt>> {
            // What is no number is passed over, and lines without numbers.
            let rows =
                strip(text).split('\n').map(|line| words(line).filter_map(big_int).collect());
            rows.filter(|row: &Vec<_>| !row.is_empty()).collect()
        };
        f64::from(answer.is_some_and(|answer| read(answer) == read(item.gold())))
    }
}
