//! Values written as Python writes them.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Nesting above is taken for an attack on the stack.
const DEEPEST: usize = 200;

/// A value of a template from JSON.
pub(super) fn from_json(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(values) => values.iter().map(from_json).collect(),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(key, value)| (key.as_str(), from_json(value))))
        }
    }
}

/// The options of `json.dumps`.
#[derive(Debug, Clone)]
pub(super) struct JsonStyle {
    /// Written once per level on lines of their own; absent: all on one line.
    pub(super) indent: Option<String>,
    pub(super) item_separator: String,
    pub(super) key_separator: String,
    /// Whether other characters than ASCII are escaped.
    pub(super) ensure_ascii: bool,
    pub(super) sort_keys: bool,
    /// Characters that are never escaped.
    pub(super) kept: String,
}

/// `json.dumps(value)`.
pub(super) fn json(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(&mut out, value, style, 0)?;
    Ok(out)
}

fn write_json(
    out: &mut String,
    value: &Value,
    style: &JsonStyle,
    depth: usize,
) -> Result<(), Error> {
    check_depth(depth)?;
    let open = |out: &mut String, depth: usize| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    };
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value, ["NaN", "Infinity", "-Infinity"])),
        ValueKind::String => json_string(out, value.as_str().unwrap_or_default(), style),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut is_empty = true;
            out.push('[');
            for item in value.try_iter()? {
                if !is_empty {
                    out.push_str(&style.item_separator);
                }
                is_empty = false;
                open(out, depth + 1);
                write_json(out, &item, style, depth + 1)?;
            }
            if !is_empty {
                open(out, depth);
            }
            out.push(']');
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            out.push('{');
            for (index, key) in keys.iter().enumerate() {
                if index > 0 {
                    out.push_str(&style.item_separator);
                }
                open(out, depth + 1);
                let name = match key.kind() {
                    ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
                    ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                        let mut name = String::new();
                        write_json(&mut name, key, style, depth + 1)?;
                        name
                    }
                    kind => return Err(not_serializable(kind)),
                };
                json_string(out, &name, style);
                out.push_str(&style.key_separator);
                write_json(out, &value.get_item(key)?, style, depth + 1)?;
            }
            if !keys.is_empty() {
                open(out, depth);
            }
            out.push('}');
        }
        kind => return Err(not_serializable(kind)),
    }
    Ok(())
}

fn not_serializable(kind: ValueKind) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("a value of type {kind} cannot be JSON"))
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        let detail = format!("values are nested more than {DEEPEST} deep");
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    Ok(())
}

fn json_string(out: &mut String, text: &str, style: &JsonStyle) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            '\u{7f}'.. if style.ensure_ascii && !style.kept.contains(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// `str(value)`.
pub(super) fn string(value: &Value, kept: &str) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Seq | ValueKind::Map => {
            let mut out = String::new();
            write_repr(&mut out, value, kept, 0)?;
            Ok(out)
        }
        _ => Ok(value.to_string()),
    }
}

/// `repr(value)`.
fn write_repr(out: &mut String, value: &Value, kept: &str, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::Number => out.push_str(&number(value, ["nan", "inf", "-inf"])),
        ValueKind::String => repr_string(out, value.as_str().unwrap_or_default(), kept),
        ValueKind::Seq => {
            let is_tuple = value.is_tuple();
            out.push(if is_tuple { '(' } else { '[' });
            let mut count = 0;
            for item in value.try_iter()? {
                if count > 0 {
                    out.push_str(", ");
                }
                count += 1;
                write_repr(out, &item, kept, depth + 1)?;
            }
            if is_tuple && count == 1 {
                out.push(',');
            }
            out.push(if is_tuple { ')' } else { ']' });
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(out, &key, kept, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, kept, depth + 1)?;
            }
            out.push('}');
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn repr_string(out: &mut String, text: &str, kept: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character == quote => out.extend(['\\', character]),
            _ if kept.contains(character) || is_printable(character) => out.push(character),
            _ => match u32::from(character) {
                code @ ..0x100 => out.push_str(&format!("\\x{code:02x}")),
                code @ ..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    out.push(quote);
}

fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    // Behind another character, the standard library escapes just what is not printable.
    let text: String = ['a', character].iter().collect();
    text.escape_debug().nth(1) == Some(character)
}

/// `repr` of a number; `special` has the names of what is none and of the infinities.
fn number(value: &Value, special: [&str; 3]) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(float) = f64::try_from(value.clone()) else { return value.to_string() };
    let [not_a_number, infinite, negative_infinite] = special;
    match float {
        _ if float.is_nan() => not_a_number.to_owned(),
        f64::INFINITY => infinite.to_owned(),
        f64::NEG_INFINITY => negative_infinite.to_owned(),
        _ => finite(float),
    }
}

/// The shortest decimal that reads back, with an exponent where Python writes one.
fn finite(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = float.to_string();
    if plain.contains('.') { plain } else { plain + ".0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (float, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
            (1e100, "1e+100"),
            (123_456_789.125, "123456789.125"),
        ] {
            assert_eq!(finite(float), expected);
        }
    }

    #[test]
    fn strings_are_written_as_python_writes_them() {
        let repr = |text: &str| {
            let mut out = String::new();
            repr_string(&mut out, text, "\u{e001}");
            out
        };
        assert_eq!(repr("it's"), "\"it's\"");
        assert_eq!(repr("'\"'"), "'\\'\"\\''");
        assert_eq!(
            repr("a\\\n\t\r\u{7f}\u{a0}é\u{ad}日🙂"),
            "'a\\\\\\n\\t\\r\\x7f\\xa0é\\xad日🙂'"
        );
        assert_eq!(repr("\u{2028}\u{e000}\u{e001}\u{301}"), "'\\u2028\\ue000\u{e001}\u{301}'");
    }
}
