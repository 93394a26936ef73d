//! Who watches a run.

use spar_agent::Evaluation;
use spar_core::Trajectory;
use spar_trainer::MetricRecord;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Learning the tokens of the suite's text.
    Tokenizer,
    /// Imitation of demonstrations.
    WarmStart,
    /// Reinforcement learning.
    Reinforce,
}

impl Stage {
    /// A word for logs and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer",
            Self::WarmStart => "warm_start",
            Self::Reinforce => "reinforce",
        }
    }
}

/// Watches a run; every method may be left out.
pub trait Observer: Sync {
    /// A stage begins, or goes on behind `done` of `total` iterations.
    fn stage(&self, stage: Stage, done: u64, total: u64) {
        let _ = (stage, done, total);
    }

    /// `episodes` are going to be played for `what`.
    fn playing(&self, what: &str, episodes: usize) {
        let _ = (what, episodes);
    }

    /// One of them ended.
    fn episode(&self, trajectory: &Trajectory) {
        let _ = trajectory;
    }

    /// An iteration is done.
    fn iteration(&self, stage: Stage, record: &MetricRecord) {
        let _ = (stage, record);
    }

    /// An evaluation is done; `split` is in it.
    fn evaluation(&self, iteration: u64, evaluation: &Evaluation) {
        let _ = (iteration, evaluation);
    }

    /// Something worth a line.
    fn note(&self, text: &str) {
        let _ = text;
    }
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {}
