//! Matrices read in a spiral.

use spar_python::{NoNames, eval, iterate, to_str};

use crate::prelude::*;
use crate::scoring::is_stripped_equal;

options! {
    /// Options of `spiral_matrix`.
    SpiralMatrixOptions {
        /// Fewest rows, at least 2. Default 2.
        min_n: i64 = 2,
        /// Most rows, up to 300. Default 10.
        max_n: i64 = 10,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (2, 300));
    }
}

/// A square matrix, whose numbers are asked for in a spiral from its corner.
pub(crate) struct SpiralMatrix;

impl Generator for SpiralMatrix {
    type Options = SpiralMatrixOptions;

    fn item(options: &SpiralMatrixOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let size = rng.int(options.min_n, options.max_n)? as usize;
        let mut numbers = Vec::new();
        for _ in 0..size * size {
            numbers.push(rng.int(0, 9)?);
        }
        rng.shuffle(&mut numbers);
        let rows: Vec<Vec<i64>> = numbers.chunks(size).map(<[i64]>::to_vec).collect();
        let question = format!(
            "Given a matrix, your job is to generate a list of elements in spiral order, starting from the top-left element.\n\nThe spiral order is clockwise, starting from the top-left corner. More precisely:\n- Start from the top-left corner and move right along the top row.\n- Move down along the right column.\n- Move left along the bottom row.\n- Move up along the left column.\n- Repeat the steps for the inner elements of the matrix until every entry is visited.\n\nHint: Think of peeling the matrix layer by layer from the outside inward. Each layer forms a rectangular frame, and you traverse each frame clockwise starting from its top-left corner.\n\nYour output should be a space-separated list of integers, e.g. 1 2 3 4 5 6\n\nFor the matrix below, what is the list of elements in spiral order?\n{}\n",
            matrix(&rows)
        );
        Ok(Item::new(question, joined(spiral(&rows), " ")))
    }

    fn score(_: &SpiralMatrixOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let gold = strip(item.gold());
        if is_stripped_equal(answer, gold) {
            return 1.0;
        }
        let evaluated = || {
            let items = iterate(&eval(strip(answer), &mut NoNames).ok()?).ok()?;
            let items: Option<Vec<String>> = items.iter().map(|item| to_str(item).ok()).collect();
            Some(items?.join(" "))
        };
        if evaluated().as_deref() == Some(gold) { 0.1 } else { 0.0 }
    }
}

fn spiral(rows: &[Vec<i64>]) -> Vec<i64> {
    let size = rows.len();
    let mut out = Vec::with_capacity(size * size);
    for layer in 0..size.div_ceil(2) {
        let last = size - 1 - layer;
        out.extend((layer..=last).map(|column| rows[layer][column]));
        out.extend((layer + 1..=last).map(|row| rows[row][last]));
        if layer < last {
            out.extend((layer..last).rev().map(|column| rows[last][column]));
            out.extend((layer + 1..last).rev().map(|row| rows[row][layer]));
        }
    }
    out
}
