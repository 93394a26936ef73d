//! Methods of texts, lists and dictionaries that calls use.

use crate::budget::{check_size, size_of_values};
use crate::evaluate::Arguments;
use crate::sequence::join;
use crate::text::{split_lines, strip, words};
use crate::{Exception, Outcome, Value, equal};

/// Methods of texts that CPython has; [`call_method`] refuses those that it does not carry out.
const OF_TEXTS: [&str; 47] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];
const OF_LISTS: [&str; 11] = [
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
    "sort",
];
const OF_DICTS: [&str; 11] = [
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

/// Whether CPython's value has such a method.
pub(crate) fn has_method(value: &Value, method: &str) -> bool {
    match value {
        Value::Str(_) => OF_TEXTS.contains(&method),
        Value::List(_) => OF_LISTS.contains(&method),
        Value::Dict(_) => OF_DICTS.contains(&method),
        Value::Tuple(_) => matches!(method, "count" | "index"),
        Value::Int(_) | Value::Bool(_) => matches!(
            method,
            "as_integer_ratio"
                | "bit_count"
                | "bit_length"
                | "conjugate"
                | "denominator"
                | "imag"
                | "numerator"
                | "real"
                | "to_bytes"
                | "is_integer"
        ),
        Value::Float(_) => matches!(
            method,
            "as_integer_ratio" | "conjugate" | "hex" | "imag" | "is_integer" | "real"
        ),
        Value::Set(_) | Value::Opaque(_) | Value::Complex(..) => true,
        Value::None | Value::Ellipsis => false,
    }
}

/// Calls a method of a value that has it. Keys, values and entries of dictionaries are lists here: their
/// representation differs from that of CPython's views, their elements do not.
pub(crate) fn call_method(value: &Value, method: &str, arguments: &Arguments) -> Outcome<Value> {
    let refuse = || {
        Err(Exception::refused(format_args!(
            "`{method}` of {} with these arguments is not carried out here",
            value.type_name()
        )))
    };
    if !arguments.keyword.is_empty() {
        return refuse();
    }
    let text = |at: usize| arguments.positional.get(at).and_then(Value::as_str);
    let count = arguments.positional.len();
    match (value, method, count) {
        (Value::Str(own), "upper", 0) => Ok(Value::from(own.to_uppercase())),
        (Value::Str(own), "lower", 0) => Ok(Value::from(own.to_lowercase())),
        (Value::Str(own), "strip", 0) => Ok(Value::from(strip(own))),
        (Value::Str(own), "split", 0) => pieces(words(own).count(), words(own)),
        (Value::Str(own), "splitlines", 0) => {
            let lines = split_lines(own);
            pieces(lines.len(), lines.into_iter())
        }
        (Value::Str(own), "join", 1) => join(own, &arguments.positional[0]).map(Value::from),
        (Value::Str(own), _, _) => {
            let first = text(0);
            match (method, count, first, text(1)) {
                ("split", 1, Some(""), _) => Err(Exception::value_error("empty separator")),
                ("split", 1, Some(mark), _) => {
                    pieces(own.matches(mark).count() + 1, own.split(mark))
                }
                ("replace", 2, Some(from), Some(to)) => {
                    let places = own.matches(from).count();
                    let kept = own.len() - places * from.len();
                    check_size(kept.saturating_add(places.saturating_mul(to.len())))?;
                    Ok(Value::from(own.replace(from, to)))
                }
                ("startswith", 1, Some(part), _) => Ok(Value::Bool(own.starts_with(part))),
                ("endswith", 1, Some(part), _) => Ok(Value::Bool(own.ends_with(part))),
                ("count", 1, Some(part), _) if !part.is_empty() => {
                    Ok(Value::from(own.matches(part).count()))
                }
                ("find", 1, Some(part), _) => Ok(match own.find(part) {
                    Some(at) => Value::from(own[..at].chars().count()),
                    None => Value::from(-1_i64),
                }),
                _ => refuse(),
            }
        }
        (Value::Dict(dict), "keys", 0) => Ok(Value::list(dict.keys().cloned())),
        (Value::Dict(dict), "values", 0) => Ok(Value::list(dict.values().cloned())),
        (Value::Dict(dict), "items", 0) => {
            let pairs = dict.iter().map(|(key, value)| Value::tuple([key.clone(), value.clone()]));
            Ok(Value::list(pairs))
        }
        (Value::Dict(dict), "get", 1 | 2) => {
            let found = dict.get(&arguments.positional[0])?.cloned();
            Ok(found.or_else(|| arguments.positional.get(1).cloned()).unwrap_or(Value::None))
        }
        (Value::List(items) | Value::Tuple(items), "count", 1) => {
            let asked = &arguments.positional[0];
            Ok(Value::from(items.iter().filter(|item| equal(item, asked)).count()))
        }
        (Value::List(items), "index", 1) => {
            let asked = &arguments.positional[0];
            match items.iter().position(|item| equal(item, asked)) {
                Some(at) => Ok(Value::from(at)),
                None => Err(Exception::value_error(format_args!(
                    "{} is not in list",
                    crate::repr(asked)?
                ))),
            }
        }
        (Value::List(_), "copy", 0) | (Value::Dict(_), "copy", 0) => Ok(value.clone()),
        _ => refuse(),
    }
}

/// A list of the parts of a text, of which there are so many.
fn pieces<'t>(count: usize, parts: impl Iterator<Item = &'t str>) -> Outcome<Value> {
    check_size(size_of_values(count))?;
    Ok(Value::list(parts.map(Value::from)))
}
