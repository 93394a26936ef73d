//! Where an engine answers.

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bollard::{API_DEFAULT_VERSION, Docker};

use super::NAME;
use crate::SandboxError;

const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// Seconds after which the client gives up by itself; the callers' deadlines come before.
const CLIENT_TIMEOUT_SECS: u64 = 2 * 3600;

/// The address of an engine: a Unix socket, or TCP with or without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerHost {
    address: String,
    certificates: Option<PathBuf>,
}

impl DockerHost {
    /// The engines that `DOCKER_HOST` names, separated by commas, or else that of the default
    /// socket. With `DOCKER_TLS_VERIFY` set, the certificates lie in `DOCKER_CERT_PATH` (default
    /// `~/.docker`).
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] for an address of a kind that is not known.
    pub fn from_environment() -> Result<Vec<Self>, SandboxError> {
        let named = env::var("DOCKER_HOST").unwrap_or_default();
        let mut hosts: Vec<Self> = named
            .split(',')
            .map(str::trim)
            .filter(|address| !address.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if hosts.is_empty() {
            hosts.push(Self { address: format!("unix://{DEFAULT_SOCKET}"), certificates: None });
        }
        Ok(hosts)
    }

    /// The same with TLS: `folder` holds `ca.pem`, `cert.pem` and `key.pem`.
    #[must_use]
    pub fn with_certificates(mut self, folder: impl Into<PathBuf>) -> Self {
        self.certificates = Some(folder.into());
        self
    }

    /// As it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client; nothing is sent yet.
    pub(super) fn client(&self) -> Result<Docker, SandboxError> {
        let (timeout, version) = (CLIENT_TIMEOUT_SECS, API_DEFAULT_VERSION);
        let address = &self.address;
        let client = if let Some(socket) = address.strip_prefix("unix://") {
            if !Path::new(socket).exists() {
                return Err(self.unavailable(format!("there is no socket {socket}")));
            }
            Docker::connect_with_unix(address, timeout, version)
        } else if let Some(folder) = &self.certificates {
            let file = |name: &str| folder.join(name);
            let (key, cert, ca) = (file("key.pem"), file("cert.pem"), file("ca.pem"));
            Docker::connect_with_ssl(address, &key, &cert, &ca, timeout, version)
        } else {
            Docker::connect_with_http(address, timeout, version)
        };
        client.map_err(|error| self.unavailable(error.to_string()))
    }

    /// That it does not answer, and what to do.
    pub(super) fn unavailable(&self, reason: String) -> SandboxError {
        let local = self.address.starts_with("unix://");
        SandboxError::Unavailable {
            backend: NAME,
            reason: format!("{} does not answer: {reason}", self.address),
            hint: if local {
                "start an engine (docker/start-engine.sh in a checkout), set DOCKER_HOST, or choose another \
                 backend: `spar doctor` tells which work here"
                    .into()
            } else {
                "start the engine on that host, or set DOCKER_HOST to another".into()
            },
        }
    }
}

impl FromStr for DockerHost {
    type Err = SandboxError;

    /// `unix:///path`, a path, `tcp://host:port`, `http://host:port` or `https://host:port`. TLS
    /// is used for the last one, and for `tcp` where `DOCKER_TLS_VERIFY` is set.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let tls = text.starts_with("https://")
            || text.starts_with("tcp://")
                && env::var("DOCKER_TLS_VERIFY").is_ok_and(|value| !value.is_empty());
        let address = if text.starts_with('/') { format!("unix://{text}") } else { text.into() };
        if !["unix://", "tcp://", "http://", "https://"]
            .iter()
            .any(|kind| address.starts_with(kind))
        {
            return Err(SandboxError::Unavailable {
                backend: NAME,
                reason: format!("`{text}` is no address of an engine"),
                hint: "use unix:///path, tcp://host:port or https://host:port".into(),
            });
        }
        Ok(Self { address, certificates: tls.then(certificate_folder) })
    }
}

fn certificate_folder() -> PathBuf {
    match env::var_os("DOCKER_CERT_PATH") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".docker"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_users_write_them() {
        let host: DockerHost = "/run/podman.sock".parse().unwrap();
        assert_eq!((host.address(), &host.certificates), ("unix:///run/podman.sock", &None));
        let host: DockerHost = "tcp://10.0.0.1:2375".parse().unwrap();
        assert_eq!(host.address(), "tcp://10.0.0.1:2375");
        let host: DockerHost = "https://10.0.0.1:2376".parse().unwrap();
        assert!(host.certificates.is_some());
        let error = "ssh://somebody@there".parse::<DockerHost>().unwrap_err();
        assert!(error.hint().unwrap().contains("unix://"), "{error}");
    }

    #[test]
    fn a_socket_that_is_not_there_says_what_to_do() {
        let host: DockerHost = "/nowhere/docker.sock".parse().unwrap();
        let error = host.client().unwrap_err();
        assert!(error.to_string().contains("no socket /nowhere/docker.sock"), "{error}");
        assert!(error.hint().unwrap().contains("start-engine.sh"));
    }
}
