//! Python's literals, as JSON.

use serde_json::{Map, Number, Value};

use crate::marks::skip_space;
use crate::{FormatError, FormatErrorKind};

/// How deep lists and dictionaries may be within each other.
const MAX_DEPTH: usize = 64;

/// Reads strings, numbers, truth values, `None`, lists, tuples and dictionaries.
///
/// Tuples become arrays. Integers beyond 64 bits become floating-point numbers, as in JSON; what
/// has no form in JSON (bytes, sets, complex and infinite numbers, keys that are no strings) is an
/// error, and so are names and calculations.
pub(crate) struct PythonLiterals<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> PythonLiterals<'a> {
    /// Reads from the byte `at` on.
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// The byte where what was not read begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes on behind white space.
    pub(crate) fn skip_space(&mut self) {
        self.at = skip_space(self.text, self.at);
    }

    /// Goes on behind white space and `mark`, if it stands there.
    pub(crate) fn take(&mut self, mark: &str) -> bool {
        let at = skip_space(self.text, self.at);
        let is_there = self.text[at..].starts_with(mark);
        if is_there {
            self.at = at + mark.len();
        }
        is_there
    }

    /// Goes on behind white space and a name, if one stands there.
    pub(crate) fn take_name(&mut self) -> Option<&'a str> {
        let start = skip_space(self.text, self.at);
        let name = name_at(self.text, start)?;
        self.at = start + name.len();
        Some(name)
    }

    /// An error of what stands here.
    pub(crate) fn refuse<T>(&self, message: impl Into<String>) -> Result<T, FormatError> {
        let span = self.at..self.text.len();
        Err(FormatError::new(FormatErrorKind::Literal, span, message))
    }

    /// Reads the value that stands here, behind white space.
    pub(crate) fn value(&mut self) -> Result<Value, FormatError> {
        self.value_at_depth(0)
    }

    fn value_at_depth(&mut self, depth: usize) -> Result<Value, FormatError> {
        if depth > MAX_DEPTH {
            return self.refuse("lists and dictionaries are too deep within each other");
        }
        self.skip_space();
        let Some(first) = self.peek() else { return self.refuse("a value is missing") };
        match first {
            '[' => {
                self.at += 1;
                Ok(Value::Array(self.items("]", depth)?.0))
            }
            '(' => {
                self.at += 1;
                let (mut items, has_comma) = self.items(")", depth)?;
                // Parentheses around one value group it.
                match items.len() {
                    1 if !has_comma => Ok(items.remove(0)),
                    _ => Ok(Value::Array(items)),
                }
            }
            '{' => {
                self.at += 1;
                self.dictionary(depth)
            }
            '\'' | '"' => self.strings(),
            '0'..='9' | '.' | '+' | '-' => self.number(),
            _ => self.word(),
        }
    }

    /// The items up to `close`, and whether a comma stands behind the last one.
    fn items(&mut self, close: &str, depth: usize) -> Result<(Vec<Value>, bool), FormatError> {
        let mut items = Vec::new();
        let mut has_comma = false;
        while !self.take(close) {
            if !items.is_empty() && !has_comma {
                return self.refuse(format!("`,` or `{close}` is missing"));
            }
            items.push(self.value_at_depth(depth + 1)?);
            has_comma = self.take(",");
        }
        Ok((items, has_comma))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, FormatError> {
        let mut map = Map::new();
        let mut may_go_on = true;
        while !self.take("}") {
            if !may_go_on {
                return self.refuse("`,` or `}` is missing");
            }
            let Value::String(key) = self.value_at_depth(depth + 1)? else {
                return self.refuse("the keys of a dictionary have to be strings");
            };
            if !self.take(":") {
                return self.refuse("`:` is missing behind a key");
            }
            map.insert(key, self.value_at_depth(depth + 1)?);
            may_go_on = self.take(",");
        }
        Ok(Value::Object(map))
    }

    fn word(&mut self) -> Result<Value, FormatError> {
        let start = self.at;
        let Some(name) = self.take_name() else { return self.refuse("a value is missing") };
        if matches!(self.peek(), Some('\'' | '"')) {
            self.at = start;
            return self.strings();
        }
        let value = match name {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            _ => {
                self.at = start;
                return self.refuse(format!("`{name}` is no value: values have to be literals"));
            }
        };
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, FormatError> {
        let start = self.at;
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let sign_len = usize::from(self.text[start..].starts_with(['+', '-']));
        let mut end = start + sign_len;
        while let Some(c) = self.text[end..].chars().next() {
            // A sign belongs to the number behind an `e` that is no digit of a hexadecimal one.
            let is_exponent = "+-".contains(c)
                && self.text[start + sign_len..end].ends_with(['e', 'E'])
                && !self.text[start + sign_len..].starts_with("0x");
            if !(is_part(c) || is_exponent) {
                break;
            }
            end += 1;
        }
        let is_negative = self.text[start..].starts_with('-');
        match python_number(&self.text[start + sign_len..end], is_negative) {
            Some(number) => {
                self.at = end;
                Ok(Value::Number(number))
            }
            None => self.refuse("what begins like a number is none that JSON has"),
        }
    }

    /// One string, or several that stand beside each other and are one.
    fn strings(&mut self) -> Result<Value, FormatError> {
        let mut out = String::new();
        loop {
            self.string(&mut out)?;
            let next = skip_space(self.text, self.at);
            let prefix = name_at(self.text, next).unwrap_or_default();
            let is_string =
                prefix.len() <= 2 && self.text[next + prefix.len()..].starts_with(['\'', '"']);
            if !is_string {
                return Ok(Value::String(out));
            }
            self.at = next;
        }
    }

    fn string(&mut self, out: &mut String) -> Result<(), FormatError> {
        let prefix = name_at(self.text, self.at).unwrap_or_default();
        let is_raw = match prefix {
            "" | "u" | "U" => false,
            "r" | "R" => true,
            _ => return self.refuse(format!("`{prefix}` before a string has no form in JSON")),
        };
        let start = self.at + prefix.len();
        let quote = &self.text[start..start + 1];
        let triple = &quote.repeat(3);
        let quote = if self.text[start..].starts_with(triple) { triple } else { quote };
        let mut at = start + quote.len();
        loop {
            let rest = &self.text[at..];
            if rest.starts_with(quote) {
                self.at = at + quote.len();
                return Ok(());
            }
            match rest.chars().next() {
                None => return self.refuse("a string is not closed"),
                Some('\n') if quote.len() == 1 => {
                    return self.refuse("a line ends within a string; write `\\n`");
                }
                Some('\\') if is_raw => {
                    // The character behind it does not close the string, and both are kept.
                    let kept = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    *out += &rest[..kept];
                    at += kept;
                }
                Some('\\') => match escape(rest, out) {
                    Some(len) => at += len,
                    None => return self.refuse("a string has an escape that stands for nothing"),
                },
                Some(c) => {
                    out.push(c);
                    at += c.len_utf8();
                }
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }
}

/// The value that the whole of `text` is.
pub(crate) fn python_value(text: &str) -> Option<Value> {
    let mut literals = PythonLiterals::new(text, 0);
    let value = literals.value().ok()?;
    text[literals.at()..].trim().is_empty().then_some(value)
}

/// `value` as Python writes it.
pub(crate) fn write_python(value: &Value, out: &mut String) {
    match value {
        Value::Null => *out += "None",
        Value::Bool(true) => *out += "True",
        Value::Bool(false) => *out += "False",
        // Numbers are the same, and the escapes of JSON's strings are among Python's.
        Value::Number(_) | Value::String(_) => *out += &value.to_string(),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                *out += if index == 0 { "" } else { ", " };
                write_python(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                *out += if index == 0 { "" } else { ", " };
                *out += &crate::json::to_line(key);
                *out += ": ";
                write_python(value, out);
            }
            out.push('}');
        }
    }
}

/// The name that begins at the byte `at`.
pub(crate) fn name_at(text: &str, at: usize) -> Option<&str> {
    let rest = &text[at..];
    rest.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(())?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// A number without its sign.
fn python_number(text: &str, is_negative: bool) -> Option<Number> {
    // Underscores stand between digits only, which `e` is none of but in hexadecimal numbers.
    let is_divided_well = |text: &str, radix: u32| {
        let parts = text.split('_');
        let is_digit = |c: char| c.is_digit(radix);
        parts.clone().count() == 1
            || parts.clone().all(|part| part.starts_with(is_digit) && part.ends_with(is_digit))
    };
    let signed = |value: f64| if is_negative { -value } else { value };
    let radix = match text.get(..2).unwrap_or_default() {
        "0x" | "0X" => Some(16),
        "0o" | "0O" => Some(8),
        "0b" | "0B" => Some(2),
        _ => None,
    };
    if let Some(radix) = radix {
        let digits = text[2..].strip_prefix('_').unwrap_or(&text[2..]);
        if !is_divided_well(digits, radix) || digits.starts_with(['+', '-']) {
            return None;
        }
        return match i128::from_str_radix(&digits.replace('_', ""), radix) {
            Ok(value) => integer(if is_negative { -value } else { value }),
            Err(_) => None,
        };
    }
    if !is_divided_well(text, 10) {
        return None;
    }
    let digits = text.replace('_', "");
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // `012` is no number in Python, `00` is.
        if digits.starts_with('0') && digits.bytes().any(|byte| byte != b'0') {
            return None;
        }
        return match digits.parse::<i128>() {
            Ok(value) => integer(if is_negative { -value } else { value }),
            Err(_) => Number::from_f64(signed(digits.parse().ok()?)),
        };
    }
    // Rust reads the same floating-point numbers as Python, and `inf` and `nan` beside them.
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    Number::from_f64(signed(digits.parse().ok().filter(|_| is_number)?))
}

fn integer(value: i128) -> Option<Number> {
    if let Ok(value) = i64::try_from(value) {
        return Some(value.into());
    }
    u64::try_from(value).map_or_else(|_| Number::from_f64(value as f64), |value| Some(value.into()))
}

/// Adds what the escape at the beginning of `text` stands for, and says how long it is.
fn escape(text: &str, out: &mut String) -> Option<usize> {
    let code = text[1..].chars().next()?;
    let hexadecimal = |len: usize| {
        let digits = text.get(2..2 + len)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
        Some((c, 2 + len))
    };
    let (c, len) = match code {
        '\n' => return Some(2),
        '\\' | '\'' | '"' => (code, 2),
        'a' => ('\x07', 2),
        'b' => ('\x08', 2),
        'f' => ('\x0c', 2),
        'n' => ('\n', 2),
        'r' => ('\r', 2),
        't' => ('\t', 2),
        'v' => ('\x0b', 2),
        '0'..='7' => {
            let digits = text[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte));
            let len = digits.count();
            (char::from_u32(u32::from_str_radix(&text[1..=len], 8).ok()?)?, 1 + len)
        }
        'x' => hexadecimal(2)?,
        'u' => hexadecimal(4)?,
        'U' => hexadecimal(8)?,
        // Names of characters would need a table of all of them.
        'N' if text[2..].starts_with('{') => return None,
        // Python keeps the backslash of others.
        _ => {
            out.push('\\');
            (code, 1 + code.len_utf8())
        }
    };
    out.push(c);
    Some(len)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn literals_are_read_as_python_reads_them() {
        for (text, value) in [
            ("True", json!(true)),
            (" None ", json!(null)),
            ("-5", json!(-5)),
            ("+1_000", json!(1000)),
            ("0xfe", json!(254)),
            ("-0b11", json!(-3)),
            ("1e3", json!(1000.0)),
            ("1.5E-1", json!(0.15)),
            ("1_0.0_5e0_1", json!(100.5)),
            ("0xe_e", json!(238)),
            (".5", json!(0.5)),
            ("5.", json!(5.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18446744073709551616.0)),
            ("'a' \"b\"\n'''c\n'd'''", json!("abc\n'd")),
            (r#""\x41\u00e9\101\d\n""#, json!("AéA\\d\n")),
            (r"r'\d\''", json!(r"\d\'")),
            ("(1, [2, (3)], ())", json!([1, [2, 3], []])),
            ("(1,)", json!([1])),
            ("{'a': {}, \"b\": [None,],}", json!({ "a": {}, "b": [null] })),
            ("{'a': 1, 'a': 2}", json!({ "a": 2 })),
        ] {
            assert_eq!(python_value(text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_has_no_form_in_json_is_refused() {
        for text in [
            "",
            "x",
            "1 + 1",
            "b'a'",
            "f'a'",
            "{1: 2}",
            "{1}",
            "1e999",
            "inf",
            "1j",
            "012",
            "1__0",
            "1_e5",
            "1e_5",
            "1_.5",
            "1._5",
            "0b1_2",
            "'a",
            "'a\nb'",
            "[1 2]",
            "[,]",
            "(,)",
            "{'a'}",
            "{'a':}",
            r"'\ud800'",
            r"'\x4'",
            "0x",
            "true",
            "--1",
            "f(1)",
            "a.b",
            r"'\N{DASH}'",
            "0x-1",
            "'",
            "\\",
        ] {
            assert_eq!(python_value(text), None, "{text}");
        }
        assert_eq!(python_value(&"[".repeat(100_000)), None);
        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        assert!(python_value(&deep).is_some());
    }

    #[test]
    fn what_is_written_is_read() {
        let value = json!({ "a": [true, null, -1, 0.5, "ä'\"\\\n\u{7f}\u{1}"], "": {} });
        let mut text = String::new();
        write_python(&value, &mut text);
        assert_eq!(python_value(&text), Some(value));
        assert!(text.starts_with(r#"{"a": [True, None, -1, 0.5, "ä'"#), "{text}");
    }
}
