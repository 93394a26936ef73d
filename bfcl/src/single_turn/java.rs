//! Values in the words of Java.

use std::sync::LazyLock;

use regex::Regex;
use spar_python::{Dict, Exception, Outcome, Value, text::strip, to_float, to_int};

/// What a text stands for as a value of a documented type; a text that does not look like one stays a text.
///
/// # Errors
///
/// What the program raises: types whose conversion it lacks.
pub(super) fn converted(text: &str, documented: &str, inner: Option<&str>) -> Outcome<Value> {
    static WHOLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+\n?\z"));
    static FLOAT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]\n?\z"));
    static DOUBLE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?\n?\z"));
    static LONG: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+[lL]\n?\z"));
    let same = || Value::from(text);
    Ok(match documented {
        "byte" | "short" | "integer" if WHOLE.is_match(text) => Value::from(to_int(&same())?),
        "float" if FLOAT.is_match(text) => number(text, &['f', 'F'])?,
        "double" if DOUBLE.is_match(text) => Value::Float(to_float(&same())?),
        "long" if LONG.is_match(text) => {
            Value::from(to_int(&Value::from(without_suffix(text, &['l', 'L'])))?)
        }
        "boolean" if text == "true" || text == "false" => Value::Bool(text == "true"),
        "byte" | "short" | "integer" | "float" | "double" | "long" | "boolean" | "char"
        | "String" | "any" => same(),
        "ArrayList" => list(text, inner)?,
        "Array" => array(text, inner)?,
        "HashMap" => map(text)?,
        "Set" | "Hashtable" => {
            return Err(Exception::refused("Set conversion is not implemented"));
        }
        other => {
            return Err(Exception::refused(format_args!("{other} conversion is not implemented")));
        }
    })
}

pub(super) fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is right")
}

/// A last letter is taken off, also before a last line end.
fn without_suffix(text: &str, suffixes: &[char]) -> String {
    let (body, end) = match text.strip_suffix('\n') {
        Some(body) => (body, "\n"),
        None => (text, ""),
    };
    format!("{}{end}", body.strip_suffix(suffixes).unwrap_or(body))
}

fn number(text: &str, suffixes: &[char]) -> Outcome<Value> {
    to_float(&Value::from(without_suffix(text, suffixes))).map(Value::Float)
}

/// An element of a list: texts without their quotes, others by their type.
fn element(text: &str, inner: Option<&str>) -> Outcome<Value> {
    match inner {
        Some("char" | "String") => {
            let characters: Vec<char> = text.chars().collect();
            let end = characters.len().saturating_sub(1).max(1).min(characters.len());
            let start = 1.min(end);
            Ok(Value::from(characters[start..end].iter().collect::<String>()))
        }
        Some(inner) => converted(text, inner, None),
        None => untyped(text),
    }
}

fn list(text: &str, inner: Option<&str>) -> Outcome<Value> {
    static AS_LIST: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)"));
    static ADDED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?s)new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}"));
    static ADD: LazyLock<Regex> = LazyLock::new(|| pattern(r"add\((.+?)\)"));
    static EMPTY: LazyLock<Regex> = LazyLock::new(|| pattern(r"new\s+ArrayList<\w*>\(\)"));
    if let Some(found) = AS_LIST.captures(text) {
        let elements: Outcome<Vec<Value>> =
            found[1].split(',').map(|part| element(strip(part), inner)).collect();
        return elements.map(Value::list);
    }
    if let Some(found) = ADDED.captures(text) {
        let elements: Outcome<Vec<Value>> =
            ADD.captures_iter(&found[1]).map(|add| element(strip(&add[1]), inner)).collect();
        return elements.map(Value::list);
    }
    Ok(if EMPTY.is_match(text) { Value::list([]) } else { Value::from(text) })
}

fn array(text: &str, inner: Option<&str>) -> Outcome<Value> {
    static ARRAY: LazyLock<Regex> = LazyLock::new(|| pattern(r"new\s+\w+\[\]\s*\{(.*?)\}"));
    let Some(found) = ARRAY.captures(text) else { return Ok(Value::from(text)) };
    let parts = found[1].split(',').map(strip).filter(|part| !part.is_empty());
    let elements: Outcome<Vec<Value>> = parts
        .map(|part| match inner {
            Some(inner) => converted(part, inner, None),
            None => untyped(part),
        })
        .collect();
    elements.map(Value::list)
}

fn map(text: &str) -> Outcome<Value> {
    static FILLED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?s)new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}"));
    static PUT: LazyLock<Regex> = LazyLock::new(|| pattern(r#"put\("(.*?)",\s*(.*?)\)"#));
    static EMPTY: LazyLock<Regex> = LazyLock::new(|| pattern(r"new\s+HashMap<.*?>\s*\(\)"));
    let mut entries = Dict::default();
    if let Some(found) = FILLED.captures(text) {
        for put in PUT.captures_iter(&found[1]) {
            entries.insert_str(&put[1], untyped(strip(&put[2]))?);
        }
    } else if !EMPTY.is_match(text) {
        return Ok(Value::from(text));
    }
    Ok(Value::Dict(entries.into()))
}

/// A value whose type is not known.
fn untyped(text: &str) -> Outcome<Value> {
    static LONG: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+[lL]\n?\z"));
    static FLOAT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]\n?\z"));
    if text == "true" || text == "false" {
        return Ok(Value::Bool(text == "true"));
    }
    if text.starts_with('"') && text.ends_with('"') {
        return Ok(Value::from(text.get(1..text.len().saturating_sub(1)).unwrap_or_default()));
    }
    if LONG.is_match(text) {
        return Ok(Value::from(to_int(&Value::from(without_suffix(text, &['l', 'L'])))?));
    }
    if FLOAT.is_match(text) {
        return number(text, &['f', 'F']);
    }
    let same = Value::from(text);
    Ok(match (to_int(&same), to_float(&same)) {
        (Ok(whole), _) => Value::from(whole),
        (Err(_), Ok(float)) => Value::Float(float),
        _ => same,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use spar_python::repr;

    #[test]
    fn values_of_java_are_read_loosely() {
        for (text, documented, inner, value) in [
            ("123", "integer", None, "123"),
            ("1.5", "integer", None, "'1.5'"),
            ("3e3F", "float", None, "3000.0"),
            ("3.14", "float", None, "'3.14'"),
            ("9223372036854775807L", "long", None, "9223372036854775807"),
            ("true", "boolean", None, "True"),
            ("'a'", "char", None, "\"'a'\""),
            ("new int[]{1, 2, }", "Array", None, "[1, 2]"),
            ("new long[]{1L, 2, 3L}", "Array", Some("long"), "[1, '2', 3]"),
            (
                "new ArrayList<>(Arrays.asList(\"a\", \"b\")) garbage",
                "ArrayList",
                Some("String"),
                "['a', 'b']",
            ),
            (
                "new ArrayList<Float>() {{ add(1.0f); add(2.0f); }}",
                "ArrayList",
                Some("float"),
                "[1.0, 2.0]",
            ),
            ("new ArrayList<>()", "ArrayList", None, "[]"),
            (
                "new HashMap<String, Object>() {{ put(\"k\", 1); put(\"l\", true); }}",
                "HashMap",
                None,
                "{'k': 1, 'l': True}",
            ),
            ("new HashMap<>() {{ }}", "HashMap", None, "{}"),
            ("nothing", "HashMap", None, "'nothing'"),
        ] {
            let got = repr(&converted(text, documented, inner).unwrap()).unwrap();
            assert_eq!(got, value, "{text}");
        }
        assert!(converted("x", "Set", None).is_err());
    }
}
