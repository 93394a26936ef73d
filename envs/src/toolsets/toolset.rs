//! The seam: what a toolset says and does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use spar_core::{Action, ToolCall, ToolResult, ToolSpec};

use super::{Halt, Workplace};

/// What an agent has to work with at a machine, as a published scaffold has it.
pub trait Toolset: Send + Sync + fmt::Debug {
    /// Its tools; empty where actions are words.
    fn tools(&self) -> Arc<[ToolSpec]>;

    /// The longest that one command may take; absent: as long as the task says.
    fn command_limit(&self) -> Option<Duration> {
        None
    }

    /// Whether its first message shows something of the machine, so that [`ToolSession::open`] words it. Default false.
    fn looks_first(&self) -> bool {
        false
    }

    /// The first message.
    fn opening(&self, briefing: &Briefing<'_>) -> String;

    /// The action that runs a command of a shell, as demonstrators need it.
    fn command(&self, command: &str) -> Action;

    /// The action that submits; what is at its end is judged.
    fn submit(&self) -> Action;

    /// Begins to work at a machine that is new.
    fn begin(&self) -> Box<dyn ToolSession>;
}

/// A toolset at work, with what it remembers.
#[async_trait]
pub trait ToolSession: Send {
    /// The first message, where that shows something of the machine; else nobody asks.
    ///
    /// # Errors
    ///
    /// [`Halt`] where the machine could not do its part.
    async fn open(
        &mut self,
        briefing: &Briefing<'_>,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let _ = (briefing, place);
        Ok(String::new())
    }

    /// Carries out an action.
    ///
    /// # Errors
    ///
    /// [`Halt`] where the machine could not do its part.
    async fn act(&mut self, action: &Action, place: &mut Workplace<'_>) -> Result<Acted, Halt>;

    /// The same once more, at a copy of the machine; absent where what it holds cannot be copied, such as a program on a
    /// terminal.
    fn fork(&self) -> Option<Box<dyn ToolSession>>;
}

/// What is to be done, for the first message.
#[derive(Debug, Clone, Copy)]
pub struct Briefing<'a> {
    /// The task in words.
    pub task: &'a str,
    /// Where the machine's shells begin.
    pub workdir: &'a str,
    /// Whether there is a repository, and what is judged are changes to it.
    pub is_repository: bool,
    /// Seconds that a command may take.
    pub command_secs: u64,
}

/// What has come of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    /// One for each call, in their order.
    pub results: Vec<ToolResult>,
    /// What is shown beside them, or where there was no call.
    pub text: String,
    /// Whether it was an action at all.
    pub is_valid: bool,
    /// Present where the agent has submitted.
    pub submission: Option<Submission>,
}

/// What an agent hands in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Submission {
    /// The patch that it has written out itself; absent: what differs in its repository.
    pub patch: Option<String>,
}

impl Acted {
    /// The answer in words to an action in words.
    pub fn said(text: impl Into<String>) -> Self {
        Self { results: Vec::new(), text: text.into(), is_valid: true, submission: None }
    }

    /// These results.
    pub fn of(results: Vec<ToolResult>) -> Self {
        Self { results, text: String::new(), is_valid: true, submission: None }
    }

    /// The same answer to every call, or in words where there is none: what was asked for is no action.
    pub fn refused(calls: &[ToolCall], text: &str) -> Self {
        let results: Vec<_> = calls.iter().map(|call| ToolResult::error(call, text)).collect();
        let text = if results.is_empty() { text.to_owned() } else { String::new() };
        Self { results, text, is_valid: false, submission: None }
    }

    /// The same, submitted.
    #[must_use]
    pub fn submitted(mut self, submission: Submission) -> Self {
        self.submission = Some(submission);
        self
    }
}
