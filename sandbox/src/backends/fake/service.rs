//! What listens in fake sandboxes.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

use crate::ByteStream;

/// Bytes that wait to be read, each way.
const BUFFER: usize = 1 << 16;

/// Serves one connection.
pub(super) type Service =
    dyn Fn(DuplexStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// Sends back what comes, and ends when that does.
pub(super) fn echo() -> Arc<Service> {
    Arc::new(|stream| {
        Box::pin(async move {
            let (mut from, mut to) = tokio::io::split(stream);
            // The client is gone where this fails, and nobody is there to be told.
            let _ = tokio::io::copy(&mut from, &mut to).await;
            let _ = to.shutdown().await;
        })
    })
}

/// A connection to `service`, which ends with whatever runs in the sandbox.
pub(super) fn connect(service: &Service, mut ends: watch::Receiver<u64>) -> ByteStream {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let serving = service(theirs);
    tokio::spawn(async move {
        tokio::select! {
            () = serving => {}
            // Fails where the sandbox is gone.
            _ = ends.changed() => {}
        }
    });
    ByteStream::new(ours)
}
