//! The requests of all paths.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use spar_core::Seed;

pub(crate) use super::fields::PromptForm;
use super::fields::{self, OneOrMany};
use super::message::{Message, Tool, ToolChoice};
use crate::api_error::ApiError;

/// Fields that both kinds of completions have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Common {
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) n: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<i64>,
    pub(crate) min_p: Option<f32>,
    pub(crate) repetition_penalty: Option<f32>,
    pub(crate) presence_penalty: Option<f32>,
    pub(crate) frequency_penalty: Option<f32>,
    pub(crate) logit_bias: BTreeMap<u32, f32>,
    pub(crate) bad_words: Vec<String>,
    pub(crate) seed: Option<Seed>,
    pub(crate) stop: Vec<String>,
    pub(crate) stop_token_ids: Vec<u32>,
    pub(crate) include_stop_str_in_output: bool,
    pub(crate) min_tokens: usize,
    pub(crate) ignore_eos: bool,
    pub(crate) return_token_ids: bool,
    /// What answers begin with.
    pub(crate) partial_token_ids: Vec<u32>,
    pub(crate) guided_json: Option<Value>,
    pub(crate) guided_regex: Option<String>,
    pub(crate) guided_choice: Option<Vec<String>>,
    pub(crate) guided_grammar: Option<String>,
    pub(crate) response_format: Option<ResponseFormat>,
}

/// Strings that may end an answer at the most.
const MAX_STOP_STRINGS: usize = 16;
/// Characters that one of them may have.
const MAX_STOP_CHARACTERS: usize = 1024;

impl Common {
    /// Checks what can be told without the model; how many answers are wanted per prompt.
    pub(crate) fn check(&self, max_choices: usize) -> Result<usize, ApiError> {
        let n = self.n.unwrap_or(1) as usize;
        if n == 0 || n > max_choices {
            return Err(ApiError::invalid(
                "n",
                format!("`n` is {n}, allowed are 1 to {max_choices}"),
            ));
        }
        if self.stop.len() > MAX_STOP_STRINGS {
            let found = self.stop.len();
            let message = format!("`stop` has {found} strings, at the most {MAX_STOP_STRINGS}");
            return Err(ApiError::invalid("stop", message));
        }
        for (index, string) in self.stop.iter().enumerate() {
            if string.is_empty() || string.chars().count() > MAX_STOP_CHARACTERS {
                let message =
                    format!("`stop[{index}]` is empty or over {MAX_STOP_CHARACTERS} characters");
                return Err(ApiError::invalid(format!("stop[{index}]"), message));
            }
        }
        if self.max_tokens == Some(0) {
            return Err(ApiError::invalid("max_tokens", "`max_tokens` is 0, at least 1 is needed"));
        }
        let constraints = [
            ("guided_json", self.guided_json.is_some()),
            ("guided_regex", self.guided_regex.is_some()),
            ("guided_choice", self.guided_choice.is_some()),
            ("guided_grammar", self.guided_grammar.is_some()),
            ("response_format", self.response_format.as_ref().is_some_and(|f| !f.is_text())),
        ];
        let given: Vec<&str> =
            constraints.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        if let [_, second, ..] = given[..] {
            let message = format!("an answer is held to one thing, not to {}", given.join(" and "));
            return Err(ApiError::invalid(second, message));
        }
        Ok(n)
    }
}

/// What an answer has to be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ResponseFormat {
    /// Anything.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON of a schema.
    JsonSchema {
        /// The schema with its name.
        json_schema: NamedSchema,
    },
}

/// A schema with its name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedSchema {
    #[serde(rename = "name")]
    pub(crate) _name: String,
    #[serde(default, rename = "description")]
    pub(crate) _description: Option<String>,
    pub(crate) schema: Value,
    /// An answer keeps to the schema whatever this says.
    #[serde(default, rename = "strict")]
    pub(crate) _strict: Option<bool>,
}

impl ResponseFormat {
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// What an answer has to be, as newer versions of vLLM name it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StructuredOutputs {
    json: Option<Value>,
    json_object: Option<bool>,
    regex: Option<String>,
    choice: Option<Vec<String>>,
    grammar: Option<String>,
}

/// Options of streams.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
    /// Answers are not padded.
    #[serde(default, rename = "include_obfuscation")]
    _include_obfuscation: Option<bool>,
}

/// Defines a request that has the common fields and some of its own. Fields that are null count
/// as absent, since clients write what they do not set in both ways.
macro_rules! request {
    (
        $(#[$doc:meta])* $name:ident, $wire:ident,
        { $($field:ident: $type:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name {
            pub(crate) common: Common,
            $(pub(crate) $field: Option<$type>,)*
        }

        #[derive(Deserialize, Default)]
        #[serde(deny_unknown_fields, default)]
        struct $wire {
            model: Option<String>,
            stream: Option<bool>,
            stream_options: Option<StreamOptions>,
            n: Option<u32>,
            max_tokens: Option<u32>,
            max_completion_tokens: Option<u32>,
            temperature: Option<f32>,
            top_p: Option<f32>,
            top_k: Option<i64>,
            min_p: Option<f32>,
            repetition_penalty: Option<f32>,
            presence_penalty: Option<f32>,
            frequency_penalty: Option<f32>,
            #[serde(deserialize_with = "fields::by_token")]
            logit_bias: Option<BTreeMap<u32, f32>>,
            bad_words: Option<Vec<String>>,
            #[serde(deserialize_with = "fields::seed")]
            seed: Option<Seed>,
            stop: Option<OneOrMany<String>>,
            stop_token_ids: Option<Vec<u32>>,
            include_stop_str_in_output: Option<bool>,
            min_tokens: Option<u32>,
            ignore_eos: Option<bool>,
            return_token_ids: Option<bool>,
            partial_token_ids: Option<Vec<u32>>,
            structured_outputs: Option<StructuredOutputs>,
            guided_json: Option<Value>,
            guided_regex: Option<String>,
            guided_choice: Option<Vec<String>>,
            guided_grammar: Option<String>,
            response_format: Option<ResponseFormat>,
            // Labels without effect.
            #[serde(rename = "user")]
            _user: Option<Value>,
            #[serde(rename = "metadata")]
            _metadata: Option<Value>,
            #[serde(rename = "store")]
            _store: Option<Value>,
            #[serde(rename = "service_tier")]
            _service_tier: Option<Value>,
            #[serde(rename = "safety_identifier")]
            _safety_identifier: Option<Value>,
            #[serde(rename = "prompt_cache_key")]
            _prompt_cache_key: Option<Value>,
            $($field: Option<$type>,)*
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let mut raw = $wire::deserialize(reader)?;
                if let Some(outputs) = raw.structured_outputs.take() {
                    let guided = [
                        raw.guided_json.is_some(),
                        raw.guided_regex.is_some(),
                        raw.guided_choice.is_some(),
                        raw.guided_grammar.is_some(),
                    ];
                    if guided.contains(&true) {
                        let detail = "`structured_outputs` beside its older form `guided_...`";
                        return Err(serde::de::Error::custom(detail));
                    }
                    raw.guided_json = outputs.json;
                    raw.guided_regex = outputs.regex;
                    raw.guided_choice = outputs.choice;
                    raw.guided_grammar = outputs.grammar;
                    if outputs.json_object == Some(true) {
                        if raw.guided_json.is_some() {
                            let detail = "`structured_outputs` with `json` and `json_object`";
                            return Err(serde::de::Error::custom(detail));
                        }
                        raw.guided_json = Some(serde_json::json!({ "type": "object" }));
                    }
                }
                let common = Common {
                    model: raw.model,
                    stream: raw.stream.unwrap_or(false),
                    include_usage: raw
                        .stream_options
                        .and_then(|options| options.include_usage)
                        .unwrap_or(false),
                    n: raw.n,
                    // The newer name of the same; where both are given, it holds.
                    max_tokens: raw.max_completion_tokens.or(raw.max_tokens),
                    temperature: raw.temperature,
                    top_p: raw.top_p,
                    top_k: raw.top_k,
                    min_p: raw.min_p,
                    repetition_penalty: raw.repetition_penalty,
                    presence_penalty: raw.presence_penalty,
                    frequency_penalty: raw.frequency_penalty,
                    logit_bias: raw.logit_bias.unwrap_or_default(),
                    bad_words: raw.bad_words.unwrap_or_default(),
                    seed: raw.seed,
                    stop: raw.stop.map(OneOrMany::into_vec).unwrap_or_default(),
                    stop_token_ids: raw.stop_token_ids.unwrap_or_default(),
                    include_stop_str_in_output: raw.include_stop_str_in_output.unwrap_or(false),
                    min_tokens: raw.min_tokens.unwrap_or(0) as usize,
                    ignore_eos: raw.ignore_eos.unwrap_or(false),
                    return_token_ids: raw.return_token_ids.unwrap_or(false),
                    partial_token_ids: raw.partial_token_ids.unwrap_or_default(),
                    guided_json: raw.guided_json,
                    guided_regex: raw.guided_regex,
                    guided_choice: raw.guided_choice,
                    guided_grammar: raw.guided_grammar,
                    response_format: raw.response_format,
                };
                Ok(Self { common, $($field: raw.$field,)* })
            }
        }
    };
}

request! {
    /// A body of `/v1/chat/completions`.
    ChatRequest, WireChatRequest,
    {
        messages: Vec<Message>,
        logprobs: bool,
        top_logprobs: u32,
        tools: Vec<Tool>,
        tool_choice: ToolChoice,
        parallel_tool_calls: bool,
        chat_template_kwargs: serde_json::Map<String, Value>,
    }
}

request! {
    /// A body of `/v1/completions`.
    CompletionRequest, WireCompletionRequest,
    {
        prompt: PromptForm,
        logprobs: u32,
        echo: bool,
        best_of: u32,
        suffix: String,
    }
}

/// A body of `/tokenize`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokenize {
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) prompt: Option<String>,
    #[serde(default)]
    pub(crate) messages: Option<Vec<Message>>,
    #[serde(default)]
    pub(crate) tools: Option<Vec<Tool>>,
    #[serde(default)]
    pub(crate) return_token_strs: Option<bool>,
}

/// A body of `/detokenize`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Detokenize {
    #[serde(default)]
    pub(crate) model: Option<String>,
    pub(crate) tokens: Vec<u32>,
}

/// A body of `/weights`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightsRequest {
    /// Folder of the checkpoint, below the root of weights.
    pub(crate) path: String,
    /// The version that tokens will carry. Default: one more than the last.
    #[serde(default)]
    pub(crate) version: Option<u32>,
}
