//! From the name of a host to a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::host::{Host, Target};
use super::refusal::{Refusal, named};
use super::resolve::admitted;
use super::{AllowedHost, ServedHosts};
use crate::ByteStream;

/// How long finding and reaching a host may take.
pub(super) const CONNECT: Duration = Duration::from_secs(20);
/// How long one of several addresses may take to answer.
const ONE_ADDRESS: Duration = Duration::from_secs(6);
/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Connects to a host that the list names. `lookups` bounds how many names are looked up at a time.
pub(super) async fn connect(
    list: &[AllowedHost],
    served: &ServedHosts,
    lookups: &Arc<Semaphore>,
    target: &Target,
) -> Result<ByteStream, Refusal> {
    if !list.iter().any(|entry| entry.allows(target)) {
        return Err(Refusal::NotListed { target: target.clone(), list: named(list) });
    }
    let until = Instant::now() + CONNECT;
    let silent = || Refusal::Silent { target: target.clone(), after: CONNECT };
    if let Some(connecting) = served.connect(target) {
        let connected = timeout_at(until, connecting).await.map_err(|_| silent())?;
        return connected.map_err(|reason| Refusal::Unreachable { target: target.clone(), reason });
    }
    let found = match &target.host {
        Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => timeout_at(until, look_up(lookups, name.clone(), target.port))
            .await
            .map_err(|_| silent())?
            .map_err(|reason| Refusal::NotFound { target: target.clone(), reason })?,
    };
    let mut trouble = None;
    // Exactly the addresses that were looked at are connected to: nothing is looked up twice.
    for address in admit(list, target, &found)? {
        match timeout_at(until, timeout(ONE_ADDRESS, TcpStream::connect(address))).await {
            Ok(Ok(Ok(stream))) => {
                // Small packets are a conversation's; waiting for more would only slow it down.
                let _ = stream.set_nodelay(true);
                return Ok(ByteStream::new(stream));
            }
            Ok(Ok(Err(error))) => {
                let reason = error.to_string();
                trouble = Some(Refusal::Unreachable { target: target.clone(), reason });
            }
            Ok(Err(_)) => {}
            Err(_) => break,
        }
    }
    Err(trouble.unwrap_or_else(silent))
}

async fn look_up(
    lookups: &Arc<Semaphore>,
    name: String,
    port: u16,
) -> Result<Vec<SocketAddr>, String> {
    let permit = Arc::clone(lookups).acquire_owned().await.map_err(|error| error.to_string())?;
    // A task of its own: the system's resolver cannot be given up, and holds its place to its end.
    let lookup = tokio::spawn(async move {
        let found = lookup_host((name, port)).await;
        drop(permit);
        found.map(|found| found.take(MAX_ADDRESSES).collect::<Vec<_>>())
    });
    match lookup.await {
        Ok(Ok(found)) if found.is_empty() => Err("it has none".to_owned()),
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The addresses of a target that may be connected to, none of which is left out of the answer in
/// silence: where there is no other, it says why.
fn admit(
    list: &[AllowedHost],
    target: &Target,
    found: &[SocketAddr],
) -> Result<Vec<SocketAddr>, Refusal> {
    let admitted = admitted(list, target, found);
    match (admitted.is_empty(), found.first()) {
        (true, Some(address)) => {
            Err(Refusal::NotPublic { target: target.clone(), address: address.ip() })
        }
        _ => Ok(admitted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(list: &[&str], target: &str, found: &[&str]) -> Result<Vec<String>, String> {
        let list: Vec<AllowedHost> = list.iter().map(|entry| entry.parse().unwrap()).collect();
        let found: Vec<SocketAddr> = found.iter().map(|address| address.parse().unwrap()).collect();
        admit(&list, &Target::parse(target, None).unwrap(), &found)
            .map(|list| list.iter().map(ToString::to_string).collect())
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_name_that_is_pointed_at_the_host_opens_nothing() {
        for address in ["127.0.0.1:80", "169.254.169.254:80", "10.0.0.1:80", "[::1]:80"] {
            let refusal = told(&["a.org"], "a.org:80", &[address]).unwrap_err();
            assert!(refusal.contains("`a.org:80`") && refusal.contains("stands for"), "{refusal}");
        }
        // Whatever else it stands for as well.
        let found = ["127.0.0.1:80", "1.1.1.1:80", "[::ffff:10.0.0.1]:80"];
        assert_eq!(told(&["a.org"], "a.org:80", &found), Ok(vec!["1.1.1.1:80".to_owned()]));
    }

    #[test]
    fn an_address_that_the_list_names_is_allowed_on_the_ports_it_names() {
        let list = ["a.org:*", "10.0.0.1:80"];
        assert!(told(&list, "a.org:80", &["10.0.0.1:80"]).is_ok());
        assert!(told(&list, "a.org:80", &["[::ffff:10.0.0.1]:80"]).is_ok());
        assert!(told(&list, "a.org:81", &["10.0.0.1:81"]).is_err());
        assert!(told(&list, "a.org:80", &["10.0.0.2:80"]).is_err());
    }
}
