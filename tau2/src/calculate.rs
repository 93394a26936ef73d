//! The calculator that several domains have.

use spar_python::{
    Exception, NoNames, Outcome, Value, contains, eval, iterate, repr_float, round, to_float,
};

use crate::reply::Reply;

/// What an expression may be made of.
const ALLOWED: &str = "0123456789+-*/(). ";

/// The value of an arithmetic expression of Python, rounded to two places.
///
/// # Errors
///
/// What CPython raises for expressions that are none, and the refusal of those that are too long or too large.
pub(crate) fn calculate(expression: &Value) -> Outcome<Reply> {
    let invalid = || Exception::value_error("Invalid characters in expression");
    let Some(text) = expression.as_str() else {
        let allowed = Value::from(ALLOWED);
        for character in iterate(expression)? {
            if !contains(&allowed, &character)? {
                return Err(invalid());
            }
        }
        return Err(Exception::type_error("eval() arg 1 must be a string, bytes or code object"));
    };
    if !text.chars().all(|character| ALLOWED.contains(character)) {
        return Err(invalid());
    }
    let value = Value::Float(to_float(&eval(text, &mut NoNames)?)?);
    let rounded = to_float(&round(&value, &Value::from(2_i64))?)?;
    Ok(Reply::Text(repr_float(rounded)))
}
