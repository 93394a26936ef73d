//! Connections, and what answers their requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::body::AnswerBody;
use crate::timed_io::TimedIo;

/// How long to wait after the system has refused a connection, for want of file handles perhaps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What connections may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Connections at the same time; further ones wait to be accepted.
    pub(crate) max_connections: usize,
    /// How long a request's head may take to arrive, and a connection may idle.
    pub(crate) head_timeout: Duration,
    /// How long a client may leave bytes unread.
    pub(crate) write_timeout: Duration,
    /// How long answers under way may go on when the server is told to stop.
    pub(crate) shutdown_grace: Duration,
}

/// Whatever answers requests.
pub(crate) trait Service: Send + Sync + 'static {
    /// What its connections may take.
    fn limits(&self) -> ConnectionLimits;

    /// Answers a request; errors are answers too. Dropped when the client hangs up.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<AnswerBody>> + Send;
}

/// Serves until `stop` is ready, then finishes the answers under way, or cancels them when the grace is over. Returns how
/// many connections were cut off.
pub(crate) async fn serve<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    stop: impl Future<Output = ()>,
) -> usize {
    let limits = service.limits();
    let permits = Arc::new(Semaphore::new(limits.max_connections.max(1)));
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
                let connection = connection(stream, service.clone(), limits, stopped.clone());
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
    let is_over = tokio::time::timeout(limits.shutdown_grace, all).await.is_ok();
    let left = if is_over { 0 } else { connections.len() };
    connections.shutdown().await;
    left
}

/// Serves one connection to its end.
async fn connection<S: Service>(
    stream: TcpStream,
    service: Arc<S>,
    limits: ConnectionLimits,
    mut stopped: watch::Receiver<bool>,
) {
    // Tokens are small and should not wait for each other.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(TimedIo::new(stream, limits.write_timeout));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
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
