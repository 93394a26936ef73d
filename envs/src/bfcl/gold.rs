//! Gold calls as actions.

use serde_json::{Map, Value as Json, json};
use spar_bfcl::{Language, SingleTurnEntry, World, written_native_call};
use spar_core::{Action, ToolCall};
use spar_python::{Argument, Expression, NoNames, Value, evaluate, parse};

/// A gold call as a call of a tool: arguments by the names of their parameters. None where it is no plain call.
pub(super) fn tool_call(world: &World, call: &str) -> Option<ToolCall> {
    let Expression::Call(function, arguments) = parse(call).ok()? else { return None };
    let Expression::Name(name) = *function else { return None };
    let methods = world.classes.iter().flat_map(|class| class.methods());
    let (_, signature) = methods.into_iter().find(|(method, _)| *method == name)?;
    let mut given = Map::new();
    for (at, argument) in arguments.iter().enumerate() {
        let (name, value) = match argument {
            Argument::Positional(value) => (signature.parameters.get(at)?.name, value),
            Argument::Keyword(name, value) => (&**name, value),
            Argument::Items(_) | Argument::Entries(_) => return None,
        };
        given.insert(name.to_owned(), json_of(&evaluate(value, &mut NoNames).ok()?)?);
    }
    Some(ToolCall::new(name, given))
}

/// Calls as an answer in words.
pub(super) fn in_words(calls: &[ToolCall]) -> Option<String> {
    let written: Option<Vec<String>> =
        calls.iter().map(|call| written_native_call(&call.name, &call.arguments).ok()).collect();
    Some(format!("[{}]", written?.join(", ")))
}

/// The first accepted values of every parameter. In categories of relevance any function is called.
pub(super) fn single_turn(
    entry: &SingleTurnEntry,
    language: Language,
    uses_tools: bool,
) -> Option<Action> {
    let mut calls = Vec::new();
    if entry.category.contains("relevance") {
        let name = entry.function.first()?["name"].as_str()?;
        calls.push((name.to_owned(), Map::new()));
    }
    for answer in entry.possible_answer.as_array().into_iter().flatten() {
        let (name, accepted) = answer.as_object()?.iter().next()?;
        let mut arguments = Map::new();
        for (parameter, values) in accepted.as_object()? {
            let first = values.as_array()?.first()?;
            if first == "" {
                continue;
            }
            let value = match language {
                Language::Python => plain(first),
                Language::Java | Language::JavaScript => {
                    let described =
                        entry.function.iter().find(|function| function["name"] == **name)?;
                    let details = &described["parameters"]["properties"][parameter];
                    in_language(&plain(first), language, details).into()
                }
            };
            arguments.insert(parameter.clone(), value);
        }
        calls.push((name.clone(), arguments));
    }
    if uses_tools {
        let calls = calls
            .into_iter()
            .map(|(name, arguments)| ToolCall::new(name.replace('.', "_"), arguments));
        return Some(Action::calls(calls.collect()));
    }
    let written: Option<Vec<String>> = calls
        .iter()
        .map(|(name, arguments)| match language {
            Language::Python => written_native_call(name, arguments).ok(),
            Language::Java | Language::JavaScript => {
                let arguments: Option<Vec<String>> = arguments
                    .iter()
                    .map(|(name, value)| Some(format!("{name}={}", held_together(value.as_str()?))))
                    .collect();
                Some(format!("{name}({})", arguments?.join(", ")))
            }
        })
        .collect();
    Some(Action::text(format!("[{}]", written?.join(", "))))
}

/// A value as Java or JavaScript writes one of its documented type, which is how the checker reads it.
fn in_language(value: &Json, language: Language, details: &Json) -> String {
    let documented = details["type"].as_str().unwrap_or_default();
    let inner = details["items"]["type"].as_str().unwrap_or_default();
    match (language, value) {
        (_, Json::String(text)) => text.clone(),
        (Language::Java, Json::Number(number)) => match documented {
            "long" => format!("{number}L"),
            "float" => format!("{number}f"),
            _ => number.to_string(),
        },
        (Language::Java, Json::Array(items)) => {
            // The checker leaves texts of an array as they are and takes the ends off those of a list.
            let item = |item: &Json| match (documented, inner, item) {
                ("Array", "char" | "String", _) | (_, "", Json::Number(_)) => {
                    in_language(item, language, &Json::Null)
                }
                (_, _, Json::String(text)) => format!("\"{text}\""),
                (_, inner, other) => in_language(other, language, &json!({"type": inner})),
            };
            let items: Vec<String> = items.iter().map(item).collect();
            match documented {
                "Array" => {
                    let class = if inner.is_empty() { "Object" } else { inner };
                    format!("new {class}[]{{{}}}", items.join(", "))
                }
                _ if items.is_empty() => "new ArrayList<>()".to_owned(),
                _ => format!("new ArrayList<>(Arrays.asList({}))", items.join(", ")),
            }
        }
        (Language::Java, Json::Object(entries)) => {
            let put = |(key, value): (&String, &Json)| match value {
                Json::String(text) => format!("put(\"{key}\", \"{text}\");"),
                other => format!("put(\"{key}\", {});", in_language(other, language, &Json::Null)),
            };
            let puts: Vec<String> = entries.iter().map(put).collect();
            format!("new HashMap<>() {{{{ {} }}}}", puts.join(" "))
        }
        (_, Json::Number(number)) if documented == "Bigint" => format!("{number}n"),
        (_, Json::Array(items)) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        (_, Json::Object(_)) => literal(value),
        (_, other) => other.to_string(),
    }
}

/// A value of a collection of JavaScript.
fn literal(value: &Json) -> String {
    match value {
        Json::String(text) => format!("\"{text}\""),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Json::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("'{key}': {}", literal(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// A value in quotes where a call in words would break it at a comma or take its own quotes off.
fn held_together(text: &str) -> String {
    let is_plain = !text.contains(['"', '\'']) && !text.contains(',');
    let is_code = ["new ", "[", "{"].iter().any(|start| text.starts_with(start));
    if is_plain || is_code {
        return text.to_owned();
    }
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}

/// An accepted value: dictionaries of accepted values are read by their first ones.
fn plain(value: &Json) -> Json {
    match value {
        Json::Object(entries) => {
            let first = |value: &Json| match value {
                Json::Array(values) => values.first().map(plain).unwrap_or(Json::Null),
                other => plain(other),
            };
            let kept = entries.iter().map(|(key, value)| (key.clone(), first(value)));
            Json::Object(kept.filter(|(_, value)| *value != "").collect())
        }
        Json::Array(values) => values.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn json_of(value: &Value) -> Option<Json> {
    Some(match value {
        Value::None => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => json!(number.to_i64()?),
        Value::Float(number) => json!(number),
        Value::Str(text) => json!(**text),
        Value::List(items) => items.iter().map(json_of).collect::<Option<Json>>()?,
        Value::Dict(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| Some((key.as_str()?.to_owned(), json_of(value)?)));
            Json::Object(entries.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
