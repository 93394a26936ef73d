//! What a target of a list stands for, for who connects by itself.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use super::address::{is_own, is_public};
use super::{AllowedHost, Host, Target};

/// How long looking up a name may take.
const LOOK_UP: Duration = Duration::from_secs(20);
/// The most addresses of a name that are of use.
const MAX_ADDRESSES: usize = 8;

/// Why a target stands for nothing that may be connected to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The list does not name it.
    #[error("`{target}` is not on the list")]
    NotListed {
        /// What was asked for.
        target: Target,
    },
    /// Nobody knows it.
    #[error("no address of `{target}` was found")]
    NotFound {
        /// What was asked for.
        target: Target,
        /// What the system's resolver said.
        #[source]
        source: io::Error,
    },
    /// All that it stands for belongs to this machine or a network that is not the public internet.
    #[error(
        "`{target}` stands for {address}, which is not an address of the public internet; only a list that \
         names that very address allows it"
    )]
    NotPublic {
        /// What was asked for.
        target: Target,
        /// The first of them.
        address: IpAddr,
    },
}

/// The addresses of a target that a list lets through, at least one: those of the public internet that are not this machine's own, and those
/// that the list names. Whoever connects to exactly these looks nothing up a second time.
///
/// # Errors
///
/// [`ResolveError`] where there is none.
pub async fn resolve(
    list: &[AllowedHost],
    target: &Target,
) -> Result<Vec<SocketAddr>, ResolveError> {
    if !list.iter().any(|entry| entry.allows(target)) {
        return Err(ResolveError::NotListed { target: target.clone() });
    }
    let missing = |source| ResolveError::NotFound { target: target.clone(), source };
    let found: Vec<SocketAddr> = match &target.host {
        Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => {
            let looked_up = timeout(LOOK_UP, lookup_host((name.as_str(), target.port))).await;
            let late = |_| missing(io::ErrorKind::TimedOut.into());
            looked_up.map_err(late)?.map_err(missing)?.take(MAX_ADDRESSES).collect()
        }
    };
    let admitted = admitted(list, target, &found);
    match (admitted.is_empty(), found.first()) {
        (true, Some(address)) => {
            Err(ResolveError::NotPublic { target: target.clone(), address: address.ip() })
        }
        (true, None) => Err(missing(io::ErrorKind::NotFound.into())),
        (false, _) => Ok(admitted),
    }
}

/// Those of the addresses of a target that may be connected to.
pub(super) fn admitted(
    list: &[AllowedHost],
    target: &Target,
    found: &[SocketAddr],
) -> Vec<SocketAddr> {
    let is_named = |address: &SocketAddr| {
        let literal = Target { host: Host::Address(address.ip().to_canonical()), ..target.clone() };
        list.iter().any(|entry| entry.address().is_some() && entry.allows(&literal))
    };
    let may = |address: &&SocketAddr| {
        is_named(address) || is_public(address.ip()) && !is_own(address.ip())
    };
    found.iter().filter(may).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_a_list_names_leads_to_this_machine() {
        let list = |entries: &[&str]| -> Vec<AllowedHost> {
            entries.iter().map(|entry| entry.parse().unwrap()).collect()
        };
        let target = |text: &str| Target::parse(text, None).unwrap();
        let own = resolve(&list(&["localhost:80"]), &target("localhost:80")).await;
        assert!(matches!(own, Err(ResolveError::NotPublic { .. })), "{own:?}");
        let named = list(&["localhost:80", "127.0.0.1:80"]);
        let own = resolve(&named, &target("localhost:80")).await.unwrap();
        assert!(!own.is_empty() && own.iter().all(|it| it.to_string() == "127.0.0.1:80"));
        let other = resolve(&list(&["localhost:80"]), &target("localhost:81")).await;
        assert!(matches!(other, Err(ResolveError::NotListed { .. })), "{other:?}");
        let literal = resolve(&list(&["127.0.0.1:80"]), &target("127.0.0.1:80")).await.unwrap();
        assert_eq!(literal.len(), 1);
    }
}
