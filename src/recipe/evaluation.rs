//! When and how a run evaluates its policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spar_core::Sampling;

use crate::seats::SeatPlayerConfig;

/// When and how the policy is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationConfig {
    /// Iterations of reinforcement learning between evaluations on the dev split. Default 20.
    pub every: u64,
    /// Tasks of the dev split that are played each time: a sample, the same throughout a run. Default
    /// 100.
    pub dev_tasks: usize,
    /// Episodes of each of these tasks: where a split is small and answers are drawn, one of each leaves it to
    /// luck which checkpoint is chosen. Default 1.
    pub dev_attempts: usize,
    /// Tasks of each test split that are played before and after reinforcement learning: a sample,
    /// the same both times. Default absent: all.
    pub test_tasks: Option<usize>,
    /// The share of an evaluation's episodes, 0 to below 1, that may be missing because sandbox,
    /// environment or policy server failed. Where more are, it has no score, and the run stops, to be
    /// taken up by `spar resume`. Default 0.05.
    pub max_missing: f64,
    /// Temperature in evaluation; 0 takes the most probable tokens. Default 0.
    pub temperature: f32,
    /// How many of the most probable tokens can be drawn. Default absent: all.
    pub top_k: Option<usize>,
    /// The fewest of the most probable tokens can be drawn that have this probability together.
    /// Above 0 up to 1, default 1: all.
    pub top_p: f32,
    /// Share of the most probable token's probability below which a token cannot be drawn. 0 to 1,
    /// default 0: all can.
    pub min_p: f32,
    /// Turns an episode may have. Default absent: the task's number.
    pub max_turns: Option<u32>,
    /// Who takes a seat in evaluations, by its name, where that is another one than in training: in self-play what the
    /// policy is measured by. Default empty: as in training.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seats: BTreeMap<String, SeatPlayerConfig>,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        Self {
            every: 20,
            dev_tasks: 100,
            dev_attempts: 1,
            test_tasks: None,
            max_missing: 0.05,
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            max_turns: None,
            seats: BTreeMap::new(),
        }
    }
}

impl EvaluationConfig {
    /// Sets how tokens are drawn in evaluation.
    pub fn apply_to(&self, sampling: &mut Sampling) {
        let Self { temperature, top_k, top_p, min_p, .. } = *self;
        *sampling = Sampling { temperature, top_k, top_p, min_p, ..*sampling };
    }
}
