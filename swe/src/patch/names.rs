//! The names in headers of patches.

use super::RepoPath;
use super::quoted::unquote;

pub(super) fn is_dev_null(name: &[u8]) -> bool {
    name.strip_prefix(b"/dev/null")
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

pub(super) fn until_tab(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'\t' | b'\n'));
    &text[..end.unwrap_or(text.len())]
}

/// A name of a header without its first `parts`; absent where it has no more.
pub(super) fn name(text: &[u8], parts: usize, ends_at_tab: bool) -> Option<RepoPath> {
    if text.first() == Some(&b'"')
        && let Some((name, _)) = unquote(text)
    {
        return stripped(&name, parts);
    }
    let end = text.iter().position(|byte| *byte == b'\n' || ends_at_tab && *byte == b'\t');
    stripped(&text[..end.unwrap_or(text.len())], parts)
}

fn stripped(name: &[u8], parts: usize) -> Option<RepoPath> {
    let mut rest = name;
    for _ in 0..parts {
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        rest = &rest[slash + 1..];
    }
    // Several slashes are one.
    let mut squashed = Vec::with_capacity(rest.len());
    for byte in rest {
        if *byte != b'/' || squashed.last() != Some(&b'/') {
            squashed.push(*byte);
        }
    }
    (!squashed.is_empty()).then(|| RepoPath::new(squashed))
}

/// The name without its first part, unless it has none or begins with a slash.
fn without_first_part(text: &[u8]) -> Option<&[u8]> {
    let slash = text.iter().position(|byte| *byte == b'/')?;
    (slash > 0).then(|| &text[slash + 1..])
}

/// The one name that both sides of `a/NAME b/NAME` have; absent where they differ, which a rename tells elsewhere.
pub(super) fn name_of_both(rest: &[u8]) -> Option<RepoPath> {
    let rest = rest.strip_suffix(b"\n")?;
    if rest.first() == Some(&b'"') {
        let (first, used) = unquote(rest)?;
        let first = without_first_part(&first)?.to_vec();
        let second = rest[used..].trim_ascii_start();
        let second = match second.first() == Some(&b'"') {
            true => unquote(second)?.0,
            false => second.to_vec(),
        };
        return (without_first_part(&second)? == first).then(|| RepoPath::new(first));
    }
    let first = without_first_part(rest)?;
    if let Some(quote) = first.iter().position(|byte| *byte == b'"') {
        let (second, _) = unquote(&first[quote..])?;
        let second = without_first_part(&second)?;
        let is_same = first.starts_with(second)
            && first.get(second.len()).is_some_and(u8::is_ascii_whitespace);
        return is_same.then(|| RepoPath::new(second));
    }
    let spaces = (0..first.len()).filter(|at| matches!(first[*at], b' ' | b'\t'));
    for space in spaces {
        if without_first_part(&first[space + 1..]) == Some(&first[..space]) {
            return Some(RepoPath::new(&first[..space]));
        }
    }
    None
}
