//! Finds secrets and puts marks in their place.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::encodings::forms;
use super::rules::Extent;
use super::{SecretRule, StreamRedactor};

/// The fewest bytes of a secret that is looked for: what is shorter stands by chance in other text.
pub const MIN_SECRET_BYTES: usize = 8;
/// The fewest bytes of a secret that are taken for a part of it where a text is cut.
pub const MIN_CUT_BYTES: usize = 4;

/// Finds secrets in text and puts `[redacted NAME]` in their place.
///
/// It knows values, in the forms that programs write them in (as they are, in JSON, addresses, base64 and hexadecimal,
/// each line of one with several), and [rules](SecretRule) of what looks like a secret. Where several overlap, all that
/// they cover together goes. Looking through text costs one pass over it, however many secrets there are.
#[derive(Clone)]
pub struct Redactor {
    names: Vec<Arc<str>>,
    /// Every form of every secret, then the prefixes of the rules.
    finder: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
    /// The forms by their first byte, to tell what may go on behind the end of a piece.
    by_first_byte: Vec<Vec<Arc<[u8]>>>,
    /// Bytes of the longest of them.
    longest: usize,
}

/// What the finder finds.
#[derive(Debug, Clone)]
enum Pattern {
    /// A form of the secret of this name.
    Form { name: usize },
    /// The beginning of what a rule decides on.
    Prefix { rule: SecretRule, name: usize, len: usize },
}

/// A place where a secret stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whose name its mark has.
    pub(super) name: usize,
}

/// What was found in a piece of text.
pub(super) struct Findings {
    /// From first to last; none touches another.
    pub(super) found: Vec<Found>,
    /// Where something begins of which only what comes behind the piece tells whether it is a secret.
    pub(super) open: usize,
}

impl Redactor {
    /// For these secrets, each with its name, and these rules. Secrets of fewer than [`MIN_SECRET_BYTES`] are not looked
    /// for.
    pub fn new<'a>(
        secrets: impl IntoIterator<Item = (&'a str, &'a str)>,
        rules: &[SecretRule],
    ) -> Self {
        let (mut names, mut patterns, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_first_byte: Vec<Vec<Arc<[u8]>>> = vec![Vec::new(); 256];
        for (name, secret) in secrets {
            if secret.len() < MIN_SECRET_BYTES {
                continue;
            }
            for form in forms(secret) {
                by_first_byte[usize::from(form[0])].push(form.as_slice().into());
                words.push(form);
                patterns.push(Pattern::Form { name: names.len() });
            }
            names.push(plain(name));
        }
        for &rule in rules {
            for prefix in rule.prefixes() {
                let bytes = prefix.as_bytes();
                by_first_byte[usize::from(bytes[0])].push(bytes.into());
                words.push(bytes.to_vec());
                patterns.push(Pattern::Prefix { rule, name: names.len(), len: bytes.len() });
            }
            names.push(rule.name().into());
        }
        let build = || {
            let finder = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&words);
            finder.expect("a few thousand words of a few kilobytes have room in a finder")
        };
        let finder = (!words.is_empty()).then(build);
        let longest = words.iter().map(Vec::len).max().unwrap_or(0);
        Self { names, finder, patterns, by_first_byte, longest }
    }

    /// Whether it looks for nothing.
    pub fn is_idle(&self) -> bool {
        self.finder.is_none()
    }

    /// The text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Secrets and what rules find are text, so that no character is cut.
            Cow::Owned(bytes) => Cow::Owned(
                String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
        }
    }

    /// The bytes without secrets.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.may_find(bytes) {
            return Cow::Borrowed(bytes);
        }
        let findings = self.find(bytes, true, None);
        if findings.found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut written = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for found in findings.found {
            written.extend_from_slice(&bytes[from..found.start]);
            written.extend(self.mark(found.name).bytes());
            from = found.end;
        }
        written.extend_from_slice(&bytes[from..]);
        Cow::Owned(written)
    }

    /// Takes the secrets out of a text; whether there were any.
    pub fn clean(&self, text: &mut String) -> bool {
        let cleaned = match self.text(text) {
            Cow::Borrowed(_) => return false,
            Cow::Owned(cleaned) => cleaned,
        };
        *text = cleaned;
        true
    }

    /// Whether a secret stands in these bytes.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.may_find(bytes) && !self.find(bytes, true, None).found.is_empty()
    }

    /// Where the end of these bytes cuts off what may be a secret, of which at least [`MIN_CUT_BYTES`] stand there; their
    /// length where it does not.
    pub fn cut_at_end(&self, bytes: &[u8]) -> usize {
        let until = (bytes.len() + 1).saturating_sub(MIN_CUT_BYTES);
        self.first_begun(bytes, until).unwrap_or(bytes.len())
    }

    /// Where what may be a secret ends that the beginning of these bytes cuts off, of which at least [`MIN_CUT_BYTES`]
    /// stand there; 0 where it does not.
    pub fn cut_at_start(&self, bytes: &[u8]) -> usize {
        let forms = || self.by_first_byte.iter().flatten();
        let is_rest =
            |len: &usize| forms().any(|form| form.len() > *len && form.ends_with(&bytes[..*len]));
        let longest = self.longest.min(bytes.len());
        (MIN_CUT_BYTES..=longest).rev().find(is_rest).unwrap_or(0)
    }

    /// The same for text that comes in pieces, wherever it is cut.
    pub fn stream(self: &Arc<Self>) -> StreamRedactor {
        StreamRedactor::new(Arc::clone(self))
    }

    /// What stands in the place of a secret.
    pub(super) fn mark(&self, name: usize) -> String {
        format!("[redacted {}]", self.names[name])
    }

    /// Whether anything of what is looked for stands there, a rule's prefix maybe.
    fn may_find(&self, bytes: &[u8]) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(bytes))
    }

    /// All that is found in `bytes`, behind which nothing comes where `is_end`. `before` is a secret that has begun
    /// before them, and where in them it ends.
    pub(super) fn find(&self, bytes: &[u8], is_end: bool, before: Option<Found>) -> Findings {
        let Some(finder) = &self.finder else {
            return Findings { found: Vec::new(), open: bytes.len() };
        };
        let (mut all, mut open) = (Vec::from_iter(before), bytes.len());
        for place in finder.find_overlapping_iter(bytes) {
            let start = place.start();
            match self.patterns[place.pattern().as_usize()] {
                Pattern::Form { name } => all.push(Found { start, end: place.end(), name }),
                Pattern::Prefix { rule, name, len } => {
                    match rule.extent(&bytes[start..], len, is_end) {
                        Extent::Secret { from, to } => {
                            all.push(Found { start: start + from, end: start + to, name });
                        }
                        Extent::Open => open = open.min(start),
                        Extent::Other => {}
                    }
                }
            }
        }
        if !is_end {
            open = self.first_begun(bytes, open).unwrap_or(open);
        }
        all.sort_by_key(|found| (found.start, found.name, found.end));
        let mut found: Vec<Found> = Vec::with_capacity(all.len());
        for next in all {
            match found.last_mut() {
                Some(last) if next.start < last.end => last.end = last.end.max(next.end),
                _ => found.push(next),
            }
        }
        Findings { found, open }
    }

    /// Where the first form or prefix begins, before `until`, that the end of these bytes cuts off.
    fn first_begun(&self, bytes: &[u8], until: usize) -> Option<usize> {
        let from = (bytes.len() + 1).saturating_sub(self.longest);
        (from..until).find(|start| {
            let rest = &bytes[*start..];
            let forms = &self.by_first_byte[usize::from(rest[0])];
            forms.iter().any(|form| form.len() > rest.len() && form.starts_with(rest))
        })
    }
}

impl fmt::Debug for Redactor {
    /// Names alone: values are secret here as well.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redactor").field(&self.names).finish()
    }
}

/// A name of letters, digits, `_`, `-` and `.`, which need no escapes anywhere.
fn plain(name: &str) -> Arc<str> {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.chars().map(|c| if is_plain(&c) { c } else { '_' }).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_goes_together() {
        let redactor =
            Redactor::new([("A", "abcdefgh"), ("B", "fghijklm"), ("C", "cdefghij")], &[]);
        assert_eq!(redactor.text("-abcdefghijklm-abcdefgh-"), "-[redacted A]-[redacted A]-");
        assert_eq!(redactor.text("-fghijklm-"), "-[redacted B]-");
        assert_eq!(redactor.text("abcdefg hijklm"), "abcdefg hijklm");
    }

    #[test]
    fn parts_of_secrets_at_the_edges_of_a_cut_are_found() {
        let redactor = Redactor::new([("A", "abcdefgh")], &[]);
        let at_end = |text: &str| redactor.cut_at_end(text.as_bytes());
        assert_eq!(
            (at_end("--abcd"), at_end("--abc"), at_end("abcdefg"), at_end("")),
            (2, 5, 0, 0)
        );
        let at_start = |text: &str| redactor.cut_at_start(text.as_bytes());
        assert_eq!(
            (at_start("efgh--"), at_start("fgh--"), at_start("bcdefgh"), at_start("")),
            (4, 0, 7, 0)
        );
    }

    #[test]
    fn short_values_are_not_looked_for_and_names_need_no_escapes() {
        let redactor = Redactor::new([("SHORT", "EMPTY"), ("a \"b\"", "12345678")], &[]);
        assert_eq!(redactor.text("EMPTY 12345678"), "EMPTY [redacted a__b_]");
        assert!(Redactor::new([("SHORT", "EMPTY")], &[]).is_idle());
        assert!(!format!("{redactor:?}").contains("12345678"));
    }

    #[test]
    fn rules_find_what_looks_like_a_secret_and_nothing_else() {
        let redactor = Redactor::new([], &SecretRule::ALL);
        let key = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for (text, cleaned) in [
            (format!("key sk-{key}."), "key [redacted api_key].".to_owned()),
            (format!("ghp_{key}"), "[redacted github]".to_owned()),
            ("AKIAIOSFODNN7EXAMPLE!".to_owned(), "[redacted aws]!".to_owned()),
            (
                format!("Authorization: Bearer {key}\n"),
                "Authorization: Bearer [redacted bearer]\n".to_owned(),
            ),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nb"
                    .to_owned(),
                "a\n[redacted private_key]\nb".to_owned(),
            ),
            (
                "-----BEGIN PRIVATE KEY-----\nMIIB, and then it was cut off".to_owned(),
                "[redacted private_key]".to_owned(),
            ),
        ] {
            assert_eq!(redactor.text(&text), cleaned);
        }
        for text in [
            "a task-force, risk-averse; sk-learn; the bearer of a ring, Basic income for everybody",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "ASIA is a continent, AKIAIOS is none, hf_hub_download, ghp_short",
        ] {
            assert_eq!(redactor.text(text), text);
        }
    }
}
