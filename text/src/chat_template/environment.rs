//! What templates may call.

use std::error::Error as _;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Value, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State, escape_formatter, filters};
use minijinja_contrib::{globals, pycompat};

use super::marks::GENERATION_FILTER;
use super::python::{self, JsonStyle};
use super::strftime::strftime;
use super::text::{self, Side};

/// Variable that holds the marks of a rendering.
pub(super) const MARKS: &str = "__marks";
/// Variable that holds the seconds since 1970.
pub(super) const NOW: &str = "__now";

/// Instructions after which a template is taken for endless.
const FUEL: u64 = 20_000_000;

/// The template refused its input by `raise_exception`.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// What the template said by `raise_exception`, if that is what stopped it.
pub(super) fn raised(error: &Error) -> Option<String> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(Raised(message)) = error.downcast_ref() {
            return Some(message.clone());
        }
        source = error.source();
    }
    None
}

/// Where templates run, as transformers sets it up.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the usual ones"));
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, state, value| {
        if matches!(value.kind(), ValueKind::Number | ValueKind::Seq | ValueKind::Map) {
            let text = python::string(value, &marks(state))?;
            return out.write_str(&text).map_err(Error::from);
        }
        escape_formatter(out, state, value)
    });
    environment.set_unknown_method_callback(method);

    // Jinja2 asks whether there is a length, an index and an iterator; what is undefined has all
    // three and is empty, `None` has none.
    environment.add_test("sequence", |value: &Value| {
        let kind = value.kind();
        matches!(kind, ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
    });
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    for name in ["length", "count"] {
        environment.add_filter(name, |value: &Value| match value.kind() {
            ValueKind::Undefined => Ok(0),
            kind => value.len().ok_or_else(|| {
                let detail = format!("a value of type {kind} has no length");
                Error::new(ErrorKind::InvalidOperation, detail)
            }),
        });
    }
    environment.add_filter("items", |value: &Value| match value.kind() {
        ValueKind::Undefined => Ok(Value::from(Vec::<Value>::new())),
        _ => filters::items(value),
    });
    environment.add_filter("indent", indent);
    environment.add_filter("tojson", to_json);
    environment.add_filter("trim", |state: &State<'_, '_>, value: &Value, chars: Option<&str>| {
        let text = python::string(value, &marks(state))?;
        Ok::<_, Error>(text::strip(&text, chars, Side::Both).to_owned())
    });
    environment.add_filter("string", |state: &State<'_, '_>, value: &Value| {
        python::string(value, &marks(state))
    });
    environment.add_filter(GENERATION_FILTER, |state: &State<'_, '_>, text: &str| {
        let marks = marks(state);
        let mut marks = marks.chars().skip(1);
        let (start, end) = (marks.next(), marks.next());
        start.into_iter().chain(text.chars()).chain(end).collect::<String>()
    });
    environment.add_function("raise_exception", |message: &Value| -> Result<Value, Error> {
        let message = message.to_string();
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    environment.add_function("strftime_now", |state: &State<'_, '_>, format: &str| {
        let now = state.lookup(NOW).and_then(|now| u64::try_from(now).ok()).unwrap_or_default();
        strftime(now, format).map_err(|directive| {
            let detail = format!("strftime_now does not know `{directive}`");
            Error::new(ErrorKind::InvalidOperation, detail)
        })
    });
    environment.add_function("cycler", globals::cycler);
    environment.add_function("joiner", globals::joiner);
    environment
}

/// The characters that mark what text alone cannot tell.
fn marks(state: &State<'_, '_>) -> String {
    state.lookup(MARKS).map_or_else(String::new, |marks| marks.to_string())
}

/// `indent(text, width=4, first=False, blank=False)`; a line break at the end stays.
fn indent(
    text: &str,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width: Option<Value> = width.or(options.get("width")?);
    let first = first.or(options.get("first")?).unwrap_or(false);
    let blank = blank.or(options.get("blank")?).unwrap_or(false);
    options.assert_all_used()?;
    let indentation = match &width {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(width) => width.to_owned(),
            None => " ".repeat(usize::try_from(width.clone())?.min(1024)),
        },
    };
    let mut indented = String::with_capacity(text.len());
    // What ends a line in Python is more than a line feed, and becomes one.
    for (index, line) in text::lines(&format!("{text}\n"), false).into_iter().enumerate() {
        if index > 0 {
            indented.push('\n');
        }
        if if index == 0 { first } else { blank || !line.is_empty() } {
            indented.push_str(&indentation);
        }
        indented.push_str(line);
    }
    Ok(indented)
}

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
fn to_json(
    state: &State<'_, '_>,
    value: &Value,
    positional: Rest<Value>,
    options: Kwargs,
) -> Result<String, Error> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let option = |index: usize| -> Result<Option<Value>, Error> {
        let named: Option<Value> = options.get(names[index])?;
        Ok(positional.get(index).cloned().or(named).filter(|value| !value.is_none()))
    };
    if positional.len() > names.len() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let indent = match option(1)? {
        None => None,
        Some(indent) => Some(match indent.as_str() {
            Some(indent) => indent.to_owned(),
            None => " ".repeat(usize::try_from(indent)?.min(64)),
        }),
    };
    let (item_separator, key_separator) = match option(2)? {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some(separators) => {
            let both: Vec<Value> = separators.try_iter()?.collect();
            let [item, key] = &both[..] else {
                let detail = "tojson wants two separators";
                return Err(Error::new(ErrorKind::InvalidOperation, detail));
            };
            (item.to_string(), key.to_string())
        }
    };
    let style = JsonStyle {
        indent,
        item_separator,
        key_separator,
        ensure_ascii: is_true(option(0)?),
        sort_keys: is_true(option(3)?),
        kept: marks(state),
    };
    options.assert_all_used()?;
    python::json(value, &style)
}

/// Methods of Python's types.
fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return pycompat::unknown_method_callback(state, value, method, args);
    };
    let from = |parts: &[&str]| parts.iter().map(|part| Value::from(*part)).collect::<Value>();
    match method {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            let side = match method {
                "lstrip" => Side::Start,
                "rstrip" => Side::End,
                _ => Side::Both,
            };
            Ok(text::strip(text, chars, side).into())
        }
        "split" if args.first().is_none_or(Value::is_none) => {
            let (_, most): (Option<&Value>, Option<i64>) = from_args(args)?;
            let most = most.and_then(|most| usize::try_from(most).ok());
            Ok(from(&text::split_spaces(text, most)))
        }
        "splitlines" => {
            let (keeps_ends,): (Option<bool>,) = from_args(args)?;
            Ok(from(&text::lines(text, keeps_ends.unwrap_or(false))))
        }
        "isspace" => {
            let () = from_args(args)?;
            Ok(text::is_blank(text).into())
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            Ok(match text.split_once(separator) {
                Some((before, after)) => from(&[before, separator, after]),
                None => from(&[text, "", ""]),
            })
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            Ok(match text.rsplit_once(separator) {
                Some((before, after)) => from(&[before, separator, after]),
                None => from(&["", "", text]),
            })
        }
        "rsplit" => {
            let (separator, most): (&str, Option<i64>) = from_args(args)?;
            let pieces = most.and_then(|most| usize::try_from(most).ok());
            let mut parts: Vec<&str> = match pieces {
                Some(most) => text.rsplitn(most.saturating_add(1), separator).collect(),
                None => text.rsplit(separator).collect(),
            };
            parts.reverse();
            Ok(from(&parts))
        }
        _ => pycompat::unknown_method_callback(state, value, method, args),
    }
}
