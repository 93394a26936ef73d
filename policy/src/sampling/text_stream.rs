//! Text of tokens that arrive one by one.

use crate::Tokenizer;

/// Text of tokens that arrive one by one; a character whose bytes are spread over several tokens is
/// shown with the last of them.
///
/// All pieces together are what [`Tokenizer::decode`] makes of all tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextStream {
    ids: Vec<u32>,
    /// Tokens from here on are decoded together with new ones: what a tokenizer makes of a
    /// token may depend on the one before.
    window: usize,
    /// Tokens before this are shown.
    shown: usize,
}

impl TextStream {
    /// The text that `token` completes.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> String {
        self.ids.push(token);
        let piece = self.rest(tokenizer);
        if piece.is_empty() || piece.ends_with('\u{FFFD}') {
            return String::new();
        }
        self.window = self.shown;
        self.shown = self.ids.len();
        piece
    }

    /// What was held back: bytes that never became a character.
    pub(crate) fn finish(&mut self, tokenizer: &Tokenizer) -> String {
        let piece = self.rest(tokenizer);
        self.window = self.shown;
        self.shown = self.ids.len();
        piece
    }

    fn rest(&self, tokenizer: &Tokenizer) -> String {
        let before = tokenizer.decode(&self.ids[self.window..self.shown]);
        let whole = tokenizer.decode(&self.ids[self.window..]);
        whole.get(before.len()..).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TokenizerConfig;

    proptest! {
        #[test]
        fn pieces_make_the_whole(
            ids in prop::collection::vec(0_u32..300, 0..40),
            text in "\\PC{0,12}",
        ) {
            let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
            let tokenizer = Tokenizer::train(games, &TokenizerConfig::default()).unwrap();
            let mut tokens = tokenizer.encode(&text);
            tokens.extend(ids);
            let mut stream = TextStream::default();
            let mut pieces = String::new();
            for token in &tokens {
                pieces += &stream.push(&tokenizer, *token);
            }
            pieces += &stream.finish(&tokenizer);
            prop_assert_eq!(pieces, tokenizer.decode(&tokens));
        }
    }
}
