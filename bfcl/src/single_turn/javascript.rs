//! Values in the words of JavaScript.

use std::sync::LazyLock;

use regex::Regex;
use spar_python::{Dict, Exception, Outcome, Value, text::strip, to_float, to_int};

use super::java::pattern;

/// Collections in collections are not followed further.
const MAX_DEPTH: usize = 32;

/// What a text stands for as a value of a documented type; a text that does not look like one stays a text.
///
/// # Errors
///
/// What the program raises: types that there are not.
pub(super) fn converted(text: &str, documented: &str, inner: Option<&str>) -> Outcome<Value> {
    at_depth(text, documented, inner, 0)
}

fn at_depth(text: &str, documented: &str, inner: Option<&str>, depth: usize) -> Outcome<Value> {
    static WHOLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+\n?\z"));
    static FLOAT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+(\.\d+)?\n?\z"));
    static BIG: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+n\n?\z"));
    if depth > MAX_DEPTH {
        return Err(Exception::refused("collections nest too deeply"));
    }
    let same = || Value::from(text);
    Ok(match documented {
        "String" if is_quoted(text) => Value::from(without_ends(text)),
        "integer" if WHOLE.is_match(text) => Value::from(to_int(&same())?),
        "float" if FLOAT.is_match(text) => Value::Float(to_float(&same())?),
        "Bigint" if BIG.is_match(text) => {
            // The last character goes, which may be a line end: then the letter stays and is no number.
            Value::from(to_int(&Value::from(&text[..text.len() - 1]))?)
        }
        "Boolean" if text == "true" || text == "false" => Value::Bool(text == "true"),
        "String" | "integer" | "float" | "Bigint" | "Boolean" | "any" => same(),
        "dict" => dict(strip(text), depth),
        "array" => {
            let code = strip(text);
            array(code, inner, depth).unwrap_or_else(|_| Value::from(code))
        }
        other => return Err(Exception::value_error(format_args!("Unsupported type: {other}"))),
    })
}

fn is_quoted(text: &str) -> bool {
    ['"', '\''].iter().any(|&quote| text.starts_with(quote) && text.ends_with(quote))
}

/// `text[1:-1]` of a text in quotes.
fn without_ends(text: &str) -> &str {
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
}

fn array(code: &str, inner: Option<&str>, depth: usize) -> Outcome<Value> {
    static NESTED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^(?:\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\))",
        )
    });
    static INNER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[(.*?)\]"));
    static FLAT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:\[(.*?)\]|\bnew\s+Array\((.*?)\))"));
    if let Some(found) = NESTED.find(code) {
        let rows = INNER.captures_iter(found.as_str()).enumerate().map(|(at, row)| {
            let mut row = strip(row.get(1).map_or("", |row| row.as_str()));
            if at == 0 {
                row = row.strip_prefix('[').unwrap_or(row);
            }
            Value::list(row.split(',').map(|element| untyped(strip(element))))
        });
        return Ok(Value::list(rows));
    }
    let Some(found) = FLAT.captures(code) else { return Ok(Value::from(code)) };
    let elements = found.get(1).or_else(|| found.get(2)).map_or("", |found| strip(found.as_str()));
    if elements.is_empty() {
        return Ok(Value::list([]));
    }
    let elements: Outcome<Vec<Value>> = elements
        .split(',')
        .map(|element| {
            let element = strip(element);
            match inner {
                Some(inner) if element.starts_with(['\'', '"']) => {
                    at_depth(element, inner, Some("String"), depth + 1)
                }
                Some(inner) => at_depth(element, inner, None, depth + 1),
                None => Ok(untyped(element)),
            }
        })
        .collect();
    elements.map(Value::list)
}

fn dict(code: &str, depth: usize) -> Value {
    static DICT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\{(.*?)\}"));
    let Some(found) = DICT.captures(code).filter(|_| code != "{}") else {
        return if code == "{}" { Value::dict::<&str>([]) } else { Value::from(code) };
    };
    let mut entries = Dict::default();
    for (key, value) in pairs(found.get(1).map_or("", |content| content.as_str())) {
        let key = strip(key).trim_matches(['\'', '"']);
        let value = strip(value);
        let value = if value.starts_with('[') && value.ends_with(']') {
            array(value, None, depth + 1).unwrap_or_else(|_| Value::from(value))
        } else if value.starts_with('{') && value.ends_with('}') && depth < MAX_DEPTH {
            dict(value, depth + 1)
        } else {
            untyped(value.trim_matches(['\'', '"']))
        };
        entries.insert_str(key, value);
    }
    Value::Dict(entries.into())
}

/// The matches of `([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)`: a key up to a colon, and a value up to a comma behind which
/// another key stands, or to the end.
fn pairs(content: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    let mut rest = content;
    loop {
        rest = rest.trim_start_matches(':');
        let Some(colon) = rest.find(':') else { return pairs };
        let key = &rest[..colon];
        let value = rest[colon + 1..].trim_start_matches(spar_python::characters::is_space);
        let end = value.match_indices(',').find(|(at, _)| {
            let after = &value[at + 1..];
            let key = &after[..after.find(',').unwrap_or(after.len())];
            // A colon with something before it, be it a blank.
            key.char_indices().skip(1).any(|(_, c)| c == ':')
        });
        let Some((at, _)) = end else {
            pairs.push((key, value));
            return pairs;
        };
        pairs.push((key, &value[..at]));
        let after = &value[at + 1..];
        let trimmed = after.trim_start_matches(spar_python::characters::is_space);
        // Blanks belong to the comma unless the key consists of them.
        rest = if trimmed.starts_with(':') { after } else { trimmed };
    }
}

fn untyped(text: &str) -> Value {
    let text = strip(text);
    if text == "true" || text == "false" {
        return Value::Bool(text == "true");
    }
    if is_quoted(text) {
        return Value::from(without_ends(text));
    }
    let same = Value::from(text);
    match (to_int(&same), to_float(&same)) {
        (Ok(whole), _) => Value::from(whole),
        (Err(_), Ok(float)) => Value::Float(float),
        _ => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spar_python::repr;

    #[test]
    fn values_of_javascript_are_read_loosely() {
        for (text, documented, inner, value) in [
            ("\"x\"", "String", None, "'x'"),
            ("x", "String", None, "'x'"),
            ("12n", "Bigint", None, "12"),
            ("12", "Bigint", None, "'12'"),
            ("1.5", "float", None, "1.5"),
            ("[1, \"two\", true]", "array", None, "[1, 'two', True]"),
            ("new Array(3.14, 'pi')", "array", None, "[3.14, 'pi']"),
            (" [ [ 1, 2 ], [ 3,   4]]", "array", Some("array"), "[[1, 2], [3, 4]]"),
            ("[\"a\", \"b\"] garbage", "array", Some("String"), "['a', 'b']"),
            ("[1]", "array", Some("nothing"), "'[1]'"),
            ("{}", "dict", None, "{}"),
            (
                "{\"a\": b, \"c\": [\"d\", 'e'], f: 1.5}",
                "dict",
                None,
                "{'a': 'b', 'c': ['d', 'e'], 'f': 1.5}",
            ),
            ("{\"a\": 1, b, \"c\": 2} x", "dict", None, "{'a': '1, b', 'c': 2}"),
            ("plain", "dict", None, "'plain'"),
        ] {
            let got = repr(&converted(text, documented, inner).unwrap()).unwrap();
            assert_eq!(got, value, "{text}");
        }
    }
}
