//! What most of a group say is taken to be right.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_answers::{AnswerForm, FinalAnswer, final_answer};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::add_at_end;
use crate::ShaperError;

/// Cells along a side of the grid at the most.
const MAX_CELLS: usize = 256;

/// How a consensus is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsensusRule {
    /// The answer that most give, in words; of equally frequent ones the first one given.
    #[default]
    Majority,
    /// The region of a plane in which most predictions lie: points of two numbers, boxes of four.
    Region,
}

/// Options of [`Consensus`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConsensusOptions {
    /// How it is found. Default `majority`.
    pub rule: ConsensusRule,
    /// The side of the square that a point votes for, of rule `region`; above 0. Default 50.
    pub point_size: f64,
    /// What agreement is worth; above 0. Default 1.
    pub weight: f64,
    /// Whether it takes the place of all other parts, so that nothing is learned from labels. Default true.
    pub alone: bool,
}

impl Default for ConsensusOptions {
    fn default() -> Self {
        Self { rule: ConsensusRule::default(), point_size: 50.0, weight: 1.0, alone: true }
    }
}

impl NamedOptions for ConsensusOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("point_size", self.point_size), ("weight", self.weight)] {
            if !(value.is_finite() && value > 0.0) {
                problems.push(format!("{name} is {value}, must be above 0"));
            }
        }
        if self.rule == ConsensusRule::Majority && self.point_size != Self::default().point_size {
            problems.push("point_size has no effect with rule `majority`".to_owned());
        }
        problems
    }
}

/// A reward without labels: how far an episode agrees with its group, added to the last turn as part `consensus`.
///
/// - `majority`: 1 where the last answer is the most frequent one of the group, else 0 (TTRL, arXiv 2504.16084). An answer is what stands in a box, tags or behind `Answer:`, or else all that was said, small letters
///   and spaces aside; one that contradicts itself agrees with nobody.
/// - `region`: every prediction votes for the cells of a grid that it covers, and the region of most votes is the consensus; an episode earns the mean votes of the cells that it covers, over the most (GUI-RCPO, arXiv 2508.05615; reconstructed from
///   its abstract and a summary). What has neither two nor four numbers in it earns 0.
#[derive(Debug, Clone)]
pub struct Consensus {
    options: ConsensusOptions,
}

impl Consensus {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &ConsensusOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "consensus", options.problems())?;
        Ok(Self { options: options.clone() })
    }

    /// How far each of these answers agrees with all of them, 0 to 1.
    pub fn agreement(&self, answers: &[String]) -> Vec<f64> {
        match self.options.rule {
            ConsensusRule::Majority => majority(answers),
            ConsensusRule::Region => region(answers, self.options.point_size),
        }
    }
}

/// What an episode said last.
fn said_last(trajectory: &Trajectory) -> String {
    let Some(last) = trajectory.last_acting() else { return String::new() };
    let said = last.parsed.action().map(|action| action.key().into_owned());
    said.unwrap_or_else(|| last.text.clone())
}

fn majority(answers: &[String]) -> Vec<f64> {
    let normal = |text: &String| -> Option<String> {
        let found = match final_answer(text, AnswerForm::Any) {
            FinalAnswer::Found(found) => found,
            FinalAnswer::Conflicting => return None,
            _ => text.clone(),
        };
        let words: Vec<String> = found.split_whitespace().map(str::to_lowercase).collect();
        Some(words.join(" ")).filter(|text| !text.is_empty())
    };
    let normal: Vec<Option<String>> = answers.iter().map(normal).collect();
    let votes = |answer: &String| normal.iter().flatten().filter(|other| *other == answer).count();
    let most = normal.iter().flatten().map(votes).max().unwrap_or(0);
    let winner = normal.iter().flatten().find(|answer| votes(answer) == most);
    let agrees = |answer: &Option<String>| answer.is_some() && answer.as_ref() == winner;
    normal.iter().map(|answer| f64::from(u8::from(agrees(answer)))).collect()
}

/// A box by its left, top, right and bottom.
type Area = [f64; 4];

/// The box of a prediction: the first four numbers of a text, or a square around the first two.
fn area(text: &str, point_size: f64) -> Option<Area> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let numbers = text.split(|c: char| !is_part(c)).filter_map(|part| part.parse::<f64>().ok());
    let numbers: Vec<f64> = numbers.filter(|it| it.is_finite() && it.abs() < 1e9).take(4).collect();
    match numbers[..] {
        [left, top, right, bottom] => {
            Some([left.min(right), top.min(bottom), left.max(right), top.max(bottom)])
        }
        [x, y] | [x, y, _] => {
            let half = point_size / 2.0;
            Some([x - half, y - half, x + half, y + half])
        }
        _ => None,
    }
}

fn region(answers: &[String], point_size: f64) -> Vec<f64> {
    let areas: Vec<Option<Area>> = answers.iter().map(|text| area(text, point_size)).collect();
    let known = || areas.iter().flatten();
    let bound = |side: usize, start: f64, pick: fn(f64, f64) -> f64| {
        known().map(|area| area[side]).fold(start, pick)
    };
    let (left, top) = (bound(0, f64::INFINITY, f64::min), bound(1, f64::INFINITY, f64::min));
    let (right, bottom) =
        (bound(2, f64::NEG_INFINITY, f64::max), bound(3, f64::NEG_INFINITY, f64::max));
    let cells = |from: f64, to: f64| ((to - from).ceil().max(1.0) as usize).min(MAX_CELLS);
    let (columns, rows) = (cells(left, right), cells(top, bottom));
    // Cells whose middle lies within, so that a box of any size covers at least the one around its own middle.
    let span = |from: f64, to: f64, start: f64, end: f64, count: usize| {
        let place = |at: f64| (at - start) / (end - start).max(f64::MIN_POSITIVE) * count as f64;
        let middle = (place(f64::midpoint(from, to)) as usize).min(count - 1);
        let first = ((place(from) - 0.5).ceil().max(0.0) as usize).min(middle);
        let last = ((place(to) - 0.5).floor().max(0.0) as usize).clamp(middle, count - 1);
        first..=last
    };
    let covered = |area: &Area| {
        (span(area[0], area[2], left, right, columns), span(area[1], area[3], top, bottom, rows))
    };
    let mut votes = vec![0_u32; columns * rows];
    for area in known() {
        let (across, down) = covered(area);
        for row in down {
            across.clone().for_each(|column| votes[row * columns + column] += 1);
        }
    }
    let most = f64::from(votes.iter().copied().max().unwrap_or(0).max(1));
    let agrees = |area: &Option<Area>| {
        let Some(area) = area else { return 0.0 };
        let (across, down) = covered(area);
        let (mut sum, mut count) = (0.0, 0.0);
        for row in down {
            for column in across.clone() {
                sum += f64::from(votes[row * columns + column]);
                count += 1.0;
            }
        }
        sum / count / most
    };
    areas.iter().map(agrees).collect()
}

impl RewardShaper for Consensus {
    fn name(&self) -> &'static str {
        "consensus"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let mut all = [rewards.to_vec()];
        self.shape_group(&[trajectory], &mut all);
        let [shaped] = all;
        rewards.iter_mut().zip(shaped).for_each(|(parts, shaped)| *parts = shaped);
    }

    fn shape_group(&self, trajectories: &[&Trajectory], rewards: &mut [Vec<Vec<RewardPart>>]) {
        let answers: Vec<String> = trajectories.iter().map(|it| said_last(it)).collect();
        let agreement = self.agreement(&answers);
        for ((trajectory, rewards), agrees) in trajectories.iter().zip(rewards).zip(agreement) {
            if self.options.alone {
                rewards.iter_mut().for_each(Vec::clear);
            }
            add_at_end(trajectory, rewards, "consensus", self.options.weight * agrees);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    fn agreement(options: ConsensusOptions, answers: &[&str]) -> Vec<f64> {
        let answers: Vec<String> = answers.iter().map(|it| (*it).to_owned()).collect();
        Consensus::new(&options).unwrap().agreement(&answers)
    }

    #[test]
    fn the_majority_is_right_whatever_the_labels_say() {
        let said = |answers: &[&str]| agreement(ConsensusOptions::default(), answers);
        assert_eq!(said(&["4", r"it is \boxed{4}", "5", ""]), [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(said(&["No", "yes", "no ", "YES"]), [1.0, 0.0, 1.0, 0.0], "ties to the first");
        assert_eq!(said(&[r"\boxed{1} or \boxed{2}", "3"]), [0.0, 1.0]);
        assert!(said(&[]).is_empty());
        let mut played: Vec<Trajectory> = ["a", "b", "b"]
            .iter()
            .map(|text| {
                let mut trajectory = episode(&[&[("success", 1.0)]]);
                trajectory.turns[0].text = (*text).to_owned();
                trajectory.turns[0].parsed = spar_core::ParsedAction::of(*text);
                trajectory
            })
            .collect();
        played[1].success = true;
        let consensus = Consensus::new(&ConsensusOptions::default()).unwrap();
        let shaped = RewardShapers::new(vec![Box::new(consensus)])
            .shape_group(&played.iter().collect::<Vec<_>>());
        let sums: Vec<f64> =
            shaped.iter().map(|turns| turns.iter().flatten().map(|it| it.value).sum()).collect();
        assert_eq!(sums, [0.0, 1.0, 1.0]);
    }

    #[test]
    fn the_region_of_most_votes_is_the_consensus() {
        let options = ConsensusOptions {
            rule: ConsensusRule::Region,
            point_size: 10.0,
            ..Default::default()
        };
        let said = |answers: &[&str]| agreement(options.clone(), answers);
        let found = said(&["(50, 50)", "[52, 51]", "click 49.5 50", "900, 10", "nowhere"]);
        assert!(found[..3].iter().all(|it| *it > 0.6), "{found:?}");
        assert!(found[3] < 0.5 && found[4] == 0.0, "{found:?}");
        // A box that is larger than what others agree on earns less.
        let boxes = said(&["0 0 10 10", "0 0 10 10", "0 0 100 100"]);
        assert!(boxes[0] > 0.99 && boxes[2] < 0.5, "{boxes:?}");
        assert_eq!(said(&["7 7 7 7"]), [1.0]);
        assert_eq!(said(&["nan inf", "-"]), [0.0, 0.0]);
    }
}
