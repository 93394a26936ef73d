//! Shortest paths in a grid.

use std::collections::VecDeque;

use crate::prelude::*;

const DIRECTIONS: [(&str, isize, isize); 4] =
    [("right", 0, 1), ("down", 1, 0), ("left", 0, -1), ("up", -1, 0)];

options! {
    /// Options of `shortest_path`.
    ShortestPathOptions {
        /// Fewest rows, at least 1. Default 5.
        min_rows: i64 = 5,
        /// Most rows, up to 300. Default 8.
        max_rows: i64 = 8,
        /// Fewest columns, at least 1, or 2 where there can be one row. Default 5.
        min_cols: i64 = 5,
        /// Most columns, up to 300. Default 8.
        max_cols: i64 = 8,
        /// How many cells are blocked, 0 to 1. Default 0.4.
        p_blocked: f64 = 0.4,
    }
    |given, problems| {
        problems.span(("min_rows", "max_rows"), (given.min_rows, given.max_rows), (1, 300));
        problems.span(("min_cols", "max_cols"), (given.min_cols, given.max_cols), (1, 300));
        problems.require(given.min_rows > 1 || given.min_cols > 1, || {
            "min_cols must be at least 2 where min_rows is 1: start and goal are two cells".to_owned()
        });
        problems.between("p_blocked", given.p_blocked, 0.0, 1.0);
    }
}

/// A grid with blocked cells; the shortest way from one cell to another is asked for.
pub(crate) struct ShortestPath;

impl Generator for ShortestPath {
    type Options = ShortestPathOptions;

    fn item(options: &ShortestPathOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let rows = rng.int(options.min_rows, options.max_rows)?;
        let columns = rng.int(options.min_cols, options.max_cols)?;
        let mut cells = vec![vec!['O'; columns as usize]; rows as usize];
        for cell in cells.iter_mut().flatten() {
            if rng.random() < options.p_blocked {
                *cell = 'X';
            }
        }
        let place = |rng: &mut Random| -> Result<(usize, usize), ItemError> {
            Ok((rng.int(0, rows - 1)? as usize, rng.int(0, columns - 1)? as usize))
        };
        let start = place(rng)?;
        let goal = loop {
            let goal = place(rng)?;
            if goal != start {
                break goal;
            }
        };
        cells[start.0][start.1] = '*';
        cells[goal.0][goal.1] = '#';
        let question = format!(
            "Your task is to find the shortest path from the start to the destination point in a grid.\n\nThe grid is represented as a matrix with the following types of cells:\n- *: your starting point\n- #: your destination point\n- O: an open cell\n- X: a blocked cell\n\nTherefore, you need to find the shortest path from * to #, moving only through open cells.\n\nYou may only move in four directions: up, down, left, and right.\n\nIf there is no path from * to #, simply write \"infeasible\" (without quotes).\n\nYour output should be a sequence of directions that leads from * to #, e.g. right right down down up left\n\nNow, find the shortest path from * to # in the following grid:\n{}\n",
            matrix(&cells)
        );
        let answer = shortest(&cells, start)
            .map_or_else(|| "infeasible".to_owned(), |path| joined(path, " "));
        let facts: Vec<Vec<String>> =
            cells.iter().map(|row| row.iter().map(char::to_string).collect()).collect();
        Ok(Item::new(question, answer).with("matrix", json!(facts)))
    }

    fn score(_: &ShortestPathOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let gold = strip(item.gold());
        if strip(answer) == gold {
            return 1.0;
        }
        let cells: Vec<Vec<&str>> = item
            .fact("matrix")
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| row.as_array().into_iter().flatten().filter_map(Value::as_str).collect())
            .collect();
        match leads_to_goal(&cells, words(answer)) {
            true if words(answer).count() == words(gold).count() => 1.0,
            true => 0.5,
            false => 0.0,
        }
    }
}

fn shortest(cells: &[Vec<char>], start: (usize, usize)) -> Option<Vec<&'static str>> {
    // The step by which each cell was reached first.
    let mut by: Vec<Vec<Option<usize>>> = vec![vec![None; cells[0].len()]; cells.len()];
    let mut queue = VecDeque::from([start]);
    while let Some((row, column)) = queue.pop_front() {
        for (direction, (name, down, right)) in DIRECTIONS.iter().enumerate() {
            let next = (row.wrapping_add_signed(*down), column.wrapping_add_signed(*right));
            let Some(cell) = cells.get(next.0).and_then(|row| row.get(next.1)) else { continue };
            if *cell == '#' {
                let (mut path, mut at) = (vec![*name], (row, column));
                while let Some(direction) = by[at.0][at.1] {
                    let (name, down, right) = DIRECTIONS[direction];
                    path.push(name);
                    at = (at.0.wrapping_add_signed(-down), at.1.wrapping_add_signed(-right));
                }
                path.reverse();
                return Some(path);
            }
            if *cell == 'O' && by[next.0][next.1].is_none() {
                by[next.0][next.1] = Some(direction);
                queue.push_back(next);
            }
        }
    }
    None
}

fn leads_to_goal<'a>(cells: &[Vec<&str>], path: impl Iterator<Item = &'a str>) -> bool {
    let find = |wanted: &str| {
        cells.iter().enumerate().find_map(|(row, cells)| {
            cells.iter().position(|cell| *cell == wanted).map(|column| (row, column))
        })
    };
    let (Some(mut at), Some(goal)) = (find("*"), find("#")) else { return false };
    for name in path {
        let Some((_, down, right)) = DIRECTIONS.iter().find(|(known, _, _)| *known == name) else {
            return false;
        };
        at = (at.0.wrapping_add_signed(*down), at.1.wrapping_add_signed(*right));
        match cells.get(at.0).and_then(|row| row.get(at.1)) {
            None | Some(&"X") => return false,
            Some(_) => {}
        }
    }
    at == goal
}
