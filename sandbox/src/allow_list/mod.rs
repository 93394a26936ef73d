//! Networks of a few named hosts.
//!
//! ```text
//!   inside: no network but loopback        │  outside: this process
//!                                          │
//!   client ── HTTP_PROXY=127.0.0.1:3128 ───┼──▶ Proxy ── list? ── lookup ── address? ──▶ host
//!             CONNECT, absolute form,      │      │
//!             SOCKS 5                      │      └── 403 and a sentence, a count, a log line
//! ```
//!
//! A sandbox of [`NetworkPolicy::Allow`](crate::NetworkPolicy::Allow) has no network, as with
//! [`NetworkPolicy::None`](crate::NetworkPolicy::None). What it has is one port of its own loopback
//! behind which a proxy of this process answers; how the connections come out is the backend's.
//! Names are looked up out here, and only those of the list are. What they stand for has to be an
//! address of the public internet, unless the list names that very address: a name whose owner
//! points it at the host or its neighbours opens nothing. A name may also stand for something that this
//! process itself reaches ([`ServedHosts`]), and is then looked up nowhere.

mod address;
mod allowed_host;
mod body;
#[cfg(any(feature = "docker", feature = "local"))]
mod connect;
mod host;
#[cfg(any(feature = "docker", feature = "local"))]
mod proxy;
#[cfg(any(feature = "docker", feature = "local"))]
mod refusal;
mod request;
mod resolve;
#[cfg(any(feature = "docker", feature = "local"))]
mod response;
mod served;
#[cfg(feature = "local")]
mod server;
mod socks;
mod stats;
#[cfg(all(test, any(feature = "docker", feature = "local")))]
mod tests;
#[cfg(any(feature = "docker", feature = "local"))]
mod tunnel;
#[cfg(any(feature = "docker", feature = "local"))]
mod variables;

pub use allowed_host::{AllowedHost, AllowedHostError, Ports};
pub use body::{Body, BodyEnd};
pub use host::{Host, Target};
pub use request::{Kind, Malformed, Request};
pub use resolve::{ResolveError, resolve};
pub use served::ServedHosts;
pub use socks::{SocksGreeting, SocksRequest};
pub use stats::NetworkStats;

#[cfg(any(feature = "docker", feature = "local"))]
pub(crate) use proxy::Proxy;
#[cfg(feature = "local")]
pub(crate) use server::Server;
#[cfg(any(feature = "docker", feature = "local"))]
pub(crate) use variables::{PORT, variables};
