//! Objects as tools see them: attributes of models, which are stored as dictionaries.

use spar_python::{
    BinaryOperator, Exception, ExceptionKind, Outcome, Value, binary, equal, iterate, to_str,
};

/// `object.name`.
///
/// # Errors
///
/// The `AttributeError` of what has no such attribute.
pub(crate) fn attribute<'v>(object: &'v Value, name: &str) -> Outcome<&'v Value> {
    let found = object.as_dict().and_then(|fields| fields.get_str(name));
    found.ok_or_else(|| Exception::no_attribute(object.type_name(), name))
}

/// `object.name = value`.
///
/// # Errors
///
/// The `AttributeError` of what has no such attribute.
pub(crate) fn set(object: &mut Value, name: &str, value: Value) -> Outcome<()> {
    *attribute_mut(object, name)? = value;
    Ok(())
}

/// `object.name`, to be changed.
///
/// # Errors
///
/// The `AttributeError` of what has no such attribute.
pub(crate) fn attribute_mut<'v>(object: &'v mut Value, name: &str) -> Outcome<&'v mut Value> {
    let type_name = object.type_name();
    let found = object.as_dict_mut().and_then(|fields| fields.get_str_mut(name));
    found.ok_or_else(|| Exception::no_attribute(type_name, name))
}

/// The list that an attribute is, to be changed.
///
/// # Errors
///
/// The `AttributeError` of what has no such attribute, or is no list.
pub(crate) fn list_mut<'v>(object: &'v mut Value, name: &str) -> Outcome<&'v mut Vec<Value>> {
    let value = attribute_mut(object, name)?;
    let type_name = value.type_name();
    value.as_list_mut().ok_or_else(|| Exception::no_attribute(type_name, "append"))
}

/// `value.lower()`.
///
/// # Errors
///
/// The `AttributeError` of what is no text.
pub(crate) fn lower(value: &Value) -> Outcome<String> {
    match value.as_str() {
        Some(text) => Ok(spar_python::text::lower(text)),
        None => Err(Exception::no_attribute(value.type_name(), "lower")),
    }
}

/// `value.lower() == wanted`, where `wanted` is in small letters already; many rows are asked that.
///
/// # Errors
///
/// The `AttributeError` of what is no text.
pub(crate) fn is_lower(value: &Value, wanted: &str) -> Outcome<bool> {
    match value.as_str() {
        Some(text) if text.is_ascii() => {
            let letters = text.bytes().map(|byte| byte.to_ascii_lowercase());
            Ok(text.len() == wanted.len() && letters.eq(wanted.bytes()))
        }
        _ => Ok(lower(value)? == wanted),
    }
}

/// `items.count(item)`.
///
/// # Errors
///
/// The `AttributeError` of what counts nothing.
pub(crate) fn count(items: &Value, item: &Value) -> Outcome<usize> {
    match items {
        Value::List(list) | Value::Tuple(list) => {
            Ok(list.iter().filter(|other| equal(item, other)).count())
        }
        // Asked of its own characters alone, so that nothing overlaps.
        Value::Str(text) => Ok(text.matches(item.as_str().unwrap_or_default()).count()),
        other => Err(Exception::no_attribute(other.type_name(), "count")),
    }
}

/// `left OPERATOR= right`.
///
/// # Errors
///
/// What [`binary`] raises, in the words of the operator that assigns.
pub(crate) fn in_place(operator: BinaryOperator, left: &Value, right: &Value) -> Outcome<Value> {
    binary(operator, left, right).map_err(|error| {
        let text = match error.kind {
            ExceptionKind::Type if error.text.starts_with("unsupported operand type(s) for ") => {
                error.text.replacen(": ", "=: ", 1)
            }
            _ => error.text,
        };
        Exception { text, ..error }
    })
}

/// `str(value)` in a format string.
///
/// # Errors
///
/// The `ValueError` of numbers with thousands of digits.
pub(crate) fn shown(value: &Value) -> Outcome<String> {
    to_str(value)
}

/// `sorted(items)` of what is gone over, as a list.
///
/// # Errors
///
/// The `TypeError` of what has no order.
pub(crate) fn sorted_list(items: &Value) -> Outcome<Value> {
    Ok(Value::list(spar_python::sorted(iterate(items)?)?))
}

/// A `ValueError`.
pub(crate) fn refuse<T>(text: impl std::fmt::Display) -> Outcome<T> {
    Err(Exception::value_error(text))
}

/// A dictionary as an object with these fields.
pub(crate) fn object<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    Value::dict(fields)
}
