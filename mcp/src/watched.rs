//! Messages of a server, counted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use spar_sandbox::output::{LastWords, Tail};

use crate::McpFault;

/// What is known of a server's messages; shared by its transport and its client.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Messages since the last request.
    unasked: AtomicUsize,
    /// Whether the server has said that its tools are others now.
    has_other_tools: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    fault: Option<McpFault>,
    stderr: Tail,
    stdout: Tail,
}

impl Watch {
    /// Notes why no message comes any more.
    pub(crate) fn fail(&self, fault: McpFault) {
        self.known().fault.get_or_insert(fault);
    }

    /// Why no message comes any more, where that is known.
    pub(crate) fn fault(&self) -> Option<McpFault> {
        self.known().fault.clone()
    }

    /// Takes in what the server wrote on standard output that is no message.
    pub(crate) fn hear(&self, bytes: &[u8]) {
        self.known().stdout.push(bytes);
    }

    /// Takes in what the server wrote on standard error.
    pub(crate) fn hear_error(&self, bytes: &[u8]) {
        self.known().stderr.push(bytes);
    }

    pub(crate) fn last_words(&self) -> Box<LastWords> {
        let known = self.known();
        Box::new(LastWords { stderr: known.stderr.told(), stdout: known.stdout.told() })
    }

    /// Whether the tools have changed since this was asked last.
    pub(crate) fn take_other_tools(&self) -> bool {
        self.has_other_tools.swap(false, Ordering::Relaxed)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transport whose messages are counted, and of whose notifications only what they say is kept: so that none waits
/// anywhere for a task of its own.
pub(crate) struct Watched<T> {
    pub(crate) inner: T,
    pub(crate) watch: Arc<Watch>,
    /// The most messages between two requests.
    pub(crate) most_unasked: usize,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if matches!(item, JsonRpcMessage::Request(_)) {
            self.watch.unasked.store(0, Ordering::Relaxed);
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            let unasked = self.watch.unasked.fetch_add(1, Ordering::Relaxed);
            if unasked > self.most_unasked {
                self.watch.fail(McpFault::Flood { count: self.most_unasked });
                return None;
            }
            let JsonRpcMessage::Notification(notification) = &message else {
                return Some(message);
            };
            if let ServerNotification::ToolListChangedNotification(_) = notification.notification {
                self.watch.has_other_tools.store(true, Ordering::Relaxed);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
