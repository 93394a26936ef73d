//! Graphs to be coloured.

use crate::prelude::*;

/// Graphs drawn before options are taken to give none that can be coloured one vertex after the other.
const MOST_TRIES: u64 = 20_000;

options! {
    /// Options of `graph_color`.
    GraphColorOptions {
        /// Colours, 1 to 100. Default 3.
        num_colors: i64 = 3,
        /// Fewest vertices, at least 1. Default 10.
        min_num_vertices: i64 = 10,
        /// Most vertices, up to 500. Default 10.
        max_num_vertices: i64 = 10,
        /// How many pairs of vertices are connected, 0 to below 1. Default 0.1.
        edge_probability: f64 = 0.1,
    }
    |given, problems| {
        problems.between("num_colors", given.num_colors, 1, 100);
        let counts = (given.min_num_vertices, given.max_num_vertices);
        problems.span(("min_num_vertices", "max_num_vertices"), counts, (1, 500));
        problems.require((0.0..1.0).contains(&given.edge_probability), || {
            format!("edge_probability is {}, must be 0 to below 1", given.edge_probability)
        });
    }
}

/// A graph whose vertices get colours, no two neighbours the same.
pub(crate) struct GraphColor;

impl Generator for GraphColor {
    type Options = GraphColorOptions;

    fn item(options: &GraphColorOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let mut count = rng.int(options.min_num_vertices, options.max_num_vertices)?;
        for _ in 0..MOST_TRIES {
            let mut edges = Vec::new();
            for a in 0..count {
                for b in a + 1..count {
                    if rng.random() < options.edge_probability {
                        edges.push((a, b));
                    }
                }
            }
            let Some(colors) = greedy(count as usize, &edges, options.num_colors) else {
                count = rng.int(options.min_num_vertices, options.max_num_vertices)?;
                continue;
            };
            let written = list(edges.iter().map(|(a, b)| format!("({a}, {b})")));
            let question = format!(
                "Please provide a coloring for this graph such that every vertex is not connected to a vertex of the same color. The graph has these properties:\n\nVertices: {}\nEdges: {written}\nPossible colors: {}\n\nReturn your solution as a JSON map of vertices to colors. (For example: {{\"0\": 1, \"1\": 2, \"2\": 3}}.)\n",
                list(0..count),
                list(1..=options.num_colors)
            );
            let possible: serde_json::Map<String, Value> = colors
                .iter()
                .enumerate()
                .map(|(vertex, color)| (vertex.to_string(), json!(color)))
                .collect();
            return Ok(Item::without_answer(question).with("possible_answer", possible).with(
                "puzzle",
                json!({
                    "vertices": (0..count).collect::<Vec<_>>(),
                    "edges": edges,
                    "num_colors": options.num_colors,
                    "color_options": (1..=options.num_colors).collect::<Vec<_>>(),
                }),
            ));
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }

    fn score(_: &GraphColorOptions, answer: Option<&str>, item: &Item) -> f64 {
        // Anything but a table holds no vertex or raises an exception.
        let given = match answer.and_then(json_loads) {
            Some(Value::Object(given)) => given,
            Some(Value::Array(_) | Value::String(_)) => return 0.01,
            _ => return 0.0,
        };
        let puzzle = item.fact("puzzle");
        let entries = |name: &str| puzzle[name].as_array().into_iter().flatten();
        let mut colors = Vec::new();
        for vertex in entries("vertices") {
            match given.get(&vertex.to_string()) {
                Some(color) => colors.push(color),
                None => return 0.01,
            }
        }
        // Lists and tables cannot be looked up in a set of colours: an exception.
        for color in &colors {
            if color.is_array() || color.is_object() {
                return 0.0;
            }
            if !entries("color_options").any(|allowed| is_json_equal(allowed, color)) {
                return 0.01;
            }
        }
        let color_of = |vertex: &Value| colors[vertex.as_u64().unwrap_or_default() as usize];
        let is_right =
            entries("edges").all(|edge| !is_json_equal(color_of(&edge[0]), color_of(&edge[1])));
        if is_right { 1.0 } else { 0.01 }
    }
}

/// The first colour that none of the neighbours before has, for each vertex; absent where there is none left.
fn greedy(count: usize, edges: &[(i64, i64)], num_colors: i64) -> Option<Vec<i64>> {
    let mut before = vec![Vec::new(); count];
    for &(a, b) in edges {
        before[b as usize].push(a as usize);
    }
    let mut colors: Vec<i64> = Vec::with_capacity(count);
    for neighbours in before {
        let is_free = |color: &i64| neighbours.iter().all(|neighbour| colors[*neighbour] != *color);
        let color = (1..=num_colors).find(is_free)?;
        colors.push(color);
    }
    Some(colors)
}
