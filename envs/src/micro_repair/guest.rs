//! Programs under test, each time in a sandbox in which nothing has run.

use std::time::Duration;

use serde_json::{Value, json};
use spar_sandbox::interpreter::Language;
use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{
    Determinism, ExecEnd, ExecRequest, ExecResult, Image, Sandbox, SandboxError, SandboxSpec,
};

use crate::SandboxPhase::{Close, Create, Step};
use crate::terminal::machine::own_fault;
use crate::{EnvironmentError, SandboxPhase, Sandboxes};

/// How long all tests of a run may take; they take some milliseconds.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// What is kept of what a program's tests give.
const OUTPUT_BYTES: usize = 64 << 10;
const MEMORY_BYTES: u64 = 128 << 20;
const DISK_BYTES: u64 = 1 << 20;
/// The longest name of an exception.
const LONGEST_NAME: usize = 40;

const PYTHON: &str = include_str!("runner.py");
const JAVASCRIPT: &str = include_str!("runner.js");

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// It gave a value, as plain data.
    Gave(Value),
    /// It raised an exception of this name.
    Raised(String),
    /// It did not come to an end.
    Nothing(&'static str),
}

/// Calls a function of a program with each of `arguments`.
///
/// Only arguments go in, and only values come out, which are compared by who calls this: whatever the program does, it can give
/// nothing but values. What it writes is lost.
///
/// # Errors
///
/// [`EnvironmentError`] where a sandbox could not do its part, by no doing of the program.
pub(super) async fn outcomes(
    sandboxes: &Sandboxes,
    language: Language,
    program: &str,
    function: &str,
    arguments: &[&[Value]],
) -> Result<Vec<Outcome>, EnvironmentError> {
    let given = json!({ "program": program, "function": function, "arguments": arguments });
    let backend = sandboxes.pool.backend().name();
    let request = request(language, backend, &given.to_string());
    let spec = spec(sandboxes, language);
    sandboxes.warm_up(&spec);
    let sandbox = sandboxes.pool.acquire(&spec).await.map_err(at(Create))?;
    let ran = sandbox.exec(&request).await;
    let found = match ran {
        Ok(ran) => read(&ran, arguments.len()),
        Err(error) => {
            lost(&sandbox, sandboxes, error).await?;
            vec![Outcome::Nothing("ends its sandbox"); arguments.len()]
        }
    };
    sandbox.close().await.map_err(at(Close))?;
    Ok(found)
}

async fn lost(
    sandbox: &PooledSandbox,
    sandboxes: &Sandboxes,
    error: SandboxError,
) -> Result<(), EnvironmentError> {
    own_fault(sandbox, &sandboxes.pool, Step, error).await.map(drop)
}

fn request(language: Language, backend: &str, given: &str) -> ExecRequest {
    let is_guest = backend == "wasm";
    let command: Vec<String> = match language {
        Language::Python => {
            let program = (!is_guest).then_some("python3");
            program.into_iter().chain(["-c", PYTHON, given]).map(str::to_owned).collect()
        }
        Language::Javascript => {
            // JSON is JavaScript.
            let script = JAVASCRIPT.replacen("GIVEN", given, 1);
            let program = (!is_guest).then_some("node");
            program.into_iter().chain(["-e", &script]).map(str::to_owned).collect()
        }
    };
    let mut request = ExecRequest::new(command).with_timeout(LIMIT);
    request.output_limit_bytes = OUTPUT_BYTES;
    request
}

fn spec(sandboxes: &Sandboxes, language: Language) -> SandboxSpec {
    let backend = sandboxes.pool.backend();
    let image = match &sandboxes.image {
        Image::Default => language.image(backend.name()),
        image => image.clone(),
    };
    let mut spec = SandboxSpec::new(image);
    spec.limits.memory_bytes = Some(MEMORY_BYTES);
    if backend.capabilities().disk_limit {
        spec.limits.disk_bytes = Some(DISK_BYTES);
    }
    // The same program gives the same.
    if backend.capabilities().determinism {
        spec.determinism = Some(Determinism { seed: 1, start_secs: 1_700_000_000 });
    }
    spec
}

fn at(phase: SandboxPhase) -> impl Fn(SandboxError) -> EnvironmentError {
    move |source| EnvironmentError::Sandbox { phase, source }
}

/// What was told of each call, a line each; a line that cannot be read is no value.
fn read(ran: &ExecResult, count: usize) -> Vec<Outcome> {
    let missing = match ran.end {
        ExecEnd::TimedOut => "does not end",
        ExecEnd::OutOfMemory => "runs out of memory",
        _ => "ends the program",
    };
    let text = match ran.stdout.elided_bytes() {
        0 => ran.stdout.text(),
        // What is left is not what was written.
        _ => String::new(),
    };
    let mut lines = text.lines();
    let outcome = |line: Option<&str>| {
        let Some(line) = line else { return Outcome::Nothing(missing) };
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(mut told)) if told.len() == 1 => {
                if let Some(value) = told.remove("value") {
                    return Outcome::Gave(value);
                }
                match told.get("raises").and_then(Value::as_str) {
                    Some(name) => {
                        let name = name.chars().filter(char::is_ascii_alphanumeric);
                        Outcome::Raised(name.take(LONGEST_NAME).collect())
                    }
                    None => Outcome::Nothing("gives no value"),
                }
            }
            _ => Outcome::Nothing("gives no value"),
        }
    };
    (0..count).map(|_| outcome(lines.next())).collect()
}
