//! Expressions: what is read of a call.

use std::collections::HashSet;

use crate::arithmetic_errors::arithmetic_error;
use crate::exception::ExceptionKind;
use crate::tokens::{OpenBracket, Token, TokenKind, syntax_error, tokenize};
use crate::{BinaryOperator, Comparison, Exception, Outcome, Value};

/// Expressions that nest deeper are refused: reading a level takes some ten kilobytes of stack.
const MAX_DEPTH: usize = 64;
/// Expressions of more parts are refused.
const MAX_PARTS: usize = 200_000;

/// Words that are no names.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Whether a word is one of Python's own, and so no name of an argument.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// An expression of Python.
#[derive(Debug, Clone)]
pub enum Expression {
    /// A number, a text, a constant.
    Constant(Value),
    /// A name.
    Name(String),
    /// `object.name`
    Attribute(Box<Expression>, String),
    /// `object[index]`
    Subscript(Box<Expression>, Box<Expression>),
    /// `object[start:stop]`
    Slice(Box<Expression>, Option<Box<Expression>>, Option<Box<Expression>>),
    /// `function(...)`
    Call(Box<Expression>, Vec<Argument>),
    /// `[...]`
    List(Vec<Expression>),
    /// `(...)`
    Tuple(Vec<Expression>),
    /// `{...}` of elements.
    Set(Vec<Expression>),
    /// `{...}` of entries; `**` stands without a key.
    Dict(Vec<(Option<Expression>, Expression)>),
    /// An operator of one place.
    Unary(UnaryOperator, Box<Expression>),
    /// An operator of two places.
    Binary(Box<Expression>, BinaryOperator, Box<Expression>),
    /// An operator on the bits of whole numbers.
    Bits(Box<Expression>, BitOperator, Box<Expression>),
    /// `a < b <= c`: a chain.
    Compare(Box<Expression>, Vec<(Relation, Expression)>),
    /// `a and b`
    And(Box<Expression>, Box<Expression>),
    /// `a or b`
    Or(Box<Expression>, Box<Expression>),
    /// `then if condition else otherwise`: condition, then, otherwise.
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
}

/// An argument of a call.
#[derive(Debug, Clone)]
pub enum Argument {
    /// By its place.
    Positional(Expression),
    /// By its name.
    Keyword(String, Expression),
    /// `*items`
    Items(Expression),
    /// `**entries`
    Entries(Expression),
}

/// The one-place operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Negate,
    /// `+`
    Plus,
    /// `~`
    Invert,
    /// `not`
    Not,
}

/// Operators on bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOperator {
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `&`
    And,
    /// `<<`
    Left,
    /// `>>`
    Right,
}

/// What a comparison asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// An order.
    Order(Comparison),
    /// `in`
    In,
    /// `not in`
    NotIn,
    /// `is`
    Is,
    /// `is not`
    IsNot,
}

/// Reads an expression, as `ast.parse` does.
///
/// A name that is given twice in a call is no error before the expression is compiled, see `compile`.
///
/// # Errors
///
/// The `SyntaxError` that CPython raises; forms of Python that are not read here, such as comprehensions, and what is
/// too long or nests too deeply, are refused.
pub fn parse(text: &str) -> Outcome<Expression> {
    read(text).map(|(expression, _)| expression)
}

/// Reads an expression to be evaluated, as `compile` does.
///
/// # Errors
///
/// As [`parse`], and for names that are given twice in a call.
pub(crate) fn compile(text: &str) -> Outcome<Expression> {
    let (expression, wrong) = read(text)?;
    wrong.map_or(Ok(expression), Err)
}

/// An expression, and what keeps it from being compiled.
fn read(text: &str) -> Outcome<(Expression, Option<Exception>)> {
    let (tokens, open) = tokenize(text)?;
    let mut parser = Parser { tokens, at: 0, open, depth: 0, parts: 0, repeated: None };
    let whole = parser.whole().map_err(|error| match error.kind {
        ExceptionKind::Syntax => arithmetic_error(&parser.tokens, open).unwrap_or(error),
        _ => error,
    })?;
    Ok((whole, parser.repeated))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// The bracket that is never closed.
    open: Option<OpenBracket>,
    depth: usize,
    parts: usize,
    /// The first name that is given twice in a call.
    repeated: Option<Exception>,
}

impl Parser {
    fn whole(&mut self) -> Outcome<Expression> {
        let first = self.expression()?;
        let whole = self.tuple_after(first, &[])?;
        while self.is_next(&TokenKind::Newline) {
            self.at += 1;
        }
        if !self.is_next(&TokenKind::End) {
            return Err(self.unexpected(true));
        }
        Ok(whole)
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn is_next(&self, kind: &TokenKind) -> bool {
        self.token().kind == *kind
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(&self.token().kind, TokenKind::Operator(next) if *next == operator)
    }

    fn take_operator(&mut self, operator: &str) -> bool {
        let is_next = self.is_operator(operator);
        self.at += usize::from(is_next);
        is_next
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token().kind, TokenKind::Name(name) if name == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        self.at += usize::from(is_next);
        is_next
    }

    /// The error of a token that does not belong here. After a complete expression the missing comma is named, as
    /// CPython does inside brackets where another expression follows.
    fn unexpected(&mut self, after_expression: bool) -> Exception {
        let token = self.token().clone();
        if token.kind == TokenKind::End
            && let Some((open, line)) = self.open
        {
            return syntax_error(format_args!("'{open}' was never closed"), line);
        }
        if let TokenKind::Refused(words) = token.kind {
            return Exception::refused(words);
        }
        if after_expression {
            if let Some(previous) = self.at.checked_sub(1).map(|at| self.tokens[at].clone()) {
                if let TokenKind::Name(name) = &previous.kind
                    && (name == "print" || name == "exec")
                    && self.starts_expression()
                {
                    return syntax_error(
                        format_args!(
                            "Missing parentheses in call to '{name}'. Did you mean {name}(...)?"
                        ),
                        previous.line,
                    );
                }
                let name_and_text = matches!(previous.kind, TokenKind::Name(_))
                    && matches!(token.kind, TokenKind::Str(_));
                if previous.level > 0 && !name_and_text && self.starts_expression() {
                    let at = self.at;
                    let follows = self.expression().is_ok();
                    self.at = at;
                    if follows {
                        return syntax_error(
                            "invalid syntax. Perhaps you forgot a comma?",
                            previous.line,
                        );
                    }
                }
            }
            if matches!(&token.kind, TokenKind::Name(word) if word == "for" || word == "async") {
                return Exception::refused("comprehensions are not carried out here");
            }
        }
        syntax_error("invalid syntax", token.line)
    }

    fn starts_expression(&self) -> bool {
        match &self.token().kind {
            TokenKind::Name(name) => {
                !is_keyword(name)
                    || matches!(&**name, "None" | "True" | "False" | "lambda" | "await")
            }
            TokenKind::Operator(operator) => matches!(*operator, "(" | "[" | "{" | "~" | "..."),
            TokenKind::Newline | TokenKind::End => false,
            _ => true,
        }
    }

    /// Runs a rule one level deeper.
    fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        self.parts += 1;
        if self.depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return Err(Exception::refused("the expression is too deep or too large"));
        }
        let done = rule(self);
        self.depth -= 1;
        done
    }

    /// `a if b else c`, and all that binds closer.
    fn expression(&mut self) -> Outcome<Expression> {
        self.deeper(|parser| {
            if parser.is_word("lambda") {
                return Err(Exception::refused("functions are not made here"));
            }
            let then = parser.either()?;
            if !parser.take_word("if") {
                return Ok(then);
            }
            let condition = parser.either()?;
            if !parser.take_word("else") {
                return Err(syntax_error(
                    "expected 'else' after 'if' expression",
                    parser.token().line,
                ));
            }
            let otherwise = parser.expression()?;
            Ok(Expression::Conditional(Box::new(condition), Box::new(then), Box::new(otherwise)))
        })
    }

    fn either(&mut self) -> Outcome<Expression> {
        let mut left = self.both()?;
        let mut chain = 0;
        while self.take_word("or") {
            chain = self.link(chain)?;
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Outcome<Expression> {
        let mut left = self.negation()?;
        let mut chain = 0;
        while self.take_word("and") {
            chain = self.link(chain)?;
            left = Expression::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    /// Chains to the left nest as deep as they are long.
    fn link(&self, chain: usize) -> Outcome<usize> {
        if self.depth + chain > MAX_DEPTH {
            return Err(Exception::refused("the expression is too deep or too large"));
        }
        Ok(chain + 1)
    }

    fn negation(&mut self) -> Outcome<Expression> {
        if self.take_word("not") {
            let inner = self.deeper(Self::negation)?;
            return Ok(Expression::Unary(UnaryOperator::Not, Box::new(inner)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Outcome<Expression> {
        let first = self.operators(0)?;
        let mut rest = Vec::new();
        while let Some(relation) = self.take_relation() {
            rest.push((relation, self.operators(0)?));
        }
        Ok(match rest.is_empty() {
            true => first,
            false => Expression::Compare(Box::new(first), rest),
        })
    }

    fn take_relation(&mut self) -> Option<Relation> {
        for (operator, relation) in [
            ("==", Relation::Equal),
            ("!=", Relation::NotEqual),
            ("<=", Relation::Order(Comparison::LessOrEqual)),
            (">=", Relation::Order(Comparison::GreaterOrEqual)),
            ("<", Relation::Order(Comparison::Less)),
            (">", Relation::Order(Comparison::Greater)),
        ] {
            if self.take_operator(operator) {
                return Some(relation);
            }
        }
        if self.take_word("in") {
            return Some(Relation::In);
        }
        if self.take_word("is") {
            return Some(if self.take_word("not") { Relation::IsNot } else { Relation::Is });
        }
        let at = self.at;
        if self.take_word("not") {
            if self.take_word("in") {
                return Some(Relation::NotIn);
            }
            self.at = at;
        }
        None
    }

    /// The operators of numbers, by how close they bind.
    fn operators(&mut self, level: usize) -> Outcome<Expression> {
        const LEVELS: [&[&str]; 5] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"]];
        let Some(signs) = LEVELS.get(level) else { return self.product() };
        let mut left = self.operators(level + 1)?;
        let mut chain = 0;
        while let Some(sign) = signs.iter().find(|sign| self.is_operator(sign)) {
            self.at += 1;
            chain = self.link(chain)?;
            let right = Box::new(self.operators(level + 1)?);
            let left_box = Box::new(left);
            left = match *sign {
                "+" => Expression::Binary(left_box, BinaryOperator::Add, right),
                "-" => Expression::Binary(left_box, BinaryOperator::Subtract, right),
                "|" => Expression::Bits(left_box, BitOperator::Or, right),
                "^" => Expression::Bits(left_box, BitOperator::Xor, right),
                "&" => Expression::Bits(left_box, BitOperator::And, right),
                "<<" => Expression::Bits(left_box, BitOperator::Left, right),
                _ => Expression::Bits(left_box, BitOperator::Right, right),
            };
        }
        Ok(left)
    }

    fn product(&mut self) -> Outcome<Expression> {
        let mut left = self.signed()?;
        let mut chain = 0;
        loop {
            let operator = match &self.token().kind {
                TokenKind::Operator("*") => BinaryOperator::Multiply,
                TokenKind::Operator("/") => BinaryOperator::Divide,
                TokenKind::Operator("//") => BinaryOperator::FloorDivide,
                TokenKind::Operator("%") => BinaryOperator::Remainder,
                TokenKind::Operator("@") => {
                    return Err(Exception::refused("`@` is not carried out here"));
                }
                _ => return Ok(left),
            };
            self.at += 1;
            chain = self.link(chain)?;
            left = Expression::Binary(Box::new(left), operator, Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Outcome<Expression> {
        let operator = match &self.token().kind {
            TokenKind::Operator("-") => UnaryOperator::Negate,
            TokenKind::Operator("+") => UnaryOperator::Plus,
            TokenKind::Operator("~") => UnaryOperator::Invert,
            _ => return self.power(),
        };
        self.at += 1;
        let inner = self.deeper(Self::signed)?;
        Ok(Expression::Unary(operator, Box::new(inner)))
    }

    fn power(&mut self) -> Outcome<Expression> {
        let base = self.postfix()?;
        if !self.take_operator("**") {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        Ok(Expression::Binary(Box::new(base), BinaryOperator::Power, Box::new(exponent)))
    }

    fn postfix(&mut self) -> Outcome<Expression> {
        let mut value = self.atom()?;
        let mut chain = 0;
        loop {
            if self.take_operator(".") {
                let TokenKind::Name(name) = &self.token().kind else {
                    return Err(self.unexpected(false));
                };
                if is_keyword(name) {
                    return Err(self.unexpected(false));
                }
                value = Expression::Attribute(Box::new(value), name.clone());
                self.at += 1;
            } else if self.take_operator("(") {
                let arguments = self.arguments()?;
                value = Expression::Call(Box::new(value), arguments);
            } else if self.take_operator("[") {
                value = self.subscript(value)?;
            } else {
                return Ok(value);
            }
            chain = self.link(chain)?;
        }
    }

    fn subscript(&mut self, value: Expression) -> Outcome<Expression> {
        let start = match self.is_operator(":") {
            true => None,
            false => Some(Box::new(self.expression()?)),
        };
        if let Some(index) = start.as_ref().filter(|_| !self.is_operator(":")) {
            let index = self.tuple_after((**index).clone(), &["]"])?;
            self.close("]")?;
            return Ok(Expression::Subscript(Box::new(value), Box::new(index)));
        }
        self.take_operator(":");
        let stop = match self.is_operator("]") || self.is_operator(":") {
            true => None,
            false => Some(Box::new(self.expression()?)),
        };
        if self.is_operator(":") {
            return Err(Exception::refused("slices with steps are not carried out here"));
        }
        self.close("]")?;
        Ok(Expression::Slice(Box::new(value), start, stop))
    }

    fn close(&mut self, bracket: &str) -> Outcome<()> {
        if self.take_operator(bracket) {
            return Ok(());
        }
        Err(self.unexpected(true))
    }

    fn arguments(&mut self) -> Outcome<Vec<Argument>> {
        let mut arguments: Vec<Argument> = Vec::new();
        let mut names = HashSet::new();
        // Raised once all is read, since what is no expression at all comes first.
        let mut wrong: Option<Exception> = None;
        // What the last argument is called that was not given by its place.
        let mut after: Option<&str> = None;
        while !self.take_operator(")") {
            let line = self.token().line;
            if self.take_operator("**") {
                arguments.push(Argument::Entries(self.expression()?));
                after = Some("keyword argument unpacking");
            } else if self.take_operator("*") {
                arguments.push(Argument::Items(self.expression()?));
            } else {
                let is_bare = self.tokens.get(self.at + 1).map(|token| &token.kind)
                    == Some(&TokenKind::Operator("="));
                let name = match &self.token().kind {
                    TokenKind::Name(name) if is_bare => Some(name.clone()),
                    _ => None,
                };
                match name {
                    Some(name) if is_keyword(&name) => {
                        if matches!(&*name, "None" | "True" | "False") {
                            return Err(syntax_error(
                                format_args!("cannot assign to {name}"),
                                line,
                            ));
                        }
                        return Err(self.unexpected(false));
                    }
                    Some(name) => {
                        self.at += 2;
                        if self.is_operator(",") || self.is_operator(")") {
                            return Err(syntax_error("expected argument value expression", line));
                        }
                        let value = self.expression()?;
                        if !names.insert(name.clone()) {
                            self.repeated.get_or_insert_with(|| {
                                syntax_error(
                                    format_args!("keyword argument repeated: {name}"),
                                    line,
                                )
                            });
                        }
                        arguments.push(Argument::Keyword(name, value));
                        after = Some("keyword argument");
                    }
                    None => {
                        let value = self.expression()?;
                        if self.is_operator("=") {
                            return Err(syntax_error(
                                "expression cannot contain assignment, perhaps you meant \"==\"?",
                                line,
                            ));
                        }
                        if self.is_operator(":=") {
                            return Err(Exception::refused("names are not bound here"));
                        }
                        if let Some(after) = after {
                            wrong = Some(syntax_error(
                                format_args!("positional argument follows {after}"),
                                line,
                            ));
                        }
                        arguments.push(Argument::Positional(value));
                    }
                }
            }
            if !self.take_operator(",") && !self.is_operator(")") {
                return Err(self.unexpected(true));
            }
        }
        wrong.map_or(Ok(arguments), Err)
    }

    fn atom(&mut self) -> Outcome<Expression> {
        let token = self.token().clone();
        let constant = match token.kind {
            TokenKind::Int(value) => Value::from(value),
            TokenKind::Float(value) => Value::Float(value),
            TokenKind::Imaginary(value) => Value::Complex(0.0, value),
            TokenKind::Str(mut text) => {
                self.at += 1;
                loop {
                    match &self.token().kind {
                        TokenKind::Str(more) => text.push_str(more),
                        TokenKind::Refused(words) => return Err(Exception::refused(words)),
                        _ => return Ok(Expression::Constant(Value::from(text))),
                    }
                    self.at += 1;
                }
            }
            TokenKind::Operator("...") => Value::Ellipsis,
            TokenKind::Name(name) => match &*name {
                "None" => Value::None,
                "True" => Value::Bool(true),
                "False" => Value::Bool(false),
                "await" | "yield" => {
                    return Err(Exception::refused("coroutines are not carried out here"));
                }
                word if is_keyword(word) => return Err(self.unexpected(false)),
                _ => {
                    self.at += 1;
                    return Ok(Expression::Name(name));
                }
            },
            TokenKind::Operator("(") => {
                self.at += 1;
                return self.parentheses();
            }
            TokenKind::Operator("[") => {
                self.at += 1;
                let items = self.items("]")?;
                return Ok(Expression::List(items));
            }
            TokenKind::Operator("{") => {
                self.at += 1;
                return self.braces();
            }
            _ => return Err(self.unexpected(false)),
        };
        self.at += 1;
        Ok(Expression::Constant(constant))
    }

    fn parentheses(&mut self) -> Outcome<Expression> {
        if self.take_operator(")") {
            return Ok(Expression::Tuple(Vec::new()));
        }
        let first = self.expression()?;
        if self.is_operator(":=") {
            return Err(Exception::refused("names are not bound here"));
        }
        let whole = self.tuple_after(first, &[")"])?;
        self.close(")")?;
        Ok(whole)
    }

    /// A tuple without brackets of its own, where a comma follows; else the first expression alone.
    fn tuple_after(&mut self, first: Expression, ends: &[&str]) -> Outcome<Expression> {
        if !self.is_operator(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take_operator(",") {
            let is_end = ends.iter().any(|end| self.is_operator(end))
                || matches!(self.token().kind, TokenKind::End | TokenKind::Newline);
            if is_end {
                break;
            }
            items.push(self.expression()?);
        }
        Ok(Expression::Tuple(items))
    }

    fn items(&mut self, end: &str) -> Outcome<Vec<Expression>> {
        let mut items = Vec::new();
        while !self.take_operator(end) {
            if self.is_operator("*") {
                return Err(Exception::refused(
                    "unpacking into containers is not carried out here",
                ));
            }
            items.push(self.expression()?);
            if !self.take_operator(",") && !self.is_operator(end) {
                return Err(self.unexpected(true));
            }
        }
        Ok(items)
    }

    fn braces(&mut self) -> Outcome<Expression> {
        let mut entries = Vec::new();
        let mut elements = Vec::new();
        while !self.take_operator("}") {
            if self.take_operator("**") {
                entries.push((None, self.operators(0)?));
            } else {
                let key = self.expression()?;
                if elements.is_empty() && self.take_operator(":") {
                    if self.is_operator("}") || self.is_operator(",") {
                        return Err(syntax_error(
                            "expression expected after dictionary key and ':'",
                            self.tokens[self.at - 1].line,
                        ));
                    }
                    entries.push((Some(key), self.expression()?));
                } else if entries.is_empty() {
                    elements.push(key);
                } else {
                    let is_end = self.is_operator("}") || self.is_operator(",");
                    if is_end {
                        return Err(syntax_error(
                            "':' expected after dictionary key",
                            self.token().line,
                        ));
                    }
                    return Err(self.unexpected(true));
                }
            }
            if !self.take_operator(",") && !self.is_operator("}") {
                return Err(self.unexpected(true));
            }
        }
        Ok(if elements.is_empty() { Expression::Dict(entries) } else { Expression::Set(elements) })
    }
}
