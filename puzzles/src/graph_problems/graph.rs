//! A graph.

use std::collections::VecDeque;
use std::fmt::Write as _;

use spar_python::Random;

/// A graph whose nodes are numbers from 0 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) num_nodes: usize,
    pub(super) is_directed: bool,
    /// By node and node, 0 where there is no edge. Undirected edges stand there twice.
    weights: Vec<u32>,
}

impl Graph {
    pub(super) fn new(num_nodes: usize, is_directed: bool) -> Self {
        Self { num_nodes, is_directed, weights: vec![0; num_nodes * num_nodes] }
    }

    pub(super) fn connect(&mut self, from: usize, to: usize, weight: u32) {
        self.weights[from * self.num_nodes + to] = weight;
        if !self.is_directed {
            self.weights[to * self.num_nodes + from] = weight;
        }
    }

    /// 0 where there is no edge, or no such node.
    pub(super) fn weight(&self, from: usize, to: usize) -> u32 {
        let is_there = from < self.num_nodes && to < self.num_nodes;
        if is_there { self.weights[from * self.num_nodes + to] } else { 0 }
    }

    pub(super) fn has(&self, from: usize, to: usize) -> bool {
        self.weight(from, to) > 0
    }

    pub(super) fn nodes(&self) -> std::ops::Range<usize> {
        0..self.num_nodes
    }

    pub(super) fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> {
        self.nodes().filter(move |other| self.has(node, *other))
    }

    pub(super) fn degree(&self, node: usize) -> usize {
        self.neighbors(node).count()
    }

    /// All edges, the smaller node first where they have no direction.
    pub(super) fn edges(&self) -> Vec<(usize, usize)> {
        let all = self.nodes().flat_map(|from| self.nodes().map(move |to| (from, to)));
        all.filter(|(from, to)| (self.is_directed || from < to) && self.has(*from, *to)).collect()
    }

    /// Steps from a node to every other; absent where there is no way.
    pub(super) fn distances(&self, from: usize) -> Vec<Option<usize>> {
        let mut steps = vec![None; self.num_nodes];
        steps[from] = Some(0);
        let mut open = VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            let next = steps[node].map(|it: usize| it + 1);
            for other in self.neighbors(node) {
                if steps[other].is_none() {
                    steps[other] = next;
                    open.push_back(other);
                }
            }
        }
        steps
    }

    /// Sets of nodes that hang together, directions aside.
    pub(super) fn components(&self) -> Vec<Vec<usize>> {
        let mut of: Vec<usize> = self.nodes().collect();
        for (from, to) in self.edges() {
            let (keep, lose) = (of[from], of[to]);
            of.iter_mut().filter(|it| **it == lose).for_each(|it| *it = keep);
        }
        let members = |number: usize| -> Vec<usize> {
            self.nodes().filter(|node| of[*node] == number).collect()
        };
        self.nodes().map(members).filter(|members| !members.is_empty()).collect()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.components().len() == 1
    }

    /// A side for each node, so that all edges lead from one to the other; absent where there is none.
    pub(super) fn sides(&self) -> Option<Vec<bool>> {
        let mut sides: Vec<Option<bool>> = vec![None; self.num_nodes];
        for start in self.nodes() {
            if sides[start].is_some() {
                continue;
            }
            sides[start] = Some(false);
            let mut open = vec![start];
            while let Some(node) = open.pop() {
                let other_side = sides[node].map(|side| !side);
                for other in self.neighbors(node) {
                    match sides[other] {
                        None => {
                            sides[other] = other_side;
                            open.push(other);
                        }
                        found if found != other_side => return None,
                        Some(_) => {}
                    }
                }
            }
        }
        sides.into_iter().collect()
    }

    /// It in a sentence.
    pub(super) fn text(&self, with_weights: bool) -> String {
        let kind = if self.is_directed { "A directed" } else { "An undirected" };
        let mut text =
            format!("{kind} graph has the nodes 0 to {}", self.num_nodes.saturating_sub(1));
        let edges = self.edges();
        text.push_str(if edges.is_empty() { " and no edges." } else { " and the edges " });
        for (number, (from, to)) in edges.iter().enumerate() {
            if number > 0 {
                text.push_str(", ");
            }
            let arrow = if self.is_directed { "->" } else { "-" };
            let _ = write!(text, "{from}{arrow}{to}");
            if with_weights {
                let _ = write!(text, " ({})", self.weight(*from, *to));
            }
        }
        if !edges.is_empty() {
            text.push('.');
        }
        if with_weights {
            text.push_str(" Weights stand in parentheses.");
        }
        text
    }
}

/// Draws graphs.
pub(super) struct Draw<'a> {
    pub(super) rng: &'a mut Random,
    pub(super) num_nodes: usize,
}

impl Draw<'_> {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound.max(1) as u64) as usize
    }

    pub(super) fn node(&mut self) -> usize {
        self.below(self.num_nodes)
    }

    /// Two different nodes.
    pub(super) fn two_nodes(&mut self) -> (usize, usize) {
        let one = self.node();
        let other = self.below(self.num_nodes - 1);
        (one, if other >= one { other + 1 } else { other })
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.rng.random() < probability
    }

    pub(super) fn order(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.num_nodes).collect();
        self.rng.shuffle(&mut order);
        order
    }

    fn weight(&mut self, most: u32) -> u32 {
        1 + self.below(most as usize) as u32
    }

    /// Each edge that there could be, with a probability and a weight of 1 to `most`.
    pub(super) fn graph(&mut self, is_directed: bool, probability: f64, most: u32) -> Graph {
        let mut graph = Graph::new(self.num_nodes, is_directed);
        for from in graph.nodes() {
            for to in graph.nodes() {
                let is_edge = from != to && (is_directed || from < to);
                if is_edge && self.chance(probability) {
                    let weight = self.weight(most);
                    graph.connect(from, to, weight);
                }
            }
        }
        graph
    }

    /// The same with a tree through all nodes.
    pub(super) fn connected(&mut self, probability: f64, most: u32) -> Graph {
        let mut graph = self.graph(false, probability, most);
        let order = self.order();
        for at in 1..order.len() {
            let before = order[self.below(at)];
            let weight = self.weight(most);
            if !graph.has(order[at], before) {
                graph.connect(order[at], before, weight);
            }
        }
        graph
    }

    /// A forest, of which each node but the first hangs on an earlier one with a probability.
    pub(super) fn forest(&mut self, probability: f64) -> Graph {
        let mut graph = Graph::new(self.num_nodes, false);
        let order = self.order();
        for at in 1..order.len() {
            let before = order[self.below(at)];
            if self.chance(probability) {
                graph.connect(order[at], before, 1);
            }
        }
        graph
    }

    /// Edges between two halves of the nodes, as many as the probability gives; the halves are drawn.
    pub(super) fn bipartite(&mut self, probability: f64) -> Graph {
        let mut graph = Graph::new(self.num_nodes, false);
        let order = self.order();
        let (left, right) = order.split_at(self.num_nodes / 2);
        for from in left {
            for to in right {
                if self.chance(probability) {
                    graph.connect(*from, *to, 1);
                }
            }
        }
        graph
    }

    /// Edges that all lead on in an order.
    pub(super) fn acyclic(&mut self, probability: f64) -> (Graph, Vec<usize>) {
        let mut graph = Graph::new(self.num_nodes, true);
        let order = self.order();
        for (number, from) in order.iter().enumerate() {
            for to in &order[number + 1..] {
                if self.chance(probability) {
                    graph.connect(*from, *to, 1);
                }
            }
        }
        (graph, order)
    }

    /// Graphs until one is as wanted; the last one after many.
    pub(super) fn until(
        &mut self,
        mut draw: impl FnMut(&mut Self) -> Graph,
        is_wanted: impl Fn(&Graph) -> bool,
    ) -> Graph {
        let mut graph = draw(self);
        for _ in 0..200 {
            if is_wanted(&graph) {
                break;
            }
            graph = draw(self);
        }
        graph
    }
}
