//! What a task asks of an answer, criterion by criterion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Task;

/// A criterion of a rubric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RubricCriterion {
    /// What it asks for, in words.
    pub criterion: String,
    /// What satisfying it is worth; below 0 where it tells what an answer must not have. Default 1.
    #[serde(default = "one")]
    pub points: f64,
    /// Phrases of which an answer that satisfies it has one, whatever their capitals; empty: a judge tells. Default empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
}

fn one() -> f64 {
    1.0
}

impl RubricCriterion {
    /// Whether an answer has one of its phrases; `None` where it has none to look for.
    pub fn is_mentioned(&self, answer: &str) -> Option<bool> {
        let answer = answer.to_lowercase();
        let is_there = |phrase: &String| answer.contains(&phrase.to_lowercase());
        (!self.mentions.is_empty()).then(|| self.mentions.iter().any(is_there))
    }
}

/// The rubric of a task, the list `rubric` of its metadata; empty where it has none.
///
/// # Errors
///
/// What is wrong with it.
pub fn rubric_of(task: &Task) -> Result<Vec<RubricCriterion>, String> {
    let told = match &task.parameters["metadata"]["rubric"] {
        serde_json::Value::Null => return Ok(Vec::new()),
        told => told.clone(),
    };
    let rubric: Vec<RubricCriterion> = serde_json::from_value(told)
        .map_err(|error| format!("`metadata.rubric` of task `{}`: {error}", task.id))?;
    if let Some(wrong) = rubric.iter().find(|it| !it.points.is_finite() || it.points == 0.0) {
        let (id, points) = (&task.id, wrong.points);
        return Err(format!(
            "`metadata.rubric` of task `{id}`: `points` is {points}, must not be 0"
        ));
    }
    Ok(rubric)
}
