//! Values of parameters that were written as text.

use serde_json::{Map, Value};
use spar_core::ToolSpec;

use crate::json::arguments;
use crate::python_literal::python_value;
use crate::{FormatError, FormatErrorKind};

/// How deep schemas are looked into.
const MAX_DEPTH: usize = 16;

/// What `text` means as the value of a parameter with the schema `schema`.
///
/// `null` is no value, whatever the schema. Text that does not fit its type, or has none, stays
/// text, so that the environment can say what is wrong with it.
pub(crate) fn typed_value(text: &str, schema: Option<&Value>) -> Value {
    if text.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    let kept = || Value::String(text.to_owned());
    let kind = schema.map(|schema| type_of(schema, 0).unwrap_or("string"));
    let trimmed = text.trim();
    let integer = || {
        let signed = trimmed.parse::<i64>().map(Value::from);
        signed.or_else(|_| trimmed.parse::<u64>().map(Value::from)).ok()
    };
    match kind {
        None | Some("string") => kept(),
        Some("integer") => integer().unwrap_or_else(kept),
        Some("number") => {
            let is_number = trimmed.contains(|c: char| c.is_ascii_digit());
            let float =
                || trimmed.parse::<f64>().ok().filter(|value| is_number && value.is_finite());
            integer().or_else(|| float().map(Value::from)).unwrap_or_else(kept)
        }
        Some("boolean") => match text.to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => kept(),
        },
        Some("object" | "array") => {
            serde_json::from_str(text).ok().or_else(|| python_value(text)).unwrap_or_else(kept)
        }
        Some(_) => python_value(text).unwrap_or_else(kept),
    }
}

/// The arguments that a single piece of text stands for: a JSON object of them, or the value of the
/// only parameter of the tool `name` (the only required one, where there are several).
///
/// Text for a tool that is not offered becomes its argument `input`.
pub(crate) fn arguments_of_input(
    text: &str,
    name: &str,
    tools: &[ToolSpec],
    span: &std::ops::Range<usize>,
) -> Result<Map<String, Value>, FormatError> {
    let text = text.trim();
    let value = serde_json::from_str::<Value>(text).ok();
    if let Some(value @ Value::Object(_)) = value {
        return arguments(value, span);
    }
    // Quotation marks around text are not part of it.
    let quoted = value.and_then(|value| value.as_str().map(str::to_owned));
    let text = quoted.as_deref().unwrap_or(text);
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return Ok(Map::from_iter([("input".to_owned(), text.into())]));
    };
    let fields = tool.parameters.get("properties").and_then(Value::as_object);
    let all: Vec<&str> = fields.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    match (all.as_slice(), required.as_slice()) {
        ([], _) if text.is_empty() || text == "None" => Ok(Map::new()),
        ([only], _) | (_, [only]) => {
            let value = typed_value(text, tool.parameter(only));
            Ok(Map::from_iter([((*only).to_owned(), value)]))
        }
        _ => {
            let message = format!("the input of `{name}` has to be a JSON object of its arguments");
            Err(FormatError::new(FormatErrorKind::Arguments, span.clone(), message))
        }
    }
}

/// The type that a schema names or that its parts imply, `null` left aside.
fn type_of(schema: &Value, depth: usize) -> Option<&str> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(named) = schema.get("type") {
        let mut names = named.as_array().into_iter().flatten().filter_map(Value::as_str);
        return named.as_str().or_else(|| names.find(|name| *name != "null")).or(Some("string"));
    }
    let branches = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(any) = branches("anyOf").or_else(|| branches("oneOf")) {
        let mut kinds = any.iter().filter_map(|branch| type_of(branch, depth + 1));
        let mut kinds_but_null = kinds.by_ref().filter(|kind| *kind != "null");
        let first = kinds_but_null.next()?;
        // Text is what is safe where types differ.
        let has_string = first == "string" || kinds_but_null.any(|kind| kind == "string");
        return Some(if has_string { "string" } else { first });
    }
    if let Some(values) = branches("enum") {
        let mut kinds = values.iter().filter(|value| !value.is_null()).map(|value| match value {
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Null | Value::String(_) => "string",
        });
        let first = kinds.next().unwrap_or("string");
        return Some(if kinds.all(|kind| kind == first) { first } else { "string" });
    }
    if let Some(all) = branches("allOf") {
        let mut kinds = all.iter().filter_map(|branch| type_of(branch, depth + 1));
        return Some(kinds.find(|kind| *kind != "string").unwrap_or("string"));
    }
    if schema.get("properties").is_some() {
        return Some("object");
    }
    schema.get("items").map(|_| "array")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_becomes_what_its_schema_says() {
        for (text, schema, value) in [
            ("5", json!({ "type": "string" }), json!("5")),
            ("5", json!({ "type": "integer" }), json!(5)),
            ("5.5", json!({ "type": "integer" }), json!("5.5")),
            ("5", json!({ "type": "number" }), json!(5)),
            ("5.0", json!({ "type": "number" }), json!(5.0)),
            ("inf", json!({ "type": "number" }), json!("inf")),
            ("True", json!({ "type": "boolean" }), json!(true)),
            ("yes", json!({ "type": "boolean" }), json!("yes")),
            ("[1, \"a\"]", json!({ "type": "array" }), json!([1, "a"])),
            ("{'a': True}", json!({ "type": "object" }), json!({ "a": true })),
            ("{a}", json!({ "type": "object" }), json!("{a}")),
            ("5", json!({ "type": ["null", "integer"] }), json!(5)),
            ("5", json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }), json!(5)),
            ("5", json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }), json!("5")),
            ("5", json!({ "enum": [1, 5] }), json!(5)),
            ("5", json!({ "enum": [1, "a"] }), json!("5")),
            ("[5]", json!({ "items": {} }), json!([5])),
            ("5", json!({}), json!("5")),
            ("NULL", json!({ "type": "string" }), json!(null)),
        ] {
            assert_eq!(typed_value(text, Some(&schema)), value, "{text} {schema}");
        }
        assert_eq!(typed_value("5", None), json!("5"));
        let mut deep = json!({ "type": "integer" });
        for _ in 0..100 {
            deep = json!({ "anyOf": [deep] });
        }
        assert_eq!(typed_value("5", Some(&deep)), json!("5"));
    }

    #[test]
    fn one_piece_of_text_is_the_value_of_the_only_parameter() {
        let schema =
            json!({ "type": "object", "properties": { "n": { "type": "integer" }, "m": {} } });
        let mut tools = vec![ToolSpec::new("f", "", schema)];
        let read = |text: &str, tools: &[ToolSpec]| {
            arguments_of_input(text, "f", tools, &(0..1)).map(Value::Object)
        };
        assert_eq!(read("{\"n\": 1}", &tools), Ok(json!({ "n": 1 })));
        assert_eq!(read("1", &tools).unwrap_err().kind, FormatErrorKind::Arguments);
        tools[0].parameters["required"] = json!(["n"]);
        assert_eq!(read(" \"1\" ", &tools), Ok(json!({ "n": 1 })));
        assert_eq!(read("a b", &[]), Ok(json!({ "input": "a b" })));
        tools[0].parameters = json!({});
        assert_eq!(read("", &tools), Ok(json!({})));
    }
}
