//! JSON within texts, and the calls in it.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Serializer, Value};
use spar_core::ToolCall;

use crate::{FormatError, FormatErrorKind};

/// Reads the value that begins at `start`, white space before it apart, and says where it ends.
pub(crate) fn read_value(text: &str, start: usize) -> Result<(Value, usize), FormatError> {
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let detail = match values.next() {
        Some(Ok(value)) => return Ok((value, start + values.byte_offset())),
        Some(Err(error)) => error.to_string(),
        None => "the text is over".to_owned(),
    };
    let message = format!("what should be JSON is none: {detail}");
    Err(FormatError::new(FormatErrorKind::Json, start..text.len(), message))
}

/// The call that `value`, which stands at `span`, describes by `name` and `arguments` (or
/// `parameters`, as some models have it).
pub(crate) fn call(
    mut value: Value,
    span: &std::ops::Range<usize>,
) -> Result<ToolCall, FormatError> {
    let refuse = |message: &str| {
        Err(FormatError::new(FormatErrorKind::Name, span.clone(), message.to_owned()))
    };
    let Some(fields) = value.as_object_mut() else {
        return refuse("a call has to be a JSON object with `name` and `arguments`");
    };
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
        Some(_) => return refuse("`name` of a call has to be the name of a tool"),
        None => return refuse("the call has no `name`"),
    };
    let keys = ["arguments", "parameters"];
    let given = keys.iter().find_map(|key| fields.remove(*key).filter(|value| !value.is_null()));
    Ok(ToolCall::new(name, arguments(given.unwrap_or(Value::Null), span)?))
}

/// Arguments as an object: as they are, in a string that holds JSON, or none at all.
pub(crate) fn arguments(
    value: Value,
    span: &std::ops::Range<usize>,
) -> Result<Map<String, Value>, FormatError> {
    let found = match value {
        Value::Null => return Ok(Map::new()),
        Value::Object(arguments) => return Ok(arguments),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(arguments)) => return Ok(arguments),
            _ => "a string",
        },
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Array(_) => "an array",
    };
    let message = format!("the arguments of a call have to be a JSON object, not {found}");
    Err(FormatError::new(FormatErrorKind::Arguments, span.clone(), message))
}

/// JSON on one line with a space behind commas and colons, as chat templates write it.
pub(crate) fn to_line(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Spaced);
    value.serialize(&mut serializer).expect("values have string keys, and memory takes every byte");
    String::from_utf8(bytes).expect("JSON is written as UTF-8")
}

/// `{"name": ..., KEY: ...}`, on one line.
pub(crate) fn call_line(call: &ToolCall, key: &str) -> String {
    let name = to_line(&call.name);
    let arguments = to_line(&call.arguments);
    format!("{{\"name\": {name}, \"{key}\": {arguments}}}")
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_ends_where_it_ends() {
        let text = r#"x {"a": "}"} y"#;
        assert_eq!(read_value(text, 1).unwrap(), (json!({ "a": "}" }), 12));
        for text in ["", " ", "{", "{'a': 1}", "NaN", &"[".repeat(1000)] {
            assert_eq!(read_value(text, 0).unwrap_err().kind, FormatErrorKind::Json, "{text}");
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let (value, _) = read_value(r#"{"a": 1, "b": 2, "a": 3}"#, 0).unwrap();
        assert_eq!(to_line(&value), r#"{"a": 3, "b": 2}"#);
    }

    #[test]
    fn arguments_may_be_text_or_absent_and_are_an_object() {
        let read = |value| call(value, &(0..1)).map(|call| to_line(&call.arguments));
        assert_eq!(
            read(json!({ "name": "f", "arguments": "{\"a\": [1, 2]}" })).unwrap(),
            r#"{"a": [1, 2]}"#
        );
        assert_eq!(
            read(json!({ "name": "f", "arguments": null, "parameters": {} })).unwrap(),
            "{}"
        );
        assert_eq!(read(json!({ "name": "f" })).unwrap(), "{}");
        for arguments in [json!(1), json!([1]), json!("a"), json!(true)] {
            let error = read(json!({ "name": "f", "arguments": arguments })).unwrap_err();
            assert_eq!(error.kind, FormatErrorKind::Arguments);
        }
        for value in [json!({}), json!([]), json!({ "name": 1 }), json!({ "name": " " })] {
            assert_eq!(read(value).unwrap_err().kind, FormatErrorKind::Name);
        }
    }
}
