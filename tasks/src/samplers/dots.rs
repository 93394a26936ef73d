//! Tasks whose predicted success rate is near a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, RowError};

use super::order::candidates;
use super::registry::AXIS;
use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted, read, written};
use crate::SamplerError;
use crate::curricula::draw_without_replacement;

/// Numbers that words are counted into.
const FEATURES: usize = 256;
/// Bytes of a task's words that are looked at.
const MAX_BYTES: usize = 65_536;

/// Options of [`Dots`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DotsOptions {
    /// Tasks that are played to see how well their like are solved; at least 1. Default 256.
    pub references: usize,
    /// Iterations between two such sets; at least 1. Default 2.
    pub every: u64,
    /// How many times as many tasks as an iteration wants are looked at; at least 1. Default 16.
    pub pool: usize,
    /// The success rate that is looked for, 0 to 1. Default 0.5.
    pub target: f64,
    /// How far from it tasks are drawn, above 0. Default 0.001.
    pub temperature: f64,
    /// How much less alike tasks are asked too, above 0. Default 0.1.
    pub attention_temperature: f64,
}

impl Default for DotsOptions {
    fn default() -> Self {
        Self {
            references: 256,
            every: 2,
            pool: 16,
            target: 0.5,
            temperature: 1e-3,
            attention_temperature: 0.1,
        }
    }
}

impl NamedOptions for DotsOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let counts = [
            ("references", self.references == 0),
            ("every", self.every == 0),
            ("pool", self.pool == 0),
        ];
        for (name, is_none) in counts {
            if is_none {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if !(0.0..=1.0).contains(&self.target) {
            problems.push(format!("target is {}, must be 0 to 1", self.target));
        }
        let positive = [
            ("temperature", self.temperature),
            ("attention_temperature", self.attention_temperature),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                problems.push(format!("{name} is {value}, must be above 0"));
            }
        }
        problems
    }
}

/// Difficulty-targeted online data selection (DOTS, arXiv 2506.05316).
///
/// Every few iterations a reference set is played, and those groups are not trained. The success rate of any other task is predicted as the mean of theirs by attention,
/// `softmax(q . k / attention_temperature)`, and tasks are drawn without one twice by `softmax(-|p - target| / temperature)`, as in the code. Deviation: what is compared are words and pairs of words
/// of instruction and parameters, hashed into 256 numbers of length 1, where the code has embeddings of a model and a calibration that is learned beforehand.
#[derive(Debug, Clone, PartialEq)]
pub struct Dots {
    options: DotsOptions,
    state: State,
    wanted: Option<Wanted>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    References,
    Chosen,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    next: u64,
    iterations: u64,
    /// The places of the reference set, with their success rates; those that nobody could play have none.
    references: Vec<(u64, Option<f64>)>,
}

impl Dots {
    /// A sampler that begins at this place.
    ///
    /// # Errors
    ///
    /// [`SamplerError::Row`] when an option is outside its range.
    pub fn new(options: &DotsOptions, first: u64) -> Result<Self, SamplerError> {
        RowError::refuse(AXIS.what, "dots", options.problems())?;
        let state = State { next: first, iterations: 0, references: Vec::new() };
        let phase = Phase::Chosen;
        Ok(Self { options: options.clone(), state, wanted: None, phase })
    }

    /// The predicted success rates of the tasks at these places; no numbers where no reference is known.
    fn predicted(&self, order: &dyn TaskOrder, places: &[u64]) -> Vec<f64> {
        let known =
            self.state.references.iter().filter_map(|(place, rate)| Some((place, (*rate)?)));
        let known: Vec<(Vec<f64>, f64)> =
            known.map(|(place, rate)| (features(&order.text(*place)), rate)).collect();
        let predict = |place: &u64| {
            let query = features(&order.text(*place));
            let scores: Vec<f64> = known
                .iter()
                .map(|(key, _)| key.iter().zip(&query).map(|(a, b)| a * b).sum::<f64>())
                .map(|score| score / self.options.attention_temperature)
                .collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weighed = scores.iter().zip(&known).map(|(score, (_, rate))| {
                let weight = (score - most).exp();
                (weight, weight * rate)
            });
            let (weights, rates) = weighed.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
            rates / weights
        };
        places.iter().map(predict).collect()
    }
}

/// Words and pairs of words of a text, counted into a few numbers whose squares add up to 1; all 0 where there are none.
fn features(text: &str) -> Vec<f64> {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let words = text[..end].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut counts = vec![0.0; FEATURES];
    let mut before = "";
    for word in words {
        for first in ["", before] {
            let mut hasher = blake3::Hasher::new();
            let hash =
                hasher.update(first.as_bytes()).update(b"\x1f").update(word.as_bytes()).finalize();
            counts[usize::from(hash.as_bytes()[0])] += 1.0;
        }
        before = word;
    }
    let length = counts.iter().map(|count| count * count).sum::<f64>().sqrt();
    if length > 0.0 {
        counts.iter_mut().for_each(|count| *count /= length);
    }
    counts
}

impl TaskSampler for Dots {
    fn name(&self) -> &'static str {
        "dots"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = Some(*wanted);
        let is_due = self.state.iterations.is_multiple_of(self.options.every);
        self.phase = if is_due { Phase::References } else { Phase::Chosen };
        self.state.iterations += 1;
    }

    fn draw(&mut self, order: &dyn TaskOrder) -> Vec<Draw> {
        if self.phase == Phase::References {
            let found = candidates(order, &mut self.state.next, self.options.references);
            self.state.references = found.iter().map(|task| (task.place, None)).collect();
            return found.into_iter().map(|task| task.place.into()).collect();
        }
        let Some(wanted) = self.wanted.take() else { return Vec::new() };
        let count = wanted.groups.saturating_mul(self.options.pool);
        let looked = candidates(order, &mut self.state.next, count);
        let places: Vec<u64> = looked.iter().map(|task| task.place).collect();
        let DotsOptions { target, temperature, .. } = self.options;
        let log_weights: Vec<f64> = self
            .predicted(order, &places)
            .into_iter()
            .map(|rate| if rate.is_nan() { 0.0 } else { -(rate - target).abs() / temperature })
            .collect();
        let mut rng = wanted.seed.rng();
        let mut drawn = draw_without_replacement(&log_weights, wanted.groups, &mut rng);
        drawn.sort_unstable();
        drawn.into_iter().map(|place| places[place].into()).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        match std::mem::replace(&mut self.phase, Phase::Chosen) {
            Phase::References => {
                for ((_, rate), outcome) in self.state.references.iter_mut().zip(outcomes) {
                    *rate = outcome.success_rate();
                }
                vec![false; outcomes.len()]
            }
            Phase::Chosen => vec![true; outcomes.len()],
        }
    }

    fn next_place(&self) -> u64 {
        self.state.next
    }

    fn state(&self) -> Value {
        written(&self.state)
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.state = read("dots", state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_order::{Line, of_four, places, wanted};
    use super::*;

    #[test]
    fn only_references_are_played_to_predict_and_the_alike_of_half_solved_ones_are_drawn() {
        let options = DotsOptions { references: 3, every: 2, pool: 4, ..DotsOptions::default() };
        let mut dots = Dots::new(&options, 0).unwrap();
        let order = Line { tasks: 30, strata: &["easy", "middle", "hard"] };
        dots.begin(&wanted(4));
        assert_eq!(places(&dots.draw(&order)), [0, 1, 2]);
        assert_eq!(dots.observe(&[of_four(4), of_four(2), of_four(0)]), [false; 3]);
        let drawn = places(&dots.draw(&order));
        assert_eq!(drawn.len(), 4);
        assert!(drawn.iter().all(|place| place % 3 == 1 && *place > 2), "{drawn:?}");
        assert_eq!(dots.observe(&[of_four(2), of_four(2), of_four(2), of_four(2)]), [true; 4]);
        assert!(dots.draw(&order).is_empty());
        // In the next iteration the set is asked again, without being played.
        dots.begin(&wanted(2));
        let drawn = places(&dots.draw(&order));
        assert!(drawn.len() == 2 && drawn.iter().all(|place| place % 3 == 1), "{drawn:?}");
        dots.observe(&[of_four(2), of_four(2)]);
        dots.begin(&wanted(2));
        assert_eq!(dots.draw(&order).len(), 3, "a new set");
    }

    #[test]
    fn features_are_of_length_one_and_bounded() {
        let long = "wörter ".repeat(200_000);
        for text in ["a b", "", "!!", long.as_str()] {
            let length: f64 = features(text).iter().map(|it| it * it).sum();
            assert!(length == 0.0 || (length - 1.0).abs() < 1e-9);
        }
        assert_ne!(features("a b"), features("b a"), "pairs count");
    }
}
