//! The families of problems that have a name.

use super::graph::Draw;
use super::problem::Made;
use super::{lists, numbers, truths};

/// Nodes up to which all sets of them are gone through.
const FEW: usize = 12;
const MANY: usize = usize::MAX;

/// A family of problems.
#[derive(Clone, Copy)]
pub struct GraphFamily {
    /// Its name.
    pub name: &'static str,
    /// What is asked, in a sentence.
    pub about: &'static str,
    pub(super) most_nodes: usize,
    pub(super) make: fn(&mut Draw<'_>) -> Made,
}

impl std::fmt::Debug for GraphFamily {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GraphFamily").field("name", &self.name).finish_non_exhaustive()
    }
}

/// There is no such family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no family `{name}` of graph problems, there are {known}")]
pub struct UnknownFamily {
    /// What was asked for.
    pub name: String,
    /// Those that there are.
    pub known: String,
}

/// All families, sorted by name.
pub fn graph_families() -> impl ExactSizeIterator<Item = &'static GraphFamily> {
    FAMILIES.iter()
}

pub(super) fn find(name: &str) -> Result<&'static GraphFamily, UnknownFamily> {
    let found = FAMILIES.iter().find(|family| family.name == name);
    found.ok_or_else(|| {
        let known: Vec<String> = FAMILIES.iter().map(|it| format!("`{}`", it.name)).collect();
        UnknownFamily { name: name.to_owned(), known: known.join(", ") }
    })
}

const fn family(
    name: &'static str,
    most_nodes: usize,
    make: fn(&mut Draw<'_>) -> Made,
    about: &'static str,
) -> GraphFamily {
    GraphFamily { name, about, most_nodes, make }
}

static FAMILIES: &[GraphFamily] = &[
    family("adamic_adar", MANY, numbers::adamic_adar, "The Adamic-Adar index of two nodes."),
    family(
        "average_neighbor_degree",
        MANY,
        numbers::average_neighbor_degree,
        "The mean degree of a node's neighbours.",
    ),
    family(
        "barycenter",
        MANY,
        lists::barycenter,
        "The nodes from which all others are the fewest steps away in sum.",
    ),
    family("betweenness", MANY, numbers::betweenness, "The betweenness centrality of a node."),
    family("bfs", MANY, lists::breadth_first, "An order of breadth-first search from a node."),
    family(
        "bipartite_matching",
        FEW,
        lists::bipartite_matching,
        "A largest matching of a bipartite graph.",
    ),
    family("bridges", MANY, lists::bridges, "The edges without which a graph falls apart."),
    family("center", MANY, lists::center, "The nodes whose farthest node is the nearest."),
    family("closeness", MANY, numbers::closeness, "The closeness centrality of a node."),
    family("clustering", MANY, numbers::clustering, "The clustering coefficient of a node."),
    family(
        "common_neighbors",
        MANY,
        lists::common_neighbors,
        "The common neighbours of two nodes.",
    ),
    family("components", MANY, numbers::components, "The number of connected components."),
    family("degree", MANY, numbers::degree, "The degree of a node."),
    family("degree_centrality", MANY, numbers::degree_centrality, "A node's degree centrality."),
    family("density", MANY, numbers::density, "The share of edges that are there."),
    family("dfs", MANY, lists::depth_first, "An order of depth-first search from a node."),
    family("diameter", MANY, numbers::diameter, "The longest of all shortest paths, in steps."),
    family(
        "dominating_set",
        FEW,
        lists::dominating_set,
        "The fewest nodes that are beside all others.",
    ),
    family("edge_cover", FEW, lists::edge_cover, "The fewest edges that touch all nodes."),
    family("edge_existence", MANY, truths::edge_existence, "Whether there is an edge."),
    family("edge_number", MANY, numbers::edge_number, "The number of edges."),
    family("global_efficiency", MANY, numbers::global_efficiency, "The mean inverse distance."),
    family("hamiltonian_path", MANY, lists::hamiltonian_path, "A path through all nodes."),
    family("harmonic", MANY, numbers::harmonic, "The harmonic centrality of a node."),
    family("has_cycle", MANY, truths::has_cycle, "Whether there is a cycle."),
    family(
        "independent_set",
        MANY,
        lists::independent_set,
        "Nodes without edges between them, to which none can be added.",
    ),
    family("is_bipartite", MANY, truths::is_bipartite, "Whether a graph is bipartite."),
    family("is_connected", MANY, truths::is_connected, "Whether there is a way between two nodes."),
    family("is_eulerian", MANY, truths::is_eulerian, "Whether there is an Eulerian circuit."),
    family("is_regular", MANY, truths::is_regular, "Whether all degrees are equal."),
    family("is_tournament", MANY, truths::is_tournament, "Whether a graph is a tournament."),
    family(
        "isomorphism",
        MANY,
        lists::isomorphism,
        "A mapping between two graphs that keeps edges.",
    ),
    family("jaccard", MANY, numbers::jaccard, "The Jaccard coefficient of two nodes."),
    family(
        "local_connectivity",
        MANY,
        numbers::local_connectivity,
        "How many nodes have to go until two are apart.",
    ),
    family("matching_weight", FEW, numbers::matching_weight, "The weight of a heaviest matching."),
    family("maximum_flow", MANY, numbers::maximum_flow, "How much flows from one node to another."),
    family("neighbors", MANY, lists::neighbors, "The neighbours of a node."),
    family(
        "only_way",
        MANY,
        lists::only_way,
        "The only way between two nodes of a directed graph.",
    ),
    family("periphery", MANY, lists::periphery, "The nodes whose farthest node is the farthest."),
    family("radius", MANY, numbers::radius, "The fewest steps within which a node reaches all."),
    family(
        "resource_allocation",
        MANY,
        numbers::resource_allocation,
        "The resource allocation index of two nodes.",
    ),
    family("shortest_path", MANY, lists::shortest_path, "A lightest path between two nodes."),
    family("spanning_tree", MANY, lists::spanning_tree, "A lightest tree through all nodes."),
    family(
        "strong_components",
        MANY,
        numbers::strong_components,
        "The number of strongly connected components.",
    ),
    family("topological_sort", MANY, lists::topological_sort, "An order in which edges lead on."),
    family("traveling_salesman", 9, numbers::traveling_salesman, "The weight of a lightest tour."),
    family("triangles", MANY, numbers::triangles, "The number of triangles."),
    family("vertex_cover", FEW, lists::vertex_cover, "The fewest nodes that touch all edges."),
    family("wiener_index", MANY, numbers::wiener_index, "The sum of all distances."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_sorted_and_told_apart() {
        assert!(FAMILIES.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(FAMILIES.len() >= 45, "{}", FAMILIES.len());
    }
}
