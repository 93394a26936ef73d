//! How answers that are boards of numbers are scored.

use spar_python::characters::is_space;

use crate::text::joined;

/// 1 for the right board; else nine tenths of the share of cells that are right, of lines that have as many digits as the
/// board has columns. Longer answers than the right one are worth less.
pub(crate) fn score(answer: &str, gold: &str, solution: &[Vec<u8>]) -> f64 {
    let trimmed = |text: &str| {
        joined(text.split('\n').map(|line| line.trim_end_matches(is_space).to_owned()), "\n")
    };
    let size = solution.len();
    let mut reward = if trimmed(answer) == trimmed(gold) {
        1.0
    } else {
        let mut matching = 0;
        let mut rows = solution.iter();
        let mut row = rows.next();
        for line in answer.split('\n') {
            let Some(wanted) = row else { break };
            let digits: Vec<u8> = line
                .bytes()
                .filter(|digit| (b'1'..=b'9').contains(digit))
                .map(|digit| digit - b'0')
                .collect();
            if digits.len() == size {
                matching += wanted.iter().zip(digits).filter(|(a, b)| **a == *b).count();
                row = rows.next();
            }
        }
        matching as f64 / (size * size) as f64 * 0.9
    };
    let (given, right) = (answer.chars().count(), gold.chars().count());
    if given > right {
        reward *= right as f64 / given as f64;
    }
    reward
}

/// A board with `_` for empty cells.
pub(crate) fn written(board: &[Vec<u8>]) -> String {
    let cell = |value: &u8| if *value == 0 { "_".to_owned() } else { value.to_string() };
    joined(board.iter().map(|row| joined(row.iter().map(cell), " ")), "\n")
}

/// The board that [`written`] has written.
pub(crate) fn read(text: &str) -> Vec<Vec<u8>> {
    text.split('\n')
        .map(|row| row.split(' ').map(|cell| cell.parse().unwrap_or_default()).collect())
        .collect()
}
