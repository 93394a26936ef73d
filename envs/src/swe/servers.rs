//! Servers of tools that a task brings along in its sandbox, or has elsewhere.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use spar_core::{ToolCall, ToolResult, ToolSpec};
use spar_mcp::{authority, loopback_port};
use spar_sandbox::allow_list::{AllowedHost, Host, Target};
use spar_sandbox::pool::PooledSandbox;
use spar_swe::{McpServer, McpTransport};
use spar_tasks::SweTask;

use super::place::Plan;
use crate::EnvironmentError;
use crate::mcp::{McpOptions, OnFailure, ServerPlace, Within, tool_within};
use crate::terminal::environment::offered;
use crate::tools::{OpenedTool, ToolLimits, Toolbox};

/// Names by which a task's servers find each other in its sandbox.
const OWN_NAMES: [&str; 2] = ["localhost", "main"];
/// Letters of a server's name that stand in messages and before names of tools.
const MOST_LETTERS: usize = 40;

/// The servers of an episode, with their tools beside those of the shell.
pub(super) struct Servers {
    toolbox: Toolbox,
    /// The shell's tools and theirs.
    offered: Arc<[ToolSpec]>,
    /// What the toolbox offered when these were put together.
    own: Arc<[ToolSpec]>,
}

impl Servers {
    /// Starts them in the agent's sandbox, or takes up connections with those that listen there or elsewhere.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] of the first that cannot be had.
    pub(super) async fn start(
        plan: &Plan,
        sandbox: &Arc<PooledSandbox>,
        call: Duration,
    ) -> Result<Self, EnvironmentError> {
        let mut tools = Vec::new();
        for server in &plan.instance().mcp_servers {
            let (options, at) = reached(server, &plan.task)
                .map_err(|reason| EnvironmentError::Toolset { reason })?;
            let within = Within { sandbox: Arc::clone(sandbox), at };
            let label = options.name.clone();
            tools.push(OpenedTool { label, has_prefix: false, tool: tool_within(options, within) });
        }
        let limits = ToolLimits { call_secs: call.as_secs_f64(), ..ToolLimits::default() };
        let mut toolbox = Toolbox::new(tools, limits);
        toolbox.prepare().await?;
        let mut servers = Self { toolbox, offered: Arc::default(), own: Arc::default() };
        servers.look();
        Ok(servers)
    }

    /// The tools of the shell and of the servers.
    pub(super) fn offered(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.offered)
    }

    /// The name under which a server knows the tool that is called, if it is one of theirs.
    pub(super) fn own_name(&self, offered_name: &str) -> Option<String> {
        let number = self.offered.iter().position(|spec| spec.name == offered_name)?;
        let number = number.checked_sub(offered().len())?;
        Some(self.own[number].name.clone())
    }

    /// Carries out a call of one of their tools.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where a server's tools cannot be looked at.
    pub(super) async fn call(
        &mut self,
        call: &ToolCall,
        own_name: String,
    ) -> Result<ToolResult, EnvironmentError> {
        let result = self.toolbox.call(&ToolCall { name: own_name, ..call.clone() }).await?;
        self.look();
        Ok(result)
    }

    pub(super) async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.toolbox.close().await
    }

    /// Puts together what is offered, where that has changed.
    fn look(&mut self) {
        let own = self.toolbox.specs();
        if Arc::ptr_eq(&own, &self.own) && !self.offered.is_empty() {
            return;
        }
        let shell = offered();
        let is_taken = |name: &str, others: &[ToolSpec]| {
            shell.iter().chain(others).any(|spec| spec.name == name)
        };
        let mut named: Vec<ToolSpec> = Vec::new();
        for spec in own.iter() {
            let mut name = spec.name.clone();
            while is_taken(&name, &named) || name != spec.name && is_taken(&name, &own) {
                name = format!("server_{name}");
            }
            named.push(ToolSpec { name, ..spec.clone() });
        }
        self.offered = shell.iter().cloned().chain(named).collect();
        self.own = own;
    }
}

/// Why the servers of a task cannot be offered; empty where they can be.
pub(super) fn problems(task: &SweTask) -> Vec<String> {
    let problem = |server: &McpServer| reached(server, task).err();
    task.instance.mcp_servers.iter().filter_map(problem).collect()
}

/// What an agent is told of the servers where it reaches them by itself, in the words of Harbor's own agents.
pub(super) fn in_words(servers: &[McpServer]) -> String {
    let mut text =
        "\n\nMCP Servers:\nThe following MCP servers are available for this task.\n".to_owned();
    for McpServer { name, transport } in servers {
        let written = match transport {
            McpTransport::Stdio { command, args } => {
                let args = args.join(" ");
                writeln!(text, "- {name}: stdio transport, command: {command} {args}")
            }
            McpTransport::Sse { url, .. } => writeln!(text, "- {name}: sse transport, url: {url}"),
            McpTransport::StreamableHttp { url, .. } => {
                writeln!(text, "- {name}: streamable-http transport, url: {url}")
            }
        };
        written.expect("a text takes all that is written to it");
    }
    text
}

/// How a server is reached, or why it is not.
fn reached(server: &McpServer, task: &SweTask) -> Result<(McpOptions, ServerPlace), String> {
    let instance = &task.instance;
    let name = &server.name;
    let options = McpOptions {
        name: label(name),
        // Whoever works in its sandbox can end it, and a call can break one elsewhere. One that cannot be had in the first place fails the episode all the same.
        on_failure: OnFailure::Tell,
        ..McpOptions::default()
    };
    let (url, headers) = match &server.transport {
        McpTransport::Stdio { command, args } => {
            let mut whole = vec![command.clone()];
            whole.extend(args.iter().cloned());
            let at = ServerPlace::Started {
                user: instance.agent_user.clone(),
                workdir: instance.workdir.clone(),
            };
            return Ok((McpOptions { command: whole, ..options }, at));
        }
        McpTransport::Sse { url, headers } | McpTransport::StreamableHttp { url, headers } => {
            (url, headers)
        }
    };
    if let Some(header) = headers.iter().find(|(_, value)| value.contains("${")) {
        let header = header.0;
        return Err(format!(
            "the server of tools `{name}` has its header `{header}` from a variable of the host, which is not handed on"
        ));
    }
    let by_events = matches!(server.transport, McpTransport::Sse { .. });
    let at = match loopback_port(url, &OWN_NAMES) {
        Some(port) if by_events => ServerPlace::ListensForEvents(port),
        Some(port) => ServerPlace::Listens(port),
        None if is_outside(url, &task.outside_servers) => {
            ServerPlace::Outside { by_events, hosts: task.outside_servers.clone() }
        }
        None => {
            return Err(format!(
                "the server of tools `{name}` is at `{url}`, and only those in the sandbox are reached, by http, and those of hosts that `outside_servers` names"
            ));
        }
    };
    let (url, headers) = (Some(url.clone()), headers.clone());
    Ok((McpOptions { url, headers, ..options }, at))
}

/// Whether a URL leads to one of these hosts. This machine is none of them unless an address of it is named: its names mean the
/// sandbox.
fn is_outside(url: &str, hosts: &[AllowedHost]) -> bool {
    let target = authority(url).and_then(|authority| Target::parse(&authority, None));
    target.is_some_and(|target| {
        let is_own = OWN_NAMES.iter().any(|name| target.host == Host::Name((*name).to_owned()));
        !is_own && hosts.iter().any(|host| host.allows(&target))
    })
}

/// A name as it stands before those of tools.
fn label(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain: String = plain.chars().take(MOST_LETTERS).collect();
    if plain.is_empty() { "server".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spar_swe::Instance;

    use super::*;

    fn http(url: &str, header: &str) -> McpServer {
        let headers = BTreeMap::from([("X".to_owned(), header.to_owned())]);
        let transport = McpTransport::StreamableHttp { url: url.to_owned(), headers };
        McpServer { name: "a b".to_owned(), transport }
    }

    #[test]
    fn servers_in_the_sandbox_are_reached_and_no_others() {
        let task = SweTask::new(Instance::default());
        for (url, port) in [
            ("http://localhost:8000/mcp", 8000),
            ("http://127.0.0.1/mcp", 80),
            ("http://[::1]:5/", 5),
            ("http://0.0.0.0:6", 6),
            ("http://main:7/mcp", 7),
        ] {
            let (options, at) = reached(&http(url, "v"), &task).unwrap();
            assert_eq!((options.name.as_str(), at), ("a_b", ServerPlace::Listens(port)), "{url}");
        }
        for url in ["http://other:1", "https://localhost:1", "http://192.0.2.1", "localhost:1", "x"]
        {
            assert!(reached(&http(url, "v"), &task).is_err(), "{url}");
        }
        let told = reached(&http("http://localhost:1", "Bearer ${TOKEN}"), &task).unwrap_err();
        assert!(told.contains("`X` from a variable of the host"), "{told}");
    }

    #[test]
    fn servers_elsewhere_are_reached_where_their_hosts_are_named() {
        let hosts = ["tools.example.org", "*.example.net:8443", "localhost:1"];
        let outside_servers = hosts.iter().map(|host| host.parse().unwrap()).collect();
        let task = SweTask { outside_servers, ..SweTask::new(Instance::default()) };
        for url in [
            "https://tools.example.org/mcp",
            "http://TOOLS.example.org",
            "https://a.example.net:8443/",
        ] {
            let (options, at) = reached(&http(url, "v"), &task).unwrap();
            let hosts = task.outside_servers.clone();
            assert_eq!(at, ServerPlace::Outside { by_events: false, hosts }, "{url}");
            // Who calls it may be who breaks it.
            assert_eq!((options.url.as_deref(), options.on_failure), (Some(url), OnFailure::Tell));
        }
        for url in [
            "https://tools.example.org:8443/",
            "https://example.org/",
            "https://a.example.net/",
            "https://tools.example.org.evil.example/",
            "https://tools.example.org@evil.example/",
            "ftp://tools.example.org/",
            "https://localhost:1/",
        ] {
            assert!(reached(&http(url, "v"), &task).is_err(), "{url}");
        }
        let url = "http://localhost:1".to_owned();
        let transport = McpTransport::Sse { url, headers: BTreeMap::new() };
        let inside = McpServer { name: "n".to_owned(), transport };
        assert_eq!(reached(&inside, &task).unwrap().1, ServerPlace::ListensForEvents(1));
    }

    #[test]
    fn they_are_told_in_the_words_of_others() {
        let args = vec!["-m".to_owned(), "it".to_owned()];
        let transport = McpTransport::Stdio { command: "python3".to_owned(), args };
        let stdio = McpServer { name: "m".to_owned(), transport };
        assert_eq!(
            in_words(&[stdio, http("http://localhost:1", "v")]),
            "\n\nMCP Servers:\nThe following MCP servers are available for this task.\n\
             - m: stdio transport, command: python3 -m it\n\
             - a b: streamable-http transport, url: http://localhost:1\n"
        );
    }
}
