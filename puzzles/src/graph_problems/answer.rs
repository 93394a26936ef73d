//! What is right, and what was answered.

use super::check::{Check, EdgeCheck};
use super::graph::Graph;

/// How far a number may be from what is right.
const TOLERANCE: f64 = 0.001_5;
/// Answers are read up to here.
const MOST_CHARACTERS: usize = 4_000;

/// What is right.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// A whole number.
    Whole(i64),
    /// A number, of which three decimals are told.
    Number(f64),
    /// Yes or no.
    Truth(bool),
    /// Nodes in any order.
    Nodes(Vec<usize>),
    /// Edges in any order, without a direction.
    Edges(Vec<(usize, usize)>),
    /// Any nodes that pass a check, and some that do.
    Checked(Check, Vec<usize>),
    /// Any edges that pass a check, and some that do.
    CheckedEdges(EdgeCheck, Vec<(usize, usize)>),
}

impl Answer {
    /// How it is to be told.
    pub(super) fn form(&self) -> &'static str {
        match self {
            Self::Whole(_) => "Answer with a whole number.",
            Self::Number(_) => "Answer with a number, to three decimals.",
            Self::Truth(_) => "Answer yes or no.",
            Self::Nodes(_) => {
                "Answer with a list of nodes such as [0, 3, 4], or [] if there are none."
            }
            Self::Checked(..) => "Answer with a list of nodes such as [0, 3, 4].",
            Self::Edges(_) => {
                "Answer with a list of edges such as [(0, 3), (1, 4)], or [] if there are none."
            }
            Self::CheckedEdges(..) => "Answer with a list of edges such as [(0, 3), (1, 4)].",
        }
    }

    /// An answer that is right.
    pub(super) fn solution(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => format!("{number:.3}"),
            Self::Truth(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
            Self::Nodes(nodes) | Self::Checked(_, nodes) => format!("{nodes:?}"),
            Self::Edges(edges) | Self::CheckedEdges(_, edges) => format!("{edges:?}"),
        }
    }

    /// Whether an answer is right.
    pub(super) fn is_right(&self, graph: &Graph, answer: &str) -> bool {
        let answer = answer.trim();
        if answer.len() > MOST_CHARACTERS {
            return false;
        }
        match self {
            Self::Whole(right) => number(answer).is_some_and(|it| it == *right as f64),
            Self::Number(right) => number(answer).is_some_and(|it| (it - right).abs() <= TOLERANCE),
            Self::Truth(right) => match answer.trim_end_matches('.').to_lowercase().as_str() {
                "yes" | "true" => *right,
                "no" | "false" => !*right,
                _ => false,
            },
            Self::Nodes(right) => numbers(answer).is_some_and(|mut nodes| {
                nodes.sort_unstable();
                nodes == *right
            }),
            Self::Edges(right) => edges(answer).is_some_and(|found| {
                let mut found: Vec<_> = found
                    .into_iter()
                    .map(|(one, other)| (one.min(other), one.max(other)))
                    .collect();
                found.sort_unstable();
                found == *right
            }),
            Self::Checked(check, _) => {
                numbers(answer).is_some_and(|nodes| check.passes(graph, &nodes))
            }
            Self::CheckedEdges(check, _) => {
                edges(answer).is_some_and(|edges| check.passes(graph, &edges))
            }
        }
    }
}

/// A number, or a fraction of two.
fn number(text: &str) -> Option<f64> {
    let plain = |text: &str| {
        let text = text.trim();
        let is_plain = text.bytes().all(|it| it.is_ascii_digit() || b"+-.eE".contains(&it));
        text.parse::<f64>().ok().filter(|number| is_plain && number.is_finite())
    };
    match text.split_once('/') {
        Some((above, below)) => Some(plain(above)? / plain(below)?).filter(|it| it.is_finite()),
        None => plain(text),
    }
}

/// The numbers of a list, in which nothing else stands but what parts and encloses them.
fn numbers(text: &str) -> Option<Vec<usize>> {
    let is_between = |it: char| it.is_whitespace() || "[](){},;->".contains(it);
    if !text.chars().all(|it| it.is_ascii_digit() || is_between(it)) {
        return None;
    }
    let parts = text.split(is_between).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}

fn edges(text: &str) -> Option<Vec<(usize, usize)>> {
    let numbers = numbers(text)?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[one, other]| (*one, *other)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_their_usual_forms_and_in_no_others() {
        let graph = Graph::new(5, false);
        for (right, good, bad) in [
            (Answer::Whole(3), &["3", " 3 ", "3.0"][..], &["4", "three", "", "3 or 4", "inf"][..]),
            (Answer::Number(0.333_333), &["0.333", "1/3", "0.3333"], &["0.34", "1/0", "nan", "1/"]),
            (Answer::Truth(true), &["yes", "Yes.", "TRUE"], &["no", "yes and no", ""]),
            (
                Answer::Nodes(vec![1, 3]),
                &["[1, 3]", "3 1", "{3,1}"],
                &["[1]", "1, 3, 3", "1 and 3"],
            ),
            (Answer::Nodes(vec![]), &["[]", ""], &["0", "none"]),
            (
                Answer::Edges(vec![(0, 2), (1, 4)]),
                &["[(0, 2), (1, 4)]", "(4,1) (2,0)", "0-2, 1-4"],
                &["[(0, 2)]", "0 2 1", "(0, 2), (1, 4), (0, 2)"],
            ),
        ] {
            assert!(right.is_right(&graph, &right.solution()), "{right:?}");
            good.iter().for_each(|it| assert!(right.is_right(&graph, it), "{it} for {right:?}"));
            bad.iter().for_each(|it| assert!(!right.is_right(&graph, it), "{it} for {right:?}"));
        }
        assert!(!Answer::Nodes(vec![]).is_right(&graph, &"[".repeat(1 << 20)));
        assert!(!Answer::Whole(1).is_right(&graph, "99999999999999999999999999999"));
        assert_eq!(numbers("99999999999999999999999999"), None);
    }
}
