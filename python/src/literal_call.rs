//! Calls of the usual form, read in one go.

use smol_str::SmolStr;

use crate::tokens::unescape;
use crate::{Dict, Signature, Value};

/// Longer texts are left to [`eval`](crate::eval).
const MAX_BYTES: usize = 1 << 16;
/// As are lists and dictionaries that nest more deeply.
const MAX_DEPTH: usize = 16;
/// And methods of more parameters.
const MAX_PARAMETERS: usize = 8;

/// A call of the usual form: `name(...)` with arguments that are literals, which most calls of models are.
///
/// It is a short way, not another language: what it reads, [`eval`](crate::eval) evaluates to the same values, and
/// whatever it does not read, errors among it, is left to `eval`. Read are texts in single or double quotes, numbers in
/// decimal digits, `True`, `False` and `None`, and lists and dictionaries of these with texts as keys.
///
/// ```
/// use spar_python::{LiteralCall, Parameter, Signature, repr};
///
/// let parameters = &[Parameter { name: "a", default: None }, Parameter { name: "b", default: None }];
/// let signature = Signature { name: "C.f", parameters };
/// let call = LiteralCall::new("f(1, b=['x', 2.5])").unwrap();
/// assert_eq!(call.name(), "f");
/// let bound = call.bind(&signature).unwrap();
/// assert_eq!(repr(&bound.values()[1]).unwrap(), "['x', 2.5]");
/// assert!(LiteralCall::new("f(1, b=1 + 1)").unwrap().bind(&signature).is_none());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LiteralCall<'t> {
    name: &'t str,
    /// What stands behind the bracket that opens.
    rest: &'t str,
}

/// Arguments at their parameters.
#[derive(Debug)]
pub struct BoundArguments {
    values: [Value; MAX_PARAMETERS],
    num_parameters: usize,
    /// A bit for each that was given; the others are defaults.
    given: u8,
}

impl<'t> LiteralCall<'t> {
    /// A text that begins as such a call does: a name of ASCII and a bracket.
    pub fn new(text: &'t str) -> Option<Self> {
        let end = text.bytes().position(|byte| !is_word(byte))?;
        let starts_well = !text.as_bytes()[0].is_ascii_digit();
        if end == 0 || !starts_well || text.as_bytes()[end] != b'(' || text.len() > MAX_BYTES {
            return None;
        }
        Some(Self { name: &text[..end], rest: &text[end + 1..] })
    }

    /// The name of what is called.
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// Reads the arguments, and puts them to the parameters of a method. None where the call is of another form, and
    /// where [`Signature::bind`] would raise.
    pub fn bind(&self, signature: &Signature) -> Option<BoundArguments> {
        let parameters = signature.parameters;
        if parameters.len() > MAX_PARAMETERS {
            return None;
        }
        let mut bound = BoundArguments {
            values: [const { Value::None }; MAX_PARAMETERS],
            num_parameters: parameters.len(),
            given: 0,
        };
        let mut reader = Reader { text: self.rest, at: 0 };
        let mut num_positional = 0;
        let mut is_by_name = false;
        reader.skip_blanks();
        while !reader.take(b')') {
            let word = reader.word();
            let is_named = !word.is_empty() && reader.take_equals();
            let place = match is_named {
                true => parameters.iter().position(|known| known.name == word)?,
                false if is_by_name => return None,
                false => num_positional,
            };
            num_positional += usize::from(!is_named);
            is_by_name |= is_named;
            if place >= parameters.len() || bound.is_given(place) {
                return None;
            }
            bound.values[place] = match is_named || word.is_empty() {
                true => reader.value(0)?,
                false => constant(word)?,
            };
            bound.given |= 1 << place;
            reader.skip_blanks();
            if reader.take(b',') {
                reader.skip_blanks();
            } else if reader.peek() != Some(b')') {
                return None;
            }
        }
        if reader.at != self.rest.len() {
            return None;
        }
        for (place, parameter) in parameters.iter().enumerate() {
            if !bound.is_given(place) {
                bound.values[place] = parameter.default?.value();
            }
        }
        Some(bound)
    }
}

impl BoundArguments {
    /// One value for each parameter, in their order.
    pub fn values(&self) -> &[Value] {
        &self.values[..self.num_parameters]
    }

    /// Those that were given.
    pub fn given(&self) -> impl Iterator<Item = &Value> {
        self.values
            .iter()
            .enumerate()
            .filter(|(place, _)| self.is_given(*place))
            .map(|(_, value)| value)
    }

    fn is_given(&self, place: usize) -> bool {
        self.given & (1 << place) != 0
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_blanks(&mut self) {
        while self.take(b' ') {}
    }

    /// The name that stands here, or nothing.
    fn word(&mut self) -> &'t str {
        let start = self.at;
        if self.peek().is_some_and(|byte| !byte.is_ascii_digit()) {
            self.skip_while(is_word);
        }
        &self.text[start..self.at]
    }

    fn skip_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
    }

    /// Takes an `=` and the blanks around it.
    fn take_equals(&mut self) -> bool {
        self.skip_blanks();
        let is_next = self.take(b'=');
        self.skip_blanks();
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.peek()? {
            quote @ (b'\'' | b'"') => self.string(quote).map(Value::Str),
            b'0'..=b'9' | b'-' => self.number(),
            b'[' => self.list(depth),
            b'{' => self.dict(depth),
            _ => constant(self.word()),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.open(depth)?;
        while !self.take(b']') {
            items.push(self.value(depth + 1)?);
            self.close_or_go_on(b']')?;
        }
        Some(Value::list(items))
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        let mut entries = Dict::default();
        self.open(depth)?;
        while !self.take(b'}') {
            let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'))?;
            let key = self.string(quote)?;
            self.skip_blanks();
            if !self.take(b':') {
                return None;
            }
            self.skip_blanks();
            entries.insert_str(key, self.value(depth + 1)?);
            self.close_or_go_on(b'}')?;
        }
        Some(Value::Dict(entries.into()))
    }

    fn open(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.skip_blanks();
        (depth < MAX_DEPTH).then_some(())
    }

    /// Behind an element: a comma, or the bracket that closes.
    fn close_or_go_on(&mut self, bracket: u8) -> Option<()> {
        self.skip_blanks();
        if self.take(b',') {
            self.skip_blanks();
            return Some(());
        }
        (self.peek() == Some(bracket)).then_some(())
    }

    /// Digits, with a point and more digits or without, and a sign or none.
    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        let is_negative = self.take(b'-');
        let whole = self.at;
        self.skip_while(|byte| byte.is_ascii_digit());
        let digits = &self.text[whole..self.at];
        let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
        if digits.is_empty() || has_leading_zero {
            return None;
        }
        let value = if self.take(b'.') {
            self.skip_while(|byte| byte.is_ascii_digit());
            Value::Float(self.text[start..self.at].parse().ok()?)
        } else {
            let number: i64 = digits.parse().ok()?;
            Value::from(if is_negative { -number } else { number })
        };
        // A word that follows may belong to the number: `1e5`, `1j`, `1_000`.
        self.peek().is_none_or(|byte| !is_word(byte) && byte < 0x80).then_some(value)
    }

    /// A text within one line. None also where a bracket stands in it behind a word, since such a text may be rewritten
    /// by who evaluates calls.
    fn string(&mut self, quote: u8) -> Option<SmolStr> {
        let body = &self.text[self.at + 1..];
        let mut has_escapes = false;
        let mut end = 0;
        loop {
            match *body.as_bytes().get(end)? {
                byte if byte == quote => break,
                b'\\' => {
                    has_escapes = true;
                    end += 1;
                    if matches!(body.as_bytes().get(end), None | Some(b'\r' | b'\n' | b'(')) {
                        return None;
                    }
                }
                b'\n' | b'\r' => return None,
                b'(' if is_behind_word(&body.as_bytes()[..end]) => return None,
                _ => {}
            }
            end += 1;
        }
        // Three quotes begin a text of another form, and two texts side by side are one.
        let after = body.as_bytes().get(end + 1);
        if matches!(after, Some(b'\'' | b'"')) {
            return None;
        }
        self.at += end + 2;
        match has_escapes {
            true => unescape(&body[..end]).ok().map(SmolStr::from),
            false => Some(SmolStr::from(&body[..end])),
        }
    }
}

fn constant(word: &str) -> Option<Value> {
    match word {
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        "None" => Some(Value::None),
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    const ARE_WORDS: [bool; 256] = {
        let mut are_words = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            are_words[byte] = byte as u8 == b'_' || (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        are_words
    };
    ARE_WORDS[usize::from(byte)]
}

/// Whether a word ends here, or one and blanks behind it. What is not ASCII counts as either.
fn is_behind_word(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|byte| **byte > b' ');
    last.is_some_and(|&byte| is_word(byte) || byte >= 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Default;
    use crate::{Arguments, Outcome, Parameter, Random, Scope, eval, repr};

    const SIGNATURE: Signature = Signature {
        name: "C.f",
        parameters: &[
            Parameter { name: "a", default: None },
            Parameter { name: "b_2", default: Some(Default::Int(3)) },
            Parameter { name: "c", default: Some(Default::EmptyList) },
        ],
    };

    /// One function, whose result are its arguments in their order.
    struct OneFunction;

    impl Scope for OneFunction {
        fn has_object(&self, _: &str) -> bool {
            false
        }

        fn has_function(&self, name: &str) -> bool {
            name == "f"
        }

        fn call_method(&mut self, object: &str, _: &str, _: Arguments) -> Outcome<Value> {
            Err(crate::name_error(object))
        }

        fn call_function(&mut self, _: &str, arguments: Arguments) -> Outcome<Value> {
            Ok(Value::list(SIGNATURE.bind(arguments)?))
        }
    }

    fn read(text: &str) -> Option<String> {
        let call = LiteralCall::new(text)?;
        let bound = call.bind(&SIGNATURE).filter(|_| call.name() == "f")?;
        let given = bound.given().count();
        assert!(given <= bound.values().len());
        Some(repr(&Value::list(bound.values().to_vec())).unwrap())
    }

    fn evaluated(text: &str) -> Result<String, String> {
        let value = eval(text, &mut OneFunction).map_err(|raised| raised.text)?;
        repr(&value).map_err(|raised| raised.text)
    }

    #[test]
    fn calls_of_the_usual_form_are_read() {
        for (text, bound) in [
            ("f('x')", "['x', 3, []]"),
            ("f(a='x',)", "['x', 3, []]"),
            ("f(1, c = [-2, 0.5, -3.0, None])", "[1, 3, [-2, 0.5, -3.0, None]]"),
            ("f( {'k': True, \"k\": [{}, []]} , 2)", "[{'k': [{}, []]}, 2, []]"),
            (r"f(a='it\'s\n\x41. (so)')", r#"["it's\nA. (so)", 3, []]"#),
            ("f(a=9223372036854775807)", "[9223372036854775807, 3, []]"),
            ("f('')", "['', 3, []]"),
        ] {
            assert_eq!(read(text).as_deref(), Some(bound), "{text}");
            assert_eq!(evaluated(text).as_deref(), Ok(bound), "{text}");
        }
    }

    #[test]
    fn what_is_left_to_eval() {
        for text in [
            "f()",
            "f(1, 2, 3, 4)",
            "f(a=1, a=2)",
            "f(1, a=2)",
            "f(a=1, 2)",
            "f(x=1)",
            "f(1 + 1)",
            "f(-True)",
            "f(1_000)",
            "f(1e5)",
            "f(1j)",
            "f(007)",
            "f(9223372036854775808)",
            "f(r'x')",
            "f('x' 'y')",
            "f('''x''')",
            "f('x\ny')",
            "f('cd(x)')",
            "f('cd  (x)')",
            "f('é(x)')",
            r"f('\x41 (x)')",
            "f((1))",
            "f({1: 2})",
            "f({'a'})",
            "f(1) ",
            " f(1)",
            "f (1)",
            "f(1",
            "f(a==1)",
            "f(*[1])",
            "f(nan)",
            "f(1)()",
            "f('\\N{BULLET}')",
            "1f(1)",
            "é(1)",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let deep = format!("f({}{})", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        assert_eq!(read(&deep), None);
        assert!(read(&format!("f({}{})", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH))).is_some());
        assert_eq!(read(&format!("f('{}')", "x".repeat(MAX_BYTES))), None);
    }

    #[test]
    fn what_is_read_is_what_eval_gives() {
        const PARTS: [&str; 46] = [
            "f", "(", ")", "a", "b_2", "c", "=", ", ", ",", " ", "'", "\"", "[", "]", "{", "}",
            ":", "-", "1", "0", "23", ".", "5e3", "_", "True", "False", "None", "\\", "n", "x41",
            "x", "é", "\n", "\t", "#", "*", "**", "+", "'x'", "\"y\"", "'k': ", "a=", "c=[", "9",
            "\r", "\u{3000}",
        ];
        fn literal(random: &mut Random, depth: u64, out: &mut String) {
            match random.below(if depth < 3 { 9 } else { 7 }) {
                0 => out.push_str(["True", "False", "None"][random.below(3) as usize]),
                1 => out.push_str(&random.below(1000).to_string()),
                2 => out.push_str(&format!("-{}", random.below(100))),
                3 => out.push_str(&format!("{}.{}", random.below(1000), random.below(1000))),
                4 => out.push_str(
                    ["'it\\'s'", "\"a 'b'\"", "'\\u00e9\\t'", "'f (x)'"][random.below(4) as usize],
                ),
                5 | 6 => {
                    out.push_str(["'x'", "\"two words\"", "''", "'é'"][random.below(4) as usize])
                }
                7 => {
                    out.push('[');
                    for _ in 0..random.below(3) {
                        literal(random, depth + 1, out);
                        out.push_str([", ", ","][random.below(2) as usize]);
                    }
                    out.push(']');
                }
                _ => {
                    out.push('{');
                    for _ in 0..random.below(3) {
                        out.push_str(["'k': ", "\"l\" : ", "'é':"][random.below(3) as usize]);
                        literal(random, depth + 1, out);
                        out.push(',');
                    }
                    out.push('}');
                }
            }
        }
        let mut random = Random::from_u64(1_127);
        let (mut num_read, mut num_changed_read) = (0, 0);
        for round in 0..60_000 {
            let mut text = "f(".to_owned();
            let count = random.below(4);
            for at in 0..count {
                let name = ["", "a=", "b_2=", "c = ", "d=", "True="][random.below(6) as usize];
                text.push_str(name);
                literal(&mut random, 0, &mut text);
                text.push_str(if at + 1 < count { ", " } else { "" });
            }
            text.push(')');
            // Most of the texts are changed in a few places, so that they are almost of the usual form.
            let num_changes = round % 4;
            for _ in 0..num_changes {
                let places: Vec<usize> =
                    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
                let start = places[random.below(places.len() as u64) as usize];
                let end = places.iter().copied().find(|at| *at > start).unwrap_or(start);
                let end = if random.below(2) == 0 { start } else { end };
                let part = PARTS[random.below(PARTS.len() as u64) as usize];
                text.replace_range(start..end, if random.below(4) == 0 { "" } else { part });
            }
            let Some(read) = read(&text) else { continue };
            num_read += 1;
            num_changed_read += usize::from(num_changes > 0);
            assert_eq!(Ok(read), evaluated(&text), "{text}");
        }
        assert!(num_read > 3_000 && num_changed_read > 900, "{num_read} {num_changed_read}");
    }
}
