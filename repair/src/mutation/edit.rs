use std::ops::Range;

use serde::{Deserialize, Serialize};

/// One span of a text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Bytes of the text, at the boundaries of letters.
    pub span: Range<usize>,
    /// What stands there afterwards.
    pub replacement: String,
}

/// Edits of one text, in its order, that share no byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Edits(Vec<Edit>);

impl Edits {
    /// Puts edits in order; absent where two of them overlap, or touch.
    pub fn new(mut edits: Vec<Edit>) -> Option<Self> {
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let apart = |pair: &[Edit]| pair[0].span.end < pair[1].span.start;
        edits.windows(2).all(apart).then_some(Self(edits))
    }

    /// The edits of both; absent where they overlap, or touch.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        Self::new(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The edits in the order of the text.
    pub fn as_slice(&self) -> &[Edit] {
        &self.0
    }

    /// The text behind the edits.
    ///
    /// # Panics
    ///
    /// If it is not the text that the edits were made for: a span is outside of it or inside of a letter.
    pub fn apply(&self, text: &str) -> String {
        let mut edited = String::with_capacity(text.len());
        let mut at = 0;
        for Edit { span, replacement } in &self.0 {
            edited.push_str(&text[at..span.start]);
            edited.push_str(replacement);
            at = span.end;
        }
        edited.push_str(&text[at..]);
        edited
    }

    /// The way back: applied to `self.apply(text)`, it gives `text`.
    ///
    /// # Panics
    ///
    /// As [`Edits::apply`].
    pub fn inverse(&self, text: &str) -> Self {
        let (mut inverse, mut removed, mut added) = (Vec::with_capacity(self.0.len()), 0, 0);
        for Edit { span, replacement } in &self.0 {
            let start = span.start - removed + added;
            let replaced = text[span.clone()].to_owned();
            inverse.push(Edit { span: start..start + replacement.len(), replacement: replaced });
            removed += span.len();
            added += replacement.len();
        }
        Self(inverse)
    }

    /// The way back of those among them that are also in `part`: applied to `self.apply(text)`, it undoes these alone.
    ///
    /// # Panics
    ///
    /// As [`Edits::apply`].
    pub fn inverse_of(&self, part: &Self, text: &str) -> Self {
        let all = self.0.iter().zip(self.inverse(text).0);
        Self(all.filter(|(edit, _)| part.0.contains(edit)).map(|(_, back)| back).collect())
    }

    /// The lines of `text` that the edits touch, from 1, each once.
    pub fn lines(&self, text: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        let (mut at, mut line) = (0, 1);
        for Edit { span, .. } in &self.0 {
            line += newlines(&text[at..span.start]);
            at = span.start;
            let last = line + newlines(&text[span.clone()]);
            lines.extend(line..=last);
        }
        lines.dedup();
        lines
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_that_overlap_or_touch_do_not_go_together() {
        let edit = |span| Edit { span, replacement: String::new() };
        assert!(Edits::new(vec![edit(3..5), edit(0..2)]).is_some());
        assert!(Edits::new(vec![edit(3..5), edit(4..6)]).is_none());
        assert!(Edits::new(vec![edit(3..5), edit(5..6)]).is_none());
        let one = Edits::new(vec![edit(3..5)]).unwrap();
        assert!(one.joined(&one).is_none());
        assert_eq!(one.joined(&Edits::new(vec![edit(0..1)]).unwrap()).unwrap().as_slice().len(), 2);
    }

    #[test]
    fn lines_are_those_that_an_edit_touches() {
        let edits = Edits::new(vec![
            Edit { span: 2..3, replacement: "x".into() },
            Edit { span: 4..7, replacement: String::new() },
        ]);
        assert_eq!(edits.unwrap().lines("a\nb\nc\nd\n"), [2, 3, 4]);
    }

    proptest! {
        #[test]
        fn the_way_back_gives_the_text(text in "[a-c\nä]{0,40}", cuts in prop::collection::vec((0usize..40, 0usize..6, "[x-z\n]{0,4}"), 0..5)) {
            let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = |number: usize| letters[number.min(letters.len() - 1)];
            let edits = cuts.into_iter().map(|(start, len, replacement)| Edit { span: at(start)..at(start + len), replacement });
            if let Some(edits) = Edits::new(edits.collect()) {
                let edited = edits.apply(&text);
                prop_assert_eq!(edits.inverse(&text).apply(&edited), text.as_str());
                // One after the other comes to the same.
                for number in 0..edits.as_slice().len() {
                    let rest = Edits(edits.as_slice()[number..].to_vec());
                    let next = Edits(edits.as_slice()[number + 1..].to_vec());
                    let first = Edits(vec![edits.as_slice()[number].clone()]);
                    let undone = rest.inverse_of(&first, &text).apply(&rest.apply(&text));
                    prop_assert_eq!(undone, next.apply(&text));
                }
            }
        }
    }
}
