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
    let mut events = Events { answer, pending: Vec::new(), most_bytes: limits.message_bytes };
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
        if kind == "message" {
            let line = data.replace('\n', " ") + "\n";
            if answers.write_all(line.as_bytes()).await.is_err() {
                return Ok(());
            }
        }
    }
    Err("its events have ended".to_owned())
}

/// A body of server-sent events.
struct Events {
    answer: Response,
    pending: Vec<u8>,
    most_bytes: usize,
}

impl Events {
    /// The next event, its kind and data; absent at the end.
    async fn next(&mut self) -> Result<Option<(String, String)>, String> {
        let (mut kind, mut data) = ("message".to_owned(), None::<String>);
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            if line.is_empty() {
                if let Some(data) = data {
                    return Ok(Some((kind, data)));
                }
                kind = "message".to_owned();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => kind = value.to_owned(),
                "data" => match &mut data {
                    None => data = Some(value.to_owned()),
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
    }

    /// The next line, without its end.
    async fn line(&mut self) -> Result<Option<String>, String> {
        let mut looked_at = 0;
        loop {
            if let Some(at) = self.pending[looked_at..].iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(looked_at + at + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                let line = String::from_utf8_lossy(&line);
                return Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()));
            }
            looked_at = self.pending.len();
            if looked_at > self.most_bytes {
                return Err(self.too_long());
            }
            match self.answer.chunk().await.map_err(|error| error.to_string())? {
                Some(bytes) => self.pending.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }

    fn too_long(&self) -> String {
        format!("one of its events has more than {} bytes", self.most_bytes)
    }
}
