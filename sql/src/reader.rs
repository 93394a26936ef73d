//! SQL in pieces: what stands in a query, without its grammar.

/// A piece of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// As it is written; the texts of all tokens make up the query.
    pub text: &'a str,
}

/// What a piece of a query is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Spaces and line breaks.
    Space,
    /// A comment, `-- ..` or `/* .. */`.
    Comment,
    /// A keyword or a name that is not quoted.
    Word,
    /// A name in double quotes, backticks or brackets; in double quotes it may be text as well.
    Quoted,
    /// Text in single quotes, or bytes as `x'..'`.
    Text,
    /// A number.
    Number,
    /// An operator or a mark, such as `<=` or `;`.
    Mark,
}

impl Token<'_> {
    /// Whether it is neither space nor comment.
    pub fn is_significant(&self) -> bool {
        !matches!(self.kind, TokenKind::Space | TokenKind::Comment)
    }

    /// The name that a word or a quoted name stands for; absent for others.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            TokenKind::Word => Some(self.text.to_owned()),
            TokenKind::Quoted => {
                let open = self.text.chars().next()?;
                let close = if open == '[' { ']' } else { open };
                let inner = &self.text[open.len_utf8()..];
                let inner = inner.strip_suffix(close).unwrap_or(inner);
                let doubled: String = [close, close].iter().collect();
                Some(inner.replace(&doubled, &close.to_string()))
            }
            _ => None,
        }
    }
}

/// The pieces of a query, in linear time; what SQLite would not understand is cut into pieces as well.
pub fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = sql;
    while !rest.is_empty() {
        let (kind, length) = next(rest);
        let (text, behind) = rest.split_at(length);
        found.push(Token { kind, text });
        rest = behind;
    }
    found
}

/// The first statement of a query, with the `;` behind it, and whether anything but comments stands behind that.
pub fn first_statement(sql: &str) -> (&str, bool) {
    let mut end = 0;
    let mut rest = sql;
    while !rest.is_empty() {
        let (kind, length) = next(rest);
        let text = &rest[..length];
        (end, rest) = (end + length, &rest[length..]);
        if kind == TokenKind::Mark && text == ";" {
            break;
        }
    }
    let behind = &sql[end..];
    let mut rest = behind;
    while !rest.is_empty() {
        let (kind, length) = next(rest);
        if !matches!(kind, TokenKind::Space | TokenKind::Comment) {
            return (&sql[..end], true);
        }
        rest = &rest[length..];
    }
    (&sql[..end], false)
}

/// What a text that is not empty begins with, and its bytes: at least one, up to the end of a character.
fn next(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let first = text.chars().next().unwrap_or(' ');
    let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let run = |is_in: &dyn Fn(u8) -> bool| {
        bytes.iter().position(|byte| !is_in(*byte)).unwrap_or(bytes.len())
    };
    match first {
        _ if is_space(bytes[0]) => (TokenKind::Space, run(&is_space)),
        '-' if text.starts_with("--") => {
            (TokenKind::Comment, text.find('\n').map_or(text.len(), |end| end + 1))
        }
        '/' if text.starts_with("/*") => {
            (TokenKind::Comment, text[2..].find("*/").map_or(text.len(), |end| end + 4))
        }
        '\'' => (TokenKind::Text, quoted(text, '\'')),
        '"' | '`' => (TokenKind::Quoted, quoted(text, first)),
        // What is never closed ends with the query, as for SQLite.
        '[' => (TokenKind::Quoted, text.find(']').map_or(text.len(), |end| end + 1)),
        'x' | 'X' if bytes.get(1) == Some(&b'\'') => {
            (TokenKind::Text, 1 + quoted(&text[1..], '\''))
        }
        '0'..='9' => (TokenKind::Number, number(bytes)),
        '.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => (TokenKind::Number, number(bytes)),
        _ if first.is_ascii_alphabetic() || first == '_' || !first.is_ascii() => {
            // As SQLite reads names: every character beyond ASCII is one of a name.
            let is_in =
                |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte) || byte >= 0x80;
            (TokenKind::Word, run(&is_in))
        }
        _ => {
            const DOUBLE: &[&str] = &["||", "<=", ">=", "<>", "!=", "==", "<<", ">>", "->"];
            let long = text.starts_with("->>");
            let double = DOUBLE.iter().any(|mark| text.starts_with(mark));
            (
                TokenKind::Mark,
                if long {
                    3
                } else if double {
                    2
                } else {
                    1
                },
            )
        }
    }
}

/// The bytes of what stands in quotes, with these; a doubled quote is one of the text. What is never closed ends with
/// the query.
fn quoted(text: &str, quote: char) -> usize {
    let bytes = text.as_bytes();
    let quote = quote as u8;
    let mut place = 1;
    while place < bytes.len() {
        if bytes[place] == quote {
            if bytes.get(place + 1) != Some(&quote) {
                return place + 1;
            }
            place += 1;
        }
        place += 1;
    }
    bytes.len()
}

/// The bytes of a number.
fn number(bytes: &[u8]) -> usize {
    let digits = |from: usize, is_in: fn(&u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| is_in(byte)).count()
    };
    if bytes[0] == b'0' && bytes.get(1).is_some_and(|byte| b"xX".contains(byte)) {
        return digits(2, u8::is_ascii_hexdigit);
    }
    let mut end = digits(0, u8::is_ascii_digit);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1, u8::is_ascii_digit);
    }
    if bytes.get(end).is_some_and(|byte| b"eE".contains(byte)) {
        let sign = usize::from(bytes.get(end + 1).is_some_and(|byte| b"+-".contains(byte)));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign, u8::is_ascii_digit);
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_query_is_cut_into_what_stands_in_it() {
        let sql = "SELECT \"a b\", t.x'ff' -- no\n FROM[t] WHERE x>=.5e-3/* ; */AND y='it''s';";
        let texts: Vec<&str> =
            tokens(sql).into_iter().filter(Token::is_significant).map(|it| it.text).collect();
        assert_eq!(
            texts,
            [
                "SELECT", "\"a b\"", ",", "t", ".", "x'ff'", "FROM", "[t]", "WHERE", "x", ">=",
                ".5e-3", "AND", "y", "=", "'it''s'", ";"
            ]
        );
        let name = |text| tokens(text)[0].name();
        assert_eq!(name("\"a \"\"b\"").as_deref(), Some("a \"b"));
        assert_eq!((name("[a b]").as_deref(), name("`c`").as_deref()), (Some("a b"), Some("c")));
        assert_eq!(name("'a'"), None);
    }

    #[test]
    fn the_first_statement_ends_behind_its_semicolon() {
        assert_eq!(first_statement("SELECT ';' ; -- two\n"), ("SELECT ';' ;", false));
        assert_eq!(first_statement("SELECT 1; SELECT 2"), ("SELECT 1;", true));
        assert_eq!(first_statement("SELECT 1;;"), ("SELECT 1;", true));
        assert_eq!(first_statement("  -- nothing"), ("  -- nothing", false));
    }

    #[test]
    fn what_is_never_closed_ends_with_the_query() {
        // Were a bracket looked for anew behind each of them, this would go over a million million bytes.
        let sql = format!("SELECT 1 {}", "[a ; ".repeat(1_000_000));
        let kinds: Vec<_> = tokens(&sql).into_iter().map(|token| token.kind).collect();
        let (space, word, number) = (TokenKind::Space, TokenKind::Word, TokenKind::Number);
        assert_eq!(kinds, [word, space, number, space, TokenKind::Quoted]);
        assert_eq!(first_statement(&sql), (&*sql, false));
        assert_eq!(tokens("[a").pop().unwrap().name().as_deref(), Some("a"));
    }

    proptest! {
        #[test]
        fn any_text_is_made_up_of_its_tokens(text in "\\PC{0,60}|[-'\"`\\[\\]/*;.xe0-9 \n]{0,40}") {
            let found = tokens(&text);
            prop_assert!(found.iter().all(|token| !token.text.is_empty()));
            let joined: String = found.iter().map(|token| token.text).collect();
            prop_assert_eq!(joined, text.as_str());
            let (first, _) = first_statement(&text);
            prop_assert!(text.starts_with(first));
        }
    }
}
