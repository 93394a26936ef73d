//! What can be set of a judge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use crate::graders::GradingModel;

/// Options of the grader `judge`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeOptions {
    /// What is asked. Default `pointwise`.
    pub mode: JudgeMode,
    /// Which model is asked. Default `judge`.
    pub model: GradingModel,
    /// What it sees of the episode, in this order; nothing else. Default `task` and `final_answer`.
    pub sees: Vec<Shown>,
    /// What matters in this task, in words; default empty: how well the task was done.
    pub instructions: String,
    /// The lowest and the highest score, of modes `pointwise` and `criteria`. Default 0 and 10.
    pub range: [f64; 2],
    /// What mode `criteria` asks for, one score each. Default none.
    pub criteria: Vec<Criterion>,
    /// The task counts as solved from this value on, which is from 0 to 1; in mode `steps` where there is no error. Default 0.5.
    pub success_at: f64,
    /// Characters that it sees of each text at the most, the middle being left out; at least 100. Default 20,000.
    pub max_chars: usize,
    /// Characters that it sees in all, marks aside; shared out to the parts, and of each to its texts, whose middle is left
    /// out. At least `max_chars`. Default 60,000.
    pub max_total_chars: usize,
    /// How often it is asked until its answer can be read; at least 1. Default 3.
    pub asks: u32,
    /// Tokens that an answer may have; at least 1. Default 1024.
    pub max_tokens: usize,
    /// How its tokens are drawn; 0 takes the most probable ones. Default 0.
    pub temperature: f32,
    /// Seconds that an answer may take, requests that are repeated included; at least 1. Default 300.
    pub timeout_secs: u64,
}

/// What a judge is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeMode {
    /// A score for the episode.
    #[default]
    Pointwise,
    /// Whether the episode is better than the reference; asked twice, the second time in the other order.
    Pairwise,
    /// A score by each criterion or principle.
    Criteria,
    /// Which turn has the first error.
    Steps,
}

/// A part of an episode that a judge may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// How to act, and what the environment showed first.
    Task,
    /// What the policy answered last.
    FinalAnswer,
    /// All turns: what the policy wrote and what came back.
    Transcript,
    /// The actions alone, such as tool calls, one by one.
    Actions,
    /// The rewards of the steps, and what graders that are named before found, without their words.
    Verdicts,
    /// What the task calls right, which no policy sees.
    Reference,
    /// What else the task says of itself for graders, which no policy sees.
    Metadata,
}

/// A criterion or a principle to judge by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// What it is called: letters, digits, `_` and `-`.
    pub name: String,
    /// What it asks for, in words.
    pub text: String,
    /// What its score counts among the others; above 0. Default 1.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

impl Default for JudgeOptions {
    fn default() -> Self {
        Self {
            mode: JudgeMode::default(),
            model: GradingModel::default(),
            sees: vec![Shown::Task, Shown::FinalAnswer],
            instructions: String::new(),
            range: [0.0, 10.0],
            criteria: Vec::new(),
            success_at: 0.5,
            max_chars: 20_000,
            max_total_chars: 60_000,
            asks: 3,
            max_tokens: 1024,
            temperature: 0.0,
            timeout_secs: 300,
        }
    }
}

impl NamedOptions for JudgeOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let has_range = matches!(self.mode, JudgeMode::Pointwise | JudgeMode::Criteria);
        let [low, high] = self.range;
        if !(low.is_finite() && high.is_finite() && low < high) {
            problems.push(format!("`range` is [{low}, {high}], must go up"));
        }
        if !has_range && self.range != Self::default().range {
            problems.push("`range` has no effect in this mode".to_owned());
        }
        match (self.mode, self.criteria.is_empty()) {
            (JudgeMode::Criteria, true) => problems.push("`criteria` names none".to_owned()),
            (JudgeMode::Criteria, false) => problems.extend(self.criteria_problems()),
            (_, false) => problems.push("`criteria` has no effect in this mode".to_owned()),
            (_, true) => {}
        }
        if self.sees.is_empty() {
            problems.push("`sees` names nothing to judge".to_owned());
        }
        let is_twice = |number: &usize| self.sees[..*number].contains(&self.sees[*number]);
        if (0..self.sees.len()).any(|number| is_twice(&number)) {
            problems.push("`sees` names something twice".to_owned());
        }
        if self.mode == JudgeMode::Steps && !self.sees.contains(&Shown::Transcript) {
            let problem = "steps are judged in the transcript: name `transcript` in `sees`";
            problems.push(problem.to_owned());
        }
        if !(0.0..=1.0).contains(&self.success_at) {
            problems.push(format!("`success_at` is {}, must be from 0 to 1", self.success_at));
        }
        if self.mode == JudgeMode::Steps && self.success_at != Self::default().success_at {
            let problem = "`success_at` has no effect in this mode: solved is what has no error";
            problems.push(problem.to_owned());
        }
        if self.mode == JudgeMode::Pairwise && self.sees.contains(&Shown::Reference) {
            let problem = "`sees` names `reference`, which is one of the two: the judge could tell which it is";
            problems.push(problem.to_owned());
        }
        if self.max_chars < 100 {
            problems.push(format!("`max_chars` is {}, must be at least 100", self.max_chars));
        }
        if self.max_total_chars < self.max_chars {
            let (total, each) = (self.max_total_chars, self.max_chars);
            problems.push(format!(
                "`max_total_chars` is {total}, must be at least `max_chars`, {each}"
            ));
        }
        let counts = [
            ("asks", u64::from(self.asks)),
            ("max_tokens", self.max_tokens as u64),
            ("timeout_secs", self.timeout_secs),
        ];
        for (name, _) in counts.iter().filter(|(_, value)| *value == 0) {
            problems.push(format!("`{name}` is 0, must be at least 1"));
        }
        if !(0.0..=10.0).contains(&self.temperature) {
            problems.push(format!("`temperature` is {}, must be from 0 to 10", self.temperature));
        }
        problems
    }
}

impl JudgeOptions {
    fn criteria_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for (number, Criterion { name, text, weight }) in self.criteria.iter().enumerate() {
            if name.is_empty() || !name.chars().all(is_plain) {
                let problem =
                    format!("criterion `{name}` is called by letters, digits, `_` and `-`");
                problems.push(problem);
            }
            if self.criteria[..number].iter().any(|other| other.name == *name) {
                problems.push(format!("two criteria are called `{name}`"));
            }
            if text.trim().is_empty() {
                problems.push(format!("criterion `{name}` says nothing"));
            }
            if !(weight.is_finite() && *weight > 0.0) {
                problems.push(format!("weight of criterion `{name}` is {weight}, must be above 0"));
            }
        }
        problems
    }
}
