//! Messages as lines of a process's standard streams.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use spar_sandbox::output::{LineReader, NextLine};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::McpFault;
use crate::watched::Watch;

/// Lines that are no messages: a server that logs to standard output by mistake is put up with.
const MOST_NONSENSE: usize = 10_000;

type Output = Box<dyn AsyncRead + Send + Unpin>;
type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// Sends and receives messages, one on a line.
pub(crate) struct LineTransport {
    lines: LineReader<Output>,
    input: Arc<Mutex<Option<Input>>>,
    watch: Arc<Watch>,
    nonsense: usize,
}

/// What a line of a server is.
#[derive(Debug)]
pub enum LineMessage {
    /// A message of the protocol.
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// A notification that the protocol does not have: to be passed over.
    Other,
    /// No message.
    Nonsense,
}

/// Reads a line of a server.
pub fn read_line(line: &[u8]) -> LineMessage {
    let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(line) else {
        return LineMessage::Nonsense;
    };
    let is_notification = value.get("method").is_some() && value.get("id").is_none();
    match RxJsonRpcMessage::<RoleClient>::deserialize(value) {
        Ok(message) => LineMessage::Message(Box::new(message)),
        Err(_) if is_notification => LineMessage::Other,
        Err(_) => LineMessage::Nonsense,
    }
}

impl LineTransport {
    pub(crate) fn new(input: Input, output: Output, limit: usize, watch: Arc<Watch>) -> Self {
        let lines = LineReader::new(output, limit);
        Self { lines, input: Arc::new(Mutex::new(Some(input))), watch, nonsense: 0 }
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    /// May be dropped while it waits, and called again.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let limit = self.lines.limit();
            let line = match self.lines.next().await {
                Ok(NextLine::Line(line)) => line,
                Ok(NextLine::TooLong(start)) => {
                    self.watch.hear(start);
                    self.watch.fail(McpFault::TooLong { bytes: limit });
                    return None;
                }
                Ok(NextLine::End(rest)) => {
                    self.watch.hear(rest);
                    return None;
                }
                Err(error) => {
                    tracing::debug!(%error, "could not read what a server writes");
                    return None;
                }
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match read_line(line) {
                LineMessage::Message(message) => return Some(*message),
                LineMessage::Other => {}
                LineMessage::Nonsense => {
                    self.watch.hear(line);
                    self.watch.hear(b"\n");
                    self.nonsense += 1;
                    if self.nonsense > MOST_NONSENSE {
                        self.watch.fail(McpFault::Nonsense { count: MOST_NONSENSE });
                        return None;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Its end is how a server is told to end.
        if let Some(mut input) = self.input.lock().await.take() {
            input.shutdown().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let kind = |line: &str| match read_line(line.as_bytes()) {
            LineMessage::Message(_) => "message",
            LineMessage::Other => "other",
            LineMessage::Nonsense => "nonsense",
        };
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "message"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#, "message"),
            (r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, "message"),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":3}"#, "other"),
            ("Server started on stdio", "nonsense"),
            ("[1, 2]", "nonsense"),
            (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "nonsense"),
            ("{", "nonsense"),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
        assert_eq!(kind(&"[".repeat(100_000)), "nonsense");
    }
}
