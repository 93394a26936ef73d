//! Answers that name a place on a screen.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{RewardPart, Verdict};

use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// Characters of an answer that are read, from its end.
const MOST_CHARS: usize = 4_096;

/// Options of [`Region`]: what its parts weigh. Each is at least 0, and one has to be more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RegionOptions {
    /// That the point, or the middle of the box, lies in the right region. Default 1.
    pub hit: f64,
    /// How much box and region have in common, of what they cover together (IoU); 0 for a point. Default 0.
    pub iou: f64,
    /// How near the four coordinates of the box are to the region's; 0 for a point. Default 0.
    pub size: f64,
}

impl Default for RegionOptions {
    fn default() -> Self {
        Self { hit: 1.0, iou: 0.0, size: 0.0 }
    }
}

impl NamedOptions for RegionOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let weights = [("hit", self.hit), ("iou", self.iou), ("size", self.size)];
        for (name, weight) in weights {
            if !(0.0..=1e6).contains(&weight) {
                problems.push(format!("`{name}` is {weight}, must be from 0 to 1000000"));
            }
        }
        if problems.is_empty() && weights.iter().all(|(_, weight)| *weight == 0.0) {
            problems.push("`hit`, `iou` and `size` are all 0: nothing is paid".to_owned());
        }
        problems
    }
}

/// A box of pixels, or of whatever unit both sides have: the left, upper, right and lower edge.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rectangle([f64; 4]);

/// What an answer names.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Named {
    Point([f64; 2]),
    Rectangle(Rectangle),
}

impl Rectangle {
    /// A box with its edges in order.
    fn new([x1, y1, x2, y2]: [f64; 4]) -> Self {
        Self([x1.min(x2), y1.min(y2), x1.max(x2), y1.max(y2)])
    }

    fn middle(self) -> [f64; 2] {
        let Self([x1, y1, x2, y2]) = self;
        [f64::midpoint(x1, x2), f64::midpoint(y1, y2)]
    }

    /// Whether a point lies in it or on its edge.
    fn contains(self, [x, y]: [f64; 2]) -> bool {
        let Self([x1, y1, x2, y2]) = self;
        (x1..=x2).contains(&x) && (y1..=y2).contains(&y)
    }

    fn area(self) -> f64 {
        let Self([x1, y1, x2, y2]) = self;
        (x2 - x1).max(0.0) * (y2 - y1).max(0.0)
    }

    /// Intersection over union; 0 where both are without an area.
    fn iou(self, other: Self) -> f64 {
        let (Self(a), Self(b)) = (self, other);
        let common = Self([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]).area();
        let all = self.area() + other.area() - common;
        if all > 0.0 { common / all } else { 0.0 }
    }

    /// `4 / Σ max(a/b, b/a)` over the coordinates, each at least 1: 1 where the boxes are equal, and less for boxes that are larger or smaller.
    fn alike(self, other: Self) -> f64 {
        let sides = self.0.into_iter().zip(other.0);
        let sum: f64 = sides
            .map(|(a, b)| {
                let (a, b) = (a.max(1.0), b.max(1.0));
                (a / b).max(b / a)
            })
            .sum();
        4.0 / sum
    }
}

/// The numbers of the last brackets in a text that hold two or four and nothing else, or else of the whole text.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let read = |text: &str| -> Option<Vec<f64>> {
        let parts = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|it| !it.is_empty());
        let found: Option<Vec<f64>> = parts
            .map(|part| part.parse::<f64>().ok().filter(|it| it.is_finite() && it.abs() <= 1e9))
            .collect();
        found.filter(|found| [2, 4].contains(&found.len()))
    };
    let mut end = text.len();
    while let Some(close) = text[..end].rfind([']', ')', '>', '<']) {
        let inner = &text[..close];
        let open = inner.rfind(['[', '(', '<', '>']).map_or(0, |open| open + 1);
        if let Some(found) = read(&inner[open..]) {
            return Some(found);
        }
        end = close;
    }
    read(text)
}

/// What a text names: the last point or box in it.
fn named(text: &str) -> Option<Named> {
    let start = text.char_indices().rev().nth(MOST_CHARS).map_or(0, |(place, _)| place);
    match numbers(&text[start..])?[..] {
        [x, y] => Some(Named::Point([x, y])),
        [x1, y1, x2, y2] => Some(Named::Rectangle(Rectangle::new([x1, y1, x2, y2]))),
        _ => None,
    }
}

/// An answer names a point or a box on a screen, which has to lie where the task says.
///
/// The answer's last brackets with two numbers are a point, `[x, y]`, with four a box, `[x1, y1, x2, y2]`, in the unit of the reference, which is such a
/// box. The reward is `(hit h + iou i + size s) / (hit + iou + size)` with `h = 1[middle in region]`, `i` the intersection over the union and `s = 4 / Σ max(a/b, b/a)` over the coordinates;
/// `i` and `s` are the greatest for the region itself, so that no box earns more by being larger. `i` and `s` of a box that does not hit are not paid.
/// Success is a hit.
///
/// Source: the rewards that GUI-G1 (arXiv 2505.15810) compares; which of several regions is meant is the one that earns most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Region {
    options: RegionOptions,
}

impl Region {
    /// The comparison with these options.
    pub fn new(options: RegionOptions) -> Self {
        Self { options }
    }

    /// The reward of an answer, from 0 to 1, and whether it hits.
    fn worth(&self, answer: &str, right: &str) -> (f64, bool) {
        let Some((answer, Named::Rectangle(right))) = named(answer).zip(named(right)) else {
            return (0.0, false);
        };
        let RegionOptions { hit, iou, size } = self.options;
        let (middle, box_parts) = match answer {
            Named::Point(point) => (point, 0.0),
            Named::Rectangle(found) => {
                (found.middle(), iou * found.iou(right) + size * found.alike(right))
            }
        };
        match right.contains(middle) {
            true => ((hit + box_parts) / (hit + iou + size), true),
            false => (0.0, false),
        }
    }

    /// The verdict on an answer: the reward part `region`.
    pub fn verdict(&self, answer: &str, reference: &ReferenceAnswer) -> Verdict {
        let texts = reference.texts();
        let worth = texts.iter().map(|right| self.worth(answer, right));
        let (value, success) =
            worth.fold(
                (0.0, false),
                |best, it| if it.0 > best.0 { it } else { (best.0, best.1 || it.1) },
            );
        let part = RewardPart { name: "region".to_owned(), value };
        Verdict {
            parts: if value > 0.0 { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}", texts.join(" or ")),
            ..Verdict::default()
        }
    }
}

#[async_trait]
impl Grader for Region {
    fn name(&self) -> &'static str {
        "region"
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { reference: true, ..GraderNeeds::default() }
    }

    fn judge_answer(&self, _: &Task, answer: &str, reference: &ReferenceAnswer) -> Option<Verdict> {
        Some(self.verdict(answer, reference))
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let reference = super::expect_reference(episode, "region")?;
        Ok(self.verdict(&episode.final_answer(), reference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(options: RegionOptions, answer: &str) -> (f64, bool) {
        let verdict = Region::new(options)
            .verdict(answer, &ReferenceAnswer::Text("[10, 20, 30, 60]".to_owned()));
        (verdict.parts.first().map_or(0.0, |part| part.value), verdict.success)
    }

    #[test]
    fn a_point_in_the_region_is_a_hit_and_one_beside_it_is_none() {
        let only_hit = RegionOptions::default();
        for answer in [
            "[20, 40]",
            "I click (10,20).",
            "<box>[[0, 0, 40, 80]]</box>",
            "20 40",
            "first [1, 1], then [30, 60]",
            "<point>12 22</point>",
        ] {
            assert_eq!(worth(only_hit, answer), (1.0, true), "{answer}");
        }
        let giant = "[".repeat(3_000_000);
        for answer in [
            "[31, 40]",
            "",
            "[20]",
            "[20, 40, 50]",
            "[nan, 40]",
            "[1e300, 40]",
            "no",
            &giant,
            "[20, 40] or [100, 100]",
        ] {
            assert_eq!(worth(only_hit, answer), (0.0, false), "{answer:.30}");
        }
    }

    #[test]
    fn no_box_earns_more_by_being_larger() {
        let options = RegionOptions { hit: 1.0, iou: 1.0, size: 1.0 };
        let exact = worth(options, "[10, 20, 30, 60]").0;
        assert_eq!(exact, 1.0);
        let mut last = exact;
        for grow in 1..10 {
            let answer = format!("[{}, {}, {}, {}]", 10 - grow, 20 - grow, 30 + grow, 60 + grow);
            let now = worth(options, &answer).0;
            assert!(now < last, "{answer}: {now} and {last}");
            last = now;
        }
        assert!(worth(options, "[18, 38, 22, 42]").0 < exact, "nor by being smaller");
        assert_eq!(worth(options, "[100, 100, 120, 140]"), (0.0, false));
    }

    #[test]
    fn weights_that_pay_nothing_are_refused() {
        let problems = |options: RegionOptions| options.problems().len();
        assert_eq!(problems(RegionOptions::default()), 0);
        assert_eq!(problems(RegionOptions { hit: 0.0, iou: 0.0, size: 0.0 }), 1);
        assert_eq!(problems(RegionOptions { hit: -1.0, iou: f64::NAN, size: 0.0 }), 2);
    }
}
