//! Families whose answer is a number.

use super::answer::Answer;
use super::graph::{Draw, Graph};
use super::measures::{
    all_distances, connectivity_between, eccentricities, flow, heaviest_matching, lightest_tour,
    strong_components as count_strong, triangles as count_triangles,
};
use super::problem::Made;
use super::{lists, measures};

/// Weights of edges are 1 to this.
const MOST: u32 = 9;

fn whole(number: usize) -> Answer {
    Answer::Whole(number as i64)
}

pub(super) fn edge_number(draw: &mut Draw<'_>) -> Made {
    let graph = draw.graph(false, 0.4, 1);
    let answer = whole(graph.edges().len());
    Made::new(graph, "How many edges does it have?", answer)
}

pub(super) fn degree(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = (draw.graph(false, 0.45, 1), draw.node());
    let answer = whole(graph.degree(node));
    Made::new(graph, format!("What is the degree of node {node}?"), answer)
}

pub(super) fn components(draw: &mut Draw<'_>) -> Made {
    let probability = 1.2 / draw.num_nodes as f64;
    let graph = draw.graph(false, probability, 1);
    let answer = whole(graph.components().len());
    Made::new(graph, "How many connected components does it have?", answer)
}

pub(super) fn strong_components(draw: &mut Draw<'_>) -> Made {
    let probability = 1.6 / draw.num_nodes as f64;
    let graph = draw.graph(true, probability, 1);
    let answer = whole(count_strong(&graph));
    Made::new(graph, "How many strongly connected components does it have?", answer)
}

pub(super) fn triangles(draw: &mut Draw<'_>) -> Made {
    let graph = draw.graph(false, 0.45, 1);
    let answer = whole(count_triangles(&graph));
    Made::new(
        graph,
        "How many triangles, sets of three nodes with all edges, does it have?",
        answer,
    )
}

/// A connected graph with few edges more than a tree, in which distances differ.
pub(super) fn sparse(draw: &mut Draw<'_>) -> Graph {
    let probability = 0.8 / draw.num_nodes as f64;
    draw.connected(probability, 1)
}

pub(super) fn diameter(draw: &mut Draw<'_>) -> Made {
    let graph = sparse(draw);
    let answer = whole(eccentricities(&graph).into_iter().max().unwrap_or(0));
    let asked = "What is its diameter, the steps of the shortest path between the two nodes that are the farthest apart?";
    Made::new(graph, asked, answer)
}

pub(super) fn radius(draw: &mut Draw<'_>) -> Made {
    let probability = 0.4 / draw.num_nodes as f64;
    let graph = draw.connected(probability, 1);
    let answer = whole(eccentricities(&graph).into_iter().min().unwrap_or(0));
    let asked = "What is its radius, the fewest steps within which some node reaches every other?";
    Made::new(graph, asked, answer)
}

pub(super) fn wiener_index(draw: &mut Draw<'_>) -> Made {
    let graph = sparse(draw);
    let sum: usize = all_distances(&graph).iter().flatten().flatten().sum();
    let asked =
        "What is its Wiener index, the sum of the distances in steps over all pairs of nodes?";
    Made::new(graph, asked, whole(sum / 2))
}

pub(super) fn maximum_flow(draw: &mut Draw<'_>) -> Made {
    let (from, to) = draw.two_nodes();
    let graph = draw
        .until(|draw| draw.graph(true, 0.35, MOST), |graph| graph.distances(from)[to].is_some());
    let row = |node: usize| graph.nodes().map(|other| graph.weight(node, other)).collect();
    let answer = Answer::Whole(flow(graph.nodes().map(row).collect(), from, to).into());
    let asked =
        format!("Weights are capacities. What is the maximum flow from node {from} to node {to}?");
    Made::new(graph, asked, answer).with_weights()
}

pub(super) fn matching_weight(draw: &mut Draw<'_>) -> Made {
    let graph = draw.graph(false, 0.4, MOST);
    let answer = Answer::Whole(heaviest_matching(&graph).0.into());
    let asked =
        "A matching has no two edges at one node. What is the greatest weight of a matching?";
    Made::new(graph, asked, answer).with_weights()
}

pub(super) fn traveling_salesman(draw: &mut Draw<'_>) -> Made {
    let graph = draw.graph(false, 1.0, MOST);
    let answer = Answer::Whole(lightest_tour(&graph).unwrap_or(0).into());
    let asked = "What is the smallest weight of a tour that visits every node once and returns to its start?";
    Made::new(graph, asked, answer).with_weights()
}

pub(super) fn local_connectivity(draw: &mut Draw<'_>) -> Made {
    let graph = draw.until(
        |draw| draw.connected(0.35, 1),
        |graph| graph.nodes().any(|node| graph.degree(node) + 1 < graph.num_nodes),
    );
    let mut pair = draw.two_nodes();
    for _ in 0..100 {
        if !graph.has(pair.0, pair.1) {
            break;
        }
        pair = draw.two_nodes();
    }
    let (from, to) = pair;
    // Two nodes with an edge cannot be parted; then the edge is taken away.
    let mut graph = graph;
    graph.connect(from, to, 0);
    let answer = Answer::Whole(connectivity_between(&graph, from, to).into());
    let asked = format!(
        "How many nodes, other than these two, have to be removed at least until there is no way between node {from} and node {to}?"
    );
    Made::new(graph, asked, answer)
}

pub(super) fn density(draw: &mut Draw<'_>) -> Made {
    let probability = 0.2 + 0.6 * draw.rng.random();
    let graph = draw.graph(false, probability, 1);
    let pairs = graph.num_nodes * (graph.num_nodes - 1) / 2;
    let answer = Answer::Number(graph.edges().len() as f64 / pairs as f64);
    Made::new(graph, "What is its density, the share of all possible edges that are there?", answer)
}

/// A graph, and a node that has a neighbour.
fn with_node(draw: &mut Draw<'_>, probability: f64) -> (Graph, usize) {
    (draw.connected(probability, 1), draw.node())
}

pub(super) fn degree_centrality(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = with_node(draw, 0.4);
    let answer = Answer::Number(graph.degree(node) as f64 / (graph.num_nodes - 1) as f64);
    let asked = format!(
        "What is the degree centrality of node {node}, its degree divided by the number of the other nodes?"
    );
    Made::new(graph, asked, answer)
}

pub(super) fn clustering(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = with_node(draw, 0.5);
    let answer = Answer::Number(measures::clustering(&graph, node));
    let asked = format!(
        "What is the clustering coefficient of node {node}, the share of the pairs of its neighbours that have an edge (0 where there are no pairs)?"
    );
    Made::new(graph, asked, answer)
}

pub(super) fn average_neighbor_degree(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = with_node(draw, 0.3);
    let sum: usize = graph.neighbors(node).map(|it| graph.degree(it)).sum();
    let answer = Answer::Number(sum as f64 / graph.degree(node) as f64);
    let asked = format!("What is the mean degree of the neighbours of node {node}?");
    Made::new(graph, asked, answer)
}

pub(super) fn betweenness(draw: &mut Draw<'_>) -> Made {
    let graph = sparse(draw);
    // One that something can lead through, where there is one.
    let order = draw.order();
    let inner = order.iter().find(|node| graph.degree(**node) > 1);
    let node = inner.copied().unwrap_or(order[0]);
    let answer = Answer::Number(measures::betweenness(&graph, node));
    let asked = format!(
        "What is the betweenness centrality of node {node}: the share of the shortest paths between two other nodes that lead through it, averaged over all pairs of other nodes?"
    );
    Made::new(graph, asked, answer)
}

pub(super) fn closeness(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = with_node(draw, 0.2);
    let sum: usize = graph.distances(node).into_iter().flatten().sum();
    let answer = Answer::Number((graph.num_nodes - 1) as f64 / sum as f64);
    let asked = format!(
        "What is the closeness centrality of node {node}, the number of the other nodes divided by the sum of the distances to them?"
    );
    Made::new(graph, asked, answer)
}

pub(super) fn harmonic(draw: &mut Draw<'_>) -> Made {
    let (graph, node) = with_node(draw, 0.2);
    let inverse = |steps: usize| if steps == 0 { 0.0 } else { 1.0 / steps as f64 };
    let sum = graph.distances(node).into_iter().flatten().map(inverse).sum();
    let asked = format!(
        "What is the harmonic centrality of node {node}, the sum of 1/distance over all other nodes?"
    );
    Made::new(graph, asked, Answer::Number(sum))
}

pub(super) fn global_efficiency(draw: &mut Draw<'_>) -> Made {
    let graph = draw.graph(false, 0.3, 1);
    let inverse = |steps: usize| if steps == 0 { 0.0 } else { 1.0 / steps as f64 };
    let sum: f64 = all_distances(&graph).into_iter().flatten().flatten().map(inverse).sum();
    let pairs = graph.num_nodes * (graph.num_nodes - 1);
    let asked = "What is its global efficiency, the mean of 1/distance over all pairs of nodes, 0 for pairs without a way?";
    Made::new(graph, asked, Answer::Number(sum / pairs as f64))
}

/// A graph, two nodes, and what they have in common, which is something in most graphs.
fn pair(draw: &mut Draw<'_>) -> (Graph, (usize, usize), Vec<usize>) {
    let (one, other) = draw.two_nodes();
    let graph = draw.until(
        |draw| draw.connected(0.35, 1),
        |graph| !lists::common(graph, one, other).is_empty(),
    );
    let common = lists::common(&graph, one, other);
    (graph, (one, other), common)
}

pub(super) fn jaccard(draw: &mut Draw<'_>) -> Made {
    let (graph, (one, other), common) = pair(draw);
    let either = graph.degree(one) + graph.degree(other) - common.len();
    let answer = Answer::Number(common.len() as f64 / either as f64);
    let asked = format!(
        "What is the Jaccard coefficient of the nodes {one} and {other}: how many neighbours they share, divided by how many nodes are a neighbour of one or both?"
    );
    Made::new(graph, asked, answer)
}

pub(super) fn adamic_adar(draw: &mut Draw<'_>) -> Made {
    let (graph, (one, other), common) = pair(draw);
    // Common neighbours have two at least.
    let sum = common.iter().map(|node| 1.0 / (graph.degree(*node) as f64).ln()).sum();
    let asked = format!(
        "What is the Adamic-Adar index of the nodes {one} and {other}, the sum of 1/ln(degree) over the neighbours that they share?"
    );
    Made::new(graph, asked, Answer::Number(sum))
}

pub(super) fn resource_allocation(draw: &mut Draw<'_>) -> Made {
    let (graph, (one, other), common) = pair(draw);
    let sum = common.iter().map(|node| 1.0 / graph.degree(*node) as f64).sum();
    let asked = format!(
        "What is the resource allocation index of the nodes {one} and {other}, the sum of 1/degree over the neighbours that they share?"
    );
    Made::new(graph, asked, Answer::Number(sum))
}

#[cfg(test)]
mod tests {
    use spar_python::Random;

    use super::*;

    /// The graph of a house: a square 0 1 2 3 with a roof 4 on 2 and 3.
    fn house() -> Graph {
        let mut graph = Graph::new(5, false);
        for (number, (from, to)) in
            [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (3, 4)].iter().enumerate()
        {
            graph.connect(*from, *to, number as u32 + 1);
        }
        graph
    }

    #[test]
    fn measures_are_what_is_known_of_a_small_graph() {
        // Counted by hand.
        let graph = house();
        assert_eq!(eccentricities(&graph), [2; 5]);
        assert_eq!(count_triangles(&graph), 1);
        assert_eq!(measures::bridges(&graph), []);
        assert!((measures::clustering(&graph, 2) - 1.0 / 3.0).abs() < 1e-12);
        // Through 2: 1 to 3 half (0 as well), 1 to 4 whole, of 6 pairs.
        assert!((measures::betweenness(&graph, 2) - 0.25).abs() < 1e-12);
        assert_eq!(connectivity_between(&graph, 0, 4), 2);
        assert_eq!(lightest_tour(&graph), Some(1 + 2 + 5 + 6 + 4));
        assert_eq!(heaviest_matching(&graph).0, 5 + 4);
        assert_eq!(measures::lightest_path(&graph, 0, 2), Some((vec![0, 1, 2], 3)));
        assert_eq!(measures::spanning_tree(&graph), [(0, 1), (1, 2), (2, 3), (2, 4)]);
        let mut directed = Graph::new(4, true);
        for (from, to, weight) in [(0, 1, 3), (1, 2, 2), (2, 0, 1), (1, 3, 2), (2, 3, 4)] {
            directed.connect(from, to, weight);
        }
        assert_eq!(count_strong(&directed), 2);
        let row = |node: usize| directed.nodes().map(|it| directed.weight(node, it)).collect();
        assert_eq!(flow(directed.nodes().map(row).collect(), 0, 3), 3);
    }

    #[test]
    fn two_nodes_that_are_to_be_parted_have_no_edge() {
        for seed in 0..50 {
            let mut rng = Random::from_u64(seed);
            let made = local_connectivity(&mut Draw { rng: &mut rng, num_nodes: 6 });
            let Answer::Whole(count) = made.answer else { panic!("it is a number") };
            assert!((0..=4).contains(&count), "{count}");
        }
    }
}
