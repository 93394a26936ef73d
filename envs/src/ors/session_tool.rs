//! The tools of a session.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use spar_core::{RewardPart, ToolCall, ToolSpec};
use spar_ors::{OrsAnswer, OrsOutput, OrsSession};
use spar_tasks::OrsFailure;

use crate::EnvironmentError;
use crate::tools::{Tool, ToolError, ToolOutput};

/// What a session has said of its task beside what calls show.
#[derive(Debug, Clone, Default)]
pub(super) struct Score {
    /// What was earned since that was asked last.
    pub(super) new: Vec<RewardPart>,
    /// What was earned in all.
    pub(super) total: f64,
    /// Whether the task is over.
    pub(super) is_over: bool,
    /// Whether the server said so.
    pub(super) is_finished: bool,
}

/// The score that a tool and its environment share.
pub(super) type SharedScore = Arc<Mutex<Score>>;

pub(super) fn with_score<T>(score: &SharedScore, look: impl FnOnce(&mut Score) -> T) -> T {
    look(&mut score.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The tools of a session, as one tool.
pub(super) struct SessionTool {
    /// Absent until it is begun, and when it was closed.
    pub(super) session: Arc<tokio::sync::Mutex<Option<OrsSession>>>,
    pub(super) specs: Arc<[ToolSpec]>,
    pub(super) score: SharedScore,
    pub(super) on_failure: OrsFailure,
}

#[async_trait]
impl Tool for SessionTool {
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError> {
        let session = self.session.lock().await;
        let misused = EnvironmentError::Misused { call: "step", when: "before prepare" };
        let session = session.as_ref().ok_or(misused)?;
        let OrsOutput { content, reward, finished } =
            match session.call(&call.name, &call.arguments, limit).await {
                Ok(OrsAnswer::Done(output)) => output,
                Ok(OrsAnswer::Told(text)) => return Err(ToolError::Told(text)),
                Err(error) if self.on_failure == OrsFailure::End => {
                    with_score(&self.score, |score| score.is_over = true);
                    return Err(ToolError::Told(format!("This came to nothing: {error}.")));
                }
                Err(error) => return Err(EnvironmentError::from(error).into()),
            };
        with_score(&self.score, |score| {
            let part = |value| RewardPart { name: "task".to_owned(), value };
            score.new.extend(reward.map(part));
            score.total += reward.unwrap_or_default();
            score.is_finished = finished;
            score.is_over = finished;
        });
        Ok(ToolOutput { text: content.text, media: content.media })
    }
}
