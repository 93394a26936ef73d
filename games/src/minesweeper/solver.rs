//! What a board of Minesweeper tells of its hidden cells.

use std::collections::{BTreeMap, BTreeSet};

use super::around;

/// Situations of a group of cells that are looked at, at the most.
const MAX_NODES: u32 = 200_000;

/// So many mines are in these cells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Constraint {
    cells: Vec<usize>,
    mines: usize,
}

/// The hidden cell that is a mine least likely: certainly none where that can be derived, else by counting the
/// arrangements of mines that agree with the numbers, group by group of cells that share some.
pub(super) fn safest(
    rows: usize,
    cols: usize,
    num_mines: usize,
    shown: &[Option<u8>],
    hit: &[usize],
) -> Option<usize> {
    let mut mines: BTreeSet<usize> = hit.iter().copied().collect();
    let mut safe: BTreeSet<usize> = BTreeSet::new();
    let mut constraints: BTreeSet<Constraint> = BTreeSet::new();
    for (cell, number) in shown.iter().enumerate() {
        if let Some(number) = number {
            let cells: Vec<usize> =
                around(rows, cols, cell).filter(|other| shown[*other].is_none()).collect();
            constraints.insert(Constraint { cells, mines: usize::from(*number) });
        }
    }
    propagate(&mut constraints, &mut mines, &mut safe);
    if let Some(cell) = safe.first() {
        return Some(*cell);
    }
    let chances = chances(&constraints);
    let hidden = || (0..shown.len()).filter(|cell| shown[*cell].is_none() && !mines.contains(cell));
    let expected: f64 = chances.values().sum();
    let apart = hidden().filter(|cell| !chances.contains_key(cell)).count();
    let left = num_mines.saturating_sub(mines.len()) as f64 - expected;
    let elsewhere = if apart == 0 { 1.0 } else { (left / apart as f64).clamp(0.0, 1.0) };
    let chance = |cell: &usize| chances.get(cell).copied().unwrap_or(elsewhere);
    hidden().min_by(|one, two| chance(one).total_cmp(&chance(two)))
}

/// Derives mines and safe cells until nothing new follows: by constraints on their own, and by pairs of which one holds
/// all cells of the other.
fn propagate(
    constraints: &mut BTreeSet<Constraint>,
    mines: &mut BTreeSet<usize>,
    safe: &mut BTreeSet<usize>,
) {
    loop {
        let mut next: BTreeSet<Constraint> = BTreeSet::new();
        let mut has_found = false;
        for constraint in constraints.iter() {
            let known = constraint.cells.iter().filter(|cell| mines.contains(cell)).count();
            let is_open = |cell: &&usize| !mines.contains(cell) && !safe.contains(cell);
            let cells: Vec<usize> = constraint.cells.iter().filter(is_open).copied().collect();
            let left = constraint.mines.saturating_sub(known);
            if cells.is_empty() {
                continue;
            }
            if left == 0 {
                safe.extend(cells);
                has_found = true;
            } else if left == cells.len() {
                mines.extend(cells);
                has_found = true;
            } else {
                next.insert(Constraint { cells, mines: left });
            }
        }
        *constraints = next;
        if has_found {
            continue;
        }
        let all: Vec<Constraint> = constraints.iter().cloned().collect();
        for small in &all {
            for large in &all {
                let is_within = small.cells.len() < large.cells.len()
                    && small.mines <= large.mines
                    && small.cells.iter().all(|cell| large.cells.contains(cell));
                if is_within {
                    let outside = large.cells.iter().filter(|cell| !small.cells.contains(cell));
                    let cells = outside.copied().collect();
                    let mines = large.mines - small.mines;
                    has_found |= constraints.insert(Constraint { cells, mines });
                }
            }
        }
        if !has_found {
            return;
        }
    }
}

/// How likely each constrained cell is a mine, all arrangements of a group being equally likely.
fn chances(constraints: &BTreeSet<Constraint>) -> BTreeMap<usize, f64> {
    let mut chances = BTreeMap::new();
    let mut open: Vec<&Constraint> = constraints.iter().collect();
    while let Some(first) = open.pop() {
        let mut group = vec![first];
        let mut cells: Vec<usize> = first.cells.clone();
        loop {
            let (near, far): (Vec<_>, Vec<_>) = open
                .into_iter()
                .partition(|other| other.cells.iter().any(|cell| cells.contains(cell)));
            open = far;
            if near.is_empty() {
                break;
            }
            for constraint in near {
                for cell in &constraint.cells {
                    if !cells.contains(cell) {
                        cells.push(*cell);
                    }
                }
                group.push(constraint);
            }
        }
        let mut counting = Counting::new(&group, &cells);
        counting.place(0);
        for (at, cell) in cells.iter().enumerate() {
            let chance = match counting.all == 0.0 || counting.nodes > MAX_NODES {
                // Too many to count: the nearest numbers tell.
                true => group
                    .iter()
                    .filter(|constraint| constraint.cells.contains(cell))
                    .map(|constraint| constraint.mines as f64 / constraint.cells.len() as f64)
                    .fold(0.0, f64::max),
                false => counting.with_mine[at] / counting.all,
            };
            chances.insert(*cell, chance);
        }
    }
    chances
}

/// Counts the arrangements of a group.
struct Counting {
    /// By cell, the constraints that it is in.
    of_cell: Vec<Vec<usize>>,
    /// Mines and cells that constraints still lack.
    mines: Vec<usize>,
    cells: Vec<usize>,
    is_mine: Vec<bool>,
    with_mine: Vec<f64>,
    all: f64,
    nodes: u32,
}

impl Counting {
    fn new(group: &[&Constraint], cells: &[usize]) -> Self {
        let of_cell = |cell: &usize| {
            let has = |(_, constraint): &(usize, &&Constraint)| constraint.cells.contains(cell);
            group.iter().enumerate().filter(has).map(|(at, _)| at).collect()
        };
        Self {
            of_cell: cells.iter().map(of_cell).collect(),
            mines: group.iter().map(|constraint| constraint.mines).collect(),
            cells: group.iter().map(|constraint| constraint.cells.len()).collect(),
            is_mine: vec![false; cells.len()],
            with_mine: vec![0.0; cells.len()],
            all: 0.0,
            nodes: 0,
        }
    }

    fn place(&mut self, at: usize) {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return;
        }
        if at == self.of_cell.len() {
            self.all += 1.0;
            for (with_mine, is_mine) in self.with_mine.iter_mut().zip(&self.is_mine) {
                *with_mine += f64::from(u8::from(*is_mine));
            }
            return;
        }
        for is_mine in [false, true] {
            let constraints = std::mem::take(&mut self.of_cell[at]);
            let fits = constraints.iter().all(|constraint| {
                let (mines, cells) = (self.mines[*constraint], self.cells[*constraint]);
                if is_mine { mines > 0 } else { mines < cells }
            });
            if fits {
                for constraint in &constraints {
                    self.mines[*constraint] -= usize::from(is_mine);
                    self.cells[*constraint] -= 1;
                }
                self.is_mine[at] = is_mine;
            }
            self.of_cell[at] = constraints;
            if fits {
                self.place(at + 1);
                for constraint in &self.of_cell[at] {
                    self.mines[*constraint] += usize::from(is_mine);
                    self.cells[*constraint] += 1;
                }
                self.is_mine[at] = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board of numbers, `.` for what is hidden.
    fn safest_of(rows: &[&str], mines: usize) -> usize {
        let shown: Vec<Option<u8>> = rows
            .iter()
            .flat_map(|row| row.bytes())
            .map(|cell| (cell != b'.').then(|| cell - b'0'))
            .collect();
        safest(rows.len(), rows[0].len(), mines, &shown, &[]).unwrap()
    }

    #[test]
    fn numbers_in_a_row_tell_what_is_safe() {
        // 1-2-1: mines at the ends, the middle is safe.
        assert_eq!(safest_of(&["...", "121", "000"], 2), 1);
        // 1-1 at an edge: the third cell is safe.
        assert_eq!(safest_of(&["....", "11..", "00.."], 2), 2);
    }

    #[test]
    fn where_nothing_is_certain_the_least_likely_mine_is_taken() {
        // Two cells share one mine; the many far away have few.
        let cell = safest_of(&["1.......", "1.......", "........"], 2);
        assert!(cell != 1 && cell != 9, "{cell}");
    }
}
