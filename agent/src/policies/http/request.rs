//! What an endpoint is asked.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use spar_core::{CompletionRequest, GrammarSource, PolicyError};

use super::server_kind::ServerKind;

/// A body of `/chat/completions`, or of `/completions` where there is a prompt in place of messages.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    temperature: f32,
    /// An extension of vLLM, SGLang and this project; vLLM takes -1 for all tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    /// An extension as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f32>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    penalties: Option<Penalties>,
    pub(super) max_tokens: usize,
    seed: Value,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    /// Of vLLM and this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_token_ids: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Value>,
    /// Of this project: what the answer begins with.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    partial_token_ids: &'a [u32],
}

/// What draws are to be without. Where vLLM is not told, the model's own `generation_config.json` decides.
#[derive(Debug, Serialize)]
struct Penalties {
    repetition_penalty: f32,
    presence_penalty: f32,
    frequency_penalty: f32,
}

impl Penalties {
    const NONE: Self =
        Self { repetition_penalty: 1.0, presence_penalty: 0.0, frequency_penalty: 0.0 };
}

impl<'a> Body<'a> {
    /// What `server` is sent for a request to `model`.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unsupported`] where the server cannot do what is asked for.
    pub(super) fn new(
        model: &'a str,
        server: ServerKind,
        request: &'a CompletionRequest,
    ) -> Result<Self, PolicyError> {
        let is_begun = !request.partial.ids.is_empty();
        let is_held = request.choices.is_some() || request.grammar.is_some();
        let cannot_list = matches!(
            request.grammar.as_deref(),
            Some(GrammarSource::Regex { .. } | GrammarSource::Lark { .. })
        );
        let is_between =
            matches!(request.grammar.as_deref(), Some(GrammarSource::JsonBetween { .. }));
        let of_vllm = server == ServerKind::Vllm && is_begun;
        request.refuse(
            model,
            &[
                (is_begun && server == ServerKind::Openai, "the rest of an answer that was begun"),
                (of_vllm && is_held, "the rest of an answer that is held to a list or a grammar"),
                (of_vllm && !request.tools.is_empty(), "the rest of an answer that may call tools"),
                (
                    of_vllm && request.prompt_ids.is_empty(),
                    "the rest of an answer to a prompt whose tokens are not known",
                ),
                (
                    cannot_list && server == ServerKind::Openai,
                    "an answer that keeps to an expression or a grammar",
                ),
                (is_between, "an answer of JSON between two texts"),
                (
                    request.choices.is_some() && request.grammar.is_some(),
                    "an answer that is held to choices and to a grammar",
                ),
            ],
        )?;
        let sampling = &request.sampling;
        // vLLM takes what is left out from the model's `generation_config.json`, and would cut off what its
        // log-probabilities still count: neutral values are sent as well.
        let is_vllm = server == ServerKind::Vllm;
        let top_k = sampling.top_k.map(|top_k| i64::try_from(top_k).unwrap_or(i64::MAX));
        let mut body = Self {
            model,
            messages: Some(request.messages.iter().map(|message| message.to_openai()).collect()),
            prompt: None,
            tools: request.tools.iter().map(|tool| tool.to_function()).collect(),
            temperature: sampling.temperature,
            top_k: top_k.or(is_vllm.then_some(-1)),
            top_p: Some(sampling.top_p).filter(|top_p| is_vllm || *top_p < 1.0),
            min_p: Some(sampling.min_p).filter(|min_p| is_vllm || *min_p > 0.0),
            penalties: is_vllm.then_some(Penalties::NONE),
            max_tokens: sampling.max_tokens,
            seed: seed(server, request),
            stop: &request.stop,
            response_format: None,
            structured_outputs: None,
            return_token_ids: server.tells_tokens().then_some(true),
            logprobs: is_vllm.then(|| json!(true)),
            partial_token_ids: &[],
        };
        if of_vllm {
            // The whole answer has `max_tokens`, of which these are a part.
            let ids = &request.partial.ids;
            body.prompt = Some([&request.prompt_ids, &ids[..]].concat());
            body.messages = None;
            body.max_tokens = body.max_tokens.saturating_sub(ids.len());
            body.logprobs = Some(json!(1));
        } else {
            body.partial_token_ids = &request.partial.ids;
        }
        match request.grammar.as_deref() {
            None | Some(GrammarSource::JsonBetween { .. }) => {}
            Some(GrammarSource::JsonSchema { schema }) => {
                let named = json!({ "name": "answer", "schema": schema, "strict": true });
                body.response_format = Some(json!({ "type": "json_schema", "json_schema": named }));
            }
            Some(GrammarSource::Regex { expression }) => {
                body.structured_outputs = Some(json!({ "regex": expression }));
            }
            Some(GrammarSource::Lark { grammar }) => {
                body.structured_outputs = Some(json!({ "grammar": grammar }));
            }
        }
        // OpenAI's interface has no place for lists.
        if let Some(choices) = &request.choices
            && server.tells_tokens()
        {
            body.structured_outputs = Some(json!({ "choice": choices }));
        }
        Ok(body)
    }

    /// The path below the base address.
    pub(super) fn path(&self) -> &'static str {
        if self.prompt.is_some() { "completions" } else { "chat/completions" }
    }
}

/// Where random choices start: all of the seed where the server draws as this program does.
fn seed(server: ServerKind, request: &CompletionRequest) -> Value {
    match server {
        ServerKind::Spar => json!(request.seed),
        // Endpoints take a signed 32-bit number at the least.
        ServerKind::Openai | ServerKind::Vllm => json!(request.seed.as_u64() >> 33),
    }
}
