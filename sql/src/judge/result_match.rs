//! Whether two results are the same table, by Spider's rule.

use std::collections::{HashMap, HashSet};

use crate::cell::Key;
use crate::{Cell, ResultTable};

/// Cells that are looked at in search of an order of columns, at the most.
const MOST_WORK: usize = 20_000_000;

/// Whether two results are the same but for the order of their columns and, unless `order_matters`, of their rows: equal bags of
/// rows for some order of columns. Two empty results are the same, whatever their columns.
///
/// The order of columns is searched for exactly, within a bound that only results with many columns of equal values reach, where the
/// official evaluation runs out of time as well; results are not the same then.
///
/// Source: Zhong et al., "Semantic Evaluation for Text-to-SQL with Distilled Test Suites", arXiv 2010.02840, `result_eq` of its
/// evaluation.
pub fn spider_result_match(right: &ResultTable, found: &ResultTable, order_matters: bool) -> bool {
    let (right, found) = (&right.rows, &found.rows);
    if right.is_empty() && found.is_empty() {
        return true;
    }
    if right.len() != found.len() || right[0].len() != found[0].len() {
        return false;
    }
    if !has_same_unordered_rows(right, found, order_matters) {
        return false;
    }
    let (right, found) = (columns(right), columns(found));
    if order_matters { match_ordered(&right, &found) } else { match_bags(&right, &found) }
}

/// The quick test in front: rows with their values sorted are the same, in their order or as a set.
fn has_same_unordered_rows(right: &[Vec<Cell>], found: &[Vec<Cell>], order_matters: bool) -> bool {
    let sorted = |rows: &'_ [Vec<Cell>]| -> Vec<Vec<usize>> {
        let by_key = |row: &Vec<Cell>| {
            let mut places: Vec<usize> = (0..row.len()).collect();
            places.sort_by_cached_key(|place| row[*place].python_sort_key());
            places
        };
        rows.iter().map(by_key).collect()
    };
    let (right_order, found_order) = (sorted(right), sorted(found));
    fn keys<'a>(rows: &'a [Vec<Cell>], orders: &[Vec<usize>]) -> Vec<Vec<Key<'a>>> {
        let of_row = |(row, order): (&'a Vec<Cell>, &Vec<usize>)| {
            order.iter().map(|place| row[*place].key()).collect()
        };
        rows.iter().zip(orders).map(of_row).collect()
    }
    let (right, found) = (keys(right, &right_order), keys(found, &found_order));
    if order_matters {
        return right == found;
    }
    let set = |rows: Vec<Vec<_>>| -> HashSet<Vec<_>> { rows.into_iter().collect() };
    set(right) == set(found)
}

fn columns(rows: &[Vec<Cell>]) -> Vec<Vec<Key<'_>>> {
    let column = |place: usize| rows.iter().map(|row| row[place].key()).collect();
    (0..rows[0].len()).map(column).collect()
}

/// Whether every column has one of its own that equals it: columns that are equal stand for each other, so that whichever is
/// taken first is as good.
fn match_ordered(right: &[Vec<Key<'_>>], found: &[Vec<Key<'_>>]) -> bool {
    let mut left: HashMap<&[Key<'_>], usize> = HashMap::new();
    for column in found {
        *left.entry(column).or_default() += 1;
    }
    right.iter().all(|column| match left.get_mut(&column[..]) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    })
}

/// Whether some order of the found columns gives the right bag of rows.
fn match_bags(right: &[Vec<Key<'_>>], found: &[Vec<Key<'_>>]) -> bool {
    let num_rows = right[0].len();
    let mut search =
        Search { right, found, is_taken: vec![false; found.len()], work_left: MOST_WORK };
    search.go_on(0, &vec![0; num_rows], &vec![0; num_rows])
}

struct Search<'a> {
    right: &'a [Vec<Key<'a>>],
    found: &'a [Vec<Key<'a>>],
    is_taken: Vec<bool>,
    work_left: usize,
}

impl Search<'_> {
    /// Looks for a column for `place`, rows being told apart by what stands before that.
    fn go_on(&mut self, place: usize, right_rows: &[usize], found_rows: &[usize]) -> bool {
        if place == self.right.len() {
            return true;
        }
        let mut tried: HashSet<&[Key<'_>]> = HashSet::new();
        let found = self.found;
        for (candidate, column) in found.iter().enumerate() {
            if self.is_taken[candidate] || !tried.insert(column) {
                continue;
            }
            let Some(left) = self.work_left.checked_sub(right_rows.len().max(1)) else {
                return false;
            };
            self.work_left = left;
            let Some((right_rows, found_rows)) =
                extended(right_rows, &self.right[place], found_rows, column)
            else {
                continue;
            };
            self.is_taken[candidate] = true;
            if self.go_on(place + 1, &right_rows, &found_rows) {
                return true;
            }
            self.is_taken[candidate] = false;
        }
        false
    }
}

/// Rows told apart by a column more, under the same numbers on both sides; `None` where the bags differ.
fn extended(
    right_rows: &[usize],
    right: &[Key<'_>],
    found_rows: &[usize],
    found: &[Key<'_>],
) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut numbers: HashMap<(usize, Key<'_>), usize> = HashMap::new();
    let mut counts: Vec<usize> = Vec::new();
    let mut new_right = Vec::with_capacity(right_rows.len());
    for (row, key) in right_rows.iter().zip(right) {
        let number = *numbers.entry((*row, *key)).or_insert_with(|| {
            counts.push(0);
            counts.len() - 1
        });
        counts[number] += 1;
        new_right.push(number);
    }
    let mut new_found = Vec::with_capacity(found_rows.len());
    for (row, key) in found_rows.iter().zip(found) {
        let number = *numbers.get(&(*row, *key))?;
        counts[number] = counts[number].checked_sub(1)?;
        new_found.push(number);
    }
    Some((new_right, new_found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(rows: &[&[i64]]) -> ResultTable {
        let cells = |row: &&[i64]| row.iter().map(|it| Cell::Integer(*it)).collect();
        ResultTable { rows: rows.iter().map(cells).collect(), ..ResultTable::default() }
    }

    fn is_same(right: &[&[i64]], found: &[&[i64]], order_matters: bool) -> bool {
        spider_result_match(&table(right), &table(found), order_matters)
    }

    #[test]
    fn columns_may_be_permuted_and_rows_unless_their_order_matters() {
        assert!(is_same(&[&[1, 2], &[3, 4]], &[&[4, 3], &[2, 1]], false));
        assert!(!is_same(&[&[1, 2], &[3, 4]], &[&[4, 3], &[2, 1]], true));
        assert!(is_same(&[&[1, 2], &[3, 4]], &[&[2, 1], &[4, 3]], true));
        // Every row can be permuted into its counterpart, but not all by the same order.
        assert!(!is_same(&[&[1, 2], &[3, 4]], &[&[2, 1], &[3, 4]], false));
        assert!(!is_same(&[&[1], &[1], &[2]], &[&[1], &[2], &[2]], false), "bags");
        assert!(!is_same(&[&[1]], &[&[1], &[1]], false) && !is_same(&[&[1]], &[&[1, 1]], false));
        assert!(is_same(&[], &[], true));
    }

    #[test]
    fn many_equal_columns_end_in_time() {
        let row: Vec<i64> = (0..12).map(|place| place % 2).collect();
        let other: Vec<i64> = (0..12).map(|place| (place + 1) % 2).collect();
        let rows: Vec<&[i64]> = vec![&row, &other, &row];
        assert!(is_same(&rows, &rows, false));
        // Ones in other columns of every row: the sorted rows are the same, the table is not.
        let wide = |shift: usize| -> Vec<Vec<i64>> {
            (0..40)
                .map(|row: usize| {
                    (0..14)
                        .map(|place| i64::from((row * (3 + shift) + place * place) % 14 < 7))
                        .collect()
                })
                .collect()
        };
        let (a, b) = (wide(0), wide(2));
        let (a, b): (Vec<&[i64]>, Vec<&[i64]>) =
            (a.iter().map(|r| &r[..]).collect(), b.iter().map(|r| &r[..]).collect());
        is_same(&a, &b, false);
    }

    proptest! {
        #[test]
        fn any_order_of_rows_and_columns_is_the_same(
            rows in proptest::collection::vec(proptest::collection::vec(0_i64..3, 4), 1..8),
            seed in any::<u64>(),
        ) {
            let mut order: Vec<usize> = (0..4).collect();
            let mut state = seed | 1;
            for place in (1..4).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                order.swap(place, (state >> 33) as usize % (place + 1));
            }
            let mut other: Vec<Vec<i64>> = rows.iter().map(|row| order.iter().map(|place| row[*place]).collect()).collect();
            let right: Vec<&[i64]> = rows.iter().map(|row| &row[..]).collect();
            let in_order: Vec<&[i64]> = other.iter().map(|row| &row[..]).collect();
            prop_assert!(is_same(&right, &in_order, true));
            other.reverse();
            let reversed: Vec<&[i64]> = other.iter().map(|row| &row[..]).collect();
            prop_assert!(is_same(&right, &reversed, false));
        }
    }
}
