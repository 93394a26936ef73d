//! Calls in what a policy wrote.

use serde_json::{Map, Value as Json, json};
use spar_python::{
    Argument, Dict, Exception, Expression, NoNames, Outcome, UnaryOperator, Value, evaluate, parse,
    repr,
};

/// A call: its name and its arguments by name.
pub type DecodedCall = (String, Dict);

/// Reads the calls of an answer in words, `[name(parameter=value), ...]` with or without the brackets, as the program
/// does for prompts: what is given by its place alone is dropped, names stand for texts.
///
/// # Errors
///
/// What the program raises where the text is none; then it counts as an answer without calls.
pub fn decode_text(text: &str) -> Outcome<Vec<DecodedCall>> {
    let mut text = text.trim_matches(['`', '\n', ' ']).to_owned();
    if !text.starts_with('[') {
        text.insert(0, '[');
    }
    if !text.ends_with(']') {
        text.push(']');
    }
    let text = spar_python::text::strip(&text).trim_matches('\'');
    let not_calls = || Exception::refused("an answer consists of calls");
    let items = match parse(text)? {
        Expression::Call(function, arguments) => return Ok(vec![call(&function, &arguments)?]),
        Expression::List(items) | Expression::Tuple(items) | Expression::Set(items) => items,
        _ => return Err(not_calls()),
    };
    items
        .iter()
        .map(|item| match item {
            Expression::Call(function, arguments) => call(function, arguments),
            _ => Err(not_calls()),
        })
        .collect()
}

/// Reads calls whose arguments are written in another language, `[name(parameter=value, ...)]`: values stay as they are
/// written, texts without their quotes. None where there is no such call.
pub fn decode_raw(text: &str) -> Option<Vec<DecodedCall>> {
    let text = text.trim_matches(['`', '\n', ' ']);
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let calls: Option<Vec<DecodedCall>> = parts(text).into_iter().map(raw_call).collect();
    calls.filter(|calls| !calls.is_empty())
}

fn raw_call(text: &str) -> Option<DecodedCall> {
    let (name, rest) = text.split_once('(')?;
    let arguments = rest.trim_end().strip_suffix(')')?;
    let name = name.trim();
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '$';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let mut named = Dict::default();
    for argument in parts(arguments) {
        let (name, value) = argument.split_once('=')?;
        let value = value.trim();
        let quotes = ['"', '\'']
            .into_iter()
            .find(|quote| value.len() > 1 && value.starts_with(*quote) && value.ends_with(*quote));
        let value = if quotes.is_some() { &value[1..value.len() - 1] } else { value };
        named.insert_str(name.trim(), Value::from(value));
    }
    Some((name.to_owned(), named))
}

/// What stands between commas outside of brackets and quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut quote = None;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if is_escaped => {}
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        is_escaped = quote.is_some() && character == '\\' && !is_escaped;
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The calls as they are carried out: `name(parameter=value, ...)`.
///
/// # Errors
///
/// The `ValueError` of whole numbers with too many digits.
pub fn executable(calls: &[DecodedCall]) -> Outcome<Vec<String>> {
    calls.iter().map(|(name, arguments)| written_call(name, arguments)).collect()
}

/// The calls as the checker of single turns takes them: `{name: {parameter: value}}`.
pub fn calls_as_json(calls: &[DecodedCall]) -> Json {
    let one = |(name, arguments): &DecodedCall| json!({ name: json_of_dict(arguments) });
    calls.iter().map(one).collect()
}

/// A native tool call as it is carried out: `name(parameter=value,...)`.
///
/// # Errors
///
/// The `ValueError` of whole numbers with too many digits.
pub fn written_native_call(name: &str, arguments: &Map<String, Json>) -> Outcome<String> {
    let arguments: Outcome<Vec<String>> = arguments
        .iter()
        .map(|(name, value)| Ok(format!("{name}={}", repr(&spar_python::from_json(value))?)))
        .collect();
    Ok(format!("{name}({})", arguments?.join(",")))
}

fn written_call(name: &str, arguments: &Dict) -> Outcome<String> {
    let arguments: Outcome<Vec<String>> = arguments
        .iter()
        .map(|(name, value)| Ok(format!("{}={}", spar_python::to_str(name)?, nested(value)?)))
        .collect();
    Ok(format!("{name}({})", arguments?.join(", ")))
}

/// A value as it is written in a call. A dictionary whose values are all dictionaries is taken for a call.
fn nested(value: &Value) -> Outcome<String> {
    let Value::Dict(dict) = value else { return repr(value) };
    if dict.values().all(|value| matches!(value, Value::Dict(_))) {
        let Some((name, Value::Dict(arguments))) = dict.iter().next() else {
            return Err(Exception::new(
                spar_python::ExceptionKind::Index,
                "list index out of range",
            ));
        };
        return written_call(&spar_python::to_str(name)?, arguments);
    }
    let entries: Outcome<Vec<String>> = dict
        .iter()
        .map(|(key, value)| Ok(format!("'{}': {}", spar_python::to_str(key)?, nested(value)?)))
        .collect();
    Ok(format!("{{{}}}", entries?.join(", ")))
}

fn json_of_dict(dict: &Dict) -> Json {
    let entries = dict
        .iter()
        .map(|(key, value)| (spar_python::to_str(key).unwrap_or_default(), json_of(value)));
    Json::Object(entries.collect())
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::None | Value::Ellipsis => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) => match number.to_i64() {
            Some(number) => json!(number),
            None => json!(spar_python::int_to_float(&number.to_big()).unwrap_or(f64::MAX)),
        },
        Value::Float(number) => json!(number),
        Value::Str(text) => json!(**text),
        Value::List(items) | Value::Tuple(items) => items.iter().map(json_of).collect(),
        Value::Dict(dict) => json_of_dict(dict),
        other => json!(repr(other).unwrap_or_default()),
    }
}

fn call(function: &Expression, arguments: &[Argument]) -> Outcome<DecodedCall> {
    let mut named = Dict::default();
    for argument in arguments {
        match argument {
            Argument::Keyword(name, value) => named.insert_str(name.as_str(), resolved(value)?),
            Argument::Entries(value) => named.insert(Value::None, resolved(value)?)?,
            Argument::Positional(_) | Argument::Items(_) => {}
        }
    }
    Ok((dotted(function), named))
}

/// The dotted name of a function; what is no name at its beginning falls away.
fn dotted(function: &Expression) -> String {
    match function {
        Expression::Name(name) => name.clone(),
        Expression::Attribute(object, name) => match dotted(object) {
            object if object.is_empty() => name.clone(),
            object => format!("{object}.{name}"),
        },
        _ => String::new(),
    }
}

/// The value of an argument. Any one-place operator negates, as in the program.
fn resolved(value: &Expression) -> Outcome<Value> {
    let all = |items: &[Expression]| items.iter().map(resolved).collect::<Outcome<Vec<Value>>>();
    match value {
        Expression::Constant(Value::Ellipsis) => Ok(Value::from("...")),
        Expression::Constant(value) => Ok(value.clone()),
        Expression::Unary(_, inner) => match &**inner {
            Expression::Constant(value) => spar_python::negate(value),
            _ => Err(Exception::refused("only constants are negated")),
        },
        Expression::List(items) => all(items).map(Value::list),
        Expression::Tuple(items) => all(items).map(Value::tuple),
        Expression::Dict(entries) => {
            let mut dict = Dict::default();
            for (key, value) in entries {
                let key = key.as_ref().ok_or_else(|| Exception::refused("`**` is not read"))?;
                dict.insert(resolved(key)?, resolved(value)?)?;
            }
            Ok(Value::Dict(dict.into()))
        }
        Expression::Binary(..) => evaluate(value, &mut NoNames),
        Expression::Name(name) => Ok(Value::from(name.as_str())),
        Expression::Call(function, arguments) => {
            let is_named = |argument: &Argument| {
                matches!(argument, Argument::Keyword(..) | Argument::Entries(_))
            };
            if !arguments.iter().any(is_named) {
                return unparsed(value).map(Value::from);
            }
            let (name, named) = call(function, arguments)?;
            Ok(Value::dict([(name, Value::Dict(named.into()))]))
        }
        Expression::Subscript(object, index) => {
            Ok(Value::from(format!("{}[{}]", unparsed(object)?, unparsed(index)?)))
        }
        _ => Err(Exception::refused("such an argument is not read")),
    }
}

/// `ast.unparse` of what arguments consist of.
fn unparsed(value: &Expression) -> Outcome<String> {
    let list = |items: &[Expression]| -> Outcome<String> {
        Ok(items.iter().map(unparsed).collect::<Outcome<Vec<String>>>()?.join(", "))
    };
    Ok(match value {
        Expression::Constant(value) => repr(value)?,
        Expression::Name(name) => name.clone(),
        Expression::Attribute(object, name) => format!("{}.{name}", unparsed(object)?),
        Expression::Subscript(object, index) => {
            format!("{}[{}]", unparsed(object)?, unparsed(index)?)
        }
        Expression::List(items) => format!("[{}]", list(items)?),
        Expression::Tuple(items) if items.len() == 1 => format!("({},)", list(items)?),
        Expression::Tuple(items) => format!("({})", list(items)?),
        Expression::Unary(UnaryOperator::Negate, inner) => format!("-{}", unparsed(inner)?),
        Expression::Call(function, arguments) => {
            let arguments: Outcome<Vec<String>> = arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Positional(value) => unparsed(value),
                    Argument::Keyword(name, value) => Ok(format!("{name}={}", unparsed(value)?)),
                    Argument::Items(value) => Ok(format!("*{}", unparsed(value)?)),
                    Argument::Entries(value) => Ok(format!("**{}", unparsed(value)?)),
                })
                .collect();
            format!("{}({})", unparsed(function)?, arguments?.join(", "))
        }
        _ => return Err(Exception::refused("such an argument is not read")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        decode_text(text).and_then(|calls| executable(&calls)).map_err(|error| error.text)
    }

    #[test]
    fn answers_are_read_as_the_program_reads_them() {
        for (text, calls) in [
            ("[cd(folder='x'), pwd()]", &["cd(folder='x')", "pwd()"][..]),
            ("cd(folder='x')", &["cd(folder='x')"]),
            ("```\ncd('x')\n```", &["cd()"]),
            ("f(a=-1, b=[1, (2,)], c=x, d={'k': 1})", &["f(a=-1, b=[1, (2,)], c='x', d={'k': 1})"]),
            ("f(a=g(b=1), c=h(2), d=1 + 2)", &["f(a=g(b=1), c='h(2)', d=3)"]),
            ("a.b.c(x=y[0])", &["a.b.c(x='y[0]')"]),
            ("f(a=1, b=2, a=3)", &["f(a=3, b=2)"]),
            ("[]", &[]),
        ] {
            let expected = calls.iter().map(|call| (*call).to_owned()).collect();
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for text in ["I am done.", "", "Done", "[1, 2]", "f(a", "f(a=b == c)", "f(a=lambda: 1)"] {
            assert!(read(text).is_err() || text.is_empty(), "{text}");
        }
    }

    #[test]
    fn values_of_other_languages_stay_as_they_are_written() {
        let text = "[A.b(x=new int[]{1, 2}, y=\"s, t\", z={'k': f(1, 2)})]";
        let calls = decode_raw(text).unwrap();
        let expected =
            json!([{"A.b": {"x": "new int[]{1, 2}", "y": "s, t", "z": "{'k': f(1, 2)}"}}]);
        assert_eq!(calls_as_json(&calls), expected);
        assert!(decode_raw("I cannot.").is_none());
        assert!(decode_raw("").is_none());
    }

    #[test]
    fn native_calls_are_written_without_blanks_between() {
        let json = json!({"a": 1.0, "b": "it's", "c": [true, null]});
        let text = written_native_call("f", json.as_object().unwrap()).unwrap();
        assert_eq!(text, "f(a=1.0,b=\"it's\",c=[True, None])");
    }
}
