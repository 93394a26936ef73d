//! What samplers are told.

/// What came of the group of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The shaped return of each episode that ended; those that failed for good are not among them.
    pub returns: Vec<f64>,
    /// How many of these solved the task.
    pub successes: usize,
}

impl Outcome {
    /// Whether episodes went differently, so that comparing them tells something. One alone does, as in DAPO's own
    /// code: what it is compared with is for the estimator to say.
    pub fn has_signal(&self) -> bool {
        match &self.returns[..] {
            [] => false,
            [_] => true,
            [first, others @ ..] => others.iter().any(|value| value != first),
        }
    }

    /// The share of episodes that solved the task; absent where none ended.
    pub fn success_rate(&self) -> Option<f64> {
        (!self.returns.is_empty()).then(|| self.successes as f64 / self.returns.len() as f64)
    }
}

/// What credit says of a group that is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// The place of its task.
    pub place: u64,
    /// The mean over its trajectories of the mean absolute advantage of their tokens.
    pub advantage: f64,
}
