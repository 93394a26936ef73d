//! Programs and values as text of a language.

use serde_json::Value;
use spar_sandbox::interpreter::Language;

use super::program::{Binary, Compare, Expression, Function, Program, Statement};

/// The lines of a program.
pub(super) fn lines(program: &Program, language: Language) -> Vec<String> {
    let mut written = Written { language, lines: Vec::new() };
    for function in &program.functions {
        written.function(function);
    }
    written.lines
}

/// An expression as it stands in a program.
pub(super) fn expression(expression: &Expression, language: Language) -> String {
    Written { language, lines: Vec::new() }.of(expression, 0)
}

/// A value as a program writes it.
pub(super) fn literal(value: &Value, language: Language) -> String {
    let is_python = language == Language::Python;
    match value {
        Value::Null => if is_python { "None" } else { "undefined" }.to_owned(),
        Value::Bool(truth) if is_python => if *truth { "True" } else { "False" }.to_owned(),
        Value::String(text) => quoted(text, language),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| literal(item, language)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                format!("{}: {}", quoted(key, language), literal(value, language))
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A call with these arguments.
pub(super) fn call(function: &str, arguments: &[Value], language: Language) -> String {
    let arguments: Vec<String> = arguments.iter().map(|value| literal(value, language)).collect();
    format!("{function}({})", arguments.join(", "))
}

fn quoted(text: &str, language: Language) -> String {
    match language {
        // Texts of generated programs have letters alone; what a program returns may have more.
        Language::Python if !text.contains(['\'', '\\']) && !text.contains(char::is_control) => {
            format!("'{text}'")
        }
        _ => Value::from(text).to_string(),
    }
}

struct Written {
    language: Language,
    lines: Vec<String>,
}

impl Written {
    fn is_python(&self) -> bool {
        self.language == Language::Python
    }

    fn line(&mut self, depth: usize, text: &str) {
        let step = if self.is_python() { 4 } else { 2 };
        self.lines.push(format!("{:width$}{text}", "", width = step * depth));
    }

    fn function(&mut self, function: &Function) {
        let names: Vec<&str> = function.parameters.iter().map(|(name, _)| *name).collect();
        let word = if self.is_python() { "def" } else { "function" };
        let head = format!("{word} {}({})", function.name, names.join(", "));
        self.block(0, &head, &function.body);
    }

    fn block(&mut self, depth: usize, head: &str, body: &[Statement]) {
        let (open, close) = if self.is_python() { (":", None) } else { (" {", Some("}")) };
        self.line(depth, &format!("{head}{open}"));
        body.iter().for_each(|statement| self.statement(depth + 1, statement));
        if let Some(close) = close {
            self.line(depth, close);
        }
    }

    fn simple(&mut self, depth: usize, text: &str) {
        let end = if self.is_python() { "" } else { ";" };
        self.line(depth, &format!("{text}{end}"));
    }

    fn statement(&mut self, depth: usize, statement: &Statement) {
        let is_python = self.is_python();
        let guarded = |word: &str, condition: &str| match is_python {
            true => format!("{word} {condition}"),
            false => format!("{word} ({condition})"),
        };
        match statement {
            Statement::Let(name, value) => {
                let word = if is_python { "" } else { "let " };
                let text = format!("{word}{name} = {}", self.of(value, 0));
                self.simple(depth, &text);
            }
            Statement::Set(name, value) => {
                let text = format!("{name} = {}", self.of(value, 0));
                self.simple(depth, &text);
            }
            Statement::Change(name, operator, value) => {
                let text = match operator {
                    Binary::Divide if !is_python => {
                        format!("{name} = Math.floor({name} / {})", self.of(value, 6))
                    }
                    _ => format!("{name} {}= {}", sign(*operator), self.of(value, 0)),
                };
                self.simple(depth, &text);
            }
            Statement::Append(name, value) => {
                let word = if is_python { "append" } else { "push" };
                let text = format!("{name}.{word}({})", self.of(value, 0));
                self.simple(depth, &text);
            }
            Statement::Put(name, key, value) => {
                let text = format!("{name}[{}] = {}", self.of(key, 0), self.of(value, 0));
                self.simple(depth, &text);
            }
            Statement::If(condition, then, otherwise) => {
                let head = guarded("if", &self.of(condition, 0));
                self.block(depth, &head, then);
                if otherwise.is_empty() {
                    return;
                }
                if is_python {
                    self.block(depth, "else", otherwise);
                } else {
                    self.lines.pop();
                    self.block(depth, "} else", otherwise);
                }
            }
            Statement::Each(name, of, body) => {
                let of = self.of(of, 0);
                let head = match is_python {
                    true => format!("for {name} in {of}"),
                    false => format!("for (const {name} of {of})"),
                };
                self.block(depth, &head, body);
            }
            Statement::Range(name, from, to, body) => {
                let (first, end) = (self.of(from, 0), self.of(to, 5));
                let head = match is_python {
                    true => format!("for {name} in range({first}, {})", self.of(to, 0)),
                    false => format!("for (let {name} = {first}; {name} < {end}; {name}++)"),
                };
                self.block(depth, &head, body);
            }
            Statement::While(condition, body) => {
                let head = guarded("while", &self.of(condition, 0));
                self.block(depth, &head, body);
            }
            Statement::Return(value) => {
                let text = format!("return {}", self.of(value, 0));
                self.simple(depth, &text);
            }
            Statement::Break => self.simple(depth, "break"),
            Statement::Continue => self.simple(depth, "continue"),
        }
    }

    /// An expression, between brackets where it binds less than `least`: 1 or, 2 and, 3 not, 4 comparisons, 5 sums, 6 products,
    /// 7 all else.
    fn of(&self, expression: &Expression, least: u8) -> String {
        let (text, binds) = self.bare(expression);
        if binds < least { format!("({text})") } else { text }
    }

    fn bare(&self, expression: &Expression) -> (String, u8) {
        let is_python = self.is_python();
        let word = |python: &'static str, javascript: &'static str| match is_python {
            true => python,
            false => javascript,
        };
        match expression {
            Expression::Int(number) => (number.to_string(), 7),
            Expression::Text(text) => (quoted(text, self.language), 7),
            Expression::Bool(truth) => (literal(&Value::Bool(*truth), self.language), 7),
            Expression::Empty(super::program::Type::Counts) => ("{}".to_owned(), 7),
            Expression::Empty(_) => ("[]".to_owned(), 7),
            Expression::Name(name) => ((*name).to_owned(), 7),
            Expression::Binary(Binary::Divide, left, right) if !is_python => {
                (format!("Math.floor({} / {})", self.of(left, 6), self.of(right, 7)), 7)
            }
            Expression::Binary(operator, left, right) => {
                let binds = match operator {
                    Binary::Add | Binary::Subtract => 5,
                    Binary::Multiply | Binary::Divide | Binary::Modulo => 6,
                };
                let (left, right) = (self.of(left, binds), self.of(right, binds + 1));
                (format!("{left} {} {right}", sign(*operator)), binds)
            }
            Expression::Compare(operator, left, right) => {
                let sign = match operator {
                    Compare::Below => "<",
                    Compare::AtMost => "<=",
                    Compare::Above => ">",
                    Compare::AtLeast => ">=",
                    Compare::Equal => word("==", "==="),
                    Compare::Other => word("!=", "!=="),
                };
                (format!("{} {sign} {}", self.of(left, 5), self.of(right, 5)), 4)
            }
            Expression::And(left, right) => {
                let (left, right) = (self.of(left, 2), self.of(right, 2));
                (format!("{left} {} {right}", word("and", "&&")), 2)
            }
            Expression::Or(left, right) => {
                let (left, right) = (self.of(left, 1), self.of(right, 1));
                (format!("{left} {} {right}", word("or", "||")), 1)
            }
            Expression::Not(of) if is_python => (format!("not {}", self.of(of, 3)), 3),
            Expression::Not(of) => (format!("!{}", self.of(of, 7)), 7),
            Expression::Item(of, place) => {
                (format!("{}[{}]", self.of(of, 7), self.of(place, 0)), 7)
            }
            Expression::Length(of) if is_python => (format!("len({})", self.of(of, 0)), 7),
            Expression::Length(of) => (format!("{}.length", self.of(of, 7)), 7),
            Expression::Min(left, right) => {
                let word = word("min", "Math.min");
                (format!("{word}({}, {})", self.of(left, 0), self.of(right, 0)), 7)
            }
            Expression::Max(left, right) => {
                let word = word("max", "Math.max");
                (format!("{word}({}, {})", self.of(left, 0), self.of(right, 0)), 7)
            }
            Expression::Abs(of) => (format!("{}({})", word("abs", "Math.abs"), self.of(of, 0)), 7),
            Expression::Count(of, key) if is_python => {
                (format!("{}.get({}, 0)", self.of(of, 7), self.of(key, 0)), 7)
            }
            Expression::Count(of, key) => {
                (format!("({}[{}] ?? 0)", self.of(of, 7), self.of(key, 0)), 7)
            }
            Expression::Call(name, arguments) => {
                let arguments: Vec<String> =
                    arguments.iter().map(|argument| self.of(argument, 0)).collect();
                (format!("{name}({})", arguments.join(", ")), 7)
            }
        }
    }
}

fn sign(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "//",
        Binary::Modulo => "%",
    }
}
