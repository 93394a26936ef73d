//! Requests as they come over the wire.
//!
//! Fields that are not known are refused, since a setting without effect misleads. Fields of
//! OpenAI's interface that only label a request (`user`, `metadata`, ...) are taken and ignored.

mod fields;
mod message;
mod requests;

use serde::de::DeserializeOwned;

pub(crate) use self::fields::NameOr;
pub(crate) use self::message::{Message, Role, Tool, ToolCall, ToolChoice};
pub(crate) use self::requests::{
    ChatRequest, Common, CompletionRequest, Detokenize, PromptForm, ResponseFormat, Tokenize,
    WeightsRequest,
};
use crate::api_error::ApiError;

/// Reads a body of `/v1/chat/completions`.
pub(crate) fn chat(bytes: &[u8]) -> Result<ChatRequest, ApiError> {
    parse(bytes)
}

/// Reads a body of `/v1/completions`.
pub(crate) fn completion(bytes: &[u8]) -> Result<CompletionRequest, ApiError> {
    parse(bytes)
}

/// Reads a body of `/tokenize`.
pub(crate) fn tokenize(bytes: &[u8]) -> Result<Tokenize, ApiError> {
    parse(bytes)
}

/// Reads a body of `/detokenize`.
pub(crate) fn detokenize(bytes: &[u8]) -> Result<Detokenize, ApiError> {
    parse(bytes)
}

/// Reads a body of `/weights`.
pub(crate) fn weights(bytes: &[u8]) -> Result<WeightsRequest, ApiError> {
    parse(bytes)
}

/// Reads a body in every form there is; for fuzzing. Whether one of them fits is returned.
pub fn check_request(bytes: &[u8]) -> bool {
    let chat = chat(bytes).and_then(|request| request.common.check(16).map(drop));
    let completion = completion(bytes).and_then(|request| request.common.check(16).map(drop));
    let others = [
        tokenize(bytes).is_ok(),
        detokenize(bytes).is_ok(),
        weights(bytes).is_ok(),
        chat.is_ok(),
        completion.is_ok(),
    ];
    others.contains(&true)
}

/// Reads a JSON object; an error names the path of the field that is wrong.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // A list would be read as the fields in their order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        let what = "the request cannot be used: the body is a list, not an object";
        return Err(ApiError::bad_request(if is_json { what } else { "the body is not JSON" }));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.inner().to_string();
        // Some errors of fields call themselves errors of syntax.
        if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err() {
            return ApiError::bad_request(format!("the body is not JSON: {inner}"));
        }
        // Where in the text it stands is of little help to those who did not write it.
        let detail = inner.rsplit_once(" at line ").map_or(&*inner, |(detail, _)| detail);
        if path == "." {
            ApiError::bad_request(format!("the request cannot be used: {detail}"))
        } else {
            ApiError::invalid(path.clone(), format!("`{path}`: {detail}"))
        }
    })?;
    match reader.end() {
        Ok(()) => Ok(value),
        Err(error) => Err(ApiError::bad_request(format!("the body is not JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests;
