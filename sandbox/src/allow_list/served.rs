//! Hosts of an allow-list that stand for something in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ByteStream;

use super::host::{Host, Target};

/// A connection under way, or for people why there is none.
type Connecting = Pin<Box<dyn Future<Output = Result<ByteStream, String>> + Send>>;

type Connector = dyn Fn(u16) -> Connecting + Send + Sync;

/// Names that are looked up nowhere: who asks the proxy for one of them, and may by the allow-list, is connected by
/// this process. Nothing listens for it on the host, so that no other program can come in that way.
///
/// They live as long as this process: a spec that was written down has none. Clones share them.
#[derive(Clone, Default)]
pub struct ServedHosts {
    hosts: BTreeMap<String, Served>,
}

#[derive(Clone)]
struct Served {
    /// Told apart from all others of this process.
    number: u64,
    connector: Arc<Connector>,
}

impl ServedHosts {
    /// The same, where `connect` opens what is asked for by `name`, given the port. Lower case, without a dot at the end.
    #[must_use]
    pub fn with<F>(mut self, name: &str, connect: impl Fn(u16) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ByteStream, String>> + Send + 'static,
    {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let connector: Arc<Connector> = Arc::new(move |port| Box::pin(connect(port)));
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        self.hosts.insert(name.to_owned(), Served { number, connector });
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// The connection that `target` asks for; absent where it is none of these.
    pub(crate) fn connect(&self, target: &Target) -> Option<Connecting> {
        let Host::Name(name) = &target.host else { return None };
        self.hosts.get(name).map(|served| (served.connector)(target.port))
    }

    /// What tells them apart from others.
    fn identity(&self) -> impl Iterator<Item = (&str, u64)> {
        self.hosts.iter().map(|(name, served)| (name.as_str(), served.number))
    }

    /// For the key of a spec; empty where there are none.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.identity()
            .flat_map(|(name, number)| format!("\n{name} {number}").into_bytes())
            .collect()
    }
}

impl PartialEq for ServedHosts {
    fn eq(&self, other: &Self) -> bool {
        self.identity().eq(other.identity())
    }
}

impl fmt::Debug for ServedHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
