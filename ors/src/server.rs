//! A server, and what can be asked of it without a session.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use crate::events::EventReader;
use crate::{OrsError, OrsFault, OrsLimits, OrsSession, OrsSplit};

/// How often a request is sent that could not be delivered, or a stream taken up again that broke off.
const TRIES: u32 = 4;
/// Characters of a server's words within messages.
const MOST_QUOTED: usize = 400;
/// Bytes that are read of an answer that is no success.
const MOST_REFUSAL: usize = 4096;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrsAddress {
    /// What it is called in messages.
    pub name: String,
    /// Its URL, `http` or `https`.
    pub url: String,
    /// What is sent with every request beside what the standard has, by the header's name.
    pub headers: BTreeMap<String, String>,
    /// What its environments are given as secrets, by name.
    pub secrets: BTreeMap<String, String>,
}

/// Which task a session is about.
#[derive(Debug, Clone, PartialEq)]
pub enum OrsTaskChoice {
    /// One of the server's own.
    Index {
        /// The split.
        split: String,
        /// Which of it, from 0.
        index: usize,
    },
    /// One that is told in the server's own form.
    Spec(Map<String, Value>),
}

/// A server. Clones share its connections.
#[derive(Debug, Clone)]
pub struct OrsServer {
    name: String,
    url: Url,
    client: Client,
    secrets: BTreeMap<String, String>,
    pub(crate) limits: OrsLimits,
}

/// What is asked for.
pub(crate) struct Ask<'a> {
    /// For messages: what the server is to do.
    pub(crate) doing: &'a str,
    pub(crate) method: Method,
    pub(crate) path: &'a [&'a str],
    pub(crate) session: Option<&'a str>,
    pub(crate) body: Option<Value>,
}

/// Why a stream of events gave no result.
enum StreamEnd {
    /// It broke off, and may be taken up again.
    BrokeOff(OrsError),
    Failed(OrsError),
}

impl From<OrsError> for StreamEnd {
    fn from(error: OrsError) -> Self {
        Self::Failed(error)
    }
}

impl OrsServer {
    /// A server at an address; nothing is asked of it yet.
    ///
    /// # Errors
    ///
    /// [`OrsError`] when the URL or a header is none.
    pub fn new(at: &OrsAddress, limits: OrsLimits) -> Result<Self, OrsError> {
        let refuse = |detail: String| OrsError {
            server: at.name.clone(),
            fault: OrsFault::Address { detail },
        };
        let url: Url =
            at.url.parse().map_err(|error| refuse(format!("`{}` is no URL: {error}", at.url)))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(refuse(format!("`{}` is no URL of http or https", at.url)));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &at.headers {
            let parsed: Result<HeaderName, _> = name.parse();
            let name = parsed.map_err(|_| refuse(format!("`{name}` is no name of a header")))?;
            // What the value is may be a secret.
            let parsed = HeaderValue::from_str(value);
            let mut value =
                parsed.map_err(|_| refuse(format!("the value of header `{name}` is none")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // The process may have chosen another provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(limits.request)
            // Headers may be secrets, and are for this server alone.
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers)
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        let (name, secrets) = (at.name.clone(), at.secrets.clone());
        Ok(Self { name, url, client, secrets, limits })
    }

    /// Its environments, the first of which is the one that is meant where none is named.
    ///
    /// # Errors
    ///
    /// [`OrsError`] when it does not tell them.
    pub async fn environments(&self) -> Result<Vec<String>, OrsError> {
        let doing = "list its environments";
        let found: Vec<String> =
            self.list(doing, Method::GET, &["list_environments"], None).await?;
        match found.len() {
            0 => Err(self.no_answer(doing, "there are none")),
            _ => self.bounded(doing, found),
        }
    }

    /// The splits of an environment's tasks.
    ///
    /// # Errors
    ///
    /// [`OrsError`] when it does not tell them.
    pub async fn splits(&self, environment: &str) -> Result<Vec<OrsSplit>, OrsError> {
        let doing = "list its splits";
        let found = self.list(doing, Method::GET, &[environment, "splits"], None).await?;
        self.bounded(doing, found)
    }

    /// How many tasks a split has.
    ///
    /// # Errors
    ///
    /// [`OrsError`] when it does not tell that.
    pub async fn num_tasks(&self, environment: &str, split: &str) -> Result<usize, OrsError> {
        #[derive(Deserialize)]
        struct Count {
            num_tasks: usize,
        }
        let body = Some(json!({ "split": split }));
        let doing = "count its tasks";
        let path = [environment, "num_tasks"];
        let Count { num_tasks } = self.list(doing, Method::POST, &path, body).await?;
        Ok(num_tasks)
    }

    /// Begins a session, and learns its prompt and tools.
    ///
    /// # Errors
    ///
    /// [`OrsError`] when it could not be begun in time.
    pub async fn begin(
        &self,
        environment: &str,
        task: &OrsTaskChoice,
    ) -> Result<OrsSession, OrsError> {
        let mut body = match task {
            OrsTaskChoice::Index { split, index } => json!({ "split": split, "index": index }),
            OrsTaskChoice::Spec(spec) => json!({ "task_spec": spec }),
        };
        body["env_name"] = environment.into();
        if !self.secrets.is_empty() {
            body["secrets"] = json!(self.secrets);
        }
        let limit = self.limits.start;
        let begun = timeout(limit, OrsSession::begin(self.clone(), environment, body)).await;
        begun.unwrap_or_else(|_| Err(self.late("begin a session", limit)))
    }

    /// Asks for something that takes no longer than a list.
    async fn list<T: DeserializeOwned>(
        &self,
        doing: &str,
        method: Method,
        path: &[&str],
        body: Option<Value>,
    ) -> Result<T, OrsError> {
        let ask = Ask { doing, method, path, session: None, body };
        self.within(self.limits.request, doing, self.ask(ask)).await
    }

    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        doing: &str,
        asked: impl Future<Output = Result<T, OrsError>>,
    ) -> Result<T, OrsError> {
        timeout(limit, asked).await.unwrap_or_else(|_| Err(self.late(doing, limit)))
    }

    /// Asks for an answer in JSON. Whoever asks sets it a time.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<T, OrsError> {
        let mut response = self.send(&ask, "application/json").await?;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|e| self.broken(ask.doing, &e))? {
            if body.len() + bytes.len() > self.limits.answer_bytes {
                return Err(self.too_long(ask.doing));
            }
            body.extend_from_slice(&bytes);
        }
        serde_json::from_slice(&body).map_err(|e| self.no_answer(ask.doing, &e.to_string()))
    }

    /// Asks for something that is answered by events: the id of the task, and the text of its result. A stream that breaks
    /// off is taken up again by that id, and never asked for twice.
    pub(crate) async fn ask_events(
        &self,
        mut ask: Ask<'_>,
    ) -> Result<(Option<String>, String), OrsError> {
        let mut id = None;
        let mut tries = 0;
        loop {
            if let (Some(id), Some(body)) = (&id, &mut ask.body) {
                body["task_id"] = Value::from(String::clone(id));
            }
            match self.follow(&ask, &mut id).await {
                Ok(text) => return Ok((id, text)),
                Err(StreamEnd::BrokeOff(error)) => {
                    tries += 1;
                    if id.is_none() || tries >= TRIES {
                        return Err(error);
                    }
                }
                Err(StreamEnd::Failed(error)) => return Err(error),
            }
            sleep(pause(tries)).await;
        }
    }

    /// Reads the events of one answer.
    async fn follow(&self, ask: &Ask<'_>, id: &mut Option<String>) -> Result<String, StreamEnd> {
        let doing = ask.doing;
        let limit = self.limits.silence;
        let silent = || OrsFault::Silent { doing: doing.to_owned(), limit };
        let sent = timeout(limit, self.send(ask, "text/event-stream")).await;
        let mut response = sent.map_err(|_| self.error(silent()))??;
        let (mut reader, mut result, mut taken) = (EventReader::default(), String::new(), 0);
        loop {
            let chunk = timeout(limit, response.chunk()).await;
            let chunk = chunk.map_err(|_| self.error(silent()))?;
            let Some(bytes) = chunk.map_err(|e| StreamEnd::BrokeOff(self.broken(doing, &e)))?
            else {
                let detail = "the stream of its events ended before the result".to_owned();
                let fault = OrsFault::Broken { doing: doing.to_owned(), detail };
                return Err(StreamEnd::BrokeOff(self.error(fault)));
            };
            // Half of it for what stands around the data, and for heartbeats.
            taken += bytes.len();
            if taken > self.limits.answer_bytes.saturating_mul(2) {
                return Err(self.too_long(doing).into());
            }
            for event in reader.push(&bytes).map_err(|detail| self.no_answer(doing, &detail))? {
                match event.name.as_str() {
                    "task_id" => *id = Some(event.data.trim().to_owned()),
                    "chunk" | "end" => {
                        if result.len() + event.data.len() > self.limits.answer_bytes {
                            return Err(self.too_long(doing).into());
                        }
                        result.push_str(&event.data);
                        if event.name == "end" {
                            return Ok(result);
                        }
                    }
                    "error" => {
                        let (doing, message) = (doing.to_owned(), shortened(&event.data));
                        return Err(self.error(OrsFault::Raised { doing, message }).into());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Sends a request, again where it could not be delivered, and looks at the status of the answer.
    async fn send(&self, ask: &Ask<'_>, accept: &'static str) -> Result<Response, OrsError> {
        let mut url = self.url.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(ask.path),
            Err(()) => unreachable!("URLs of http have paths"),
        };
        let mut tries = 0;
        let mut response = loop {
            let mut request =
                self.client.request(ask.method.clone(), url.clone()).header(ACCEPT, accept);
            if let Some(session) = ask.session {
                request = request.header("X-Session-ID", session);
            }
            if let Some(body) = &ask.body {
                request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
            }
            tries += 1;
            match request.send().await {
                Ok(response) => break response,
                // It never arrived.
                Err(error) if error.is_connect() && tries < TRIES => sleep(pause(tries)).await,
                Err(error) => return Err(self.broken(ask.doing, &error)),
            }
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let mut body = Vec::new();
        while body.len() < MOST_REFUSAL
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(MOST_REFUSAL)]);
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        let detail = serde_json::from_str::<Value>(&body).ok();
        let message = match detail.as_ref().and_then(|it| it.get("detail")) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => body,
        };
        let (doing, message) = (ask.doing.to_owned(), shortened(&message));
        Err(self.error(OrsFault::Status { doing, status: status.as_u16(), message }))
    }

    pub(crate) fn bounded<T>(&self, doing: &str, items: Vec<T>) -> Result<Vec<T>, OrsError> {
        let most = self.limits.items;
        match items.len() > most {
            true => Err(self.no_answer(doing, &format!("they are more than {most}"))),
            false => Ok(items),
        }
    }

    pub(crate) fn error(&self, fault: OrsFault) -> OrsError {
        OrsError { server: self.name.clone(), fault }
    }

    pub(crate) fn no_answer(&self, doing: &str, detail: &str) -> OrsError {
        self.error(OrsFault::Answer { doing: doing.to_owned(), detail: shortened(detail) })
    }

    fn late(&self, doing: &str, limit: Duration) -> OrsError {
        self.error(OrsFault::Late { doing: doing.to_owned(), limit })
    }

    fn too_long(&self, doing: &str) -> OrsError {
        let bytes = self.limits.answer_bytes;
        self.error(OrsFault::TooLong { doing: doing.to_owned(), bytes })
    }

    fn broken(&self, doing: &str, error: &reqwest::Error) -> OrsError {
        let mut detail = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            detail = format!("{detail}: {inner}");
            source = inner.source();
        }
        self.error(OrsFault::Broken { doing: doing.to_owned(), detail: shortened(&detail) })
    }
}

fn pause(tries: u32) -> Duration {
    Duration::from_millis(100) * 2_u32.pow(tries.min(6))
}

/// The start of a text, as messages quote it.
fn shortened(text: &str) -> String {
    let mut start: String = text.chars().take(MOST_QUOTED).collect();
    if start.len() < text.len() {
        start.push_str(" ...");
    }
    start
}
