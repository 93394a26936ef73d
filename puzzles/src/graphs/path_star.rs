//! Paths in star graphs.

use std::collections::HashSet;

use crate::prelude::*;

options! {
    /// Options of `path_star`.
    PathStarOptions {
        /// Arms of the star, 2 to 1000. Default 3.
        degree: i64 = 3,
        /// Labels are below this, up to 10^12; twice as many as there are nodes at least. Default 100000.
        node_range: i64 = 100_000,
        /// Fewest nodes of an arm, at least 2. Default 3.
        min_path_length: i64 = 3,
        /// Most nodes of an arm, up to 1000. Default 5.
        max_path_length: i64 = 5,
        /// Whether the path goes from the goal to the start. Default false.
        reversed: bool = false,
    }
    |given, problems| {
        problems.between("degree", given.degree, 2, 1_000);
        problems.span(("min_path_length", "max_path_length"), (given.min_path_length, given.max_path_length), (2, 1_000));
        let nodes = given.degree.saturating_mul(given.max_path_length).saturating_add(1);
        problems.between("node_range", given.node_range, nodes.saturating_add(1), 1_000_000_000_000);
    }
}

/// A star of paths; the one to a goal is asked for.
pub(crate) struct PathStar;

impl Generator for PathStar {
    type Options = PathStarOptions;

    fn item(options: &PathStarOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let range = options.node_range as u64;
        let center = rng.below(range);
        let length = rng.int(options.min_path_length, options.max_path_length)?;
        let mut used = HashSet::from([center]);
        let mut paths = Vec::new();
        for _ in 0..options.degree {
            let mut path = Vec::new();
            for _ in 0..length {
                path.push(loop {
                    let node = rng.below(range);
                    if used.insert(node) {
                        break node;
                    }
                });
            }
            paths.push(path);
        }
        let goal_path = rng.choice(&paths)?.clone();
        let goal = goal_path[goal_path.len() - 1];
        let mut edges: Vec<(u64, u64)> = paths.iter().map(|path| (center, path[0])).collect();
        edges.extend(paths.iter().flat_map(|path| path.windows(2).map(|pair| (pair[0], pair[1]))));
        rng.shuffle(&mut edges);
        let edges = joined(edges.iter().map(|(a, b)| format!("|{a} {b}")), "");
        let mut gold = [&[center], goal_path.as_slice()].concat();
        let (from, to) = if options.reversed { (goal, center) } else { (center, goal) };
        if options.reversed {
            gold.reverse();
        }
        let task = format!("{edges}/{from} {to} = ");
        let question = format!(
            "\nFind a path from the start node to the goal node in the following path-star graph.\nRespond with only the sequence of node labels in the path, including the start and goal nodes.\nSeparate node labels with a single space.\n\nThe graph is represented as a list of edges, where each edge is defined by two node labels.\nThe edges are separated by a vertical bar '|'. Then, the start and goal nodes are specified after a slash '/'.\n\nExample:\n|1 2|1 3|2 4|3 5/1 5 = 1 3 5\n\nSolve the following task:\n{task}\n"
        );
        Ok(Item::new(question, joined(gold, " ")))
    }

    fn score(_: &PathStarOptions, answer: Option<&str>, item: &Item) -> f64 {
        f64::from(answer.is_some_and(|answer| words(answer).eq(words(item.gold()))))
    }
}
