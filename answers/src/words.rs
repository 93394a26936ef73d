//! Answers in words.

/// An answer that is nothing but words, as it is compared: small letters without spaces. `None` where anything else stands in
/// it.
///
/// Commands that only set type, braces, quotes and a full stop at the end say nothing.
pub(crate) fn key(text: &str) -> Option<String> {
    let bare = bare(text);
    // A choice in brackets is that choice.
    let inside = bare.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let bare = inside.unwrap_or(&bare);
    let is_word = !bare.is_empty() && bare.chars().all(|c| c.is_alphabetic() || c == '-');
    is_word.then(|| bare.to_lowercase().replace('-', ""))
}

/// A text without what only sets type, and without spaces.
pub(crate) fn bare(text: &str) -> String {
    const TYPE: [&str; 14] = [
        "\\textbf",
        "\\textit",
        "\\textrm",
        "\\textnormal",
        "\\text",
        "\\mbox",
        "\\mathrm",
        "\\mathbf",
        "\\mathit",
        "\\displaystyle",
        "\\left",
        "\\right",
        "\\boxed",
        "\\operatorname",
    ];
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    'chars: while let Some(c) = rest.chars().next() {
        if c == '\\' {
            for command in TYPE {
                if let Some(behind) = rest.strip_prefix(command)
                    && !behind.starts_with(|c: char| c.is_ascii_alphabetic())
                {
                    rest = behind;
                    continue 'chars;
                }
            }
            let spaces = ["\\ ", "\\,", "\\!", "\\;", "\\:", "\\(", "\\)", "\\[", "\\]"];
            if let Some(behind) = spaces.iter().find_map(|space| rest.strip_prefix(space)) {
                rest = behind;
                continue;
            }
        }
        if !(c.is_whitespace() || "${}~'\"*`".contains(c)) {
            bare.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    bare.trim_end_matches('.').to_owned()
}
