//! What is left of a message that is left out.

use std::sync::Arc;

use spar_core::{Message, Part};

/// What is left of a message that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elision {
    /// Characters of its beginning.
    pub head_chars: usize,
    /// Characters of its end.
    pub tail_chars: usize,
    /// Whether media are left out too.
    pub media: bool,
}

impl Elision {
    /// What is left of a text; absent where that would not be shorter.
    pub fn of_text(&self, text: &str) -> Option<String> {
        let Self { head_chars, tail_chars, .. } = *self;
        // Without counting: a text of so few bytes has no more characters.
        if text.len() <= head_chars.saturating_add(tail_chars) {
            return None;
        }
        let start = text.char_indices().nth(head_chars).map_or(text.len(), |(place, _)| place);
        let end = match tail_chars {
            0 => text.len(),
            count => text.char_indices().nth_back(count - 1).map_or(0, |(place, _)| place),
        };
        let left_out = text.get(start..end)?;
        let (lines, bytes) = (left_out.lines().count(), left_out.len());
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let mark = format!("[{}, {} left out]", counted(lines, "line"), counted(bytes, "byte"));
        let (head, tail) = (&text[..start], &text[end..]);
        let parts = [head, &mark, tail].into_iter().filter(|part| !part.is_empty());
        let left = parts.collect::<Vec<_>>().join("\n");
        (left.len() < text.len()).then_some(left)
    }

    /// What is left of a message; absent where that is all of it.
    pub(super) fn of_message(&self, message: &Message) -> Option<Arc<Message>> {
        let mut left = message.clone();
        let mut is_changed = false;
        for part in &mut left.parts {
            let short = match part {
                Part::Text(text) => self.of_text(text),
                Part::Media(media) if self.media => {
                    Some(format!("[{} left out]", media.media_type))
                }
                Part::Media(_) | Part::Reasoning(_) => None,
            };
            if let Some(short) = short {
                *part = Part::Text(short);
                is_changed = true;
            }
        }
        is_changed.then(|| Arc::new(left))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_tells_what_was_left_out() {
        let whole = Elision { head_chars: 0, tail_chars: 0, media: true };
        let text = "one line\nanother line\nand a third one\n";
        assert_eq!(whole.of_text(text).unwrap(), "[3 lines, 38 bytes left out]");
        let ends = Elision { head_chars: 4, tail_chars: 3, media: true };
        let text = format!("ääää{}end", "x".repeat(50));
        assert_eq!(ends.of_text(&text).unwrap(), "ääää\n[1 line, 50 bytes left out]\nend");
        assert_eq!(ends.of_text("short"), None);
        assert_eq!(whole.of_text("as long as the mark"), None);
    }

    proptest! {
        #[test]
        fn what_is_left_is_shorter_and_keeps_its_ends(
            text in ".{0,120}", head_chars in 0_usize..40, tail_chars in 0_usize..40,
        ) {
            let elision = Elision { head_chars, tail_chars, media: false };
            if let Some(left) = elision.of_text(&text) {
                prop_assert!(left.len() < text.len());
                let head: String = text.chars().take(head_chars).collect();
                prop_assert!(left.starts_with(&head));
                let skip = text.chars().count() - tail_chars;
                prop_assert!(left.ends_with(&text.chars().skip(skip).collect::<String>()));
            }
        }
    }
}
