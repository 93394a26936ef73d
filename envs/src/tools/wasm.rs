//! Tools that are a WebAssembly module.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::{NamedOptions, OptionSet, Row};
use spar_core::{ToolCall, ToolSpec};
use spar_sandbox::output::{printable, shortened};
use spar_sandbox::{
    ExecEnd, ExecRequest, ExecResult, Image, Sandbox, SandboxBackend, SandboxError, SandboxSpec,
    registry,
};
use tokio::sync::OnceCell;

use super::tool::too_slow;
use super::{NamedTool, Tool, ToolError, ToolOutput, ToolPlace, ToolRow};
use crate::{EnvironmentError, SandboxPhase};

/// How long a module may take to tell what it offers.
const DESCRIBING: Duration = Duration::from_secs(10);
/// Tools of a module.
const MOST_TOOLS: usize = 256;
/// Bytes that are kept of what a call writes.
const MOST_OUTPUT: usize = 8 << 20;

pub(super) const ROW: ToolRow = Row {
    name: "wasm",
    about: "Tools of a WebAssembly module of the user's own, each call in a fresh instance without a network.",
    source: "own, docs/tools.md, over WASI 0.1",
    formula: "",
    options: OptionSet::of::<WasmOptions>(),
    open: NamedTool {
        needs_sandbox: false,
        specs: Vec::new,
        open: |given, place| Ok(Box::new(WasmTool::open(given.read()?, place)?)),
    },
};

/// Options of the tool `wasm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct WasmOptions {
    /// What it is called in messages, and before names that other tools have as well. Default `wasm`.
    pub name: String,
    /// The module: a `.wasm` or `.wat` file. Default absent, and one has to be named.
    pub module: Option<PathBuf>,
    /// Bytes of memory of one call, at least 6 MiB. Default 256 MiB.
    pub memory_bytes: u64,
    /// WebAssembly instructions of one call, roughly; at least 1. Default absent: only its time is limited.
    pub fuel: Option<u64>,
}

impl Default for WasmOptions {
    fn default() -> Self {
        Self { name: "wasm".to_owned(), module: None, memory_bytes: 256 << 20, fuel: None }
    }
}

impl NamedOptions for WasmOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.memory_bytes < 6 << 20 {
            problems.push(format!("memory_bytes is {}, must be at least 6 MiB", self.memory_bytes));
        }
        if self.fuel == Some(0) {
            problems.push("fuel is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// The tools of a module.
///
/// The module is a program of WASI. Called with the argument `describe` it writes `{"tools": [...]}`, each with `name`,
/// `description` and `parameters`, a JSON schema of an object. Called with `call` and the name of a tool, it reads the
/// arguments as JSON from standard input and writes the result as text; where it ends with another code than 0, what it
/// wrote is an error for the policy to read. Files that it writes are there in the next call: they are its state, which the
/// episode has to itself and a fork copies.
struct WasmTool {
    options: WasmOptions,
    sandbox: Option<Box<dyn Sandbox>>,
    specs: Arc<[ToolSpec]>,
}

/// What a module tells of itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    tools: Vec<ToolSpec>,
}

impl WasmTool {
    fn open(options: WasmOptions, place: &ToolPlace<'_>) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: place.task.to_owned(),
            environment: "toolbox",
            detail,
        };
        match &options.module {
            None => {
                Err(refuse("tool `wasm` needs a `module`: the path of a .wasm file".to_owned()))
            }
            Some(path) if !path.is_file() => {
                Err(refuse(format!("tool `wasm`: there is no module `{}`", path.display())))
            }
            Some(_) => Ok(Self { options, sandbox: None, specs: Arc::default() }),
        }
    }

    /// The backend, which keeps what it has compiled.
    async fn backend() -> Result<Arc<dyn SandboxBackend>, EnvironmentError> {
        static BACKEND: OnceCell<Arc<dyn SandboxBackend>> = OnceCell::const_new();
        let opened = BACKEND.get_or_try_init(async || registry::open("wasm")).await;
        Ok(Arc::clone(opened.map_err(at(SandboxPhase::Create))?))
    }

    async fn create(&self) -> Result<Box<dyn Sandbox>, EnvironmentError> {
        let module = self.options.module.as_deref().unwrap_or_else(|| "".as_ref());
        let mut spec = SandboxSpec::new(Image::Reference(module.to_string_lossy().into_owned()));
        spec.limits.memory_bytes = Some(self.options.memory_bytes);
        spec.limits.fuel = self.options.fuel;
        let backend = Self::backend().await?;
        backend.create(&spec).await.map_err(at(SandboxPhase::Create))
    }

    /// What the module says it offers.
    async fn describe(&self, sandbox: &dyn Sandbox) -> Result<Arc<[ToolSpec]>, EnvironmentError> {
        let request = ExecRequest::new(["describe"]).with_timeout(DESCRIBING);
        let told = sandbox.exec(&request).await.map_err(at(SandboxPhase::SetUp))?;
        let refuse = |detail: String| {
            let words = printable(told.stderr.text().as_bytes());
            let words = if words.is_empty() { words } else { format!("; it says: {words}") };
            let server = self.options.name.clone();
            EnvironmentError::NoServer { server, detail: format!("{detail}{words}") }
        };
        if !told.end.is_success() {
            return Err(refuse(format!("asked to describe itself, its module {}", told.end)));
        }
        let described: Result<Described, _> = serde_json::from_slice(&told.stdout.bytes());
        let Described { tools } =
            described.map_err(|error| refuse(format!("its module describes no tools: {error}")))?;
        if tools.is_empty() || tools.len() > MOST_TOOLS {
            return Err(refuse(format!("its module describes {} tools", tools.len())));
        }
        for tool in &tools {
            tool.validate().map_err(|error| refuse(error.to_string()))?;
        }
        Ok(tools.into())
    }
}

fn at(phase: SandboxPhase) -> impl Fn(SandboxError) -> EnvironmentError {
    move |source| EnvironmentError::Sandbox { phase, source }
}

#[async_trait]
impl Tool for WasmTool {
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        if self.sandbox.is_none() {
            let sandbox = self.create().await?;
            self.specs = self.describe(sandbox.as_ref()).await?;
            self.sandbox = Some(sandbox);
        }
        Ok(())
    }

    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError> {
        self.prepare().await?;
        let sandbox = self.sandbox.as_deref().expect("it was prepared");
        let mut request = ExecRequest::new(["call", call.name.as_str()])
            .with_stdin(Value::Object(call.arguments.clone()).to_string())
            .with_timeout(limit);
        request.output_limit_bytes = MOST_OUTPUT;
        let called = sandbox.exec(&request).await.map_err(at(SandboxPhase::Step))?;
        let ExecResult { end, stdout, stderr, .. } = called;
        let name = &call.name;
        match end {
            ExecEnd::Exited { code: 0 } => Ok(stdout.text().into()),
            ExecEnd::TimedOut => Err(too_slow(name, limit)),
            ExecEnd::Exited { code } => {
                let written = [stdout.text(), stderr.text()];
                let told = written.iter().map(|text| text.trim_end()).find(|it| !it.is_empty());
                Err(ToolError::Told(match told {
                    Some(told) => told.to_owned(),
                    None => format!("`{name}` ended with code {code}."),
                }))
            }
            end => {
                let words = shortened(&printable(stderr.text().as_bytes()), 400);
                Err(ToolError::Told(
                    format!("`{name}` broke: {end}. {words}").trim_end().to_owned(),
                ))
            }
        }
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Tool>>, EnvironmentError> {
        let sandbox = match &self.sandbox {
            Some(sandbox) => Some(sandbox.fork().await.map_err(at(SandboxPhase::Fork))?),
            None => None,
        };
        let (options, specs) = (self.options.clone(), Arc::clone(&self.specs));
        Ok(Some(Box::new(Self { options, sandbox, specs })))
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        match self.sandbox.take() {
            Some(sandbox) => sandbox.close().await.map_err(at(SandboxPhase::Close)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use spar_core::Seed;

    use super::*;
    use crate::Resources;

    /// Two tools: `echo` writes its arguments, `fail` traps.
    const MODULE: &str = r#"(module
        (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 2)
        (data (i32.const 4096) "{\"tools\":[{\"name\":\"echo\",\"description\":\"Says it again.\",\"parameters\":{\"type\":\"object\"}},{\"name\":\"fail\",\"description\":\"Fails.\",\"parameters\":{\"type\":\"object\"}}]}")
        (data (i32.const 8192) "Say something.")
        (func $say (param $from i32) (param $count i32)
            (i32.store (i32.const 0) (local.get $from))
            (i32.store (i32.const 4) (local.get $count))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
        (func (export "_start") (local $verb i32) (local $name i32)
            (drop (call $sizes (i32.const 16) (i32.const 20)))
            (drop (call $args (i32.const 32) (i32.const 512)))
            (local.set $verb (i32.load8_u (i32.load (i32.const 36))))
            (if (i32.eq (local.get $verb) (i32.const 100))
                (then (call $say (i32.const 4096) (i32.const DESCRIBED)) (return)))
            (local.set $name (i32.load8_u (i32.load (i32.const 40))))
            (if (i32.eq (local.get $name) (i32.const 102)) (then (unreachable)))
            (i32.store (i32.const 0) (i32.const 16384))
            (i32.store (i32.const 4) (i32.const 65536))
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
            (if (i32.le_u (i32.load (i32.const 8)) (i32.const 2))
                (then (call $say (i32.const 8192) (i32.const 14)) (call $exit (i32.const 3))))
            (call $say (i32.const 16384) (i32.load (i32.const 8)))))"#;

    #[tokio::test]
    async fn a_module_offers_tools_and_every_call_is_an_instance_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("echo.wat");
        let start = MODULE.find("{\\\"tools").unwrap();
        let described = &MODULE[start..start + MODULE[start..].find("\")").unwrap()];
        let count = described.replace('\\', "").len().to_string();
        fs::write(&path, MODULE.replace("DESCRIBED", &count)).unwrap();
        let resources = Resources::default();
        let place = ToolPlace { task: "test", seed: Seed::from_u64(0), resources: &resources };
        let options = WasmOptions { module: Some(path), ..WasmOptions::default() };
        let mut tool = WasmTool::open(options, &place).unwrap();
        tool.prepare().await.unwrap();
        let names: Vec<_> = tool.specs().iter().map(|spec| spec.name.clone()).collect();
        assert_eq!(names, ["echo", "fail"]);
        let limit = Duration::from_secs(20);
        let call = |name: &str, arguments: Value| {
            ToolCall::new(name, arguments.as_object().unwrap().clone())
        };
        let said = tool.call(&call("echo", json!({ "text": "hé" })), limit).await.unwrap();
        assert_eq!(said.text, r#"{"text":"hé"}"#);
        let told = tool.call(&call("echo", json!({})), limit).await.unwrap_err();
        assert_eq!(told.to_string(), "Say something.");
        let broke = tool.call(&call("fail", json!({})), limit).await.unwrap_err();
        assert!(matches!(broke, ToolError::Told(_)), "{broke}");
        assert!(broke.to_string().starts_with("`fail` broke: trapped."), "{broke}");
        let mut fork = tool.fork().await.unwrap().unwrap();
        tool.close().await.unwrap();
        let said = fork.call(&call("echo", json!({ "text": 1 })), limit).await.unwrap();
        assert_eq!(said.text, r#"{"text":1}"#);
        fork.close().await.unwrap();
    }

    #[test]
    fn a_module_that_is_not_there_is_told_at_once() {
        let resources = Resources::default();
        let place = ToolPlace { task: "test", seed: Seed::from_u64(0), resources: &resources };
        for (module, expected) in
            [(None, "needs a `module`"), (Some("no.wasm"), "there is no module")]
        {
            let options =
                WasmOptions { module: module.map(PathBuf::from), ..WasmOptions::default() };
            let told = WasmTool::open(options, &place).err().unwrap().to_string();
            assert!(told.contains(expected), "{told}");
        }
    }
}
