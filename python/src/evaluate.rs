//! `eval` of calls.

use std::collections::HashSet;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::arithmetic::{binary, invert, negate, plus};
use crate::builtins::call_builtin;
use crate::methods::call_method;
use crate::sequence::{iterate, slice, subscript};
use crate::syntax::{Argument, BitOperator, Expression, Relation, UnaryOperator, compile};
use crate::{
    Dict, Exception, ExceptionKind, Opaque, Outcome, Set, Value, compare, contains, equal, to_str,
};

/// Whole numbers are not shifted further to the left.
const MAX_SHIFT: u64 = 1 << 18;

/// The arguments of a call.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// Those given by their place.
    pub positional: Vec<Value>,
    /// Those given by their name, in order.
    pub keyword: Vec<(String, Value)>,
}

/// What an expression can name beside Python's own.
pub trait Scope {
    /// Whether there is an object of this name.
    fn has_object(&self, name: &str) -> bool;

    /// Whether there is a function of this name. Default none.
    fn has_function(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Calls a method of an object that is there.
    ///
    /// # Errors
    ///
    /// What the method raises.
    fn call_method(&mut self, object: &str, method: &str, arguments: Arguments) -> Outcome<Value>;

    /// How CPython calls a method of an object in its words on arguments that cannot be unpacked: `module.Class.method()`.
    /// Default `method()`.
    fn described(&self, object: &str, method: &str) -> String {
        let _ = object;
        format!("{method}()")
    }

    /// Calls a function that is there.
    ///
    /// # Errors
    ///
    /// What the function raises.
    fn call_function(&mut self, function: &str, arguments: Arguments) -> Outcome<Value> {
        let _ = arguments;
        Err(name_error(function))
    }
}

/// No names but Python's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoNames;

impl Scope for NoNames {
    fn has_object(&self, _name: &str) -> bool {
        false
    }

    fn call_method(&mut self, object: &str, _: &str, _: Arguments) -> Outcome<Value> {
        Err(name_error(object))
    }
}

/// The `NameError` of a name that nothing has.
pub fn name_error(name: &str) -> Exception {
    Exception::new(ExceptionKind::Name, format_args!("name '{name}' is not defined"))
}

/// `eval(text)`.
///
/// # Errors
///
/// What is raised on reading and on evaluating; what is beyond this crate is refused.
pub fn eval(text: &str, scope: &mut dyn Scope) -> Outcome<Value> {
    let expression = compile(text)?;
    let value = evaluate(&expression, scope)?;
    // Views of a dictionary are lists here, which only shows where one is the result.
    match (&expression, &value) {
        (Expression::Call(function, _), Value::List(_)) => match &**function {
            Expression::Attribute(object, name) => match (&**object, &**name) {
                (Expression::Name(object), _) if scope.has_object(object) => Ok(value),
                (_, "keys") => view("dict_keys", &value),
                (_, "values") => view("dict_values", &value),
                (_, "items") => view("dict_items", &value),
                _ => Ok(value),
            },
            _ => Ok(value),
        },
        _ => Ok(value),
    }
}

fn view(type_name: &'static str, elements: &Value) -> Outcome<Value> {
    let repr = format!("{type_name}({})", crate::repr(elements)?);
    Ok(Value::Opaque(Arc::new(Opaque { type_name, repr })))
}

/// The value of an expression.
///
/// # Errors
///
/// What is raised on evaluating.
pub fn evaluate(expression: &Expression, scope: &mut dyn Scope) -> Outcome<Value> {
    match expression {
        Expression::Constant(value) => Ok(value.clone()),
        Expression::Name(name) => Err(no_value(name, scope)),
        Expression::Attribute(object, name) => {
            if let Expression::Name(object_name) = &**object
                && scope.has_object(object_name)
            {
                return Err(Exception::refused(format_args!(
                    "`{name}` of an object is called here, not read"
                )));
            }
            let object = evaluate(object, scope)?;
            if crate::methods::has_method(&object, name) {
                return Err(Exception::refused("methods are called here, not read"));
            }
            Err(Exception::no_attribute(object.type_name(), name))
        }
        Expression::Subscript(object, index) => {
            subscript(&evaluate(object, scope)?, &evaluate(index, scope)?)
        }
        Expression::Slice(object, start, stop) => {
            let object = evaluate(object, scope)?;
            let mut bound = |bound: &Option<Box<Expression>>| match bound {
                Some(bound) => evaluate(bound, scope),
                None => Ok(Value::None),
            };
            let (start, stop) = (bound(start)?, bound(stop)?);
            slice(&object, &start, &stop)
        }
        Expression::Call(function, arguments) => call(function, arguments, scope),
        Expression::List(items) => Ok(Value::List(Arc::new(all(items, scope)?))),
        Expression::Tuple(items) => Ok(Value::Tuple(Arc::new(all(items, scope)?))),
        Expression::Set(items) => {
            let mut set = Set::default();
            for item in all(items, scope)? {
                set.insert(item)?;
            }
            Ok(Value::Set(Arc::new(set)))
        }
        Expression::Dict(entries) => dict(entries, scope),
        Expression::Unary(operator, inner) => {
            let inner = evaluate(inner, scope)?;
            match operator {
                UnaryOperator::Negate => negate(&inner),
                UnaryOperator::Plus => plus(&inner),
                UnaryOperator::Invert => invert(&inner),
                UnaryOperator::Not => Ok(Value::Bool(!inner.is_true())),
            }
        }
        Expression::Binary(left, operator, right) => {
            let left = evaluate(left, scope)?;
            binary(*operator, &left, &evaluate(right, scope)?)
        }
        Expression::Bits(left, operator, right) => {
            let left = evaluate(left, scope)?;
            bits(*operator, &left, &evaluate(right, scope)?)
        }
        Expression::Compare(first, rest) => {
            let mut left = evaluate(first, scope)?;
            for (relation, right) in rest {
                let right = evaluate(right, scope)?;
                if !relate(*relation, &left, &right)? {
                    return Ok(Value::Bool(false));
                }
                left = right;
            }
            Ok(Value::Bool(true))
        }
        Expression::And(left, right) => {
            let left = evaluate(left, scope)?;
            if left.is_true() { evaluate(right, scope) } else { Ok(left) }
        }
        Expression::Or(left, right) => {
            let left = evaluate(left, scope)?;
            if left.is_true() { Ok(left) } else { evaluate(right, scope) }
        }
        Expression::Conditional(condition, then, otherwise) => {
            if evaluate(condition, scope)?.is_true() {
                evaluate(then, scope)
            } else {
                evaluate(otherwise, scope)
            }
        }
    }
}

fn no_value(name: &str, scope: &dyn Scope) -> Exception {
    if scope.has_object(name) || scope.has_function(name) || crate::builtins::is_builtin(name) {
        return Exception::refused(format_args!("`{name}` is called here, not read"));
    }
    name_error(name)
}

fn all(items: &[Expression], scope: &mut dyn Scope) -> Outcome<Vec<Value>> {
    items.iter().map(|item| evaluate(item, scope)).collect()
}

fn dict(entries: &[(Option<Expression>, Expression)], scope: &mut dyn Scope) -> Outcome<Value> {
    let mut dict = Dict::default();
    for (key, value) in entries {
        match key {
            Some(key) => {
                let key = evaluate(key, scope)?;
                let value = evaluate(value, scope)?;
                dict.insert(key, value)?;
            }
            None => {
                let Value::Dict(more) = evaluate(value, scope)? else {
                    return Err(Exception::refused("only dictionaries are unpacked here"));
                };
                for (key, value) in more.iter() {
                    dict.insert(key.clone(), value.clone())?;
                }
            }
        }
    }
    Ok(Value::Dict(Arc::new(dict)))
}

fn call(function: &Expression, arguments: &[Argument], scope: &mut dyn Scope) -> Outcome<Value> {
    match function {
        Expression::Name(name) => {
            if scope.has_function(name) {
                let arguments = bind(arguments, scope, |_| format!("{name}()"))?;
                return scope.call_function(name, arguments);
            }
            if scope.has_object(name) {
                return Err(Exception::refused("objects are not called here"));
            }
            if !crate::builtins::is_builtin(name) {
                return Err(name_error(name));
            }
            let arguments = bind(arguments, scope, |_| format!("{name}()"))?;
            call_builtin(name, &arguments)
        }
        Expression::Attribute(object, method) => {
            if let Expression::Name(name) = &**object
                && scope.has_object(name)
            {
                let arguments = bind(arguments, scope, |scope| scope.described(name, method))?;
                return scope.call_method(name, method, arguments);
            }
            let object = evaluate(object, scope)?;
            if !crate::methods::has_method(&object, method) {
                return Err(Exception::no_attribute(object.type_name(), method));
            }
            let of_type = |_: &dyn Scope| format!("{}.{method}()", object.type_name());
            let arguments = bind(arguments, scope, of_type)?;
            call_method(&object, method, &arguments)
        }
        other => {
            let value = evaluate(other, scope)?;
            for argument in arguments {
                not_called(&value, argument, scope)?;
            }
            Err(Exception::type_error(format_args!(
                "'{}' object is not callable",
                value.type_name()
            )))
        }
    }
}

/// Evaluates an argument of a call of what cannot be called, which comes to light only after that.
fn not_called(called: &Value, argument: &Argument, scope: &mut dyn Scope) -> Outcome<()> {
    let wrong = |stars: &str, what: &str, found: &Value| {
        let (called, found) = (to_str(called)?, found.type_name());
        Err(Exception::type_error(format_args!(
            "{called} argument after {stars} must be {what}, not {found}"
        )))
    };
    match argument {
        Argument::Positional(value) | Argument::Keyword(_, value) => {
            evaluate(value, scope)?;
        }
        Argument::Items(items) => {
            let items = evaluate(items, scope)?;
            if iterate(&items).is_err() {
                return wrong("*", "an iterable", &items);
            }
        }
        Argument::Entries(entries) => {
            let entries = evaluate(entries, scope)?;
            if entries.as_dict().is_none() {
                return wrong("**", "a mapping", &entries);
            }
        }
    }
    Ok(())
}

/// The values of arguments; a function is described where they cannot be unpacked for it.
fn bind(
    arguments: &[Argument],
    scope: &mut dyn Scope,
    described: impl Fn(&dyn Scope) -> String,
) -> Outcome<Arguments> {
    let (mut bound, mut names) = (Arguments::default(), HashSet::new());
    for argument in arguments {
        match argument {
            Argument::Positional(value) => bound.positional.push(evaluate(value, scope)?),
            Argument::Keyword(name, value) => {
                let value = evaluate(value, scope)?;
                name_argument((&mut bound, &mut names), name, value, scope, &described)?;
            }
            Argument::Items(items) => {
                let items = evaluate(items, scope)?;
                let items = iterate(&items).map_err(|error| match error.kind {
                    ExceptionKind::Type => Exception::type_error(format_args!(
                        "{} argument after * must be an iterable, not {}",
                        described(scope),
                        items.type_name()
                    )),
                    _ => error,
                })?;
                bound.positional.extend(items);
            }
            Argument::Entries(entries) => {
                let entries = evaluate(entries, scope)?;
                let Value::Dict(entries) = entries else {
                    return Err(Exception::type_error(format_args!(
                        "{} argument after ** must be a mapping, not {}",
                        described(scope),
                        entries.type_name()
                    )));
                };
                for (key, value) in entries.iter() {
                    let Value::Str(name) = key else {
                        return Err(Exception::type_error("keywords must be strings"));
                    };
                    name_argument(
                        (&mut bound, &mut names),
                        name,
                        value.clone(),
                        scope,
                        &described,
                    )?;
                }
            }
        }
    }
    Ok(bound)
}

/// Names are kept beside the arguments, so that many of them take no longer than they are many.
fn name_argument(
    (bound, names): (&mut Arguments, &mut HashSet<String>),
    name: &str,
    value: Value,
    scope: &dyn Scope,
    described: &impl Fn(&dyn Scope) -> String,
) -> Outcome<()> {
    if !names.insert(name.to_owned()) {
        return Err(Exception::type_error(format_args!(
            "{} got multiple values for keyword argument '{name}'",
            described(scope)
        )));
    }
    bound.keyword.push((name.to_owned(), value));
    Ok(())
}

fn relate(relation: Relation, left: &Value, right: &Value) -> Outcome<bool> {
    match relation {
        Relation::Equal => Ok(equal(left, right)),
        Relation::NotEqual => Ok(!equal(left, right)),
        Relation::Order(operator) => compare(operator, left, right),
        Relation::In => contains(right, left),
        Relation::NotIn => contains(right, left).map(|is_in| !is_in),
        Relation::Is => is_same(left, right),
        Relation::IsNot => is_same(left, right).map(|is_same| !is_same),
    }
}

/// Identity, of the values that there is one of each.
fn is_same(left: &Value, right: &Value) -> Outcome<bool> {
    match (left, right) {
        (Value::None, other) | (other, Value::None) => Ok(matches!(other, Value::None)),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (left, right) if left.type_name() != right.type_name() => Ok(false),
        _ => Err(Exception::refused("identity is only asked of None and truth values here")),
    }
}

fn bits(operator: BitOperator, left: &Value, right: &Value) -> Outcome<Value> {
    let sign = match operator {
        BitOperator::Or => "|",
        BitOperator::Xor => "^",
        BitOperator::And => "&",
        BitOperator::Left => "<<",
        BitOperator::Right => ">>",
    };
    if let (Value::Dict(one), BitOperator::Or, Value::Dict(other)) = (left, operator, right) {
        let mut joined = (**one).clone();
        for (key, value) in other.iter() {
            joined.insert(key.clone(), value.clone())?;
        }
        return Ok(Value::Dict(Arc::new(joined)));
    }
    let (Some(a), Some(b)) = (left.as_int(), right.as_int()) else {
        return Err(Exception::type_error(format_args!(
            "unsupported operand type(s) for {sign}: '{}' and '{}'",
            left.type_name(),
            right.type_name()
        )));
    };
    let is_shift = matches!(operator, BitOperator::Left | BitOperator::Right);
    if is_shift && b.is_negative() {
        return Err(Exception::value_error("negative shift count"));
    }
    let value = match operator {
        BitOperator::Or => a | b,
        BitOperator::Xor => a ^ b,
        BitOperator::And => a & b,
        BitOperator::Left => match b.to_u64() {
            Some(shift) if shift + a.bits() <= MAX_SHIFT => a << shift,
            _ if a == BigInt::default() => a,
            _ => return Err(Exception::too_many_digits()),
        },
        BitOperator::Right => match b.to_u64() {
            Some(shift) => a >> shift,
            None => BigInt::from(if a.is_negative() { -1 } else { 0 }),
        },
    };
    let both_bools = matches!((left, right), (Value::Bool(_), Value::Bool(_)));
    Ok(match both_bools && !is_shift {
        true => Value::Bool(value != BigInt::default()),
        false => Value::from(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repr;

    /// Written by `scripts/record_python_fixtures.py`.
    const RECORDED: &str = include_str!("../tests/fixtures/expressions.json");

    #[test]
    fn expressions_give_what_cpython_gives() {
        let recorded: serde_json::Value = serde_json::from_str(RECORDED).unwrap();
        let (mut equal, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
        for case in recorded.as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let expected = case["repr"].as_str().or(case["words"].as_str()).unwrap();
            let got = match eval(text, &mut NoNames).and_then(|value| repr(&value)) {
                Ok(text) => text,
                Err(error) if error.kind == ExceptionKind::Refused => {
                    refused.push(text);
                    continue;
                }
                Err(error) => error.text,
            };
            if got == expected {
                equal += 1;
            } else {
                wrong.push(format!("{text}: {got}, CPython: {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(equal > 210, "only {equal} are equal, refused are {refused:?}");
    }

    #[test]
    fn views_show_where_they_are_the_result() {
        let told = |text: &str| eval(text, &mut NoNames).and_then(|value| repr(&value)).unwrap();
        assert_eq!(told("{'a': 1}.keys()"), "dict_keys(['a'])");
        assert_eq!(told("{'a': 1}.items()"), "dict_items([('a', 1)])");
        assert_eq!(told("list({'a': 1}.values())"), "[1]");
    }

    #[test]
    fn what_cannot_be_unpacked_names_the_function() {
        for (text, words) in [
            ("print(*5)", "print() argument after * must be an iterable, not int"),
            ("print(**5)", "print() argument after ** must be a mapping, not int"),
            (
                "print(**{'end': 1}, end=2)",
                "print() got multiple values for keyword argument 'end'",
            ),
            ("print(**{1: 2})", "keywords must be strings"),
        ] {
            assert_eq!(eval(text, &mut NoNames).unwrap_err().text, words);
        }
    }

    #[test]
    fn names_given_twice_are_read_but_not_evaluated() {
        let text = "print(end=1, end=2)";
        assert!(crate::parse(text).is_ok());
        let words = "keyword argument repeated: end (<string>, line 1)";
        assert_eq!(eval(text, &mut NoNames).unwrap_err().text, words);
        let words = "'name' is an invalid keyword argument for print()";
        assert_eq!(eval("print(name=1)", &mut NoNames).unwrap_err().text, words);
    }

    #[test]
    fn what_is_large_or_deep_ends() {
        for text in [
            "9 ** 9 ** 9".to_owned(),
            "1 << 10 ** 9".to_owned(),
            "'a' * 10 ** 12".to_owned(),
            "[0] * 10 ** 12".to_owned(),
            "(".repeat(100_000),
            "[".repeat(50) + &"]".repeat(50),
            "-".repeat(100_000) + "1",
            "not ".repeat(100_000) + "1",
            "1+".repeat(100_000) + "1",
            "1**".repeat(100_000) + "1",
            "f(".repeat(150) + &")".repeat(150),
            "a.b".repeat(100_000),
            "'".repeat(100_001),
            "x".repeat(2_000_000),
            "1 ".repeat(50_000),
        ] {
            let done = eval(&text, &mut NoNames);
            assert!(done.is_err() || text.starts_with('['), "{}", &text[..20]);
        }
    }
}
