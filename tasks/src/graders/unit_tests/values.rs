//! Values of Python as they are carried between sandboxes: JSON in which every value tells its type.

use serde_json::{Map, Number, Value, json};

/// The deepest value.
const MAX_DEPTH: usize = 128;

/// A JSON value as it is carried.
pub(super) fn carried(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) if whole < 0 => json!({ "i": format!("-{:x}", whole.unsigned_abs()) }),
            (_, Some(whole)) => json!({ "i": format!("{whole:x}") }),
            _ => json!({ "f": number.to_string() }),
        },
        Value::String(text) => json!({ "s": text }),
        Value::Array(items) => json!({ "l": items.iter().map(carried).collect::<Vec<_>>() }),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| json!([{ "s": key }, carried(value)]);
            json!({ "d": fields.iter().map(field).collect::<Vec<_>>() })
        }
    }
}

/// A carried value as plain JSON: tuples, ranges and what is gone through once are lists, keys are texts, numbers that are
/// too large for JSON's are the nearest of those. Absent for what is none: sets, bytes, complex numbers, objects.
pub(super) fn plain(carried: &Value) -> Option<Value> {
    plain_at(carried, 0)
}

fn plain_at(carried: &Value, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fields = match carried {
        Value::Null | Value::Bool(_) => return Some(carried.clone()),
        Value::Object(fields) if fields.len() == 1 => fields,
        _ => return None,
    };
    let (kind, held) = fields.iter().next()?;
    let list = || -> Option<Vec<Value>> {
        held.as_array()?.iter().map(|item| plain_at(item, depth + 1)).collect()
    };
    match kind.as_str() {
        "s" => held.is_string().then(|| held.clone()),
        "i" => whole(held.as_str()?),
        "f" => float(held.as_str()?),
        "l" | "t" | "I" => Some(Value::Array(list()?)),
        "r" => range(held.as_array()?),
        "d" => {
            let mut object = Map::new();
            for item in held.as_array()? {
                let [key, value] = item.as_array()?.as_slice() else { return None };
                object.insert(key_of(&plain_at(key, depth + 1)?)?, plain_at(value, depth + 1)?);
            }
            Some(Value::Object(object))
        }
        _ => None,
    }
}

fn whole(digits: &str) -> Option<Value> {
    let (is_negative, hexadecimal) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    if hexadecimal.is_empty() || !hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    if let Ok(size) = u64::from_str_radix(hexadecimal, 16) {
        return match (is_negative, i64::try_from(size)) {
            (false, _) => Some(size.into()),
            (true, _) if size == 1 << 63 => Some(i64::MIN.into()),
            (true, Ok(size)) => Some((-size).into()),
            (true, Err(_)) => Number::from_f64(-(size as f64)).map(Value::Number),
        };
    }
    let size = hexadecimal
        .chars()
        .fold(0.0, |sum: f64, digit| sum.mul_add(16.0, f64::from(digit.to_digit(16).unwrap_or(0))));
    Number::from_f64(if is_negative { -size } else { size }).map(Value::Number)
}

/// A floating-point number; those that JSON has none for are texts, as Python writes them.
fn float(text: &str) -> Option<Value> {
    let number: f64 = text.parse().ok()?;
    Some(Number::from_f64(number).map_or_else(|| Value::from(text), Value::Number))
}

fn range(bounds: &[Value]) -> Option<Value> {
    let [start, stop, step] = bounds else { return None };
    let (start, stop, step) = (start.as_i64()?, stop.as_i64()?, step.as_i64()?);
    let (mut at, mut items) = (start, Vec::new());
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        items.push(at.into());
        at = at.checked_add(step)?;
        if items.len() > 200_000 {
            return None;
        }
    }
    Some(Value::Array(items))
}

fn key_of(key: &Value) -> Option<String> {
    match key {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null => Some(key.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_went() {
        let value = json!([null, true, -5, 18_446_744_073_709_551_615_u64, i64::MIN, 2.5, "ä", { "a": [1] }, []]);
        assert_eq!(plain(&carried(&value)), Some(value));
    }

    #[test]
    fn what_python_has_beside_json_is_told() {
        assert_eq!(plain(&json!({ "t": [{ "i": "1" }, { "f": "0.5" }] })), Some(json!([1, 0.5])));
        assert_eq!(plain(&json!({ "d": [[{ "i": "a" }, null]] })), Some(json!({ "10": null })));
        assert_eq!(plain(&json!({ "r": [0, 6, 2] })), Some(json!([0, 2, 4])));
        assert_eq!(
            plain(&json!({ "i": "10000000000000000" })),
            Some(json!(18_446_744_073_709_551_616.0))
        );
        assert_eq!(plain(&json!({ "f": "inf" })), Some(json!("inf")));
        for none in [
            json!({ "S": [] }),
            json!({ "o": 3 }),
            json!({ "i": "+1" }),
            json!({ "i": "1", "f": "2" }),
            json!({ "r": [0, 1] }),
            json!({ "r": [0, i64::MAX, 1] }),
            json!([1]),
            json!(1),
            json!({ "d": [[{ "l": [] }, null]] }),
        ] {
            assert_eq!(plain(&none), None, "{none}");
        }
        let deep = (0..1000).fold(json!({ "l": [] }), |inner, _| json!({ "l": [inner] }));
        assert_eq!(plain(&deep), None);
    }
}
