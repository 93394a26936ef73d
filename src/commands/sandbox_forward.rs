//! Ports of this machine that lead into a sandbox.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use spar::sandbox::Sandbox;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::cli::Forward;

/// How long a server inside may take to listen once somebody wants to reach it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at one time to one port; more wait.
const MOST: usize = 64;

/// A port that is listened on, and where it leads.
pub(super) struct Listener {
    socket: TcpListener,
    port: u16,
}

/// Listens on the local ports, which have to be free.
pub(super) async fn listen(forwards: &[Forward]) -> anyhow::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for &Forward { local, port } in forwards {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, local)).await;
        let socket = socket.with_context(|| format!("listen on port {local} (--forward)"))?;
        let address = socket.local_addr().context("look up the port")?;
        eprintln!("note: {address} leads to port {port} of the sandbox");
        listeners.push(Listener { socket, port });
    }
    Ok(listeners)
}

/// Carries connections into the sandbox for as long as it is polled.
pub(super) async fn forward(sandbox: &dyn Sandbox, listeners: Vec<Listener>) -> Infallible {
    let all = listeners.iter().map(|listener| serve(sandbox, listener));
    futures::future::join_all(all).await;
    std::future::pending().await
}

async fn serve(sandbox: &dyn Sandbox, listener: &Listener) -> Infallible {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.socket.accept(), if connections.len() < MOST => match accepted {
                Ok((client, _)) => connections.push(carry(sandbox, client, listener.port)),
                // Out of descriptors, or the client is gone: not at once again.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(()) = connections.next() => {}
        }
    }
}

async fn carry(sandbox: &dyn Sandbox, mut client: TcpStream, port: u16) {
    match sandbox.connect_within(port, PATIENCE).await {
        // Who ends it, and how, is between the two.
        Ok(mut server) => drop(copy_bidirectional(&mut client, &mut server).await),
        Err(error) => eprintln!("warning: could not {error}"),
    }
}
