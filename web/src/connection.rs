//! Commands and events of the DevTools protocol over a browser's pipe.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::WebError;

/// The largest message that is read; of longer ones only the number is.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Commands that may wait to be written.
const MAX_QUEUED: usize = 4096;
/// Commands that may wait for an answer.
const MAX_PENDING: usize = 8192;
/// Events that a session may have behind it that nobody took.
const MAX_EVENTS: usize = 8192;

/// Something that happened in the browser.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its name in the protocol.
    pub(crate) method: String,
    /// What is told of it.
    pub(crate) params: Value,
}

/// The connection with one browser.
#[derive(Debug)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

/// One target that the browser is talked to about; the empty one is the browser itself. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    id: Arc<str>,
}

/// An answer to come.
#[derive(Debug)]
pub(crate) struct Reply {
    method: &'static str,
    receiver: Result<oneshot::Receiver<Result<Value, WebError>>, WebError>,
}

#[derive(Debug)]
struct Shared {
    next_id: AtomicU64,
    /// Absent where the browser is to end.
    queue: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pending: HashMap<u64, Pending>,
    /// Who takes the events of a session.
    takers: HashMap<Arc<str>, mpsc::Sender<Event>>,
    /// Sessions that can be used no longer, and why.
    failed: HashMap<Arc<str>, WebError>,
    ended: Option<WebError>,
}

#[derive(Debug)]
struct Pending {
    session: Arc<str>,
    method: &'static str,
    sender: oneshot::Sender<Result<Value, WebError>>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<ProtocolError>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, rename = "sessionId")]
    session: Option<String>,
}

#[derive(Deserialize)]
struct ProtocolError {
    #[serde(default)]
    message: String,
}

impl Connection {
    /// A connection that reads answers and writes commands, messages ending with a zero byte; `events` takes those of the
    /// browser itself.
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let mut state = State::default();
        state.takers.insert(Arc::from(""), events);
        let shared = Arc::new(Shared {
            next_id: AtomicU64::new(1),
            queue: Mutex::new(Some(queue)),
            state: Mutex::new(state),
        });
        let reading = tokio::spawn(read(reader, Arc::clone(&shared)));
        let writing = tokio::spawn(write(writer, queued));
        Self { shared, tasks: [reading, writing] }
    }

    /// The browser itself.
    pub(crate) fn root(&self) -> Session {
        Session { shared: Arc::clone(&self.shared), id: Arc::from("") }
    }

    /// Says why the browser cannot be used any longer; the first reason stays.
    pub(crate) fn end(&self, error: WebError) {
        self.shared.end(error);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.end(WebError::Ended { last_words: Arc::from("") });
    }
}

impl Session {
    /// Another session of the same browser, whose events `taker` has from now on.
    pub(crate) fn of(&self, id: &str, taker: mpsc::Sender<Event>) -> Self {
        let id: Arc<str> = Arc::from(id);
        self.shared.state().takers.insert(Arc::clone(&id), taker);
        Self { shared: Arc::clone(&self.shared), id }
    }

    /// A channel for events of a session.
    pub(crate) fn event_channel() -> (mpsc::Sender<Event>, mpsc::Receiver<Event>) {
        mpsc::channel(MAX_EVENTS)
    }

    /// Whether it can be used no longer, and why.
    pub(crate) fn failure(&self) -> Option<WebError> {
        let state = self.shared.state();
        state.ended.clone().or_else(|| state.failed.get(&self.id).cloned())
    }

    /// Fails whatever waits for this session, now and later.
    pub(crate) fn fail(&self, error: &WebError) {
        let mut state = self.shared.state();
        state.takers.remove(&self.id);
        state.failed.entry(Arc::clone(&self.id)).or_insert_with(|| error.clone());
        let ids: Vec<u64> = state
            .pending
            .iter()
            .filter(|(_, pending)| pending.session == self.id)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            if let Some(pending) = state.pending.remove(&id) {
                let _ = pending.sender.send(Err(error.clone()));
            }
        }
    }

    /// Forgets a session that is gone.
    pub(crate) fn forget(&self) {
        self.fail(&WebError::Closed);
        self.shared.state().failed.remove(&self.id);
    }

    /// Sends a command behind all that were sent before; the browser carries them out in this order.
    pub(crate) fn send(&self, method: &'static str, params: Value) -> Reply {
        Reply { method, receiver: self.try_send(method, params) }
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    ///
    /// [`WebError`] where the browser refuses it, cannot do it any more, or does not answer within `patience`.
    pub(crate) async fn call(
        &self,
        method: &'static str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, WebError> {
        self.send(method, params).within(patience).await
    }

    fn try_send(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<oneshot::Receiver<Result<Value, WebError>>, WebError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let mut message = Map::new();
        message.insert("id".to_owned(), id.into());
        message.insert("method".to_owned(), method.into());
        message.insert("params".to_owned(), if params.is_null() { json!({}) } else { params });
        if !self.id.is_empty() {
            message.insert("sessionId".to_owned(), Value::String(self.id.to_string()));
        }
        let mut bytes = serde_json::to_vec(&message).expect("a map of texts can be written");
        bytes.push(0);
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.shared.state();
            if let Some(error) = state.ended.as_ref().or_else(|| state.failed.get(&self.id)) {
                return Err(error.clone());
            }
            if state.pending.len() >= MAX_PENDING {
                return Err(WebError::Flooded { what: "too many commands wait for an answer" });
            }
            let session = Arc::clone(&self.id);
            state.pending.insert(id, Pending { session, method, sender });
        }
        let queue = self.shared.queue();
        let sent = queue.as_ref().map(|queue| queue.try_send(bytes));
        match sent {
            Some(Ok(())) => Ok(receiver),
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                self.shared.state().pending.remove(&id);
                Err(WebError::Flooded { what: "too many commands wait to be sent" })
            }
            Some(Err(mpsc::error::TrySendError::Closed(_))) | None => {
                let mut state = self.shared.state();
                state.pending.remove(&id);
                let ended = state.ended.clone();
                Err(ended.unwrap_or(WebError::Ended { last_words: Arc::from("") }))
            }
        }
    }
}

impl Reply {
    /// The answer.
    ///
    /// # Errors
    ///
    /// [`WebError`] where there is none, or none within `patience`.
    pub(crate) async fn within(self, patience: Duration) -> Result<Value, WebError> {
        let Self { method, receiver } = self;
        match timeout(patience, receiver?).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(WebError::Ended { last_words: Arc::from("") }),
            Err(_) => Err(WebError::Late { doing: method, millis: patience.as_millis() as u64 }),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Option<mpsc::Sender<Vec<u8>>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, error: WebError) {
        *self.queue() = None;
        let mut state = self.state();
        // The first reason stays, unless it came without the browser's last words.
        let error = match (&state.ended, &error) {
            (Some(WebError::Ended { last_words }), WebError::Ended { last_words: more })
                if last_words.is_empty() && !more.is_empty() =>
            {
                error
            }
            (Some(first), _) => first.clone(),
            (None, _) => error,
        };
        state.ended = Some(error.clone());
        for (_, pending) in state.pending.drain() {
            let _ = pending.sender.send(Err(error.clone()));
        }
        state.takers.clear();
    }

    fn take(&self, bytes: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Message>(bytes) else {
            return self.end(WebError::Ended { last_words: Arc::from(": it wrote no JSON") });
        };
        if let Some(id) = message.id {
            let Some(pending) = self.state().pending.remove(&id) else { return };
            let answer = match (message.result, message.error) {
                (_, Some(error)) => {
                    Err(WebError::Refused { method: pending.method, message: error.message })
                }
                (result, None) => Ok(result.unwrap_or_default()),
            };
            let _ = pending.sender.send(answer);
            return;
        }
        let (Some(method), session) = (message.method, message.session.unwrap_or_default()) else {
            return;
        };
        let session: Arc<str> = Arc::from(session);
        let taker = self.state().takers.get(&session).cloned();
        let Some(taker) = taker else { return };
        let event = Event { method, params: message.params };
        if let Err(mpsc::error::TrySendError::Full(_)) = taker.try_send(event) {
            // Nobody could say any more what the session has come to.
            let mut state = self.state();
            state.takers.remove(&session);
            let error = WebError::Flooded { what: "more happens in a tab than can be followed" };
            state.failed.insert(session, error);
        }
    }

    /// Answers for a message that is too long to be read, by the number at its beginning.
    fn take_too_large(&self, head: &[u8]) {
        let id = head.strip_prefix(b"{\"id\":").and_then(|rest| {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
            std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
        });
        let Some(pending) = id.and_then(|id: u64| self.state().pending.remove(&id)) else { return };
        let error = WebError::TooLarge { method: pending.method, limit: MAX_MESSAGE_BYTES };
        let _ = pending.sender.send(Err(error));
    }
}

async fn read(mut reader: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    let mut bytes: Vec<u8> = Vec::with_capacity(1 << 16);
    // How much of `bytes` is known to have no end of a message.
    let mut seen = 0;
    let mut is_too_large = false;
    loop {
        match reader.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => {
                return shared.end(WebError::Ended { last_words: Arc::from("") });
            }
            Ok(_) => {}
        }
        let mut begin = 0;
        while let Some(at) = memchr::memchr(0, &bytes[seen..]) {
            let end = seen + at;
            if !std::mem::take(&mut is_too_large) {
                shared.take(&bytes[begin..end]);
            }
            begin = end + 1;
            seen = begin;
        }
        bytes.drain(..begin);
        if bytes.len() > MAX_MESSAGE_BYTES || is_too_large {
            if !is_too_large {
                shared.take_too_large(&bytes[..64]);
                is_too_large = true;
            }
            bytes.clear();
            bytes.shrink_to(1 << 16);
        }
        seen = bytes.len();
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut queued: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = queued.recv().await {
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            // The reader finds the other end closed as well, and tells it.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// A browser of the test's: what it was asked, line by line, and what it answers.
    fn pair()
    -> (Connection, tokio::io::DuplexStream, tokio::io::DuplexStream, mpsc::Receiver<Event>) {
        let (to_us, answers) = tokio::io::duplex(1 << 20);
        let (asked, from_us) = tokio::io::duplex(1 << 20);
        let (sender, events) = Session::event_channel();
        (Connection::new(answers, from_us, sender), to_us, asked, events)
    }

    #[tokio::test]
    async fn answers_find_their_commands_and_events_their_takers() {
        let (connection, mut browser, mut asked, mut root_events) = pair();
        let root = connection.root();
        let (sender, mut events) = Session::event_channel();
        let tab = root.of("T", sender);
        let (first, second) =
            (tab.send("A.one", json!({ "x": 1 })), root.send("B.two", Value::Null));
        let mut bytes = vec![0; 200];
        let length = asked.read(&mut bytes).await.unwrap();
        let mut text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        while text.matches('\0').count() < 2 {
            let length = asked.read(&mut bytes).await.unwrap();
            text += &String::from_utf8_lossy(&bytes[..length]);
        }
        assert_eq!(
            text,
            "{\"id\":1,\"method\":\"A.one\",\"params\":{\"x\":1},\"sessionId\":\"T\"}\0{\"id\":2,\"method\":\"B.two\",\"params\":{}}\0"
        );
        browser
            .write_all(
                b"{\"id\":2,\"error\":{\"message\":\"no\"}}\0{\"method\":\"E\",\"params\":1}\0",
            )
            .await
            .unwrap();
        browser.write_all(b"{\"method\":\"F\",\"sessionId\":\"T\"}\0{\"id\":1,\"re").await.unwrap();
        browser.write_all(b"sult\":{\"y\":2}}\0").await.unwrap();
        assert_eq!(first.within(SOON).await.unwrap(), json!({ "y": 2 }));
        let refused = second.within(SOON).await.unwrap_err().to_string();
        assert_eq!(refused, "have the browser do `B.two`: no");
        assert_eq!(root_events.recv().await.unwrap().method, "E");
        assert_eq!(events.recv().await.unwrap().method, "F");

        let waits = tab.send("A.three", Value::Null);
        tab.fail(&WebError::Crashed);
        assert!(matches!(waits.within(SOON).await, Err(WebError::Crashed)));
        assert!(matches!(tab.call("A.four", Value::Null, SOON).await, Err(WebError::Crashed)));
        let late = root.call("B.five", Value::Null, Duration::from_millis(5)).await.unwrap_err();
        assert_eq!(late.to_string(), "B.five within 5 ms");
        let waits = root.send("B.six", Value::Null);
        drop(browser);
        assert!(matches!(waits.within(SOON).await, Err(WebError::Ended { .. })));
        assert!(matches!(
            root.call("B.seven", Value::Null, SOON).await,
            Err(WebError::Ended { .. })
        ));
    }

    #[tokio::test]
    async fn an_answer_beyond_all_bounds_is_an_error_and_the_next_one_is_read() {
        let (connection, mut browser, _asked, _events) = pair();
        let root = connection.root();
        let (long, next) = (root.send("A.long", Value::Null), root.send("A.next", Value::Null));
        let writing = tokio::spawn(async move {
            browser.write_all(b"{\"id\":1,\"result\":\"").await.unwrap();
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..MAX_MESSAGE_BYTES / piece.len() + 2 {
                browser.write_all(&piece).await.unwrap();
            }
            browser.write_all(b"\"}\0{\"id\":2,\"result\":{}}\0").await.unwrap();
            browser
        });
        assert!(matches!(long.within(SOON).await, Err(WebError::TooLarge { .. })));
        assert_eq!(next.within(SOON).await.unwrap(), json!({}));
        drop(writing.await.unwrap());
    }
}
