//! Connections.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::routes::Service;
use crate::timed_io::TimedIo;
use crate::{ServeError, ServedModel, ServerConfig};

/// A policy behind OpenAI's HTTP interface.
pub struct PolicyServer {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
}

/// How long to wait after the system has refused a connection, for want of file handles perhaps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl PolicyServer {
    /// Listens at `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened at, or the root of weights is no folder.
    pub async fn bind(
        address: &str,
        model: ServedModel,
        config: ServerConfig,
    ) -> Result<Self, ServeError> {
        let service = Arc::new(Service::new(model, config)?);
        let failed = |source| ServeError::Bind { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, service })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready, then finishes the answers under way, or cancels them when the
    /// grace is over. Returns how many connections were cut off.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> usize {
        let Self { listener, service, .. } = self;
        let permits = Arc::new(Semaphore::new(service.config.max_connections.max(1)));
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            // A connection that has ended makes room.
            while connections.try_join_next().is_some() {}
            let accepted = async {
                let permit = permits.clone().acquire_owned().await.ok()?;
                Some((listener.accept().await, permit))
            };
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accepted => accepted,
            };
            match accepted {
                Some((Ok((stream, _)), permit)) => {
                    let connection = connection(stream, service.clone(), stopped.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Some((Err(error), _)) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                None => break,
            }
        }
        drop(listener);
        let _ = stopping.send(true);
        let all = async { while connections.join_next().await.is_some() {} };
        let is_over = tokio::time::timeout(service.config.shutdown_grace, all).await.is_ok();
        let left = if is_over { 0 } else { connections.len() };
        connections.shutdown().await;
        left
    }
}

/// Serves one connection to its end.
async fn connection(stream: TcpStream, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    // Tokens are small and should not wait for each other.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(TimedIo::new(stream, service.config.write_timeout));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(service.config.head_timeout);
    let handler = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(io, handler));
    let told = async {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients hang up all the time.
        tracing::debug!(%error, "a connection broke off");
    }
}
