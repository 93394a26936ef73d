//! What listens in fake sandboxes.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::FakeReply;
use crate::allow_list::Target;
use crate::{ByteStream, ExecRequest, NetworkPolicy, SandboxSpec};

/// Bytes that wait to be read, each way.
const BUFFER: usize = 1 << 16;
/// The longest answer that is taken.
const ANSWER_BYTES: u64 = 1 << 20;

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

/// What comes of a command that asks a served host (`ask HOST:PORT WORDS`); absent where it is another one.
pub(super) async fn ask(
    spec: &SandboxSpec,
    request: &ExecRequest,
    limit: Duration,
) -> Option<FakeReply> {
    let command = match request.command.as_slice() {
        [sh, flag, script] if sh == "sh" && flag == "-c" => script.clone(),
        words => words.join(" "),
    };
    let (place, words) = command.trim().strip_prefix("ask ")?.split_once(' ')?;
    let asked = timeout(limit, answer(spec, place, words)).await;
    let answer = asked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
    Some(match answer {
        Ok(bytes) => FakeReply::exited(0, bytes),
        Err(reason) => FakeReply::failed(1, format!("ask: {place}: {reason}\n")),
    })
}

async fn answer(spec: &SandboxSpec, place: &str, words: &str) -> Result<Vec<u8>, String> {
    let target = Target::parse(place, None).ok_or("no host and port")?;
    let is_listed = match &spec.network {
        NetworkPolicy::Allow { hosts, .. } => hosts.iter().any(|host| host.allows(&target)),
        NetworkPolicy::None | NetworkPolicy::Bridge => false,
    };
    let connecting = spec.served.connect(&target).filter(|_| is_listed);
    let mut stream = connecting.ok_or("it is not on the allow-list")?.await?;
    let said = async {
        stream.write_all(words.as_bytes()).await?;
        stream.shutdown().await?;
        let mut bytes = Vec::new();
        stream.take(ANSWER_BYTES).read_to_end(&mut bytes).await?;
        Ok::<_, std::io::Error>(bytes)
    };
    said.await.map_err(|error| error.to_string())
}
