//! A text that can be found.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::FieldError;

/// A text that can be found.
///
/// Search-R1 writes title and text as one string, `contents`: the title is its first line, often in quotation marks, which
/// stay as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Names it in its corpus.
    pub id: String,
    /// What it is about; may be empty.
    pub title: String,
    /// What it says.
    pub text: String,
}

impl Document {
    /// The document whose title is the first line of `contents`.
    pub fn from_contents(id: impl Into<String>, contents: &str) -> Self {
        let (title, text) = contents.split_once('\n').unwrap_or((contents, ""));
        Self { id: id.into(), title: title.to_owned(), text: text.to_owned() }
    }

    /// The title on a line of its own, and the text.
    pub fn contents(&self) -> String {
        match self.text.is_empty() {
            true => self.title.clone(),
            false => format!("{}\n{}", self.title, self.text),
        }
    }

    /// The document that a JSON object is: `id` (or `_id`) with `contents`, or with `text` and, if it has one, `title`.
    /// Other fields are left alone.
    ///
    /// # Errors
    ///
    /// [`FieldError`] names the field that is absent or of another type.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, FieldError> {
        let text = |name: &'static str| match object.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => Err(FieldError::wrong_type(name, "a string", other)),
        };
        let id = match object.get("id").or_else(|| object.get("_id")) {
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(other) => return Err(FieldError::wrong_type("id", "a string or a number", other)),
            None => return Err(FieldError::absent("id")),
        };
        if let Some(contents) = text("contents")? {
            return Ok(Self::from_contents(id, contents));
        }
        let said = text("text")?.ok_or_else(|| FieldError::absent("contents"))?;
        let title = text("title")?.unwrap_or_default();
        Ok(Self { id, title: title.to_owned(), text: said.to_owned() })
    }

    /// The document as Search-R1's retrieval server tells it: `id`, `contents`, and title (without quotation marks around
    /// it) and text apart.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "contents": self.contents(),
            "title": self.title.trim_matches('"'),
            "text": self.text,
        })
    }
}

/// Documents as Search-R1 shows them to its policy, each on a line: `Doc 1(Title: "A") what it says`. Of each, at most
/// `max_chars` characters of text are shown, with `...` where something is left out.
pub fn listing<'a>(documents: impl IntoIterator<Item = &'a Document>, max_chars: usize) -> String {
    let mut listing = String::new();
    for (place, document) in documents.into_iter().enumerate() {
        let (title, _) = cut(&document.title, max_chars);
        let (text, is_cut) = cut(&document.text, max_chars);
        let left_out = if is_cut { "..." } else { "" };
        let number = place + 1;
        writeln!(listing, "Doc {number}(Title: {title}) {text}{left_out}")
            .expect("writing to a string cannot fail");
    }
    listing
}

/// The first characters of a text, and whether there are more.
fn cut(text: &str, max_chars: usize) -> (&str, bool) {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: Value) -> Result<Document, String> {
        let object = json.as_object().unwrap().clone();
        Document::from_json(&object).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_are_read() {
        let one = read(json!({ "id": "0", "contents": "\"Evan\"\nIs a\nman." })).unwrap();
        assert_eq!((&*one.title, &*one.text), ("\"Evan\"", "Is a\nman."));
        assert_eq!(one.contents(), "\"Evan\"\nIs a\nman.");
        assert_eq!(one.to_json()["title"], "Evan");
        let two = read(json!({ "_id": 7, "title": "T", "text": "x", "wikipedia_id": 3 })).unwrap();
        assert_eq!((&*two.id, &*two.contents()), ("7", "T\nx"));
        assert_eq!(Document::from_contents("a", "only").contents(), "only");
        assert_eq!(read(json!({ "contents": "x" })).unwrap_err(), "`id` is absent");
        assert_eq!(read(json!({ "id": 1 })).unwrap_err(), "`contents` is absent");
        let told = read(json!({ "id": 1, "contents": [] })).unwrap_err();
        assert_eq!(told, "`contents` is a list, must be a string");
    }

    #[test]
    fn documents_are_listed_as_search_r1_does_and_long_ones_cut() {
        let document = |title: &str, text: &str| Document {
            id: String::new(),
            title: title.to_owned(),
            text: text.to_owned(),
        };
        let documents = [document("\"A\"", "one\ntwo"), document("", "äöü")];
        let told = listing(&documents, 100);
        assert_eq!(told, "Doc 1(Title: \"A\") one\ntwo\nDoc 2(Title: ) äöü\n");
        assert_eq!(listing(&documents[1..], 2), "Doc 1(Title: ) äö...\n");
        assert_eq!(listing([], 2), "");
    }
}
