//! Answers with the evidence that they stand on.

use std::collections::BTreeSet;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Verdict};
use spar_search::squad::exact_match;

use super::registry::AXIS;
use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::GraderError;

/// Options of [`Evidence`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvidenceOptions {
    /// What an answer in the right form is worth; 0 or more. Default 1.
    pub format: f64,
    /// What a right answer is worth; 0 or more. Default 1.
    pub accuracy: f64,
    /// What the right evidence is worth, a share of it where it is not quite right; 0 or more. Default 1.
    pub relevance: f64,
    /// What all of these together are worth beside them; 0 or more. Default 10.
    pub bonus: f64,
}

impl Default for EvidenceOptions {
    fn default() -> Self {
        Self { format: 1.0, accuracy: 1.0, relevance: 1.0, bonus: 10.0 }
    }
}

impl NamedOptions for EvidenceOptions {
    fn problems(&self) -> Vec<String> {
        let all = [
            ("format", self.format),
            ("accuracy", self.accuracy),
            ("relevance", self.relevance),
            ("bonus", self.bonus),
        ];
        let wrong = all.into_iter().filter(|(_, it)| !(it.is_finite() && *it >= 0.0));
        wrong.map(|(name, value)| format!("`{name}` is {value}, must be 0 or more")).collect()
    }
}

/// The adaptive reward of ARENA, but for its share of the evidence.
///
/// The answer has to be `<relevance>1, 3</relevance><analysis>...</analysis><answer>...</answer>`, each once and in this order: the numbers of the passages that it stands on, why, and what is right. Parts `format`, `accuracy` (SQuAD's exact
/// match), `relevance`, and `bonus` where all three are whole. What is not in the form earns nothing of the others.
///
/// With `n` passages named, `e` in the task's `metadata.evidence` and `k` that are both, the share of `relevance` is `1` where `n = e = k`, and
/// else `(k / n) (k / e) / 2`.
///
/// Source: ARENA (arXiv 2505.13258) and its code, whose weights are the defaults. Deviation: there the share is `1 / 2` wherever `k > 0`, so that
/// who names every passage, whatever he answers, earns as much as who has found all but one; here that earns next to nothing. `format` is
/// paid whatever stands in the form, as there.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    options: EvidenceOptions,
}

/// An answer in its parts.
#[derive(Debug, PartialEq)]
struct Parts<'a> {
    evidence: BTreeSet<String>,
    answer: &'a str,
}

/// Reads an answer; absent where it is not in the form.
fn read(text: &str) -> Option<Parts<'_>> {
    let take = |text: &str, name: &str| -> Option<(usize, usize, usize)> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        if text.matches(&open).count() != 1 || text.matches(&close).count() != 1 {
            return None;
        }
        let start = text.find(&open)?;
        let end = text.find(&close)?;
        (start + open.len() <= end).then_some((start, start + open.len(), end))
    };
    let (_, first, first_end) = take(text, "relevance")?;
    let (second, _, second_end) = take(text, "analysis")?;
    let (third, inside, third_end) = take(text, "answer")?;
    if !(first_end < second && second_end < third) {
        return None;
    }
    let names =
        text[first..first_end].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let evidence = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(Parts { evidence, answer: text[inside..third_end].trim() })
}

/// How much of the evidence was found, and how little beside it: 0 to 1.
fn share(found: &BTreeSet<String>, right: &BTreeSet<String>) -> f64 {
    if found == right {
        return 1.0;
    }
    let both = found.intersection(right).count() as f64;
    if both == 0.0 { 0.0 } else { both / found.len() as f64 * (both / right.len() as f64) / 2.0 }
}

impl Evidence {
    /// The judge with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when one is outside its range.
    pub fn new(options: EvidenceOptions) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, "evidence", options.problems())?;
        Ok(Self { options })
    }

    /// What an answer is worth, of which this is right and this is its evidence.
    pub fn verdict(&self, text: &str, right: &[String], evidence: &BTreeSet<String>) -> Verdict {
        let Some(found) = read(text) else {
            let details = "it is not in the form".to_owned();
            return Verdict { details, ..Verdict::default() };
        };
        let is_right =
            !found.answer.is_empty() && exact_match(found.answer, right.iter().map(String::as_str));
        let share = share(&found.evidence, evidence);
        let EvidenceOptions { format, accuracy, relevance, bonus } = self.options;
        let right_share = f64::from(u8::from(is_right));
        let is_whole = is_right && share == 1.0;
        let parts = [
            ("format", format),
            ("accuracy", accuracy * right_share),
            ("relevance", relevance * share),
            ("bonus", if is_whole { bonus } else { 0.0 }),
        ];
        let part = |(name, value): (&str, f64)| RewardPart { name: name.to_owned(), value };
        Verdict {
            parts: parts.into_iter().filter(|(_, value)| *value > 0.0).map(part).collect(),
            success: is_right,
            details: format!("right: {}", right.join(" or ")),
            ..Verdict::default()
        }
    }
}

#[async_trait]
impl Grader for Evidence {
    fn name(&self) -> &'static str {
        "evidence"
    }

    fn version(&self) -> u32 {
        2
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { reference: true, ..GraderNeeds::default() }
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let right = super::expect_reference(episode, "evidence")?.texts();
        let Some(Value::Array(evidence)) = episode.task.parameters["metadata"].get("evidence")
        else {
            let id = &episode.task.id;
            let problem =
                format!("`evidence` of task `{id}`: its `metadata` has no list `evidence`");
            return Err(GraderError::Problems { problems: vec![problem] });
        };
        let name = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let evidence = evidence.iter().map(name).collect();
        Ok(self.verdict(&episode.final_answer(), &right, &evidence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_every_passage_earns_next_to_nothing_for_it() {
        let of = |names: std::ops::Range<u32>| -> BTreeSet<String> {
            names.map(|name| name.to_string()).collect()
        };
        let right = of(1..3);
        assert_eq!(share(&right, &right), 1.0);
        assert_eq!(share(&of(1..4), &right), 1.0 / 3.0);
        assert_eq!(share(&of(1..21), &right), 0.05);
        assert_eq!((share(&of(5..9), &right), share(&of(0..0), &right)), (0.0, 0.0));
        assert_eq!(share(&of(0..0), &of(0..0)), 1.0);
        let named: Vec<String> = of(1..101).into_iter().collect();
        let text = format!(
            "<relevance>{}</relevance><analysis></analysis><answer>Rome</answer>",
            named.join(", ")
        );
        let verdict = Evidence::default().verdict(&text, &["Paris".to_owned()], &right);
        assert!((verdict.reward() - 1.01).abs() < 1e-12, "its form, and a hundredth");
    }

    #[test]
    fn every_component_is_paid_by_itself_and_all_of_them_more() {
        let grader = Evidence::default();
        let evidence: BTreeSet<String> = ["1", "3"].map(str::to_owned).into();
        let right = ["Paris".to_owned()];
        let worth = |cited: &str, answer: &str| {
            let text = format!(
                "<relevance>{cited}</relevance> <analysis>since</analysis>\n<answer>{answer}</answer>"
            );
            grader.verdict(&text, &right, &evidence)
        };
        assert_eq!(worth("[1, 3]", "paris").reward(), 13.0);
        assert_eq!(worth("3,1", "Rome").reward(), 2.0);
        assert_eq!(worth("1", "Paris").reward(), 2.25);
        assert_eq!(worth("2", "Paris").reward(), 2.0);
        assert_eq!(worth("", "").reward(), 1.0);
        assert!(worth("2", "Paris").success && !worth("1,3", "Rome").success);
        for broken in [
            "Paris",
            "<answer>Paris</answer><relevance>1,3</relevance><analysis>x</analysis>",
            "<relevance>1,3</relevance><analysis>x</analysis><answer>Paris</answer><answer>Rome</answer>",
            "</relevance>1<relevance><analysis></analysis><answer>Paris</answer>",
        ] {
            let verdict = grader.verdict(broken, &right, &evidence);
            assert!(verdict.reward() == 0.0 && !verdict.success, "{broken}");
        }
        assert!(Evidence::new(EvidenceOptions { bonus: -1.0, ..Default::default() }).is_err());
    }
}
