//! A problem about a graph.

use serde::{Deserialize, Serialize};
use spar_core::Seed;
use spar_python::Random;

use super::answer::Answer;
use super::family::{UnknownFamily, find};
use super::graph::{Draw, Graph};

/// How many nodes a graph has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// 5 to 7.
    Easy,
    /// 8 to 10.
    #[default]
    Medium,
    /// 11 to 14; in some families 12 at most, 9 for tours.
    Hard,
}

impl Level {
    /// The fewest and the most nodes.
    pub fn nodes(self) -> (usize, usize) {
        match self {
            Self::Easy => (5, 7),
            Self::Medium => (8, 10),
            Self::Hard => (11, 14),
        }
    }
}

/// What a family makes.
pub(super) struct Made {
    pub(super) graph: Graph,
    pub(super) with_weights: bool,
    /// What is asked, and what is said of the graph beside its edges.
    pub(super) asked: String,
    pub(super) answer: Answer,
}

impl Made {
    pub(super) fn new(graph: Graph, asked: impl Into<String>, answer: Answer) -> Self {
        Self { graph, with_weights: false, asked: asked.into(), answer }
    }

    pub(super) fn with_weights(self) -> Self {
        Self { with_weights: true, ..self }
    }
}

/// A problem about a graph, with what is right.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphProblem {
    family: &'static str,
    question: String,
    graph: Graph,
    answer: Answer,
}

/// The problem of a family that a seed gives; equal seeds give equal problems.
///
/// # Errors
///
/// [`UnknownFamily`], which lists those that there are.
pub fn graph_problem(family: &str, level: Level, seed: u64) -> Result<GraphProblem, UnknownFamily> {
    let family = find(family)?;
    let path = Seed::from_u64(seed).derive("graph problem", family.name);
    let mut rng = Random::from_u64(path.as_u64());
    let (least, most) = level.nodes();
    let (least, most) = (least.min(family.most_nodes), most.min(family.most_nodes));
    let num_nodes = least + rng.below((most - least + 1) as u64) as usize;
    let Made { graph, with_weights, asked, answer } =
        (family.make)(&mut Draw { rng: &mut rng, num_nodes });
    let question = format!("{} {asked} {}", graph.text(with_weights), answer.form());
    Ok(GraphProblem { family: family.name, question, graph, answer })
}

impl GraphProblem {
    /// The family that it is of.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// The graph, what is asked about it, and how to answer.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// An answer that is right.
    pub fn solution(&self) -> String {
        self.answer.solution()
    }

    /// Whether an answer is right: the number or the set that is asked for, or one of many paths, orders and sets that are.
    pub fn is_right(&self, answer: &str) -> bool {
        self.answer.is_right(&self.graph, answer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::graph_families;
    use super::*;

    #[test]
    fn every_family_gives_problems_that_its_own_answer_solves() {
        for family in graph_families() {
            let mut given: BTreeMap<String, usize> = BTreeMap::new();
            for level in [Level::Easy, Level::Medium, Level::Hard] {
                for seed in 0..8 {
                    let problem = graph_problem(family.name, level, seed).unwrap();
                    let solution = problem.solution();
                    assert!(problem.is_right(&solution), "{problem:?}");
                    assert!(!problem.is_right("perhaps"), "{problem:?}");
                    *given.entry(solution).or_default() += 1;
                }
            }
            let again = || graph_problem(family.name, Level::Medium, 3).unwrap();
            assert_eq!(again(), again());
            // No answer is right most of the time.
            let most = given.values().max().copied().unwrap_or_default();
            assert!(most <= 20, "{}: {given:?}", family.name);
        }
    }

    #[test]
    fn seeds_and_families_give_problems_of_their_own() {
        let questions: std::collections::BTreeSet<String> = graph_families()
            .flat_map(|family| {
                (0..4).map(|seed| graph_problem(family.name, Level::Medium, seed).unwrap().question)
            })
            .collect();
        assert_eq!(questions.len(), graph_families().count() * 4);
    }

    #[test]
    fn an_unknown_family_lists_those_that_there_are() {
        let error = graph_problem("crossings", Level::Easy, 1).unwrap_err().to_string();
        assert!(error.contains("`crossings`") && error.contains("`maximum_flow`"), "{error}");
    }
}
