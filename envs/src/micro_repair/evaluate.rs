//! What a program gives, without an interpreter of its language.
//!
//! Expected values and what is wrong with a mutant are computed here, in microseconds; the tests of this module's folder hold the
//! guests to the same. Where a language would do something odd (a missing item in JavaScript, a loop without end, a number
//! beyond those that are exact), a program is [unfit](Fault::Unfit) and no task is made of it.

use std::borrow::Cow;

use serde_json::{Map, Value};
use spar_sandbox::interpreter::Language;

use super::program::{Binary, Compare, Expression, Name, Program, Statement, Type};

/// Statements and expressions that a call may take.
const MOST_STEPS: u32 = 20_000;
/// The largest number, and the longest text or list.
const MOST: i64 = 1_000_000_000;
const MOST_ITEMS: usize = 2_000;
/// Calls within each other.
const MOST_DEPTH: u32 = 8;

/// Why a call gives no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It raises an exception of Python of this name.
    Raises(&'static str),
    /// It does what no task should rest on.
    Unfit,
}

/// What the tested function of a program gives for arguments; a function without a value gives null.
///
/// # Errors
///
/// [`Fault`] where it gives no value.
pub(super) fn evaluate(
    program: &Program,
    language: Language,
    arguments: &[Value],
) -> Result<Value, Fault> {
    let mut machine = Machine { program, language, steps: 0, depth: 0 };
    machine.call(program.entry().name, arguments.to_vec())
}

struct Machine<'a> {
    program: &'a Program,
    language: Language,
    steps: u32,
    depth: u32,
}

/// Variables of a call, in the order in which they came about.
type Scope = Vec<(Name, Value)>;

enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

impl Machine<'_> {
    fn call(&mut self, name: Name, arguments: Vec<Value>) -> Result<Value, Fault> {
        let function = self.program.function(name).ok_or(Fault::Unfit)?;
        if arguments.len() != function.parameters.len() || self.depth >= MOST_DEPTH {
            return Err(Fault::Unfit);
        }
        let names = function.parameters.iter().map(|(name, _)| *name);
        let mut scope: Scope = names.zip(arguments).collect();
        self.depth += 1;
        let flow = self.block(&function.body, &mut scope)?;
        self.depth -= 1;
        Ok(match flow {
            Flow::Return(value) => value,
            Flow::Next | Flow::Break | Flow::Continue => Value::Null,
        })
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.steps += 1;
        if self.steps > MOST_STEPS { Err(Fault::Unfit) } else { Ok(()) }
    }

    fn block(&mut self, body: &[Statement], scope: &mut Scope) -> Result<Flow, Fault> {
        for statement in body {
            match self.statement(statement, scope)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement, scope: &mut Scope) -> Result<Flow, Fault> {
        self.step()?;
        match statement {
            Statement::Let(name, value) => {
                let value = self.value(value, scope)?;
                put(scope, name, value);
            }
            Statement::Set(name, value) => {
                let value = self.value(value, scope)?;
                *variable(scope, name)? = value;
            }
            Statement::Change(name, operator, value) => {
                let value = self.value(value, scope)?;
                let old = variable(scope, name)?.clone();
                let new = self.binary(*operator, &old, &value)?;
                *variable(scope, name)? = new;
            }
            Statement::Append(name, value) => {
                let value = self.value(value, scope)?;
                let list = variable(scope, name)?.as_array_mut().ok_or(Fault::Unfit)?;
                list.push(value);
                if list.len() > MOST_ITEMS {
                    return Err(Fault::Unfit);
                }
            }
            Statement::Put(name, key, value) => {
                let key = self.text(key, scope)?;
                let value = self.value(value, scope)?;
                let counts = variable(scope, name)?.as_object_mut().ok_or(Fault::Unfit)?;
                counts.insert(key, value);
            }
            Statement::If(condition, then, otherwise) => {
                let body = if self.truth(condition, scope)? { then } else { otherwise };
                return self.block(body, scope);
            }
            Statement::Each(name, of, body) => {
                let items = match self.value(of, scope)? {
                    Value::Array(items) => items,
                    Value::String(text) => {
                        text.chars().map(|letter| Value::String(letter.to_string())).collect()
                    }
                    _ => return Err(Fault::Unfit),
                };
                for value in items {
                    put(scope, name, value);
                    match self.block(body, scope)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
            }
            Statement::Range(name, from, to, body) => {
                let mut number = self.int(from, scope)?;
                let mut end = self.int(to, scope)?;
                while number < end {
                    self.step()?;
                    put(scope, name, number.into());
                    match self.block(body, scope)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                    number += 1;
                    if self.language == Language::Javascript {
                        // There the end is looked at before every round.
                        end = self.int(to, scope)?;
                    }
                }
            }
            Statement::While(condition, body) => {
                while self.truth(condition, scope)? {
                    self.step()?;
                    match self.block(body, scope)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
            }
            Statement::Return(value) => return Ok(Flow::Return(self.value(value, scope)?)),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn value(&mut self, expression: &Expression, scope: &Scope) -> Result<Value, Fault> {
        self.step()?;
        Ok(match expression {
            Expression::Int(number) => (*number).into(),
            Expression::Text(text) => (*text).into(),
            Expression::Bool(truth) => (*truth).into(),
            Expression::Empty(Type::Counts) => Value::Object(Map::new()),
            Expression::Empty(_) => Value::Array(Vec::new()),
            Expression::Name(name) => {
                let found = scope.iter().find(|(known, _)| known == name);
                found.ok_or(Fault::Unfit)?.1.clone()
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
                self.binary(*operator, &left, &right)?
            }
            Expression::Compare(operator, left, right) => {
                let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
                compared(*operator, &left, &right)?.into()
            }
            Expression::And(left, right) => {
                (self.truth(left, scope)? && self.truth(right, scope)?).into()
            }
            Expression::Or(left, right) => {
                (self.truth(left, scope)? || self.truth(right, scope)?).into()
            }
            Expression::Not(of) => (!self.truth(of, scope)?).into(),
            Expression::Item(of, place) => {
                let place = self.int(place, scope)?;
                let of = self.seen(of, scope)?;
                self.item(&of, place)?
            }
            Expression::Length(of) => match &*self.seen(of, scope)? {
                Value::Array(items) => items.len().into(),
                Value::String(text) => text.len().into(),
                _ => return Err(Fault::Unfit),
            },
            Expression::Min(left, right) => {
                self.int(left, scope)?.min(self.int(right, scope)?).into()
            }
            Expression::Max(left, right) => {
                self.int(left, scope)?.max(self.int(right, scope)?).into()
            }
            Expression::Abs(of) => self.int(of, scope)?.abs().into(),
            Expression::Count(of, key) => {
                let key = self.text(key, scope)?;
                let of = self.seen(of, scope)?;
                let counts = of.as_object().ok_or(Fault::Unfit)?;
                counts.get(&key).cloned().unwrap_or_else(|| 0.into())
            }
            Expression::Call(name, arguments) => {
                let given: Result<Vec<Value>, Fault> =
                    arguments.iter().map(|argument| self.value(argument, scope)).collect();
                self.call(name, given?)?
            }
        })
    }

    /// A value that is only looked at: that of a variable is not copied.
    fn seen<'s>(
        &mut self,
        expression: &Expression,
        scope: &'s Scope,
    ) -> Result<Cow<'s, Value>, Fault> {
        match expression {
            Expression::Name(name) => {
                self.step()?;
                let found = scope.iter().find(|(known, _)| known == name);
                Ok(Cow::Borrowed(&found.ok_or(Fault::Unfit)?.1))
            }
            other => self.value(other, scope).map(Cow::Owned),
        }
    }

    fn item(&self, of: &Value, place: i64) -> Result<Value, Fault> {
        let len = match of {
            Value::Array(items) => items.len(),
            Value::String(text) => text.len(),
            _ => return Err(Fault::Unfit),
        } as i64;
        let is_python = self.language == Language::Python;
        let from_end = if is_python && place < 0 { place + len } else { place };
        if !(0..len).contains(&from_end) {
            return Err(if is_python { Fault::Raises("IndexError") } else { Fault::Unfit });
        }
        let place = from_end as usize;
        Ok(match of {
            Value::Array(items) => items[place].clone(),
            Value::String(text) => text[place..=place].into(),
            _ => return Err(Fault::Unfit),
        })
    }

    fn binary(&self, operator: Binary, left: &Value, right: &Value) -> Result<Value, Fault> {
        if let (Binary::Add, Value::String(left), Value::String(right)) = (operator, left, right) {
            let joined = format!("{left}{right}");
            return if joined.len() > MOST_ITEMS { Err(Fault::Unfit) } else { Ok(joined.into()) };
        }
        let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) else {
            return Err(Fault::Unfit);
        };
        let is_python = self.language == Language::Python;
        if right == 0 && matches!(operator, Binary::Divide | Binary::Modulo) {
            return Err(if is_python { Fault::Raises("ZeroDivisionError") } else { Fault::Unfit });
        }
        let found = match operator {
            Binary::Add => left + right,
            Binary::Subtract => left - right,
            Binary::Multiply => left * right,
            Binary::Divide => divided(left, right),
            Binary::Modulo if is_python => left - right * divided(left, right),
            Binary::Modulo => left % right,
        };
        if found.abs() > MOST { Err(Fault::Unfit) } else { Ok(found.into()) }
    }

    fn int(&mut self, expression: &Expression, scope: &Scope) -> Result<i64, Fault> {
        self.value(expression, scope)?.as_i64().ok_or(Fault::Unfit)
    }

    fn truth(&mut self, expression: &Expression, scope: &Scope) -> Result<bool, Fault> {
        self.value(expression, scope)?.as_bool().ok_or(Fault::Unfit)
    }

    fn text(&mut self, expression: &Expression, scope: &Scope) -> Result<String, Fault> {
        match self.value(expression, scope)? {
            Value::String(text) => Ok(text),
            _ => Err(Fault::Unfit),
        }
    }
}

/// Rounded down, as in both languages; both are at most [`MOST`] in size.
fn divided(left: i64, right: i64) -> i64 {
    let found = left / right;
    if left % right != 0 && (left < 0) != (right < 0) { found - 1 } else { found }
}

fn put(scope: &mut Scope, name: Name, value: Value) {
    match scope.iter_mut().find(|(known, _)| *known == name) {
        Some((_, old)) => *old = value,
        None => scope.push((name, value)),
    }
}

fn variable(scope: &mut Scope, name: Name) -> Result<&mut Value, Fault> {
    let found = scope.iter_mut().find(|(known, _)| *known == name);
    Ok(&mut found.ok_or(Fault::Unfit)?.1)
}

fn compared(operator: Compare, left: &Value, right: &Value) -> Result<bool, Fault> {
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_i64().cmp(&right.as_i64()),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        _ => return Err(Fault::Unfit),
    };
    Ok(match operator {
        Compare::Below => order.is_lt(),
        Compare::AtMost => order.is_le(),
        Compare::Above => order.is_gt(),
        Compare::AtLeast => order.is_ge(),
        Compare::Equal => order.is_eq(),
        Compare::Other => order.is_ne(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::program::{Function, add, binary, int, name};
    use super::*;

    fn program(parameters: Vec<(Name, Type)>, body: Vec<Statement>) -> Program {
        Program { functions: vec![Function { name: "f", parameters, returns: Type::Int, body }] }
    }

    #[test]
    fn the_rest_of_a_division_has_the_sign_that_the_language_gives_it() {
        let two = vec![("a", Type::Int), ("b", Type::Int)];
        let rest = Statement::Return(binary(Binary::Modulo, name("a"), name("b")));
        let rest = program(two, vec![rest]);
        for (a, b, python, javascript) in [(7, 3, 1, 1), (-7, 3, 2, -1), (7, -3, -2, 1)] {
            let given = [json!(a), json!(b)];
            assert_eq!(evaluate(&rest, Language::Python, &given), Ok(json!(python)));
            assert_eq!(evaluate(&rest, Language::Javascript, &given), Ok(json!(javascript)));
        }
        let none = [json!(1), json!(0)];
        let raised = Err(Fault::Raises("ZeroDivisionError"));
        assert_eq!(evaluate(&rest, Language::Python, &none), raised);
        assert_eq!(evaluate(&rest, Language::Javascript, &none), Err(Fault::Unfit));
    }

    #[test]
    fn what_never_ends_or_grows_without_end_is_unfit() {
        let endless = program(vec![], vec![Statement::While(Expression::Bool(true), vec![])]);
        assert_eq!(evaluate(&endless, Language::Python, &[]), Err(Fault::Unfit));
        let grow = Statement::Change("n", Binary::Multiply, add(name("n"), int(1)));
        let counted = Statement::Range("i", int(0), int(20), vec![grow]);
        let grown = vec![Statement::Let("n", int(9)), counted, Statement::Return(name("n"))];
        assert_eq!(evaluate(&program(vec![], grown), Language::Python, &[]), Err(Fault::Unfit));
        let itself = Statement::Return(Expression::Call("f", vec![]));
        let deep = program(vec![], vec![itself]);
        assert_eq!(evaluate(&deep, Language::Python, &[]), Err(Fault::Unfit));
    }
}
