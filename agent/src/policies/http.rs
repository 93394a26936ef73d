//! A policy behind an OpenAI-compatible endpoint.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde::{Deserialize, Serialize};
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, StopCause};
use tokio::sync::Semaphore;

use super::context_error::{ContextError, context_error};
use crate::back_off::BackOff;
use crate::error_chain;

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
        }
    }
}

/// A policy behind an OpenAI-compatible chat-completions endpoint.
///
/// It works on text: it has no tokens, so its episodes are for evaluation and demonstrations.
/// Choices are not sent: an endpoint cannot be held to them, so list them in the context.
#[derive(Debug, Clone)]
pub struct HttpPolicy {
    client: reqwest::Client,
    url: String,
    key: Option<String>,
    /// One for each request that may be with the endpoint.
    requests: Arc<Semaphore>,
    config: HttpPolicyConfig,
}

/// Bytes of an answer that are read at the most.
const MAX_BODY_BYTES: usize = 16 << 20;
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
        let url = format!("{}/chat/completions", config.base_url.trim_end_matches('/'));
        let parsed = reqwest::Url::parse(&url)
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
        if config.max_requests == 0 {
            return Err(refuse("answers: max_requests is 0, must be at least 1".to_owned()));
        }
        if !(1..=Semaphore::MAX_PERMITS).contains(&config.concurrent_requests) {
            let found = config.concurrent_requests;
            let what = format!("answers: concurrent_requests is {found}, must be at least 1");
            return Err(refuse(what));
        }
        let requests = Arc::new(Semaphore::new(config.concurrent_requests));
        // The process may have chosen another provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(config.timeout_secs))
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| refuse(format!("answers over HTTP: {}", error_chain(&error))))?;
        Ok(Self { client, url, key, requests, config })
    }

    /// Sends one request.
    async fn ask(&self, body: &Body<'_>) -> Result<Answer, Failure> {
        let max_tokens = body.max_tokens;
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::Final(self.nonsense(format!("the request: {error}"))))?;
        let mut request =
            self.client.post(&self.url).header("content-type", "application/json").body(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let broken =
            |error: reqwest::Error| Failure::Passing(self.unreachable(error_chain(&error)), None);
        let _permit = self.requests.acquire().await.expect("the semaphore is never closed");
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok())
            .map(Duration::from_secs);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if bytes.len() + chunk.len() > MAX_BODY_BYTES {
                let detail = format!("more than {MAX_BODY_BYTES} bytes");
                return Err(Failure::Final(self.nonsense(detail)));
            }
            bytes.extend_from_slice(&chunk);
        }
        let detail = || format!("status {status}: {}", excerpt(&bytes));
        let answer: Option<Result<Answer, _>> =
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
        PolicyError::Unreachable { name: self.config.model.clone(), detail }
    }

    fn nonsense(&self, detail: String) -> PolicyError {
        PolicyError::Nonsense { name: self.config.model.clone(), detail }
    }
}

#[async_trait]
impl Policy for HttpPolicy {
    fn name(&self) -> &str {
        &self.config.model
    }

    fn encode(&self, _before: Option<&Message>, _message: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        request.refuse_all_but_choices(self.name())?;
        let delay = Duration::from_millis(self.config.retry_delay_ms);
        let mut back_off = BackOff::new(delay, MAX_DELAY, request.seed);
        let body = Body {
            model: &self.config.model,
            messages: request.messages.iter().map(|message| message.to_openai()).collect(),
            temperature: request.sampling.temperature,
            top_k: request.sampling.top_k,
            top_p: Some(request.sampling.top_p).filter(|top_p| *top_p < 1.0),
            min_p: Some(request.sampling.min_p).filter(|min_p| *min_p > 0.0),
            max_tokens: request.sampling.max_tokens,
            // Endpoints take a signed 32-bit number at the least.
            seed: (request.seed.as_u64() >> 33) as u32,
        };
        for remaining in (0..self.config.max_requests).rev() {
            match self.ask(&body).await {
                Ok(answer) => return self.read(answer),
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
}

impl HttpPolicy {
    fn read(&self, answer: Answer) -> Result<Completion, PolicyError> {
        let Some(choice) = answer.choices.into_iter().next() else {
            return Err(self.nonsense("an answer without choices".to_owned()));
        };
        let stop = match choice.finish_reason.as_deref() {
            Some("stop") => StopCause::EndOfTurn,
            Some("length") => StopCause::Length,
            Some("tool_calls" | "function_call") => StopCause::ToolCalls,
            Some("content_filter") => StopCause::Filtered,
            _ => StopCause::Unknown,
        };
        let text = choice.message.content.unwrap_or_default();
        let reported_tokens = answer.usage.and_then(|usage| usage.completion_tokens);
        Ok(Completion { reported_tokens, ..Completion::new(&*self.config.model, text, stop) })
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

enum Failure {
    /// Asking again may help, after this long if the endpoint said so.
    Passing(PolicyError, Option<Duration>),
    /// Asking again will not help.
    Final(PolicyError),
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<serde_json::Value>,
    temperature: f32,
    /// An extension of vLLM, SGLang and this project; sent only where it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    /// An extension as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f32>,
    max_tokens: usize,
    seed: u32,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    completion_tokens: Option<usize>,
}

#[derive(Deserialize)]
struct Choice {
    message: AnswerMessage,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct AnswerMessage {
    /// Null where the model only reasoned; an answer without words, which the parser judges.
    content: Option<String>,
}

/// The beginning of what an endpoint said, fit for one line.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(800)]);
    let text: String =
        text.chars().take(160).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().is_empty() { "(an empty body)".to_owned() } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use spar_core::{Role, Seed};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What the endpoint does with the request of this number, from 0.
    type Script = fn(usize) -> Deed;

    enum Deed {
        Answer(&'static str, &'static str),
        Hang,
        HangUp,
    }

    const GOOD: Deed = Deed::Answer(
        "200 OK",
        r#"{"id":"x","choices":[{"message":{"role":"assistant","content":"go"},"finish_reason":"stop"}]}"#,
    );

    /// A real endpoint on a free port.
    async fn serve(script: Script) -> (HttpPolicyConfig, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    let mut buffer = [0; 4096];
                    // The body is one JSON object, so it ends with a brace.
                    while !seen.ends_with(b"}") {
                        match stream.read(&mut buffer).await {
                            Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                            _ => return,
                        }
                    }
                    let seen = String::from_utf8(seen).unwrap();
                    assert!(seen.starts_with("POST /v1/chat/completions "), "{seen}");
                    assert!(seen.contains(r#"{"role":"user","content":"a room"}"#), "{seen}");
                    match script(counter.fetch_add(1, Ordering::SeqCst)) {
                        Deed::Answer(status, body) => {
                            let length = body.len();
                            let text = format!(
                                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                            );
                            stream.write_all(text.as_bytes()).await.unwrap();
                        }
                        Deed::Hang => std::future::pending().await,
                        Deed::HangUp => {}
                    }
                });
            }
        });
        let config = HttpPolicyConfig {
            base_url,
            timeout_secs: 1,
            max_requests: 3,
            retry_delay_ms: 1,
            ..HttpPolicyConfig::default()
        };
        (config, requests)
    }

    fn request() -> CompletionRequest {
        CompletionRequest {
            messages: vec![Arc::new(Message::new(Role::User, "a room"))],
            ..CompletionRequest::new(1, Seed::from_u64(0))
        }
    }

    async fn ask(script: Script) -> (Result<Completion, PolicyError>, usize) {
        let (config, requests) = serve(script).await;
        let result = HttpPolicy::open(config).unwrap().complete(request()).await;
        (result, requests.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn only_so_many_requests_are_with_the_endpoint() {
        let (config, requests) = serve(|_| Deed::Hang).await;
        let config = HttpPolicyConfig { concurrent_requests: 2, max_requests: 1, ..config };
        let policy = HttpPolicy::open(config).unwrap();
        let asking = futures::future::join_all((0..3).map(|_| policy.complete(request())));
        let early = tokio::time::timeout(Duration::from_millis(500), asking).await;
        assert!(early.is_err(), "the endpoint hangs");
        assert_eq!(requests.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn an_answer_is_read() {
        let (result, requests) = ask(|_| GOOD).await;
        let completion = result.unwrap();
        assert_eq!((completion.text.as_str(), completion.stop), ("go", StopCause::EndOfTurn));
        assert_eq!((completion.author.as_str(), requests), ("default", 1));
        assert!(completion.tokens.ids.is_empty());
    }

    #[tokio::test]
    async fn what_passes_is_asked_again() {
        let (result, requests) = ask(|number| match number {
            0 => Deed::Answer("429 Too Many Requests\r\nretry-after: 0", "slow down"),
            1 => Deed::HangUp,
            _ => GOOD,
        })
        .await;
        assert_eq!((result.unwrap().text.as_str(), requests), ("go", 3));
    }

    #[tokio::test]
    async fn asking_again_has_an_end() {
        let (result, requests) = ask(|_| Deed::Answer("500 Oh", "no luck")).await;
        let error = result.unwrap_err();
        assert!(error.is_transient());
        assert!(error.to_string().contains("no luck"), "{error}");
        assert_eq!(requests, 3);
    }

    #[tokio::test]
    async fn an_endpoint_that_hangs_is_given_up() {
        let (result, requests) = ask(|number| if number == 0 { Deed::Hang } else { GOOD }).await;
        assert_eq!((result.unwrap().text.as_str(), requests), ("go", 2));
    }

    #[tokio::test]
    async fn nonsense_is_told_apart_and_not_asked_again() {
        let bodies: [Script; 4] = [
            |_| Deed::Answer("200 OK", "<html>\n</html>"),
            |_| Deed::Answer("200 OK", r#"{"choices":[]}"#),
            |_| Deed::Answer("200 OK", ""),
            |_| Deed::Answer("404 Not Found", "no such model"),
        ];
        for body in bodies {
            let (result, requests) = ask(body).await;
            let error = result.unwrap_err();
            assert!(matches!(error, PolicyError::Nonsense { .. }), "{error}");
            assert_eq!(requests, 1);
        }
    }

    #[tokio::test]
    async fn a_conversation_that_is_too_long_is_told_as_such_and_not_asked_again() {
        let bodies: [Script; 3] = [
            |_| {
                Deed::Answer(
                    "400 Bad Request",
                    r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 4120 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                )
            },
            |_| {
                Deed::Answer(
                    "500 Internal Server Error",
                    r#"{"error":{"code":500,"message":"the request exceeds the available context size.","type":"exceed_context_size_error","n_prompt_tokens":4056,"n_ctx":4096}}"#,
                )
            },
            |_| {
                Deed::Answer(
                    "200 OK",
                    r#"{"error":{"code":400,"message":"request (4056 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
                )
            },
        ];
        for body in bodies {
            let (result, requests) = ask(body).await;
            let error = result.unwrap_err();
            let PolicyError::ContextFull { tokens: Some(4120), limit: Some(4096) } = error else {
                panic!("{error:?}");
            };
            assert_eq!(requests, 1);
        }
        // Where no answer of this length fits, no conversation is to blame.
        let (result, _) = ask(|_| {
            Deed::Answer("400 Bad Request", r#"{"message":"maximum context length is 64 tokens"}"#)
        })
        .await;
        assert!(matches!(result, Err(PolicyError::Unsupported { .. })), "{result:?}");
        // Words in an answer are the policy's own.
        let (result, _) = ask(|_| {
            Deed::Answer(
                "200 OK",
                r#"{"choices":[{"message":{"content":"maximum context length is 1"}}]}"#,
            )
        })
        .await;
        assert_eq!(result.unwrap().stop, StopCause::Unknown);
    }

    #[tokio::test]
    async fn why_an_answer_ended_and_how_long_it_is_are_kept() {
        let cut_off = |_: usize| {
            Deed::Answer(
                "200 OK",
                r#"{"choices":[{"message":{"content":"go"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":64}}"#,
            )
        };
        let completion = ask(cut_off).await.0.unwrap();
        assert_eq!((completion.stop, completion.num_tokens()), (StopCause::Length, Some(64)));
        let filtered = |_: usize| {
            Deed::Answer(
                "200 OK",
                r#"{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}"#,
            )
        };
        let completion = ask(filtered).await.0.unwrap();
        assert_eq!((completion.stop, completion.num_tokens()), (StopCause::Filtered, None));
    }

    #[tokio::test]
    async fn nobody_there_is_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let config = HttpPolicyConfig { base_url, max_requests: 1, ..HttpPolicyConfig::default() };
        let request = CompletionRequest::new(1, Seed::from_u64(0));
        let error = HttpPolicy::open(config).unwrap().complete(request).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
    }

    #[test]
    fn a_wrong_configuration_is_refused_before_anything_is_sent() {
        let open = |config| HttpPolicy::open(config).unwrap_err().to_string();
        let default = HttpPolicyConfig::default;
        assert!(
            open(HttpPolicyConfig { base_url: "nowhere".into(), ..default() }).contains("nowhere")
        );
        assert!(open(HttpPolicyConfig { base_url: "ftp://x".into(), ..default() }).contains("ftp"));
        let api_key_env = Some("SPAR_TEST_NO_SUCH_KEY".to_owned());
        assert!(open(HttpPolicyConfig { api_key_env, ..default() }).contains("NO_SUCH_KEY"));
    }
}
