//! What an episode at a shell has come to, whatever is done there.

use std::time::Duration;

use spar_core::{Action, Observation, Step, ToolCall, ToolResult};

use super::environment::{command_of, next_key};
use super::machine::Ran;
use super::transcript::{is_executable, outcome};
use crate::toolsets::{Acted, Worked};

/// Where an episode stands.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    /// The situation: equal where the same commands have shown the same.
    pub(crate) state_key: String,
    /// Actions that were carried out.
    pub(crate) num_commands: usize,
    /// How many commands of the solution were carried out, and nothing else.
    pub(crate) solved: Option<usize>,
    /// Whether the task was submitted, or its sandbox lost.
    pub(crate) is_over: bool,
    /// Whether the agent has submitted it.
    pub(crate) is_submitted: bool,
}

/// What an action asks for.
pub(crate) enum Asked {
    /// That a command is carried out.
    Command(String),
    /// Nothing that could be: the answer to it.
    Nothing(String),
}

impl Asked {
    /// Reads an action: its words, or where tools are used its only call.
    pub(crate) fn of(action: &Action, uses_tools: bool) -> Self {
        match (action.tool_calls(), uses_tools) {
            ([], false) => Self::Command(action.said().to_owned()),
            ([], true) => Self::Nothing("Nothing happens: call a tool.".to_owned()),
            ([call], _) => command_of(call).map_or_else(Self::Nothing, Self::Command),
            (_, _) => Self::Nothing("Nothing was done: call one tool at a time.".to_owned()),
        }
    }
}

impl Course {
    /// The beginning, at which `text` is shown.
    pub(crate) fn begin(text: &str) -> Self {
        let state_key = next_key("", "", text);
        Self { state_key, num_commands: 0, solved: Some(0), is_over: false, is_submitted: false }
    }

    /// What a command has shown, and whether it was one.
    pub(crate) fn shown(&mut self, ran: Ran, limit: Duration) -> (String, bool) {
        match ran {
            Ran::Ended(result) => (outcome(&result, limit), is_executable(&result)),
            Ran::Refused(reason) => (format!("[could not {reason}]"), false),
            Ran::Lost(reason) => {
                // What is left is judged.
                self.is_over = true;
                (format!("[the sandbox cannot go on: could not {reason}]"), true)
            }
        }
    }

    /// Ends the task: what that shows, and that it was an action.
    pub(crate) fn submit(&mut self) -> (String, bool) {
        (self.is_over, self.is_submitted) = (true, true);
        ("The task was submitted.".to_owned(), true)
    }

    /// The step of an action that was carried out; `is_expected` where the solution goes on with it.
    pub(crate) fn carried_out(
        &mut self,
        action: &str,
        (text, valid): (String, bool),
        is_expected: bool,
        wall_time: Duration,
    ) -> Step {
        self.num_commands += 1;
        // What was no command has changed nothing.
        if is_expected || valid {
            self.solved = self.solved.filter(|_| is_expected).map(|done| done + 1);
        }
        self.state_key = next_key(&self.state_key, action, &text);
        let state_key = self.state_key.clone();
        Step {
            observation: Observation { text, state_key, ..Observation::default() },
            rewards: Vec::new(),
            terminated: self.is_over,
            success: false,
            valid,
            wall_time,
        }
    }

    /// The step of an action that was carried out with a toolset; `is_expected` where the solution goes on with it.
    pub(crate) fn worked(
        &mut self,
        action: &Action,
        worked: Worked,
        is_expected: bool,
        wall_time: Duration,
    ) -> Step {
        let Worked { acted: Acted { results, text, is_valid, submission }, is_lost } = worked;
        self.is_submitted |= submission.is_some();
        self.is_over |= is_lost || self.is_submitted;
        let shown = results.iter().fold(text.clone(), |shown, it| format!("{shown}\n{}", it.text));
        let mut step = self.carried_out(&action.key(), (shown, is_valid), is_expected, wall_time);
        (step.observation.results, step.observation.text) = (results, text);
        step
    }

    /// Goes on with a next task in the same place, behind the step that submitted the one before, where `text` is shown.
    pub(crate) fn go_on(&mut self, step: &mut Step, text: &str) {
        (self.is_over, self.is_submitted) = (false, false);
        self.solved = self.solved.map(|_| 0);
        self.state_key = next_key(&self.state_key, "", text);
        let shown = &mut step.observation;
        if !shown.text.is_empty() {
            shown.text += "\n\n";
        }
        shown.text += text;
        shown.state_key.clone_from(&self.state_key);
        step.terminated = false;
    }

    /// The answer to what was no command.
    pub(crate) fn nothing_done(&mut self, text: &str, calls: &[ToolCall]) -> Step {
        let results = calls.iter().map(|call| ToolResult::error(call, text)).collect::<Vec<_>>();
        self.state_key = next_key(&self.state_key, "", text);
        let text = if results.is_empty() { text.to_owned() } else { String::new() };
        let state_key = self.state_key.clone();
        Step {
            observation: Observation { text, state_key, results, ..Observation::default() },
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid: false,
            wall_time: Duration::ZERO,
        }
    }
}

/// A step whose text is the result of the calls that asked for it.
pub(crate) fn as_results(mut step: Step, calls: &[ToolCall]) -> Step {
    if !calls.is_empty() {
        let text = std::mem::take(&mut step.observation.text);
        step.observation.results.extend(calls.iter().map(|call| ToolResult::new(call, &*text)));
    }
    step
}
