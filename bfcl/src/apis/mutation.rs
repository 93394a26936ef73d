//! Changes of values in place.

use std::sync::Arc;

use spar_python::{BinaryOperator, Exception, Outcome, Value, binary, equal, iterate, subscript};

/// `list.append(item)`
pub(crate) fn append(list: &mut Value, item: Value) -> Outcome<()> {
    let name = list.type_name();
    list.as_list_mut().ok_or_else(|| Exception::no_attribute(name, "append"))?.push(item);
    Ok(())
}

/// `list.extend(items)`
pub(crate) fn extend(list: &mut Value, items: &Value) -> Outcome<()> {
    let name = list.type_name();
    let list = list.as_list_mut().ok_or_else(|| Exception::no_attribute(name, "extend"))?;
    list.extend(iterate(items)?);
    Ok(())
}

/// `list.remove(item)` of an item that is in it.
pub(crate) fn remove(list: &mut Value, item: &Value) -> Outcome<()> {
    let name = list.type_name();
    let list = list.as_list_mut().ok_or_else(|| Exception::no_attribute(name, "remove"))?;
    let at = list
        .iter()
        .position(|other| equal(other, item))
        .ok_or_else(|| Exception::value_error("list.remove(x): x not in list"))?;
    list.remove(at);
    Ok(())
}

/// `container[key] = value`
pub(crate) fn insert(container: &mut Value, key: Value, value: Value) -> Outcome<()> {
    match container {
        Value::Dict(dict) => Arc::make_mut(dict).insert(key, value),
        other => Err(Exception::type_error(format_args!(
            "'{}' object does not support item assignment",
            other.type_name()
        ))),
    }
}

/// `container[key] OPERATOR= value`
pub(crate) fn update(
    container: &mut Value,
    key: &Value,
    operator: BinaryOperator,
    value: &Value,
) -> Outcome<()> {
    let changed = augmented(operator, &subscript(container, key)?, value)?;
    insert(container, key.clone(), changed)
}

/// `left OPERATOR= right`, whose exception names the operator so.
pub(crate) fn augmented(operator: BinaryOperator, left: &Value, right: &Value) -> Outcome<Value> {
    binary(operator, left, right).map_err(|mut raised| {
        if let Some((before, after)) = raised.text.split_once(": ")
            && before.starts_with("unsupported operand type(s) for ")
        {
            raised.text = format!("{before}=: {after}");
        }
        raised
    })
}

/// `container[key]`, to be changed.
pub(crate) fn part<'v>(container: &'v mut Value, key: &Value) -> Outcome<&'v mut Value> {
    match container {
        Value::Dict(dict) => {
            Arc::make_mut(dict).get_mut(key)?.ok_or_else(|| Exception::key_error(key))
        }
        other => Err(Exception::type_error(format_args!(
            "'{}' object is not subscriptable",
            other.type_name()
        ))),
    }
}
