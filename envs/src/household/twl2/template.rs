//! The template language of productions.
//!
//! `#symbol#` is another symbol, `{expression}` a value, `{expression | query}` one value per
//! answer to the query, `[{...}]` the same written as a list, everything else is literal. Text
//! after the first thing that is none of these is dropped, as the reference does it: a closing
//! brace too many in a production is known from real games.

use crate::household::error::Fault;

/// Terms beyond this in one expression are refused.
const MAX_TERMS: usize = 64;

/// One part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text as it is.
    Literal(&'a str),
    /// The text of a symbol.
    Symbol(&'a str),
    /// A value, once or once per answer to the query.
    Value {
        /// What is written.
        piece: Piece<'a>,
        /// The query, where there is one.
        query: Option<&'a str>,
        /// Written as a list with separators.
        is_list: bool,
    },
}

/// What stands before the bar in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// The text of a symbol.
    Symbol(&'a str),
    /// An expression over the placeholders; parsed by [`Expression::parse`].
    Expression(&'a str),
}

/// Splits a template into its parts.
pub(crate) fn parse_template(text: &str) -> Vec<Part<'_>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut parts = Vec::new();
    loop {
        let start = scanner.at;
        match scanner.part() {
            Some(part) if scanner.at > start => parts.push(part),
            _ => return parts,
        }
    }
}

#[derive(Clone, Copy)]
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Skips tabs anywhere, and blanks and `//` comments at the start of the text.
    ///
    /// The reference takes leading blanks for a comment; so the help text loses its first newline.
    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let mut kept = rest.trim_start_matches('\t');
            if self.at == 0 || self.text[..self.at].ends_with('\n') {
                kept = match kept.strip_prefix("//") {
                    Some(comment) => comment.find('\n').map_or("", |end| &comment[end + 1..]),
                    None => kept.trim_start(),
                };
            }
            if kept.len() == rest.len() {
                return;
            }
            self.at = self.text.len() - kept.len();
        }
    }

    fn part(&mut self) -> Option<Part<'a>> {
        let start = *self;
        self.skip();
        let parsed = match self.text.as_bytes().get(self.at) {
            Some(b'[') => self.list(),
            Some(b'{') => self.braces(false),
            Some(b'#') => self.symbol().map(Part::Symbol),
            Some(b'"') => {
                self.at += 1;
                let literal = self.run(is_literal);
                self.token('"').map(|()| Part::Literal(literal))
            }
            _ => Some(Part::Literal(self.run(is_literal))),
        };
        if parsed.is_none() {
            *self = start;
        }
        parsed
    }

    fn list(&mut self) -> Option<Part<'a>> {
        self.token('[')?;
        let inner = self.braces(true)?;
        self.token(']')?;
        Some(inner)
    }

    fn braces(&mut self, is_list: bool) -> Option<Part<'a>> {
        self.token('{')?;
        let before = *self;
        let piece = match self.symbol() {
            Some(symbol) => Piece::Symbol(symbol),
            None => {
                *self = before;
                self.skip();
                let expression = self
                    .run(|char| !matches!(char, '|' | '[' | ']' | '{' | '}' | '\n' | '<' | '>'));
                if expression.is_empty() {
                    return None;
                }
                Piece::Expression(expression.trim())
            }
        };
        let after_piece = *self;
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
        let mut query = None;
        if self.text[self.at..].starts_with('|') {
            self.at += 1;
            self.at = self.text.len() - self.text[self.at..].trim_start().len();
            let given =
                self.run(|char| !matches!(char, ';' | '|' | '{' | '}' | '\n' | '[' | ']' | '#'));
            if given.is_empty() {
                *self = after_piece;
            } else {
                query = Some(given);
            }
        } else {
            *self = after_piece;
        }
        self.token('}')?;
        Some(Part::Value { piece, query, is_list })
    }

    fn symbol(&mut self) -> Option<&'a str> {
        self.token('#')?;
        self.skip();
        let tag = self.run(|char| {
            char.is_alphanumeric()
                || char.is_whitespace()
                || matches!(char, '_' | '(' | ')' | '/' | '!' | '<' | '>' | '-' | ',' | '.')
        });
        if tag.is_empty() {
            return None;
        }
        self.token('#')?;
        Some(tag)
    }

    fn token(&mut self, token: char) -> Option<()> {
        self.skip();
        self.text[self.at..].strip_prefix(token)?;
        self.at += token.len_utf8();
        Some(())
    }

    fn run(&mut self, accepts: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.find(|char| !accepts(char)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}

fn is_literal(char: char) -> bool {
    !matches!(char, ';' | '|' | '"' | '<' | '>' | '[' | ']' | '#' | '{' | '}')
}

/// An expression: text and attributes of placeholders joined with `+`, alternatives with `or`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression<'a> {
    /// Text in quotes.
    Literal(&'a str),
    /// An attribute of a placeholder; the name for a bare placeholder.
    Attribute(&'a str, &'a str),
    /// Joined text.
    Join(Vec<Expression<'a>>),
    /// The first that is not empty.
    Either(Vec<Expression<'a>>),
}

impl<'a> Expression<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        let refuse = || {
            Fault::unsupported(
                format!("expression `{text}`"),
                "known are `placeholder`, `placeholder.attribute`, quoted text, `+` and `or`",
            )
        };
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '+' | '.' => 1,
                '\'' | '"' => 2 + rest[1..].find(first).ok_or_else(refuse)?,
                _ => rest
                    .find(|char: char| !char.is_alphanumeric() && char != '_')
                    .unwrap_or(rest.len()),
            };
            if length == 0 || tokens.len() == MAX_TERMS {
                return Err(refuse());
            }
            tokens.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
        let either = tokens
            .split(|&token| token == "or")
            .map(|sum| {
                let terms = sum.split(|&token| token == "+").map(Self::term);
                let mut terms = terms.collect::<Option<Vec<_>>>()?;
                if terms.len() == 1 { terms.pop() } else { Some(Self::Join(terms)) }
            })
            .collect::<Option<Vec<_>>>();
        let mut either = either.ok_or_else(refuse)?;
        match either.len() {
            1 => either.pop().ok_or_else(refuse),
            _ => Ok(Self::Either(either)),
        }
    }

    fn term(tokens: &[&'a str]) -> Option<Self> {
        let is_name =
            |token: &str| token.starts_with(|char: char| char.is_alphabetic() || char == '_');
        match *tokens {
            [name] if is_name(name) => Some(Self::Attribute(name, "name")),
            [name, ".", attribute] if is_name(name) && is_name(attribute) => {
                Some(Self::Attribute(name, attribute))
            }
            [quoted] if quoted.starts_with(['\'', '"']) && !quoted.contains('\\') => {
                Some(Self::Literal(&quoted[1..quoted.len() - 1]))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_parts_of_a_template_are_told_apart() {
        let parts = parse_template("On {r.name}, [{#see(o)# | in(o:object)}].#end#");
        assert_eq!(parts.len(), 6);
        assert_eq!(
            parts[1],
            Part::Value { piece: Piece::Expression("r.name"), query: None, is_list: false }
        );
        assert_eq!(
            parts[3],
            Part::Value {
                piece: Piece::Symbol("see(o)"),
                query: Some("in(o:object)"),
                is_list: true
            }
        );
        assert_eq!(parts[5], Part::Symbol("end"));
    }

    #[test]
    fn text_after_a_stray_brace_is_dropped() {
        assert_eq!(parse_template("a}b"), [Part::Literal("a")]);
    }

    #[test]
    fn a_leading_newline_is_a_comment() {
        assert_eq!(parse_template("\nhelp:\n  x"), [Part::Literal("help:\n  x")]);
    }

    #[test]
    fn expressions_join_and_choose() {
        assert_eq!(
            Expression::parse("o.indefinite + ' ' + o.name").unwrap(),
            Expression::Join(vec![
                Expression::Attribute("o", "indefinite"),
                Expression::Literal(" "),
                Expression::Attribute("o", "name"),
            ])
        );
        assert!(matches!(Expression::parse("r.name or r.id").unwrap(), Expression::Either(_)));
        for text in ["", "o.", "f(x)", "o..n", "'a", "o +", "1 + 2", "o name"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*|[\\[\\]{}#|a-z.'\" \n\t/+]*") {
            let _ = parse_template(&text);
            let _ = Expression::parse(&text);
        }
    }
}
