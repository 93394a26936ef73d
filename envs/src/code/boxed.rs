//! The answer in `\boxed{}`.

/// What an answer has in `\boxed{}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boxed {
    /// Nothing, or nothing that ends.
    None,
    /// The same once or several times, without white space at its ends.
    One(String),
    /// Several that differ: who gives all choices has chosen none.
    Several,
}

const MARKS: [&str; 2] = [r"\boxed{", r"\fbox{"];
/// What is looked at of an answer: its end.
const MAX_BYTES: usize = 1 << 20;

/// What a text has in `\boxed{}` or `\fbox{}`, braces within it balanced; `\{` and `\}` are none. In a megabyte at the end
/// of longer ones.
pub fn boxed(text: &str) -> Boxed {
    let mut start = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let text = &text[start..];
    let mut found: Option<&str> = None;
    let mut at = 0;
    while let Some((place, mark)) = next_mark(text, at) {
        let inside = place + mark.len();
        let Some(len) = balanced(&text[inside..]) else {
            // What is not closed swallows all behind it.
            break;
        };
        let content = text[inside..inside + len].trim();
        match found {
            Some(other) if other != content => return Boxed::Several,
            _ => found = Some(content),
        }
        at = inside + len + 1;
    }
    match found {
        Some(content) if !content.is_empty() => Boxed::One(content.to_owned()),
        _ => Boxed::None,
    }
}

fn next_mark(text: &str, from: usize) -> Option<(usize, &'static str)> {
    text[from..].match_indices('\\').find_map(|(at, _)| {
        let mark = MARKS.iter().find(|mark| text[from + at..].starts_with(**mark))?;
        Some((from + at, *mark))
    })
}

/// How long what stands before the brace is that closes an open one.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(place),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_counts_and_several_are_none() {
        let one = |text: &str| Boxed::One(text.to_owned());
        assert_eq!(boxed(r"so \boxed{ 42 }."), one("42"));
        assert_eq!(
            boxed(r"\boxed{\frac{1}{2}} and again \boxed{\frac{1}{2}}"),
            one(r"\frac{1}{2}")
        );
        assert_eq!(boxed(r"\boxed{1} or \boxed{2}"), Boxed::Several);
        assert_eq!(boxed(r"\boxed{1} or \fbox{2}"), Boxed::Several);
        assert_eq!(boxed(r"\boxed{a \} b}"), one(r"a \} b"));
        assert_eq!(boxed(r"\boxed{1} \boxed{2"), one("1"));
        for none in ["42", r"\boxed{", r"\boxed{ }", r"\boxed 4", ""] {
            assert_eq!(boxed(none), Boxed::None, "{none}");
        }
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        let begun = std::time::Instant::now();
        for piece in [r"\boxed{", "{", "}", r"\boxed{}", "ä", r"\boxed{{", r"\"] {
            boxed(&piece.repeat(1_000_000 / piece.len()));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
