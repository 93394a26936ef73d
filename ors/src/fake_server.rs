//! A small server of the standard, for tests.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::OrsAddress;

/// Tasks of each split.
const NUM_TASKS: usize = 8;
/// Bytes of a request.
const MOST_REQUEST: usize = 1 << 20;

/// What a [`FakeServer`] does wrong; where it says nothing else, behind a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeFault {
    /// It answers with the head of a response and nothing behind it.
    Stalls,
    /// It sends heartbeats and never a result.
    Heartbeats,
    /// It sends a result without end.
    Floods,
    /// It breaks off once, behind the id of the task.
    BreaksOffOnce,
    /// It breaks off always.
    BreaksOff,
    /// Its result is no JSON.
    NoJson,
    /// Its result is JSON that is nested 100 000 levels deep.
    DeepJson,
    /// Its reward is beyond all numbers.
    InfiniteReward,
    /// Its result has fields of other types.
    WrongTypes,
    /// Its events are no text.
    NoUtf8,
    /// Its tool raises an error.
    Raises,
    /// It answers with status 500.
    Refuses,
    /// It redirects.
    Redirects,
    /// Its prompt does not come.
    StallsPrompt,
    /// Its prompt does not end.
    BabblesPrompt,
}

/// A small server of the standard on a port of this machine: one environment, `sums`, with the splits `train` and `test` of
/// eight tasks each. Task `index` asks for `index + 1`; the tool `add` adds two numbers, `look` shows a picture, and `answer`
/// ends it with reward 1 or 0. Dropping it ends it.
#[derive(Debug)]
pub struct FakeServer {
    port: u16,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    fault: Option<FakeFault>,
    /// What was asked for in each session: the index of its task.
    sessions: HashMap<String, usize>,
    given: usize,
    pings: usize,
    /// The results of calls by the ids of their tasks.
    results: HashMap<String, String>,
    calls: usize,
    broke_off: HashSet<String>,
}

/// What is answered.
enum Reply {
    Json(Value),
    Status(u16, Value),
    /// Events as they stand on the wire.
    Events(Vec<u8>),
    /// The same, and then the connection is closed before their end.
    CutEvents(Vec<u8>),
    /// The same, and then these bytes again and again.
    Endless(&'static str, Vec<u8>, &'static [u8]),
    Redirect,
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl FakeServer {
    /// Starts one, which does everything right or one thing wrong.
    ///
    /// # Errors
    ///
    /// When there is no port to be had.
    pub async fn start(fault: Option<FakeFault>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State { fault, ..State::default() }));
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    // Who asked may have gone away.
                    let _ = serve(stream, &shared).await;
                });
            }
        });
        Ok(Self { port, state, accepting })
    }

    /// Where it is.
    pub fn address(&self) -> OrsAddress {
        OrsAddress { name: "fake".to_owned(), url: self.url(), ..OrsAddress::default() }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sessions that have begun and not ended.
    pub fn sessions(&self) -> usize {
        lock(&self.state).sessions.len()
    }

    /// Pings that came.
    pub fn pings(&self) -> usize {
        lock(&self.state).pings
    }

    /// Calls that were carried out.
    pub fn calls(&self) -> usize {
        lock(&self.state).calls
    }

    /// Ends all sessions.
    pub fn forget_sessions(&self) {
        lock(&self.state).sessions.clear();
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(mut stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut read = Vec::new();
    let head_end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut read).await? == 0 || read.len() > MOST_REQUEST {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&read[..head_end]).into_owned();
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let length: usize = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    while read.len() < head_end + 4 + length.min(MOST_REQUEST) {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
    let body: Value = serde_json::from_slice(&read[head_end + 4..]).unwrap_or(Value::Null);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let reply = lock(state).answer(path, header("x-session-id").unwrap_or_default(), &body);
    write(&mut stream, reply).await
}

async fn write(stream: &mut TcpStream, reply: Reply) -> io::Result<()> {
    let head = |status: u16, kind: &str, more: &str| {
        format!("HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}\r\n")
    };
    let events = "text/event-stream";
    match reply {
        Reply::Json(value) => stream.write_all(whole(200, &value).as_bytes()).await?,
        Reply::Status(status, value) => {
            stream.write_all(whole(status, &value).as_bytes()).await?;
        }
        Reply::Redirect => {
            stream.write_all(head(308, events, "location: /x\r\n").as_bytes()).await?;
        }
        Reply::Events(bytes) => {
            stream.write_all(head(200, events, "").as_bytes()).await?;
            stream.write_all(&bytes).await?;
        }
        Reply::CutEvents(bytes) => {
            stream.write_all(head(200, events, "content-length: 9999\r\n").as_bytes()).await?;
            stream.write_all(&bytes).await?;
        }
        Reply::Endless(kind, start, again) => {
            stream.write_all(head(200, kind, "").as_bytes()).await?;
            stream.write_all(&start).await?;
            loop {
                stream.write_all(again).await?;
                if again.len() < 100 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    stream.shutdown().await
}

fn whole(status: u16, value: &Value) -> String {
    let body = value.to_string();
    format!(
        "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn event(name: &str, data: &str) -> Vec<u8> {
    format!(": ping\r\n\r\nevent: {name}\r\ndata: {data}\r\n\r\n").into_bytes()
}

impl State {
    fn answer(&mut self, path: &str, session: &str, body: &Value) -> Reply {
        let none = || Reply::Status(404, json!({ "detail": "Active environment not found" }));
        let index = self.sessions.get(session).copied();
        match path {
            "/list_environments" => Reply::Json(json!(["sums"])),
            "/sums/splits" => Reply::Json(json!([
                { "name": "train", "type": "train" }, { "name": "test", "type": "test" },
            ])),
            "/sums/num_tasks" => match body["split"].as_str() {
                Some("train" | "test") => Reply::Json(json!({ "num_tasks": NUM_TASKS })),
                _ => Reply::Status(400, json!({ "detail": "Invalid split" })),
            },
            "/create_session" => {
                self.given += 1;
                let mut events = event("task_id", &format!("session-{}", self.given));
                events.extend(event("end", ""));
                Reply::Events(events)
            }
            "/create" => {
                let by_index = body["index"].as_u64().map(|index| index as usize);
                let index = by_index.filter(|index| *index < NUM_TASKS);
                match index.or(body["task_spec"]["n"].as_u64().map(|n| n as usize)) {
                    Some(index) => {
                        self.sessions.insert(session.to_owned(), index);
                        Reply::Json(json!({ "sid": session }))
                    }
                    None => Reply::Status(400, json!({ "detail": "Invalid index" })),
                }
            }
            "/ping" => {
                self.pings += 1;
                index.map_or_else(none, |_| Reply::Json(json!({ "status": "ok" })))
            }
            "/delete" | "/delete_session" => {
                self.sessions.remove(session);
                Reply::Json(json!({ "sid": session }))
            }
            "/sums/prompt" => match (self.fault, index) {
                (_, None) => none(),
                (Some(FakeFault::StallsPrompt), _) => {
                    Reply::Endless("application/json", b"[".to_vec(), b" ")
                }
                (Some(FakeFault::BabblesPrompt), _) => {
                    Reply::Endless("application/json", b"[".to_vec(), &[b' '; 4096])
                }
                (_, Some(index)) => {
                    let text = format!("What is {index} + 1?");
                    Reply::Json(json!([{ "text": text, "detail": null, "type": "text" }]))
                }
            },
            "/sums/task_tools" => index.map_or_else(none, |_| Reply::Json(tools())),
            "/sums/call" => match index {
                None => none(),
                Some(index) => self.call(index, body),
            },
            _ => Reply::Status(404, json!({ "detail": "Not Found" })),
        }
    }

    fn call(&mut self, index: usize, body: &Value) -> Reply {
        let known = body["task_id"].as_str().map(str::to_owned);
        let id = known.unwrap_or_else(|| {
            self.calls += 1;
            let id = format!("call-{}", self.calls);
            self.results.insert(id.clone(), result(index, body).to_string());
            id
        });
        let mut events = event("task_id", &id);
        let Some(result) = self.results.get(&id) else {
            events.extend(event("error", "unknown task_id"));
            return Reply::Events(events);
        };
        use FakeFault::*;
        match self.fault {
            Some(BreaksOffOnce) if self.broke_off.insert(id) => return Reply::CutEvents(events),
            Some(BreaksOff) => return Reply::CutEvents(events),
            Some(Stalls) => {
                // What it does not send it does not send for long.
                return Reply::Endless("text/event-stream", events, b"");
            }
            Some(Heartbeats) => return Reply::Endless("text/event-stream", events, b":\r\n\r\n"),
            Some(Floods) => {
                events.extend(b"event: chunk\ndata: ");
                return Reply::Endless("text/event-stream", events, &[b'x'; 4096]);
            }
            Some(Refuses) => {
                return Reply::Status(500, json!({ "detail": "Internal Server Error" }));
            }
            Some(Redirects) => return Reply::Redirect,
            Some(NoUtf8) => events.extend(b"event: end\ndata: \xff\xfe\n\n"),
            Some(Raises) => events.extend(event("error", "division by zero")),
            Some(NoJson) => events.extend(event("end", "<html>")),
            Some(DeepJson) => events.extend(event("end", &"[".repeat(40_000))),
            Some(InfiniteReward) => events.extend(event(
                "end",
                r#"{"ok":true,"output":{"blocks":[],"reward":1e999,"finished":true}}"#,
            )),
            Some(WrongTypes) => {
                events.extend(event("end", r#"{"ok":true,"output":{"blocks":7,"reward":"1"}}"#));
            }
            _ => {
                // In pieces, as long results come.
                let (start, end) = result.split_at(result.len() / 2);
                events.extend(event("chunk", start));
                events.extend(event("end", end));
            }
        }
        Reply::Events(events)
    }
}

fn tools() -> Value {
    let schema = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let number = json!({ "type": "integer" });
    json!({ "tools": [
        { "name": "add", "description": "Adds two numbers.",
          "input_schema": schema(json!({ "a": number, "b": number }), json!(["a", "b"])) },
        { "name": "answer", "description": "Gives the answer.",
          "input_schema": schema(json!({ "answer": { "type": "string" } }), json!(["answer"])) },
        { "name": "look", "description": "Shows a picture.", "input_schema": null },
    ] })
}

fn result(index: usize, body: &Value) -> Value {
    let done = |blocks: Value, reward: Value, finished: bool| {
        let output =
            json!({ "blocks": blocks, "metadata": null, "reward": reward, "finished": finished });
        json!({ "ok": true, "output": output })
    };
    let text = |text: String| json!([{ "text": text, "detail": null, "type": "text" }]);
    let input = &body["input"];
    match body["name"].as_str().unwrap_or_default() {
        "add" => match (input["a"].as_i64(), input["b"].as_i64()) {
            (Some(a), Some(b)) => done(text(a.wrapping_add(b).to_string()), Value::Null, false),
            _ => json!({ "ok": false, "error": "Tool input validation error: a, b" }),
        },
        "answer" => {
            let is_right = input["answer"].as_str() == Some(&(index + 1).to_string());
            let told = if is_right { "Correct!" } else { "Wrong!" };
            done(text(told.to_owned()), json!(f64::from(u8::from(is_right))), true)
        }
        "look" => {
            let picture = json!({ "data": "AAEC", "mimeType": "image/png", "type": "image" });
            done(json!([picture]), Value::Null, false)
        }
        name => json!({ "ok": false, "error": format!("'{name}' is not a valid tool") }),
    }
}
