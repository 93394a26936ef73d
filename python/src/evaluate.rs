//! `eval` of calls.

use std::collections::HashSet;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::arithmetic::{binary, invert, negate, plus};
use crate::budget::size_of_values;
use crate::builtins::call_builtin;
use crate::methods::call_method;
use crate::sequence::{iterate, slice, subscript};
use crate::syntax::{Argument, BitOperator, Expression, Relation, UnaryOperator, compile};
use crate::{
    Budget, Dict, Exception, ExceptionKind, Opaque, Outcome, Set, Value, compare, contains, equal,
    to_str,
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

/// The value of an expression, which has a [`Budget`] of its own.
///
/// # Errors
///
/// What is raised on evaluating.
pub fn evaluate(expression: &Expression, scope: &mut dyn Scope) -> Outcome<Value> {
    evaluate_within(expression, scope, &mut Budget::default())
}

/// The value of an expression. What is built for it is taken from a budget, which several expressions can share; what a
/// function gives that is the whole expression is not.
///
/// # Errors
///
/// What is raised on evaluating, and the refusal of what the budget does not suffice for.
pub fn evaluate_within(
    expression: &Expression,
    scope: &mut dyn Scope,
    budget: &mut Budget,
) -> Outcome<Value> {
    let mut evaluator = Evaluator { scope, budget };
    match expression {
        Expression::Call(function, arguments) => evaluator.call(function, arguments),
        expression => evaluator.value(expression),
    }
}

struct Evaluator<'e> {
    scope: &'e mut dyn Scope,
    budget: &'e mut Budget,
}

impl Evaluator<'_> {
    fn value(&mut self, expression: &Expression) -> Outcome<Value> {
        let value = self.unpaid(expression)?;
        match expression {
            Expression::Subscript(..)
            | Expression::Slice(..)
            | Expression::Call(..)
            | Expression::Unary(..)
            | Expression::Binary(..)
            | Expression::Bits(..) => self.budget.spend_on(&value)?,
            // These stand in the text, or are put together of values that are paid for.
            _ => {}
        }
        Ok(value)
    }

    fn unpaid(&mut self, expression: &Expression) -> Outcome<Value> {
        match expression {
            Expression::Constant(value) => Ok(value.clone()),
            Expression::Name(name) => Err(no_value(name, self.scope)),
            Expression::Attribute(object, name) => {
                if let Expression::Name(object_name) = &**object
                    && self.scope.has_object(object_name)
                {
                    return Err(Exception::refused(format_args!(
                        "`{name}` of an object is called here, not read"
                    )));
                }
                let object = self.value(object)?;
                if crate::methods::has_method(&object, name) {
                    return Err(Exception::refused("methods are called here, not read"));
                }
                Err(Exception::no_attribute(object.type_name(), name))
            }
            Expression::Subscript(object, index) => {
                subscript(&self.value(object)?, &self.value(index)?)
            }
            Expression::Slice(object, start, stop) => {
                let object = self.value(object)?;
                let mut bound = |bound: &Option<Box<Expression>>| match bound {
                    Some(bound) => self.value(bound),
                    None => Ok(Value::None),
                };
                let (start, stop) = (bound(start)?, bound(stop)?);
                slice(&object, &start, &stop)
            }
            Expression::Call(function, arguments) => self.call(function, arguments),
            Expression::List(items) => Ok(Value::List(Arc::new(self.all(items)?))),
            Expression::Tuple(items) => Ok(Value::Tuple(Arc::new(self.all(items)?))),
            Expression::Set(items) => {
                let mut set = Set::default();
                for item in self.all(items)? {
                    set.insert(item)?;
                }
                Ok(Value::Set(Arc::new(set)))
            }
            Expression::Dict(entries) => self.dict(entries),
            Expression::Unary(operator, inner) => {
                let inner = self.value(inner)?;
                match operator {
                    UnaryOperator::Negate => negate(&inner),
                    UnaryOperator::Plus => plus(&inner),
                    UnaryOperator::Invert => invert(&inner),
                    UnaryOperator::Not => Ok(Value::Bool(!inner.is_true())),
                }
            }
            Expression::Binary(left, operator, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                if let (Value::Int(left), Value::Int(right)) = (&left, &right) {
                    self.budget.spend_on_products(1, left.bits(), right.bits())?;
                }
                binary(*operator, &left, &right)
            }
            Expression::Bits(left, operator, right) => {
                let left = self.value(left)?;
                bits(*operator, &left, &self.value(right)?)
            }
            Expression::Compare(first, rest) => {
                let mut left = self.value(first)?;
                for (relation, right) in rest {
                    let right = self.value(right)?;
                    if !relate(*relation, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Expression::And(left, right) => {
                let left = self.value(left)?;
                if left.is_true() { self.value(right) } else { Ok(left) }
            }
            Expression::Or(left, right) => {
                let left = self.value(left)?;
                if left.is_true() { Ok(left) } else { self.value(right) }
            }
            Expression::Conditional(condition, then, otherwise) => {
                if self.value(condition)?.is_true() {
                    self.value(then)
                } else {
                    self.value(otherwise)
                }
            }
        }
    }

    fn all(&mut self, items: &[Expression]) -> Outcome<Vec<Value>> {
        items.iter().map(|item| self.value(item)).collect()
    }

    fn dict(&mut self, entries: &[(Option<Expression>, Expression)]) -> Outcome<Value> {
        let mut dict = Dict::default();
        for (key, value) in entries {
            match key {
                Some(key) => {
                    let key = self.value(key)?;
                    let value = self.value(value)?;
                    dict.insert(key, value)?;
                }
                None => {
                    let Value::Dict(more) = self.value(value)? else {
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

    fn call(&mut self, function: &Expression, arguments: &[Argument]) -> Outcome<Value> {
        match function {
            Expression::Name(name) => {
                if self.scope.has_function(name) {
                    let arguments = self.bind(arguments, |_| format!("{name}()"))?;
                    return self.scope.call_function(name, arguments);
                }
                if self.scope.has_object(name) {
                    return Err(Exception::refused("objects are not called here"));
                }
                if !crate::builtins::is_builtin(name) {
                    return Err(name_error(name));
                }
                let arguments = self.bind(arguments, |_| format!("{name}()"))?;
                call_builtin(name, &arguments, self.budget)
            }
            Expression::Attribute(object, method) => {
                if let Expression::Name(name) = &**object
                    && self.scope.has_object(name)
                {
                    let arguments = self.bind(arguments, |scope| scope.described(name, method))?;
                    return self.scope.call_method(name, method, arguments);
                }
                let object = self.value(object)?;
                if !crate::methods::has_method(&object, method) {
                    return Err(Exception::no_attribute(object.type_name(), method));
                }
                let of_type = |_: &dyn Scope| format!("{}.{method}()", object.type_name());
                let arguments = self.bind(arguments, of_type)?;
                call_method(&object, method, &arguments)
            }
            other => {
                let value = self.value(other)?;
                for argument in arguments {
                    self.not_called(&value, argument)?;
                }
                Err(Exception::type_error(format_args!(
                    "'{}' object is not callable",
                    value.type_name()
                )))
            }
        }
    }

    /// Evaluates an argument of a call of what cannot be called, which comes to light only after that.
    fn not_called(&mut self, called: &Value, argument: &Argument) -> Outcome<()> {
        let wrong = |stars: &str, what: &str, found: &Value| {
            let (called, found) = (to_str(called)?, found.type_name());
            Err(Exception::type_error(format_args!(
                "{called} argument after {stars} must be {what}, not {found}"
            )))
        };
        match argument {
            Argument::Positional(value) | Argument::Keyword(_, value) => {
                self.value(value)?;
            }
            Argument::Items(items) => {
                let items = self.value(items)?;
                if iterate(&items).is_err() {
                    return wrong("*", "an iterable", &items);
                }
            }
            Argument::Entries(entries) => {
                let entries = self.value(entries)?;
                if entries.as_dict().is_none() {
                    return wrong("**", "a mapping", &entries);
                }
            }
        }
        Ok(())
    }

    /// The values of arguments; a function is described where they cannot be unpacked for it.
    fn bind(
        &mut self,
        arguments: &[Argument],
        described: impl Fn(&dyn Scope) -> String,
    ) -> Outcome<Arguments> {
        let (mut bound, mut names) = (Arguments::default(), HashSet::new());
        for argument in arguments {
            match argument {
                Argument::Positional(value) => bound.positional.push(self.value(value)?),
                Argument::Keyword(name, value) => {
                    let value = self.value(value)?;
                    name_argument((&mut bound, &mut names), name, value, self.scope, &described)?;
                }
                Argument::Items(items) => {
                    let items = self.value(items)?;
                    let items = iterate(&items).map_err(|error| match error.kind {
                        ExceptionKind::Type => Exception::type_error(format_args!(
                            "{} argument after * must be an iterable, not {}",
                            described(self.scope),
                            items.type_name()
                        )),
                        _ => error,
                    })?;
                    self.budget.spend(size_of_values(items.len()))?;
                    bound.positional.extend(items);
                }
                Argument::Entries(entries) => {
                    let entries = self.value(entries)?;
                    let Value::Dict(entries) = entries else {
                        return Err(Exception::type_error(format_args!(
                            "{} argument after ** must be a mapping, not {}",
                            described(self.scope),
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
                            self.scope,
                            &described,
                        )?;
                    }
                }
            }
        }
        Ok(bound)
    }
}

fn no_value(name: &str, scope: &dyn Scope) -> Exception {
    if scope.has_object(name) || scope.has_function(name) || crate::builtins::is_builtin(name) {
        return Exception::refused(format_args!("`{name}` is called here, not read"));
    }
    name_error(name)
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
    use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_oneof, proptest};

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
    fn calls_with_many_arguments_are_read() {
        // Were each held against all before it, this would be ten thousand million comparisons.
        let many = "1,".repeat(190_000);
        let words = "name 'f' is not defined";
        assert_eq!(eval(&format!("f({many})"), &mut NoNames).unwrap_err().text, words);
        for (given, what) in [("a=1", "keyword argument"), ("**{}", "keyword argument unpacking")] {
            let words = format!("positional argument follows {what} (<string>, line 1)");
            let told = eval(&format!("f({given}, {many})"), &mut NoNames).unwrap_err().text;
            assert_eq!(told, words);
        }
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

    #[test]
    fn what_is_large_once_written_is_refused() {
        let whole_numbers = format!("[{}]", ["9**65000 // 7**40000"; 5000].join(", "));
        for text in [
            "['a'*4000000]*1000000",
            "[['a'*4000000]*1000000]",
            "str([['a'*4000000]*1000000])",
            "[[[['a']*1000]*1000]*1000]*1000",
            "[[['a']*1000]*1000] == [[['a']*1000]*1000]",
            "['a'*4000000, 'a'*4000000, 'a'*4000000, 'a'*4000000, 'a'*4000000]",
            "'a'*4000000 + 'a'*4000000",
            "[0]*100000 + [0]*100000",
            "(0,)*100000 + (0,)*100000",
            "('a'*1000000).join(['']*100000)",
            "('a'*1000).replace('', 'a'*100000)",
            "('a'*1000000).replace('a', 'aaaaaaa')",
            "('a'*4000000).split('a')",
            "('a '*2000000).split()",
            "('a\\n'*2000000).splitlines()",
            "list('a'*4000000)",
            "tuple('a'*4000000)",
            "sorted('a'*4000000)",
            "''.join('a'*4000000)",
            "print(*'a'*4000000)",
            "print(*'a'*100000, *'a'*100000, *'a'*100000, *'a'*100000, *'a'*100000, *'a'*100000, *'a'*100000)",
            "sum([[0]*100]*10000, [])",
            "dict(['a'*4000000])",
            "{'a': ['d'*4000]*1000} | {'b': ['d'*4000]*1000} | {'c': ['d'*4000]*1000}",
            "repr(repr(repr(repr(repr(repr(repr(repr('\\\\'*100000))))))))",
            "[9**60000]*1000000",
            "pow(9**60000, 9**60000, 7**60000)",
            "[pow(9**999, 9**999, 7**999), pow(9**9999, 9**9999, 7**9999)]",
            &whole_numbers,
            "range(10**9)",
            "'%1000000000d' % 1",
            "'a'.zfill(10**9)",
            "'{:>1000000000}'.format(1)",
            "'a'.center(10**9)",
            "'a'.ljust(10**9)",
            "1 << 10**9",
        ] {
            match eval(text, &mut NoNames) {
                Err(error) => assert!(error.text.len() < 300, "{text}: {}", error.text.len()),
                Ok(_) => panic!("{text}"),
            }
        }
        for text in [
            "len('a'*4000000)",
            "len(str('a'*2000000))",
            "sum([[0]*10]*10000, []) == [0]*100000",
            "sum([(0,)]*50000, ()) == (0,)*50000",
            "[0]*0 + []*10**12",
            "len('a'*100000 + 'a'*100000)",
            "pow(3, 10**300, 10**300)",
            "round(123, -99999)",
            "[['a']*1000]*100 == [['a']*1000]*100",
        ] {
            assert!(eval(text, &mut NoNames).is_ok(), "{text}");
        }
    }

    /// Expressions whose parts repeat and join what is in them.
    fn growing() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("'a'".to_owned()),
            Just("['a']".to_owned()),
            Just("('\\x00',)".to_owned()),
            Just("{'k': 1.5}".to_owned()),
            Just("[]".to_owned()),
            Just("9**999".to_owned()),
        ];
        leaf.prop_recursive(12, 40, 3, |inner| {
            let times = prop_oneof![0..4_u32, Just(1000), Just(4_000_000)];
            prop_oneof![
                4 => (inner.clone(), times).prop_map(|(inner, times)| format!("({inner} * {times})")),
                2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} + {other})")),
                3 => inner.clone().prop_map(|inner| format!("[{inner}]")),
                1 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one}, {other})")),
                1 => inner.clone().prop_map(|inner| format!("{{'k': {inner}}}")),
                1 => inner.clone().prop_map(|inner| format!("str({inner})")),
                1 => inner.clone().prop_map(|inner| format!("list({inner})")),
                1 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("str({one}).join({other})")),
                1 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("str({one}).replace('a', str({other}))")),
                1 => inner.clone().prop_map(|inner| format!("sum([{inner}], [])")),
                1 => (inner.clone(), inner).prop_map(|(one, other)| format!("({one} == {other})")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn whatever_grows_ends_within_a_bound(text in growing()) {
            const MAX_BYTES: usize = 17 << 20;
            // A byte is written as six at most, in JSON.
            const MAX_TEXT: usize = 6 * MAX_BYTES;
            match eval(&text, &mut NoNames) {
                Ok(value) => {
                    prop_assert!(value.size_within(MAX_BYTES).is_some());
                    prop_assert!(repr(&value).map_or(0, |text| text.len()) <= MAX_TEXT);
                    prop_assert!(crate::json_dumps(&value).map_or(0, |text| text.len()) <= MAX_TEXT);
                }
                Err(error) => prop_assert!(error.text.len() <= MAX_TEXT),
            }
        }
    }
}
