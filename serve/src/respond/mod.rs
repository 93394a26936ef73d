//! Answers to completions of both kinds.

mod choices;
mod plan;
mod stream;
mod whole;

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use serde_json::json;
use spar_policy::{GenerateError, GenerationRequest};

use self::choices::{Choice, Choices, Limits};
use crate::ServedModel;
use crate::answer::AnswerParser;
use crate::api_error::ApiError;
use crate::body::{self, AnswerBody};
use crate::prompt;
use crate::routes::Service;
use crate::wire::{self, ChatRequest, Common, CompletionRequest, PromptForm, Tool};

/// What of an answer is told, and how it is written.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) id: String,
    pub(crate) is_chat: bool,
    pub(crate) model: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// Log-probabilities of tokens, with so many of the most probable ones.
    pub(crate) logprobs: Option<usize>,
    pub(crate) token_ids: bool,
    pub(crate) include_usage: bool,
}

/// Most probable tokens that may be told.
const MAX_TOP_LOGPROBS: u32 = 20;

/// What a chat asks for, and the prompt it comes to.
struct ReadChat {
    request: ChatRequest,
    calls: plan::ToolUse,
    prompt: prompt::Prompt,
    constraint: Option<plan::Wanted>,
    n: usize,
    /// Most probable tokens that are told, where log-probabilities are.
    top: Option<usize>,
}

fn read_chat(service: &Service, bytes: &[u8]) -> Result<ReadChat, ApiError> {
    let request = wire::chat(bytes)?;
    let ChatRequest { common, messages, tools, .. } = &request;
    service.check_model(common.model.as_deref())?;
    let n = common.check(service.config.max_choices)?;
    let messages = messages
        .as_deref()
        .ok_or_else(|| ApiError::invalid("messages", "`messages` is missing"))?;
    let wants_logprobs = request.logprobs.unwrap_or(false);
    let top = request.top_logprobs.unwrap_or(0);
    if top > 0 && !wants_logprobs {
        let message = "`top_logprobs` has no effect unless `logprobs` is true";
        return Err(ApiError::invalid("top_logprobs", message));
    }
    check_top("top_logprobs", top)?;
    let tools = tools.as_deref().unwrap_or_default();
    let calls = plan::tool_use(tools, request.tool_choice.as_ref())?;
    let shown: &[Tool] = if calls.is_off() { &[] } else { tools };
    let kwargs = request.chat_template_kwargs.clone().unwrap_or_default();
    let prompt = prompt::of_messages(service, messages, shown, &kwargs)?;
    let constraint = plan::constraint(service, common, &calls, tools)?;
    let top = wants_logprobs.then_some(top as usize);
    Ok(ReadChat { calls, prompt, constraint, n, top, request })
}

/// Answers `/v1/chat/completions`.
pub(crate) async fn chat(
    service: &Arc<Service>,
    bytes: Bytes,
) -> Result<Response<AnswerBody>, ApiError> {
    let len = bytes.len();
    let read = service.work_on(len, move |service| read_chat(service, &bytes)).await?;
    let ReadChat { request, calls, prompt, constraint, n, top } = read;
    let field = plan::constraint_field(&request.common);
    let constraint = plan::compile(service, constraint, field).await?;
    let planned = service.work_on(len, move |service| {
        let common = &request.common;
        let room = service.model.generator.max_model_len().saturating_sub(prompt.ids.len());
        // Where the prompt leaves no room, the error tells so.
        let max_tokens = common.max_tokens.map_or(room.max(1), |tokens| tokens as usize);
        let form = form(service, common, true, top);
        let seed = plan::seed(service, common);
        let mut requests = Vec::new();
        for index in 0..n {
            let mut wanted = GenerationRequest::new(prompt.ids.clone(), max_tokens, seed);
            wanted.constraint.clone_from(&constraint);
            plan::fill(service, common, &form, &mut wanted, index)?;
            if calls == plan::ToolUse::Auto && request.parallel_tool_calls == Some(false) {
                plan::stop_after_a_call(service, &mut wanted)?;
            }
            requests.push(wanted);
        }
        let shows_tools = !calls.is_off() && request.tools.as_ref().is_some_and(|t| !t.is_empty());
        let format = shows_tools.then_some(service.tool_format);
        let planned = Planned { form, requests, n, is_stream: common.stream, schema: field };
        Ok((planned, format, prompt.is_thinking))
    });
    let (planned, format, is_thinking) = planned.await?;
    answer(service, planned, &|| Some(AnswerParser::new(format, is_thinking))).await
}

/// What a completion asks for, and its prompts.
struct ReadCompletion {
    request: CompletionRequest,
    prompts: Vec<Arc<[u32]>>,
    constraint: Option<plan::Wanted>,
    n: usize,
}

fn read_completion(service: &Service, bytes: &[u8]) -> Result<ReadCompletion, ApiError> {
    let request = wire::completion(bytes)?;
    let common = &request.common;
    service.check_model(common.model.as_deref())?;
    let n = common.check(service.config.max_choices)?;
    if request.echo == Some(true) {
        return Err(ApiError::invalid("echo", "`echo` is not offered: the prompt is not repeated"));
    }
    if request.best_of.is_some_and(|best_of| best_of as usize != n) {
        return Err(ApiError::invalid("best_of", "`best_of` is not offered: it has to equal `n`"));
    }
    if request.suffix.as_ref().is_some_and(|suffix| !suffix.is_empty()) {
        return Err(ApiError::invalid("suffix", "`suffix` is not offered"));
    }
    if let Some(top) = request.logprobs {
        check_top("logprobs", top)?;
    }
    let prompts: Vec<Arc<[u32]>> = match &request.prompt {
        None => return Err(ApiError::invalid("prompt", "`prompt` is missing")),
        Some(PromptForm::Texts(texts)) => {
            texts.iter().map(|text| service.model.tokenizer.encode_prompt(text).into()).collect()
        }
        Some(PromptForm::Tokens(lists)) => lists.iter().map(|ids| (&ids[..]).into()).collect(),
    };
    let choices = prompts.len().saturating_mul(n);
    if choices > service.config.max_choices {
        let most = service.config.max_choices;
        let message =
            format!("{choices} answers are wanted (prompts times `n`), at the most {most}");
        return Err(ApiError::invalid("prompt", message));
    }
    let constraint = plan::constraint(service, common, &plan::ToolUse::Off, &[])?;
    Ok(ReadCompletion { prompts, constraint, n, request })
}

/// Answers `/v1/completions`.
pub(crate) async fn completion(
    service: &Arc<Service>,
    bytes: Bytes,
) -> Result<Response<AnswerBody>, ApiError> {
    let len = bytes.len();
    let read = service.work_on(len, move |service| read_completion(service, &bytes)).await?;
    let ReadCompletion { request, prompts, constraint, n } = read;
    let field = plan::constraint_field(&request.common);
    let constraint = plan::compile(service, constraint, field).await?;
    let planned = service.work_on(len, move |service| {
        let common = &request.common;
        // The default of OpenAI's interface.
        let max_tokens = common.max_tokens.unwrap_or(16) as usize;
        let form = form(service, common, false, request.logprobs.map(|top| top as usize));
        let seed = plan::seed(service, common);
        let mut requests = Vec::new();
        for (place, prompt) in prompts.iter().enumerate() {
            for index in 0..n {
                let mut wanted = GenerationRequest::new(prompt.clone(), max_tokens, seed);
                wanted.constraint.clone_from(&constraint);
                plan::fill(service, common, &form, &mut wanted, place * n + index)?;
                requests.push(wanted);
            }
        }
        Ok(Planned { form, requests, n, is_stream: common.stream, schema: field })
    });
    answer(service, planned.await?, &|| None).await
}

fn check_top(name: &str, top: u32) -> Result<(), ApiError> {
    if top > MAX_TOP_LOGPROBS {
        let message = format!("`{name}` is {top}, at the most {MAX_TOP_LOGPROBS}");
        return Err(ApiError::invalid(name, message));
    }
    Ok(())
}

fn form(service: &Service, common: &Common, is_chat: bool, logprobs: Option<usize>) -> Form {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let (number, _) = service.next_request();
    Form {
        id: format!("{}-{number}", if is_chat { "chatcmpl" } else { "cmpl" }),
        is_chat,
        model: service.model.name.clone(),
        created: now.map_or(0, |now| now.as_secs()),
        logprobs,
        token_ids: common.return_token_ids,
        include_usage: common.include_usage,
    }
}

/// Answers as they are to be generated.
struct Planned {
    form: Form,
    requests: Vec<GenerationRequest>,
    /// Answers per prompt.
    n: usize,
    is_stream: bool,
    /// The field that a constraint came from.
    schema: &'static str,
}

/// Generates, and answers as a whole or piece by piece.
async fn answer(
    service: &Arc<Service>,
    planned: Planned,
    parser: &(dyn Fn() -> Option<AnswerParser> + Send + Sync),
) -> Result<Response<AnswerBody>, ApiError> {
    let Planned { form, requests, n, is_stream, schema } = planned;
    let prompt = if form.is_chat { "messages" } else { "prompt" };
    let refuse = |error: GenerateError| ApiError::from_generate(error, prompt, schema);
    let mut choices = Vec::new();
    for (index, request) in requests.into_iter().enumerate() {
        let told = (request.prompt_ids.clone(), Limits::of(&request));
        // If one of several is refused, dropping the others cancels them.
        let generation = service.model.generator.generate(request).map_err(refuse)?;
        choices.push(Choice::new(index, index / n, told, generation, parser()));
    }
    let choices = Choices::new(choices, service.clone());
    if is_stream {
        return Ok(body::events(stream::frames(form, choices)));
    }
    let limit = service.config.answer_timeout;
    match tokio::time::timeout(limit, whole::collect(&form, choices)).await {
        Ok(Ok(value)) => Ok(body::json(&value)),
        Ok(Err(error)) => Err(refuse(error)),
        Err(_) => Err(too_long(service)),
    }
}

/// The answer took longer than it may.
fn too_long(service: &Service) -> ApiError {
    let secs = service.config.answer_timeout.as_secs();
    ApiError::timeout(StatusCode::GATEWAY_TIMEOUT, format!("the answer took longer than {secs} s"))
}

/// A token as text; one that has none is written by its number.
pub(crate) fn token_text(model: &ServedModel, token: u32) -> String {
    match model.tokenizer.token_bytes(token) {
        [] => format!("token_id:{token}"),
        bytes => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Usage as OpenAI's interface tells it.
fn usage(choices: &Choices) -> serde_json::Value {
    let (prompt, cached, answer) = choices.usage();
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": { "cached_tokens": cached },
    })
}
