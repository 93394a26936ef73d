//! Texts that are control tokens where a template writes them.

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

/// The control tokens of a tokenizer, such as `<|im_end|>`.
#[derive(Debug, Clone, Default)]
pub struct ControlTokens {
    texts: Vec<String>,
    /// Finds every occurrence, those that overlap too.
    every: Option<AhoCorasick>,
    /// Finds the first, and the longest where several start together.
    first: Option<AhoCorasick>,
    /// What a control token may begin with and is none itself.
    beginnings: HashSet<String>,
    longest: usize,
}

impl ControlTokens {
    /// The control tokens written as `texts`; empty ones are ignored.
    ///
    /// # Errors
    ///
    /// What is wrong, when the texts are too many to be searched for.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return Ok(Self::default());
        }
        let build = |kind| {
            AhoCorasick::builder()
                .match_kind(kind)
                .start_kind(StartKind::Unanchored)
                .build(&texts)
                .map(Some)
                .map_err(|error| error.to_string())
        };
        let beginnings = texts
            .iter()
            .flat_map(|text| text.char_indices().skip(1).map(|(end, _)| text[..end].to_owned()));
        Ok(Self {
            every: build(MatchKind::Standard)?,
            first: build(MatchKind::LeftmostLongest)?,
            beginnings: beginnings.collect(),
            longest: texts.iter().map(String::len).max().unwrap_or(0),
            texts,
        })
    }

    /// The texts, in the order they were given.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The first control token within `range` of `text`, as its index and where it is; the longest
    /// one where several start together.
    pub fn find(&self, text: &str, range: Range<usize>) -> Option<(usize, Range<usize>)> {
        let input = Input::new(text).range(range).anchored(Anchored::No);
        let found = self.first.as_ref()?.find(input)?;
        Some((found.pattern().as_usize(), found.range()))
    }

    /// Where in `text` the first characters of control tokens end, ascending; those count that
    /// only begin here, at the end of the text.
    pub(super) fn openings(&self, text: &str) -> Vec<usize> {
        let Some(every) = &self.every else { return Vec::new() };
        let behind = |start: usize| start + text[start..].chars().next().map_or(0, char::len_utf8);
        let mut openings: Vec<usize> =
            every.find_overlapping_iter(text).map(|found| behind(found.start())).collect();
        let tail = (text.len().saturating_sub(self.longest)..text.len())
            .filter(|start| text.is_char_boundary(*start))
            .filter(|start| self.beginnings.contains(&text[*start..]));
        openings.extend(tail.map(behind));
        openings.sort_unstable();
        openings.dedup();
        openings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_tokens_are_found_whole_and_begun() {
        let texts = ["<|a|>", "<|ab|>", "|>x", "é!"].map(str::to_owned);
        let control = ControlTokens::new(texts).unwrap();
        assert_eq!(control.find("..<|ab|>", 0..8), Some((1, 2..8)));
        assert_eq!(control.find("<|a|>x", 0..6), Some((0, 0..5)));
        assert_eq!(control.find("<|a|>x", 1..6), Some((2, 3..6)));
        assert_eq!(control.find("<|a|>", 0..4), None);
        // Overlapping ones, and one that another string may complete.
        assert_eq!(control.openings("<|a|>x <"), [1, 4, 8]);
        assert_eq!(control.openings("é! é"), [2, 6]);
        assert_eq!(control.openings("a < b"), [0; 0]);
        let none = ControlTokens::new([]).unwrap();
        assert_eq!((none.find("<", 0..1), none.openings("<")), (None, vec![]));
    }
}
