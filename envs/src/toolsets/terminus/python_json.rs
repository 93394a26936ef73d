//! JSON as Python 3.12's `json.loads` reads it, with its errors: what an answer is told of is worded so.

use serde_json::{Map, Number, Value};

/// Objects and lists inside each other.
const MAX_DEPTH: usize = 200;

/// Reads a text.
///
/// # Errors
///
/// What `str(json.JSONDecodeError)` is there.
pub(super) fn loads(text: &str) -> Result<Value, String> {
    let mut reader = Reader { chars: text.chars().collect(), depth: 0 };
    let start = reader.blank(0);
    let (value, end) = reader.value(start).map_err(|error| error.told(&reader.chars))?;
    let end = reader.blank(end);
    match end == reader.chars.len() {
        true => Ok(value),
        false => Err(Wrong { what: "Extra data", at: end }.told(&reader.chars)),
    }
}

struct Reader {
    chars: Vec<char>,
    depth: usize,
}

/// A value, and the first place behind it.
type Found = Result<(Value, usize), Wrong>;

/// What is wrong, and at which character.
struct Wrong {
    what: &'static str,
    at: usize,
}

impl Wrong {
    fn told(&self, chars: &[char]) -> String {
        let Self { what, at } = self;
        let before = &chars[..(*at).min(chars.len())];
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|c| **c != '\n').count()
            + 1
            + at.saturating_sub(chars.len());
        format!("{what}: line {line} column {column} (char {at})")
    }
}

fn wrong<T>(what: &'static str, at: usize) -> Result<T, Wrong> {
    Err(Wrong { what, at })
}

impl Reader {
    fn at(&self, place: usize) -> Option<char> {
        self.chars.get(place).copied()
    }

    /// The first character from there on that is not blank.
    fn blank(&self, mut place: usize) -> usize {
        while matches!(self.at(place), Some(' ' | '\t' | '\n' | '\r')) {
            place += 1;
        }
        place
    }

    fn word(&self, place: usize, word: &str) -> bool {
        let letters = word.chars().enumerate();
        letters.into_iter().all(|(offset, c)| self.at(place + offset) == Some(c))
    }

    fn value(&mut self, place: usize) -> Found {
        match self.at(place) {
            Some('"') => {
                let (text, end) = self.string(place + 1)?;
                Ok((Value::String(text), end))
            }
            Some('{') => self.deeper(place, Self::object),
            Some('[') => self.deeper(place, Self::array),
            Some('n') if self.word(place, "null") => Ok((Value::Null, place + 4)),
            Some('t') if self.word(place, "true") => Ok((Value::Bool(true), place + 4)),
            Some('f') if self.word(place, "false") => Ok((Value::Bool(false), place + 5)),
            // JSON here has no such numbers; what they stand for is not used as one.
            Some('N') if self.word(place, "NaN") => Ok((Value::Null, place + 3)),
            Some('I') if self.word(place, "Infinity") => Ok((Value::Null, place + 8)),
            Some('-') if self.word(place, "-Infinity") => Ok((Value::Null, place + 9)),
            Some('-' | '0'..='9') => self.number(place),
            _ => wrong("Expecting value", place),
        }
    }

    fn deeper(&mut self, place: usize, read: fn(&mut Self, usize) -> Found) -> Found {
        if self.depth == MAX_DEPTH {
            // Python ends with a `RecursionError`.
            return wrong("Too much nesting", place);
        }
        self.depth += 1;
        let read = read(self, place + 1);
        self.depth -= 1;
        read
    }

    fn object(&mut self, place: usize) -> Found {
        const NAME: &str = "Expecting property name enclosed in double quotes";
        let mut object = Map::new();
        let mut place = self.blank(place);
        if self.at(place) == Some('}') {
            return Ok((Value::Object(object), place + 1));
        }
        loop {
            if self.at(place) != Some('"') {
                return wrong(NAME, place);
            }
            let (name, end) = self.string(place + 1)?;
            place = self.blank(end);
            if self.at(place) != Some(':') {
                return wrong("Expecting ':' delimiter", place);
            }
            let start = self.blank(place + 1);
            let (value, end) = self.value(start)?;
            object.insert(name, value);
            place = self.blank(end);
            match self.at(place) {
                Some('}') => return Ok((Value::Object(object), place + 1)),
                Some(',') => place = self.blank(place + 1),
                _ => return wrong("Expecting ',' delimiter", place),
            }
        }
    }

    fn array(&mut self, place: usize) -> Found {
        let mut array = Vec::new();
        let mut place = self.blank(place);
        if self.at(place) == Some(']') {
            return Ok((Value::Array(array), place + 1));
        }
        loop {
            let (value, end) = self.value(place)?;
            array.push(value);
            place = self.blank(end);
            match self.at(place) {
                Some(']') => return Ok((Value::Array(array), place + 1)),
                Some(',') => place = self.blank(place + 1),
                _ => return wrong("Expecting ',' delimiter", place),
            }
        }
    }

    fn number(&self, start: usize) -> Found {
        let digits = |mut place: usize| {
            while self.at(place).is_some_and(|c| c.is_ascii_digit()) {
                place += 1;
            }
            place
        };
        let first = start + usize::from(self.at(start) == Some('-'));
        let mut end = match self.at(first) {
            Some('0') => first + 1,
            Some('1'..='9') => digits(first),
            _ => return wrong("Expecting value", start),
        };
        if self.at(end) == Some('.') && digits(end + 1) > end + 1 {
            end = digits(end + 1);
        }
        if matches!(self.at(end), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.at(end + 1), Some('+' | '-')));
            let behind = digits(end + 1 + sign);
            if behind > end + 1 + sign {
                end = behind;
            }
        }
        let text: String = self.chars[start..end].iter().collect();
        let number = text.parse::<Number>().map_or(Value::Null, Value::Number);
        Ok((number, end))
    }

    /// The string whose opening quote stands before `place`.
    fn string(&self, place: usize) -> Result<(String, usize), Wrong> {
        let (begin, mut place) = (place - 1, place);
        let mut text = String::new();
        loop {
            let Some(c) = self.at(place) else {
                return wrong("Unterminated string starting at", begin);
            };
            match c {
                '"' => return Ok((text, place + 1)),
                '\\' => {
                    let Some(escaped) = self.at(place + 1) else {
                        return wrong("Unterminated string starting at", begin);
                    };
                    let (read, end) = self.escape(place, escaped)?;
                    text.push(read);
                    place = end;
                }
                c if u32::from(c) < 0x20 => return wrong("Invalid control character at", place),
                c => {
                    text.push(c);
                    place += 1;
                }
            }
        }
    }

    /// The escape sequence whose backslash stands at `place`.
    fn escape(&self, place: usize, escaped: char) -> Result<(char, usize), Wrong> {
        let read = match escaped {
            '"' | '\\' | '/' => escaped,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let Some(first) = self.hex(place + 2) else {
                    return wrong("Invalid \\uXXXX escape", place + 1);
                };
                let second = (self.word(place + 6, "\\u")).then(|| self.hex(place + 8)).flatten();
                if let (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) = (first, second) {
                    let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                    return Ok((char::from_u32(code).unwrap_or('\u{fffd}'), place + 12));
                }
                // Half a pair is no character here.
                return Ok((char::from_u32(first).unwrap_or('\u{fffd}'), place + 6));
            }
            _ => return wrong("Invalid \\escape", place),
        };
        Ok((read, place + 2))
    }

    fn hex(&self, place: usize) -> Option<u32> {
        let digits = self.chars.get(place..place + 4)?;
        digits.iter().try_fold(0, |code, c| Some(code * 16 + c.to_digit(16)?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_json_is_read() {
        let text = r#" {"a": [1, -2.5e1, true, null, "x\n\u00e4\ud83d\ude00"], "b": {}, "a": 3} "#;
        assert_eq!(loads(text).unwrap(), json!({ "a": 3, "b": {} }));
        assert_eq!(loads("[\"\\u00e4\\ud83d\\ude00\", 1.50]").unwrap(), json!(["ä😀", 1.5]));
    }

    /// As Python 3.12 tells them.
    #[test]
    fn errors_are_those_of_python() {
        for (text, told) in [
            ("", "Expecting value: line 1 column 1 (char 0)"),
            (
                "{\"a\": 1,}",
                "Expecting property name enclosed in double quotes: line 1 column 9 (char 8)",
            ),
            ("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"),
            ("{\"a\": 1 \"b\": 2}", "Expecting ',' delimiter: line 1 column 9 (char 8)"),
            ("[1,]", "Expecting value: line 1 column 4 (char 3)"),
            ("{\"a\": \"x\n\"}", "Invalid control character at: line 1 column 9 (char 8)"),
            ("{\n\"a\": \"x", "Unterminated string starting at: line 2 column 6 (char 7)"),
            ("{\"a\": \"\\q\"}", "Invalid \\escape: line 1 column 8 (char 7)"),
            ("[\"\\u12\"]", "Invalid \\uXXXX escape: line 1 column 4 (char 3)"),
            ("{} x", "Extra data: line 1 column 4 (char 3)"),
            ("{\"a\": tru}", "Expecting value: line 1 column 7 (char 6)"),
        ] {
            assert_eq!(loads(text).unwrap_err(), told, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(loads(&deep).unwrap_err().contains("nesting"));
    }
}
