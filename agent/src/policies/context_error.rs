//! How endpoints say that a conversation is longer than their model can read.

use serde_json::Value;

/// What an endpoint said of a conversation that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ContextError {
    /// Tokens of the conversation and the answer that was asked for, where it said so.
    pub(super) tokens: Option<usize>,
    /// Tokens that the model can read, where it said so.
    pub(super) limit: Option<usize>,
}

/// Values of `code` or `type` that mean it: of OpenAI, llama-cpp-python and this project's server; of
/// llama.cpp; of servers that follow it.
const NAMES: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "context_exceeded"];

/// Words of a message that mean it, in lower case.
const WORDS: [&str; 11] = [
    // OpenAI, vLLM up to 0.15, SGLang and this project's server.
    "maximum context length",
    // vLLM since 0.16.
    "model's context length is only",
    // vLLM, for encoders and prompts that are too long by themselves.
    "maximum model length",
    // vLLM before it compared the lengths itself.
    "max_tokens must be at least 1, got -",
    // SGLang.
    "longer than the model's context length",
    // llama.cpp.
    "exceeds the available context size",
    // llama-cpp-python.
    "exceed context window",
    // LM Studio.
    "context size has been exceeded",
    // text-generation-inference.
    "`inputs` tokens + `max_new_tokens` must be <=",
    "`inputs` must have less than",
    // Anthropic behind proxies.
    "prompt is too long",
];

/// Words before the number of tokens that the model can read.
const LIMIT: [&str; 8] = [
    "context length is only ",
    "context length is ",
    "context length (",
    "maximum model length of ",
    "context size (",
    "context window of ",
    "must be <= ",
    "must have less than ",
];

/// Words before the number of tokens of conversation and answer.
const WHOLE: [&str; 3] = ["you requested ", "requested a total of ", "tokens, but "];

/// Words before the number of tokens of the conversation alone.
const PROMPT: [&str; 6] = [
    "resulted in ",
    "you passed ",
    "request (",
    "the input (",
    "requested tokens (",
    "prompt (length ",
];

/// What the body of an error says, if it says that the conversation and an answer of `max_tokens` do
/// not fit the model.
///
/// Only the error's own words are looked at: bodies that repeat what was sent must not be mistaken.
pub(super) fn context_error(body: &[u8], max_tokens: usize) -> Option<ContextError> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(&body);
    let message =
        ["message", "error", "detail"].into_iter().find_map(|key| error.get(key)?.as_str());
    let message = message.unwrap_or_default().to_lowercase();
    let is_named = ["code", "type"].into_iter().any(|key| {
        error.get(key).and_then(Value::as_str).is_some_and(|name| NAMES.contains(&name))
    });
    if !is_named && !WORDS.iter().any(|words| message.contains(words)) {
        return None;
    }
    let field = |key: &str| usize::try_from(error.get(key)?.as_u64()?).ok();
    let behind = |words: &[&str]| words.iter().find_map(|words| number_behind(&message, words));
    let prompt = || field("n_prompt_tokens").or_else(|| behind(&PROMPT));
    Some(ContextError {
        tokens: behind(&WHOLE).or_else(|| Some(prompt()?.saturating_add(max_tokens))),
        limit: field("n_ctx").or_else(|| behind(&LIMIT)),
    })
}

/// The number right behind `words`.
fn number_behind(text: &str, words: &str) -> Option<usize> {
    let rest = &text[text.find(words)? + words.len()..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies as servers send them, with the tokens and the limit in them; answers of 100 tokens were
    /// asked for.
    const BODIES: &[(&str, &str, Option<usize>, Option<usize>)] = &[
        (
            "OpenAI, the conversation alone",
            r#"{"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please reduce the length of the messages.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}"#,
            Some(8327),
            Some(8192),
        ),
        (
            "OpenAI, with the answer",
            r#"{"error": {"message": "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}"#,
            Some(4120),
            Some(4097),
        ),
        (
            "vLLM up to 0.15",
            r#"{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
            Some(122_946),
            Some(16_384),
        ),
        (
            "vLLM since 0.16",
            r#"{"error":{"message":"You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens, resulting in a maximum input length of 1014 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1015)","type":"BadRequestError","param":"input_tokens","code":400}}"#,
            Some(1115),
            Some(1024),
        ),
        (
            "vLLM, the prompt",
            r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.","type":"BadRequestError","param":null,"code":400}}"#,
            Some(5100),
            Some(4096),
        ),
        (
            "vLLM, old",
            r#"{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400}"#,
            None,
            None,
        ),
        (
            "llama.cpp",
            r#"{"error":{"code":400,"message":"request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":13392,"n_ctx":8192}}"#,
            Some(13_492),
            Some(8192),
        ),
        (
            "llama.cpp, before it told the numbers",
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}"#,
            None,
            None,
        ),
        (
            "llama-cpp-python",
            r#"{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            Some(2385),
            Some(2048),
        ),
        (
            "SGLang",
            r#"{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}"#,
            Some(61_809),
            Some(40_960),
        ),
        (
            "text-generation-inference",
            r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 500 `max_new_tokens`","error_type":"validation"}"#,
            None,
            Some(4096),
        ),
        ("LM Studio", r#"{"error":"Context size has been exceeded."}"#, None, None),
        (
            "spar serve policy",
            r#"{"error":{"message":"this model's maximum context length is 2048 tokens, but 2100 were requested: 2000 in the prompt, 100 for the answer","type":"invalid_request_error","param":"max_tokens","code":"context_length_exceeded"}}"#,
            Some(2100),
            Some(2048),
        ),
    ];

    #[test]
    fn every_servers_way_of_saying_it_is_understood() {
        for (server, body, tokens, limit) in BODIES {
            let expected = ContextError { tokens: *tokens, limit: *limit };
            assert_eq!(context_error(body.as_bytes(), 100), Some(expected), "{server}");
        }
    }

    #[test]
    fn other_errors_are_not_mistaken_for_it() {
        for body in [
            "",
            "no luck",
            "[]",
            "null",
            r#"{"error": null}"#,
            r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#,
            r#"{"error":{"message":"Rate limit reached on tokens per min (TPM): Limit 10000, Requested 12000.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            // What was sent is repeated, and the policy itself wrote the words.
            r#"{"detail":[{"loc":["body"],"msg":"field required","input":"maximum context length is 1"}]}"#,
            r#"{"error":{"message":"invalid type","input":"context_length_exceeded"}}"#,
        ] {
            assert_eq!(context_error(body.as_bytes(), 100), None, "{body}");
        }
    }

    #[test]
    fn numbers_too_large_or_absent_are_left_out() {
        let body = r#"{"message":"maximum context length is 99999999999999999999 tokens"}"#;
        assert_eq!(context_error(body.as_bytes(), 1), Some(ContextError::default()));
        assert_eq!(number_behind("given: x", "given: "), None);
    }
}
