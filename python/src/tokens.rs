//! The words of an expression.

use num_bigint::BigInt;

use crate::characters::is_printable;
use crate::{Exception, ExceptionKind, Outcome};

/// Bytes of an expression; longer ones are refused unread.
pub const MAX_BYTES: usize = 1 << 20;
/// More brackets than these CPython does not nest either.
const MAX_BRACKETS: usize = 200;

/// Operators, the longer ones first.
const OPERATORS: [&str; 46] = [
    "**=", "//=", ">>=", "<<=", "...", "!=", "<>", "->", ":=", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=", "@=", "**", "//", ">>", "<<", "<=", ">=", "==", "+", "-", "*", "/", "%", "@", "&",
    "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".",
];

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Name(String),
    Int(BigInt),
    Float(f64),
    Imaginary(f64),
    Str(String),
    /// A text of bytes or one that is formatted: neither is carried out.
    Refused(&'static str),
    Operator(&'static str),
    Newline,
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// From 1 on.
    pub(crate) line: usize,
    /// How many brackets are open here.
    pub(crate) level: usize,
}

/// A `SyntaxError` as `eval` words it.
pub(crate) fn syntax_error(words: impl std::fmt::Display, line: usize) -> Exception {
    Exception::new(ExceptionKind::Syntax, format_args!("{words} (<string>, line {line})"))
}

/// A bracket that is open, and the line it stands in.
pub(crate) type OpenBracket = (char, usize);

/// Splits a text into tokens; the bracket that is still open at the end is named beside them.
pub(crate) fn tokenize(text: &str) -> Outcome<(Vec<Token>, Option<OpenBracket>)> {
    if text.len() > MAX_BYTES {
        return Err(Exception::refused(format_args!(
            "the call has {} bytes, {MAX_BYTES} are read",
            text.len()
        )));
    }
    let mut reader = Reader {
        rest: text.trim_start_matches([' ', '\t']),
        line: 1,
        open: Vec::new(),
        tokens: Vec::new(),
    };
    while reader.next()? {}
    let open = reader.open.last().copied();
    if reader.tokens.iter().all(|token| token.kind == TokenKind::Newline) && text.trim().is_empty()
    {
        reader.line = 0;
    }
    reader.push(TokenKind::End);
    Ok((reader.tokens, open))
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
    /// Brackets that are open, with their lines.
    open: Vec<OpenBracket>,
    tokens: Vec<Token>,
}

impl Reader<'_> {
    fn push(&mut self, kind: TokenKind) {
        self.tokens.push(Token { kind, line: self.line, level: self.open.len() });
    }

    fn take(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn fail<T>(&self, words: impl std::fmt::Display) -> Outcome<T> {
        Err(syntax_error(words, self.line))
    }

    /// Reads a token; false at the end.
    fn next(&mut self) -> Outcome<bool> {
        let Some(first) = self.rest.chars().next() else { return Ok(false) };
        match first {
            ' ' | '\t' | '\u{c}' => self.take(1),
            '#' => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end);
            }
            '\n' | '\r' => {
                self.take(if self.rest.starts_with("\r\n") { 2 } else { 1 });
                if self.open.is_empty() {
                    self.push(TokenKind::Newline);
                }
                self.line += 1;
            }
            '\\' => {
                let after = &self.rest[1..];
                let Some(after) = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n'))
                else {
                    return self.fail("unexpected character after line continuation character");
                };
                if after.is_empty() {
                    return self.fail("unexpected EOF while parsing");
                }
                self.rest = &self.rest[self.rest.len() - after.len()..];
                self.line += 1;
            }
            '0'..='9' => self.number()?,
            '.' if self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
            '"' | '\'' => self.string("")?,
            _ if first == '_' || first.is_alphabetic() => self.name()?,
            _ => self.operator(first)?,
        }
        Ok(true)
    }

    fn name(&mut self) -> Outcome<()> {
        let end =
            self.rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        let is_prefix = name.len() <= 2 && name.chars().all(|c| "rRbBfFuU".contains(c));
        if is_prefix && self.rest[end..].starts_with(['"', '\'']) {
            let prefix = name.to_ascii_lowercase();
            self.take(end);
            return self.string(&prefix);
        }
        self.push(TokenKind::Name(name.to_owned()));
        self.take(end);
        Ok(())
    }

    fn number(&mut self) -> Outcome<()> {
        let bytes = self.rest.as_bytes();
        for (mark, radix, name) in
            [(b'x', 16, "hexadecimal"), (b'o', 8, "octal"), (b'b', 2, "binary")]
        {
            if bytes[0] == b'0' && bytes.len() > 1 && bytes[1].to_ascii_lowercase() == mark {
                let end = digits_end(bytes, 2, radix, true);
                let digits = self.rest[2..end].replace('_', "");
                let follows = bytes.get(end).copied().unwrap_or(b' ');
                if digits.is_empty() || bytes[end - 1] == b'_' || is_word(follows) {
                    if follows.is_ascii_digit() && radix < 10 {
                        return self.fail(format_args!(
                            "invalid digit '{}' in {name} literal",
                            char::from(follows)
                        ));
                    }
                    return self.fail(format_args!("invalid {name} literal"));
                }
                let value = BigInt::parse_bytes(digits.as_bytes(), radix).expect("digits are read");
                self.push(TokenKind::Int(value));
                self.take(end);
                return Ok(());
            }
        }
        let whole_end = digits_end(bytes, 0, 10, false);
        let mut end = whole_end;
        let mut is_float = false;
        if bytes.get(end) == Some(&b'.') {
            is_float = true;
            end = digits_end(bytes, end + 1, 10, false);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                is_float = true;
                end = digits_end(bytes, end + 1 + sign, 10, false);
            }
        }
        let digits = self.rest[..end].replace('_', "");
        let follows = bytes.get(end).copied().unwrap_or(b' ');
        if matches!(follows, b'j' | b'J') && !bytes.get(end + 1).copied().is_some_and(is_word) {
            self.push(TokenKind::Imaginary(digits.parse().expect("digits are read")));
            self.take(end + 1);
            return Ok(());
        }
        if is_word(follows) && !self.keyword_follows(end) {
            return self.fail("invalid decimal literal");
        }
        if is_float {
            self.push(TokenKind::Float(digits.parse().expect("digits are read")));
        } else {
            if digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|d| d != b'0') {
                return self.fail(
                    "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers",
                );
            }
            if digits.len() > 4300 {
                return self.fail(format_args!(
                    "Exceeds the limit (4300 digits) for integer string conversion: value has {} digits; use sys.set_int_max_str_digits() to increase the limit - Consider hexadecimal for huge integer literals to avoid decimal conversion limits.",
                    digits.len()
                ));
            }
            self.push(TokenKind::Int(digits.parse().expect("digits are read")));
        }
        self.take(end);
        Ok(())
    }

    /// A word that may stand right behind a number.
    fn keyword_follows(&self, end: usize) -> bool {
        let rest = &self.rest[end..];
        let word_end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        ["and", "else", "for", "if", "in", "is", "or", "not"].contains(&&rest[..word_end])
    }

    fn string(&mut self, prefix: &str) -> Outcome<()> {
        let quote = &self.rest[..1];
        let triple = quote.repeat(3);
        let (mark, is_long) =
            if self.rest.starts_with(&triple) { (&*triple, true) } else { (quote, false) };
        let start_line = self.line;
        let body = &self.rest[mark.len()..];
        let mut at = 0;
        let mut lines = 0;
        loop {
            let Some(character) = body[at..].chars().next() else {
                let last = start_line + lines;
                let kind = if is_long { "unterminated triple-quoted" } else { "unterminated" };
                return self.fail(format_args!("{kind} string literal (detected at line {last})"));
            };
            if body[at..].starts_with(mark) {
                break;
            }
            if character == '\n' || character == '\r' {
                if !is_long {
                    return self.fail(format_args!(
                        "unterminated string literal (detected at line {})",
                        start_line + lines
                    ));
                }
                lines += 1;
            }
            at += character.len_utf8();
            if character == '\\' {
                let escaped = body[at..].chars().next();
                lines += usize::from(escaped == Some('\n'));
                at += escaped.map_or(0, char::len_utf8);
            }
        }
        let (body, consumed) = (&body[..at], at + 2 * mark.len());
        let kind = if prefix.contains('b') {
            TokenKind::Refused("bytes are not read here")
        } else if prefix.contains('f') {
            TokenKind::Refused("formatted texts are not read here")
        } else if prefix.contains('r') {
            TokenKind::Str(body.replace("\r\n", "\n"))
        } else {
            TokenKind::Str(unescape(body).map_err(|words| self.locate(&words))?)
        };
        self.push(kind);
        self.line += lines;
        self.take(consumed);
        Ok(())
    }

    fn locate(&self, words: &Escape) -> Exception {
        match words {
            Escape::Wrong(words) => syntax_error(words, self.line),
            Escape::Refused(words) => Exception::refused(words),
        }
    }

    fn operator(&mut self, first: char) -> Outcome<()> {
        let known = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator)).copied();
        let operator = match known {
            Some(operator) => operator,
            None if self.rest.starts_with('=') => "=",
            None if self.rest.starts_with(';') => ";",
            None if self.rest.starts_with('!') => "!",
            // These have no meaning in Python, and are refused by its grammar.
            None if matches!(first, '$' | '?' | '`') => "?",
            None if is_printable(first) => {
                return self.fail(format_args!(
                    "invalid character '{first}' (U+{:04X})",
                    u32::from(first)
                ));
            }
            None => {
                return self.fail(format_args!(
                    "invalid non-printable character U+{:04X}",
                    u32::from(first)
                ));
            }
        };
        match operator {
            "(" | "[" | "{" => {
                if self.open.len() >= MAX_BRACKETS {
                    return self.fail("too many nested parentheses");
                }
                self.open.push((first, self.line));
            }
            ")" | "]" | "}" => {
                let Some((open, line)) = self.open.pop() else {
                    return self.fail(format_args!("unmatched '{first}'"));
                };
                if !matches!((open, first), ('(', ')') | ('[', ']') | ('{', '}')) {
                    let place =
                        if line == self.line { String::new() } else { format!(" on line {line}") };
                    return self.fail(format_args!(
                        "closing parenthesis '{first}' does not match opening parenthesis '{open}'{place}"
                    ));
                }
            }
            _ => {}
        }
        self.push(TokenKind::Operator(operator));
        self.take(operator.len());
        Ok(())
    }
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Where digits end, of which single underscores may stand between two, and before the first after a prefix.
fn digits_end(bytes: &[u8], start: usize, radix: u32, after_prefix: bool) -> usize {
    let is_digit = |at: usize| bytes.get(at).is_some_and(|b| char::from(*b).is_digit(radix));
    let mut at = start;
    loop {
        let between = at > start || after_prefix;
        if is_digit(at) {
            at += 1;
        } else if between && bytes.get(at) == Some(&b'_') && is_digit(at + 1) {
            at += 2;
        } else {
            return at;
        }
    }
}

pub(crate) enum Escape {
    Wrong(String),
    Refused(&'static str),
}

/// A text with its escapes carried out.
pub(crate) fn unescape(body: &str) -> Result<String, Escape> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find(['\\', '\r']) {
        out.push_str(&rest[..at]);
        if rest[at..].starts_with('\r') {
            // The source of Python has its line ends as single newlines.
            out.push('\n');
            rest = &rest[at + if rest[at..].starts_with("\r\n") { 2 } else { 1 }..];
            continue;
        }
        let start = body.len() - rest.len() + at;
        let escape = &rest[at + 1..];
        let first = escape.chars().next().unwrap_or('\\');
        let mut used = first.len_utf8();
        match first {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(first),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            '0'..='7' => {
                let digits: String =
                    escape.chars().take(3).take_while(|c| ('0'..='7').contains(c)).collect();
                used = digits.len();
                let code = u32::from_str_radix(&digits, 8).expect("the digits are octal");
                out.push(
                    char::from_u32(code).expect("three octal digits are below the surrogates"),
                );
            }
            'x' | 'u' | 'U' => {
                let (width, form) = match first {
                    'x' => (2, "\\xXX"),
                    'u' => (4, "\\uXXXX"),
                    _ => (8, "\\UXXXXXXXX"),
                };
                let digits: String =
                    escape[1..].chars().take(width).take_while(char::is_ascii_hexdigit).collect();
                if digits.len() < width {
                    let end = start + 1 + digits.len();
                    return Err(Escape::Wrong(format!(
                        "(unicode error) 'unicodeescape' codec can't decode bytes in position {start}-{end}: truncated {form} escape"
                    )));
                }
                used = 1 + width;
                let code = u32::from_str_radix(&digits, 16).expect("the digits are hexadecimal");
                if code > 0x10_ffff {
                    let end = start + 1 + width;
                    return Err(Escape::Wrong(format!(
                        "(unicode error) 'unicodeescape' codec can't decode bytes in position {start}-{end}: illegal Unicode character"
                    )));
                }
                out.push(
                    char::from_u32(code).ok_or(Escape::Refused("lone surrogates are not read"))?,
                );
            }
            'N' => return Err(Escape::Refused("characters are not read by their names")),
            _ => {
                out.push('\\');
                out.push(first);
            }
        }
        rest = &escape[used.min(escape.len())..];
    }
    out.push_str(rest);
    Ok(out)
}
