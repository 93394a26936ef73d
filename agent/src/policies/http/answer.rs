//! What an endpoint answered.

use serde::Deserialize;
use serde_json::{Map, Value};
use spar_core::{
    Completion, CompletionRequest, GrammarHash, MalformedCall, PolicyVersion, SampledTokens,
    StopCause, ToolCall,
};

use spar_parsers::MAX_CALLS;

use super::server_kind::ServerKind;
use crate::spend::Told;

/// The body of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
    /// Tokens of the prompt of a chat.
    #[serde(default)]
    prompt_token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<usize>,
    #[serde(default)]
    completion_tokens: Option<usize>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// What an answer tells of its tokens; absent where it tells not both of prompt and answer.
pub(super) fn told_usage(bytes: &[u8]) -> Option<Told> {
    #[derive(Deserialize)]
    struct Head {
        usage: Usage,
    }
    let Head { usage } = serde_json::from_slice(bytes).ok()?;
    let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
    let reasoning = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
    Some(Told {
        input_tokens: usage.prompt_tokens? as u64,
        cached_tokens: cached.unwrap_or(0),
        output_tokens: usage.completion_tokens? as u64,
        reasoning_tokens: reasoning.unwrap_or(0),
    })
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// Of a chat.
    #[serde(default)]
    message: Option<AnswerMessage>,
    /// Of a completion.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// The string or token that ended the answer, as vLLM tells it.
    #[serde(default)]
    stop_reason: Option<Value>,
    #[serde(default)]
    logprobs: Option<Logprobs>,
    #[serde(default)]
    token_ids: Option<Vec<u32>>,
    #[serde(default)]
    sampling_logprobs: Option<Vec<f32>>,
    #[serde(default)]
    policy_versions: Option<Vec<u32>>,
    #[serde(default)]
    allowed_token_ids: Option<Vec<Vec<u32>>>,
    #[serde(default)]
    grammar: Option<GrammarHash>,
}

#[derive(Debug, Deserialize)]
struct AnswerMessage {
    /// Null where the model only reasoned or called tools; an answer without words, which the parser judges.
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    /// The same, as newer versions of vLLM name it.
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
}

/// Log-probabilities as chats and as completions tell them.
#[derive(Debug, Deserialize)]
struct Logprobs {
    #[serde(default)]
    content: Option<Vec<TokenLogprob>>,
    #[serde(default)]
    token_logprobs: Option<Vec<f32>>,
}

#[derive(Debug, Deserialize)]
struct TokenLogprob {
    logprob: f32,
}

/// How an answer is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) author: &'a str,
    pub(super) server: ServerKind,
    /// Whether log-probabilities of vLLM are those of the distribution that was drawn from.
    pub(super) processed_logprobs: bool,
    /// Tokens of the model, where they are known.
    pub(super) vocabulary: Option<usize>,
    pub(super) request: &'a CompletionRequest,
}

impl Reading<'_> {
    /// The answer as a completion; what it begins with is in the tokens, and in the text of chats.
    ///
    /// # Errors
    ///
    /// What contradicts what in it.
    pub(super) fn read(&self, answer: Answer) -> Result<Completion, String> {
        let choice = answer.choices.into_iter().next().ok_or("an answer without choices")?;
        let (reported_prompt, reported) = match answer.usage {
            Some(usage) => (usage.prompt_tokens, usage.completion_tokens),
            None => (None, None),
        };
        let stop = stop_cause(choice.finish_reason.as_deref(), choice.stop_reason.as_ref());
        let shown = Shown {
            ids: choice.token_ids,
            sampling_logprobs: choice.sampling_logprobs,
            logprobs: choice.logprobs,
            versions: choice.policy_versions,
            allowed: choice.allowed_token_ids,
            grammar: choice.grammar,
        };
        let num_shown = shown.ids.as_ref().map(Vec::len);
        let tokens = self.tokens(shown)?;
        let prompt_ids = match (answer.prompt_token_ids, tokens.is_some()) {
            (Some(ids), true) => Some(self.checked(ids, "prompt_token_ids")?.into()),
            // A prompt of tokens is known already.
            (None, true) if choice.text.is_some() => Some(self.request.prompt_ids.clone()),
            (None, true) => return Err("`token_ids` without `prompt_token_ids`".to_owned()),
            (_, false) => None,
        };
        let (text, reasoning, calls) = match (choice.message, choice.text) {
            (Some(message), _) => {
                let reasoning = message.reasoning_content.or(message.reasoning);
                let reasoning = reasoning.filter(|text| !text.is_empty());
                (message.content.unwrap_or_default(), reasoning, calls(message.tool_calls))
            }
            (None, Some(text)) => (text, None, None),
            (None, None) => return Err("a choice without `message`".to_owned()),
        };
        Ok(Completion {
            reasoning,
            calls,
            prompt_ids,
            tokens: tokens.unwrap_or_default(),
            reported_tokens: num_shown.or(reported),
            reported_prompt_tokens: reported_prompt,
            ..Completion::new(self.author, text, stop)
        })
    }

    /// The tokens, where they are shown and fit for training.
    fn tokens(&self, shown: Shown) -> Result<Option<SampledTokens>, String> {
        let (Some(ids), true) = (shown.ids, self.server.tells_tokens()) else { return Ok(None) };
        let (request, count) = (self.request, ids.len());
        let ids = self.checked(ids, "token_ids")?;
        if count > request.sampling.max_tokens {
            let most = request.sampling.max_tokens;
            return Err(format!("{count} `token_ids`, at the most {most} were asked for"));
        }
        if self.server == ServerKind::Vllm && !self.is_whole_distribution() {
            return Ok(None);
        }
        let logprobs = match (self.server, shown.sampling_logprobs, shown.logprobs) {
            (ServerKind::Spar, Some(logprobs), _) => logprobs,
            (ServerKind::Spar, None, _) => {
                return Err("`token_ids` without `sampling_logprobs`".to_owned());
            }
            (_, _, Some(Logprobs { content: Some(content), .. })) => {
                content.into_iter().map(|token| token.logprob).collect()
            }
            (_, _, Some(Logprobs { token_logprobs: Some(logprobs), .. })) => logprobs,
            (_, _, _) => return Err("`token_ids` without `logprobs`".to_owned()),
        };
        same_count("log-probabilities", logprobs.len(), count)?;
        if let Some(wrong) =
            logprobs.iter().find(|logprob| !(logprob.is_finite() && **logprob <= 0.0))
        {
            return Err(format!("a log-probability of {wrong}, must be finite and at most 0"));
        }
        // Who tells no version has one set of weights, as far as anybody knows.
        let versions = shown.versions.unwrap_or_else(|| vec![0; count]);
        same_count("versions", versions.len(), count)?;
        let wanted = request.grammar.as_ref().map(|grammar| grammar.hash());
        if shown.grammar != wanted && self.server == ServerKind::Spar {
            let told =
                |hash: Option<GrammarHash>| hash.map_or("none".to_owned(), |hash| hash.to_string());
            return Err(format!("grammar {}, asked for was {}", told(shown.grammar), told(wanted)));
        }
        let tokens = SampledTokens {
            logprobs,
            versions: versions.into_iter().map(PolicyVersion).collect(),
            allowed: self.allowed(shown.allowed, &ids)?,
            grammar: wanted,
            ids,
        };
        self.joined(tokens).map(Some)
    }

    /// Lists of what could be drawn.
    fn allowed(&self, lists: Option<Vec<Vec<u32>>>, ids: &[u32]) -> Result<Vec<Vec<u32>>, String> {
        let Some(lists) = lists else {
            let request = self.request;
            let is_restricted = request.choices.is_some()
                || request.grammar.is_some()
                || request.sampling.truncates();
            return match is_restricted && !ids.is_empty() && self.server == ServerKind::Spar {
                true => Err("`token_ids` without `allowed_token_ids`, though not all were allowed"
                    .to_owned()),
                false => Ok(Vec::new()),
            };
        };
        same_count("lists of allowed tokens", lists.len(), ids.len())?;
        for (id, list) in ids.iter().zip(&lists) {
            if !list.is_sorted_by(|a, b| a < b) {
                return Err("a list of allowed tokens that does not ascend".to_owned());
            }
            if !list.is_empty() && list.binary_search(id).is_err() {
                return Err(format!("token {id}, which was not allowed in its place"));
            }
            // The last is the greatest.
            if let Some(last) = list.last() {
                self.check(*last, "allowed_token_ids")?;
            }
        }
        Ok(lists)
    }

    /// The answer from its beginning on, of which what was sampled before is told as it was then.
    fn joined(&self, told: SampledTokens) -> Result<SampledTokens, String> {
        let begun = &self.request.partial;
        let count = begun.ids.len();
        if count == 0 {
            return Ok(told);
        }
        let mut whole = begun.clone();
        let from = if self.server == ServerKind::Spar { count } else { 0 };
        if from > 0 && !told.ids.starts_with(&begun.ids) {
            return Err("`token_ids` that do not begin as the answer did".to_owned());
        }
        if !told.allowed.is_empty() || !whole.allowed.is_empty() {
            whole.allowed.resize(count, Vec::new());
            let mut rest = told.allowed;
            rest.resize(told.ids.len(), Vec::new());
            whole.allowed.extend(rest.drain(from..));
        }
        whole.ids.extend_from_slice(&told.ids[from..]);
        whole.logprobs.extend_from_slice(&told.logprobs[from..]);
        whole.versions.extend_from_slice(&told.versions[from..]);
        whole.grammar = told.grammar;
        Ok(whole)
    }

    /// Whether vLLM's log-probabilities are those of draws from all tokens, as training computes them again.
    fn is_whole_distribution(&self) -> bool {
        let request = self.request;
        let sampling = &request.sampling;
        let is_restricted =
            request.choices.is_some() || request.grammar.is_some() || sampling.truncates();
        !is_restricted
            && (sampling.temperature == 1.0
                || (self.processed_logprobs && sampling.temperature > 0.0))
    }

    fn checked(&self, ids: Vec<u32>, field: &str) -> Result<Vec<u32>, String> {
        ids.iter().try_for_each(|id| self.check(*id, field))?;
        Ok(ids)
    }

    fn check(&self, id: u32, field: &str) -> Result<(), String> {
        match self.vocabulary {
            Some(vocabulary) if id as usize >= vocabulary => {
                Err(format!("token {id} in `{field}`, the vocabulary has {vocabulary}"))
            }
            _ => Ok(()),
        }
    }
}

/// What is told of tokens.
struct Shown {
    ids: Option<Vec<u32>>,
    sampling_logprobs: Option<Vec<f32>>,
    logprobs: Option<Logprobs>,
    versions: Option<Vec<u32>>,
    allowed: Option<Vec<Vec<u32>>>,
    grammar: Option<GrammarHash>,
}

fn same_count(what: &str, found: usize, count: usize) -> Result<(), String> {
    if found == count { Ok(()) } else { Err(format!("{count} `token_ids` with {found} {what}")) }
}

fn stop_cause(finish: Option<&str>, reason: Option<&Value>) -> StopCause {
    match finish {
        Some("stop") if reason.is_some() => StopCause::StopSequence,
        Some("stop") => StopCause::EndOfTurn,
        Some("length") => StopCause::Length,
        Some("tool_calls" | "function_call") => StopCause::ToolCalls,
        Some("content_filter") => StopCause::Filtered,
        _ => StopCause::Unknown,
    }
}

/// The calls of an answer, or the first that is none; absent where there are none.
fn calls(told: Option<Vec<Value>>) -> Option<Result<Vec<ToolCall>, MalformedCall>> {
    let told = told.filter(|calls| !calls.is_empty())?;
    let calls = match told.get(MAX_CALLS) {
        Some(beyond) => Err(MalformedCall {
            name: text_at(beyond, "/function/name").to_owned(),
            detail: format!("the answer has more than {MAX_CALLS} calls"),
            written: String::new(),
        }),
        None => told.iter().map(call).collect(),
    };
    Some(calls.map_err(|malformed| {
        let written: Vec<_> = told.iter().map(|call| call.to_string()).collect();
        MalformedCall { written: written.join("\n"), ..malformed }
    }))
}

fn text_at<'a>(told: &'a Value, pointer: &str) -> &'a str {
    told.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// One call; what is written in the place of all is for the caller to add.
fn call(told: &Value) -> Result<ToolCall, MalformedCall> {
    let name = text_at(told, "/function/name").to_owned();
    let malformed =
        |detail: String| MalformedCall { name: name.clone(), detail, written: String::new() };
    if name.is_empty() {
        return Err(malformed("it names no tool".to_owned()));
    }
    let arguments = match told.pointer("/function/arguments") {
        // Tools without parameters are called with nothing at all by some models.
        None | Some(Value::Null) => Map::new(),
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::String(text)) => serde_json::from_str(text)
            .map_err(|error| malformed(format!("its arguments are no JSON object: {error}")))?,
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(malformed("its arguments are no JSON object".to_owned())),
    };
    Ok(ToolCall { id: text_at(told, "/id").to_owned(), name, arguments })
}
