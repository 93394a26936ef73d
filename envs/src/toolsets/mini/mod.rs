//! mini-swe-agent's: a shell that remembers nothing, and a first line of output that submits.

mod options;
mod output;
#[cfg(test)]
mod tests;
pub mod texts;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use minijinja::{Value, context};
use serde_json::{Map, json};
use spar_core::registry::{OptionSet, RowError};
use spar_core::{Action, ToolCall, ToolResult, ToolSpec};
use spar_sandbox::ExecRequest;

use self::options::{Form, MiniOptions};
use self::output::Output;
use super::templates::Templates;
use super::{Acted, Briefing, Halt, ToolSession, Toolset, ToolsetRow, Workplace};

pub(super) const ROW: ToolsetRow = ToolsetRow {
    name: "mini",
    about: "Commands of bash, each in a shell of its own; output that begins with a line of its own submits.",
    source: "mini-swe-agent 2.4.6 and 1.17.5, their agents, environments and configurations for SWE-bench",
    formula: "",
    options: OptionSet::of::<MiniOptions>(),
    open: |given| Ok(Arc::new(Mini::new(given.read()?)?)),
};

const NAME: &str = "mini";
const TOOL: &str = "bash";
const PARAMETER: &str = "command";
/// The first line of an output that submits.
const SENTINEL: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
/// What version 1 takes for it as well.
const OLD_SENTINEL: &str = "MINI_SWE_AGENT_FINAL_OUTPUT";
/// Bytes kept of an output; the middle of what is longer is never seen.
const OUTPUT_LIMIT_BYTES: usize = 16 << 20;
/// Calls of one answer that are carried out.
const MAX_CALLS: usize = 128;

/// The toolset with its options.
#[derive(Debug)]
struct Mini {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: MiniOptions,
    templates: Templates,
}

/// Names of templates.
const REPOSITORY: &str = "instance of a repository";
const GENERAL: &str = "instance";
const OBSERVATION: &str = "observation";
const FORMAT_ERROR: &str = "format_error";
const TIMEOUT: &str = "timeout";

impl Mini {
    fn new(options: MiniOptions) -> Result<Self, RowError> {
        let (mut templates, mut problems) = (Templates::new(), Vec::new());
        let form = options.form;
        let briefing =
            Briefing { task: "task", workdir: "/testbed", is_repository: true, command_secs: 60 };
        let (repository, general) = match &options.instance {
            Some(own) => (own.clone(), own.clone()),
            None => (form.repository().to_owned(), form.general().to_owned()),
        };
        templates.add(REPOSITORY, repository, options.briefed(&briefing), &mut problems);
        templates.add(GENERAL, general, options.briefed(&briefing), &mut problems);
        let own = options.observation.clone();
        let observation = own.unwrap_or_else(|| form.observation().to_owned());
        let output = Output::example();
        templates.add(OBSERVATION, observation, options.observed(&output), &mut problems);
        let own = options.format_error.clone();
        let format_error = own.unwrap_or_else(|| form.format_error().to_owned());
        templates.add(FORMAT_ERROR, format_error, unreadable("error"), &mut problems);
        if form == Form::V1 {
            let own = options.timeout.clone();
            let timeout = own.unwrap_or_else(|| texts::V1_TIMEOUT.to_owned());
            templates.add(TIMEOUT, timeout, timed_out("command", "output"), &mut problems);
        }
        RowError::refuse("toolset", NAME, problems)?;
        Ok(Self { shared: Arc::new(Shared { options, templates }) })
    }
}

impl Toolset for Mini {
    fn tools(&self) -> Arc<[ToolSpec]> {
        static TOOLS: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
        if self.shared.options.form != Form::Calls {
            return Arc::default();
        }
        let tools = || {
            let command = json!({ "type": "string", "description": "The bash command to execute" });
            let schema = json!({ "type": "object", "properties": { "command": command }, "required": ["command"] });
            [ToolSpec::new(TOOL, "Execute a bash command", schema)].into()
        };
        Arc::clone(TOOLS.get_or_init(tools))
    }

    fn command_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.shared.options.command_secs))
    }

    fn opening(&self, briefing: &Briefing<'_>) -> String {
        let name = if briefing.is_repository { REPOSITORY } else { GENERAL };
        self.shared.templates.written(name, self.shared.options.briefed(briefing))
    }

    fn command(&self, command: &str) -> Action {
        if self.shared.options.form != Form::Calls {
            return Action::text(command);
        }
        let arguments = Map::from_iter([(PARAMETER.to_owned(), command.into())]);
        Action::calls(vec![ToolCall::new(TOOL, arguments)])
    }

    fn submit(&self) -> Action {
        self.command(&format!("echo {SENTINEL}"))
    }

    fn begin(&self) -> Box<dyn ToolSession> {
        Box::new(Session(Arc::clone(&self.shared)))
    }
}

/// It remembers nothing.
struct Session(Arc<Shared>);

#[async_trait]
impl ToolSession for Session {
    async fn act(&mut self, action: &Action, place: &mut Workplace<'_>) -> Result<Acted, Halt> {
        let shared = &*self.0;
        let calls = action.tool_calls();
        if shared.options.form != Form::Calls {
            let command = action.said();
            let output = shared.run(command, place).await?;
            return Ok(match shared.options.form.submits(&output) {
                Some(submission) => Acted::said("").submitted(submission),
                None => Acted::said(shared.told(command, &output)),
            });
        }
        let commands = match commands_of(calls) {
            Ok(commands) => commands,
            Err(error) => {
                let told = shared.templates.written(FORMAT_ERROR, unreadable(&error));
                return Ok(Acted::refused(calls, &told));
            }
        };
        let mut results = Vec::with_capacity(calls.len());
        for (call, command) in calls.iter().zip(&commands) {
            let output = shared.run(command, place).await?;
            if let Some(submission) = shared.options.form.submits(&output) {
                // The original carries out nothing behind it, and tells nobody.
                results.extend(calls[results.len()..].iter().map(|it| ToolResult::new(it, "")));
                return Ok(Acted::of(results).submitted(submission));
            }
            results.push(ToolResult::new(call, shared.told(command, &output)));
        }
        Ok(Acted::of(results))
    }

    fn fork(&self) -> Option<Box<dyn ToolSession>> {
        Some(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Shared {
    /// Runs a command in a shell of its own, both streams in one.
    async fn run(&self, command: &str, place: &mut Workplace<'_>) -> Result<Output, Halt> {
        // Bytes that no argument can have.
        if command.contains('\0') {
            return Ok(Output::refused("embedded null byte"));
        }
        let mut words = vec!["sh".to_owned(), "-c".to_owned(), MERGED.to_owned(), "sh".to_owned()];
        words.extend(self.options.interpreter());
        words.push(command.to_owned());
        let mut request = ExecRequest::new(words);
        request.env = self.options.environment();
        request.output_limit_bytes = OUTPUT_LIMIT_BYTES;
        let limit = place.command_limit();
        Ok(Output::of(&place.exec(request).await?, command, limit))
    }

    /// What is shown of an output.
    fn told(&self, command: &str, output: &Output) -> String {
        if self.options.form == Form::V1 && output.is_late() {
            return self.templates.written(TIMEOUT, timed_out(command, &output.text));
        }
        self.templates.written(OBSERVATION, self.options.observed(output))
    }
}

/// Standard error goes where standard output goes, and nothing of that is part of the command.
const MERGED: &str = r#"exec "$@" 2>&1"#;

/// The commands of calls, or what is wrong with the first that has none.
fn commands_of(calls: &[ToolCall]) -> Result<Vec<String>, String> {
    if calls.is_empty() {
        return Err(texts::NO_CALL.to_owned());
    }
    if calls.len() > MAX_CALLS {
        return Err(format!("{} tool calls, there may be {MAX_CALLS}.", calls.len()));
    }
    let command = |call: &ToolCall| {
        let mut error = String::new();
        if call.name != TOOL {
            error += &format!("Unknown tool '{}'.", call.name);
        }
        let command = call.arguments.get(PARAMETER);
        if command.is_none() {
            error += "Missing 'command' argument in bash tool call.";
        }
        match command.and_then(|command| command.as_str()) {
            Some(command) if error.is_empty() => Ok(command.to_owned()),
            // The original fails in the middle of its work.
            None if error.is_empty() => Err("The 'command' argument is no string.".to_owned()),
            _ => Err(error),
        }
    };
    calls.iter().map(command).collect()
}

/// What the template of format errors is given.
fn unreadable(error: &str) -> Value {
    context! { error, actions => Vec::<String>::new(), has_tool_calls => true }
}

/// What version 1's template of commands that took too long is given.
fn timed_out(command: &str, output: &str) -> Value {
    context! { action => context! { action => command }, output }
}
