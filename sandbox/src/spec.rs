//! What a sandbox is made from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::allow_list::{AllowedHost, Host, ServedHosts};
use crate::{CapabilitySet, SandboxError};

/// What a sandbox is made from: an image, limits, and what may be reached from inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSpec {
    /// Where the file system comes from.
    pub image: Image,
    /// What may be used up.
    #[serde(default)]
    pub limits: Limits,
    /// What can be reached. Default nothing.
    #[serde(default)]
    pub network: NetworkPolicy,
    /// Names of the allow-list that this process itself connects to. Default none; not written down with the rest.
    #[serde(skip)]
    pub served: ServedHosts,
    /// Who commands run as, `name`, `uid` or `uid:gid`. Default the image's own user.
    #[serde(default)]
    pub user: Option<String>,
    /// Capabilities of commands that run as the first user, `root`. Default none.
    #[serde(default)]
    pub capabilities: CapabilitySet,
    /// Environment variables of every command, beside those of the image. Nothing of the host's
    /// environment is passed on.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory of commands that name none; it is made where it is absent. Default the
    /// image's own.
    #[serde(default)]
    pub workdir: Option<String>,
    /// Folders of the host that appear inside.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Whether only mounts and `/tmp` can be written. Default false.
    #[serde(default)]
    pub read_only_root: bool,
    /// Shell commands that run once, in turn, before the sandbox is handed out; one that does not
    /// exit with 0 is [`SandboxError::Setup`].
    #[serde(default)]
    pub setup: Vec<String>,
    /// How long each part may take.
    #[serde(default)]
    pub lifetimes: Lifetimes,
    /// Seeded random numbers and a virtual clock. Default absent: those of the host.
    #[serde(default)]
    pub determinism: Option<Determinism>,
}

impl SandboxSpec {
    /// A sandbox from `image` with the default limits and no network.
    pub fn new(image: Image) -> Self {
        Self {
            image,
            limits: Limits::default(),
            network: NetworkPolicy::default(),
            served: ServedHosts::default(),
            user: None,
            capabilities: CapabilitySet::default(),
            env: BTreeMap::new(),
            workdir: None,
            mounts: Vec::new(),
            read_only_root: false,
            setup: Vec::new(),
            lifetimes: Lifetimes::default(),
            determinism: None,
        }
    }

    /// Checks what can be checked without a backend.
    ///
    /// # Errors
    ///
    /// [`SandboxError::InvalidSpec`] with all problems at once.
    pub fn validate(&self) -> Result<(), SandboxError> {
        let mut problems = self.limits.problems();
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                problems.push(format!("`{name:?}` is not a variable that can be set"));
            }
        }
        for path in self.workdir.iter().chain(self.mounts.iter().map(|mount| &mount.guest)) {
            if !path.starts_with('/') || path.contains('\0') || path.split('/').any(|p| p == "..") {
                problems.push(format!("`{path}` is not an absolute path without `..`"));
            }
        }
        if let NetworkPolicy::Allow { hosts, max_bytes } = &self.network {
            if hosts.is_empty() {
                problems.push("the list of allowed hosts is empty: use `none`".into());
            }
            if *max_bytes == Some(0) {
                problems.push("max_bytes must be positive: use `none`".into());
            }
        }
        for name in self.served.names() {
            if Host::parse(name) != Some(Host::Name(name.to_owned())) {
                problems.push(format!("`{name}` is not the name of a host"));
            }
            if !matches!(self.network, NetworkPolicy::Allow { .. }) {
                problems.push(format!("`{name}` is reached by an allow-list alone"));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(SandboxError::InvalidSpec { problems }) }
    }

    /// A hash of everything in it: sandboxes of equal keys are interchangeable when new.
    pub fn key(&self) -> String {
        let mut bytes = serde_json::to_vec(self).expect("a spec has only string keys");
        bytes.extend(self.served.key());
        blake3::hash(&bytes).to_hex()[..16].to_owned()
    }
}

/// Where a sandbox's file system comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// The backend's own smallest image.
    Default,
    /// A name that the backend resolves: for docker an image reference, for wasm a guest
    /// (`python`, `javascript`, `shell`) or the path of a `.wasm` file, for local `host`.
    Reference(String),
    /// A root file system as a tar archive, plain, `.gz` or `.zst` where the backend can.
    RootTar(PathBuf),
    /// Built from a folder with a Dockerfile.
    Build {
        /// The folder that is sent along.
        context: PathBuf,
        /// Path of the Dockerfile inside it. Default `Dockerfile`.
        #[serde(default = "default_dockerfile")]
        dockerfile: String,
    },
}

fn default_dockerfile() -> String {
    "Dockerfile".to_owned()
}

impl FromStr for Image {
    type Err = std::convert::Infallible;

    /// As typed by a user: a folder that holds a Dockerfile, a file ending in `.tar`, `.tar.gz`,
    /// `.tgz` or `.tar.zst`, or else a reference.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        let is_archive =
            [".tar", ".tar.gz", ".tgz", ".tar.zst"].iter().any(|end| text.ends_with(end));
        Ok(if text == "default" {
            Self::Default
        } else if is_archive {
            Self::RootTar(path)
        } else if path.join("Dockerfile").is_file() {
            Self::Build { context: path, dockerfile: default_dockerfile() }
        } else {
            Self::Reference(text.to_owned())
        })
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::Reference(name) => write!(f, "{name}"),
            Self::RootTar(path) => write!(f, "{}", path.display()),
            Self::Build { context, dockerfile } => {
                write!(f, "{}", context.join(dockerfile).display())
            }
        }
    }
}

/// What a sandbox may use up. Absent means: as much as the backend has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Cores, at least 0.01. Default 1.
    pub cpus: Option<f64>,
    /// Memory in bytes, swap included, at least 6 MiB. Default 2 GiB.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time, at least 2; some backends hold
    /// [`Capabilities::pids_reserve`](crate::Capabilities::pids_reserve) more. Default 256.
    pub pids: Option<u32>,
    /// Bytes that may be written to the sandbox's own file system. Default absent.
    pub disk_bytes: Option<u64>,
    /// Bytes of `/dev/shm`, memory that processes share, at least 4096; what lies there counts as memory,
    /// too. Default absent: 64 MiB where there is one.
    pub shm_bytes: Option<u64>,
    /// Files, sockets and pipes that one process may hold open, at least 32. Default absent: the
    /// backend's own, 4096 with docker, with local as many as this process may.
    pub open_files: Option<u64>,
    /// WebAssembly instructions of one exec, roughly. Default absent.
    pub fuel: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpus: Some(1.0),
            memory_bytes: Some(2 << 30),
            pids: Some(256),
            disk_bytes: None,
            shm_bytes: None,
            open_files: None,
            fuel: None,
        }
    }
}

impl Limits {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(cpus) = self.cpus
            && !(0.01..=4096.0).contains(&cpus)
        {
            problems.push(format!("cpus must lie in 0.01..=4096, not {cpus}"));
        }
        if let Some(bytes) = self.memory_bytes
            && bytes < 6 << 20
        {
            problems.push(format!("memory_bytes must be at least 6 MiB, not {bytes}"));
        }
        if let Some(pids) = self.pids
            && pids < 2
        {
            problems.push(format!("pids must be at least 2, not {pids}"));
        }
        if self.disk_bytes == Some(0) {
            problems.push("disk_bytes must be positive; `read_only_root` forbids writing".into());
        }
        if let Some(bytes) = self.shm_bytes
            && !(4096..=1 << 50).contains(&bytes)
        {
            problems.push(format!("shm_bytes must lie in 4096..=2^50, not {bytes}"));
        }
        if let Some(files) = self.open_files
            && !(32..=1 << 20).contains(&files)
        {
            problems.push(format!("open_files must lie in 32..=1048576, not {files}"));
        }
        if self.fuel == Some(0) {
            problems.push("fuel must be positive".into());
        }
        problems
    }
}

/// What a sandbox can reach.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum NetworkPolicy {
    /// Nothing but its own loopback.
    #[default]
    None,
    /// Whatever the host reaches.
    Bridge,
    /// Only these, through a proxy that `HTTP_PROXY` and the like name inside.
    Allow {
        /// `HOST` or `HOST:PORT` each, where `HOST` is a name, `*.name`, or an address, and `PORT`
        /// a number or `*`; without one, 80 and 443. What a name stands for must be a public
        /// address, unless the list names that address itself.
        hosts: Vec<AllowedHost>,
        /// Bytes that may pass in both directions together. Default 16 GiB.
        #[serde(default = "default_max_bytes")]
        max_bytes: Option<u64>,
    },
}

fn default_max_bytes() -> Option<u64> {
    Some(16 << 30)
}

impl NetworkPolicy {
    /// Only `hosts`, with the default of bytes.
    pub fn allow(hosts: impl IntoIterator<Item = AllowedHost>) -> Self {
        Self::Allow { hosts: hosts.into_iter().collect(), max_bytes: default_max_bytes() }
    }
}

impl FromStr for NetworkPolicy {
    type Err = String;

    /// As typed by a user: `none`, `bridge` or `allow:HOST[:PORT],HOST[:PORT],...`. All malformed
    /// entries are told at once.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = match text {
            "none" => return Ok(Self::None),
            "bridge" => return Ok(Self::Bridge),
            _ => text
                .strip_prefix("allow:")
                .ok_or("it is none, bridge, or allow:HOST[:PORT],HOST[:PORT],...")?,
        };
        let (mut hosts, mut problems) = (Vec::new(), Vec::new());
        for entry in entries.split(',') {
            match entry.parse::<AllowedHost>() {
                Ok(host) => hosts.push(host),
                Err(problem) => problems.push(problem.to_string()),
            }
        }
        if problems.is_empty() { Ok(Self::allow(hosts)) } else { Err(problems.join("; ")) }
    }
}

/// A folder of the host that appears inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Path on the host; it must exist.
    pub host: PathBuf,
    /// Absolute path inside.
    pub guest: String,
    /// Whether it can only be read. Default true.
    #[serde(default = "default_read_only")]
    pub read_only: bool,
}

fn default_read_only() -> bool {
    true
}

/// How long each part of a sandbox's life may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lifetimes {
    /// Seconds until it exists, pulling and building its image left out. Default 120.
    pub create_secs: u64,
    /// Seconds for all of [`SandboxSpec::setup`]. Default 600.
    pub setup_secs: u64,
    /// Seconds of an exec that names no deadline. Default 120.
    pub exec_secs: u64,
    /// Seconds that an agent may work in it. Default 3600.
    pub agent_secs: u64,
    /// Seconds that its verifier may take afterwards. Default 1800.
    pub verify_secs: u64,
    /// Seconds that it lives beyond both. Default 300.
    pub margin_secs: u64,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            create_secs: 120,
            setup_secs: 600,
            exec_secs: 120,
            agent_secs: 3600,
            verify_secs: 1800,
            margin_secs: 300,
        }
    }
}

impl Lifetimes {
    /// How long after its creation a sandbox may be removed even if its owner seems alive: set-up,
    /// agent and verifier always fit.
    pub fn time_to_live(&self) -> Duration {
        Duration::from_secs(
            self.create_secs
                .saturating_add(self.setup_secs)
                .saturating_add(self.agent_secs)
                .saturating_add(self.verify_secs)
                .saturating_add(self.margin_secs),
        )
    }

    /// The deadline of an exec that names none.
    pub fn exec(&self) -> Duration {
        Duration::from_secs(self.exec_secs)
    }
}

/// Chance and time inside a sandbox, the same in every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Determinism {
    /// Seed of the random numbers that the guest is given.
    pub seed: u64,
    /// Seconds since 1970 that the guest's clock starts at. Default 0.
    #[serde(default)]
    pub start_secs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_told_at_once() {
        let mut spec = SandboxSpec::new(Image::Default);
        spec.validate().unwrap();
        spec.limits =
            Limits { cpus: Some(0.0), memory_bytes: Some(1), pids: Some(0), ..spec.limits };
        spec.workdir = Some("../etc".into());
        spec.env.insert("A=B".into(), String::new());
        let SandboxError::InvalidSpec { problems } = spec.validate().unwrap_err() else { panic!() };
        assert_eq!(problems.len(), 5, "{problems:?}");
    }

    #[test]
    fn a_sandbox_outlives_agent_verifier_and_margin() {
        let lifetimes = Lifetimes::default();
        assert!(
            lifetimes.time_to_live()
                >= Duration::from_secs(
                    lifetimes.agent_secs + lifetimes.verify_secs + lifetimes.margin_secs
                )
        );
    }

    #[test]
    fn images_are_told_apart_as_typed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Dockerfile"), "FROM scratch").unwrap();
        let image: Image = folder.path().to_str().unwrap().parse().unwrap();
        assert!(matches!(image, Image::Build { .. }));
        assert_eq!("x/root.tar".parse(), Ok(Image::RootTar("x/root.tar".into())));
        assert_eq!("python:3.12".parse(), Ok(Image::Reference("python:3.12".into())));
        assert_eq!("default".parse(), Ok(Image::Default));
    }

    #[test]
    fn networks_are_read_as_typed() {
        assert_eq!("none".parse(), Ok(NetworkPolicy::None));
        assert_eq!("bridge".parse(), Ok(NetworkPolicy::Bridge));
        let hosts = ["a.org", "*.b.org:443", "[::1]:*"].map(|host| host.parse().unwrap());
        let allow = NetworkPolicy::allow(hosts);
        assert_eq!("allow:a.org,*.b.org:443, [::1]:*".parse(), Ok(allow.clone()));
        let text = serde_json::to_string(&allow).unwrap();
        assert_eq!(serde_json::from_str::<NetworkPolicy>(&text).unwrap(), allow);
        let short = r#"{"kind": "allow", "hosts": ["a.org", "*.b.org:443", "[::1]:*"]}"#;
        assert_eq!(serde_json::from_str::<NetworkPolicy>(short).unwrap(), allow);
        let error = "allow:a.org:0,b.org,c/d".parse::<NetworkPolicy>().unwrap_err();
        assert!(error.contains("`a.org:0`") && error.contains("`c/d`"), "{error}");
        assert!(error.contains("HOST:PORT") && !error.contains("`b.org`"), "{error}");
        for text in ["brdge", "allow", "a.org:443", "allow:"] {
            assert!(text.parse::<NetworkPolicy>().is_err(), "{text}");
        }
    }

    #[test]
    fn specs_round_trip_and_their_key_follows_every_field() {
        let spec = SandboxSpec::new(Image::Reference("python".into()));
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<SandboxSpec>(&text).unwrap(), spec);
        let other = SandboxSpec { read_only_root: true, ..spec.clone() };
        assert_ne!(spec.key(), other.key());
    }
}
