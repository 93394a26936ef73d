//! What is computed on graphs.

use super::graph::Graph;

/// Steps between all nodes; absent where there is no way.
pub(super) fn all_distances(graph: &Graph) -> Vec<Vec<Option<usize>>> {
    graph.nodes().map(|node| graph.distances(node)).collect()
}

/// How far the farthest node is from each, in a graph that is connected.
pub(super) fn eccentricities(graph: &Graph) -> Vec<usize> {
    let farthest = |steps: Vec<Option<usize>>| steps.into_iter().flatten().max().unwrap_or(0);
    all_distances(graph).into_iter().map(farthest).collect()
}

/// The lightest path, by Dijkstra's algorithm: its nodes and its weight.
pub(super) fn lightest_path(graph: &Graph, from: usize, to: usize) -> Option<(Vec<usize>, u32)> {
    let mut weight = vec![u32::MAX; graph.num_nodes];
    let mut before = vec![None; graph.num_nodes];
    let mut is_done = vec![false; graph.num_nodes];
    weight[from] = 0;
    loop {
        let open = graph.nodes().filter(|node| !is_done[*node] && weight[*node] < u32::MAX);
        let node = open.min_by_key(|node| weight[*node])?;
        if node == to {
            break;
        }
        is_done[node] = true;
        for next in graph.neighbors(node) {
            let sum = weight[node] + graph.weight(node, next);
            if sum < weight[next] {
                (weight[next], before[next]) = (sum, Some(node));
            }
        }
    }
    let mut path = vec![to];
    while let Some(node) = before[path[path.len() - 1]] {
        path.push(node);
    }
    path.reverse();
    Some((path, weight[to]))
}

/// The most that flows, along shortest paths one after the other (Edmonds and Karp). Capacities are by node and node.
pub(super) fn flow(mut capacity: Vec<Vec<u32>>, from: usize, to: usize) -> u32 {
    let count = capacity.len();
    let mut total = 0;
    loop {
        let mut before = vec![None; count];
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            for next in 0..count {
                if next != from && before[next].is_none() && capacity[node][next] > 0 {
                    before[next] = Some(node);
                    open.push_back(next);
                }
            }
        }
        let (mut path, mut at) = (Vec::new(), to);
        while let Some(node) = before[at] {
            path.push((node, at));
            at = node;
        }
        let Some(most) = path.iter().map(|(a, b)| capacity[*a][*b]).min() else { return total };
        for (a, b) in path {
            capacity[a][b] -= most;
            capacity[b][a] += most;
        }
        total += most;
    }
}

/// How many nodes at least have to go until there is no way between two that have no edge: each node is a passage for one.
pub(super) fn connectivity_between(graph: &Graph, from: usize, to: usize) -> u32 {
    let count = graph.num_nodes;
    let mut capacity = vec![vec![0; 2 * count]; 2 * count];
    for node in graph.nodes() {
        // In at its number, out at the one as far behind.
        capacity[node][count + node] = if node == from || node == to { u32::MAX / 4 } else { 1 };
        for next in graph.neighbors(node) {
            capacity[count + node][next] = 1;
        }
    }
    flow(capacity, from, count + to)
}

/// Sets of nodes that all lead to each other: how many.
pub(super) fn strong_components(graph: &Graph) -> usize {
    let reach = all_distances(graph);
    let is_first = |node: &usize| {
        (0..*node).all(|other| reach[*node][other].is_none() || reach[other][*node].is_none())
    };
    graph.nodes().filter(is_first).count()
}

pub(super) fn triangles(graph: &Graph) -> usize {
    let through = |(one, other): (usize, usize)| {
        graph.neighbors(one).filter(|third| *third > other && graph.has(other, *third)).count()
    };
    graph.edges().into_iter().map(through).sum()
}

/// The share of the pairs of a node's neighbours that have an edge; 0 where there are no pairs.
pub(super) fn clustering(graph: &Graph, node: usize) -> f64 {
    let around: Vec<usize> = graph.neighbors(node).collect();
    let pairs = around.len() * around.len().saturating_sub(1) / 2;
    let joined = |(number, one): (usize, &usize)| {
        around[number + 1..].iter().filter(|other| graph.has(*one, **other)).count()
    };
    let joined: usize = around.iter().enumerate().map(joined).sum();
    if pairs == 0 { 0.0 } else { joined as f64 / pairs as f64 }
}

/// The share of shortest paths between others that lead through a node, summed over the pairs, by how many pairs there are.
pub(super) fn betweenness(graph: &Graph, node: usize) -> f64 {
    let steps = all_distances(graph);
    let counts: Vec<Vec<f64>> =
        graph.nodes().map(|from| num_shortest_paths(graph, from, &steps[from])).collect();
    let mut sum = 0.0;
    let mut pairs = 0.0;
    for from in graph.nodes().filter(|it| *it != node) {
        for to in graph.nodes().filter(|it| *it > from && *it != node) {
            pairs += 1.0;
            let parts = (steps[from][node], steps[node][to], steps[from][to]);
            if let (Some(first), Some(second), Some(whole)) = parts
                && first + second == whole
            {
                sum += counts[from][node] * counts[node][to] / counts[from][to];
            }
        }
    }
    if pairs == 0.0 { 0.0 } else { sum / pairs }
}

fn num_shortest_paths(graph: &Graph, from: usize, steps: &[Option<usize>]) -> Vec<f64> {
    let mut counts = vec![0.0; graph.num_nodes];
    counts[from] = 1.0;
    for distance in 0..graph.num_nodes {
        for node in graph.nodes().filter(|node| steps[*node] == Some(distance)) {
            for next in graph.neighbors(node) {
                if steps[next] == Some(distance + 1) {
                    counts[next] += counts[node];
                }
            }
        }
    }
    counts
}

/// The lightest tour through all nodes, by tables over sets of nodes (Held and Karp); absent where there is none.
pub(super) fn lightest_tour(graph: &Graph) -> Option<u32> {
    let count = graph.num_nodes;
    let mut best = vec![vec![u32::MAX; count]; 1 << count];
    best[1][0] = 0;
    for set in 1..1_usize << count {
        for last in 0..count {
            let so_far = best[set][last];
            if so_far == u32::MAX {
                continue;
            }
            for next in graph.neighbors(last).filter(|next| set >> next & 1 == 0) {
                let sum = so_far + graph.weight(last, next);
                let place = &mut best[set | 1 << next][next];
                *place = (*place).min(sum);
            }
        }
    }
    let home = |last: usize| {
        let so_far = best[(1 << count) - 1][last];
        (so_far < u32::MAX && graph.has(last, 0)).then(|| so_far + graph.weight(last, 0))
    };
    (0..count).filter_map(home).min()
}

/// The edges of a matching of the greatest weight, by tables over sets of nodes.
pub(super) fn heaviest_matching(graph: &Graph) -> (u32, Vec<(usize, usize)>) {
    let count = graph.num_nodes;
    // By the set of nodes that are left: the weight, and the edge that is taken at the first of them.
    let mut best: Vec<(u32, Option<(usize, usize)>)> = vec![(0, None); 1 << count];
    for left in 1..1_usize << count {
        let first = left.trailing_zeros() as usize;
        let rest = left & (left - 1);
        let mut found = (best[rest].0, None);
        for other in graph.neighbors(first).filter(|other| rest >> other & 1 == 1) {
            let sum = best[rest & !(1 << other)].0 + graph.weight(first, other);
            if sum > found.0 {
                found = (sum, Some((first, other)));
            }
        }
        best[left] = found;
    }
    let (mut left, mut edges) = ((1_usize << count) - 1, Vec::new());
    while left != 0 {
        let first = 1 << left.trailing_zeros();
        left &= match best[left].1 {
            Some((one, other)) => {
                edges.push((one, other));
                !(1 << one | 1 << other)
            }
            None => !first,
        };
    }
    (best[(1 << count) - 1].0, edges)
}

/// The fewest nodes of which a set is as wanted, by their sets in order of size.
pub(super) fn fewest_nodes(graph: &Graph, is_wanted: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let mut sets: Vec<usize> = (0..1_usize << graph.num_nodes).collect();
    sets.sort_by_key(|set| set.count_ones());
    let members = |set: usize| graph.nodes().filter(move |node| set >> node & 1 == 1).collect();
    let mut sets = sets.into_iter().map(|set| -> Vec<usize> { members(set) });
    sets.find(|nodes| is_wanted(nodes)).unwrap_or_default()
}

/// A lightest tree through all nodes of a connected graph (Kruskal).
pub(super) fn spanning_tree(graph: &Graph) -> Vec<(usize, usize)> {
    let mut edges = graph.edges();
    edges.sort_by_key(|(from, to)| graph.weight(*from, *to));
    let mut of: Vec<usize> = graph.nodes().collect();
    edges.retain(|(from, to)| {
        let (keep, lose) = (of[*from], of[*to]);
        of.iter_mut().filter(|it| **it == lose).for_each(|it| *it = keep);
        keep != lose
    });
    edges
}

/// Edges without which there would be one component more.
pub(super) fn bridges(graph: &Graph) -> Vec<(usize, usize)> {
    let count = graph.components().len();
    let mut edges = graph.edges();
    edges.retain(|(from, to)| {
        let mut without = graph.clone();
        without.connect(*from, *to, 0);
        without.components().len() > count
    });
    edges
}
