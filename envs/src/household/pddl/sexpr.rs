//! Parenthesised expressions, the outer form of both planning files.

use crate::household::error::Fault;

/// Nesting beyond this is refused; real files stay below 12.
const MAX_DEPTH: usize = 64;

/// A parsed text: all words and lists in the order in which they start.
#[derive(Debug)]
pub(crate) struct Tape<'a> {
    text: &'a str,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// First byte.
    start: u32,
    /// For a word the byte behind it.
    end: u32,
    /// For a list the number of the entry behind its last one; 0 for a word.
    next: u32,
}

/// One expression of a tape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sexpr<'t, 'a> {
    tape: &'t Tape<'a>,
    index: usize,
}

/// Expressions that follow each other in a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Items<'t, 'a> {
    tape: &'t Tape<'a>,
    next: usize,
    end: usize,
}

impl<'a> Tape<'a> {
    /// Parses the single expression that `text` holds. Comments run from `;` to the end of line.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        let bytes = text.as_bytes();
        if u32::try_from(bytes.len()).is_err() {
            return Err(Fault::syntax(text, 0, "the text is longer than 4 GiB"));
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(bytes.len() / 24);
        let mut open: Vec<usize> = Vec::with_capacity(16);
        let mut at = 0;
        loop {
            at = skip_blank(bytes, at);
            let is_done = open.is_empty() && !entries.is_empty();
            let start = at as u32;
            match bytes.get(at) {
                None => {
                    return match (is_done, open.last()) {
                        (true, _) => Ok(Self { text, entries }),
                        (false, None) => {
                            Err(Fault::syntax(text, at, "expected an expression, found the end"))
                        }
                        (false, Some(&list)) => Err(Fault::syntax(
                            text,
                            entries[list].start as usize,
                            "the list that starts here is never closed, the text seems cut off",
                        )),
                    };
                }
                Some(_) if is_done => {
                    return Err(Fault::syntax(text, at, "expected the end, found more text"));
                }
                Some(b'(') => {
                    if open.len() == MAX_DEPTH {
                        let reason = format!("nesting beyond {MAX_DEPTH} levels");
                        return Err(Fault::syntax(text, at, reason));
                    }
                    open.push(entries.len());
                    entries.push(Entry { start, end: start, next: 0 });
                    at += 1;
                }
                Some(b')') => {
                    let Some(list) = open.pop() else {
                        return Err(Fault::syntax(text, at, "expected an expression, found `)`"));
                    };
                    entries[list].next = entries.len() as u32;
                    at += 1;
                }
                Some(_) => {
                    let length = word_length(&bytes[at..]);
                    // A control character is no blank and no part of a word either.
                    if length == 0 {
                        return Err(Fault::syntax(text, at, "found a control character"));
                    }
                    at += length;
                    entries.push(Entry { start, end: at as u32, next: 0 });
                }
            }
        }
    }

    /// The expression itself.
    pub(crate) fn root(&self) -> Sexpr<'_, 'a> {
        Sexpr { tape: self, index: 0 }
    }
}

fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if byte == b';' {
            at += bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len() - at);
        } else {
            break;
        }
    }
    at
}

/// Number of bytes up to the next blank, parenthesis, comment or control character.
///
/// Ids are long and most of a problem file, so eight bytes are looked at together.
fn word_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let is_end = |byte: u8| byte <= b' ' || matches!(byte, b'(' | b')' | b';');
    let mut length = 0;
    let (chunks, _) = bytes.as_chunks::<8>();
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        // Marks bytes below `)` + 1, and zero bytes after taking `;` away.
        let low = word.wrapping_sub(ONES * u64::from(b')' + 1)) & !word;
        let semicolon = word ^ (ONES * u64::from(b';'));
        let no_semicolon = semicolon.wrapping_sub(ONES) & !semicolon;
        if (low | no_semicolon) & (ONES * 128) != 0
            && let Some(end) = chunk.iter().position(|&byte| is_end(byte))
        {
            return length + end;
        }
        length += 8;
    }
    length + bytes[length..].iter().position(|&byte| is_end(byte)).unwrap_or(bytes.len() - length)
}

impl<'t, 'a> Sexpr<'t, 'a> {
    /// A fault of form where this expression starts.
    pub(crate) fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::syntax(self.tape.text, self.entry().start as usize, reason)
    }

    /// The word, or a fault that says `what` was expected.
    pub(crate) fn word(&self, what: &str) -> Result<&'a str, Fault> {
        let Entry { start, end, next } = self.entry();
        if next != 0 {
            return Err(self.fault(format!("expected {what}, found a list")));
        }
        Ok(&self.tape.text[start as usize..end as usize])
    }

    /// The list, or a fault that says `what` was expected.
    pub(crate) fn list(&self, what: &str) -> Result<Items<'t, 'a>, Fault> {
        let Entry { start, end, next } = self.entry();
        if next == 0 {
            let word = &self.tape.text[start as usize..end as usize];
            return Err(self.fault(format!("expected {what}, found `{word}`")));
        }
        Ok(Items { tape: self.tape, next: self.index + 1, end: next as usize })
    }

    /// The first word of a list and what follows it.
    pub(crate) fn headed(&self, what: &str) -> Result<(&'a str, Items<'t, 'a>), Fault> {
        let mut items = self.list(what)?;
        match items.next() {
            Some(head) => Ok((head.word(what)?, items)),
            None => Err(self.fault(format!("expected {what}, found `()`"))),
        }
    }

    /// Whether this is a list, and not a word.
    pub(crate) fn is_list(&self) -> bool {
        self.entry().next != 0
    }

    /// Whether this is `()`.
    pub(crate) fn is_empty_list(&self) -> bool {
        self.entry().next as usize == self.index + 1
    }

    fn entry(&self) -> Entry {
        self.tape.entries[self.index]
    }
}

impl<'t, 'a> Items<'t, 'a> {
    /// The only item, if there is exactly one.
    pub(crate) fn single(mut self) -> Option<Sexpr<'t, 'a>> {
        let item = self.next()?;
        self.next().is_none().then_some(item)
    }

    /// Both items, if there are exactly two.
    pub(crate) fn pair(mut self) -> Option<(Sexpr<'t, 'a>, Sexpr<'t, 'a>)> {
        let pair = (self.next()?, self.next()?);
        self.next().is_none().then_some(pair)
    }

    /// At least as many as there are items.
    pub(crate) fn num_at_most(&self) -> usize {
        self.end - self.next
    }
}

impl<'t, 'a> Iterator for Items<'t, 'a> {
    type Item = Sexpr<'t, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        let behind = self.tape.entries[index].next as usize;
        self.next = if behind == 0 { index + 1 } else { behind };
        Some(Sexpr { tape: self.tape, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_and_blanks_are_skipped() {
        let tape = Tape::parse(" ( a ;; (b\n (c d) e) ; end").unwrap();
        let (head, rest) = tape.root().headed("a list").unwrap();
        let rest: Vec<bool> = rest.map(|item| item.is_list()).collect();
        assert_eq!((head, rest), ("a", vec![true, false]));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "(", ")", "(a))", "(a) b", "(a (b)", "(\u{1})", &"(".repeat(100_000)] {
            assert!(matches!(Tape::parse(text), Err(Fault::Syntax { line: 1, .. })), "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*|[()a-z; \n]*") {
            let _ = Tape::parse(&text);
        }
    }
}
