//! A policy behind an OpenAI-compatible endpoint.

mod answer;
mod request;
mod server_kind;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, Seed, redaction};
use tokio::sync::Semaphore;

use self::answer::{Reading, told_usage};
use self::request::Body;
pub use self::server_kind::ServerKind;
use super::context_error::{ContextError, context_error};
use crate::back_off::BackOff;
use crate::error_chain;
use crate::spend::{Meter, PriceSource, Prices, SpendError};

/// Which endpoint, and how patiently it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpPolicyConfig {
    /// The address up to and without `/chat/completions`. Default `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// The model's name at the endpoint. Default `default`.
    pub model: String,
    /// The environment variable that holds the key. Default absent: no key is sent.
    pub api_key_env: Option<String>,
    /// Seconds that one request may take; less than a turn may, or a request that hangs is not
    /// sent again. Default 50.
    pub timeout_secs: u64,
    /// Requests that are with the endpoint at the same time; at least 1. Who waits for one to be over does so
    /// within the time of its turn. Default 64.
    pub concurrent_requests: usize,
    /// Requests per answer, the first one included; at least 1. Default 5.
    pub max_requests: u32,
    /// Milliseconds before the second request; each further wait is twice as long, up to 30
    /// seconds, and the endpoint's `Retry-After` is heeded up to 60. Default 500.
    pub retry_delay_ms: u64,
    /// The program behind the endpoint, and so what can be asked of it. Default `openai`.
    pub server: ServerKind,
    /// Whether vLLM was started with `--logprobs-mode processed_logprobs`, so that what it tells is fit for training at
    /// other temperatures than 1. Default false.
    pub processed_logprobs: bool,
    /// Tokens of the model's vocabulary; answers with others are refused. Default absent: whoever trains on them refuses
    /// them.
    pub vocabulary: Option<usize>,
    /// What its tokens cost: `{ input = 2.5, cached_input = 0.25, output = 10.0, currency = "USD" }` by the million, or
    /// the path of a TOML file with such a table for each model in its table `models`. Default absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceSource>,
}

impl Default for HttpPolicyConfig {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8000/v1".to_owned(),
            model: "default".to_owned(),
            api_key_env: None,
            timeout_secs: 50,
            concurrent_requests: 64,
            max_requests: 5,
            retry_delay_ms: 500,
            server: ServerKind::default(),
            processed_logprobs: false,
            vocabulary: None,
            prices: None,
        }
    }
}

impl HttpPolicyConfig {
    /// What its tokens cost; absent where that is unknown.
    ///
    /// # Errors
    ///
    /// [`SpendError`] when the prices cannot be read.
    pub fn prices(&self) -> Result<Option<Prices>, SpendError> {
        self.prices.as_ref().map(|source| source.of(&self.model)).transpose()
    }
}

/// A policy behind an OpenAI-compatible chat-completions endpoint.
///
/// What it can be asked depends on the [`ServerKind`]. One that shows no tokens is for evaluation and demonstrations; the
/// others lay conversations out themselves, and tell the tokens of prompts and answers. Where a prompt does not begin with
/// the tokens so far, since the server has read an answer otherwise than it was sampled, a new sample begins.
///
/// Choices are not sent to a server of the kind `openai`, which has no place for them: list them in the context.
#[derive(Debug, Clone)]
pub struct HttpPolicy {
    client: reqwest::Client,
    /// The address up to and without a path.
    base: String,
    key: Option<String>,
    /// One for each request that may be with the endpoint.
    requests: Arc<Semaphore>,
    config: HttpPolicyConfig,
    /// Counts what it is asked.
    meter: Option<Meter>,
}

const MAX_DELAY: Duration = Duration::from_secs(30);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

impl HttpPolicy {
    /// A policy behind the endpoint of `config`; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unsupported`] when the address is none, or the key's variable is not set.
    pub fn open(config: HttpPolicyConfig) -> Result<Self, PolicyError> {
        let refuse = |what: String| PolicyError::Unsupported { name: config.model.clone(), what };
        let base = config.base_url.trim_end_matches('/').to_owned();
        let parsed = reqwest::Url::parse(&base)
            .map_err(|error| refuse(format!("answers at `{}`: {error}", config.base_url)))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(refuse(format!("answers at `{}`: not http or https", config.base_url)));
        }
        let key = match &config.api_key_env {
            Some(name) => Some(std::env::var(name).map_err(|_| {
                refuse(format!("answers: environment variable `{name}` with its key is not set"))
            })?),
            None => None,
        };
        if let (Some(key), Some(name)) = (&key, &config.api_key_env)
            && let Err(error) = redaction::keep(name, key)
        {
            // Servers of one's own take any word for a key.
            tracing::info!(%error, "a key is no secret");
        }
        if let Some(password) = parsed.password()
            && let Err(error) = redaction::keep("password of base_url", password)
        {
            tracing::info!(%error, "a password is no secret");
        }
        if config.max_requests == 0 {
            return Err(refuse("answers: max_requests is 0, must be at least 1".to_owned()));
        }
        if !(1..=Semaphore::MAX_PERMITS).contains(&config.concurrent_requests) {
            let found = config.concurrent_requests;
            let what = format!("answers: concurrent_requests is {found}, must be at least 1");
            return Err(refuse(what));
        }
        if config.processed_logprobs && config.server != ServerKind::Vllm {
            let what = "answers: processed_logprobs has no effect unless server is `vllm`";
            return Err(refuse(what.to_owned()));
        }
        if config.vocabulary.is_some() && !config.server.tells_tokens() {
            let what = "answers: vocabulary has no effect: a server `openai` shows no tokens";
            return Err(refuse(what.to_owned()));
        }
        let requests = Arc::new(Semaphore::new(config.concurrent_requests));
        // The process may have chosen another provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(config.timeout_secs))
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| refuse(format!("answers over HTTP: {}", error_chain(&error))))?;
        Ok(Self { client, base, key, requests, config, meter: None })
    }

    /// The same with all that it is asked counted and limited, requests that are sent again among it.
    #[must_use]
    pub fn metered(self, meter: Meter) -> Self {
        Self { meter: Some(meter), ..self }
    }

    /// Sends one request to an address, for an answer of at most `max_tokens`.
    async fn ask<T: DeserializeOwned>(
        &self,
        url: &str,
        body: &impl Serialize,
        max_tokens: usize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::Final(self.nonsense(format!("the request: {error}"))))?;
        let num_bytes = body.len() as u64;
        let mut request =
            self.client.post(url).header("content-type", "application/json").body(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let broken =
            |error: reqwest::Error| Failure::Passing(self.unreachable(error_chain(&error)), None);
        let _permit = self.requests.acquire().await.expect("the semaphore is never closed");
        // What does not sample costs nothing.
        let mut reservation = match &self.meter {
            Some(meter) if max_tokens > 0 => {
                // A token stands for one byte at the least.
                let reserved = meter.reserve(num_bytes, max_tokens as u64).await;
                Some(reserved.map_err(Failure::Final)?)
            }
            _ => None,
        };
        let sent = request.send().await;
        if sent.as_ref().is_err_and(reqwest::Error::is_connect)
            && let Some(reservation) = reservation.take()
        {
            // It never arrived.
            reservation.fail();
        }
        let mut response = sent.map_err(broken)?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok())
            .map(Duration::from_secs);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            let most = self.config.server.max_body_bytes();
            if bytes.len() + chunk.len() > most {
                let detail = format!("more than {most} bytes");
                return Err(Failure::Final(self.nonsense(detail)));
            }
            bytes.extend_from_slice(&chunk);
        }
        if let Some(reservation) = reservation {
            match told_usage(&bytes) {
                Some(told) => reservation.settle(told),
                None if status.is_client_error() => reservation.fail(),
                // Nobody knows what it took: a server may fail behind the tokens that it charges for.
                None => drop(reservation),
            }
        }
        let detail = || format!("status {status}: {}", excerpt(&bytes));
        let answer: Option<Result<T, _>> =
            status.is_success().then(|| serde_json::from_slice(&bytes));
        let misread = match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) => Some(error),
            None => None,
        };
        if may_be_context(status)
            && let Some(full) = context_error(&bytes, max_tokens)
        {
            return Err(Failure::Final(self.full(full, max_tokens)));
        }
        if !status.is_success() && is_refusal(&bytes) {
            let name = self.config.model.clone();
            let detail = redaction::told(detail());
            return Err(Failure::Final(PolicyError::Refused { name, detail }));
        }
        if status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT
        {
            return Err(Failure::Passing(self.unreachable(detail()), retry_after));
        }
        Err(Failure::Final(self.nonsense(match misread {
            Some(error) => format!("{error} in: {}", excerpt(&bytes)),
            None => detail(),
        })))
    }

    /// The conversation is too long; or answers as long as they were asked for never fit.
    fn full(&self, error: ContextError, max_tokens: usize) -> PolicyError {
        let ContextError { tokens, limit } = error;
        match limit {
            Some(limit) if limit <= max_tokens => PolicyError::Unsupported {
                name: self.config.model.clone(),
                what: format!("answers of {max_tokens} tokens: its context has {limit}"),
            },
            _ => PolicyError::ContextFull { tokens, limit },
        }
    }

    fn unreachable(&self, detail: String) -> PolicyError {
        let detail = redaction::told(detail);
        PolicyError::Unreachable { name: self.config.model.clone(), detail }
    }

    fn nonsense(&self, detail: String) -> PolicyError {
        let detail = redaction::told(detail);
        PolicyError::Nonsense { name: self.config.model.clone(), detail }
    }
}

#[async_trait]
impl Policy for HttpPolicy {
    fn name(&self) -> &str {
        &self.config.model
    }

    fn is_endpoint(&self) -> bool {
        true
    }

    fn encode(&self, _before: Option<&Message>, _message: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let body = Body::new(&self.config.model, self.config.server, &request)?;
        let url = format!("{}/{}", self.base, body.path());
        let answer = self.ask_again(&url, &body, body.max_tokens, request.seed).await?;
        let reading = Reading {
            author: &self.config.model,
            server: self.config.server,
            processed_logprobs: self.config.processed_logprobs,
            vocabulary: self.config.vocabulary,
            request: &request,
        };
        let mut completion = reading.read(answer).map_err(|detail| self.nonsense(detail))?;
        if body.path() == "completions" {
            completion.text.insert_str(0, &self.text_of(&request).await?);
        }
        Ok(completion)
    }
}

impl HttpPolicy {
    /// Sends a request until there is an answer, or too often.
    async fn ask_again<T: DeserializeOwned>(
        &self,
        url: &str,
        body: &impl Serialize,
        max_tokens: usize,
        seed: Seed,
    ) -> Result<T, PolicyError> {
        let delay = Duration::from_millis(self.config.retry_delay_ms);
        let mut back_off = BackOff::new(delay, MAX_DELAY, seed);
        for remaining in (0..self.config.max_requests).rev() {
            match self.ask(url, body, max_tokens).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(error, _)) if remaining == 0 => return Err(error),
                Err(Failure::Passing(error, retry_after)) => {
                    tracing::warn!(%error, remaining, "asking again");
                    let wait = match retry_after {
                        Some(told) => back_off.next_of(told.min(MAX_RETRY_AFTER)),
                        None => back_off.next(),
                    };
                    tokio::time::sleep(wait).await;
                }
            }
        }
        Err(self.unreachable("no request was allowed".to_owned()))
    }

    /// What the answer begins with as text, which the server knows.
    async fn text_of(&self, request: &CompletionRequest) -> Result<String, PolicyError> {
        #[derive(Deserialize)]
        struct Told {
            prompt: String,
        }
        let url = format!("{}/detokenize", self.base.strip_suffix("/v1").unwrap_or(&self.base));
        let body = serde_json::json!({ "model": self.config.model, "tokens": request.partial.ids });
        let told: Told = self.ask_again(&url, &body, 0, request.seed.derive("text", 0)).await?;
        Ok(told.prompt)
    }
}

/// Whether an error of this status may be about the length of the conversation: llama.cpp has told it
/// with 200, 400 and 500. What is about access or the rate of requests is not.
fn may_be_context(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
    )
}

/// The codes by which endpoints tell that a filter held a conversation back: those of OpenAI, Azure and Alibaba.
const REFUSALS: [&str; 5] = [
    "content_filter",
    "content_policy_violation",
    "ResponsibleAIPolicyViolation",
    "invalid_prompt",
    "data_inspection_failed",
];

/// Whether an error says, by a code and not in words, that the conversation is refused for what is said in it.
fn is_refusal(bytes: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(bytes) else { return false };
    let error = body.get("error").unwrap_or(&body);
    let codes = ["/code", "/type", "/innererror/code"].map(|pointer| error.pointer(pointer));
    let mut told = codes.into_iter().flatten().filter_map(serde_json::Value::as_str);
    told.any(|code| REFUSALS.contains(&code))
}

enum Failure {
    /// Asking again may help, after this long if the endpoint said so.
    Passing(PolicyError, Option<Duration>),
    /// Asking again will not help.
    Final(PolicyError),
}

/// The beginning of what an endpoint said, fit for one line.
fn excerpt(bytes: &[u8]) -> String {
    // Before it is cut: of a part of a secret nobody could tell that it is one.
    let text = redaction::told(String::from_utf8_lossy(&bytes[..bytes.len().min(8000)]));
    let text: String =
        text.chars().take(160).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().is_empty() { "(an empty body)".to_owned() } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests;
