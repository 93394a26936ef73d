//! Changing what a local sandbox reaches while it runs.
//!
//! Its network namespace has nothing but loopback, whatever it reaches: the way out is a socket that listens
//! there and is served here (`connect.rs` says why that works). Another network is another such socket, or none.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::net::TcpSocket;

use super::connect::sockets;
use super::running::RunningSandbox;
use super::{backend_error, blocking};
use crate::allow_list::PORT;
use crate::{NetworkPolicy, SandboxError};

/// Connections that wait until they are accepted.
const BACKLOG: u32 = 128;

/// Has it reach something else that needs no device. Whoever gives up waiting does not interrupt that.
pub(super) async fn change(
    sandbox: &Arc<RunningSandbox>,
    network: &NetworkPolicy,
) -> Result<(), SandboxError> {
    let (sandbox, network) = (Arc::clone(sandbox), network.clone());
    let changing = tokio::spawn(async move { set(&sandbox, &network).await });
    let failed = backend_error("change the network of the sandbox");
    changing.await.unwrap_or_else(|error| Err(failed(io::Error::other(error))))
}

async fn set(sandbox: &Arc<RunningSandbox>, network: &NetworkPolicy) -> Result<(), SandboxError> {
    let _changing = sandbox.changing_network.lock().await;
    sandbox.check_alive()?;
    if sandbox.network() == *network {
        return Ok(());
    }
    let ending = Arc::clone(sandbox);
    blocking(move || match ending.reach_nothing() {
        true => Ok(()),
        false => {
            let doing = "end the connections of the network that the sandbox had";
            Err(backend_error(doing)(io::ErrorKind::TimedOut.into()))
        }
    })
    .await?;
    match network {
        NetworkPolicy::Allow { .. } => {
            let listener = listen(sandbox).await.map_err(|error| {
                if sandbox.is_closed() || sandbox.init.is_gone() {
                    return sandbox.died();
                }
                if error.kind() == io::ErrorKind::AddrInUse {
                    return SandboxError::PortTaken { port: PORT };
                }
                backend_error("listen where the proxy of the sandbox answers")(error)
            })?;
            sandbox.reach_list(network, listener)?;
            // Whoever closed it meanwhile may have ended the way out before there was this one.
            if sandbox.is_closed() {
                let ending = Arc::clone(sandbox);
                blocking(move || {
                    ending.reach_nothing();
                    Ok(())
                })
                .await?;
                return Err(sandbox.died());
            }
            Ok(())
        }
        NetworkPolicy::None | NetworkPolicy::Bridge => Ok(()),
    }
}

/// A socket that listens on the loopback of the sandbox, where programs look for the proxy.
async fn listen(sandbox: &RunningSandbox) -> io::Result<TcpListener> {
    let socket = sockets(sandbox).await?.into_iter().next().expect("there is one of IPv4");
    let socket = TcpSocket::from_std_stream(socket.into());
    // Connections of the one before may not have been forgotten yet.
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))?;
    socket.listen(BACKLOG)?.into_std()
}
