//! Interpreters whose variables last as long as the episode.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Given, NamedOptions, OptionSet, Row};
use spar_core::{ToolCall, ToolSpec};
use spar_sandbox::interpreter::Language;
use spar_tasks::CodeInterpreter;
use tokio::sync::Mutex;

use super::{NamedTool, Tool, ToolError, ToolOutput, ToolPlace, ToolRow, read_arguments, spec_of};
use crate::aside::aside;
use crate::code::{Machine, Ran};
use crate::{EnvironmentError, Sandboxes};

pub(super) const PYTHON: ToolRow = Row {
    name: "python",
    about: "Runs Python in a sandbox, in an interpreter whose variables last as long as the episode.",
    source: "own, after the code interpreter of ReTool, arXiv 2504.11536",
    formula: "",
    options: OptionSet::of::<InterpreterToolOptions>(),
    open: NamedTool {
        needs_sandbox: true,
        specs: || vec![spec(Language::Python)],
        open: |given, place| open(Language::Python, given, place),
    },
};

pub(super) const JAVASCRIPT: ToolRow = Row {
    name: "javascript",
    about: "Runs JavaScript in a sandbox, in an interpreter whose variables last as long as the episode.",
    source: "own, after the code interpreter of ReTool, arXiv 2504.11536",
    formula: "",
    options: OptionSet::of::<InterpreterToolOptions>(),
    open: NamedTool {
        needs_sandbox: true,
        specs: || vec![spec(Language::Javascript)],
        open: |given, place| open(Language::Javascript, given, place),
    },
};

/// Options of the tools `python` and `javascript`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct InterpreterToolOptions {
    /// Seconds of a call; 1 to 3,600. Default 10.
    cell_secs: u64,
    /// Bytes of a result, beyond which its middle is left out; at least 64. Default 4,096.
    output_limit_bytes: usize,
    /// Bytes of memory, at least 64 MiB. Default 512 MiB.
    memory_bytes: u64,
    /// The image of its sandbox. Default absent: the backend's own for the language.
    image: Option<String>,
    /// Packages of PyPI or npm that set-up installs; not with backend `wasm`. Default none.
    packages: Vec<String>,
}

impl Default for InterpreterToolOptions {
    fn default() -> Self {
        let CodeInterpreter {
            cell_secs, output_limit_bytes, memory_bytes, image, packages, ..
        } = CodeInterpreter::default();
        Self { cell_secs, output_limit_bytes, memory_bytes, image, packages }
    }
}

impl InterpreterToolOptions {
    fn interpreter(self, language: Language) -> CodeInterpreter {
        let Self { cell_secs, output_limit_bytes, memory_bytes, image, packages } = self;
        let default = CodeInterpreter::default();
        CodeInterpreter {
            language,
            cell_secs,
            output_limit_bytes,
            memory_bytes,
            image,
            packages,
            ..default
        }
    }
}

impl NamedOptions for InterpreterToolOptions {
    fn problems(&self) -> Vec<String> {
        self.clone().interpreter(Language::Python).problems()
    }
}

/// Runs Python code in an interpreter that keeps its variables, and tells what it writes and the value of a last expression.
#[derive(Debug, Deserialize, JsonSchema)]
struct PythonCode {
    /// The code, of one line or many.
    code: String,
}

/// Runs JavaScript code in an interpreter that keeps its variables, and tells what it writes and the value of a last expression.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is there for its schema: calls of both are read as `PythonCode`")]
struct JavascriptCode {
    /// The code, of one line or many.
    code: String,
}

fn spec(language: Language) -> ToolSpec {
    match language {
        Language::Python => spec_of::<PythonCode>(language.name()),
        Language::Javascript => spec_of::<JavascriptCode>(language.name()),
    }
}

fn open(
    language: Language,
    given: &Given<'_>,
    place: &ToolPlace<'_>,
) -> Result<Box<dyn Tool>, EnvironmentError> {
    let options: InterpreterToolOptions = given.read()?;
    let sandboxes = place.resources.sandboxes(language.name())?.clone();
    let interpreter = Arc::new(options.interpreter(language));
    let specs = [spec(language)].into();
    Ok(Box::new(InterpreterTool { specs, sandboxes, interpreter, machine: None, has_run: false }))
}

/// An interpreter in a sandbox of its own.
struct InterpreterTool {
    specs: Arc<[ToolSpec]>,
    sandboxes: Sandboxes,
    interpreter: Arc<CodeInterpreter>,
    /// Absent until something runs in it, and behind its loss.
    machine: Option<Arc<Mutex<Machine>>>,
    has_run: bool,
}

impl InterpreterTool {
    async fn machine(&mut self) -> Result<Arc<Mutex<Machine>>, EnvironmentError> {
        if let Some(machine) = &self.machine {
            return Ok(Arc::clone(machine));
        }
        let (sandboxes, asked) = (self.sandboxes.clone(), Arc::clone(&self.interpreter));
        let machine = aside(async move { Machine::begin(&sandboxes, &asked).await }).await?;
        Ok(Arc::clone(self.machine.insert(Arc::new(Mutex::new(machine)))))
    }
}

#[async_trait]
impl Tool for InterpreterTool {
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.machine().await.map(drop)
    }

    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError> {
        let PythonCode { code } = read_arguments(&self.specs[0], call)?;
        let machine = self.machine().await?;
        self.has_run = true;
        let ran = aside(async move { machine.lock().await.run_within(&code, limit).await }).await?;
        Ok(match ran {
            Ran::Ended(cell) => cell.text.into(),
            Ran::Lost(_) => {
                self.machine = None;
                ran.told().into()
            }
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Tool>>, EnvironmentError> {
        let machine = match &self.machine {
            Some(machine) if self.has_run => {
                let (machine, asked) = (Arc::clone(machine), Arc::clone(&self.interpreter));
                let forked = aside(async move { machine.lock().await.fork(&asked).await }).await?;
                let Some(forked) = forked else { return Ok(None) };
                Some(Arc::new(Mutex::new(forked)))
            }
            _ => None,
        };
        Ok(Some(Box::new(Self {
            specs: Arc::clone(&self.specs),
            sandboxes: self.sandboxes.clone(),
            interpreter: Arc::clone(&self.interpreter),
            machine,
            has_run: self.has_run,
        })))
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let Some(machine) = self.machine.take() else { return Ok(()) };
        aside(async move { machine.lock().await.close().await }).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use spar_core::Seed;
    use spar_sandbox::backends::fake::FakeBackend;
    use spar_sandbox::pool::{PoolConfig, SandboxPool};

    use super::super::ToolChoice;
    use super::*;
    use crate::Resources;

    #[tokio::test]
    async fn code_runs_in_a_sandbox_of_its_own_and_odd_calls_are_told() {
        let pool = SandboxPool::new(Arc::new(FakeBackend::new()), PoolConfig::default()).unwrap();
        let resources = Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)));
        let place = ToolPlace { task: "t", seed: Seed::from_u64(1), resources: &resources };
        let mut tool = ToolChoice::named("python").open(&place).unwrap();
        let call = |arguments: serde_json::Value| {
            ToolCall::new("python", arguments.as_object().cloned().unwrap_or_default())
        };
        let limit = Duration::from_secs(5);
        // What stands for an interpreter in memory runs shell commands.
        let told = tool.call(&call(json!({ "code": "echo 5" })), limit).await.unwrap();
        assert_eq!(told.text, "5");
        for odd in [json!({}), json!({ "code": 1 }), json!({ "code": "", "x": 1 })] {
            let error = tool.call(&call(odd), limit).await.unwrap_err();
            assert!(matches!(error, ToolError::Told(_)), "{error}");
        }
        // Its state cannot be copied here, so that the calls are played again.
        assert!(tool.fork().await.unwrap().is_none());
        tool.close().await.unwrap();
        let without = Resources::default();
        let place = ToolPlace { task: "t", seed: Seed::from_u64(1), resources: &without };
        assert!(ToolChoice::named("javascript").open(&place).is_err());
        assert_eq!(Map::new(), call(json!(null)).arguments);
    }
}
