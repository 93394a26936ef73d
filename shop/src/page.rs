//! The text of pages.

/// How pages are shown: the modes of WebShop's text environment.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PageText {
    /// Texts joined by ` [SEP] `.
    #[default]
    Text,
    /// A line for each text, with marks around what can be clicked and what was.
    TextRich,
}

/// A page while it is written.
pub(crate) struct Page<'a> {
    mode: PageText,
    out: String,
    is_empty: bool,
    /// What the page's address says of keywords and options: a value in quotes there was chosen.
    address: &'a str,
    /// Values that were chosen, in the order in which they stand.
    clicked: Vec<String>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(mode: PageText, address: &'a str) -> Self {
        let out = String::with_capacity(2_048);
        Self { mode, out, is_empty: true, address, clicked: Vec::new() }
    }

    /// A text as the reader of the page sees it: one of blanks alone is one blank, or nothing where a line ends in it.
    fn node<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_blank = |byte: u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\x0c' | b'\r');
        match text.bytes().all(is_blank) {
            false => Some(text),
            true if text.is_empty() || text.contains('\n') => None,
            true => Some(" "),
        }
    }

    fn put(&mut self, before: &str, text: &str, after: &str) {
        match self.mode {
            PageText::Text => {
                if !self.is_empty {
                    self.out.push_str(" [SEP] ");
                }
                self.out.push_str(text.trim());
            }
            PageText::TextRich => {
                for part in [before, text, after, "\n"] {
                    self.out.push_str(part);
                }
            }
        }
        self.is_empty = false;
    }

    /// What can only be read.
    pub(crate) fn text(&mut self, text: &str) {
        if let Some(text) = self.node(text) {
            self.put("", text, "");
        }
    }

    pub(crate) fn button(&mut self, text: &str) {
        self.put("[button] ", text, " [button_]");
    }

    pub(crate) fn option(&mut self, text: &str) {
        let Some(text) = self.node(text) else { return };
        if self.mode == PageText::TextRich && self.address.contains(&format!("\"{text}\"")) {
            self.put("  [clicked button] ", text, " [clicked button_]");
            self.clicked.push(text.to_owned());
        } else {
            self.put("  [button] ", text, " [button_]");
        }
    }

    pub(crate) fn link(&mut self, text: &str, was_clicked: bool) {
        if was_clicked {
            self.put("\n[clicked button] ", text, " [clicked button_]");
        } else {
            self.put("\n[button] ", text, " [button_]");
        }
    }

    pub(crate) fn finish(self) -> String {
        if self.clicked.is_empty() {
            return self.out;
        }
        // What stands last is told first, as in the original.
        let told: String =
            self.clicked.iter().rev().map(|it| format!("You have clicked {it}.\n")).collect();
        told + &self.out
    }
}

/// An object of texts as Python's `json.dumps` writes it; with `is_for_html` sorted, and safe inside of a page.
pub(crate) fn json_object(pairs: &[(&str, &str)], is_for_html: bool) -> String {
    let mut pairs = pairs.to_vec();
    if is_for_html {
        pairs.sort_unstable();
    }
    let mut out = String::from("{");
    for (place, (name, value)) in pairs.iter().enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        json_text(name, is_for_html, &mut out);
        out.push_str(": ");
        json_text(value, is_for_html, &mut out);
    }
    out.push('}');
    out
}

fn json_text(text: &str, is_for_html: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\'' if is_for_html => out.push_str(&format!("\\u{:04x}", c as u32)),
            ' '..='\u{7e}' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_as_python_writes_them() {
        let pairs = [("size", "a\"b"), ("color", "crème <x> 'y'\n😀")];
        assert_eq!(
            json_object(&pairs, false),
            r#"{"size": "a\"b", "color": "cr\u00e8me <x> 'y'\n\ud83d\ude00"}"#
        );
        assert_eq!(
            json_object(&pairs, true),
            r#"{"color": "cr\u00e8me \u003cx\u003e \u0027y\u0027\n\ud83d\ude00", "size": "a\"b"}"#
        );
    }
}
