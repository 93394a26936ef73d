//! Strings that end an answer.

use std::sync::Arc;

/// Strings that end an answer, looked for while text arrives in pieces.
///
/// The answer ends before the string that is complete first; of those complete at the same
/// character, before the longest. So what is shown does not depend on where pieces end, and no
/// part of a string that ended the answer was ever shown.
#[derive(Debug, Clone, Default)]
pub struct StopStrings {
    strings: Arc<[Arc<str>]>,
    /// Text that may be the beginning of a string.
    held: String,
}

impl StopStrings {
    /// Looks for `strings`; empty ones are left out.
    pub fn new(strings: &[Arc<str>]) -> Self {
        let strings = strings.iter().filter(|string| !string.is_empty()).cloned().collect();
        Self { strings, held: String::new() }
    }

    /// Takes the next piece, appends to `out` what can be shown, and returns the string that ended
    /// the answer, if one did.
    pub fn push(&mut self, piece: &str, out: &mut String) -> Option<Arc<str>> {
        if self.strings.is_empty() {
            out.push_str(piece);
            return None;
        }
        self.held.push_str(piece);
        let found = self.strings.iter().filter_map(|string| {
            let start = self.held.find(&**string)?;
            Some((start + string.len(), start, string))
        });
        if let Some((_, start, string)) = found.min_by_key(|(end, start, _)| (*end, *start)) {
            out.push_str(&self.held[..start]);
            self.held.clear();
            return Some(string.clone());
        }
        let may_begin = |start: &usize| {
            let rest = &self.held[*start..];
            self.strings.iter().any(|string| string.starts_with(rest))
        };
        let longest = self.strings.iter().map(|string| string.len()).max().unwrap_or_default();
        let first = self.held.len().saturating_sub(longest);
        let keep = (first..self.held.len())
            .filter(|start| self.held.is_char_boundary(*start))
            .find(may_begin)
            .unwrap_or(self.held.len());
        out.push_str(&self.held[..keep]);
        self.held.drain(..keep);
        None
    }

    /// What was held back, where the answer ended otherwise.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(strings: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let strings: Vec<Arc<str>> = strings.iter().map(|string| Arc::from(*string)).collect();
        let mut stop = StopStrings::new(&strings);
        let mut out = String::new();
        for piece in pieces {
            if let Some(string) = stop.push(piece, &mut out) {
                return (out, Some(string.to_string()));
            }
        }
        stop.finish(&mut out);
        (out, None)
    }

    #[test]
    fn a_string_across_pieces_is_found_and_not_shown() {
        let ended = |out: &str, by: &str| (out.to_owned(), Some(by.to_owned()));
        assert_eq!(run(&["END"], &["abE", "N", "D tail"]), ended("ab", "END"));
        assert_eq!(run(&["END"], &["abE", "Nx"]), ("abENx".to_owned(), None));
        assert_eq!(run(&["b", "xabc"], &["xabc"]), ended("xa", "b"));
        assert_eq!(run(&["bc", "abc"], &["ab", "c"]), ended("", "abc"));
        assert_eq!(run(&["", "ä"], &["bä"]), ended("b", "ä"));
    }

    proptest! {
        #[test]
        fn where_pieces_end_changes_nothing(
            text in "[abé]{0,24}",
            strings in prop::collection::vec("[abé]{1,4}", 0..4),
            cuts in prop::collection::vec(0_usize..24, 0..8),
        ) {
            let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
            let characters: Vec<String> = text.chars().map(String::from).collect();
            let one_by_one: Vec<&str> = characters.iter().map(String::as_str).collect();
            let mut places: Vec<usize> =
                cuts.into_iter().map(|cut| cut.min(characters.len())).collect();
            places.extend([0, characters.len()]);
            places.sort_unstable();
            let pieces: Vec<String> =
                places.windows(2).map(|pair| characters[pair[0]..pair[1]].concat()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let found = run(&strings, &pieces);
            prop_assert_eq!(&found, &run(&strings, &one_by_one));
            let whole = match &found.1 {
                Some(by) => format!("{}{by}", found.0),
                None => found.0.clone(),
            };
            prop_assert!(text.starts_with(&whole));
            for string in strings {
                prop_assert!(!found.0.contains(string), "{} in {}", string, found.0);
            }
        }
    }
}
