//! Which path does what.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use spar_core::Seed;
use spar_policy::GenerateError;
use tokio::sync::{Mutex, Semaphore};

use crate::answer::ToolFormat;
use crate::api_error::ApiError;
use crate::body::{self, AnswerBody};
use crate::metrics::ServerMetrics;
use crate::{ServeError, ServedModel, ServerConfig, prompt, respond, weights, wire};

/// All that answers need.
pub(crate) struct Service {
    pub(crate) model: ServedModel,
    pub(crate) config: ServerConfig,
    pub(crate) metrics: ServerMetrics,
    pub(crate) tool_format: ToolFormat,
    /// When the server was started, in seconds since 1970.
    pub(crate) started: u64,
    /// Hash of the key, so that comparing takes the same time wherever they differ.
    key: Option<blake3::Hash>,
    /// Numbers requests.
    requests: AtomicU64,
    /// What seeds of requests without one derive from.
    entropy: Seed,
    /// Checkpoints are loaded one at a time.
    loading: Mutex<()>,
    /// Room for work on threads apart.
    apart: Arc<Semaphore>,
}

/// Bytes of a body that is worked on where it was read: parsing and tokenising it takes about a millisecond.
const SMALL_BODY: usize = 16 << 10;

/// Paths, with their methods.
const PATHS: [(&str, &str); 9] = [
    ("/v1/chat/completions", "POST"),
    ("/v1/completions", "POST"),
    ("/v1/models", "GET"),
    ("/tokenize", "POST"),
    ("/detokenize", "POST"),
    ("/weights", "GET, POST"),
    ("/health", "GET"),
    ("/metrics", "GET"),
    ("/version", "GET"),
];

impl Service {
    /// The service of a model.
    pub(crate) fn new(model: ServedModel, mut config: ServerConfig) -> Result<Self, ServeError> {
        if let Some(root) = &mut config.weights_root {
            let failed = |source| ServeError::WeightsRoot { path: root.clone(), source };
            *root = root.canonicalize().map_err(failed)?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        // Randomly keyed by the standard library.
        let state = std::collections::hash_map::RandomState::new();
        let random = std::hash::BuildHasher::hash_one(&state, now.as_nanos());
        Ok(Self {
            tool_format: config.tool_format.unwrap_or_else(|| prompt::tool_format(&model)),
            key: config.api_key.as_ref().map(|key| blake3::hash(key.as_bytes())),
            model,
            config,
            metrics: ServerMetrics::default(),
            started: now.as_secs(),
            requests: AtomicU64::new(0),
            entropy: Seed::from_u64(random),
            loading: Mutex::new(()),
            apart: Arc::new(Semaphore::new(
                std::thread::available_parallelism().map_or(1, usize::from),
            )),
        })
    }

    /// Does work that takes the longer the more `bytes` a body has. That of a large one is done apart, so
    /// that the threads that answer everybody else stay free.
    pub(crate) async fn work_on<T: Send + 'static>(
        self: &Arc<Self>,
        bytes: usize,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if bytes <= SMALL_BODY { work(self) } else { self.work_apart(work).await }
    }

    /// Does work on a thread apart, at most as much at a time as there are processors.
    pub(crate) async fn work_apart<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = self.apart.clone().acquire_owned().await;
        let permit = permit.map_err(|_| ApiError::closed())?;
        let service = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            // A client that hangs up does not end the work: it counts until it is done.
            let _permit = permit;
            work(&service)
        });
        done.await.map_err(|_| ApiError::closed())?
    }

    /// A name for a request that no other has, and a seed for it.
    pub(crate) fn next_request(&self) -> (String, Seed) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let seed = self.entropy.derive("request", number);
        (format!("{:016x}", seed.as_u64()), seed)
    }

    /// Answers a request; errors are answers.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Response<AnswerBody> {
        let path = request.uri().path().to_owned();
        let known = PATHS.iter().find(|(known, _)| *known == path);
        let known = known
            .map(|(known, _)| *known)
            .or(path.starts_with("/v1/models/").then_some("/v1/models"));
        let answer = match self.route(request, &path).await {
            Ok(answer) => answer,
            Err(error) => body::error(&error),
        };
        self.metrics.count(known.unwrap_or("other"), answer.status().as_u16());
        answer
    }

    async fn route(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &str,
    ) -> Result<Response<AnswerBody>, ApiError> {
        let method = request.method().clone();
        if path == "/health" && (method == Method::GET || method == Method::HEAD) {
            return Ok(body::json(&json!({ "status": "ok" })));
        }
        self.authorize(&request)?;
        match (method.as_str(), path) {
            ("POST", "/v1/chat/completions") => {
                respond::chat(self, self.read(request).await?).await
            }
            ("POST", "/v1/completions") => {
                respond::completion(self, self.read(request).await?).await
            }
            ("POST", "/tokenize") => {
                let bytes = self.read(request).await?;
                let len = bytes.len();
                let tokenize = move |service: &Self| {
                    Ok(body::json(&service.tokenize(wire::tokenize(&bytes)?)?))
                };
                self.work_on(len, tokenize).await
            }
            ("POST", "/detokenize") => {
                let bytes = self.read(request).await?;
                let len = bytes.len();
                let detokenize = move |service: &Self| {
                    Ok(body::json(&service.detokenize(&wire::detokenize(&bytes)?)?))
                };
                self.work_on(len, detokenize).await
            }
            ("GET", "/v1/models") => {
                Ok(body::json(&json!({ "object": "list", "data": [self.card()] })))
            }
            ("GET", _) if path.starts_with("/v1/models/") => {
                self.check_model(path.strip_prefix("/v1/models/"))?;
                Ok(body::json(&self.card()))
            }
            ("GET", "/weights") => {
                let version = self.model.generator.published().1;
                Ok(body::json(&json!({ "object": "weights", "version": version.0 })))
            }
            ("POST", "/weights") => {
                let wanted = wire::weights(&self.read(request).await?)?;
                let folder = weights::locate(self.config.weights_root.as_deref(), &wanted.path)?;
                let _one_at_a_time = self.loading.lock().await;
                let service = self.clone();
                let keep = self.config.keep_weights_as;
                let load = move || weights::load(&service.model, &folder, wanted.version, keep);
                let loaded = tokio::task::spawn_blocking(load).await;
                Ok(body::json(&loaded.map_err(|_| ApiError::closed())??))
            }
            ("GET", "/metrics") => {
                let version = self.model.generator.published().1.0;
                let text = self.metrics.render(&self.model.generator.metrics(), version);
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                Ok(body::whole(StatusCode::OK, kind, text.into()))
            }
            ("GET", "/version") => Ok(body::json(&json!({ "version": env!("CARGO_PKG_VERSION") }))),
            (method, path) => Err(match PATHS.iter().find(|(known, _)| *known == path) {
                Some((_, allowed)) => ApiError::wrong_method(path, allowed),
                None => {
                    let known: Vec<&str> = PATHS.iter().map(|(known, _)| *known).collect();
                    ApiError::unknown_path(method, path, &known.join(", "))
                }
            }),
        }
    }

    fn authorize(&self, request: &Request<Incoming>) -> Result<(), ApiError> {
        let Some(key) = &self.key else { return Ok(()) };
        let shown = request.headers().get(header::AUTHORIZATION);
        let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        // Comparing hashes takes constant time.
        match shown {
            Some(shown) if blake3::hash(shown) == *key => Ok(()),
            _ => Err(ApiError::unauthorized()),
        }
    }

    async fn read(&self, request: Request<Incoming>) -> Result<Bytes, ApiError> {
        let (limit, timeout) = (self.config.max_body_bytes, self.config.body_timeout);
        body::read(request.into_body(), limit, timeout).await
    }

    /// Refuses models that are not served.
    pub(crate) fn check_model(&self, model: Option<&str>) -> Result<(), ApiError> {
        match model {
            Some(model) if model != self.model.name => {
                Err(ApiError::unknown_model(model, &self.model.name))
            }
            _ => Ok(()),
        }
    }

    fn card(&self) -> Value {
        json!({
            "id": self.model.name,
            "object": "model",
            "created": self.started,
            "owned_by": "spar",
            "root": self.model.name,
            "parent": null,
            "max_model_len": self.model.generator.max_model_len(),
        })
    }

    fn detokenize(&self, wanted: &wire::Detokenize) -> Result<Value, ApiError> {
        self.check_model(wanted.model.as_deref())?;
        let vocabulary = self.model.generator.vocab_size();
        let is_unknown = |token: &&u32| **token as usize >= vocabulary;
        if let Some(token) = wanted.tokens.iter().find(is_unknown) {
            let error = GenerateError::UnknownToken { token: *token, vocabulary };
            return Err(ApiError::invalid("tokens", format!("could not {error}")));
        }
        Ok(json!({ "prompt": self.model.tokenizer.decode(&wanted.tokens) }))
    }

    fn tokenize(&self, wanted: wire::Tokenize) -> Result<Value, ApiError> {
        self.check_model(wanted.model.as_deref())?;
        let tokens = match (&wanted.prompt, &wanted.messages) {
            (Some(text), None) => self.model.tokenizer.encode_prompt(text),
            (None, Some(messages)) => {
                let tools = wanted.tools.as_deref().unwrap_or_default();
                prompt::of_messages(self, messages, tools, &Default::default())?.ids.to_vec()
            }
            _ => return Err(ApiError::bad_request("give either `prompt` or `messages`")),
        };
        let texts = || -> Vec<String> {
            tokens.iter().map(|token| respond::token_text(&self.model, *token)).collect()
        };
        Ok(json!({
            "count": tokens.len(),
            "max_model_len": self.model.generator.max_model_len(),
            "tokens": tokens,
            "token_strs": wanted.return_token_strs.unwrap_or(false).then(texts),
        }))
    }
}
