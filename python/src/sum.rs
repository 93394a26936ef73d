//! `sum`.

use std::sync::Arc;

use num_traits::ToPrimitive;

use crate::arithmetic::{BinaryOperator, binary};
use crate::{Exception, Outcome, Value};

/// `sum(items)`, floats with the compensation that CPython has from 3.12 on (Neumaier's).
///
/// # Errors
///
/// The `TypeError` of what cannot be added.
pub fn sum(items: &[Value], start: Value) -> Outcome<Value> {
    if matches!(start, Value::Str(_)) {
        return Err(Exception::type_error("sum() can't sum strings [use ''.join(seq) instead]"));
    }
    let mut total = start;
    let mut items = items.iter();
    while let Some(item) = items.next() {
        total = plus_next(total, item)?;
        if let Value::Float(first) = total {
            let (float, stopped_at) = sum_floats(first, &mut items);
            total = Value::Float(float);
            if let Some(item) = stopped_at {
                total = binary(BinaryOperator::Add, &total, item)?;
            }
        }
    }
    Ok(total)
}

/// `total + item`. Lists and tuples are appended to what there is, so that many of them take no longer than they are long.
fn plus_next(mut total: Value, item: &Value) -> Outcome<Value> {
    match (&mut total, item) {
        (Value::List(own), Value::List(more)) | (Value::Tuple(own), Value::Tuple(more)) => {
            Arc::make_mut(own).extend_from_slice(more);
            Ok(total)
        }
        (total, item) => binary(BinaryOperator::Add, total, item),
    }
}

/// Adds up floats and small whole numbers; ends at anything else, which it gives back.
fn sum_floats<'v>(
    first: f64,
    items: &mut impl Iterator<Item = &'v Value>,
) -> (f64, Option<&'v Value>) {
    let (mut total, mut compensation) = (first, 0.0_f64);
    let finish = |total: f64, compensation: f64| {
        if compensation != 0.0 && compensation.is_finite() { total + compensation } else { total }
    };
    for item in items {
        match item {
            Value::Float(value) => {
                let next = total + value;
                compensation += if total.abs() >= value.abs() {
                    (total - next) + value
                } else {
                    (value - next) + total
                };
                total = next;
            }
            other => match other.as_int().and_then(|value| value.to_i64()) {
                Some(value) => total += value as f64,
                None => return (finish(total, compensation), Some(other)),
            },
        }
    }
    (finish(total, compensation), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repr;

    fn summed(items: &[Value]) -> String {
        match sum(items, Value::from(0_i64)) {
            Ok(value) => repr(&value).unwrap(),
            Err(error) => error.text,
        }
    }

    #[test]
    fn lists_are_put_one_behind_the_other() {
        let start = Value::list([Value::from(1_i64)]);
        let items = [Value::list([Value::from(2_i64)]), Value::list([]), start.clone()];
        assert_eq!(repr(&sum(&items, start.clone()).unwrap()).unwrap(), "[1, 2, 1]");
        assert_eq!(repr(&start).unwrap(), "[1]");
        let error = sum(&[Value::tuple([])], start).unwrap_err();
        assert_eq!(error.text, "can only concatenate list (not \"tuple\") to list");
    }

    #[test]
    fn sums_of_floats_are_compensated() {
        assert_eq!(summed(&[Value::Float(0.1); 0]), "0");
        assert_eq!(summed(&vec![Value::Float(0.1); 10]), "1.0");
        let items = [1e100, 1.0, -1e100].map(Value::Float);
        assert_eq!(summed(&items), "1.0");
        assert_eq!(summed(&[Value::from(1_i64), Value::Bool(true)]), "2");
        assert_eq!(
            summed(&[Value::Float(1.0), Value::from("a")]),
            "unsupported operand type(s) for +: 'float' and 'str'"
        );
    }
}
