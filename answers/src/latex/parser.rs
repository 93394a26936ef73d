//! Tokens made into formulas, by recursive descent.
//!
//! ```text
//!  list      := relation ((, ; and or) relation)*
//!  relation  := union (comparison union)*
//!  union     := overlap ((∪ ∖) overlap)*      overlap := sum (∩ sum)*
//!  sum       := product ((+ - ±) product)*
//!  product   := juxtaposed ((× / mod) juxtaposed)*
//!  juxtaposed := signed factors side by side; closer than a fraction bar that is typed
//!  factor    := primary (! ^ % °)*
//! ```

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Pow, Zero};

use super::MAX_DEPTH;
use super::token::Token;
use crate::Unclear;
use crate::expression::{Bracket, Comparison, Expression, Function, NamedSet};

/// How large an exponent of a number such as `1e3` may be.
const MAX_EXPONENT: u32 = 4096;
/// How many signs may stand for two.
const MAX_DOUBLE_SIGNS: usize = 64;
/// How many operations may lean to the left without brackets, as in `1/2/3`: each is a level of the tree.
const MAX_CHAINED: usize = 256;
/// How many digits a number may have.
const MAX_DIGITS: usize = 4096;

/// The formula that tokens make up.
pub(super) fn parse(tokens: Vec<Token>) -> Result<Expression, Unclear> {
    if tokens.is_empty() {
        return Err(Unclear::Empty);
    }
    let is_signed = |token: &Token| matches!(token, Token::PlusMinus | Token::MinusPlus);
    if tokens.iter().filter(|token| is_signed(token)).count() > MAX_DOUBLE_SIGNS {
        return Err(Unclear::TooLarge);
    }
    let has_double_signs = tokens.iter().any(is_signed);
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        chained: 0,
        bar_ends: false,
        has_double_signs,
        sign: Sign::default(),
    };
    let read = parser.list()?;
    match parser.at == parser.tokens.len() {
        true => Ok(read),
        false => Err(parser.refuse()),
    }
}

/// How signs that stand for two are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sign {
    #[default]
    Upper,
    Lower,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    chained: usize,
    /// Whether a bar ends what is being read, rather than beginning an absolute value.
    bar_ends: bool,
    has_double_signs: bool,
    sign: Sign,
}

type Read = Result<Expression, Unclear>;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, token: &Token) -> Result<(), Unclear> {
        if self.take(token) { Ok(()) } else { Err(self.refuse()) }
    }

    fn refuse(&self) -> Unclear {
        let near = self.peek().map(|token| format!("{token:?}")).unwrap_or_default();
        Unclear::Unreadable { near }
    }

    /// One operation more that leans to the left.
    fn chain(&mut self) -> Result<(), Unclear> {
        self.at += 1;
        self.chained += 1;
        if self.chained > MAX_CHAINED {
            Err(Unclear::TooDeep { limit: MAX_CHAINED })
        } else {
            Ok(())
        }
    }

    /// One level deeper, if there is one.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read) -> Read {
        if self.depth == MAX_DEPTH {
            return Err(Unclear::TooDeep { limit: MAX_DEPTH });
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// One level deeper, in brackets: bars begin absolute values there.
    fn inside(&mut self, read: impl FnOnce(&mut Self) -> Read) -> Read {
        let outer = std::mem::replace(&mut self.bar_ends, false);
        let result = self.nested(read);
        self.bar_ends = outer;
        result
    }

    fn list(&mut self) -> Read {
        let (mut items, mut is_or) = (Vec::new(), false);
        loop {
            self.element(&mut items)?;
            let mut separated = false;
            while let Some(Token::Comma | Token::Semicolon | Token::Or | Token::And) = self.peek() {
                is_or |= self.peek() == Some(&Token::Or);
                separated = true;
                self.at += 1;
            }
            if !separated {
                break;
            }
            // A separator at the end separates nothing.
            if matches!(self.peek(), None | Some(Token::Close(_) | Token::SetClose)) {
                return Err(self.refuse());
            }
        }
        match items.len() {
            1 => Ok(items.swap_remove(0)),
            _ => Ok(Expression::List { items, is_or }),
        }
    }

    /// One element of a list; two where a sign stands for two.
    fn element(&mut self, into: &mut Vec<Expression>) -> Result<(), Unclear> {
        let start = self.at;
        if !self.has_double_signs || self.sign == Sign::Lower {
            into.push(self.relation()?);
            return Ok(());
        }
        let before = self.tokens.clone();
        let upper = self.relation()?;
        let is_signed = |token: &Token| matches!(token, Token::PlusMinus | Token::MinusPlus);
        if !self.tokens[start..self.at].iter().any(is_signed) {
            into.push(upper);
            return Ok(());
        }
        (self.at, self.tokens, self.sign) = (start, before, Sign::Lower);
        let lower = self.relation();
        self.sign = Sign::Upper;
        into.extend([upper, lower?]);
        Ok(())
    }

    fn relation(&mut self) -> Read {
        let first = self.union()?;
        let mut rest: Vec<(Comparison, Expression)> = Vec::new();
        loop {
            match self.peek() {
                Some(Token::Comparison(comparison)) => {
                    let comparison = *comparison;
                    self.at += 1;
                    rest.push((comparison, self.union()?));
                }
                // What is roughly something is what is named exactly, unless that is but a name.
                Some(Token::Approx) => {
                    self.at += 1;
                    let rough = self.union()?;
                    let exact = rest.last().map_or(&first, |(_, it)| it);
                    if exact.is_of_variables() {
                        rest.push((Comparison::Equal, rough));
                    }
                }
                _ => break,
            }
        }
        match rest.is_empty() {
            true => Ok(first),
            false => Ok(Expression::Relation(Box::new(first), rest)),
        }
    }

    fn union(&mut self) -> Read {
        let mut left = self.overlap()?;
        loop {
            if self.take(&Token::Union) {
                let right = self.overlap()?;
                left = match left {
                    Expression::Union(mut items) => {
                        items.push(right);
                        Expression::Union(items)
                    }
                    left => Expression::Union(vec![left, right]),
                };
            } else if self.peek() == Some(&Token::SetMinus) {
                self.chain()?;
                let right = self.overlap()?;
                left = Expression::Difference(Box::new(left), Box::new(right));
            } else {
                return Ok(left);
            }
        }
    }

    fn overlap(&mut self) -> Read {
        let mut items = vec![self.sum()?];
        while self.take(&Token::Intersection) {
            items.push(self.sum()?);
        }
        match items.len() {
            1 => Ok(items.swap_remove(0)),
            _ => Ok(Expression::Intersection(items)),
        }
    }

    /// Whether a sign that is next takes away; absent where none is.
    fn sign_is_minus(&self) -> Option<bool> {
        match self.peek()? {
            Token::Plus => Some(false),
            Token::Minus => Some(true),
            Token::PlusMinus => Some(self.sign == Sign::Lower),
            Token::MinusPlus => Some(self.sign == Sign::Upper),
            _ => None,
        }
    }

    fn sum(&mut self) -> Read {
        let mut terms = vec![self.product()?];
        while let Some(is_minus) = self.sign_is_minus() {
            self.at += 1;
            let term = self.product()?;
            terms.push(if is_minus { term.negative() } else { term });
        }
        match terms.len() {
            1 => Ok(terms.swap_remove(0)),
            _ => Ok(Expression::Sum(terms)),
        }
    }

    fn product(&mut self) -> Read {
        let mut left = self.signed()?;
        loop {
            match self.peek() {
                Some(Token::Times) => {
                    self.at += 1;
                    let right = self.signed()?;
                    left = times(left, right);
                }
                Some(Token::Divide | Token::Colon) => {
                    self.chain()?;
                    // `5\text{ km}/\text{h}`
                    if matches!(self.peek(), Some(Token::Text(_))) {
                        self.skip_unit()?;
                        continue;
                    }
                    let right = self.signed()?;
                    left = Expression::Quotient(Box::new(left), Box::new(right));
                }
                Some(Token::Mod) => {
                    self.chain()?;
                    let right = self.signed()?;
                    left = Expression::Call(Function::Mod, vec![left, right]);
                }
                _ => return Ok(left),
            }
        }
    }

    fn signed(&mut self) -> Read {
        match self.sign_is_minus() {
            Some(is_minus) => {
                self.at += 1;
                let inner = self.nested(Self::signed)?;
                Ok(if is_minus { inner.negative() } else { inner })
            }
            None => self.juxtaposed(false),
        }
    }

    /// Factors side by side; `of_function` ends at the next function or bracket, as the argument of one without brackets does.
    fn juxtaposed(&mut self, of_function: bool) -> Read {
        let start = self.at;
        let mut factors = vec![self.factor()?];
        let mut starts = vec![start];
        while let Some(next) = self.peek() {
            let goes_on = match next {
                Token::Text(_) => {
                    self.skip_unit()?;
                    continue;
                }
                Token::Function(_) | Token::Open(_) => !of_function,
                Token::Bar => !self.bar_ends && !of_function,
                Token::Number { .. }
                | Token::Scientific { .. }
                | Token::Letter(_)
                | Token::Word(_)
                | Token::Constant(_)
                | Token::LeftBrace
                | Token::Frac
                | Token::Binom
                | Token::Sqrt
                | Token::FloorOpen
                | Token::CeilOpen
                | Token::BeginMatrix
                | Token::Boxed => true,
                _ => false,
            };
            if !goes_on {
                break;
            }
            starts.push(self.at);
            factors.push(self.factor()?);
        }
        // `2 1/2` has one and a half of nothing: it is a mixed number.
        if let ([Expression::Number { .. }, Expression::Number { .. }], Some(Token::Divide)) =
            (&factors[..], self.peek())
            && let Some(Token::Number { .. }) = self.tokens.get(self.at + 1)
        {
            self.at += 1;
            let denominator = self.factor()?;
            let numerator = factors.pop().expect("there are two");
            factors.push(Expression::Quotient(Box::new(numerator), Box::new(denominator)));
        }
        if let [Expression::Number { value: whole, is_decimal: false }, fraction] = &factors[..]
            && let Some(part) = proper_fraction(fraction)
            && whole.is_integer()
        {
            return Ok(Expression::Number { value: whole + part, is_decimal: false });
        }
        // Two numbers side by side are no product.
        let is_number = |at: &usize| matches!(self.tokens.get(*at), Some(Token::Number { .. }));
        if starts.iter().skip(1).any(is_number) {
            let near = "two numbers side by side".to_owned();
            return Err(Unclear::Unreadable { near });
        }
        Ok(match factors.len() {
            1 => factors.swap_remove(0),
            _ => Expression::Product(factors),
        })
    }

    /// Words behind a quantity, with a power of theirs. Whatever else stands there could be another answer.
    fn skip_unit(&mut self) -> Result<(), Unclear> {
        let Some(Token::Text(text)) = self.peek() else { return Err(self.refuse()) };
        let is_unit =
            |c: char| c.is_alphabetic() || c.is_whitespace() || "/.^-\\~*²³{}()".contains(c);
        let says_more = text.split(|c: char| !c.is_alphabetic()).any(|word| {
            matches!(word, "or" | "and" | "not" | "is" | "answer" | "maybe" | "if" | "but")
        });
        if text.len() > 60 || says_more || !text.chars().all(|c| is_unit(c) || "23".contains(c)) {
            return Err(self.refuse());
        }
        if text.split_whitespace().any(|word| word.chars().all(|c| c.is_ascii_digit())) {
            return Err(self.refuse());
        }
        self.at += 1;
        if self.take(&Token::Caret) {
            self.nested(Self::exponent)?;
        }
        Ok(())
    }

    fn factor(&mut self) -> Read {
        let mut base = self.primary()?;
        loop {
            match self.peek() {
                Some(Token::Bang) => {
                    self.chain()?;
                    base = Expression::Call(Function::Factorial, vec![base]);
                }
                Some(Token::Percent) => {
                    self.chain()?;
                    base = Expression::Percent(Box::new(base));
                }
                Some(Token::Degree) => {
                    self.chain()?;
                    base = Expression::Degrees(Box::new(base));
                }
                Some(Token::Caret) => {
                    self.chain()?;
                    if self.takes_degree() {
                        base = Expression::Degrees(Box::new(base));
                        continue;
                    }
                    let exponent = self.nested(Self::exponent)?;
                    base = Expression::Power(Box::new(base), Box::new(exponent));
                }
                Some(Token::Underscore) if matches!(base, Expression::Number { .. }) => {
                    // The base in which a number is written is not read.
                    self.at += 1;
                    self.subscript()?;
                }
                _ => return Ok(base),
            }
        }
    }

    /// Takes `\circ`, in braces or not.
    fn takes_degree(&mut self) -> bool {
        let is_braced = self.tokens[self.at..].starts_with(&[
            Token::LeftBrace,
            Token::Degree,
            Token::RightBrace,
        ]);
        if is_braced {
            self.at += 3;
        }
        is_braced || self.take(&Token::Degree)
    }

    /// What stands behind `^`: a group, or one signed factor, a power of which is to the right.
    fn exponent(&mut self) -> Read {
        if let Some(is_minus) = self.sign_is_minus() {
            self.at += 1;
            let inner = self.nested(Self::exponent)?;
            return Ok(if is_minus { inner.negative() } else { inner });
        }
        let base = self.primary()?;
        match self.take(&Token::Caret) {
            true => Ok(Expression::Power(Box::new(base), Box::new(self.nested(Self::exponent)?))),
            false => Ok(base),
        }
    }

    fn primary(&mut self) -> Read {
        let Some(token) = self.peek().cloned() else { return Err(self.refuse()) };
        self.at += 1;
        match token {
            Token::Number { digits, fraction } => number(&digits, fraction.as_deref()),
            Token::Scientific { mantissa, exponent } => scientific(&mantissa, &exponent),
            Token::Constant(constant) => Ok(Expression::Constant(constant)),
            Token::NamedSet(set) => Ok(Expression::NamedSet(set)),
            Token::Letter(letter) => self.variable(letter.to_string()),
            Token::Word(word) => self.variable(word),
            Token::Text(text) => {
                let bare = |c: &char| !c.is_whitespace() && !"()~.\\".contains(*c);
                self.variable(text.chars().filter(bare).collect())
            }
            Token::Function(function) => self.nested(|parser| parser.call(function)),
            Token::Frac => self.nested(|parser| {
                let (above, below) = (parser.argument()?, parser.argument()?);
                Ok(Expression::Quotient(Box::new(above), Box::new(below)))
            }),
            Token::Binom => self.nested(|parser| {
                Ok(Expression::Call(
                    Function::Binomial,
                    vec![parser.argument()?, parser.argument()?],
                ))
            }),
            Token::Sqrt => self.nested(Self::root),
            Token::Boxed => self.nested(Self::argument),
            Token::Open(open) => self.inside(|parser| parser.bracketed(open)),
            Token::LeftBrace => self.inside(Self::group),
            Token::SetOpen => self.inside(Self::set),
            Token::Bar => self.nested(|parser| {
                let outer = std::mem::replace(&mut parser.bar_ends, true);
                let inner = parser.sum()?;
                parser.bar_ends = outer;
                parser.expect(&Token::Bar)?;
                Ok(Expression::Call(Function::Abs, vec![inner]))
            }),
            Token::FloorOpen => self.inside(|parser| {
                let inner = parser.sum()?;
                parser.expect(&Token::FloorClose)?;
                Ok(Expression::Call(Function::Floor, vec![inner]))
            }),
            Token::CeilOpen => self.inside(|parser| {
                let inner = parser.sum()?;
                parser.expect(&Token::CeilClose)?;
                Ok(Expression::Call(Function::Ceil, vec![inner]))
            }),
            Token::BeginMatrix => self.inside(Self::matrix),
            _ => {
                self.at -= 1;
                Err(self.refuse())
            }
        }
    }

    fn variable(&mut self, mut name: String) -> Read {
        if self.take(&Token::Underscore) {
            name.push('_');
            name.push_str(&self.subscript()?);
        }
        Ok(Expression::Variable(name))
    }

    /// A subscript as it is written.
    fn subscript(&mut self) -> Result<String, Unclear> {
        let mut text = String::new();
        let mut depth = 0_usize;
        loop {
            let Some(token) = self.peek().cloned() else { return Err(self.refuse()) };
            self.at += 1;
            match token {
                Token::LeftBrace => depth += 1,
                Token::RightBrace if depth > 0 => depth -= 1,
                Token::Number { digits, fraction: None } => text.push_str(&digits),
                Token::Letter(letter) => text.push(letter),
                Token::Word(word) | Token::Text(word) => text.push_str(&word),
                Token::Constant(constant) => text.push_str(&format!("{constant:?}")),
                Token::Plus if depth > 0 => text.push('+'),
                Token::Minus if depth > 0 => text.push('-'),
                Token::Comma if depth > 0 => text.push(','),
                _ => {
                    self.at -= 1;
                    return Err(self.refuse());
                }
            }
            if depth == 0 {
                return Ok(text);
            }
        }
    }

    /// An argument of a command: a group, or what the next character says, one digit of a number.
    fn argument(&mut self) -> Read {
        if self.take(&Token::LeftBrace) {
            return self.inside(Self::group);
        }
        if let Some(digit) = self.take_digit() {
            return number(&digit.to_string(), None);
        }
        self.primary()
    }

    /// Takes the first digit off a number that is next.
    fn take_digit(&mut self) -> Option<char> {
        let Some(Token::Number { digits, fraction }) = self.tokens.get_mut(self.at) else {
            return None;
        };
        let first = digits.chars().next()?;
        if digits.len() == 1 && fraction.is_none() {
            self.at += 1;
        } else {
            digits.remove(0);
        }
        Some(first)
    }

    fn root(&mut self) -> Read {
        let mut index = Expression::integer(2);
        if self.take(&Token::Open('[')) {
            index = self.inside(Self::sum)?;
            self.expect(&Token::Close(']'))?;
        }
        // Typed: `sqrt(2)`, `√2`.
        let of = match self.peek() {
            Some(Token::Open('(')) => self.primary()?,
            _ => self.argument()?,
        };
        Ok(Expression::Root { index: Box::new(index), of: Box::new(of) })
    }

    fn call(&mut self, function: Function) -> Read {
        let (mut base, mut power) = (None, None);
        loop {
            if function == Function::Log && base.is_none() && self.take(&Token::Underscore) {
                base = Some(self.nested(Self::argument)?);
            } else if power.is_none() && self.take(&Token::Caret) {
                power = Some(self.nested(Self::exponent)?);
            } else {
                break;
            }
        }
        let mut arguments = match self.peek() {
            Some(Token::Open(_)) if function.takes_several() => match self.primary()? {
                Expression::Bracketed { items, .. } => items,
                one => vec![one],
            },
            Some(Token::SetOpen) if function.takes_several() => match self.primary()? {
                Expression::Set(items) => items,
                one => vec![one],
            },
            Some(Token::Open(_) | Token::LeftBrace) => vec![self.primary()?],
            _ => vec![self.signed_argument()?],
        };
        let mut function = function;
        if function == Function::Log {
            arguments.insert(0, base.unwrap_or_else(|| Expression::integer(10)));
        }
        if let (Some(exponent), Some(inverse)) = (&power, function.inverse())
            && *exponent == Expression::integer(-1)
        {
            (function, power) = (inverse, None);
        }
        let call = Expression::Call(function, arguments);
        Ok(match power {
            None => call,
            Some(power) => Expression::Power(Box::new(call), Box::new(power)),
        })
    }

    fn signed_argument(&mut self) -> Read {
        match self.sign_is_minus() {
            Some(is_minus) => {
                self.at += 1;
                let inner = self.nested(Self::signed_argument)?;
                Ok(if is_minus { inner.negative() } else { inner })
            }
            None => self.juxtaposed(true),
        }
    }

    /// What stands in round or square brackets, up to the bracket that ends it.
    fn bracketed(&mut self, open: char) -> Read {
        let inner = self.list()?;
        let Some(Token::Close(close)) = self.peek().cloned() else { return Err(self.refuse()) };
        self.at += 1;
        let bracket = |c: char| if "[]".contains(c) { Bracket::Square } else { Bracket::Round };
        let (open, close) = (bracket(open), bracket(close));
        match inner {
            Expression::List { items, .. } => Ok(Expression::Bracketed { open, close, items }),
            one if open == close => Ok(one),
            _ => Err(self.refuse()),
        }
    }

    /// What stands in braces that group; a set where there is more than one.
    fn group(&mut self) -> Read {
        if self.take(&Token::RightBrace) {
            return Ok(Expression::NamedSet(NamedSet::Empty));
        }
        let inner = self.list()?;
        if self.take(&Token::Choose) {
            let below = self.sum()?;
            self.expect(&Token::RightBrace)?;
            return Ok(Expression::Call(Function::Binomial, vec![inner, below]));
        }
        self.expect(&Token::RightBrace)?;
        match inner {
            Expression::List { items, .. } => Ok(Expression::Set(items)),
            one => Ok(one),
        }
    }

    fn set(&mut self) -> Read {
        if self.take(&Token::SetClose) {
            return Ok(Expression::NamedSet(NamedSet::Empty));
        }
        let start = self.at;
        self.bar_ends = true;
        let first = self.relation_in_set();
        self.bar_ends = false;
        let first = first?;
        if matches!(self.peek(), Some(Token::Bar | Token::Mid | Token::Colon)) {
            self.at += 1;
            let condition = self.list()?;
            self.expect(&Token::SetClose)?;
            let Expression::Relation(..) = &condition else { return Err(self.refuse()) };
            let _ = first;
            return Ok(condition);
        }
        self.at = start;
        let inner = self.list()?;
        self.expect(&Token::SetClose)?;
        match inner {
            Expression::List { items, .. } => Ok(Expression::Set(items)),
            one => Ok(Expression::Set(vec![one])),
        }
    }

    /// What a set's elements are called, up to the mark behind which their condition stands.
    fn relation_in_set(&mut self) -> Read {
        let name = match self.peek() {
            Some(Token::Letter(_) | Token::Word(_)) => self.primary()?,
            _ => return self.relation(),
        };
        if self.take(&Token::Comparison(Comparison::In)) {
            self.overlap()?;
        }
        Ok(name)
    }

    fn matrix(&mut self) -> Read {
        let mut rows = vec![Vec::new()];
        loop {
            let row = rows.last_mut().expect("there is a row");
            row.push(self.sum()?);
            match self.peek() {
                Some(Token::Ampersand) => self.at += 1,
                Some(Token::NewRow) => {
                    self.at += 1;
                    if self.take(&Token::EndMatrix) {
                        break;
                    }
                    rows.push(Vec::new());
                }
                Some(Token::EndMatrix) => {
                    self.at += 1;
                    break;
                }
                _ => return Err(self.refuse()),
            }
        }
        match rows.iter().all(|row| row.len() == rows[0].len()) {
            true => Ok(Expression::Matrix(rows)),
            false => Err(Unclear::Unreadable { near: "rows of different length".to_owned() }),
        }
    }
}

fn times(left: Expression, right: Expression) -> Expression {
    match left {
        Expression::Product(mut items) => {
            items.push(right);
            Expression::Product(items)
        }
        left => Expression::Product(vec![left, right]),
    }
}

/// A fraction of whole numbers between 0 and 1, the second half of a mixed number.
fn proper_fraction(expression: &Expression) -> Option<BigRational> {
    let Expression::Quotient(above, below) = expression else { return None };
    let whole = |it: &Expression| match it {
        Expression::Number { value, is_decimal: false } if value.is_integer() => {
            Some(value.to_integer())
        }
        _ => None,
    };
    let (above, below) = (whole(above)?, whole(below)?);
    let is_proper = above > BigInt::zero() && below > above;
    is_proper.then(|| BigRational::new(above, below))
}

fn number(digits: &str, fraction: Option<&str>) -> Read {
    if digits.len() + fraction.map_or(0, str::len) > MAX_DIGITS {
        return Err(Unclear::TooLarge);
    }
    let behind = fraction.unwrap_or_default();
    let all = format!("0{digits}{behind}");
    let value: BigInt = all.parse().map_err(|_| Unclear::Unreadable { near: digits.to_owned() })?;
    let scale = Pow::pow(BigInt::from(10), behind.len());
    Ok(Expression::Number { value: BigRational::new(value, scale), is_decimal: fraction.is_some() })
}

fn scientific(mantissa: &str, exponent: &str) -> Read {
    let (digits, fraction) = match mantissa.split_once('.') {
        None => (mantissa, None),
        Some((digits, fraction)) => (digits, Some(fraction)),
    };
    let Expression::Number { value, is_decimal } = number(digits, fraction)? else {
        return Err(Unclear::TooLarge);
    };
    let exponent: i64 = exponent.parse().map_err(|_| Unclear::TooLarge)?;
    let size = u32::try_from(exponent.unsigned_abs()).map_err(|_| Unclear::TooLarge)?;
    if size > MAX_EXPONENT {
        return Err(Unclear::TooLarge);
    }
    let scale = BigRational::from_integer(Pow::pow(BigInt::from(10), size));
    let value = if exponent < 0 { value / scale } else { value * scale };
    Ok(Expression::Number { value, is_decimal })
}
