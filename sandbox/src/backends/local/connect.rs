//! Connections into a local sandbox.
//!
//! A socket belongs to the network it was made in, wherever it is used: the first process makes one, and
//! it is connected here. Nothing inside takes part in that but what listens.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::net::{TcpSocket, UnixStream};

use super::init::receive;
use super::running::RunningSandbox;
use super::{BACKEND, backend_error};
use crate::{ByteStream, NetworkPolicy, SandboxError};

/// Connects to a port of the sandbox's loopback.
pub(super) async fn connect(
    sandbox: &RunningSandbox,
    port: u16,
) -> Result<ByteStream, SandboxError> {
    sandbox.check_alive()?;
    if sandbox.record.spec.network == NetworkPolicy::Bridge {
        let what = "connect to a sandbox that shares the host's network (give it `none` or a list)";
        return Err(SandboxError::Unsupported { backend: BACKEND, what: what.into() });
    }
    let sockets = sockets(sandbox).await.map_err(|error| {
        // Its end is a moment ahead of what can be seen of it.
        if sandbox.is_closed() || sandbox.init.is_gone() {
            return sandbox.died();
        }
        backend_error("connect to the sandbox")(error)
    })?;
    let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for (socket, address) in sockets.into_iter().zip(loopback) {
        let socket = TcpSocket::from_std_stream(socket.into());
        match socket.connect(SocketAddr::new(address, port)).await {
            Ok(stream) => {
                // Questions and answers are small and wait for each other.
                stream.set_nodelay(true).map_err(|source| refused(port, source))?;
                return Ok(ByteStream::new(stream));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            // Without an address of its own there is no loopback of IPv6.
            Err(_) if address.is_ipv6() => {}
            Err(source) => return Err(refused(port, source)),
        }
    }
    Err(SandboxError::NotListening { port })
}

fn refused(port: u16, source: io::Error) -> SandboxError {
    SandboxError::ConnectRefused { port, source }
}

/// Sockets of the sandbox's network: of IPv4, and then of IPv6 where it is known.
pub(super) async fn sockets(sandbox: &RunningSandbox) -> io::Result<Vec<OwnedFd>> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let ours = UnixStream::from_std(ours)?;
    let _gate = sandbox.gate.read().await;
    sandbox.init.ask_for_sockets(theirs.as_fd())?;
    drop(theirs);
    let (_, sockets) = ours.async_io(Interest::READABLE, || receive(&ours)).await?;
    if sockets.is_empty() { Err(io::ErrorKind::InvalidData.into()) } else { Ok(sockets) }
}
