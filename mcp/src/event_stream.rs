//! Servers that answer in one stream of events and are sent messages by requests beside it: the transport that streamable
//! HTTP has replaced.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Client, Response, Url};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::time::timeout;

use crate::{McpHttpServer, McpLimits};

/// Bytes that wait between a stream of events and who reads it as lines.
const BUFFER_BYTES: usize = 64 << 10;

/// The kind of an event that does not name its own.
const MESSAGE: &str = "message";

/// The streams of a server, as if it were a process: lines go out as requests, and events come back as lines.
pub(crate) struct EventLines {
    pub(crate) stdin: DuplexStream,
    pub(crate) stdout: DuplexStream,
    /// Why it ended, in words.
    pub(crate) stderr: DuplexStream,
}

/// Opens the stream of events; an error says why there is none.
pub(crate) async fn open(at: &McpHttpServer, limits: &McpLimits) -> Result<EventLines, String> {
    let (url, client, headers) = (at.parsed_url()?, at.client(limits)?, at.header_map()?);
    let asked =
        client.get(url.clone()).header(ACCEPT, "text/event-stream").headers(headers.clone());
    let answer = timeout(limits.start, asked.send()).await;
    let answer = answer.map_err(|_| "it did not answer in time".to_owned())?;
    let answer = answer.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        return Err(format!("it answers with status {}", answer.status()));
    }
    let mut events = Events { answer, reader: EventReader::new(limits.message_bytes) };
    let first = timeout(limits.start, async {
        loop {
            match events.next().await? {
                Some((kind, data)) if kind == "endpoint" => return Ok(data),
                Some(_) => {}
                None => return Err("its events end before it says where it is sent to".to_owned()),
            }
        }
    });
    let place = first.await.map_err(|_| "it does not say where it is sent to".to_owned())??;
    let to = url.join(place.trim()).map_err(|error| format!("`{place}` is no place: {error}"))?;
    if (to.scheme(), to.host_str(), to.port()) != (url.scheme(), url.host_str(), url.port()) {
        return Err(format!("it wants to be sent to another server, `{to}`"));
    }
    let (stdin, messages) = tokio::io::duplex(BUFFER_BYTES);
    let (answers, stdout) = tokio::io::duplex(BUFFER_BYTES);
    let (mut words, stderr) = tokio::io::duplex(4096);
    let post = post(client, to, headers, messages, limits.request);
    tokio::spawn(async move {
        // Whichever ends first ends both: closing one's input, or the server its events.
        let ended = tokio::select! {
            ended = post => ended,
            ended = hand_on(events, answers) => ended,
        };
        if let Err(why) = ended {
            let _ = words.write_all(why.as_bytes()).await;
        }
    });
    Ok(EventLines { stdin, stdout, stderr })
}

/// Sends each line as a request.
async fn post(
    client: Client,
    to: Url,
    headers: reqwest::header::HeaderMap,
    messages: DuplexStream,
    limit: Duration,
) -> Result<(), String> {
    let mut lines = BufReader::new(messages).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request = client.post(to.clone()).headers(headers.clone());
        let request = request.header("content-type", "application/json").body(line);
        let sent = timeout(limit, request.send()).await;
        let answer = sent.map_err(|_| "a message was not taken in time".to_owned())?;
        let answer = answer.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("a message was answered with status {}", answer.status()));
        }
    }
    Ok(())
}

/// Writes each message as a line.
async fn hand_on(mut events: Events, mut answers: DuplexStream) -> Result<(), String> {
    while let Some((kind, data)) = events.next().await? {
        if kind == MESSAGE {
            let line = data.replace('\n', " ") + "\n";
            if answers.write_all(line.as_bytes()).await.is_err() {
                return Ok(());
            }
        }
    }
    Err("its events have ended".to_owned())
}

/// The events of a body, as they come.
struct Events {
    answer: Response,
    reader: EventReader,
}

impl Events {
    /// The next event, its kind and data; absent at the end.
    async fn next(&mut self) -> Result<Option<(String, String)>, String> {
        loop {
            if let Some(event) = self.reader.next_event()? {
                return Ok(Some(event));
            }
            match self.answer.chunk().await.map_err(|error| error.to_string())? {
                Some(bytes) => self.reader.push(&bytes),
                None => return Ok(None),
            }
        }
    }
}

/// Server-sent events out of bytes that come in pieces.
///
/// ```
/// let mut reader = spar_mcp::EventReader::new(1000);
/// reader.push(b"event: endpoint\ndata: /messages\n\ndata: cut o");
/// assert_eq!(reader.next_event(), Ok(Some(("endpoint".to_owned(), "/messages".to_owned()))));
/// assert_eq!(reader.next_event(), Ok(None));
/// ```
#[derive(Debug)]
pub struct EventReader {
    pending: Vec<u8>,
    /// Where what is not yet read begins in `pending`.
    read: usize,
    /// Where what was not yet searched for the end of a line begins in it.
    searched: usize,
    kind: String,
    data: Option<String>,
    most_bytes: usize,
}

impl EventReader {
    /// A reader of events whose lines, and whose data, have no more than `most_bytes` each.
    pub fn new(most_bytes: usize) -> Self {
        let kind = MESSAGE.to_owned();
        Self { pending: Vec::new(), read: 0, searched: 0, kind, data: None, most_bytes }
    }

    /// Takes in bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        // Here and not behind every line, so that each byte is moved once at most for each piece that comes.
        self.pending.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        self.pending.extend_from_slice(bytes);
    }

    /// The next event that ends in what was pushed, its kind and data; absent where none does.
    ///
    /// # Errors
    ///
    /// A line or the data of an event are too long.
    pub fn next_event(&mut self) -> Result<Option<(String, String)>, String> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                let kind = std::mem::replace(&mut self.kind, MESSAGE.to_owned());
                if let Some(data) = self.data.take() {
                    return Ok(Some((kind, data)));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut self.kind),
                "data" => match &mut self.data {
                    None => self.data = Some(value.to_owned()),
                    Some(whole) => {
                        if whole.len() + value.len() > self.most_bytes {
                            return Err(self.too_long());
                        }
                        whole.push('\n');
                        whole.push_str(value);
                    }
                },
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next whole line, without its end.
    fn line(&mut self) -> Result<Option<String>, String> {
        let end = self.pending[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = end.map(|at| self.searched + at);
        self.searched = end.map_or(self.pending.len(), |end| end + 1);
        let length = end.unwrap_or(self.pending.len()) - self.read;
        if length > self.most_bytes {
            return Err(self.too_long());
        }
        let Some(end) = end else { return Ok(None) };
        let line = String::from_utf8_lossy(&self.pending[self.read..end]);
        let line = line.trim_end_matches('\r').to_owned();
        self.read = end + 1;
        Ok(Some(line))
    }

    fn too_long(&self) -> String {
        format!("one of its events has more than {} bytes", self.most_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events of bytes that come in pieces of this size, and why there were no more.
    fn events(bytes: &[u8], size: usize, most: usize) -> (Vec<(String, String)>, Option<String>) {
        let (mut reader, mut events) = (EventReader::new(most), Vec::new());
        for piece in bytes.chunks(size) {
            reader.push(piece);
            loop {
                match reader.next_event() {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(why) => return (events, Some(why)),
                }
            }
        }
        (events, None)
    }

    #[test]
    fn events_are_read_however_their_bytes_are_cut() {
        let stream = ": ping\r\n\r\nevent: endpoint\r\ndata: /to\r\n\r\ndata:  \u{e9}\ndata: b\n\n\
                      event: nothing\n\nretry: 5\ndata\n\ndata: cut";
        let event = |kind: &str, data: &str| (kind.to_owned(), data.to_owned());
        let expected =
            vec![event("endpoint", "/to"), event("message", " \u{e9}\nb"), event("message", "")];
        for size in [1, 2, 3, 7, 1000] {
            assert_eq!(events(stream.as_bytes(), size, 100), (expected.clone(), None), "{size}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_however_it_comes() {
        let long_line = format!("data: {}\n\n", "a".repeat(100));
        let long_data = "data: aaaaaaaaaaaaaaaaaaaa\n".repeat(10);
        for stream in [&long_line, &long_data] {
            for size in [1, 10, 1000] {
                let (found, why) = events(stream.as_bytes(), size, 50);
                let expected = "one of its events has more than 50 bytes";
                assert_eq!((found.len(), why.as_deref()), (0, Some(expected)), "{size}");
            }
        }
    }

    #[test]
    fn many_lines_that_come_at_once_are_each_looked_at_once() {
        // Were the rest moved behind every line, this would move some 64 GB.
        let stream = "\n".repeat(1 << 18) + "data: last\n\n" + &"\n".repeat(1 << 18);
        let (found, why) = events(stream.as_bytes(), usize::MAX, 100);
        assert_eq!((found.len(), why), (1, None));
    }
}
