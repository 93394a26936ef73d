//! How a server is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::redaction;
use spar_core::registry::NamedOptions;
use spar_mcp::{McpHttpServer, McpLimits};
use spar_tasks::{ProgramActions, ProgramLimits, ProgramSandbox, ProgramSpec, ProgramTimeouts};

/// Options of the tool `mcp`: a server that is a process (`command`), or one that is reached by a `url`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpOptions {
    /// What the server is called in messages, and before names that other tools have as well. Default `mcp`.
    pub name: String,
    /// The program and its arguments; no shell reads them. A first part with a `/` in it is relative to `folder`. Default
    /// none.
    pub command: Vec<String>,
    /// The folder of the program's files; in a sandbox it is mounted at `/environment` and can only be read. Default absent.
    pub folder: Option<PathBuf>,
    /// Environment variables that are set. Default none.
    pub env: BTreeMap<String, String>,
    /// Names of variables of spar's own that are handed on, where they are set; they are kept out of what is written. Default
    /// none.
    pub pass_env: Vec<String>,
    /// The sandbox that the process runs in; absent: it runs as a program of the user who runs spar. Default absent.
    pub sandbox: Option<McpSandbox>,
    /// Where a server is reached over streamable HTTP. Default absent.
    pub url: Option<String>,
    /// What is sent with every request to the URL, by the header's name; nothing secret belongs here. Default none.
    pub headers: BTreeMap<String, String>,
    /// The same, with the name of a variable of spar's own that has the header's value, which is kept out of what is written.
    /// Default none.
    pub secret_headers: BTreeMap<String, String>,
    /// The tools of the server that are offered. Default absent: all.
    pub tools: Option<Vec<String>>,
    /// Whether `list_resources` and `read_resource` are offered as tools, where the server has resources. Default false.
    pub resources: bool,
    /// Whether `list_prompts` and `get_prompt` are offered as tools, where the server has prompts. Default false.
    pub prompts: bool,
    /// URIs of resources that stand in the first observation, behind what is asked; pictures are media beside it. Default
    /// none.
    pub first_resources: Vec<String>,
    /// The same of prompts: their names, with the arguments of each. Default none.
    pub first_prompts: BTreeMap<String, Map<String, Value>>,
    /// Whether equal calls of a server that was started anew give equal results, so that an episode can be brought to a point
    /// by its calls; where they do not, forking it in its course is refused. Default true.
    pub repeatable: bool,
    /// What it means that the server breaks: `fail` (the episode has failed, and is played anew), or `tell` (the policy is told,
    /// as for servers that their callers can break). Default `fail`.
    pub on_failure: OnFailure,
    /// Seconds from the start to the end of the handshake, 1 to 86400. Default 60.
    pub start_secs: u64,
    /// Servers of this kind at one time, 1 to 4096. Default 64.
    pub servers: usize,
    /// Seconds that an episode waits for one of them, 1 to 86400. Default 600.
    pub wait_secs: u64,
}

/// The sandbox of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpSandbox {
    /// `docker` or `local`. Default `local`.
    pub backend: String,
    /// The image, as `spar sandbox run --image` takes it. Default `default`: the backend's smallest.
    pub image: String,
    /// `none`, `bridge` or `allow:HOST[:PORT],...`. Default `none`.
    pub network: String,
}

/// What it means that a server breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The episode has failed.
    #[default]
    Fail,
    /// The policy is told.
    Tell,
}

impl Default for McpSandbox {
    fn default() -> Self {
        let ProgramSandbox { backend, image, network, .. } = ProgramSandbox::default();
        Self { backend, image, network }
    }
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            name: "mcp".to_owned(),
            command: Vec::new(),
            folder: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            sandbox: None,
            url: None,
            headers: BTreeMap::new(),
            secret_headers: BTreeMap::new(),
            tools: None,
            resources: false,
            prompts: false,
            first_resources: Vec::new(),
            first_prompts: BTreeMap::new(),
            repeatable: true,
            on_failure: OnFailure::Fail,
            start_secs: 60,
            servers: 64,
            wait_secs: 600,
        }
    }
}

impl NamedOptions for McpOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_label = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.name.is_empty() || self.name.len() > 40 || !self.name.chars().all(is_label) {
            let name = &self.name;
            problems.push(format!(
                "name is `{name}`, must be 1 to 40 letters, digits, `_`, `-` or `.`"
            ));
        }
        if self.url.is_some() {
            let of_process = [
                ("command", !self.command.is_empty()),
                ("folder", self.folder.is_some()),
                ("env", !self.env.is_empty()),
                ("pass_env", !self.pass_env.is_empty()),
                ("sandbox", self.sandbox.is_some()),
            ];
            let given = of_process.iter().filter(|(_, is_given)| *is_given);
            problems.extend(
                given.map(|(name, _)| format!("{name} has no effect on a server with a url")),
            );
        } else if !self.headers.is_empty() || !self.secret_headers.is_empty() {
            problems.push("headers and secret_headers have no effect without a url".to_owned());
        }
        for name in self.headers.keys() {
            if self.secret_headers.contains_key(name) {
                problems.push(format!("header `{name}` is in headers and in secret_headers"));
            }
        }
        for (name, value, most) in [
            ("start_secs", self.start_secs, 86_400),
            ("servers", self.servers as u64, 4096),
            ("wait_secs", self.wait_secs, 86_400),
        ] {
            if !(1..=most).contains(&value) {
                problems.push(format!("{name} is {value}, must lie in 1..={most}"));
            }
        }
        if !self.command.is_empty() {
            problems.extend(self.program().problems());
        }
        problems
    }
}

impl McpOptions {
    /// What is missing to reach a server.
    pub(super) fn lack(&self) -> Option<String> {
        let is_reached = self.url.is_some() || !self.command.is_empty();
        let told = "a server of tools needs a `command` or a `url`".to_owned();
        (!is_reached).then_some(told)
    }

    /// The program, where the server is a process.
    pub(super) fn program(&self) -> ProgramSpec {
        ProgramSpec {
            name: self.name.clone(),
            folder: self.folder.clone(),
            command: self.command.clone(),
            workdir: None,
            env: self.env.clone(),
            pass_env: self.pass_env.clone(),
            actions: ProgramActions::Calls,
            whole_answers: false,
            timeouts: ProgramTimeouts { start_secs: self.start_secs, ..Default::default() },
            limits: ProgramLimits { programs: self.servers, ..Default::default() },
            sandbox: self.sandbox.as_ref().map(|sandbox| ProgramSandbox {
                backend: sandbox.backend.clone(),
                image: sandbox.image.clone(),
                network: sandbox.network.clone(),
                ..ProgramSandbox::default()
            }),
        }
    }

    /// Where it is reached over HTTP, with the secrets that go into its headers; an error names a variable that is not set.
    pub(super) fn http(&self, url: &str) -> Result<McpHttpServer, String> {
        let mut headers = self.headers.clone();
        for (header, variable) in &self.secret_headers {
            let value = std::env::var(variable);
            let value = value
                .map_err(|_| format!("variable `{variable}` of header `{header}` is not set"))?;
            if let Err(error) = redaction::keep(variable, &value) {
                tracing::warn!(%error, "the value of a header is not looked for");
            }
            headers.insert(header.clone(), value);
        }
        Ok(McpHttpServer { url: url.to_owned(), headers, socket: None, addresses: None })
    }

    /// The limits of the connection.
    pub(super) fn limits(&self) -> McpLimits {
        McpLimits { start: Duration::from_secs(self.start_secs), ..McpLimits::default() }
    }
}
