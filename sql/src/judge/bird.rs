//! BIRD's rules.

use std::collections::HashSet;

use super::fetched;
use crate::cell::Key;
use crate::{Database, QueryError, QueryLimits, ResultTable};

/// Whether two queries match as BIRD's evaluation has it: equal sets of rows, columns in their order, repeated rows and the order
/// of rows aside. A query that has no result does not match, nor does any where text is no UTF-8, which Python refuses to read.
///
/// Source: BIRD (Li et al., arXiv 2305.03111), execution accuracy of its `evaluation.py`; recorded pairs in `tests/fixtures`.
/// Ours are the limits of steps and time, and that nothing is written.
///
/// # Errors
///
/// [`QueryError`] when the right query has no result.
pub fn bird_match(
    database: &Database,
    predicted: &str,
    gold: &str,
    limits: &QueryLimits,
) -> Result<bool, QueryError> {
    let right = fetched(database, gold, limits)?;
    let found = fetched(database, predicted, &limits.relative_to(right.steps));
    Ok(is_equal(&found, &right))
}

pub(super) fn is_equal(found: &Result<ResultTable, QueryError>, right: &ResultTable) -> bool {
    let Ok(found) = found else { return false };
    if found.has_invalid_text || right.has_invalid_text {
        return false;
    }
    set(found) == set(right)
}

fn set(table: &ResultTable) -> HashSet<Vec<Key<'_>>> {
    table.rows.iter().map(|row| keys(row)).collect()
}

fn keys(row: &[crate::Cell]) -> Vec<Key<'_>> {
    row.iter().map(crate::Cell::key).collect()
}

/// How much of the right result a result has, 0 to 1, as the soft F1 score of BIRD's Mini-Dev counts it.
///
/// Repeated rows are dropped, and the `i`-th rows that are left are compared. Of a row with `c` right values, `m` values of the
/// found row are among the right ones, `p` are not, and `t` right values are not among the found: it adds `m / c` to `tp`, `p / c` to `fp`
/// and `t / c` to `fn`. A row without a counterpart adds 1 to `fn` or `fp`. With `P = tp / (tp + fp)` and `R = tp / (tp + fn)`, the score
/// is `2 P R / (P + R)`, and 1 where both results are empty.
///
/// Source: BIRD Mini-Dev, `evaluation_f1.py`.
pub fn soft_f1(found: &ResultTable, right: &ResultTable) -> f64 {
    let (found, right) = (distinct(found), distinct(right));
    if found.is_empty() && right.is_empty() {
        return 1.0;
    }
    let (mut both, mut found_only, mut right_only) = (0.0, 0.0, 0.0);
    for (place, right_row) in right.iter().enumerate() {
        let Some(found_row) = found.get(place) else {
            right_only += 1.0;
            continue;
        };
        let count = right_row.len() as f64;
        let common = found_row.iter().filter(|cell| right_row.contains(cell)).count();
        let missing = right_row.iter().filter(|cell| !found_row.contains(cell)).count();
        both += common as f64 / count;
        found_only += (found_row.len() - common) as f64 / count;
        right_only += missing as f64 / count;
    }
    found_only += found.len().saturating_sub(right.len()) as f64;
    let share = |other: f64| if both + other > 0.0 { both / (both + other) } else { 0.0 };
    let (precision, recall) = (share(found_only), share(right_only));
    if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 }
}

/// The rows without those that stood before.
fn distinct(table: &ResultTable) -> Vec<Vec<Key<'_>>> {
    let mut seen = HashSet::new();
    table.rows.iter().map(|row| keys(row)).filter(|row| seen.insert(row.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;

    fn table(rows: &[&[i64]]) -> ResultTable {
        let rows =
            rows.iter().map(|row| row.iter().map(|it| Cell::Integer(*it)).collect()).collect();
        ResultTable { rows, ..ResultTable::default() }
    }

    #[test]
    fn rows_are_compared_as_sets_and_columns_in_their_order() {
        let equal = |a: &[&[i64]], b: &[&[i64]]| is_equal(&Ok(table(a)), &table(b));
        assert!(equal(&[&[1, 2], &[3, 4], &[1, 2]], &[&[3, 4], &[1, 2]]));
        assert!(!equal(&[&[2, 1]], &[&[1, 2]]) && !equal(&[&[1]], &[]));
        assert!(equal(&[], &[]));
        assert!(!is_equal(&Err(QueryError::Several), &table(&[])));
        let invalid = ResultTable { has_invalid_text: true, ..table(&[]) };
        assert!(!is_equal(&Ok(invalid), &table(&[])));
    }

    #[test]
    fn the_soft_score_counts_values_row_by_row() {
        assert_eq!(soft_f1(&table(&[]), &table(&[])), 1.0);
        assert_eq!(soft_f1(&table(&[]), &table(&[&[1]])), 0.0);
        assert_eq!(soft_f1(&table(&[&[2, 1], &[2, 1]]), &table(&[&[1, 2]])), 1.0);
        // One row of two, half of it right: tp 1/2, fp 1/2, fn 1/2 + 1.
        let score = soft_f1(&table(&[&[1, 9]]), &table(&[&[1, 2], &[3, 4]]));
        assert!((score - 2.0 * 0.5 * 0.25 / 0.75).abs() < 1e-12, "{score}");
    }
}
