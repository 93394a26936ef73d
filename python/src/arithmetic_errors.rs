//! Which error CPython finds in arithmetic that is none: what its parser reads, in the order in which it reads it.
//!
//! A parsing expression grammar backtracks, so the error depends on how far the parser looks: it is told of a bracket that is never
//! closed once it comes to the end, and on the second of its two passes it tries rules that exist to name errors. This
//! follows the rules of CPython 3.12's grammar as far as numbers, `+ - * / // **`, brackets, points and `...` go.

use std::collections::HashMap;

use crate::exception::Exception;
use crate::tokens::{OpenBracket, Token, TokenKind, syntax_error};

/// What nests deeper is not looked into.
const MAX_DEPTH: usize = 100;

/// What stops the parser.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// It came to the end within a bracket.
    NeverClosed,
    /// An expression follows another one within brackets; at this token.
    Comma(usize),
    /// `(*a)`; at this token.
    Starred(usize),
    /// `(**a)`; at this token.
    DoubleStarred(usize),
    /// It nests too deeply.
    TooDeep,
}

/// Where what a rule reads ends; absent where it does not apply.
type End = Result<Option<usize>, Stop>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Expression,
    Sum,
    Factor,
    Primary,
}

struct Reader<'t> {
    tokens: &'t [Token],
    open: Option<OpenBracket>,
    /// Whether the rules that name errors are tried.
    names_errors: bool,
    /// The furthest token that was looked at.
    furthest: usize,
    depth: usize,
    known: HashMap<(Rule, usize, bool), Option<usize>>,
}

/// The error of tokens that are no expression, where they are arithmetic.
pub(crate) fn arithmetic_error(tokens: &[Token], open: Option<OpenBracket>) -> Option<Exception> {
    let is_arithmetic = tokens.iter().all(|token| match &token.kind {
        TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Newline | TokenKind::End => true,
        TokenKind::Operator(operator) => {
            matches!(*operator, "+" | "-" | "*" | "/" | "//" | "**" | "(" | ")" | "." | "...")
        }
        _ => false,
    });
    if !is_arithmetic {
        return None;
    }
    let mut reader =
        Reader { tokens, open, names_errors: false, furthest: 0, depth: 0, known: HashMap::new() };
    let told = |stop: Stop| {
        let line = |at: usize| tokens[at].line;
        Some(match stop {
            Stop::TooDeep => return None,
            Stop::NeverClosed => {
                let (bracket, line) = open.unwrap_or(('(', 1));
                syntax_error(format_args!("'{bracket}' was never closed"), line)
            }
            Stop::Comma(at) => {
                syntax_error("invalid syntax. Perhaps you forgot a comma?", line(at))
            }
            Stop::Starred(at) => syntax_error("cannot use starred expression here", line(at)),
            Stop::DoubleStarred(at) => {
                syntax_error("cannot use double starred expression here", line(at))
            }
        })
    };
    let last = match reader.whole() {
        Ok(()) => reader.furthest,
        Err(stop) => return told(stop),
    };
    reader.names_errors = true;
    if let Err(stop) = reader.whole() {
        return told(stop);
    }
    Some(syntax_error("invalid syntax", tokens[last.min(tokens.len() - 1)].line))
}

impl Reader<'_> {
    fn whole(&mut self) -> Result<(), Stop> {
        let Some(mut end) = self.expression(0)? else { return Ok(()) };
        while self.operator(end)?.is_empty()
            && self.tokens.get(end).is_some_and(|token| token.kind == TokenKind::Newline)
        {
            end += 1;
        }
        Ok(())
    }

    /// The token at a place if it is an operator, the empty text otherwise. To look is what counts.
    fn operator(&mut self, at: usize) -> Result<&'static str, Stop> {
        self.furthest = self.furthest.max(at);
        match self.tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Operator(operator)) => Ok(operator),
            Some(TokenKind::End) | None if self.open.is_some() => Err(Stop::NeverClosed),
            _ => Ok(""),
        }
    }

    fn is_number(&self, at: usize) -> bool {
        matches!(
            self.tokens.get(at).map(|token| &token.kind),
            Some(TokenKind::Int(_) | TokenKind::Float(_))
        )
    }

    fn once(&mut self, rule: Rule, at: usize, read: impl FnOnce(&mut Self) -> End) -> End {
        let key = (rule, at, self.names_errors);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if self.depth >= MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        self.depth += 1;
        let end = read(self);
        self.depth -= 1;
        let end = end?;
        self.known.insert(key, end);
        Ok(end)
    }

    fn expression(&mut self, at: usize) -> End {
        self.once(Rule::Expression, at, |reader| {
            let first = reader.sum(at)?;
            if let (true, Some(end)) = (reader.names_errors, first) {
                reader.names_errors = false;
                let next = reader.expression(end);
                reader.names_errors = true;
                if let Some(next) = next?
                    && reader.tokens[next - 1].level > 0
                {
                    return Err(Stop::Comma(at));
                }
            }
            Ok(first)
        })
    }

    fn sum(&mut self, at: usize) -> End {
        self.once(Rule::Sum, at, |reader| {
            let Some(mut end) = reader.product(at)? else { return Ok(None) };
            while matches!(reader.operator(end)?, "+" | "-") {
                let Some(next) = reader.product(end + 1)? else { break };
                end = next;
            }
            Ok(Some(end))
        })
    }

    fn product(&mut self, at: usize) -> End {
        let Some(mut end) = self.factor(at)? else { return Ok(None) };
        while matches!(self.operator(end)?, "*" | "/" | "//") {
            let Some(next) = self.factor(end + 1)? else { break };
            end = next;
        }
        Ok(Some(end))
    }

    fn factor(&mut self, mut at: usize) -> End {
        while matches!(self.operator(at)?, "+" | "-") {
            at += 1;
        }
        let Some(base) = self.primary(at)? else { return Ok(None) };
        if self.operator(base)? == "**"
            && let Some(exponent) = self.once(Rule::Factor, base + 1, |it| it.factor(base + 1))?
        {
            return Ok(Some(exponent));
        }
        Ok(Some(base))
    }

    fn primary(&mut self, at: usize) -> End {
        self.once(Rule::Primary, at, |reader| {
            let Some(mut end) = reader.atom(at)? else { return Ok(None) };
            loop {
                match reader.operator(end)? {
                    "." => {
                        // No name follows it.
                        reader.operator(end + 1)?;
                        return Ok(Some(end));
                    }
                    "(" => {}
                    _ => return Ok(Some(end)),
                }
                // As a generator first, which nothing here is.
                if let Some(inner) = reader.expression(end + 1)? {
                    reader.operator(inner)?;
                }
                let arguments = match reader.operator(end + 1)? {
                    "*" | "**" => reader.expression(end + 2)?,
                    _ => reader.expression(end + 1)?,
                };
                let close = match arguments {
                    Some(inner) if reader.operator(inner)? == ")" => inner,
                    _ => end + 1,
                };
                if reader.operator(close)? != ")" {
                    return Ok(Some(end));
                }
                end = close + 1;
            }
        })
    }

    fn atom(&mut self, at: usize) -> End {
        match self.operator(at)? {
            "" if self.is_number(at) => return Ok(Some(at + 1)),
            "..." => return Ok(Some(at + 1)),
            "(" => {}
            _ => return Ok(None),
        }
        // A tuple, of which only the empty one has no comma.
        let first = match self.operator(at + 1)? {
            "*" => self.sum(at + 2)?,
            _ => self.expression(at + 1)?,
        };
        if let Some(end) = first {
            self.operator(end)?;
        }
        if self.operator(at + 1)? == ")" {
            return Ok(Some(at + 2));
        }
        // A group.
        if let Some(end) = self.expression(at + 1)?
            && self.operator(end)? == ")"
        {
            return Ok(Some(end + 1));
        }
        if self.names_errors {
            let operator = self.operator(at + 1)?;
            if matches!(operator, "*" | "**")
                && let Some(end) = self.expression(at + 2)?
                && self.operator(end)? == ")"
            {
                let stop = if operator == "*" {
                    Stop::Starred(at + 1)
                } else {
                    Stop::DoubleStarred(at + 1)
                };
                return Err(stop);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    #[test]
    fn arithmetic_that_is_none_is_told_as_cpython_tells_it() {
        let comma = "invalid syntax. Perhaps you forgot a comma?";
        for (text, told) in [
            ("(1 1", "'(' was never closed"),
            ("(()2", "'(' was never closed"),
            ("()88( ", "'(' was never closed"),
            ("(*", "'(' was never closed"),
            ("(**", "'(' was never closed"),
            ("(*1)", "cannot use starred expression here"),
            ("( * 1)", "cannot use starred expression here"),
            ("2*(** () )", "cannot use double starred expression here"),
            ("(1 22(/", comma),
            ("(().0..", comma),
            ("(()1(( 1  1( (", comma),
            ("1(0..1(.", comma),
            ("()()1( ()  1(1(  1( ", "invalid syntax"),
            ("1 (", "'(' was never closed"),
            ("1 2", "invalid syntax"),
            ("1..2", "invalid syntax"),
            ("", "invalid syntax"),
            ("1)", "unmatched ')'"),
        ] {
            let found = parse(text).unwrap_err().text;
            assert!(found.starts_with(&format!("{told} (<string>, line")), "{text}: {found}");
        }
    }
}
