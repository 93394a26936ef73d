//! The tools of one server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use spar_core::registry::{OptionSet, Row};
use spar_core::{ToolCall, ToolSpec};
use spar_mcp::{CallFailure, McpError, McpOutput, Offered};
use tokio::time::{Instant, timeout};

use super::servers::{Connection, ServerKind};
use super::within::Within;
use super::{McpOptions, OnFailure};
use crate::EnvironmentError;
use crate::tools::{
    NamedTool, Tool, ToolError, ToolOutput, ToolPlace, ToolRow, read_arguments, spec_of, too_slow,
};

pub(crate) const ROW: ToolRow = Row {
    name: "mcp",
    about: "The tools of a server that speaks the Model Context Protocol: a process, in a sandbox or not, or a URL.",
    source: "Model Context Protocol, 2025-06-18, modelcontextprotocol.io",
    formula: "",
    options: OptionSet::of::<McpOptions>(),
    open: NamedTool {
        needs_sandbox: false,
        specs: Vec::new,
        open: |given, place| Ok(Box::new(McpTool::open(given.read()?, place)?)),
    },
};

/// Lists what the server has to read.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListResources {}

/// Reads something that the server has.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReadResource {
    /// Its URI, as it is listed.
    uri: String,
}

/// Lists the prompts that the server has.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListPrompts {}

/// Makes one of the server's prompts.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetPrompt {
    /// Its name, as it is listed.
    name: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
}

const LIST_RESOURCES: &str = "list_resources";
const READ_RESOURCE: &str = "read_resource";
const LIST_PROMPTS: &str = "list_prompts";
const GET_PROMPT: &str = "get_prompt";

/// The tools of one server, which is started when the episode is prepared.
struct McpTool {
    kind: Arc<ServerKind>,
    connection: Option<Connection>,
    specs: Arc<[ToolSpec]>,
    /// How many of them are the server's own, which come first.
    num_own: usize,
    /// What the policy is told of a server that is no more.
    gone: Option<String>,
    /// Whether anything was called.
    was_used: bool,
}

/// The tools of a server in a sandbox that the episode has anyway.
pub(crate) fn tool_within(options: McpOptions, within: Within) -> Box<dyn Tool> {
    Box::new(McpTool::of(Arc::new(ServerKind::within(options, within))))
}

impl McpTool {
    fn open(options: McpOptions, place: &ToolPlace<'_>) -> Result<Self, EnvironmentError> {
        if let Some(detail) = options.lack() {
            let (task, environment) = (place.task.to_owned(), "mcp");
            return Err(EnvironmentError::Parameters { task, environment, detail });
        }
        Ok(Self::of(place.resources.servers.kind(&options)))
    }

    fn of(kind: Arc<ServerKind>) -> Self {
        Self {
            kind,
            connection: None,
            specs: Arc::default(),
            num_own: 0,
            gone: None,
            was_used: false,
        }
    }

    /// What a server offers now, and how many of that are its own tools, which come first.
    async fn look(
        options: &McpOptions,
        connection: &mut Connection,
    ) -> Result<(Arc<[ToolSpec]>, usize), EnvironmentError> {
        let mut specs = match connection.client.tools().await {
            Ok(specs) => specs,
            Err(error) => return Err(connection.explain(error).await),
        };
        if let Some(wanted) = &options.tools {
            for name in wanted {
                if !specs.iter().any(|spec| spec.name == *name) {
                    let known: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
                    let detail = format!("it has no tool `{name}`, only {}", known.join(", "));
                    let server = options.name.clone();
                    return Err(EnvironmentError::NoServer { server, detail });
                }
            }
            specs.retain(|spec| wanted.contains(&spec.name));
        }
        // Those that the server has under a name of these are its own.
        let mut added = Vec::new();
        if options.resources && connection.client.has_resources() {
            added.push(spec_of::<ListResources>(LIST_RESOURCES));
            added.push(spec_of::<ReadResource>(READ_RESOURCE));
        }
        if options.prompts && connection.client.has_prompts() {
            added.push(spec_of::<ListPrompts>(LIST_PROMPTS));
            added.push(spec_of::<GetPrompt>(GET_PROMPT));
        }
        added.retain(|spec| !specs.iter().any(|own| own.name == spec.name));
        let num_own = specs.len();
        specs.append(&mut added);
        Ok((specs.into(), num_own))
    }

    /// Reads what the server has beside its tools.
    async fn call_added(
        connection: &Connection,
        specs: &[ToolSpec],
        call: &ToolCall,
        limit: Duration,
    ) -> Result<McpOutput, CallFailure> {
        let spec = specs.iter().find(|spec| spec.name == call.name).expect("it was looked for");
        let told = |text: String| CallFailure::from_text(text);
        let client = &connection.client;
        match &*call.name {
            LIST_RESOURCES => {
                let ListResources {} = read_arguments(spec, call).map_err(told)?;
                Ok(listed(&client.resources(limit).await?))
            }
            READ_RESOURCE => {
                let ReadResource { uri } = read_arguments(spec, call).map_err(told)?;
                client.read_resource(&uri, limit).await
            }
            LIST_PROMPTS => {
                let ListPrompts {} = read_arguments(spec, call).map_err(told)?;
                Ok(listed(&client.prompts(limit).await?))
            }
            _ => {
                let GetPrompt { name, arguments } = read_arguments(spec, call).map_err(told)?;
                client.prompt(&name, arguments, limit).await
            }
        }
    }

    /// Adds to what is shown first.
    async fn show(
        &mut self,
        shown: &mut ToolOutput,
        what: &str,
        read: Result<McpOutput, CallFailure>,
    ) -> Result<(), EnvironmentError> {
        let McpOutput { text, media, .. } = match read {
            Ok(output) => output,
            Err(CallFailure::Server(error)) => {
                return Err(match &mut self.connection {
                    Some(connection) => connection.explain(error).await,
                    None => error.into(),
                });
            }
            Err(told) => {
                let server = self.kind.options.name.clone();
                let detail = format!("it does not show {what}: {told}");
                return Err(EnvironmentError::NoServer { server, detail });
            }
        };
        if !shown.text.is_empty() && !text.is_empty() {
            shown.text.push_str("\n\n");
        }
        shown.text.push_str(&text);
        shown.media.extend(media);
        Ok(())
    }

    /// What it means that the server broke.
    async fn broke(&mut self, error: McpError) -> ToolError {
        let Some(mut connection) = self.connection.take() else {
            return ToolError::Failed(error.into());
        };
        let is_final = error.is_final();
        let error = connection.explain(error).await;
        match self.kind.options.on_failure {
            OnFailure::Fail => {
                connection.close().await;
                ToolError::Failed(error)
            }
            OnFailure::Tell => {
                let told = format!("This came to nothing: {}.", crate::validate::chain(&error));
                if is_final {
                    connection.close().await;
                    self.gone = Some(format!("The server `{}` is gone.", self.kind.options.name));
                } else {
                    self.connection = Some(connection);
                }
                ToolError::Told(told)
            }
        }
    }
}

fn listed(offered: &[Offered]) -> McpOutput {
    let line = |it: &Offered| {
        let arguments = it.arguments.join(", ");
        let arguments = if arguments.is_empty() { arguments } else { format!("({arguments})") };
        let about = if it.about.is_empty() { String::new() } else { format!(": {}", it.about) };
        format!("{}{arguments}{about}", it.key)
    };
    let lines: Vec<_> = offered.iter().map(line).collect();
    let text = if lines.is_empty() { "There are none.".to_owned() } else { lines.join("\n") };
    McpOutput { text, ..McpOutput::default() }
}

#[async_trait]
impl Tool for McpTool {
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        if self.connection.is_none() && self.gone.is_none() {
            let mut connection = self.kind.connect().await?;
            (self.specs, self.num_own) = Self::look(&self.kind.options, &mut connection).await?;
            self.connection = Some(connection);
        }
        Ok(())
    }

    fn shows_first(&self) -> bool {
        let McpOptions { first_resources, first_prompts, .. } = &self.kind.options;
        !(first_resources.is_empty() && first_prompts.is_empty())
    }

    async fn first(&mut self) -> Result<ToolOutput, EnvironmentError> {
        self.prepare().await?;
        let kind = Arc::clone(&self.kind);
        let mut shown = ToolOutput::default();
        let limit = kind.options.limits().request;
        for uri in &kind.options.first_resources {
            let connection = self.connection.as_ref().expect("it was prepared");
            let read = connection.client.read_resource(uri, limit).await;
            self.show(&mut shown, &format!("resource `{uri}`"), read).await?;
        }
        for (name, arguments) in &kind.options.first_prompts {
            let connection = self.connection.as_ref().expect("it was prepared");
            let read = connection.client.prompt(name, arguments.clone(), limit).await;
            self.show(&mut shown, &format!("prompt `{name}`"), read).await?;
        }
        Ok(shown)
    }

    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError> {
        self.prepare().await?;
        if let Some(gone) = &self.gone {
            return Err(ToolError::Told(gone.clone()));
        }
        self.was_used = true;
        let started = Instant::now();
        let added = &self.specs[self.num_own..];
        let is_added = added.iter().any(|spec| spec.name == call.name);
        let connection = self.connection.as_mut().expect("it was prepared");
        let called = match is_added {
            true => Self::call_added(connection, &self.specs, call, limit).await,
            false => connection.client.call(&call.name, call.arguments.clone(), limit).await,
        };
        if called.is_ok() && connection.client.take_other_tools() {
            let options = &self.kind.options;
            (self.specs, self.num_own) = match options.on_failure {
                OnFailure::Fail => Self::look(options, connection).await?,
                // Whoever calls it may have broken it: then what was known of it stays, and its next call tells.
                OnFailure::Tell => {
                    let left = limit.saturating_sub(started.elapsed());
                    match timeout(left, Self::look(options, connection)).await {
                        Ok(Ok(found)) => found,
                        Ok(Err(_)) | Err(_) => (Arc::clone(&self.specs), self.num_own),
                    }
                }
            };
        }
        match called {
            Ok(McpOutput { text, media, .. }) => Ok(ToolOutput { text, media }),
            Err(CallFailure::Told { text }) => Err(ToolError::Told(text)),
            Err(CallFailure::Late { limit }) => Err(too_slow(&call.name, limit)),
            Err(CallFailure::Server(error)) => Err(self.broke(error).await),
            Err(other) => Err(ToolError::Told(other.to_string())),
        }
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Tool>>, EnvironmentError> {
        if !self.was_used {
            return Ok(Some(Box::new(Self::of(Arc::clone(&self.kind)))));
        }
        match self.kind.options.repeatable {
            // Its calls bring another server there.
            true => Ok(None),
            false => Err(EnvironmentError::NotForkable {
                detail: format!("server `{}` is not `repeatable`", self.kind.options.name),
            }),
        }
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
        Ok(())
    }
}
