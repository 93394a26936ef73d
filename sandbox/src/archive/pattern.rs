//! Patterns of what is left out of an archive.

/// What is left out, as GNU tar reads `--exclude` where it packs `.`: a pattern names whole parts of `./a/b` from the
/// beginning or behind any `/`, `*` and `?` stand for `/` as well, and what lies below a folder goes with it.
#[derive(Debug, Clone)]
pub(super) struct Exclusions(Vec<Vec<u8>>);

impl Exclusions {
    pub(super) fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().map(|pattern| pattern.clone().into_bytes()).collect())
    }

    /// Whether a path within the folder, as `a/b`, is left out.
    pub(super) fn leaves_out(&self, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let named = [b"./", path].concat();
        let ends = (1..named.len()).filter(|&at| named[at] == b'/').chain([named.len()]);
        let starts = || (0..named.len()).filter(|&at| at == 0 || named[at - 1] == b'/');
        let mut parts = ends.flat_map(|end| {
            let named = &named;
            starts().filter(move |start| *start < end).map(move |start| &named[start..end])
        });
        parts.any(|part| self.0.iter().any(|pattern| matches(pattern, part)))
    }
}

/// `fnmatch` without flags.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last `*` stands, and how far it reaches so far.
    let mut star: Option<(usize, usize)> = None;
    let (mut at, mut seen) = (0, 0);
    while seen < text.len() {
        let one = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
                continue;
            }
            Some(_) => one_of(&pattern[at..], text[seen]),
            None => None,
        };
        match (one, star) {
            (Some(length), _) => (at, seen) = (at + length, seen + 1),
            (None, Some((from, reach))) => {
                star = Some((from, reach + 1));
                (at, seen) = (from + 1, reach + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// How much of a pattern stands for this one byte, if its beginning does.
fn one_of(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', rest @ ..] => match set(rest, byte) {
            Some((holds, length)) => holds.then_some(1 + length),
            // Without an end it is itself.
            None => (byte == b'[').then_some(1),
        },
        [plain, ..] => (*plain == byte).then_some(1),
        [] => None,
    }
}

/// Whether a set behind its `[` holds a byte, and how long it is; absent where it has no end.
fn set(rest: &[u8], byte: u8) -> Option<(bool, usize)> {
    let is_negated = matches!(rest.first(), Some(b'!' | b'^'));
    let first = usize::from(is_negated);
    let (mut at, mut holds) = (first, false);
    loop {
        let low = *rest.get(at)?;
        if low == b']' && at > first {
            return Some((holds != is_negated, at + 1));
        }
        match (rest.get(at + 1), rest.get(at + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                holds |= (low..=high).contains(&byte);
                at += 3;
            }
            _ => {
                holds |= low == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_tar_reads_them() {
        let leaves_out = |pattern: &str, path: &str| {
            Exclusions::new(&[pattern.to_owned()]).leaves_out(path.as_bytes())
        };
        for (pattern, path) in [
            ("*.pyc", "a/b.pyc"),
            ("node_modules", "a/node_modules/b/c"),
            ("./a", "a/b"),
            ("a/b", "c/a/b/d"),
            ("a*d", "x/a/b/d"),
            ("[a-c]?", "x/b1"),
            ("[!a]", "b"),
            ("\\*", "x/*"),
            ("[", "["),
            ("*", "a"),
            // The folder itself is `.`, and all goes with it.
            ("[!a]", "a"),
        ] {
            assert!(leaves_out(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.pyc", "a/b.py"),
            ("node_modules", "node_modules2"),
            ("./b", "a/b"),
            ("b/", "a/b"),
            ("\\*", "xy"),
            ("a", ""),
        ] {
            assert!(!leaves_out(pattern, path), "{pattern} {path}");
        }
        assert!(!Exclusions::new(&[]).leaves_out(b"a"));
    }
}
