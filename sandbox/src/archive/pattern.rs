//! Patterns of what is left out of an archive.

/// What is left out, as GNU tar reads `--exclude` where it packs `.`: a pattern names whole parts of `./a/b` from the
/// beginning or behind any `/`, `*` and `?` stand for `/` as well, and what lies below a folder goes with it.
#[derive(Debug, Clone)]
pub(super) struct Exclusions(Vec<Pattern>);

/// A pattern as `fnmatch` reads it without flags.
#[derive(Debug, Clone)]
struct Pattern(Vec<Token>);

#[derive(Debug, Clone)]
enum Token {
    /// `*`.
    Any,
    /// One of the bytes that are marked.
    One(Box<[bool; 256]>),
}

impl Exclusions {
    pub(super) fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().map(|pattern| Pattern::new(pattern.as_bytes())).collect())
    }

    /// Whether a path within the folder, as `a/b`, is left out.
    pub(super) fn leaves_out(&self, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let named = [b"./", path].concat();
        self.0.iter().any(|pattern| pattern.names(&named))
    }
}

impl Pattern {
    fn new(pattern: &[u8]) -> Self {
        let (mut tokens, mut at) = (Vec::new(), 0);
        while at < pattern.len() {
            let rest = &pattern[at..];
            if rest[0] == b'*' {
                tokens.push(Token::Any);
                at += 1;
                continue;
            }
            let mut bytes = Box::new([false; 256]);
            for byte in 0..=u8::MAX {
                bytes[usize::from(byte)] = is_one_of(rest, byte);
            }
            tokens.push(Token::One(bytes));
            at += match rest {
                [b'\\', _, ..] => 2,
                [b'[', inside @ ..] => set(inside, 0).map_or(1, |(_, length)| 1 + length),
                _ => 1,
            };
        }
        Self(tokens)
    }

    /// Whether it matches any run of whole parts.
    fn names(&self, path: &[u8]) -> bool {
        self.search(path).0
    }

    /// Whether it does, all runs being followed at once in one pass over the path; and how often a token was looked at.
    fn search(&self, path: &[u8]) -> (bool, usize) {
        let Self(tokens) = self;
        let mut num_looks = 0;
        // Whether some run up to here matches so many of the tokens.
        let mut reached = vec![false; tokens.len() + 1];
        for (at, &byte) in path.iter().enumerate() {
            if byte == b'/' && reached[tokens.len()] {
                return (true, num_looks);
            }
            if at == 0 || path[at - 1] == b'/' {
                reached[0] = true;
                pass_over(tokens, &mut reached);
            }
            for count in (0..=tokens.len()).rev() {
                num_looks += 1;
                let stays = matches!(tokens.get(count), Some(Token::Any)) && reached[count];
                let comes = match count.checked_sub(1) {
                    Some(before) => {
                        let is_it = matches!(&tokens[before], Token::One(bytes) if bytes[usize::from(byte)]);
                        is_it && reached[before]
                    }
                    None => false,
                };
                reached[count] = stays || comes;
            }
            pass_over(tokens, &mut reached);
        }
        (reached[tokens.len()], num_looks)
    }
}

/// Each `*` may stand for nothing.
fn pass_over(tokens: &[Token], reached: &mut [bool]) {
    for (count, token) in tokens.iter().enumerate() {
        if matches!(token, Token::Any) && reached[count] {
            reached[count + 1] = true;
        }
    }
}

/// Whether the beginning of a pattern, which is no `*`, stands for this byte.
fn is_one_of(pattern: &[u8], byte: u8) -> bool {
    match pattern {
        [b'?', ..] => true,
        [b'\\', escaped, ..] => *escaped == byte,
        // Without an end it is itself.
        [b'[', rest @ ..] => set(rest, byte).map_or(byte == b'[', |(holds, _)| holds),
        [plain, ..] => *plain == byte,
        [] => false,
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
            ("a*", "x/ab/c"),
            ("a*b*", "x/a/c/b"),
            ("**c", "x/abc/d"),
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
            ("a*b", "x/abc"),
            ("", "a"),
            ("a", ""),
        ] {
            assert!(!leaves_out(pattern, path), "{pattern} {path}");
        }
        assert!(!Exclusions::new(&[]).leaves_out(b"a"));
    }

    #[test]
    fn deep_paths_take_one_pass() {
        let path = "a/".repeat(2000) + "b";
        for pattern in ["*c", "a*c*d", "*a*a*c"] {
            let (is_named, num_looks) = Pattern::new(pattern.as_bytes()).search(path.as_bytes());
            assert!(!is_named, "{pattern}");
            // Each byte is held against each token once, wherever a run may begin.
            assert_eq!(num_looks, path.len() * (pattern.len() + 1), "{pattern}");
        }
        assert!(Exclusions::new(&["a/b".to_owned()]).leaves_out(path.as_bytes()));
    }
}
