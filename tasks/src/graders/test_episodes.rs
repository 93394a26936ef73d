//! Episodes for the tests of graders.

use async_trait::async_trait;
use spar_core::{Trajectory, Verdict};

use super::{GradingPlace, ScriptFinding};
use crate::{GraderError, Task, TerminalVerifier};

pub(crate) fn task() -> Task {
    serde_json::from_value(serde_json::json!({
        "id": "quiz/test/0", "environment": "question", "parameters": { "prompt": "Is it so?" },
        "instruction": "Answer in a word.", "max_turns": 3, "tags": []
    }))
    .unwrap()
}

/// An episode in which the policy wrote these texts; every observation counts them.
pub(crate) fn episode(texts: &[&str]) -> Trajectory {
    let observation = |text: String| serde_json::json!({ "text": text, "state_key": "" });
    let turn = |(number, text): (usize, &&str)| {
        serde_json::json!({
            "prompt": { "kept": 0, "appended": [] }, "author": "policy", "text": text,
            "sampled": { "ids": [], "logprobs": [], "versions": [] },
            "parsed": { "kind": "action", "text": text }, "state_key": "",
            "policy_time": { "secs": 0, "nanos": 0 },
            "step": {
                "observation": observation(format!("seen {number}")), "rewards": [], "terminated": false,
                "success": false, "valid": true, "wall_time": { "secs": 0, "nanos": 0 }
            },
        })
    };
    let turns: Vec<_> = texts.iter().enumerate().map(turn).collect();
    let record = serde_json::json!({
        "version": 3, "episode": 7, "task": "quiz/test/0", "environment": "question",
        "seed": spar_core::Seed::from_u64(5), "policy": "policy",
        "first_observation": observation("Is it so?".to_owned()), "turns": turns,
        "end": { "kind": "terminated" }, "success": false, "wall_time": { "secs": 0, "nanos": 0 },
    });
    Trajectory::from_json(record.to_string().as_bytes()).unwrap()
}

/// An environment that judges nothing and has no sandbox.
pub(crate) struct NoPlace;

#[async_trait]
impl GradingPlace for NoPlace {
    async fn own_verdict(&mut self) -> Result<Option<Verdict>, GraderError> {
        Ok(None)
    }

    async fn run_script(&mut self, _: &TerminalVerifier) -> Result<ScriptFinding, GraderError> {
        Err(GraderError::Place("there is no sandbox".into()))
    }
}
