//! Families that are answered by yes or no, both about as often.

use super::answer::Answer;
use super::graph::{Draw, Graph};
use super::problem::Made;

/// A graph of which something is so, or not, as drawn.
fn either(
    draw: &mut Draw<'_>,
    asked: &str,
    is_so: fn(&Graph) -> bool,
    so: impl FnMut(&mut Draw<'_>) -> Graph,
    otherwise: impl FnMut(&mut Draw<'_>) -> Graph,
) -> Made {
    let graph = match draw.chance(0.5) {
        true => draw.until(so, is_so),
        false => draw.until(otherwise, |graph| !is_so(graph)),
    };
    let answer = Answer::Truth(is_so(&graph));
    Made::new(graph, asked, answer)
}

pub(super) fn edge_existence(draw: &mut Draw<'_>) -> Made {
    let (from, to) = draw.two_nodes();
    let graph = draw.graph(false, 0.5, 1);
    let answer = Answer::Truth(graph.has(from, to));
    Made::new(graph, format!("Is there an edge between node {from} and node {to}?"), answer)
}

pub(super) fn is_connected(draw: &mut Draw<'_>) -> Made {
    let (from, to) = draw.two_nodes();
    let is_so = draw.chance(0.5);
    let probability = 1.3 / draw.num_nodes as f64;
    let graph = draw.until(
        |draw| draw.graph(false, probability, 1),
        |graph| graph.distances(from)[to].is_some() == is_so && !graph.has(from, to),
    );
    let answer = Answer::Truth(graph.distances(from)[to].is_some());
    Made::new(graph, format!("Is there a way between node {from} and node {to}?"), answer)
}

pub(super) fn has_cycle(draw: &mut Draw<'_>) -> Made {
    // A graph without one has as many edges less than nodes as it has components.
    let is_so = |graph: &Graph| graph.edges().len() + graph.components().len() > graph.num_nodes;
    let with_cycle = |draw: &mut Draw<'_>| {
        let mut graph = draw.forest(0.8);
        let (from, to) = draw.two_nodes();
        graph.connect(from, to, 1);
        graph
    };
    either(draw, "Does it have a cycle?", is_so, with_cycle, |draw| draw.forest(0.9))
}

pub(super) fn is_bipartite(draw: &mut Draw<'_>) -> Made {
    let with_odd_cycle = |draw: &mut Draw<'_>| {
        let mut graph = draw.bipartite(0.5);
        let (from, to) = draw.two_nodes();
        graph.connect(from, to, 1);
        graph
    };
    let is_so = |graph: &Graph| graph.sides().is_some();
    let asked = "Is it bipartite: can its nodes be put on two sides, so that every edge leads from one side to the other?";
    either(draw, asked, is_so, |draw| draw.bipartite(0.5), with_odd_cycle)
}

pub(super) fn is_eulerian(draw: &mut Draw<'_>) -> Made {
    let is_so = |graph: &Graph| {
        graph.is_connected() && graph.nodes().all(|node| graph.degree(node).is_multiple_of(2))
    };
    // A circle through all nodes, and a second one through some, edges in both taken away.
    let circles = |draw: &mut Draw<'_>| {
        let mut graph = Graph::new(draw.num_nodes, false);
        for count in [draw.num_nodes, 3 + draw.below(draw.num_nodes - 3)] {
            let order = draw.order();
            for at in 0..count {
                let (from, to) = (order[at], order[(at + 1) % count]);
                graph.connect(from, to, u32::from(!graph.has(from, to)));
            }
        }
        graph
    };
    let nearly = move |draw: &mut Draw<'_>| {
        let mut graph = circles(draw);
        let (from, to) = draw.two_nodes();
        graph.connect(from, to, u32::from(!graph.has(from, to)));
        graph
    };
    let asked = "Does it have an Eulerian circuit, a walk that uses every edge once, reaches every node and returns to its start?";
    either(draw, asked, is_so, circles, nearly)
}

pub(super) fn is_regular(draw: &mut Draw<'_>) -> Made {
    let is_so = |graph: &Graph| {
        let first = graph.degree(0);
        graph.nodes().all(|node| graph.degree(node) == first)
    };
    let regular = |draw: &mut Draw<'_>| {
        let mut graph = Graph::new(draw.num_nodes, false);
        let order = draw.order();
        let reach = 1 + draw.below((draw.num_nodes - 1) / 2);
        for at in 0..order.len() {
            for step in 1..=reach {
                graph.connect(order[at], order[(at + step) % order.len()], 1);
            }
        }
        graph
    };
    let nearly = move |draw: &mut Draw<'_>| {
        let mut graph = regular(draw);
        let (from, to) = draw.two_nodes();
        graph.connect(from, to, u32::from(!graph.has(from, to)));
        graph
    };
    either(draw, "Is it regular: do all nodes have the same degree?", is_so, regular, nearly)
}

pub(super) fn is_tournament(draw: &mut Draw<'_>) -> Made {
    let is_so = |graph: &Graph| {
        let once = |from: usize, to: usize| graph.has(from, to) != graph.has(to, from);
        graph.nodes().all(|from| (0..from).all(|to| once(from, to)))
    };
    let tournament = |draw: &mut Draw<'_>| {
        let mut graph = Graph::new(draw.num_nodes, true);
        for from in graph.nodes() {
            for to in 0..from {
                let (from, to) = if draw.chance(0.5) { (from, to) } else { (to, from) };
                graph.connect(from, to, 1);
            }
        }
        graph
    };
    let nearly = move |draw: &mut Draw<'_>| {
        let mut graph = tournament(draw);
        let (from, to) = draw.two_nodes();
        graph.connect(from, to, u32::from(!graph.has(from, to)));
        graph
    };
    let asked =
        "Is it a tournament: is there exactly one edge, in one direction, between any two nodes?";
    either(draw, asked, is_so, tournament, nearly)
}

#[cfg(test)]
mod tests {
    use spar_python::Random;

    use super::*;

    #[test]
    fn both_answers_come_about_as_often() {
        for make in [
            edge_existence,
            is_connected,
            has_cycle,
            is_bipartite,
            is_eulerian,
            is_regular,
            is_tournament,
        ] {
            for num_nodes in [5, 9, 14] {
                let yes = (0..100)
                    .filter(|seed| {
                        let mut rng = Random::from_u64(*seed);
                        make(&mut Draw { rng: &mut rng, num_nodes }).answer == Answer::Truth(true)
                    })
                    .count();
                assert!((30..=70).contains(&yes), "{yes} of 100");
            }
        }
    }
}
