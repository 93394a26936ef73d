//! Characters that carry through a template what text alone cannot tell.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::ControlTokens;

/// Filter around what stands between `{% generation %}` and `{% endgeneration %}`.
pub(super) const GENERATION_FILTER: &str = "__generation";

/// `{% generation %}` and `{% endgeneration %}` with their control of white space.
static GENERATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}")
        .expect("the expression is well-formed")
});

/// Whether a template tells what the model wrote.
pub(super) fn has_generation(source: &str) -> bool {
    GENERATION.is_match(source)
}

/// The template with its generation blocks in tags that minijinja knows, on the same lines.
pub(super) fn rewrite_generation(source: &str) -> String {
    // A block has variables of its own, so the filter stands inside `with`.
    let rewrite = |tag: &regex::Captures<'_>| match tag.get(2) {
        None => format!("{{%{}with%}}{{%filter {GENERATION_FILTER} {}%}}", &tag[1], &tag[3]),
        Some(_) => format!("{{%{}endfilter%}}{{%endwith {}%}}", &tag[1], &tag[3]),
    };
    GENERATION.replace_all(source, rewrite).into_owned()
}

/// A conversation as text, with what of it is content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedChat {
    text: String,
    /// Where the first characters end of what looks like control tokens in contents, ascending.
    openings: Vec<usize>,
    generated: Vec<Range<usize>>,
}

impl RenderedChat {
    /// The text, as transformers renders it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The bytes that the model wrote, by the template's `{% generation %}` blocks.
    pub fn generated(&self) -> &[Range<usize>] {
        &self.generated
    }

    /// Whether the control token that starts at byte `start` is the content of a message.
    pub fn is_content(&self, start: usize) -> bool {
        let first = self.text[start..].chars().next().map_or(0, char::len_utf8);
        self.openings.binary_search(&(start + first)).is_ok()
    }
}

/// Private characters that occur nowhere else in a rendering.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    /// Stands behind the first character of what looks like a control token.
    opening: char,
    generation: char,
    end_generation: char,
}

impl Marks {
    /// Marks that neither a template nor what it is given contains; `None` where these contain all
    /// private characters there are.
    pub(super) fn unused(seen: &Value, source: &str) -> Option<Self> {
        let mut used = HashSet::new();
        collect_private(seen, &mut used);
        used.extend(source.chars().filter(is_private));
        let planes = [0xe000..=0xf8ff, 0xf_0000..=0xf_fffd, 0x10_0000..=0x10_fffd_u32];
        let private = planes.into_iter().flatten().filter_map(char::from_u32);
        let mut unused = private.filter(|character| !used.contains(character));
        let (opening, generation, end_generation) =
            (unused.next()?, unused.next()?, unused.next()?);
        Some(Self { opening, generation, end_generation })
    }

    /// The marks in one string, for the functions of the template.
    pub(super) fn as_string(&self) -> String {
        [self.opening, self.generation, self.end_generation].iter().collect()
    }

    /// Puts the mark into what looks like control tokens in all strings of `value`.
    pub(super) fn protect(&self, value: &mut Value, control: &ControlTokens) {
        match value {
            Value::String(text) => self.protect_text(text, control),
            Value::Array(values) => {
                values.iter_mut().for_each(|value| self.protect(value, control));
            }
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.protect(value, control));
                // Names of a tool's parameters are strangers' too.
                if fields.keys().any(|key| !control.openings(key).is_empty()) {
                    let protected = std::mem::take(fields).into_iter().map(|(mut key, value)| {
                        self.protect_text(&mut key, control);
                        (key, value)
                    });
                    *fields = protected.collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn protect_text(&self, text: &mut String, control: &ControlTokens) {
        for opening in control.openings(text).into_iter().rev() {
            text.insert(opening, self.opening);
        }
    }

    /// Takes the marks out of a rendered text.
    pub(super) fn read(&self, marked: &str) -> RenderedChat {
        let mut text = String::with_capacity(marked.len());
        let (mut openings, mut generated, mut begun) = (Vec::new(), Vec::new(), Vec::new());
        for character in marked.chars() {
            if character == self.opening {
                openings.push(text.len());
            } else if character == self.generation {
                begun.push(text.len());
            } else if character == self.end_generation {
                if let Some(start) = begun.pop()
                    && start < text.len()
                {
                    generated.push(start..text.len());
                }
            } else {
                text.push(character);
            }
        }
        RenderedChat { text, openings, generated }
    }
}

fn is_private(character: &char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..)
}

fn collect_private(value: &Value, used: &mut HashSet<char>) {
    match value {
        Value::String(text) => used.extend(text.chars().filter(is_private)),
        Value::Array(values) => values.iter().for_each(|value| collect_private(value, used)),
        Value::Object(fields) => {
            for (key, value) in fields {
                used.extend(key.chars().filter(is_private));
                collect_private(value, used);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
