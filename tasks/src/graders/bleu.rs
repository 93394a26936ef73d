//! Answers judged by how many rows of words they share with a reference.

use std::collections::HashMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Verdict};

use super::registry::AXIS;
use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// The longest rows of words that are counted.
const ORDER: usize = 4;
/// How long a text may be to be compared, in bytes; what is longer is worth 0.
const MAX_BYTES: usize = 1 << 20;

/// What stands for rows of a length of which none is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BleuSmoothing {
    /// Nothing: the score is 0.
    None,
    /// A tenth of a row.
    Floor,
    /// One row more, shared and in all, of two words and more.
    AddOne,
    /// A half, a quarter, and so on, as NIST's script has it.
    #[default]
    Exp,
}

/// Options of [`Bleu`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BleuOptions {
    /// What stands for rows of which none is shared. Default `exp`.
    pub smoothing: BleuSmoothing,
    /// Whether capitals are taken for small letters. Default false.
    pub ignore_case: bool,
    /// Whether rows that are longer than the answer are left out of the mean, as for sentences. Default true.
    pub effective_order: bool,
    /// The task counts as solved from this value on, which is from 0 to 1. Default 0.5.
    pub success_at: f64,
}

impl Default for BleuOptions {
    fn default() -> Self {
        Self {
            smoothing: BleuSmoothing::default(),
            ignore_case: false,
            effective_order: true,
            success_at: 0.5,
        }
    }
}

impl NamedOptions for BleuOptions {
    fn problems(&self) -> Vec<String> {
        let is_within = (0.0..=1.0).contains(&self.success_at);
        let problem = || format!("`success_at` is {}, must be from 0 to 1", self.success_at);
        (!is_within).then(problem).into_iter().collect()
    }
}

/// BLEU of the answer against what the task calls right (BLEUBERI, arXiv 2505.11080), 0 to 1, in the part `bleu`.
///
/// `BP exp(mean_n log p_n)` over rows of 1 to 4 words, `p_n` being the share of the answer's rows that a reference has, each as often as the reference that has it most, and `BP = min(1, exp(1 - r / c))` for the length
/// `r` of the reference nearest to the answer's `c`. Equal to `sacrebleu.sentence_bleu` over 100, with its tokenizer `13a`.
#[derive(Debug, Clone, Default)]
pub struct Bleu {
    options: BleuOptions,
}

impl Bleu {
    /// The judge with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when one is outside its range.
    pub fn new(options: BleuOptions) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, "bleu", options.problems())?;
        Ok(Self { options })
    }

    /// The score of a text against references, 0 to 1; 0 without a reference, and of texts that are too long.
    pub fn score(&self, text: &str, references: &[String]) -> f64 {
        if references.is_empty()
            || references.iter().any(|it| it.len() > MAX_BYTES)
            || text.len() > MAX_BYTES
        {
            return 0.0;
        }
        let words = |text: &str| match self.options.ignore_case {
            true => tokenized(&text.to_lowercase()),
            false => tokenized(text),
        };
        let (own, others) =
            (words(text), references.iter().map(|it| words(it)).collect::<Vec<_>>());
        let length = own.len();
        // The nearest length, of equally near ones the shorter.
        let near = |other: &Vec<String>| (other.len().abs_diff(length), other.len());
        let reference = others.iter().map(near).min().map_or(0, |(_, length)| length);
        let (mut shared, mut all) = ([0.0; ORDER], [0.0; ORDER]);
        for order in 1..=ORDER {
            let mut most: HashMap<&[String], usize> = HashMap::new();
            for other in &others {
                for (row, count) in counts(other, order) {
                    let most = most.entry(row).or_default();
                    *most = count.max(*most);
                }
            }
            for (row, count) in counts(&own, order) {
                all[order - 1] += count as f64;
                shared[order - 1] += count.min(most.get(row).copied().unwrap_or(0)) as f64;
            }
        }
        let mean = self.mean_log(shared, all);
        let short = match length {
            0 => 0.0,
            _ if length < reference => (1.0 - reference as f64 / length as f64).exp(),
            _ => 1.0,
        };
        mean.map_or(0.0, |mean| short * mean.exp())
    }

    /// The mean of the logarithms of precisions; absent where the score is 0.
    fn mean_log(&self, mut shared: [f64; ORDER], mut all: [f64; ORDER]) -> Option<f64> {
        if shared.iter().all(|count| *count == 0.0) {
            return None;
        }
        let BleuOptions { smoothing, effective_order, .. } = self.options;
        let (mut sum, mut orders, mut halved) = (0.0, 0, 1.0);
        for order in 0..ORDER {
            if smoothing == BleuSmoothing::AddOne && order > 0 {
                shared[order] += 1.0;
                all[order] += 1.0;
            }
            if all[order] == 0.0 {
                break;
            }
            orders = order + 1;
            let precision = match smoothing {
                _ if shared[order] > 0.0 => shared[order] / all[order],
                BleuSmoothing::Exp => {
                    halved *= 2.0;
                    1.0 / (halved * all[order])
                }
                BleuSmoothing::Floor => 0.1 / all[order],
                BleuSmoothing::None | BleuSmoothing::AddOne => return None,
            };
            sum += precision.ln();
        }
        // Rows that are longer than the answer have precision 0.
        match effective_order || orders == ORDER {
            true => Some(sum / orders as f64),
            false => None,
        }
    }

    /// What an answer is worth.
    pub fn verdict(&self, answer: &str, right: &[String]) -> Verdict {
        let value = self.score(answer, right);
        let part = RewardPart { name: "bleu".to_owned(), value };
        Verdict {
            parts: if value > 0.0 { vec![part] } else { Vec::new() },
            success: value >= self.options.success_at,
            details: format!("BLEU {value:.3}"),
            artifacts: [("bleu".to_owned(), value.into())].into(),
            ..Verdict::default()
        }
    }
}

/// Rows of so many words, with how often each comes.
fn counts(words: &[String], order: usize) -> HashMap<&[String], usize> {
    let mut counts = HashMap::new();
    words.windows(order).for_each(|row| *counts.entry(row).or_insert(0) += 1);
    counts
}

/// The words of a text, as the tokenizer `13a` of WMT's script cuts it.
fn tokenized(text: &str) -> Vec<String> {
    let mut text = text.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    if text.contains('&') {
        for (entity, meant) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
            text = text.replace(entity, meant);
        }
    }
    // 1. Signs stand by themselves.
    let mut apart: Vec<char> = vec![' '];
    for c in text.chars() {
        match c {
            '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/' => {
                apart.extend([' ', c, ' ']);
            }
            _ => apart.push(c),
        }
    }
    apart.push(' ');
    // 2. Points and commas do, unless digits stand on both sides; and a dash behind a digit does.
    let is_stop = |c: char| matches!(c, '.' | ',');
    let apart =
        pairs(&apart, |a, b| !a.is_ascii_digit() && is_stop(b), |a, b| vec![a, ' ', b, ' ']);
    let apart =
        pairs(&apart, |a, b| is_stop(a) && !b.is_ascii_digit(), |a, b| vec![' ', a, ' ', b]);
    let apart = pairs(&apart, |a, b| a.is_ascii_digit() && b == '-', |a, b| vec![a, ' ', b, ' ']);
    // What Python splits at.
    let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let text: String = apart.into_iter().collect();
    text.split(is_space).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Replaces pairs of characters from left to right, none of which is part of two.
fn pairs(
    text: &[char],
    is_met: impl Fn(char, char) -> bool,
    becomes: impl Fn(char, char) -> Vec<char>,
) -> Vec<char> {
    let mut found = Vec::with_capacity(text.len());
    let mut place = 0;
    while place < text.len() {
        match text.get(place + 1) {
            Some(next) if is_met(text[place], *next) => {
                found.extend(becomes(text[place], *next));
                place += 2;
            }
            _ => {
                found.push(text[place]);
                place += 1;
            }
        }
    }
    found
}

#[async_trait]
impl Grader for Bleu {
    fn name(&self) -> &'static str {
        "bleu"
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { reference: true, ..GraderNeeds::default() }
    }

    fn judge_answer(&self, _: &Task, answer: &str, reference: &ReferenceAnswer) -> Option<Verdict> {
        Some(self.verdict(answer, &reference.texts()))
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let right = super::expect_reference(episode, "bleu")?;
        Ok(self.verdict(&episode.final_answer(), &right.texts()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Recorded {
        text: String,
        references: Vec<String>,
        /// By smoothing, in the order of the options: with and without effective order.
        scores: std::collections::BTreeMap<String, [f64; 2]>,
    }

    #[test]
    fn scores_equal_those_of_sacrebleu() {
        let text = include_str!("../../tests/fixtures/bleu.json");
        let cases: Vec<Recorded> = serde_json::from_str(text).unwrap();
        assert!(cases.len() >= 40);
        let smoothings = [
            ("none", BleuSmoothing::None),
            ("floor", BleuSmoothing::Floor),
            ("add-k", BleuSmoothing::AddOne),
            ("exp", BleuSmoothing::Exp),
        ];
        for Recorded { text, references, scores } in cases {
            for (name, smoothing) in smoothings {
                for (effective_order, expected) in [true, false].into_iter().zip(scores[name]) {
                    let options = BleuOptions { smoothing, effective_order, ..Default::default() };
                    let found = Bleu::new(options).unwrap().score(&text, &references);
                    let is_near = (found - expected / 100.0).abs() < 1e-9;
                    assert!(
                        is_near,
                        "{name} {effective_order} {text:?} {references:?}: {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn hostile_texts_are_worth_nothing_and_take_no_time() {
        let bleu = Bleu::default();
        let long = "word ".repeat(400_000);
        assert_eq!(bleu.score(&long, &["word".to_owned()]), 0.0);
        assert_eq!(bleu.score("", &[String::new()]), 0.0);
        assert_eq!(bleu.score("a", &[]), 0.0);
        let verdict =
            bleu.verdict("the cat sat on the mat", &["the cat sat on the mat".to_owned()]);
        assert!(verdict.success && (verdict.reward() - 1.0).abs() < 1e-12);
        assert!(Bleu::new(BleuOptions { success_at: 2.0, ..Default::default() }).is_err());
    }
}
