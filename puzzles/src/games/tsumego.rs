//! Stones of Go that can be captured.

use std::collections::HashSet;

use crate::prelude::*;

options! {
    /// Options of `tsumego`.
    TsumegoOptions {
        /// Fewest lines of the board, at least 5. Default 9.
        min_board_size: i64 = 9,
        /// Most lines of the board, up to 19. Default 13.
        max_board_size: i64 = 13,
        /// Most stones, 5 to 100. Default 15.
        max_stones: i64 = 15,
    }
    |given, problems| {
        problems.span(("min_board_size", "max_board_size"), (given.min_board_size, given.max_board_size), (5, 19));
        problems.between("max_stones", given.max_stones, 5, 100);
    }
}

/// Stones drawn beyond which a board is taken to be full; the package goes on for ever.
const MOST_STONES: u64 = 100_000;

/// A board on which one move captures white stones.
pub(crate) struct Tsumego;

type Point = (usize, usize);

/// A board of `.`, `X` and `O`, and where it is not allowed to take back.
struct Board {
    cells: Vec<Vec<u8>>,
    ko: Option<Point>,
}

/// White stones and the move that captures them, all of these, from a centre.
type Formation = (&'static [(i64, i64)], (i64, i64));

const FORMATIONS: [Formation; 3] = [
    (&[(0, 0), (-1, 0), (1, 0), (0, -1)], (0, 1)),
    (&[(0, 0), (0, 1), (1, 0)], (1, 1)),
    (&[(0, -1), (0, 0), (0, 1), (1, 0)], (-1, 0)),
];

impl Generator for Tsumego {
    type Options = TsumegoOptions;

    fn item(options: &TsumegoOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let size = rng.int(options.min_board_size, options.max_board_size)? as usize;
        let mut board = Board { cells: vec![vec![b'.'; size]; size], ko: None };
        let solution = board.draw(rng, options.max_stones)?;
        let answer = format!("{}{}", char::from(b'A' + solution.1 as u8), size - solution.0);
        let asked = match rng.below(3) {
            0 => "Tsumego time. Black to play and capture some stones.\nFind the key move.",
            1 => {
                "I have a Go problem for you. Black moves next - can you capture some of the white stones?"
            }
            _ => {
                "Here's a Go challenge. Playing as Black, how can you capture as many white stones as possible?"
            }
        };
        let columns = joined((0..size).map(|column| char::from(b'A' + column as u8)), " ");
        let rows = joined(
            board.cells.iter().enumerate().map(|(row, cells)| {
                format!(
                    "{:2} {}",
                    size - row,
                    joined(cells.iter().map(|cell| char::from(*cell)), " ")
                )
            }),
            "\n",
        );
        let question = format!(
            "{asked}\n\n```\n   {columns}\n{rows}\n```\n\nX - Black\nO - White\n\nSpecify your move in coordinates (e.g. 'C4' for column C, row 4)"
        );
        Ok(Item::new(question, answer))
    }

    fn score(_: &TsumegoOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let upper = strip(answer).to_uppercase();
        let is_point = || {
            let mut letters = upper.chars();
            let first = letters.next();
            let rest = letters.as_str();
            first.is_some_and(|letter| letter.is_ascii_uppercase())
                && !rest.is_empty()
                && rest.chars().all(|digit| spar_python::characters::decimal_value(digit).is_some())
        };
        match upper == item.gold() {
            true => 1.0,
            false if upper.contains(item.gold()) => share(&upper, item.gold()),
            false if is_point() => 0.05,
            false => 0.01,
        }
    }
}

impl Board {
    fn at(&self, (row, column): Point) -> u8 {
        self.cells[row][column]
    }

    fn around(&self, (row, column): Point) -> impl Iterator<Item = Point> {
        let size = self.cells.len();
        [
            (row.wrapping_sub(1), column),
            (row + 1, column),
            (row, column.wrapping_sub(1)),
            (row, column + 1),
        ]
        .into_iter()
        .filter(move |(row, column)| *row < size && *column < size)
    }

    /// The stones connected with one, and whether they have a liberty.
    fn group(&self, point: Point) -> (HashSet<Point>, bool) {
        let color = self.at(point);
        let (mut group, mut open, mut is_free) = (HashSet::from([point]), vec![point], false);
        while let Some(point) = open.pop() {
            for next in self.around(point) {
                is_free |= self.at(next) == b'.';
                if self.at(next) == color && group.insert(next) {
                    open.push(next);
                }
            }
        }
        (group, is_free)
    }

    /// The stones of the other colour that have no liberty left beside a stone just put.
    fn captured(&self, point: Point, color: u8) -> Vec<HashSet<Point>> {
        let groups = self
            .around(point)
            .filter(|next| ![b'.', color].contains(&self.at(*next)))
            .map(|next| self.group(next));
        groups.filter(|(_, is_free)| !is_free).map(|(group, _)| group).collect()
    }

    fn is_valid(&mut self, point: Point, color: u8) -> bool {
        if self.at(point) != b'.' || self.ko == Some(point) {
            return false;
        }
        self.cells[point.0][point.1] = color;
        let is_valid = !self.captured(point, color).is_empty() || self.group(point).1;
        self.cells[point.0][point.1] = b'.';
        is_valid
    }

    fn put(&mut self, point: Point, color: u8) {
        self.ko = None;
        self.cells[point.0][point.1] = color;
        // A group that touches the stone twice is counted twice, as in the package.
        let captured = self.captured(point, color);
        let count: usize = captured.iter().map(HashSet::len).sum();
        if count == 1 && self.group(point).0.len() == 1 {
            self.ko = captured.iter().flatten().next().copied();
        }
        for (row, column) in captured.into_iter().flatten() {
            self.cells[row][column] = b'.';
        }
    }

    /// Draws stones and a group that one move captures; that move.
    fn draw(&mut self, rng: &mut Random, max_stones: i64) -> Result<Point, ItemError> {
        let size = self.cells.len();
        let mut color = |rng: &mut Random| if rng.random() < 0.5 { b'X' } else { b'O' };
        let (mut placed, mut tries) = (0, 0);
        while placed < max_stones - 4 {
            let point = (rng.below(size as u64) as usize, rng.below(size as u64) as usize);
            let color = color(rng);
            if self.is_valid(point, color) {
                self.put(point, color);
                placed += 1;
            }
            tries += 1;
            if tries > MOST_STONES {
                return Err(ItemError::TooManyTries { tries });
            }
        }
        for _ in 0..50 {
            let (row, column) = (rng.int(1, size as i64 - 2)?, rng.int(1, size as i64 - 2)?);
            let (white, forced) = FORMATIONS[rng.below(3) as usize];
            let point =
                |(down, right): (i64, i64)| ((row + down) as usize, (column + right) as usize);
            let forced = point(forced);
            if !white
                .iter()
                .map(|offset| point(*offset))
                .chain([forced])
                .all(|point| self.at(point) == b'.')
            {
                continue;
            }
            for offset in white {
                let (row, column) = point(*offset);
                self.cells[row][column] = b'O';
            }
            let liberties: Vec<Point> = white
                .iter()
                .flat_map(|offset| self.around(point(*offset)).collect::<Vec<_>>())
                .filter(|next| self.at(*next) == b'.' && *next != forced)
                .collect();
            for (row, column) in liberties {
                self.cells[row][column] = b'X';
            }
            let stones = self.cells.iter().flatten().filter(|cell| **cell != b'.').count() as i64;
            if stones < max_stones + 7 {
                self.decoy(rng, (row, column), forced, &mut color)?;
            }
            if self.is_valid(forced, b'X') {
                return Ok(forced);
            }
        }
        Err(ItemError::raised("Failed to generate a capture problem"))
    }

    /// One more stone two steps from a centre, where there is room.
    fn decoy(
        &mut self,
        rng: &mut Random,
        (row, column): (i64, i64),
        forced: Point,
        color: &mut dyn FnMut(&mut Random) -> u8,
    ) -> Result<(), ItemError> {
        let size = self.cells.len() as i64;
        let mut free = Vec::new();
        for i in row - 2..=row + 2 {
            for j in column - 2..=column + 2 {
                let is_near = (i - row).abs() + (j - column).abs() == 2;
                if is_near && (0..size).contains(&i) && (0..size).contains(&j) {
                    let point = (i as usize, j as usize);
                    if self.at(point) == b'.' && point != forced {
                        free.push(point);
                    }
                }
            }
        }
        if !free.is_empty() {
            let (row, column) = *rng.choice(&free)?;
            self.cells[row][column] = color(rng);
        }
        Ok(())
    }
}
