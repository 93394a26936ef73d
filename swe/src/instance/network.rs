use serde::{Deserialize, Serialize};

/// What can be reached from a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// Nothing.
    #[default]
    None,
    /// These hosts alone: names, `*.` before a name for all below it, addresses, or ranges of addresses.
    Allowlist(Vec<String>),
    /// Everything.
    Full,
}

impl NetworkPolicy {
    pub(crate) fn check(&self, what: &str, problems: &mut Vec<String>) {
        const MAX_HOSTS: usize = 1000;
        if let Self::Allowlist(hosts) = self {
            if hosts.len() > MAX_HOSTS {
                problems.push(format!("{what}: more than {MAX_HOSTS} hosts"));
            }
            for host in hosts {
                if host.is_empty()
                    || host.len() > 253
                    || host.chars().any(|c| c.is_whitespace() || c.is_control())
                {
                    problems
                        .push(format!("{what}: `{}` is no host", crate::error::shortened(host)));
                }
            }
        }
    }
}
