//! A proxy at a port.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};

use super::{NetworkStats, Proxy};

/// How long connections may take to end once they have to.
const ENDING: Duration = Duration::from_secs(10);
/// How long accepting rests after the system could not.
const REST: Duration = Duration::from_millis(100);

/// Serves whoever connects to a port, until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    proxy: Arc<Proxy>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves on `runtime`.
    pub(crate) fn start(proxy: Proxy, listener: TcpListener, runtime: &Handle) -> io::Result<Self> {
        let _context = runtime.enter();
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let proxy = Arc::new(proxy);
        let task = runtime.spawn(serve_all(Arc::clone(&proxy), listener));
        Ok(Self { proxy, task })
    }

    pub(crate) fn stats(&self) -> NetworkStats {
        self.proxy.stats()
    }

    /// Ends all connections and waits for that; not from a thread that may not block. Whether they have ended: some may be open still
    /// when it has waited for long.
    pub(crate) fn end(&self) -> bool {
        self.task.abort();
        let begun = Instant::now();
        let has_ended = || self.task.is_finished() && self.proxy.stats().open == 0;
        while !has_ended() && begun.elapsed() < ENDING {
            thread::sleep(Duration::from_micros(500));
        }
        has_ended()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves whoever connects to `listener`. Dropping it ends all connections.
async fn serve_all(proxy: Arc<Proxy>, listener: tokio::net::TcpListener) {
    let mut serving = JoinSet::new();
    loop {
        // Before accepting: what finds no room waits where it costs this process nothing.
        let permit = proxy.permit().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let proxy = Arc::clone(&proxy);
                serving.spawn(async move { proxy.serve(stream, permit).await });
            }
            Err(error) => {
                let sandbox = proxy.sandbox();
                tracing::warn!(sandbox, %error, "could not accept a connection");
                tokio::time::sleep(REST).await;
            }
        }
        while serving.try_join_next().is_some() {}
    }
}
