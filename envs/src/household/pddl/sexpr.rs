//! Parenthesised expressions, the outer form of both planning files.

use crate::household::error::Fault;

/// Nesting beyond this is refused; real files stay below 12.
const MAX_DEPTH: usize = 64;

/// One expression with the byte offset at which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sexpr<'a> {
    /// A word.
    Word(&'a str, usize),
    /// A parenthesised list.
    List(Vec<Sexpr<'a>>, usize),
}

impl<'a> Sexpr<'a> {
    /// Parses the single expression that `text` holds. Comments run from `;` to the end of line.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        let mut parser = Parser { text, at: 0 };
        parser.skip_blank();
        let expression = parser.expression(0)?;
        parser.skip_blank();
        if parser.at < text.len() {
            return Err(Fault::syntax(text, parser.at, "expected the end, found more text"));
        }
        Ok(expression)
    }

    /// Byte offset of the first character.
    pub(crate) fn offset(&self) -> usize {
        match self {
            Self::Word(_, offset) | Self::List(_, offset) => *offset,
        }
    }

    /// The word, or a fault that says `what` was expected.
    pub(crate) fn word(&self, text: &str, what: &str) -> Result<&'a str, Fault> {
        match self {
            Self::Word(word, _) => Ok(word),
            Self::List(_, offset) => {
                Err(Fault::syntax(text, *offset, format!("expected {what}, found a list")))
            }
        }
    }

    /// The list, or a fault that says `what` was expected.
    pub(crate) fn list(&self, text: &str, what: &str) -> Result<&[Sexpr<'a>], Fault> {
        match self {
            Self::List(items, _) => Ok(items),
            Self::Word(word, offset) => {
                Err(Fault::syntax(text, *offset, format!("expected {what}, found `{word}`")))
            }
        }
    }

    /// The first word of a list and what follows it.
    pub(crate) fn headed(&self, text: &str, what: &str) -> Result<(&'a str, &[Sexpr<'a>]), Fault> {
        match self.list(text, what)? {
            [head, rest @ ..] => Ok((head.word(text, what)?, rest)),
            [] => Err(Fault::syntax(text, self.offset(), format!("expected {what}, found `()`"))),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn skip_blank(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if byte == b';' {
                while bytes.get(self.at).is_some_and(|&byte| byte != b'\n') {
                    self.at += 1;
                }
            } else {
                return;
            }
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Sexpr<'a>, Fault> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        match bytes.get(start) {
            None => Err(Fault::syntax(self.text, start, "expected an expression, found the end")),
            Some(b')') => Err(Fault::syntax(self.text, start, "expected an expression, found `)`")),
            Some(b'(') if depth == MAX_DEPTH => {
                Err(Fault::syntax(self.text, start, format!("nesting beyond {MAX_DEPTH} levels")))
            }
            Some(b'(') => {
                self.at += 1;
                let mut items = Vec::with_capacity(4);
                loop {
                    self.skip_blank();
                    match bytes.get(self.at) {
                        None => {
                            return Err(Fault::syntax(
                                self.text,
                                start,
                                "the list that starts here is never closed, the text seems cut off",
                            ));
                        }
                        Some(b')') => {
                            self.at += 1;
                            return Ok(Sexpr::List(items, start));
                        }
                        Some(_) => items.push(self.expression(depth + 1)?),
                    }
                }
            }
            Some(_) => {
                let length = bytes[start..]
                    .iter()
                    .position(|byte| {
                        matches!(byte, b'(' | b')' | b';') || byte.is_ascii_whitespace()
                    })
                    .unwrap_or(bytes.len() - start);
                self.at = start + length;
                Ok(Sexpr::Word(&self.text[start..self.at], start))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_and_blanks_are_skipped() {
        let parsed = Sexpr::parse(" ( a ;; (b\n c) ; end").unwrap();
        let Sexpr::List(items, 1) = parsed else { panic!("expected a list at 1") };
        assert_eq!(items, [Sexpr::Word("a", 3), Sexpr::Word("c", 12)]);
    }

    #[test]
    fn deep_nesting_is_refused_instead_of_overflowing() {
        let deep = "(".repeat(100_000);
        assert!(matches!(Sexpr::parse(&deep), Err(Fault::Syntax { line: 1, .. })));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*|[()a-z; \n]*") {
            let _ = Sexpr::parse(&text);
        }
    }
}
