//! `==`.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::FromPrimitive;

use crate::Value;

/// `left == right`: numbers by their value whatever their type, dictionaries and sets whatever their order.
///
/// Values that CPython tells apart by identity are equal here when nothing tells them apart, and not-a-number is equal
/// to nothing, also inside containers, where CPython looks at identity first.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => left == right,
        (Value::None, Value::None) | (Value::Ellipsis, Value::Ellipsis) => true,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Complex(real, imaginary), other) | (other, Value::Complex(real, imaginary)) => {
            match other {
                Value::Complex(other_real, other_imaginary) => {
                    real == other_real && imaginary == other_imaginary
                }
                other => *imaginary == 0.0 && equal(&Value::Float(*real), other),
            }
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            left.len() == right.len() && left.iter().zip(&**right).all(|(a, b)| equal(a, b))
        }
        (Value::Dict(left), Value::Dict(right)) => {
            left.len() == right.len()
                && left.iter().all(
                    |(key, value)| matches!(right.get(key), Ok(Some(other)) if equal(value, other)),
                )
        }
        (Value::Set(left), Value::Set(right)) => {
            left.len() == right.len()
                && left.iter().all(|element| right.contains(element) == Ok(true))
        }
        (Value::Opaque(left), Value::Opaque(right)) => left == right,
        _ if left.is_real() && right.is_real() => {
            compare_reals(left, right) == Some(Ordering::Equal)
        }
        _ => false,
    }
}

/// Which of two numbers is larger, exactly; `None` where one is not a number.
pub(crate) fn compare_reals(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Float(left), right) => compare_float_int(*left, right),
        (left, Value::Float(right)) => compare_float_int(*right, left).map(Ordering::reverse),
        (left, right) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => Some(left.as_int()?.cmp(&right.as_int()?)),
        },
    }
}

/// Whole numbers up to this size are floats too.
const EXACT: u64 = 1 << 53;

fn compare_float_int(float: f64, int: &Value) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.is_infinite() {
        return Some(if float > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    if let Some(small) = int.as_i64().filter(|small| small.unsigned_abs() <= EXACT) {
        return float.partial_cmp(&(small as f64));
    }
    let int = int.as_int()?;
    let whole = BigInt::from_f64(float.trunc()).expect("it is finite");
    Some(whole.cmp(&int).then_with(|| {
        let rest = float - float.trunc();
        rest.partial_cmp(&0.0).unwrap_or(Ordering::Equal)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value_and_exactly() {
        assert!(equal(&Value::from(1_i64), &Value::Bool(true)));
        assert!(equal(&Value::Float(1.0), &Value::Bool(true)));
        assert!(equal(&Value::Complex(2.0, 0.0), &Value::from(2_i64)));
        let large = Value::from((BigInt::from(1) << 53_u32) + 1_u32);
        assert!(!equal(&large, &Value::Float(9_007_199_254_740_992.0)));
        assert!(!equal(&Value::from("1"), &Value::from(1_i64)));
        assert!(!equal(&Value::list([]), &Value::tuple([])));
    }

    #[test]
    fn the_order_of_a_dictionary_does_not_count() {
        let one = Value::dict([("a", Value::from(1_i64)), ("b", Value::None)]);
        let other = Value::dict([("b", Value::None), ("a", Value::Float(1.0))]);
        assert!(equal(&one, &other));
        assert!(!equal(&one, &Value::dict([("a", Value::from(1_i64))])));
    }
}
