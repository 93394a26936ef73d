use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A command that tells whether a sandbox is ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// The command: 0 means ready.
    pub command: String,
    /// Seconds between attempts.
    pub interval_secs: f64,
    /// Seconds of one attempt.
    pub timeout_secs: f64,
    /// Seconds after the start in which failures do not count.
    pub start_period_secs: f64,
    /// Seconds between attempts meanwhile.
    pub start_interval_secs: f64,
    /// Failures in a row after which it is not ready.
    pub retries: u32,
}

impl HealthCheck {
    pub(crate) fn check(&self, what: &str, problems: &mut Vec<String>) {
        let times = [
            self.interval_secs,
            self.timeout_secs,
            self.start_period_secs,
            self.start_interval_secs,
        ];
        if times.iter().any(|secs| !(secs.is_finite() && (0.0..=86_400.0).contains(secs))) {
            problems.push(format!(
                "{what}: a time of the health check is negative or longer than a day"
            ));
        }
    }
}

/// A server of tools that an agent is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How a server of tools is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum McpTransport {
    /// By a command in the sandbox, over its input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// By server-sent events.
    Sse {
        /// Where, as seen from the sandbox.
        url: String,
        /// Headers; `${NAME}` in a value stands for a variable of the host.
        headers: BTreeMap<String, String>,
    },
    /// By HTTP with streams.
    StreamableHttp {
        /// Where, as seen from the sandbox.
        url: String,
        /// Headers; `${NAME}` in a value stands for a variable of the host.
        headers: BTreeMap<String, String>,
    },
}

impl McpServer {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        let is_missing = match &self.transport {
            McpTransport::Stdio { command, .. } => command.is_empty(),
            McpTransport::Sse { url, .. } | McpTransport::StreamableHttp { url, .. } => {
                url.is_empty()
            }
        };
        if is_missing {
            problems.push(format!(
                "the server of tools `{}` has neither a command nor an address",
                self.name
            ));
        }
    }
}

/// What is carried out of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Artifact {
    /// Where it lies in the sandbox.
    pub source: String,
    /// Where it is put, below the folder of artifacts. Absent: its own path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Patterns of what is left out, as `tar --exclude` takes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

impl Artifact {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        let is_whole = self.source.split('/').all(|part| matches!(part, "" | "."));
        if is_whole || self.source.contains('\0') {
            problems.push(format!(
                "the artifact `{}` is no path below `/`",
                crate::error::shortened(&self.source)
            ));
        }
        let parts = |path: &str| path.split('/').any(|part| part == "..");
        if parts(&self.source) || self.destination.as_deref().is_some_and(parts) {
            problems.push(format!(
                "the artifact `{}` has `..` in its path",
                crate::error::shortened(&self.source)
            ));
        }
    }
}

/// A command that runs after the agent and before artifacts are carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectHook {
    /// The command.
    pub command: String,
    /// Its seconds.
    pub timeout_secs: f64,
    /// The user it runs as. Absent: the image's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}
