//! What registries want to know before they give an image: the user's own `docker login`.
//!
//! Read from `config.json` in `DOCKER_CONFIG` (default `~/.docker`): `auths` with names and passwords or
//! identity tokens, and the programs that `credHelpers` and `credsStore` name.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{env, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;

use crate::SandboxError;

/// Under which `config.json` keeps what is for Docker's own registry.
const DOCKER_IO: &str = "https://index.docker.io/v1/";
/// How long a helper may take; some ask a service.
const HELPER: Duration = Duration::from_secs(30);
/// What helpers say where they know nothing.
const NOT_FOUND: &str = "credentials not found";
/// The name that goes with an identity token.
const TOKEN_USER: &str = "<token>";

/// The part of `config.json` that is about registries.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    auths: BTreeMap<String, Entry>,
    #[serde(rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// `name:password` in base64.
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// What a helper answers.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "Username")]
    username: String,
    #[serde(rename = "Secret")]
    secret: String,
}

/// For the registry of an image; absent where the user is not logged in there.
///
/// # Errors
///
/// [`SandboxError::Host`] for a configuration that cannot be read, [`SandboxError::Backend`] for a
/// helper that fails.
pub(super) async fn of_reference(
    reference: &str,
) -> Result<Option<DockerCredentials>, SandboxError> {
    let config = Config::read()?;
    config.look_up(registry(reference)).await
}

/// For all registries that the configuration names, for a build that may need any.
///
/// # Errors
///
/// As [`of_reference`].
pub(super) async fn all() -> Result<HashMap<String, DockerCredentials>, SandboxError> {
    let config = Config::read()?;
    let mut all = HashMap::new();
    for key in config.auths.keys().chain(config.helpers.keys()) {
        if let Some(credentials) = config.look_up(host(key)).await? {
            all.insert(key.clone(), credentials);
        }
    }
    Ok(all)
}

/// The registry that a reference names, as the distribution reads it: a first part with a dot, a
/// colon or the name `localhost`.
fn registry(reference: &str) -> &str {
    match reference.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => host(first),
        _ => host(DOCKER_IO),
    }
}

/// A key of the configuration without the scheme and path that older versions wrote. All names of
/// Docker's own registry are one.
fn host(key: &str) -> &str {
    let rest = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    match rest.split('/').next().unwrap_or(rest) {
        "docker.io" | "registry-1.docker.io" => "index.docker.io",
        host => host,
    }
}

impl Config {
    fn read() -> Result<Self, SandboxError> {
        let folder = env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty());
        let folder = folder.map(PathBuf::from).or_else(|| {
            let home = env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(".docker"))
        });
        let Some(folder) = folder else { return Ok(Self::default()) };
        let path = folder.join("config.json");
        let read = std::fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        match read {
            Ok(config) => Ok(config),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(SandboxError::Host { doing: "read", path, source }),
        }
    }

    async fn look_up(&self, registry: &str) -> Result<Option<DockerCredentials>, SandboxError> {
        let is_it = |key: &str| host(key) == registry;
        if let Some((key, helper)) = self.helpers.iter().find(|(key, _)| is_it(key)) {
            return ask(helper, key).await;
        }
        if let Some((key, entry)) = self.auths.iter().find(|(key, _)| is_it(key))
            && let Some(credentials) = entry.credentials(key)?
        {
            return Ok(Some(credentials));
        }
        match &self.store {
            // It knows registries under the names that `docker login` gave them.
            Some(helper) => {
                let known = self.auths.keys().find(|key| is_it(key)).map(String::as_str);
                let own = if registry == host(DOCKER_IO) { DOCKER_IO } else { registry };
                ask(helper, known.unwrap_or(own)).await
            }
            None => Ok(None),
        }
    }
}

impl Entry {
    fn credentials(&self, key: &str) -> Result<Option<DockerCredentials>, SandboxError> {
        let mut found = DockerCredentials {
            serveraddress: Some(key.to_owned()),
            ..DockerCredentials::default()
        };
        if !self.identitytoken.is_empty() {
            keep(key, &self.identitytoken);
            found.identitytoken = Some(self.identitytoken.clone());
            return Ok(Some(found));
        }
        let (name, password) = if self.auth.is_empty() {
            (self.username.clone(), self.password.clone())
        } else {
            let decoded = STANDARD.decode(self.auth.trim()).ok();
            let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
            let pair = text.as_deref().and_then(|text| text.split_once(':'));
            let Some((name, password)) = pair else {
                return Err(failed(
                    key,
                    io::Error::new(
                        io::ErrorKind::InvalidData,
                        "`auth` is no name and password in base64",
                    ),
                ));
            };
            (name.to_owned(), password.trim_end_matches('\0').to_owned())
        };
        if name.is_empty() {
            return Ok(None);
        }
        keep(key, &password);
        if !self.auth.is_empty() {
            keep(key, &self.auth);
        }
        (found.username, found.password) = (Some(name), Some(password));
        Ok(Some(found))
    }
}

/// What a registry is told by stands in nothing that is written.
fn keep(registry: &str, secret: &str) {
    if let Err(error) = spar_core::redaction::keep(&format!("registry {registry}"), secret) {
        tracing::info!(%error, "a password is no secret");
    }
}

fn failed(registry: &str, error: io::Error) -> SandboxError {
    SandboxError::Backend {
        doing: format!("find the credentials of registry `{registry}`"),
        source: Box::new(error),
    }
}

/// Asks `docker-credential-HELPER`.
async fn ask(helper: &str, registry: &str) -> Result<Option<DockerCredentials>, SandboxError> {
    let program = format!("docker-credential-{helper}");
    let answered = async {
        let mut child = tokio::process::Command::new(&program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(registry.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let named = |error: io::Error| {
        failed(registry, io::Error::new(error.kind(), format!("`{program}`: {error}")))
    };
    let output = tokio::time::timeout(HELPER, answered)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(named)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if said.contains(NOT_FOUND) {
            return Ok(None);
        }
        return Err(named(io::Error::other(said)));
    }
    let answer: Answer =
        serde_json::from_slice(&output.stdout).map_err(|error| named(error.into()))?;
    keep(registry, &answer.secret);
    let mut found =
        DockerCredentials { serveraddress: Some(registry.to_owned()), ..Default::default() };
    if answer.username == TOKEN_USER {
        found.identitytoken = Some(answer.secret);
    } else {
        (found.username, found.password) = (Some(answer.username), Some(answer.secret));
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_their_registry_as_docker_reads_them() {
        for (reference, expected) in [
            ("busybox", "index.docker.io"),
            ("library/busybox:1.36", "index.docker.io"),
            ("docker.io/library/busybox", "index.docker.io"),
            ("ghcr.io/a/b@sha256:00", "ghcr.io"),
            ("localhost/a", "localhost"),
            ("registry:5000/a/b:c", "registry:5000"),
        ] {
            assert_eq!(registry(reference), expected, "{reference}");
        }
        assert_eq!(host("https://registry.example.org/v1/"), "registry.example.org");
    }

    #[tokio::test]
    async fn what_the_user_logged_in_with_is_found_by_registry() {
        let text = r#"{
            "auths": {
                "https://index.docker.io/v1/": { "auth": "bmFtZTpzZTpjcmV0" },
                "ghcr.io": { "identitytoken": "token" },
                "plain.example.org": { "username": "a", "password": "b" },
                "empty.example.org": {},
                "broken.example.org": { "auth": "bm9jb2xvbg==" }
            },
            "HttpHeaders": { "unknown": "fields are fine" }
        }"#;
        let config: Config = serde_json::from_str(text).unwrap();
        let found = config.look_up("index.docker.io").await.unwrap().unwrap();
        assert_eq!(found.username.as_deref(), Some("name"));
        assert_eq!(found.password.as_deref(), Some("se:cret"));
        assert_eq!(found.serveraddress.as_deref(), Some(DOCKER_IO));
        let found = config.look_up("ghcr.io").await.unwrap().unwrap();
        assert_eq!((found.username, found.identitytoken), (None, Some("token".into())));
        let found = config.look_up("plain.example.org").await.unwrap().unwrap();
        assert_eq!(found.username.as_deref(), Some("a"));
        assert!(config.look_up("empty.example.org").await.unwrap().is_none());
        assert!(config.look_up("other.example.org").await.unwrap().is_none());
        let error = config.look_up("broken.example.org").await.unwrap_err();
        assert!(error.to_string().contains("`broken.example.org`"), "{error}");
    }

    #[tokio::test]
    async fn a_helper_that_is_absent_is_told() {
        let config: Config =
            serde_json::from_str(r#"{ "credHelpers": { "ghcr.io": "spar-absent" } }"#).unwrap();
        let error = config.look_up("ghcr.io").await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("`docker-credential-spar-absent`"), "{source}");
        assert!(config.look_up("index.docker.io").await.unwrap().is_none());
    }
}
