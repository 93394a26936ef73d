//! Why a connection came to nothing, and how the client is told.

use std::net::IpAddr;
use std::time::Duration;

use super::AllowedHost;
use super::host::Target;
use super::request::Malformed;

/// Entries of a list that an answer names.
const MAX_NAMED: usize = 20;

/// Why a connection came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The list does not name it.
    #[error("`{target}` is not on the allow-list of this sandbox, which has {list}")]
    NotListed { target: Target, list: String },
    /// It is not where a name may lead.
    #[error(
        "`{target}` is on the allow-list of this sandbox, but stands for {address}, which is not an \
         address of the public internet; only a list that names that very address allows it"
    )]
    NotPublic { target: Target, address: IpAddr },
    /// Everything that may pass has passed.
    #[error(
        "`{target}` is out of reach: the {max_bytes} bytes that the network policy of this sandbox \
         lets pass are used up"
    )]
    UsedUp { target: Target, max_bytes: u64 },
    /// Nobody knows it.
    #[error("`{target}` is allowed, but no address of it was found: {reason}")]
    NotFound { target: Target, reason: String },
    /// It does not answer.
    #[error("`{target}` is allowed, but cannot be reached: {reason}")]
    Unreachable { target: Target, reason: String },
    /// It does not answer in time.
    #[error("`{target}` is allowed, but did not answer within {} s", after.as_secs())]
    Silent { target: Target, after: Duration },
    /// It does not speak as it has to.
    #[error("`{target}` is allowed, but {reason}")]
    BadAnswer { target: Target, reason: Malformed },
    /// The client does not speak as it has to.
    #[error("the request is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The client asks for something else than a connection.
    #[error("of SOCKS, only CONNECT without a password is known")]
    NoSuchCommand,
    /// The head of its request is too long.
    #[error("the head of a request may have {max_bytes} bytes")]
    TooLong { max_bytes: usize },
    /// The client does not say what it wants.
    #[error("the request did not come within {} s", after.as_secs())]
    Slow { after: Duration },
    /// The client is gone; nobody is told.
    #[error("the client is gone")]
    Gone,
}

impl Refusal {
    /// Whether the policy forbids it, and not mere circumstance.
    pub(super) fn is_policy(&self) -> bool {
        matches!(self, Self::NotListed { .. } | Self::NotPublic { .. } | Self::UsedUp { .. })
    }

    /// What was asked for, as far as that was understood.
    pub(super) fn target(&self) -> Option<&Target> {
        match self {
            Self::NotListed { target, .. }
            | Self::NotPublic { target, .. }
            | Self::UsedUp { target, .. }
            | Self::NotFound { target, .. }
            | Self::Unreachable { target, .. }
            | Self::Silent { target, .. }
            | Self::BadAnswer { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The answer to a client that speaks HTTP.
    pub(super) fn as_http(&self) -> Vec<u8> {
        let status = match self {
            // Some programs show this line and nothing else.
            Self::NotListed { .. } | Self::NotPublic { .. } | Self::UsedUp { .. } => {
                "403 Forbidden by the network policy of the sandbox"
            }
            Self::NotFound { .. } | Self::Unreachable { .. } | Self::BadAnswer { .. } => {
                "502 Bad Gateway"
            }
            Self::Silent { .. } => "504 Gateway Timeout",
            Self::Malformed(_) | Self::NoSuchCommand => "400 Bad Request",
            Self::TooLong { .. } => "431 Request Header Fields Too Large",
            Self::Slow { .. } => "408 Request Timeout",
            Self::Gone => return Vec::new(),
        };
        let text = format!("{self}\n");
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{text}",
            text.len()
        )
        .into_bytes()
    }

    /// The answer to a client that speaks SOCKS 5.
    pub(super) fn as_socks(&self) -> Vec<u8> {
        let code = match self {
            refusal if refusal.is_policy() => 2,
            Self::NotFound { .. } | Self::Silent { .. } => 4,
            Self::Unreachable { .. } => 5,
            Self::NoSuchCommand => 7,
            Self::Gone => return Vec::new(),
            _ => 1,
        };
        vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// The entries of a list for people.
pub(super) fn named(list: &[AllowedHost]) -> String {
    let names = list.iter().take(MAX_NAMED).map(|entry| format!("`{entry}`"));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if list.len() > MAX_NAMED {
        text += &format!(" and {} more", list.len() - MAX_NAMED);
    }
    text
}
