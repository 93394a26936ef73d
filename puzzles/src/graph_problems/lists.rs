//! Families whose answer is a list of nodes or edges.

use super::answer::Answer;
use super::check::{Check, EdgeCheck};
use super::graph::{Draw, Graph};
use super::measures::{
    all_distances, bridges as all_bridges, eccentricities, fewest_nodes, heaviest_matching,
    lightest_path, spanning_tree as lightest_tree,
};
use super::numbers::sparse;
use super::problem::Made;

/// Weights of edges are 1 to this.
const MOST: u32 = 9;

pub(super) fn common(graph: &Graph, one: usize, other: usize) -> Vec<usize> {
    graph.neighbors(one).filter(|node| graph.has(other, *node)).collect()
}

pub(super) fn neighbors(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = (draw.graph(false, 0.4, 1), draw.node());
    let answer = Answer::Nodes(graph.neighbors(node).collect());
    Made::new(graph, format!("Which nodes are the neighbours of node {node}?"), answer)
}

pub(super) fn common_neighbors(draw: &mut Draw<'_>) -> Made {
    let (one, other) = draw.two_nodes();
    let graph =
        draw.until(|draw| draw.graph(false, 0.5, 1), |graph| !common(graph, one, other).is_empty());
    let answer = Answer::Nodes(common(&graph, one, other));
    let asked = format!("Which nodes are neighbours of both node {one} and node {other}?");
    Made::new(graph, asked, answer)
}

fn by_eccentricity(draw: &mut Draw<'_>, asked: &str, is_least: bool) -> Made {
    let is_told_apart = |graph: &Graph| {
        let all = eccentricities(graph);
        all.iter().any(|it| *it != all[0])
    };
    let graph = draw.until(sparse, is_told_apart);
    let all = eccentricities(&graph);
    let wanted = if is_least { all.iter().min() } else { all.iter().max() };
    let answer = Answer::Nodes(graph.nodes().filter(|node| Some(&all[*node]) == wanted).collect());
    Made::new(graph, asked, answer)
}

pub(super) fn center(draw: &mut Draw<'_>) -> Made {
    let asked = "Which nodes are its center: those whose farthest node is the fewest steps away?";
    by_eccentricity(draw, asked, true)
}

pub(super) fn periphery(draw: &mut Draw<'_>) -> Made {
    let asked = "Which nodes are its periphery: those whose farthest node is the most steps away?";
    by_eccentricity(draw, asked, false)
}

pub(super) fn barycenter(draw: &mut Draw<'_>) -> Made {
    let graph = sparse(draw);
    let sums: Vec<usize> =
        all_distances(&graph).iter().map(|steps| steps.iter().flatten().sum()).collect();
    let least = sums.iter().min();
    let answer = Answer::Nodes(graph.nodes().filter(|node| Some(&sums[*node]) == least).collect());
    let asked =
        "Which nodes are its barycenter: those whose distances to all others have the least sum?";
    Made::new(graph, asked, answer)
}

pub(super) fn bridges(draw: &mut Draw<'_>) -> Made {
    let graph = sparse(draw);
    let answer = Answer::Edges(all_bridges(&graph));
    let asked = "Which edges are bridges, without which it would have one component more?";
    Made::new(graph, asked, answer)
}

pub(super) fn breadth_first(draw: &mut Draw<'_>) -> Made {
    let (graph, start) = (draw.connected(0.2, 1), draw.node());
    let mut order = vec![start];
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        let new: Vec<usize> = graph.neighbors(node).filter(|it| !order.contains(it)).collect();
        order.extend(new);
        at += 1;
    }
    let asked = format!(
        "In which order does breadth-first search from node {start} visit the nodes? Neighbours may be taken in any order."
    );
    Made::new(graph, asked, Answer::Checked(Check::BreadthFirst(start), order))
}

pub(super) fn depth_first(draw: &mut Draw<'_>) -> Made {
    let (graph, start) = (draw.connected(0.2, 1), draw.node());
    let (mut order, mut stack) = (vec![start], vec![start]);
    while let Some(top) = stack.last() {
        match graph.neighbors(*top).find(|it| !order.contains(it)) {
            Some(next) => {
                order.push(next);
                stack.push(next);
            }
            None => _ = stack.pop(),
        }
    }
    let asked = format!(
        "In which order does depth-first search from node {start} visit the nodes? Neighbours may be taken in any order."
    );
    Made::new(graph, asked, Answer::Checked(Check::DepthFirst(start), order))
}

pub(super) fn topological_sort(draw: &mut Draw<'_>) -> Made {
    let (graph, order) = draw.acyclic(0.35);
    let asked = "Tell all nodes in a topological order: every edge leads from an earlier node to a later one.";
    Made::new(graph, asked, Answer::Checked(Check::Topological, order))
}

pub(super) fn hamiltonian_path(draw: &mut Draw<'_>) -> Made {
    let mut graph = draw.graph(false, 0.15, 1);
    let order = draw.order();
    order.windows(2).for_each(|pair| graph.connect(pair[0], pair[1], 1));
    let asked = "Tell a Hamiltonian path, which visits every node once.";
    Made::new(graph, asked, Answer::Checked(Check::Hamiltonian, order))
}

pub(super) fn shortest_path(draw: &mut Draw<'_>) -> Made {
    let (graph, (from, to)) = (draw.connected(0.25, MOST), draw.two_nodes());
    let (path, weight) = lightest_path(&graph, from, to).unwrap_or_default();
    let asked = format!(
        "Tell a shortest path from node {from} to node {to}, whose weights have the smallest sum, with both ends."
    );
    let check = Check::Path { from, to, weight };
    Made::new(graph, asked, Answer::Checked(check, path)).with_weights()
}

/// As Guru's puzzles of graphs: a way to be found among others that lead nowhere.
pub(super) fn only_way(draw: &mut Draw<'_>) -> Made {
    let order = draw.order();
    let length = 3 + draw.below(draw.num_nodes / 2);
    let mut graph = Graph::new(draw.num_nodes, true);
    order[..length].windows(2).for_each(|pair| graph.connect(pair[0], pair[1], 1));
    // All others hang on one that is not the goal, so that nothing comes back to the way.
    for at in length..order.len() {
        let before = draw.below(at);
        let before = if before == length - 1 { before - 1 } else { before };
        graph.connect(order[before], order[at], 1);
    }
    let (from, to) = (order[0], order[length - 1]);
    let path = order[..length].to_vec();
    let check = Check::Path { from, to, weight: (length - 1) as u32 };
    let asked =
        format!("There is one way from node {from} to node {to}. Tell its nodes, with both ends.");
    Made::new(graph, asked, Answer::Checked(check, path))
}

pub(super) fn spanning_tree(draw: &mut Draw<'_>) -> Made {
    let graph = draw.connected(0.25, MOST);
    let tree = lightest_tree(&graph);
    let weight = tree.iter().map(|(from, to)| graph.weight(*from, *to)).sum();
    let asked = "Tell the edges of a minimum spanning tree.";
    let answer = Answer::CheckedEdges(EdgeCheck::SpanningTree(weight), tree);
    Made::new(graph, asked, answer).with_weights()
}

pub(super) fn bipartite_matching(draw: &mut Draw<'_>) -> Made {
    let graph = draw.until(|draw| draw.bipartite(0.4), |graph| !graph.edges().is_empty());
    let (size, edges) = heaviest_matching(&graph);
    let asked = "It is bipartite. Tell a maximum matching: as many edges as possible, no two of them at one node.";
    let answer = Answer::CheckedEdges(EdgeCheck::Matching(size as usize), edges);
    Made::new(graph, asked, answer)
}

pub(super) fn edge_cover(draw: &mut Draw<'_>) -> Made {
    let graph = draw.connected(0.2, 1);
    let (_, mut edges) = heaviest_matching(&graph);
    for node in graph.nodes() {
        let is_touched = edges.iter().any(|(from, to)| *from == node || *to == node);
        if let Some(other) = graph.neighbors(node).next().filter(|_| !is_touched) {
            edges.push((node.min(other), node.max(other)));
        }
    }
    let asked =
        "Tell a minimum edge cover: as few edges as possible, so that every node is at one.";
    let answer = Answer::CheckedEdges(EdgeCheck::Cover(edges.len()), edges);
    Made::new(graph, asked, answer)
}

pub(super) fn vertex_cover(draw: &mut Draw<'_>) -> Made {
    let graph = draw.connected(0.2, 1);
    let edges = graph.edges();
    let nodes = fewest_nodes(&graph, |nodes| {
        edges.iter().all(|(from, to)| nodes.contains(from) || nodes.contains(to))
    });
    let asked =
        "Tell a minimum vertex cover: as few nodes as possible, so that every edge is at one.";
    Made::new(graph, asked, Answer::Checked(Check::VertexCover(nodes.len()), nodes))
}

pub(super) fn dominating_set(draw: &mut Draw<'_>) -> Made {
    let graph = draw.connected(0.15, 1);
    let nodes = fewest_nodes(&graph, |nodes| {
        graph.nodes().all(|it| nodes.contains(&it) || nodes.iter().any(|by| graph.has(it, *by)))
    });
    let asked = "Tell a minimum dominating set: as few nodes as possible, so that every other node is beside one.";
    Made::new(graph, asked, Answer::Checked(Check::Dominating(nodes.len()), nodes))
}

pub(super) fn independent_set(draw: &mut Draw<'_>) -> Made {
    let graph = draw.connected(0.25, 1);
    let mut nodes: Vec<usize> = Vec::new();
    for node in draw.order() {
        if !nodes.iter().any(|other| graph.has(node, *other)) {
            nodes.push(node);
        }
    }
    let asked = "Tell a maximal independent set: nodes without edges between them, to which no further node can be added.";
    Made::new(graph, asked, Answer::Checked(Check::Independent, nodes))
}

pub(super) fn isomorphism(draw: &mut Draw<'_>) -> Made {
    let (graph, mapping) = (draw.connected(0.25, 1), draw.order());
    let mut other = Graph::new(graph.num_nodes, false);
    for (from, to) in graph.edges() {
        other.connect(mapping[from], mapping[to], 1);
    }
    let asked = format!(
        "It is isomorphic to a second one: {} Tell for each node of the first graph, in the order of their numbers, the node of the second that stands for it.",
        other.text(false)
    );
    Made::new(graph, asked, Answer::Checked(Check::Mapping(Box::new(other)), mapping))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path 0 1 2 3 with a triangle 3 4 5 at its end.
    fn kite() -> Graph {
        let mut graph = Graph::new(6, false);
        for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5)] {
            graph.connect(from, to, 1);
        }
        graph
    }

    #[test]
    fn checks_take_all_that_is_right_and_nothing_else() {
        let graph = kite();
        let path = Check::Path { from: 0, to: 4, weight: 4 };
        for (check, good, bad) in [
            (path, &[&[0, 1, 2, 3, 4][..]][..], &[&[0, 1, 2, 3, 5, 4][..], &[0, 4], &[], &[4]][..]),
            (
                Check::Hamiltonian,
                &[&[0, 1, 2, 3, 4, 5], &[5, 4, 3, 2, 1, 0], &[4, 5, 3, 2, 1, 0]],
                &[&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4, 4], &[0, 1, 2, 4, 3, 5]],
            ),
            (
                Check::BreadthFirst(3),
                &[&[3, 2, 4, 5, 1, 0], &[3, 5, 2, 4, 1, 0]],
                &[&[3, 2, 1, 4, 5, 0], &[2, 3, 4, 5, 1, 0], &[3, 2, 4, 5, 1]],
            ),
            (
                Check::DepthFirst(3),
                &[&[3, 2, 1, 0, 4, 5], &[3, 5, 4, 2, 1, 0]],
                &[&[3, 4, 2, 1, 0, 5], &[3, 2, 4, 5, 1, 0], &[3, 2, 1, 0, 4]],
            ),
            (
                Check::VertexCover(3),
                &[&[1, 3, 4], &[5, 3, 1]],
                &[&[1, 3], &[0, 1, 3, 4], &[0, 3, 4]],
            ),
            (Check::Dominating(2), &[&[1, 3], &[0, 3]], &[&[3, 4], &[1, 3, 4], &[1, 9]]),
            (Check::Independent, &[&[0, 2, 4], &[1, 3], &[1, 4], &[0, 3]], &[&[0, 2], &[0, 1, 3]]),
        ] {
            good.iter().for_each(|it| assert!(check.passes(&graph, it), "{it:?} {check:?}"));
            bad.iter().for_each(|it| assert!(!check.passes(&graph, it), "{it:?} {check:?}"));
        }
    }

    #[test]
    fn checks_of_edges_and_of_directed_graphs() {
        let graph = kite();
        assert!(EdgeCheck::Matching(3).passes(&graph, &[(1, 0), (2, 3), (4, 5)]));
        assert!(!EdgeCheck::Matching(3).passes(&graph, &[(0, 1), (1, 2), (4, 5)]));
        assert!(!EdgeCheck::Matching(2).passes(&graph, &[(0, 1), (1, 0)]));
        assert!(!EdgeCheck::Matching(1).passes(&graph, &[(0, 5)]));
        assert!(EdgeCheck::Cover(3).passes(&graph, &[(0, 1), (2, 3), (4, 5)]));
        assert!(!EdgeCheck::Cover(3).passes(&graph, &[(0, 1), (1, 2), (4, 5)]));
        let tree = [(0, 1), (1, 2), (2, 3), (3, 4), (3, 5)];
        assert!(EdgeCheck::SpanningTree(5).passes(&graph, &tree));
        assert!(!EdgeCheck::SpanningTree(4).passes(&graph, &tree));
        assert!(
            !EdgeCheck::SpanningTree(5).passes(&graph, &[(0, 1), (1, 2), (3, 4), (4, 5), (3, 5)])
        );
        let mut directed = Graph::new(3, true);
        directed.connect(2, 0, 1);
        directed.connect(0, 1, 1);
        assert!(Check::Topological.passes(&directed, &[2, 0, 1]));
        assert!(!Check::Topological.passes(&directed, &[0, 2, 1]));
        let mut other = Graph::new(6, false);
        let mapping = [3, 4, 5, 0, 1, 2];
        graph.edges().iter().for_each(|(a, b)| other.connect(mapping[*a], mapping[*b], 1));
        let check = Check::Mapping(Box::new(other));
        assert!(check.passes(&graph, &mapping));
        assert!(check.passes(&graph, &[3, 4, 5, 0, 2, 1]), "4 and 5 can change places");
        assert!(!check.passes(&graph, &[0, 1, 2, 3, 4, 5]));
    }
}
