//! `json.dumps` and `json.loads`.

use std::fmt::Write;

use crate::repr::{write_float, write_int};
use crate::{Dict, Exception, Keys, Outcome, Value};

/// Bytes that most documents of results fit into.
const ROOM: usize = 128;

/// How JSON is written. The default is that of `json.dumps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonOptions {
    /// What is not ASCII is escaped. Default true.
    pub ensure_ascii: bool,
    /// Entries of dictionaries stand in the order of their keys, which have to be texts then. Default false.
    pub sort_keys: bool,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self { ensure_ascii: true, sort_keys: false }
    }
}

/// `json.dumps(value)`: with `", "` and `": "` between, keys that are numbers, truth values or `None` as texts, and
/// `NaN` and `Infinity` for what JSON has no words.
///
/// # Errors
///
/// A `TypeError` when something has no form in JSON, the `ValueError` of whole numbers with more than 4300 digits.
pub fn json_dumps(value: &Value) -> Outcome<String> {
    json_dumps_with(value, JsonOptions::default())
}

/// As [`json_dumps`], with options.
///
/// # Errors
///
/// As [`json_dumps`], and a `TypeError` when keys that are not texts have to be sorted.
pub fn json_dumps_with(value: &Value, options: JsonOptions) -> Outcome<String> {
    let mut out = String::with_capacity(ROOM);
    write_json(value, options, &mut out)?;
    Ok(out)
}

/// As [`json_dumps`], behind what `out` holds already.
///
/// # Errors
///
/// As [`json_dumps`].
pub fn json_dumps_to(value: &Value, out: &mut String) -> Outcome<()> {
    write_json(value, JsonOptions::default(), out)
}

/// Levels of lists and objects that documents may have which others made. `json.loads` reads about a thousand, and serde_json 128.
pub const MAX_JSON_DEPTH: usize = 256;

/// Whether a document nests no deeper than [`MAX_JSON_DEPTH`]. One that was put together otherwise than by reading may, and what
/// goes over it level by level would run out of stack.
pub fn is_json_shallow(json: &serde_json::Value) -> bool {
    fn is_within(json: &serde_json::Value, levels: usize) -> bool {
        let deeper = |json| levels > 0 && is_within(json, levels - 1);
        match json {
            serde_json::Value::Array(items) => items.iter().all(deeper),
            serde_json::Value::Object(entries) => entries.values().all(deeper),
            _ => true,
        }
    }
    is_within(json, MAX_JSON_DEPTH)
}

/// The value of a JSON document, as `json.loads` gives it. Of documents of others it is asked first whether they
/// [are shallow](is_json_shallow).
pub fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::from(value),
            (None, Some(value)) => Value::from(value),
            // What is whole in writing but does not fit is read as a float by `serde_json`.
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(from_json)),
        serde_json::Value::Object(entries) => {
            let keys = entries.keys().map(|key| Value::from(key.as_str())).collect();
            let values = entries.values().map(from_json).collect();
            Value::Dict(Dict::of_shape(Keys::from_distinct(keys).into(), values).into())
        }
    }
}

fn write_json(value: &Value, options: JsonOptions, out: &mut String) -> Outcome<()> {
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => write_int(value, out)?,
        Value::Float(value) => write_json_float(*value, out),
        Value::Str(text) => write_json_str(text, options, out),
        Value::List(items) | Value::Tuple(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_json(item, options, out)?;
            }
            out.push(']');
        }
        Value::Dict(dict) if options.sort_keys => {
            let mut entries: Vec<_> = dict.iter().collect();
            if let Some(pair) =
                entries.windows(2).find(|pair| pair.iter().any(|(key, _)| key.as_str().is_none()))
            {
                return Err(Exception::type_error(format_args!(
                    "'<' not supported between instances of '{}' and '{}'",
                    pair[1].0.type_name(),
                    pair[0].0.type_name()
                )));
            }
            entries.sort_by(|(one, _), (other, _)| one.as_str().cmp(&other.as_str()));
            write_entries(entries.into_iter(), options, out)?;
        }
        Value::Dict(dict) => write_entries(dict.iter(), options, out)?,
        Value::Ellipsis | Value::Complex(..) | Value::Set(_) | Value::Opaque(_) => {
            return Err(Exception::type_error(format_args!(
                "Object of type {} is not JSON serializable",
                value.type_name()
            )));
        }
    }
    Ok(())
}

fn write_entries<'v>(
    entries: impl Iterator<Item = (&'v Value, &'v Value)>,
    options: JsonOptions,
    out: &mut String,
) -> Outcome<()> {
    out.push('{');
    for (at, (key, value)) in entries.enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        match key {
            Value::Str(text) => write_json_str(text, options, out),
            Value::None => out.push_str("\"null\""),
            Value::Bool(value) => out.push_str(if *value { "\"true\"" } else { "\"false\"" }),
            Value::Int(value) => {
                out.push('"');
                write_int(value, out)?;
                out.push('"');
            }
            Value::Float(value) => {
                out.push('"');
                write_json_float(*value, out);
                out.push('"');
            }
            other => {
                return Err(Exception::type_error(format_args!(
                    "keys must be str, int, float, bool or None, not {}",
                    other.type_name()
                )));
            }
        }
        out.push_str(": ");
        write_json(value, options, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_json_float(value: f64, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        write_float(value, true, out);
    }
}

fn write_json_str(text: &str, options: JsonOptions, out: &mut String) {
    out.push('"');
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    // Without an early end, so that many bytes are looked at in one step.
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            ' '..='~' => out.push(character),
            _ if !options.ensure_ascii => out.push(character),
            _ => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_nest_too_deeply_are_known() {
        let mut deep = serde_json::json!(1);
        for level in 0..1000 {
            assert_eq!(is_json_shallow(&deep), level <= MAX_JSON_DEPTH, "{level}");
            deep = match level % 2 {
                0 => serde_json::json!([1, deep]),
                _ => serde_json::json!({ "a": deep }),
            };
        }
    }

    #[test]
    fn json_is_written_as_cpython_writes_it() {
        let mut dict = Dict::default();
        for (key, value) in [
            (Value::from(1_i64), Value::from("é😀\u{7f}\u{1}\"")),
            (Value::None, Value::Float(f64::NAN)),
            (Value::Bool(true), Value::tuple([Value::from(1_i64), Value::Float(1e16)])),
            (Value::Float(0.5), Value::Float(f64::NEG_INFINITY)),
        ] {
            // `True` is the key `1` once more, so it takes over its value.
            dict.insert(key, value).unwrap();
        }
        let value = Value::Dict(dict.into());
        let text = r#"{"1": [1, 1e+16], "null": NaN, "0.5": -Infinity}"#;
        assert_eq!(json_dumps(&value).unwrap(), text);
        let text = json_dumps(&Value::from("é😀\u{7f}\u{1}\"")).unwrap();
        assert_eq!(text, r#""\u00e9\ud83d\ude00\u007f\u0001\"""#);
        let plain = JsonOptions { ensure_ascii: false, sort_keys: true };
        let dict = Value::dict([("b", Value::from("é")), ("a", Value::None)]);
        assert_eq!(json_dumps_with(&dict, plain).unwrap(), r#"{"a": null, "b": "é"}"#);
    }

    #[test]
    fn what_json_cannot_say_raises() {
        let set = Value::Set(std::sync::Arc::default());
        let error = json_dumps(&Value::list([set])).unwrap_err();
        assert_eq!(error.text, "Object of type set is not JSON serializable");
    }
}
