//! Checks of answers of which many are right.

use super::graph::Graph;

/// What nodes have to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Check {
    /// A path between two nodes whose weights come to so much.
    Path {
        /// The first node.
        from: usize,
        /// The last node.
        to: usize,
        /// The sum of the weights.
        weight: u32,
    },
    /// All nodes, none before one that leads to it.
    Topological,
    /// A path through all nodes.
    Hamiltonian,
    /// An order in which breadth-first search from a node visits all that it reaches.
    BreadthFirst(usize),
    /// An order in which depth-first search from a node visits all that it reaches.
    DepthFirst(usize),
    /// So many nodes, one at every edge.
    VertexCover(usize),
    /// Nodes without edges between them, to which none can be added.
    Independent,
    /// So many nodes, with one at or beside every node.
    Dominating(usize),
    /// For each node the one of another graph that stands for it.
    Mapping(Box<Graph>),
}

impl Check {
    pub(super) fn passes(&self, graph: &Graph, nodes: &[usize]) -> bool {
        if nodes.iter().any(|node| *node >= graph.num_nodes) || !are_different(nodes) {
            return false;
        }
        let is_in = |node: usize| nodes.contains(&node);
        match self {
            Self::Path { from, to, weight } => {
                let ends = (nodes.first(), nodes.last());
                ends == (Some(from), Some(to)) && weight_of(graph, nodes) == Some(*weight)
            }
            Self::Topological => {
                let place = |node: usize| nodes.iter().position(|it| *it == node);
                nodes.len() == graph.num_nodes
                    && graph.edges().iter().all(|(from, to)| place(*from) < place(*to))
            }
            Self::Hamiltonian => {
                nodes.len() == graph.num_nodes && weight_of(graph, nodes).is_some()
            }
            Self::BreadthFirst(start) => is_breadth_first(graph, *start, nodes),
            Self::DepthFirst(start) => is_depth_first(graph, *start, nodes),
            Self::VertexCover(size) => {
                let is_covered = |(from, to): &(usize, usize)| is_in(*from) || is_in(*to);
                nodes.len() == *size && graph.edges().iter().all(is_covered)
            }
            Self::Independent => graph.nodes().all(|node| {
                // Those inside have no neighbour there, all others have one.
                graph.neighbors(node).any(is_in) != is_in(node)
            }),
            Self::Dominating(size) => {
                let is_beside = |node: usize| is_in(node) || graph.neighbors(node).any(is_in);
                nodes.len() == *size && graph.nodes().all(is_beside)
            }
            Self::Mapping(other) => {
                nodes.len() == graph.num_nodes
                    && graph.nodes().all(|from| {
                        let kept =
                            |to: usize| graph.has(from, to) == other.has(nodes[from], nodes[to]);
                        graph.nodes().all(kept)
                    })
            }
        }
    }
}

/// What edges have to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum EdgeCheck {
    /// So many, no two of them at one node.
    Matching(usize),
    /// So many, one at every node.
    Cover(usize),
    /// A tree through all nodes whose weights come to so much.
    SpanningTree(u32),
}

impl EdgeCheck {
    pub(super) fn passes(self, graph: &Graph, edges: &[(usize, usize)]) -> bool {
        let mut seen: Vec<_> = edges.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() != edges.len() || !edges.iter().all(|(from, to)| graph.has(*from, *to)) {
            return false;
        }
        let mut count = vec![0; graph.num_nodes];
        for (from, to) in edges {
            count[*from] += 1;
            count[*to] += 1;
        }
        match self {
            Self::Matching(size) => edges.len() == size && count.iter().all(|it| *it <= 1),
            Self::Cover(size) => edges.len() == size && count.iter().all(|it| *it >= 1),
            Self::SpanningTree(weight) => {
                let mut tree = Graph::new(graph.num_nodes, false);
                edges.iter().for_each(|(from, to)| tree.connect(*from, *to, 1));
                let sum: u32 = edges.iter().map(|(from, to)| graph.weight(*from, *to)).sum();
                edges.len() + 1 == graph.num_nodes && tree.is_connected() && sum == weight
            }
        }
    }
}

fn are_different(nodes: &[usize]) -> bool {
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// The weights of a path; absent where an edge is missing.
fn weight_of(graph: &Graph, path: &[usize]) -> Option<u32> {
    let weights = path.windows(2).map(|pair| graph.weight(pair[0], pair[1]));
    weights.map(|weight| (weight > 0).then_some(weight)).sum()
}

fn is_breadth_first(graph: &Graph, start: usize, nodes: &[usize]) -> bool {
    if nodes.first() != Some(&start) {
        return false;
    }
    let mut end = 1;
    for (number, node) in nodes.iter().enumerate() {
        // It was not come to before.
        if number >= end {
            return false;
        }
        let new: Vec<usize> =
            graph.neighbors(*node).filter(|it| !nodes[..end].contains(it)).collect();
        let Some(next) = nodes.get(end..end + new.len()) else { return false };
        if !next.iter().all(|it| new.contains(it)) {
            return false;
        }
        end += new.len();
    }
    end == nodes.len()
}

fn is_depth_first(graph: &Graph, start: usize, nodes: &[usize]) -> bool {
    if nodes.first() != Some(&start) {
        return false;
    }
    let mut stack = vec![start];
    for end in 1..=nodes.len() {
        let is_new = |it: &usize| !nodes[..end].contains(it);
        while stack.last().is_some_and(|top| !graph.neighbors(*top).any(|it| is_new(&it))) {
            stack.pop();
        }
        match (stack.last(), nodes.get(end)) {
            (Some(top), Some(next)) if graph.has(*top, *next) => stack.push(*next),
            (None, None) => return true,
            _ => return false,
        }
    }
    false
}
