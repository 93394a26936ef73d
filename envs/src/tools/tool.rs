//! An operation that is offered to a policy.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use spar_core::{Media, ToolCall, ToolSpec};

use crate::EnvironmentError;

/// An operation that is offered to a policy, over a state of its own that one episode has to itself.
///
/// Equal calls in equal states give equal results, and a fork goes on as its origin would have. A call may be dropped
/// when its time is up: the state is then as before it or as behind it, and the next call is answered as any other.
/// Nothing that a call does may keep a thread of the runtime: what computes for longer than some microseconds, or waits
/// for anything but futures, goes to a thread of its own ([`FunctionTool::blocking`](super::FunctionTool::blocking)).
#[async_trait]
pub trait Tool: Send {
    /// What is offered now: one spec for most tools, several where they share a state, such as those of a server. The
    /// same `Arc` as long as nothing has changed; looked at again behind [`prepare`](Self::prepare) and behind every call.
    fn specs(&self) -> Arc<[ToolSpec]>;

    /// Brings up what calls need, such as a process. A second call does nothing, and a call of the tool does it by itself
    /// where nobody has. Default nothing.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when that could not be had.
    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Whether it has something to [show first](Self::first). Default false.
    fn shows_first(&self) -> bool {
        false
    }

    /// What belongs to the first observation, such as documents that the task names: asked once it was
    /// [prepared](Self::prepare), before anything is called. Default nothing.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when that could not be had.
    async fn first(&mut self) -> Result<ToolOutput, EnvironmentError> {
        Ok(ToolOutput::default())
    }

    /// Carries out a call of one of the [specs](Self::specs). Arguments are whatever the policy wrote: nothing has held
    /// them to the schema. What the call asks for may take as long as `limit`, and is ended then, which is
    /// [told](too_slow); what goes on for longer is taken for a tool that hangs.
    ///
    /// # Errors
    ///
    /// [`ToolError::Told`] where the policy is to read what was wrong with its call, [`ToolError::Failed`] where the tool
    /// itself broke.
    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError>;

    /// A second tool in the same state, independent of this one; absent where the state cannot be copied, which is the
    /// default. Whoever needs one then plays the same calls again.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the state could not be copied, or must not be brought about again.
    async fn fork(&mut self) -> Result<Option<Box<dyn Tool>>, EnvironmentError> {
        Ok(None)
    }

    /// Gives back what it holds, such as a process. Default nothing.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when that could not be done.
    async fn close(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// What the policy reads.
    pub text: String,
    /// What it sees beside that, such as a picture.
    pub media: Vec<Media>,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { text, media: Vec::new() }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A call was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The call is to blame: what the policy reads, a sentence.
    #[error("{0}")]
    Told(String),
    /// The tool is to blame, whatever it was called with: the episode fails and is never scored.
    #[error(transparent)]
    Failed(#[from] EnvironmentError),
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self::Told(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self::Told(text.to_owned())
    }
}

/// What the policy is told where what it called for was not done in time.
pub fn too_slow(tool: &str, limit: Duration) -> ToolError {
    ToolError::Told(format!(
        "`{tool}` was not done within {} s, and was stopped.",
        limit.as_secs_f64()
    ))
}
