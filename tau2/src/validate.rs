//! How foreign values become objects: coercion and words of errors as pydantic 2.12 has them in its lax mode.

use std::fmt::Write;

use num_bigint::BigInt;
use spar_python::{Dict, Exception, Outcome, Value, repr};

use crate::dates;
use crate::object::object;
use crate::schema::{Kind, Model};

/// Bytes of a value that an error shows.
const MOST_SHOWN: usize = 50;
/// Whole numbers are not read from longer texts.
const MOST_DIGITS: usize = 4_300;
/// Errors beyond so many are counted and not written.
const MOST_WRITTEN: usize = 200;

/// What is wrong with one value.
struct Problem {
    /// Where it is, as errors write it.
    place: String,
    kind: &'static str,
    text: String,
    input: Value,
}

/// A step on the way to a value.
#[derive(Clone, Copy)]
enum Place<'v> {
    /// Into the value of a field or key, or of what is to be of a model.
    Of(&'v str),
    /// Into an element.
    At(usize),
}

/// Reads an object of a model from the values of its fields, as far as these have no values of their own.
///
/// # Errors
///
/// As [`validate`] of a dictionary with these entries.
pub(crate) fn make<const N: usize>(
    model: &'static Model,
    fields: [(&'static str, Value); N],
) -> Outcome<Value> {
    let mut problems = Vec::new();
    let mut place = Vec::new();
    let mut values = Vec::with_capacity(model.fields.len());
    for field in model.fields {
        let given = fields.iter().find(|(name, _)| *name == field.name);
        let value = match (given, field.default) {
            (Some((_, value)), _) => read(&field.kind, value, &mut place, &mut problems),
            (None, default) => default.map(|default| default()),
        };
        values.extend(value);
    }
    match problems.is_empty() && values.len() == model.fields.len() {
        true => Ok(model.object(values)),
        false => validate(model, &object(fields)),
    }
}

/// Reads an object of a model from a dictionary.
///
/// # Errors
///
/// The `ValidationError` that lists all that is wrong.
pub(crate) fn validate(model: &'static Model, value: &Value) -> Outcome<Value> {
    let mut problems = Vec::new();
    let mut place = Vec::new();
    let read = read_model(model, value, &mut place, &mut problems);
    match read {
        Some(object) if problems.is_empty() => Ok(object),
        _ => Err(error(model, &problems)),
    }
}

/// The version of pydantic in the addresses that its errors name: that of the recordings. Others write the same errors with their own.
pub(crate) const PYDANTIC_VERSION: &str = "2.12";

fn error(model: &Model, problems: &[Problem]) -> Exception {
    let several = if problems.len() == 1 { "" } else { "s" };
    let mut text = format!("{} validation error{several} for {}", problems.len(), model.name);
    for problem in problems.iter().take(MOST_WRITTEN) {
        let Problem { place, kind, text: words, input } = problem;
        let shown = shorten(&repr(input).unwrap_or_else(|_| "...".to_owned()));
        let version = PYDANTIC_VERSION;
        let _ = write!(
            text,
            "\n{}\n  {words} [type={kind}, input_value={shown}, input_type={}]\n    For further information visit https://errors.pydantic.dev/{version}/v/{kind}",
            place,
            input.type_name(),
        );
    }
    Exception::value_error(text)
}

/// The beginning and the end of what is too long.
fn shorten(text: &str) -> String {
    if text.len() <= MOST_SHOWN {
        return text.to_owned();
    }
    let half = MOST_SHOWN.div_ceil(2);
    let head = (0..=half).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let tail = text.len() - (half - 1);
    let tail = (tail..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    format!("{}...{}", &text[..head], &text[tail..])
}

fn read_model<'v>(
    model: &'static Model,
    value: &'v Value,
    place: &mut Vec<Place<'v>>,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let Value::Dict(given) = value else {
        let text = format!("Input should be a valid dictionary or instance of {}", model.name);
        return refuse("model_type", text, value, place, problems);
    };
    let before = problems.len();
    let mut values = Vec::with_capacity(model.fields.len());
    for field in model.fields {
        place.push(Place::Of(field.name));
        match (given.get_str(field.name), field.default) {
            (Some(value), _) => {
                values.extend(read(&field.kind, value, place, problems));
            }
            (None, Some(default)) => values.push(default()),
            (None, None) => {
                refuse("missing", "Field required".to_owned(), value, place, problems);
            }
        }
        place.pop();
    }
    if model.is_closed {
        for (key, value) in given.iter() {
            let name = key.as_str().unwrap_or_default();
            if !model.fields.iter().any(|field| field.name == name) {
                place.push(Place::Of(name));
                let text = "Extra inputs are not permitted".to_owned();
                refuse("extra_forbidden", text, value, place, problems);
                place.pop();
            }
        }
    }
    (problems.len() == before).then(|| model.object(values))
}

fn read<'v>(
    kind: &'static Kind,
    value: &'v Value,
    place: &mut Vec<Place<'v>>,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let found = match kind {
        Kind::Optional(kind) => match value {
            Value::None => return Some(Value::None),
            value => return read(kind, value, place, problems),
        },
        Kind::Model(model) => return read_model(model, value, place, problems),
        Kind::Union(models) => return read_union(models, value, place, problems),
        Kind::List(kind) => return read_list(kind, value, place, problems),
        Kind::Dict(key, kind) => return read_dict(key, kind, value, place, problems),
        Kind::Str => match value {
            Value::Str(_) => Ok(value.clone()),
            _ => Err(("string_type", "Input should be a valid string".to_owned())),
        },
        Kind::Int => read_int(value),
        Kind::Float => read_float(value),
        Kind::Bool => read_bool(value),
        Kind::Date => dates::read_date(value).map(Value::from),
        Kind::DateTime => dates::read_time(value).map(Value::from),
        Kind::Literal(values) => one_of(values, value, "literal_error"),
        Kind::Enum(values) => one_of(values, value, "enum"),
    };
    match found {
        Ok(value) => Some(value),
        Err((kind, text)) => refuse(kind, text, value, place, problems),
    }
}

fn refuse(
    kind: &'static str,
    text: String,
    input: &Value,
    place: &[Place<'_>],
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let steps = place.iter().map(|step| match step {
        Place::Of(name) => (*name).to_owned(),
        Place::At(at) => at.to_string(),
    });
    let place = steps.collect::<Vec<_>>().join(".");
    problems.push(Problem { place, kind, text, input: input.clone() });
    None
}

fn read_union<'v>(
    models: &'static [&'static Model],
    value: &'v Value,
    place: &mut Vec<Place<'v>>,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let before = problems.len();
    for model in models {
        place.push(Place::Of(model.name));
        let found = read_model(model, value, place, problems);
        place.pop();
        if found.is_some() {
            problems.truncate(before);
            return found;
        }
    }
    None
}

fn read_list<'v>(
    kind: &'static Kind,
    value: &'v Value,
    place: &mut Vec<Place<'v>>,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let (Value::List(items) | Value::Tuple(items)) = value else {
        let text = "Input should be a valid list".to_owned();
        return refuse("list_type", text, value, place, problems);
    };
    let before = problems.len();
    let mut list = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        place.push(Place::At(at));
        list.extend(read(kind, item, place, problems));
        place.pop();
    }
    (problems.len() == before).then(|| Value::list(list))
}

fn read_dict<'v>(
    of_keys: &'static Kind,
    kind: &'static Kind,
    value: &'v Value,
    place: &mut Vec<Place<'v>>,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let Value::Dict(given) = value else {
        let text = "Input should be a valid dictionary".to_owned();
        return refuse("dict_type", text, value, place, problems);
    };
    let before = problems.len();
    let mut dict = Dict::default();
    for (key, value) in given.iter() {
        place.push(Place::Of(key.as_str().unwrap_or_default()));
        place.push(Place::Of("[key]"));
        let read_key = read(of_keys, key, place, problems);
        place.pop();
        let value = read(kind, value, place, problems);
        if let (Some(Value::Str(key)), Some(value)) = (read_key, value) {
            dict.insert_str(key, value);
        }
        place.pop();
    }
    (problems.len() == before).then(|| Value::Dict(dict.into()))
}

/// What a value is read as, or the kind of error and its words.
pub(crate) type Read<T> = Result<T, (&'static str, String)>;

fn one_of(values: &[&str], value: &Value, kind: &'static str) -> Read<Value> {
    if value.as_str().is_some_and(|text| values.contains(&text)) {
        return Ok(value.clone());
    }
    let quoted: Vec<_> = values.iter().map(|value| format!("'{value}'")).collect();
    let listed = match &quoted[..] {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    };
    Err((kind, format!("Input should be {listed}")))
}

fn read_int(value: &Value) -> Read<Value> {
    const WORDS: &str = "Input should be a valid integer";
    let too_large = || {
        let words = "Unable to parse input string as an integer, exceeded maximum size";
        Err(("int_parsing_size", words.to_owned()))
    };
    match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Bool(value) => Ok(Value::from(i64::from(*value))),
        Value::Float(value) if !value.is_finite() => {
            Err(("finite_number", "Input should be a finite number".to_owned()))
        }
        Value::Float(value) if value.fract() != 0.0 => {
            Err(("int_from_float", format!("{WORDS}, got a number with a fractional part")))
        }
        // Exact: within these bounds every whole number fits.
        Value::Float(value) if value.abs() < 9.2e18 => Ok(Value::from(*value as i64)),
        Value::Float(_) => too_large(),
        Value::Str(text) if text.len() > MOST_DIGITS => too_large(),
        Value::Str(text) => match whole_number(text) {
            Some(number) => Ok(Value::from(number)),
            None => Err(("int_parsing", format!("{WORDS}, unable to parse string as an integer"))),
        },
        _ => Err(("int_type", WORDS.to_owned())),
    }
}

/// The whole number that a text is, also with zeros behind a point.
fn whole_number(text: &str) -> Option<BigInt> {
    let text = text.trim();
    let text = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => {
            whole
        }
        Some(_) => return None,
        None => text,
    };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        && !digits.starts_with('_')
        && !digits.ends_with('_')
        && !digits.contains("__");
    if !is_digits {
        return None;
    }
    let number: BigInt = digits.replace('_', "").parse().ok()?;
    Some(if text.starts_with('-') { -number } else { number })
}

fn read_float(value: &Value) -> Read<Value> {
    const WORDS: &str = "Input should be a valid number";
    match value {
        Value::Float(_) => Ok(value.clone()),
        Value::Bool(value) => Ok(Value::Float(f64::from(u8::from(*value)))),
        Value::Int(number) => match number.to_f64() {
            number if number.is_finite() => Ok(Value::Float(number)),
            _ => Err(("float_type", WORDS.to_owned())),
        },
        Value::Str(text) => match number(text) {
            Some(number) => Ok(Value::Float(number)),
            None => Err(("float_parsing", format!("{WORDS}, unable to parse string as a number"))),
        },
        _ => Err(("float_type", WORDS.to_owned())),
    }
}

/// The number that a text is, as `float` reads it.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_separated = |at: usize| {
        let digit = |at: Option<usize>| {
            at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit)
        };
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    if !text.match_indices('_').all(|(at, _)| is_separated(at)) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn read_bool(value: &Value) -> Read<Value> {
    const WORDS: &str = "Input should be a valid boolean";
    let number = match value {
        Value::Bool(_) => return Ok(value.clone()),
        Value::Str(text) => match &*text.to_ascii_lowercase() {
            "1" | "on" | "t" | "true" | "y" | "yes" => Some(1),
            "0" | "off" | "f" | "false" | "n" | "no" => Some(0),
            _ => None,
        },
        Value::Int(number) => number.to_i64().and_then(|number| u8::try_from(number).ok()),
        Value::Float(number) if *number == 0.0 => Some(0),
        Value::Float(number) if *number == 1.0 => Some(1),
        _ => return Err(("bool_type", WORDS.to_owned())),
    };
    match number {
        Some(0) => Ok(Value::Bool(false)),
        Some(1) => Ok(Value::Bool(true)),
        _ => Err(("bool_parsing", format!("{WORDS}, unable to interpret input"))),
    }
}
