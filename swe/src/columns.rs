use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{LoadError, Place, shortened};
use crate::instance::Instance;

/// The columns of a row, or the fields of a file, taken out one by one: what nobody took is told at the end.
pub(crate) struct Columns {
    place: Place,
    row: Map<String, Value>,
    /// What is put before names in errors, as in `base.`.
    prefix: String,
    /// Whether a text never stands for a list or an object.
    is_strict: bool,
}

impl Columns {
    pub(crate) fn new(place: Place, row: Map<String, Value>) -> Self {
        Self { place, row, prefix: String::new(), is_strict: false }
    }

    /// Fields of a file whose language has lists and objects of its own.
    pub(crate) fn strict(place: Place, row: Map<String, Value>) -> Self {
        Self { is_strict: true, ..Self::new(place, row) }
    }

    fn child(&self, name: &str, row: Map<String, Value>) -> Self {
        let prefix = format!("{}{name}.", self.prefix);
        Self { place: self.place.clone(), row, prefix, is_strict: self.is_strict }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.row.contains_key(name)
    }

    /// A column, unless it is absent or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.row.shift_remove(name).filter(|value| !value.is_null())
    }

    /// The name of the first column.
    pub(crate) fn first_name(&self) -> Option<String> {
        self.row.keys().next().cloned()
    }

    /// An object of the same place without anything in it.
    pub(crate) fn empty(&self) -> Self {
        Self { row: Map::new(), prefix: self.prefix.clone(), ..self.child("", Map::new()) }
    }

    /// A name with what it lies in.
    pub(crate) fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Puts a column back.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.row.insert(name.to_owned(), value.into());
    }

    /// An error about a column.
    pub(crate) fn wrong(&self, name: &str, detail: impl Into<String>) -> LoadError {
        LoadError::Column {
            place: Box::new(self.place.clone()),
            column: format!("{}{name}", self.prefix),
            detail: detail.into(),
        }
    }

    fn unexpected(&self, name: &str, expected: &str, found: &Value) -> LoadError {
        self.wrong(name, format!("expected {expected}, found {}", described(found)))
    }

    /// A text that has to be there.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, LoadError> {
        match self.row.shift_remove(name) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.unexpected(name, "a text", &other)),
            None => Err(self.wrong(name, "expected a text, and there is no such column")),
        }
    }

    /// A text, unless it is absent, null or empty.
    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, LoadError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok((!text.is_empty()).then_some(text)),
            Some(other) => Err(self.unexpected(name, "a text", &other)),
        }
    }

    /// A text or a number, as text, unless it is absent, null or empty.
    pub(crate) fn optional_word(&mut self, name: &str) -> Result<Option<String>, LoadError> {
        match self.take(name) {
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => {
                self.row.insert(name.to_owned(), other);
                self.optional_text(name)
            }
            None => Ok(None),
        }
    }

    /// One of these words, as it is written there; absent where the column is.
    pub(crate) fn choice(
        &mut self,
        name: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, LoadError> {
        if self.row.get(name).is_none_or(Value::is_null) {
            return Ok(None);
        }
        let found = self.text(name)?;
        match words.iter().find(|word| **word == found) {
            Some(word) => Ok(Some(word)),
            None => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                let detail =
                    format!("expected one of {}, found `{}`", words.join(", "), shortened(&found));
                Err(self.wrong(name, detail))
            }
        }
    }

    /// Whether something holds; absent where the column is. The words of YAML's first version and 0 and 1 are taken as well.
    pub(crate) fn optional_flag(&mut self, name: &str) -> Result<Option<bool>, LoadError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let found = match &value {
            Value::Bool(is) => Some(*is),
            Value::Number(number) => match number.as_f64() {
                Some(1.0) => Some(true),
                Some(0.0) => Some(false),
                _ => None,
            },
            Value::String(text) => match text.to_lowercase().as_str() {
                "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
                "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        };
        found.map(Some).ok_or_else(|| self.unexpected(name, "true or false", &value))
    }

    /// The same; false where it is absent.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, LoadError> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }

    /// A number, also as a text or as true and false, as Python's models take them.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, LoadError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::Bool(is) => Some(f64::from(u8::from(*is))),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(self.unexpected(name, "a number", &value)),
        }
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<i64>, LoadError> {
        const MOST: f64 = 9_007_199_254_740_992.0;
        match self.number(name)? {
            None => Ok(None),
            Some(number) if number.fract() == 0.0 && number.abs() <= MOST => {
                Ok(Some(number as i64))
            }
            Some(number) => {
                Err(self.wrong(name, format!("expected a whole number, found {number}")))
            }
        }
    }

    /// Texts by name; empty where there are none.
    pub(crate) fn texts(&mut self, name: &str) -> Result<BTreeMap<String, String>, LoadError> {
        let Some(found) = self.optional_object(name)? else {
            return Ok(BTreeMap::new());
        };
        let mut texts = BTreeMap::new();
        for (key, value) in found.into_row() {
            match value {
                Value::String(text) => texts.insert(key, text),
                other => return Err(self.unexpected(&format!("{name}.{key}"), "a text", &other)),
            };
        }
        Ok(texts)
    }

    /// A list of objects; empty where there is none. Texts among them are given to `of_text`, which makes objects of them.
    pub(crate) fn objects(
        &mut self,
        name: &str,
        of_text: Option<fn(String) -> Map<String, Value>>,
    ) -> Result<Vec<Self>, LoadError> {
        let entries = match self.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(entries)) => entries,
            Some(other) => return Err(self.unexpected(name, "a list", &other)),
        };
        let mut objects = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let name = format!("{name}[{index}]");
            let row = match (entry, of_text) {
                (Value::Object(row), _) => row,
                (Value::String(text), Some(of_text)) => of_text(text),
                (other, _) => return Err(self.unexpected(&name, "an object", &other)),
            };
            objects.push(self.child(&name, row));
        }
        Ok(objects)
    }

    /// A list of texts, as such or as the text of one; absent where the column is absent or null.
    pub(crate) fn optional_list(&mut self, name: &str) -> Result<Option<Vec<String>>, LoadError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let entries = match value {
            Value::Array(entries) => entries,
            Value::String(text) if !self.is_strict => match parse_list(&text) {
                Some(entries) => entries,
                None => {
                    let expected = "a list of texts, or a text that is one in JSON";
                    return Err(self.unexpected(name, expected, &Value::String(text)));
                }
            },
            other => {
                let expected = match self.is_strict {
                    true => "a list of texts",
                    false => "a list of texts, or a text that is one in JSON",
                };
                return Err(self.unexpected(name, expected, &other));
            }
        };
        let mut texts = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            match entry {
                Value::String(text) => texts.push(text),
                other => {
                    let detail = format!(
                        "expected texts, found {} as its element {}",
                        described(&other),
                        index + 1
                    );
                    return Err(self.wrong(name, detail));
                }
            }
        }
        Ok(Some(texts))
    }

    /// The same, where it has to be there.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<String>, LoadError> {
        match self.optional_list(name)? {
            Some(list) => Ok(list),
            None => Err(self.wrong(name, "expected a list of texts, and there is none")),
        }
    }

    /// A list of commands, where one alone may be a text; empty where it is absent.
    pub(crate) fn commands(&mut self, name: &str) -> Result<Vec<String>, LoadError> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(if text.is_empty() { Vec::new() } else { vec![text] }),
            Some(other) => {
                self.row.insert(name.to_owned(), other);
                Ok(self.optional_list(name)?.unwrap_or_default())
            }
            None => Ok(Vec::new()),
        }
    }

    /// An object, as such or as the text of one; its columns are taken from what is returned.
    pub(crate) fn optional_object(&mut self, name: &str) -> Result<Option<Self>, LoadError> {
        let object = match self.take(name) {
            None => return Ok(None),
            Some(Value::Object(object)) => object,
            Some(Value::String(text)) if !self.is_strict => match serde_json::from_str(&text) {
                Ok(Value::Object(object)) => object,
                _ => {
                    return Err(self.unexpected(
                        name,
                        "an object, or a text that is one in JSON",
                        &Value::String(text),
                    ));
                }
            },
            Some(other) => return Err(self.unexpected(name, "an object", &other)),
        };
        Ok(Some(self.child(name, object)))
    }

    /// The same, where it has to be there.
    pub(crate) fn object(&mut self, name: &str) -> Result<Self, LoadError> {
        match self.optional_object(name)? {
            Some(object) => Ok(object),
            None => Err(self.wrong(name, "expected an object, and there is none")),
        }
    }

    /// Passes columns that tell of where a row comes from and change nothing of the task.
    pub(crate) fn harmless(&mut self, names: &[&str]) {
        for name in names {
            self.row.shift_remove(*name);
        }
    }

    /// Tells a column that is known and not honoured, unless it says nothing.
    pub(crate) fn unsupported(&mut self, name: &str, why: &str, instance: &mut Instance) {
        if let Some(value) = self.row.shift_remove(name)
            && !is_nothing(&value)
        {
            instance.unsupported.push(format!("`{}{name}`: {why}", self.prefix));
        }
    }

    /// Tells what nobody took.
    pub(crate) fn finish(self, instance: &mut Instance) {
        for (name, value) in &self.row {
            if !is_nothing(value) {
                let name = shortened(name);
                instance
                    .unsupported
                    .push(format!("`{}{name}`: not known of this format", self.prefix));
            }
        }
    }

    /// All that is left.
    pub(crate) fn into_row(self) -> Map<String, Value> {
        self.row
    }
}

/// A value, for messages.
pub(crate) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is) => format!("`{is}`"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text `{}`", shortened(text)),
        Value::Array(entries) => format!("a list of {}", entries.len()),
        Value::Object(object) => format!("an object of {}", object.len()),
    }
}

/// Whether a value says nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// A list written as JSON, or as Python writes lists of texts, which some rows have.
fn parse_list(text: &str) -> Option<Vec<Value>> {
    if let Ok(Value::Array(entries)) = serde_json::from_str(text) {
        return Some(entries);
    }
    python_list(text.trim())
}

/// A list of texts in Python's notation: `['a', "b"]`, with the escapes that `repr` writes.
fn python_list(text: &str) -> Option<Vec<Value>> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut found = Vec::new();
    loop {
        if let Some(end) = rest.strip_prefix(']') {
            return end.trim().is_empty().then_some(found);
        }
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let mut chars = rest[1..].char_indices();
        let mut entry = String::new();
        let end = loop {
            let (at, c) = chars.next()?;
            if c == quote {
                break at + 2;
            }
            entry.push(if c == '\\' { escaped(&mut chars)? } else { c });
        };
        found.push(Value::String(entry));
        rest = rest[end..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if rest.starts_with(']') => rest,
            None => return None,
        };
    }
}

/// What stands behind a backslash.
fn escaped(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let (_, c) = chars.next()?;
    let digits = match c {
        'n' => return Some('\n'),
        't' => return Some('\t'),
        'r' => return Some('\r'),
        '\\' | '\'' | '"' => return Some(c),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let hex: String = chars.take(digits).map(|(_, c)| c).collect();
    if hex.len() != digits {
        return None;
    }
    char::from_u32(u32::from_str_radix(&hex, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_both_languages_write_them() {
        let list = |text| parse_list(text).map(Value::Array);
        assert_eq!(list(r#"["a", "b\n"]"#), Some(serde_json::json!(["a", "b\n"])));
        assert_eq!(
            list(r#"['a', "it's", 'x\x41\u00fc\\']"#),
            Some(serde_json::json!(["a", "it's", "xAü\\"]))
        );
        assert_eq!(list("[]"), Some(serde_json::json!([])));
        assert_eq!(list("['a',]"), Some(serde_json::json!(["a"])));
        for wrong in ["", "a", "['a' 'b']", "['a", "['a'] x", r"['\x4']", "[1"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }
}
