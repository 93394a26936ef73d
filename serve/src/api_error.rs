//! Errors as clients see them.

use hyper::StatusCode;
use serde_json::{Value, json};
use spar_policy::GenerateError;

/// An error in OpenAI's form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// `type` in the answer.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// The field it is about.
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
    /// Seconds after which asking again may help.
    pub(crate) retry_after: Option<u64>,
}

/// Seconds that a client is told to wait when too many requests do.
const RETRY_AFTER_SECS: u64 = 1;

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: String) -> Self {
        Self { status, kind, message, param: None, code: None, retry_after: None }
    }

    /// A field of the request is wrong.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let kind = "invalid_request_error";
        let error = Self::new(StatusCode::BAD_REQUEST, kind, message.into());
        Self { param: Some(param.into()), ..error }
    }

    /// The request as a whole is wrong.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message.into())
    }

    /// The key is missing or wrong.
    pub(crate) fn unauthorized() -> Self {
        let message = "no API key, or a wrong one: send it as `Authorization: Bearer KEY`";
        let kind = "invalid_request_error";
        let error = Self::new(StatusCode::UNAUTHORIZED, kind, message.to_owned());
        Self { code: Some("invalid_api_key"), ..error }
    }

    /// The model is not served.
    pub(crate) fn unknown_model(found: &str, served: &str) -> Self {
        let message = format!("the model `{found}` does not exist; `{served}` is served here");
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..error }
    }

    /// The path is not known.
    pub(crate) fn unknown_path(method: &str, path: &str, known: &str) -> Self {
        let message = format!("no `{method} {path}` here; there are {known}");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// The path is known by other methods.
    pub(crate) fn wrong_method(path: &str, allowed: &str) -> Self {
        let message = format!("`{path}` is asked by {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }

    /// The body is larger than allowed.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    /// Something took too long.
    pub(crate) fn timeout(status: StatusCode, message: String) -> Self {
        Self::new(status, "timeout_error", message)
    }

    /// The server is not allowed or set up to do that.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "invalid_request_error", message.into())
    }

    /// The server stops.
    pub(crate) fn closed() -> Self {
        let message = "the server is shutting down".to_owned();
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        Self { retry_after: Some(RETRY_AFTER_SECS), ..error }
    }

    /// What the server stands on could not do its part.
    pub(crate) fn broken(message: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// A request that cannot be answered; `prompt` and `schema` are the fields that the prompt and
    /// a grammar came from.
    pub(crate) fn from_generate(error: GenerateError, prompt: &str, schema: &str) -> Self {
        let text = format!("could not {error}");
        match error {
            GenerateError::ContextFull { prompt: tokens, max_tokens, limit } => {
                let total = tokens.saturating_add(max_tokens);
                let message = format!(
                    "this model's maximum context length is {limit} tokens, but {total} were \
                     requested: {tokens} in the prompt, {max_tokens} for the answer",
                );
                let param = if tokens >= limit { prompt } else { "max_tokens" };
                Self { code: Some("context_length_exceeded"), ..Self::invalid(param, message) }
            }
            GenerateError::QueueFull { .. } => {
                let kind = "rate_limit_error";
                let error = Self::new(StatusCode::TOO_MANY_REQUESTS, kind, text);
                Self { code: Some("queue_full"), retry_after: Some(RETRY_AFTER_SECS), ..error }
            }
            GenerateError::Option { option, .. } => Self::invalid(option, text),
            GenerateError::Grammar(_) => Self::invalid(schema, text),
            GenerateError::EmptyPrompt | GenerateError::UnknownToken { .. } => {
                Self::invalid(prompt, text)
            }
            GenerateError::MemoryTooSmall { .. } => Self::invalid("max_tokens", text),
            GenerateError::PartialNotAllowed { .. } => Self::invalid("partial_token_ids", text),
            GenerateError::NoChoices => Self::invalid("guided_choice", text),
            GenerateError::Closed => Self::closed(),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", text),
        }
    }

    /// The answer's body.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        })
    }
}
