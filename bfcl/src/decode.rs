//! Calls in what a policy wrote.

use serde_json::{Map, Value as Json, json};
use spar_python::{
    Argument, Budget, Dict, Exception, Expression, NoNames, Outcome, UnaryOperator, Value,
    evaluate_within, parse, repr, to_str,
};

/// A call: its name and its arguments by name.
pub type DecodedCall = (String, Dict);

/// Reads the calls of an answer in words, `[name(parameter=value), ...]` with or without the brackets, as the program
/// does for prompts: what is given by its place alone is dropped, names stand for texts.
///
/// # Errors
///
/// What the program raises where the text is none; then it counts as an answer without calls. So does one whose
/// arguments are too large once they are worked out: all of an answer have one [`Budget`].
pub fn decode_text(text: &str) -> Outcome<Vec<DecodedCall>> {
    let mut text = text.trim_matches(['`', '\n', ' ']).to_owned();
    if !text.starts_with('[') {
        text.insert(0, '[');
    }
    if !text.ends_with(']') {
        text.push(']');
    }
    let text = spar_python::text::strip(&text).trim_matches('\'');
    let budget = &mut Budget::default();
    let not_calls = || Exception::refused("an answer consists of calls");
    let items = match parse(text)? {
        Expression::Call(function, arguments) => {
            return Ok(vec![call(&function, &arguments, budget)?]);
        }
        Expression::List(items) | Expression::Tuple(items) | Expression::Set(items) => items,
        _ => return Err(not_calls()),
    };
    items
        .iter()
        .map(|item| match item {
            Expression::Call(function, arguments) => call(function, arguments, budget),
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
    let written = |(name, arguments): &DecodedCall| {
        let mut out = String::new();
        write_call(name, arguments, &mut out)?;
        Ok(out)
    };
    calls.iter().map(written).collect()
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
/// The `ValueError` of whole numbers with too many digits; arguments that nest too deeply are refused.
pub fn written_native_call(name: &str, arguments: &Map<String, Json>) -> Outcome<String> {
    if !arguments.values().all(spar_python::is_json_shallow) {
        return Err(Exception::refused("the arguments of a call nest too deeply"));
    }
    let arguments: Outcome<Vec<String>> = arguments
        .iter()
        .map(|(name, value)| Ok(format!("{name}={}", repr(&spar_python::from_json(value))?)))
        .collect();
    Ok(format!("{name}({})", arguments?.join(",")))
}

/// Writes into one text, so that what nests is not copied at every level.
fn write_call(name: &str, arguments: &Dict, out: &mut String) -> Outcome<()> {
    out.push_str(name);
    out.push('(');
    for (at, (name, value)) in arguments.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&to_str(name)?);
        out.push('=');
        write_nested(value, out)?;
    }
    out.push(')');
    Ok(())
}

/// A value as it is written in a call. A dictionary whose values are all dictionaries is taken for a call.
fn write_nested(value: &Value, out: &mut String) -> Outcome<()> {
    let Value::Dict(dict) = value else {
        out.push_str(&repr(value)?);
        return Ok(());
    };
    if dict.values().all(|value| matches!(value, Value::Dict(_))) {
        let Some((name, Value::Dict(arguments))) = dict.iter().next() else {
            return Err(Exception::new(
                spar_python::ExceptionKind::Index,
                "list index out of range",
            ));
        };
        return write_call(&to_str(name)?, arguments, out);
    }
    out.push('{');
    for (at, (key, value)) in dict.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push('\'');
        out.push_str(&to_str(key)?);
        out.push_str("': ");
        write_nested(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn json_of_dict(dict: &Dict) -> Json {
    let entries = dict.iter().map(|(key, value)| (to_str(key).unwrap_or_default(), json_of(value)));
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

fn call(
    function: &Expression,
    arguments: &[Argument],
    budget: &mut Budget,
) -> Outcome<DecodedCall> {
    let mut named = Dict::default();
    for argument in arguments {
        match argument {
            Argument::Keyword(name, value) => {
                named.insert_str(name.as_str(), resolved(value, budget)?)
            }
            Argument::Entries(value) => named.insert(Value::None, resolved(value, budget)?)?,
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
fn resolved(value: &Expression, budget: &mut Budget) -> Outcome<Value> {
    let mut all = |items: &[Expression]| {
        items.iter().map(|item| resolved(item, budget)).collect::<Outcome<Vec<Value>>>()
    };
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
                dict.insert(resolved(key, budget)?, resolved(value, budget)?)?;
            }
            Ok(Value::Dict(dict.into()))
        }
        Expression::Binary(..) => evaluate_within(value, &mut NoNames, budget),
        Expression::Name(name) => Ok(Value::from(name.as_str())),
        Expression::Call(function, arguments) => {
            let is_named = |argument: &Argument| {
                matches!(argument, Argument::Keyword(..) | Argument::Entries(_))
            };
            if !arguments.iter().any(is_named) {
                return unparsed(value).map(Value::from);
            }
            let (name, named) = call(function, arguments, budget)?;
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
    fn arguments_that_are_large_once_worked_out_are_no_answer() {
        let many = ["echo(content='a'*4000000)"; 100_000 / 26].join(", ");
        for text in [
            "[echo(content=['a'*4000000]*1000000)]",
            "[echo(content=[[[['a']*1000]*1000]*1000]*1000)]",
            "[echo(content={'k': ('a'*3000000,)*3000000})]",
            "[f(a=g(b=['a'*1000]*1000*1000))]",
            "[f(a=[0]*10**9)]",
            &many,
        ] {
            let refused = decode_text(text).unwrap_err();
            assert_eq!(refused.kind, spar_python::ExceptionKind::Refused, "{}", &text[..20]);
        }
        let calls = decode_text("f(a='ab'*100000, b=[[1]*3]*2)").unwrap();
        assert_eq!(executable(&calls).unwrap()[0].len(), 200_033);
        assert_eq!(calls_as_json(&calls)[0]["f"]["b"], json!([[1, 1, 1], [1, 1, 1]]));
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
        let mut deep = json!(1);
        for _ in 0..1000 {
            deep = json!([deep]);
        }
        let refused = written_native_call("f", &Map::from_iter([("a".to_owned(), deep)]));
        assert_eq!(refused.unwrap_err().kind, spar_python::ExceptionKind::Refused);
    }
}
