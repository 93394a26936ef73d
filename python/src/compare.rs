//! Order, membership and extremes.

use std::cmp::Ordering;

use crate::equal::compare_reals;
use crate::sequence::iterate;
use crate::{Exception, Outcome, Value, equal};

/// The operators that compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    fn holds(self, ordering: Option<Ordering>) -> bool {
        match self {
            Self::Less => ordering == Some(Ordering::Less),
            Self::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => ordering == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// `left OPERATOR right`.
///
/// # Errors
///
/// The `TypeError` of values that have no order.
pub fn compare(operator: Comparison, left: &Value, right: &Value) -> Outcome<bool> {
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => Ok(operator.holds(Some(left.cmp(right)))),
        (Value::List(one), Value::List(other)) | (Value::Tuple(one), Value::Tuple(other)) => {
            match one.iter().zip(&**other).find(|(a, b)| !equal(a, b)) {
                Some((a, b)) => compare(operator, a, b),
                None => Ok(operator.holds(Some(one.len().cmp(&other.len())))),
            }
        }
        (Value::Set(one), Value::Set(other)) => {
            let is_within = |a: &crate::Set, b: &crate::Set| {
                a.iter().all(|element| b.contains(element) == Ok(true))
            };
            let (below, above) = (is_within(one, other), is_within(other, one));
            Ok(match operator {
                Comparison::Less => below && !above,
                Comparison::LessOrEqual => below,
                Comparison::Greater => above && !below,
                Comparison::GreaterOrEqual => above,
            })
        }
        _ if left.is_real() && right.is_real() => Ok(operator.holds(compare_reals(left, right))),
        _ => Err(Exception::type_error(format_args!(
            "'{}' not supported between instances of '{}' and '{}'",
            operator.sign(),
            left.type_name(),
            right.type_name()
        ))),
    }
}

/// `element in container`.
///
/// # Errors
///
/// The `TypeError` of what contains nothing, of texts that are asked for no text, and of elements that cannot be hashed.
pub fn contains(container: &Value, element: &Value) -> Outcome<bool> {
    match container {
        Value::Str(text) => match element {
            Value::Str(part) => Ok(text.contains(&**part)),
            other => Err(Exception::type_error(format_args!(
                "'in <string>' requires string as left operand, not {}",
                other.type_name()
            ))),
        },
        Value::List(items) | Value::Tuple(items) => {
            Ok(items.iter().any(|item| equal(item, element)))
        }
        Value::Dict(dict) => dict.contains(element),
        Value::Set(set) => set.contains(element),
        other => Err(Exception::type_error(format_args!(
            "argument of type '{}' is not iterable",
            other.type_name()
        ))),
    }
}

/// `min(items)`.
///
/// # Errors
///
/// The `TypeError` of what cannot be gone over or compared, the `ValueError` of nothing.
pub fn minimum(items: &Value) -> Outcome<Value> {
    extreme(items, Comparison::Less, "min")
}

/// `max(items)`.
///
/// # Errors
///
/// As [`minimum`].
pub fn maximum(items: &Value) -> Outcome<Value> {
    extreme(items, Comparison::Greater, "max")
}

fn extreme(items: &Value, operator: Comparison, name: &str) -> Outcome<Value> {
    let mut items = iterate(items)?.into_iter();
    let Some(mut best) = items.next() else {
        return Err(Exception::value_error(format_args!("{name}() iterable argument is empty")));
    };
    for item in items {
        if compare(operator, &item, &best)? {
            best = item;
        }
    }
    Ok(best)
}

/// `sorted(items)`.
///
/// # Errors
///
/// The `TypeError` of what cannot be compared.
pub fn sorted(items: Vec<Value>) -> Outcome<Vec<Value>> {
    // CPython begins by asking whether each is less than the one before it, and meets most of what has no order there.
    for pair in items.windows(2) {
        compare(Comparison::Less, &pair[1], &pair[0])?;
    }
    merge_sorted(items)
}

/// Sorts by `<` alone, which need not be an order: not-a-number is less than nothing.
fn merge_sorted(mut items: Vec<Value>) -> Outcome<Vec<Value>> {
    if items.len() < 2 {
        return Ok(items);
    }
    let upper = items.split_off(items.len() / 2);
    let count = items.len() + upper.len();
    let mut lower = merge_sorted(items)?.into_iter().peekable();
    let mut upper = merge_sorted(upper)?.into_iter().peekable();
    let mut merged = Vec::with_capacity(count);
    while let (Some(one), Some(other)) = (lower.peek(), upper.peek()) {
        let next = if compare(Comparison::Less, other, one)? { upper.next() } else { lower.next() };
        merged.extend(next);
    }
    merged.extend(lower);
    merged.extend(upper);
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_an_order_raise() {
        let error = compare(Comparison::Less, &Value::Float(1.0), &Value::from("")).unwrap_err();
        assert_eq!(error.text, "'<' not supported between instances of 'float' and 'str'");
        assert!(
            compare(Comparison::GreaterOrEqual, &Value::Bool(true), &Value::Float(1.0)).unwrap()
        );
        assert!(
            !compare(Comparison::LessOrEqual, &Value::Float(f64::NAN), &Value::from(1_i64))
                .unwrap()
        );
    }

    #[test]
    fn membership_raises_as_in_cpython() {
        let text = contains(&Value::from("abc"), &Value::from(3_i64)).unwrap_err().text;
        assert_eq!(text, "'in <string>' requires string as left operand, not int");
        let text = contains(&Value::from(5_i64), &Value::from("a")).unwrap_err().text;
        assert_eq!(text, "argument of type 'int' is not iterable");
        assert!(contains(&Value::dict([("a", Value::None)]), &Value::list([])).is_err());
    }

    #[test]
    fn extremes_keep_the_first_of_equals() {
        let items = Value::list([Value::from(1_i64), Value::Float(1.0), Value::Bool(true)]);
        assert!(matches!(minimum(&items), Ok(Value::Int(_))));
        assert!(matches!(maximum(&items), Ok(Value::Int(_))));
        assert!(maximum(&Value::list([Value::from("a"), Value::from(1_i64)])).is_err());
    }

    #[test]
    fn sorting_compares_or_raises() {
        let items = ["b", "a", "C"].map(Value::from).to_vec();
        assert!(equal(
            &Value::list(sorted(items).unwrap()),
            &Value::list(["C", "a", "b"].map(Value::from))
        ));
        assert!(sorted(vec![Value::None, Value::None]).is_err());
    }
}
