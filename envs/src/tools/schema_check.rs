//! What keeps a value from having the form that a JSON schema describes.

use serde_json::{Map, Value};
use spar_core::registry::known_names;

/// Things that are told at the most.
const MOST_TOLD: usize = 6;
/// Levels of nesting that are looked into.
const MOST_DEPTH: usize = 32;
/// Characters of a value that are quoted.
const MOST_QUOTED: usize = 40;

/// What is wrong with `arguments`, by a schema of an object: every field that is unknown, absent or of another form, in the
/// order of the arguments; empty where nothing is. Of the schema's keywords the common ones are heeded: `type`, `enum`,
/// `const`, `properties`, `required`, `additionalProperties`, `items`, `anyOf`, `oneOf`, and bounds of numbers, lengths and
/// counts. References are not followed: what stands behind them fits.
pub(super) fn mismatches(schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(schema) = schema.as_object() {
        check_object(schema, arguments, "", &mut told, MOST_DEPTH);
    }
    if told.len() > MOST_TOLD {
        let more = told.len() - MOST_TOLD;
        told.truncate(MOST_TOLD);
        told.push(format!("and {more} more"));
    }
    told
}

fn check_object(
    schema: &Map<String, Value>,
    fields: &Map<String, Value>,
    path: &str,
    told: &mut Vec<String>,
    depth: usize,
) {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let additional = schema.get("additionalProperties");
    for (name, value) in fields {
        if told.len() > MOST_TOLD * 2 {
            return;
        }
        let schema = match (properties.get(name), additional) {
            (Some(schema), _) => schema,
            (None, Some(Value::Bool(false))) => {
                told.push(unknown(path, name, properties));
                continue;
            }
            (None, Some(schema)) => schema,
            (None, None) => continue,
        };
        check(schema, value, &joined(path, name), told, depth);
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            told.push(format!("`{}` is missing", joined(path, name)));
        }
    }
}

fn unknown(path: &str, name: &str, properties: &Map<String, Value>) -> String {
    let name = joined(path, &shortened(name));
    match known_names(&name, properties.keys().map(String::as_str)) {
        none if none.is_empty() => format!("there is no `{name}`, nor any other argument"),
        known => format!("there is no `{name}`, only {known}"),
    }
}

fn check(schema: &Value, value: &Value, path: &str, told: &mut Vec<String>, depth: usize) {
    let (Some(schema), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return;
    };
    let refuse = |told: &mut Vec<String>, expected: &str| {
        told.push(format!("`{path}`: expected {expected}, got {}", found(value)));
    };
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(choice).and_then(Value::as_array) {
            let fits = |schema: &Value| {
                let mut told = Vec::new();
                check(schema, value, path, &mut told, depth);
                told.is_empty()
            };
            if !choices.iter().any(fits) {
                let kinds: Vec<_> = choices.iter().map(described).collect();
                refuse(told, &kinds.join(" or "));
                return;
            }
        }
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(value)
    {
        refuse(told, &one_of(values));
        return;
    }
    if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
        refuse(told, &constant.to_string());
        return;
    }
    let types = types_of(schema);
    if !types.is_empty() && !types.iter().any(|name| has_type(value, name)) {
        refuse(told, &described_types(&types));
        return;
    }
    match value {
        Value::Number(number) => {
            let bound = number.as_f64().and_then(|value| broken_bound(schema, value));
            bound.iter().for_each(|it| refuse(told, it));
        }
        Value::String(text) => {
            let bound = broken_count(schema, text.chars().count(), LENGTHS);
            bound.iter().for_each(|it| refuse(told, it));
        }
        Value::Array(items) => {
            let bound = broken_count(schema, items.len(), COUNTS);
            bound.iter().for_each(|it| refuse(told, it));
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                if told.len() > MOST_TOLD * 2 {
                    return;
                }
                check(schema, item, &format!("{path}[{index}]"), told, depth);
            }
        }
        Value::Object(fields) => check_object(schema, fields, path, told, depth),
        Value::Null | Value::Bool(_) => {}
    }
}

const LENGTHS: [&str; 3] = ["minLength", "maxLength", "characters"];
const COUNTS: [&str; 3] = ["minItems", "maxItems", "items"];

/// What a number had to be by a bound that it is beyond.
fn broken_bound(schema: &Map<String, Value>, value: f64) -> Option<String> {
    type IsBeyond = fn(f64, f64) -> bool;
    let bounds: [(&str, IsBeyond, &str); 4] = [
        ("minimum", |value, bound| value < bound, "a number of at least"),
        ("maximum", |value, bound| value > bound, "a number of at most"),
        ("exclusiveMinimum", |value, bound| value <= bound, "a number above"),
        ("exclusiveMaximum", |value, bound| value >= bound, "a number below"),
    ];
    bounds.into_iter().find_map(|(name, is_beyond, words)| {
        let bound = schema.get(name)?;
        is_beyond(value, bound.as_f64()?).then(|| format!("{words} {bound}"))
    })
}

/// How many there had to be by a bound that a count is beyond.
fn broken_count(
    schema: &Map<String, Value>,
    count: usize,
    [least, most, unit]: [&str; 3],
) -> Option<String> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let below = bound(least).filter(|least| (count as u64) < *least);
    let above = bound(most).filter(|most| count as u64 > *most);
    let below = below.map(|least| format!("at least {least} {unit}"));
    below.or_else(|| above.map(|most| format!("at most {most} {unit}")))
}

fn types_of(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => is_integer(value),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A type that JSON does not have says nothing.
        _ => true,
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

/// What values of a schema are, in words.
fn described(schema: &Value) -> String {
    let Some(schema) = schema.as_object() else { return "something else".to_owned() };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return one_of(values);
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    match &types_of(schema)[..] {
        [] => "something else".to_owned(),
        types => described_types(types),
    }
}

fn described_types(types: &[&str]) -> String {
    let words = types.iter().map(|name| match *name {
        "string" => "a string",
        "number" => "a number",
        "integer" => "an integer",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        "null" => "null",
        other => other,
    });
    words.collect::<Vec<_>>().join(" or ")
}

fn one_of(values: &[Value]) -> String {
    let written: Vec<_> = values.iter().take(64).map(Value::to_string).collect();
    format!("one of {}", written.join(", "))
}

/// A value for messages: its type, and how it begins.
fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => shortened(&number.to_string()),
        Value::String(text) => format!("the string {}", Value::String(shortened(text))),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(MOST_QUOTED).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: Value, arguments: Value) -> Vec<String> {
        mismatches(&schema, arguments.as_object().unwrap())
    }

    #[test]
    fn every_field_that_does_not_fit_is_told() {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": { "type": "integer", "minimum": 1 },
                "unit": { "enum": ["m", "km"] },
                "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "points": { "type": "array", "maxItems": 2, "items": {
                    "type": "object",
                    "properties": { "x": { "type": "number" } },
                    "required": ["x"],
                    "additionalProperties": false,
                } },
            },
            "required": ["count"],
            "additionalProperties": false,
        });
        let fits = json!({ "count": 1, "unit": "m", "maybe": null, "points": [{ "x": 1.5 }] });
        assert_eq!(told(schema.clone(), fits), [""; 0]);
        let wrong =
            json!({ "unit": "mile", "maybe": 1, "points": [{ "x": "a", "y": 1 }], "pionts": 0 });
        assert_eq!(
            told(schema.clone(), wrong),
            [
                "`unit`: expected one of \"m\", \"km\", got the string \"mile\"",
                "`maybe`: expected a string or null, got 1",
                "`points[0].x`: expected a number, got the string \"a\"",
                "there is no `points[0].y`, only `x`",
                "there is no `pionts`, only `points`, `count`, `unit`, `maybe`",
                "`count` is missing",
            ]
        );
        assert_eq!(
            told(schema.clone(), json!({ "count": 0, "points": [1, 2, 3] })),
            [
                "`count`: expected a number of at least 1, got 0",
                "`points`: expected at most 2 items, got an array of 3",
                "`points[0]`: expected an object, got 1",
                "`points[1]`: expected an object, got 2",
                "`points[2]`: expected an object, got 3",
            ]
        );
        assert_eq!(
            told(schema, json!({ "count": 1.0 })),
            ["`count`: expected an integer, got 1.0"]
        );
    }

    #[test]
    fn what_is_told_is_bounded() {
        let schema = json!({ "properties": { "a": { "items": { "type": "string" } } }, "additionalProperties": false });
        let many = told(schema.clone(), json!({ "a": vec![1; 100_000] }));
        assert_eq!(many.len(), MOST_TOLD + 1);
        let long = told(schema, json!({ "é".repeat(100_000): 1 }));
        assert!(long[0].len() < 200, "{long:?}");
    }
}
