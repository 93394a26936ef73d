//! What can go wrong with a sandbox, as opposed to a command in it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The sandbox could not do its part; the command inside it is not to blame.
///
/// Messages read well after "could not".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no backend of this name.
    #[error("find a backend `{name}`: known are {}", quoted(known))]
    UnknownBackend {
        /// As asked for.
        name: String,
        /// All that exist.
        known: Vec<&'static str>,
    },
    /// The backend does not work on this machine, or not now.
    #[error("use the backend `{backend}`: {reason}")]
    Unavailable {
        /// Its name.
        backend: &'static str,
        /// What is missing.
        reason: String,
        /// The one thing to do.
        hint: String,
    },
    /// The backend cannot do this at all.
    #[error("{what} with the backend `{backend}`, which cannot do that")]
    Unsupported {
        /// Its name.
        backend: &'static str,
        /// What was asked for, as a verb phrase: `fork a sandbox`, `limit the disk`.
        what: String,
    },
    /// The spec is wrong whatever the backend.
    #[error("make a sandbox of this spec: {}", problems.join("; "))]
    InvalidSpec {
        /// All of its problems.
        problems: Vec<String>,
    },
    /// The image is absent and cannot be got.
    #[error("find image `{image}`: {reason}")]
    ImageMissing {
        /// Its reference as written.
        image: String,
        /// What the registry, the file system or the backend said.
        reason: String,
        /// The one thing to do.
        hint: String,
    },
    /// The image cannot be built.
    #[error("build image `{image}`: {reason}")]
    ImageBuild {
        /// What was to be built.
        image: String,
        /// The last lines of the build's output.
        reason: String,
    },
    /// It did not exist in time.
    #[error("create a sandbox within {seconds} s")]
    CreateTimedOut {
        /// [`Lifetimes::create_secs`](crate::Lifetimes::create_secs).
        seconds: u64,
    },
    /// A set-up command failed.
    #[error("set up the sandbox: `{command}` {end}: {output}")]
    Setup {
        /// The command.
        command: String,
        /// How it ended.
        end: crate::ExecEnd,
        /// The end of what it wrote.
        output: String,
    },
    /// The sandbox is gone.
    #[error("go on in sandbox `{sandbox}`: {death}")]
    Died {
        /// Its id.
        sandbox: String,
        /// What it died of.
        death: Death,
    },
    /// The backend's own storage, or the host's disk, is full. (A sandbox's own disk limit shows
    /// as "no space left on device" to the command inside.)
    #[error("{doing}: the disk of the host is full")]
    DiskFull {
        /// What was being done.
        doing: String,
    },
    /// The sandbox's own disk is full: what runs in it has used up
    /// [`Limits::disk_bytes`](crate::Limits::disk_bytes).
    #[error("write `{path}`: the disk of the sandbox is full")]
    NoSpace {
        /// What was to be written.
        path: String,
    },
    /// Too much is asked of the backend, and waiting did not help.
    #[error("get a sandbox: {reason}")]
    Saturated {
        /// What is used up, or why nothing is started.
        reason: String,
    },
    /// What the sandbox may have at one time is used up by what runs in it.
    #[error("start a command: the {what} that the sandbox may have are used up")]
    UsedUp {
        /// Of what: `processes`.
        what: &'static str,
    },
    /// A port of the sandbox's loopback on which the backend has to listen is held by what runs in it: there is no way out through an
    /// allow-list until that is given up.
    #[error("listen on port {port} of the sandbox: a program in it holds it")]
    PortTaken {
        /// That of the allow-list's proxy.
        port: u16,
    },
    /// Nobody listens on a port of the sandbox.
    #[error("connect to port {port} of the sandbox: nobody listens there")]
    NotListening {
        /// As asked for.
        port: u16,
    },
    /// A connection into the sandbox does not come about for another reason.
    #[error("connect to port {port} of the sandbox")]
    ConnectRefused {
        /// As asked for.
        port: u16,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A connection into the sandbox was neither accepted nor refused.
    #[error("connect to port {port} of the sandbox: no answer within {:.0} s", after.as_secs_f64())]
    ConnectTimedOut {
        /// As asked for.
        port: u16,
        /// How long it was tried.
        after: Duration,
    },
    /// A path inside that does not exist.
    #[error("find `{path}` in the sandbox")]
    NotFound {
        /// As asked for.
        path: String,
    },
    /// A path, link or archive entry that leads out of where it may lead, or cannot be what was
    /// asked for (a folder read as a file).
    #[error("use path `{path}`: {reason}")]
    PathRefused {
        /// As asked for.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A file or archive larger than the caller takes.
    #[error("take `{path}`: it is larger than {limit_bytes} bytes")]
    TooLarge {
        /// As asked for.
        path: String,
        /// The caller's limit.
        limit_bytes: u64,
    },
    /// A file of the host.
    #[error("{doing} `{}`", path.display())]
    Host {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Anything else that the backend reports.
    #[error("{doing}")]
    Backend {
        /// What was being done.
        doing: String,
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SandboxError {
    /// What is to be done about a full disk of the host.
    pub const MAKE_ROOM: &str = "free disk space; `spar reap` removes what dead runs left";

    /// What the user can do about it, where there is one thing to do.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unavailable { hint, .. } | Self::ImageMissing { hint, .. } => Some(hint),
            _ if self.is_host_disk_full() => Some(Self::MAKE_ROOM),
            _ => None,
        }
    }

    /// Whether a disk of the host is full: the backend's, or that of a file which is read or written here.
    pub fn is_host_disk_full(&self) -> bool {
        match self {
            Self::DiskFull { .. } => true,
            Self::Host { source, .. } => is_no_space(source),
            _ => false,
        }
    }

    /// Whether any spec would have met it. An image that is missing or a set-up command that fails
    /// says nothing about the sandboxes of other specs.
    pub fn is_backend_failure(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::CreateTimedOut { .. }
                | Self::Died { .. }
                | Self::DiskFull { .. }
                | Self::Saturated { .. }
                | Self::Backend { .. }
        )
    }

    /// The same for somebody else who waited for it. What cannot be copied is told in words.
    pub(crate) fn told_again(&self) -> Self {
        match self {
            Self::Unavailable { backend, reason, hint } => {
                Self::Unavailable { backend, reason: reason.clone(), hint: hint.clone() }
            }
            Self::Unsupported { backend, what } => {
                Self::Unsupported { backend, what: what.clone() }
            }
            Self::InvalidSpec { problems } => Self::InvalidSpec { problems: problems.clone() },
            Self::ImageMissing { image, reason, hint } => Self::ImageMissing {
                image: image.clone(),
                reason: reason.clone(),
                hint: hint.clone(),
            },
            Self::ImageBuild { image, reason } => {
                Self::ImageBuild { image: image.clone(), reason: reason.clone() }
            }
            Self::CreateTimedOut { seconds } => Self::CreateTimedOut { seconds: *seconds },
            Self::DiskFull { doing } => Self::DiskFull { doing: doing.clone() },
            Self::Saturated { reason } => Self::Saturated { reason: reason.clone() },
            Self::Host { doing, path, source } => Self::Host {
                doing,
                path: path.clone(),
                source: io::Error::new(source.kind(), source.to_string()),
            },
            other => {
                let mut words = Vec::new();
                let mut source = std::error::Error::source(other);
                while let Some(error) = source {
                    words.push(error.to_string());
                    source = error.source();
                }
                let words =
                    if words.is_empty() { "it failed".to_owned() } else { words.join(": ") };
                Self::Backend { doing: other.to_string(), source: words.into() }
            }
        }
    }

    /// The same, told as [`SandboxError::NoSpace`] where the disk is full and has a limit that commands
    /// inside can reach.
    #[cfg(any(feature = "docker", feature = "local"))]
    pub(crate) fn or_no_space(self, path: &str, limits: &crate::Limits) -> Self {
        match &self {
            Self::Backend { source, .. }
                if limits.disk_bytes.is_some()
                    && source.downcast_ref::<io::Error>().is_some_and(is_no_space) =>
            {
                Self::NoSpace { path: path.to_owned() }
            }
            _ => self,
        }
    }

    /// Whether the same may work in another sandbox, or later. What is wrong with the request is not.
    /// Whether an episode is played anew that ends with it, [`SandboxError::fault`] tells.
    pub fn is_infrastructure(&self) -> bool {
        !matches!(
            self,
            Self::Unsupported { .. }
                | Self::InvalidSpec { .. }
                | Self::UsedUp { .. }
                | Self::PortTaken { .. }
                | Self::NotListening { .. }
                | Self::NotFound { .. }
                | Self::PathRefused { .. }
                | Self::TooLarge { .. }
                | Self::NoSpace { .. }
        )
    }
}

/// Whether the system has no room for what was to be written.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What a sandbox died of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Death {
    /// Its main process was killed for memory.
    #[error("it ran out of memory")]
    OutOfMemory,
    /// The host ran out of memory, without its having met a limit of its own, and the kernel chose it.
    #[error("the host ran out of memory")]
    HostOutOfMemory,
    /// Somebody killed or removed it.
    #[error("it was killed")]
    Killed,
    /// The daemon that keeps it is gone or was restarted.
    #[error("its daemon is gone")]
    DaemonGone,
    /// It outlived [`Lifetimes::time_to_live`](crate::Lifetimes::time_to_live).
    #[error("its time to live is over")]
    Expired,
    /// It was closed by its owner.
    #[error("it was closed")]
    Closed,
}
