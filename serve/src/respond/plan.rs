//! From a request's fields to what generation is asked for.

use std::sync::Arc;

use serde_json::{Value, json};
use spar_core::{GrammarSource, PolicyVersion, SampledTokens, Seed};
use spar_policy::sampling::{BadWords, SamplingOptions};
use spar_policy::{Constraint, GenerationRequest, Report, StopConditions};

use super::Form;
use crate::answer::ToolFormat;
use crate::api_error::ApiError;
use crate::routes::Service;
use crate::wire::{Common, NameOr, ResponseFormat, Tool, ToolChoice};

/// Whether tools are called.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ToolUse {
    /// They are not even shown.
    Off,
    /// As the model decides.
    Auto,
    /// One of those at these places has to be.
    Required(Vec<usize>),
}

impl ToolUse {
    pub(super) fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// What a request's `tools` and `tool_choice` mean.
pub(super) fn tool_use(tools: &[Tool], choice: Option<&ToolChoice>) -> Result<ToolUse, ApiError> {
    let invalid = |message: String| Err(ApiError::invalid("tool_choice", message));
    let needs_tools = || invalid("`tool_choice` needs `tools`".to_owned());
    match choice {
        None if tools.is_empty() => Ok(ToolUse::Off),
        None => Ok(ToolUse::Auto),
        Some(NameOr::Name(name)) => match &**name {
            "none" => Ok(ToolUse::Off),
            "auto" if tools.is_empty() => Ok(ToolUse::Off),
            "auto" => Ok(ToolUse::Auto),
            "required" if tools.is_empty() => needs_tools(),
            "required" => Ok(ToolUse::Required((0..tools.len()).collect())),
            other => invalid(format!(
                "`tool_choice` is `{other}`, allowed are none, auto, required and a named function"
            )),
        },
        Some(NameOr::Object(_)) if tools.is_empty() => needs_tools(),
        Some(NameOr::Object(named)) => {
            let name = &named.function.name;
            match tools.iter().position(|tool| tool.function.name == *name) {
                Some(place) => Ok(ToolUse::Required(vec![place])),
                None => {
                    let known: Vec<&str> = tools.iter().map(|tool| &*tool.function.name).collect();
                    let known = known.join(", ");
                    invalid(format!("`tool_choice` names `{name}`, `tools` has {known}"))
                }
            }
        }
    }
}

/// The field that an answer's constraint came from.
pub(super) fn constraint_field(common: &Common) -> &'static str {
    if common.guided_json.is_some() {
        "guided_json"
    } else if common.guided_regex.is_some() {
        "guided_regex"
    } else if common.guided_choice.is_some() {
        "guided_choice"
    } else if common.guided_grammar.is_some() {
        "guided_grammar"
    } else if common.response_format.is_some() {
        "response_format"
    } else {
        "tools"
    }
}

/// What the answer is to be held to.
pub(super) fn constraint(
    service: &Service,
    common: &Common,
    tool_use: &ToolUse,
    tools: &[Tool],
) -> Result<Option<Wanted>, ApiError> {
    let field = constraint_field(common);
    let required = match tool_use {
        ToolUse::Required(places) => Some(places),
        _ => None,
    };
    if required.is_some() && field != "tools" {
        let message = format!("`{field}` and a required tool call exclude each other");
        return Err(ApiError::invalid(field, message));
    }
    if let Some(choices) = &common.guided_choice {
        let mut choices: Vec<Arc<str>> = choices.iter().map(|text| (&**text).into()).collect();
        choices.sort();
        choices.dedup();
        return Ok(Some(Wanted::Choices(choices)));
    }
    let wanted = if let Some(schema) = &common.guided_json {
        // Either the schema itself, or its text.
        match schema {
            Value::String(text) => {
                GrammarSource::json_schema(serde_json::from_str(text).map_err(|error| {
                    ApiError::invalid("guided_json", format!("`guided_json` is not JSON: {error}"))
                })?)
            }
            schema => GrammarSource::json_schema(schema.clone()),
        }
    } else if let Some(expression) = &common.guided_regex {
        GrammarSource::regex(&**expression)
    } else if let Some(grammar) = &common.guided_grammar {
        GrammarSource::lark(&**grammar)
    } else if let Some(places) = required {
        let wanted: Vec<&Tool> = places.iter().map(|place| &tools[*place]).collect();
        call_grammar(service.tool_format, &wanted)
    } else {
        match &common.response_format {
            None | Some(ResponseFormat::Text) => return Ok(None),
            Some(ResponseFormat::JsonObject) => {
                GrammarSource::json_schema(json!({ "type": "object" }))
            }
            Some(ResponseFormat::JsonSchema { json_schema }) => {
                GrammarSource::json_schema(json_schema.schema.clone())
            }
        }
    };
    Ok(Some(Wanted::Grammar(wanted)))
}

/// The constraint that is wanted. Grammars are compiled apart, since that can take a while.
pub(super) async fn compile(
    service: &Arc<Service>,
    wanted: Option<Wanted>,
    field: &'static str,
) -> Result<Option<Constraint>, ApiError> {
    match wanted {
        None => Ok(None),
        Some(Wanted::Choices(choices)) => Ok(Some(Constraint::Choices(choices.into()))),
        Some(Wanted::Grammar(grammar)) => {
            let compile = move |service: &Service| {
                let compiled = service.model.grammars.get(&grammar);
                compiled.map_err(|error| ApiError::from_generate(error.into(), "prompt", field))
            };
            Ok(Some(Constraint::Grammar(service.work_apart(compile).await?)))
        }
    }
}

/// What an answer is to be held to.
pub(super) enum Wanted {
    /// One of these, in their order.
    Choices(Vec<Arc<str>>),
    Grammar(GrammarSource),
}

/// An answer that calls one of the tools.
fn call_grammar(format: ToolFormat, tools: &[&Tool]) -> GrammarSource {
    let key = match format {
        ToolFormat::Hermes => "arguments",
        ToolFormat::Llama3 => "parameters",
    };
    let calls: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let function = &tool.function;
            let parameters = function.parameters.clone();
            let mut properties = json!({ "name": { "const": function.name } });
            // In OpenAI's interface, a function without them takes none.
            let none =
                || json!({ "type": "object", "properties": {}, "additionalProperties": false });
            properties[key] = parameters.unwrap_or_else(none);
            json!({
                "type": "object",
                "properties": properties,
                "required": ["name", key],
                "additionalProperties": false,
            })
        })
        .collect();
    let schema = json!({ "anyOf": calls });
    match format {
        ToolFormat::Hermes => GrammarSource::JsonBetween {
            before: "<tool_call>\n".to_owned(),
            schema,
            after: "\n</tool_call>".to_owned(),
        },
        ToolFormat::Llama3 => GrammarSource::json_schema(schema),
    }
}

/// Ends an answer behind its first call.
pub(super) fn stop_after_a_call(
    service: &Service,
    request: &mut GenerationRequest,
) -> Result<(), ApiError> {
    if service.tool_format != ToolFormat::Hermes {
        let message = "calls of this model have no mark behind them that could end an answer";
        return Err(ApiError::invalid("parallel_tool_calls", message));
    }
    let strings = request.stop.strings.iter().cloned();
    request.stop.strings = strings.chain([Arc::from("</tool_call>")]).collect();
    Ok(())
}

/// Where a request's random choices start.
pub(super) fn seed(service: &Service, common: &Common) -> Seed {
    common.seed.unwrap_or_else(|| service.next_request().1)
}

/// Fills in all that the fields of both kinds say, for the choice of this number, whose constraint is there.
pub(super) fn fill(
    service: &Service,
    common: &Common,
    form: &Form,
    request: &mut GenerationRequest,
    index: usize,
) -> Result<(), ApiError> {
    let default = SamplingOptions::default();
    let top_k = match common.top_k {
        // Both mean that there is no bound.
        None | Some(-1 | 0) => None,
        Some(k) => Some(usize::try_from(k).map_err(|_| {
            ApiError::invalid("top_k", format!("`top_k` is {k}, allowed are -1, 0 and above"))
        })?),
    };
    let mut words = Vec::new();
    for word in &common.bad_words {
        // In the middle of a text, words stand behind a space.
        for form in [word.clone(), format!(" {word}")] {
            let ids = service.model.tokenizer.encode(&form);
            if !words.contains(&ids) {
                words.push(ids);
            }
        }
    }
    request.sampling = SamplingOptions {
        temperature: common.temperature.unwrap_or(default.temperature),
        top_k,
        top_p: common.top_p.unwrap_or(default.top_p),
        min_p: common.min_p.unwrap_or(default.min_p),
        repetition_penalty: common.repetition_penalty.unwrap_or(default.repetition_penalty),
        presence_penalty: common.presence_penalty.unwrap_or(default.presence_penalty),
        frequency_penalty: common.frequency_penalty.unwrap_or(default.frequency_penalty),
        logit_bias: common.logit_bias.iter().map(|(token, bias)| (*token, *bias)).collect(),
        bad_words: BadWords::new(words),
        min_tokens: common.min_tokens,
    };
    request.stop = StopConditions {
        token_ids: (&common.stop_token_ids[..]).into(),
        strings: common.stop.iter().map(|string| Arc::from(&**string)).collect(),
        show_string: common.include_stop_str_in_output,
        ignore_end_of_turn: common.ignore_eos,
    };
    request.report = Report {
        raw: form.logprobs.is_some(),
        entropy: form.token_ids,
        top: form.logprobs.unwrap_or(0),
        allowed: form.token_ids,
        ..Report::default()
    };
    // Whoever sent it knows how it was drawn.
    let (ids, grammar) = (common.partial_token_ids.clone(), request.constraint.as_ref());
    request.partial = SampledTokens {
        logprobs: vec![0.0; ids.len()],
        versions: vec![PolicyVersion(0); ids.len()],
        grammar: grammar.filter(|_| form.token_ids).and_then(Constraint::grammar_hash),
        ids,
        ..SampledTokens::default()
    };
    if index > 0 {
        request.seed = request.seed.derive("choice", index);
    }
    Ok(())
}
