//! A small HTTP client that can misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The JSON of a request that went well.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The message of an error with its field.
    pub(crate) fn error(&self) -> (u16, String, Value) {
        let error = &self.json()["error"];
        assert!(error["type"].is_string() && error.get("code").is_some(), "{error}");
        (self.status, error["message"].as_str().unwrap().to_owned(), error["param"].clone())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// The events of a stream, which has to end as such.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let text = std::str::from_utf8(&self.body).unwrap();
        let events = text.strip_suffix("data: [DONE]\n\n").expect("a stream ends with [DONE]");
        let parse = |event: &str| {
            serde_json::from_str(event.strip_prefix("data: ").expect("an event has data")).unwrap()
        };
        events.split_terminator("\n\n").map(parse).collect()
    }
}

/// Sends a request on a connection of its own.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    let mut stream = open(address, method, path, headers, body).await;
    tokio::time::timeout(Duration::from_secs(60), read(&mut stream)).await.expect("an answer")
}

/// Sends JSON.
pub(crate) async fn post(address: SocketAddr, path: &str, body: &Value) -> Answer {
    send(address, "POST", path, "", body.to_string().as_bytes()).await
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    send(address, "GET", path, "", b"").await
}

/// Sends a request and leaves the answer unread.
pub(crate) async fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\
         content-type: application/json\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server may refuse a body before it has all of it.
    let _ = stream.write_all(body).await;
    BufReader::new(stream)
}

/// Reads an answer to its end.
pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> Answer {
    let (status, headers) = read_head(stream).await;
    let is_chunked =
        headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let mut body = Vec::new();
    if is_chunked {
        while let Some(chunk) = read_chunk(stream).await {
            body.extend(chunk);
        }
    } else {
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse().unwrap());
        body.resize(length, 0);
        stream.read_exact(&mut body).await.unwrap();
    }
    Answer { status, headers, body }
}

/// Reads the head of an answer.
pub(crate) async fn read_head(stream: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).await.unwrap() > 0, "the connection ended");
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &String| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    (status, lines[1..].iter().map(header).collect())
}

/// Reads the next chunk of a body; none at its end.
pub(crate) async fn read_chunk(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let len = usize::from_str_radix(line.trim_end(), 16).unwrap();
    let mut chunk = vec![0; len + 2];
    stream.read_exact(&mut chunk).await.unwrap();
    chunk.truncate(len);
    (len > 0).then_some(chunk)
}
