//! Tokens that are found without merging.

use std::collections::HashMap;

use super::pieces::{Kind, Spaces, kind_at, last_kind, pieces};

/// Tokens that are found without merging.
#[derive(Debug, Clone)]
pub(super) struct Lexicon {
    pub(super) spaces: Spaces,
    pub(super) tokens: HashMap<Box<str>, u32>,
    /// Phrases by their first two bytes, longest first.
    pub(super) phrases: HashMap<[u8; 2], Vec<Phrase>>,
}

#[derive(Debug, Clone)]
pub(super) struct Phrase {
    pub(super) text: Box<str>,
    pub(super) token: u32,
    last: Kind,
}

impl Lexicon {
    /// The tokens that are pieces and phrases, by their texts; control tokens are neither.
    pub(super) fn new(
        texts: &[Box<[u8]>],
        is_control: impl Fn(u32) -> bool,
        spaces: Spaces,
    ) -> Self {
        let mut lexicon = Self { spaces, tokens: HashMap::new(), phrases: HashMap::new() };
        for (token, bytes) in (0..).zip(texts).filter(|(token, _)| !is_control(*token)) {
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            match pieces(text, spaces).take(2).count() {
                0 => {}
                1 => {
                    lexicon.tokens.insert(text.into(), token);
                }
                _ => {
                    let key = [bytes[0], bytes[1]];
                    let phrase = Phrase { text: text.into(), token, last: last_kind(text) };
                    lexicon.phrases.entry(key).or_default().push(phrase);
                }
            }
        }
        for phrases in lexicon.phrases.values_mut() {
            phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.text.len()));
        }
        lexicon
    }

    /// The longest phrase that starts at `start` and ends where a piece does.
    pub(super) fn phrase_at(&self, text: &str, start: usize) -> Option<&Phrase> {
        let rest = &text.as_bytes()[start..];
        let key = [*rest.first()?, *rest.get(1)?];
        self.phrases.get(&key)?.iter().find(|phrase| {
            let ends = || kind_at(text, start + phrase.text.len());
            rest.starts_with(phrase.text.as_bytes())
                && ends().is_none_or(|(kind, _)| kind != phrase.last)
        })
    }
}
