//! Containers: going over them, their length, their parts.

use std::borrow::Cow;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::budget::{check_size, size_of_values};
use crate::{Exception, ExceptionKind, Outcome, Value};

/// The elements that `for` goes over.
///
/// # Errors
///
/// The `TypeError` of what has none. Texts whose characters would have more than 4 MiB as values are refused.
pub fn iterate(value: &Value) -> Outcome<Vec<Value>> {
    elements(value).map(Cow::into_owned)
}

/// As [`iterate`], without copies of what stands side by side already.
///
/// # Errors
///
/// The same.
pub fn elements(value: &Value) -> Outcome<Cow<'_, [Value]>> {
    match value {
        Value::List(items) | Value::Tuple(items) => Ok(items.as_slice().into()),
        Value::Str(text) => {
            check_size(size_of_values(text.chars().count()))?;
            let characters = text.chars();
            Ok(characters.map(|it| Value::str(&*it.encode_utf8(&mut [0; 4]))).collect())
        }
        Value::Dict(dict) => Ok(dict.keys().cloned().collect()),
        Value::Set(set) => Ok(set.iter().cloned().collect()),
        other => Err(Exception::type_error(format_args!(
            "'{}' object is not iterable",
            other.type_name()
        ))),
    }
}

/// `len(value)`.
///
/// # Errors
///
/// The `TypeError` of what has no length.
pub fn length(value: &Value) -> Outcome<usize> {
    match value {
        Value::Str(text) => Ok(text.chars().count()),
        Value::List(items) | Value::Tuple(items) => Ok(items.len()),
        Value::Dict(dict) => Ok(dict.len()),
        Value::Set(set) => Ok(set.len()),
        other => Err(Exception::type_error(format_args!(
            "object of type '{}' has no len()",
            other.type_name()
        ))),
    }
}

/// `value[index]`.
///
/// # Errors
///
/// `KeyError`, `IndexError`, or the `TypeError` of what has no parts.
pub fn subscript(value: &Value, index: &Value) -> Outcome<Value> {
    let (kind, items): (&str, &[Value]) = match value {
        Value::Dict(dict) => {
            return dict.get(index)?.cloned().ok_or_else(|| Exception::key_error(index));
        }
        Value::List(items) => ("list", items),
        Value::Tuple(items) => ("tuple", items),
        Value::Str(text) => {
            let Some(at) = index.as_int() else {
                return Err(Exception::type_error(format_args!(
                    "string indices must be integers, not '{}'",
                    index.type_name()
                )));
            };
            let characters: Vec<char> = text.chars().collect();
            let at = place(&at, characters.len(), "string index")?;
            return Ok(Value::from(characters[at].to_string()));
        }
        other => {
            return Err(Exception::type_error(format_args!(
                "'{}' object is not subscriptable",
                other.type_name()
            )));
        }
    };
    let Some(at) = index.as_int() else {
        return Err(Exception::type_error(format_args!(
            "{kind} indices must be integers or slices, not {}",
            index.type_name()
        )));
    };
    Ok(items[place(&at, items.len(), &format!("{kind} index"))?].clone())
}

/// `value[start:stop]`, of which either may be `None`.
///
/// # Errors
///
/// The `TypeError` of what has no parts, and of bounds that are no whole numbers.
pub fn slice(value: &Value, start: &Value, stop: &Value) -> Outcome<Value> {
    let bounds = |length: usize| -> Outcome<(usize, usize)> {
        let bound = |bound: &Value, default: usize| match bound {
            Value::None => Ok(default),
            bound => {
                let bound = bound.as_int().ok_or_else(|| {
                    Exception::type_error(
                        "slice indices must be integers or None or have an __index__ method",
                    )
                })?;
                let bound = if bound.is_negative() { bound + BigInt::from(length) } else { bound };
                Ok(if bound.is_negative() {
                    0
                } else {
                    bound.to_usize().unwrap_or(length).min(length)
                })
            }
        };
        let start = bound(start, 0)?;
        Ok((start, bound(stop, length)?.max(start)))
    };
    match value {
        Value::List(items) => {
            let (start, stop) = bounds(items.len())?;
            Ok(Value::list(items[start..stop].iter().cloned()))
        }
        Value::Tuple(items) => {
            let (start, stop) = bounds(items.len())?;
            Ok(Value::tuple(items[start..stop].iter().cloned()))
        }
        Value::Str(text) => {
            let characters: Vec<char> = text.chars().collect();
            let (start, stop) = bounds(characters.len())?;
            Ok(Value::from(characters[start..stop].iter().collect::<String>()))
        }
        Value::Dict(_) => Err(Exception::type_error("unhashable type: 'slice'")),
        other => Err(Exception::type_error(format_args!(
            "'{}' object is not subscriptable",
            other.type_name()
        ))),
    }
}

/// `separator.join(items)`.
///
/// # Errors
///
/// The `TypeError` of what is no text. Texts of more than 4 MiB are refused.
pub fn join(separator: &str, items: &Value) -> Outcome<String> {
    let items = elements(items).map_err(|error| match error.kind {
        ExceptionKind::Type => Exception::type_error("can only join an iterable"),
        _ => error,
    })?;
    let mut texts = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        texts.push(item.as_str().ok_or_else(|| {
            Exception::type_error(format_args!(
                "sequence item {at}: expected str instance, {} found",
                item.type_name()
            ))
        })?);
    }
    let between = separator.len().saturating_mul(texts.len().saturating_sub(1));
    let size = texts.iter().map(|text| text.len()).fold(between, usize::saturating_add);
    check_size(size)?;
    Ok(texts.join(separator))
}

/// `list(value)`.
///
/// # Errors
///
/// As [`iterate`].
pub fn to_list(value: &Value) -> Outcome<Value> {
    Ok(Value::List(Arc::new(iterate(value)?)))
}

fn place(at: &BigInt, length: usize, what: &str) -> Outcome<usize> {
    let at = if at.is_negative() { at + BigInt::from(length) } else { at.clone() };
    at.to_usize()
        .filter(|&at| at < length)
        .ok_or_else(|| Exception::new(ExceptionKind::Index, format_args!("{what} out of range")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{equal, repr};

    #[test]
    fn parts_are_found_or_raise() {
        let list = Value::list([1_i64, 2, 3].map(Value::from));
        assert!(equal(&subscript(&list, &Value::from(-1_i64)).unwrap(), &Value::from(3_i64)));
        for (value, index, text) in [
            (&list, Value::from(3_i64), "list index out of range"),
            (&list, Value::from("a"), "list indices must be integers or slices, not str"),
            (&Value::from("ab"), Value::from(2_i64), "string index out of range"),
            (&Value::from("ab"), Value::None, "string indices must be integers, not 'NoneType'"),
            (&Value::from(1_i64), Value::None, "'int' object is not subscriptable"),
            (&Value::dict([("a", Value::None)]), Value::from("b"), "'b'"),
        ] {
            assert_eq!(subscript(value, &index).unwrap_err().text, text);
        }
    }

    #[test]
    fn slices_are_cut_to_what_is_there() {
        let list = Value::list([1_i64, 2, 3].map(Value::from));
        let cut = |start: Value, stop: Value| repr(&slice(&list, &start, &stop).unwrap()).unwrap();
        assert_eq!(cut(Value::from(-2_i64), Value::None), "[2, 3]");
        assert_eq!(cut(Value::from(-9_i64), Value::from(1_i64)), "[1]");
        assert_eq!(cut(Value::from(2_i64), Value::from(1_i64)), "[]");
        assert!(slice(&list, &Value::from(1.5), &Value::None).is_err());
    }

    #[test]
    fn joining_wants_texts() {
        let error = join(", ", &Value::list([Value::from("a"), Value::from(1_i64)])).unwrap_err();
        assert_eq!(error.text, "sequence item 1: expected str instance, int found");
    }
}
