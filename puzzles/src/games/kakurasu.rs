//! Kakurasu: ones whose places add up.

use crate::prelude::*;

options! {
    /// Options of `kakurasu`.
    KakurasuOptions {
        /// Fewest rows, at least 3. Default 4.
        min_rows: i64 = 4,
        /// Most rows, up to 9. Default 5.
        max_rows: i64 = 5,
        /// Fewest columns, at least 3. Default 4.
        min_cols: i64 = 4,
        /// Most columns, up to 9. Default 5.
        max_cols: i64 = 5,
        /// How many cells are drawn as ones, 0 to 1. Default 0.3.
        p_ones: f64 = 0.3,
        /// Grids that are drawn until one has a single solution, 1 to 100000; the last one may have more. Default 1000.
        max_retries: i64 = 1000,
    }
    |given, problems| {
        problems.span(("min_rows", "max_rows"), (given.min_rows, given.max_rows), (3, 9));
        problems.span(("min_cols", "max_cols"), (given.min_cols, given.max_cols), (3, 9));
        problems.between("p_ones", given.p_ones, 0.0, 1.0);
        problems.between("max_retries", given.max_retries, 1, 100_000);
    }
}

/// A grid of ones, of which only weighted sums of rows and columns are told.
pub(crate) struct Kakurasu;

impl Generator for Kakurasu {
    type Options = KakurasuOptions;

    fn item(options: &KakurasuOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let n_rows = rng.int(options.min_rows, options.max_rows)? as usize;
        let n_cols = rng.int(options.min_cols, options.max_cols)? as usize;
        let mut tries = 0;
        let (grid, row_sums, col_sums) = loop {
            tries += 1;
            let mut grid = vec![vec![0_u8; n_cols]; n_rows];
            for cell in grid.iter_mut().flatten() {
                *cell = u8::from(rng.random() < options.p_ones);
            }
            for row in &mut grid {
                if !row.contains(&1) {
                    row[rng.below(n_cols as u64) as usize] = 1;
                }
            }
            for column in 0..n_cols {
                if grid.iter().all(|row| row[column] == 0) {
                    grid[rng.below(n_rows as u64) as usize][column] = 1;
                }
            }
            let (row_sums, col_sums) = sums(&grid);
            let is_good = || {
                row_sums.iter().sum::<i64>() == col_sums.iter().sum::<i64>()
                    && solutions(&row_sums, &mut col_sums.clone(), 0) == 1
            };
            if tries == options.max_retries || is_good() {
                break (grid, row_sums, col_sums);
            }
        };
        let puzzle = matrix(&vec![vec![0; n_cols]; n_rows]);
        let (rows, columns) = (list(&row_sums), list(&col_sums));
        let question = match rng.below(10) {
            0 => format!(
                "You are given a {n_rows} x {n_cols} grid representing a Kukurasu puzzle. In this puzzle, you need to place 1s in the grid so that the weighted sum of each row and column matches the given constraints. The row sums are {rows} and the column sums are {columns}.\n1. Rules:\n  1. Each cell can contain either a 1 or an 0.\n  2. The weight of a 1 in a row is its column position (1 to {n_cols}).\n  3. The weight of a 1 in a column is its row position (1 to {n_rows}).\n  4. The weighted sum of each row must match the corresponding row constraint.\n  5. The weighted sum of each column must match the corresponding column constraint.\n2. Input:\n{puzzle}"
            ),
            1 => format!(
                "This is a {n_rows} x {n_cols} Kukurasu puzzle grid. Your task is to fill in the grid with 1s and 0s such that the weighted sums match the given constraints. The row sums are {rows} and the column sums are {columns}.\n1. Rules:\n  1. Each cell must contain either a 1 or an 0.\n  2. In each row, a 1 in position j contributes j points to that row's sum (positions are 1-indexed).\n  3. In each column, a 1 in position i contributes i points to that column's sum (positions are 1-indexed).\n  4. The weighted sum of each row must equal its constraint value.\n  5. The weighted sum of each column must equal its constraint value.\n2. Input:\n{puzzle}"
            ),
            2 => format!(
                "You're presented with a {n_rows} x {n_cols} Kukurasu puzzle grid. The goal is to place 1s in the grid so that the weighted sums of rows and columns match the given constraints: row sums {rows} and column sums {columns}.\n1. Rules:\n  1. Each cell must be filled with either a 1 or an 0.\n  2. A 1 in column j of any row contributes j points to that row's sum (j ranges from 1 to {n_cols}).\n  3. A 1 in row i of any column contributes i points to that column's sum (i ranges from 1 to {n_rows}).\n  4. Each row's weighted sum must match its constraint value.\n  5. Each column's weighted sum must match its constraint value.\n2. Input:\n{puzzle}"
            ),
            3 => format!(
                "Below is a {n_rows} x {n_cols} Kukurasu puzzle grid. Your objective is to place 1s in the grid such that the weighted sums of rows and columns match the given constraints. Row sums: {rows}. Column sums: {columns}.\n1. Rules:\n  1. Each cell must contain either a 1 or an 0.\n  2. The weight of a 1 in a row equals its column number (1 to {n_cols}).\n  3. The weight of a 1 in a column equals its row number (1 to {n_rows}).\n  4. The sum of weighted 1s in each row must equal the row constraint.\n  5. The sum of weighted 1s in each column must equal the column constraint.\n2. Input:\n{puzzle}"
            ),
            4 => format!(
                "Here's a {n_rows} x {n_cols} Kukurasu logic puzzle. You need to place 1s in the grid so that the weighted sums match the constraints. Row sums: {rows}. Column sums: {columns}.\n1. Rules:\n  1. Each cell can be filled with either a 1 or an 0.\n  2. A 1 in the jth position of a row contributes j points to that row's sum.\n  3. A 1 in the ith position of a column contributes i points to that column's sum.\n  4. The weighted sum of each row must equal its constraint value.\n  5. The weighted sum of each column must equal its constraint value.\n2. Input:\n{puzzle}"
            ),
            5 => format!(
                "I'm presenting you with a {n_rows} x {n_cols} Kukurasu puzzle. Your task is to place 1s in the grid so that the weighted sums match the given constraints: row sums {rows} and column sums {columns}.\n1. Rules:\n  1. Each cell must be filled with either a 1 or an 0.\n  2. In each row, a 1 in position j has a weight of j (where j ranges from 1 to {n_cols}).\n  3. In each column, a 1 in position i has a weight of i (where i ranges from 1 to {n_rows}).\n  4. The weighted sum of each row must match its constraint.\n  5. The weighted sum of each column must match its constraint.\n2. Input:\n{puzzle}"
            ),
            6 => format!(
                "Consider this {n_rows} x {n_cols} Kukurasu puzzle grid. You need to place 1s in the grid such that the weighted sums match the constraints. Row sums: {rows}. Column sums: {columns}.\n1. Rules:\n  1. Each cell must contain either a 1 or an 0.\n  2. A 1 in column position j contributes j points to its row's sum.\n  3. A 1 in row position i contributes i points to its column's sum.\n  4. Each row's weighted sum must equal its constraint value.\n  5. Each column's weighted sum must equal its constraint value.\n2. Input:\n{puzzle}"
            ),
            7 => format!(
                "You have a {n_rows} x {n_cols} Kukurasu puzzle grid. Your goal is to place 1s in the grid so that the weighted sums match the given constraints: row sums {rows} and column sums {columns}.\n1. Rules:\n  1. Each cell must be filled with either a 1 or an 0.\n  2. The weight of a 1 in a row is its column position (1 to {n_cols}).\n  3. The weight of a 1 in a column is its row position (1 to {n_rows}).\n  4. The weighted sum of each row must match its constraint.\n  5. The weighted sum of each column must match its constraint.\n2. Input:\n{puzzle}"
            ),
            8 => format!(
                "This {n_rows} x {n_cols} grid represents a Kukurasu puzzle. Your task is to place 1s in the grid so that the weighted sums match the constraints. Row sums: {rows}. Column sums: {columns}.\n1. Rules:\n  1. Each cell must contain either a 1 or an 0.\n  2. A 1 in the jth position of a row contributes j points to that row's sum.\n  3. A 1 in the ith position of a column contributes i points to that column's sum.\n  4. The weighted sum of each row must equal its constraint value.\n  5. The weighted sum of each column must equal its constraint value.\n2. Input:\n{puzzle}"
            ),
            _ => format!(
                "Examine this {n_rows} x {n_cols} Kukurasu puzzle grid. Your objective is to place 1s in the grid such that the weighted sums match the given constraints: row sums {rows} and column sums {columns}.\n1. Rules:\n  1. Each cell must be filled with either a 1 or an 0.\n  2. The weight of a 1 in a row equals its column number (1 to {n_cols}).\n  3. The weight of a 1 in a column equals its row number (1 to {n_rows}).\n  4. The weighted sum of each row must match its constraint.\n  5. The weighted sum of each column must match its constraint.\n2. Input:\n{puzzle}"
            ),
        };
        Ok(Item::new(question, matrix(&grid)).with("row_sums", row_sums).with("col_sums", col_sums))
    }

    fn score(_: &KakurasuOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        let digits = |line: &str| -> Vec<u8> {
            line.bytes()
                .filter(|byte| matches!(byte, b'0' | b'1'))
                .map(|byte| byte - b'0')
                .collect()
        };
        let wanted = |name: &str| -> Vec<i64> {
            item.fact(name).as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
        };
        let (row_sums, col_sums) = (wanted("row_sums"), wanted("col_sums"));
        let grid: Vec<Vec<u8>> =
            strip(answer).split('\n').take(row_sums.len() + 1).map(digits).collect();
        let fits =
            grid.len() == row_sums.len() && grid.iter().all(|row| row.len() == col_sums.len());
        f64::from(fits && sums(&grid) == (row_sums, col_sums))
    }
}

/// The sums of columns of ones for each row, and of rows for each column, counted from 1.
fn sums(grid: &[Vec<u8>]) -> (Vec<i64>, Vec<i64>) {
    let weighted = |place: usize, cell: u8| (place as i64 + 1) * i64::from(cell);
    let rows = grid
        .iter()
        .map(|row| row.iter().enumerate().map(|(place, cell)| weighted(place, *cell)).sum());
    let columns = (0..grid[0].len()).map(|column| {
        grid.iter().enumerate().map(|(place, row)| weighted(place, row[column])).sum()
    });
    (rows.collect(), columns.collect())
}

/// How many grids have these sums, counted up to 2.
fn solutions(rows: &[i64], columns: &mut [i64], row: usize) -> usize {
    let Some(&wanted) = rows.get(row) else {
        return usize::from(columns.iter().all(|left| *left == 0));
    };
    let mut found = 0;
    let weight = row as i64 + 1;
    for mask in 0..1_u32 << columns.len() {
        let is_one = |column: usize| mask >> column & 1 == 1;
        let ones = || (0..9).filter(|column| is_one(*column));
        if ones().map(|column| column as i64 + 1).sum::<i64>() != wanted
            || ones().any(|column| columns[column] < weight)
        {
            continue;
        }
        ones().for_each(|column| columns[column] -= weight);
        found += solutions(rows, columns, row + 1);
        ones().for_each(|column| columns[column] += weight);
        if found >= 2 {
            break;
        }
    }
    found
}
