//! Text that comes out while tokens come in.

use super::Tokenizer;

/// Turns tokens into text one by one.
///
/// No piece ends within a character; the pieces together are what decoding all tokens at once
/// gives.
///
/// ```
/// # use spar_text::{Tokenizer, TokenizerConfig};
/// # let tokenizer = Tokenizer::train([["a"]], &TokenizerConfig::default())?;
/// let mut stream = tokenizer.stream();
/// let mut text = String::new();
/// for id in tokenizer.encode("naïve 🙂") {
///     text += &stream.push(id);
/// }
/// text += &stream.finish();
/// assert_eq!(text, "naïve 🙂");
/// # Ok::<(), spar_text::TokenizerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    shows_control: bool,
    text: PartialText,
}

impl<'a> TextStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, shows_control: bool) -> Self {
        Self { tokenizer, shows_control, text: PartialText::default() }
    }

    /// Takes the next token and returns what text is certain now, which may be none.
    pub fn push(&mut self, id: u32) -> String {
        if !self.shows_control && self.tokenizer.is_control(id) {
            return String::new();
        }
        self.text.push_bytes(self.tokenizer, id)
    }

    /// Ends the text: returns U+FFFD where it ends within a character.
    pub fn finish(mut self) -> String {
        self.text.finish()
    }
}

/// The state of a [`TextStream`] apart from its tokenizer.
#[derive(Debug, Clone, Default)]
pub struct PartialText {
    /// Whether a byte has come.
    is_begun: bool,
    /// The beginning of a character.
    pending: Vec<u8>,
}

impl PartialText {
    /// The text that is certain with `id`; none for a control token.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> String {
        if tokenizer.is_control(id) { String::new() } else { self.push_bytes(tokenizer, id) }
    }

    /// What is pending; U+FFFD where it ends within a character.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }

    fn push_bytes(&mut self, tokenizer: &Tokenizer, id: u32) -> String {
        let bytes = tokenizer.token_bytes(id);
        let Some(first) = bytes.first() else { return String::new() };
        let drops_space = !self.is_begun && tokenizer.strips_space() && *first == b' ';
        self.is_begun = true;
        self.pending.extend_from_slice(&bytes[usize::from(drops_space)..]);
        self.take()
    }

    /// What is pending up to the last character, as `String::from_utf8_lossy` reads it.
    fn take(&mut self) -> String {
        let mut text = String::new();
        let mut start = 0;
        loop {
            match std::str::from_utf8(&self.pending[start..]) {
                Ok(rest) => {
                    text.push_str(rest);
                    self.pending.clear();
                    return text;
                }
                Err(error) => {
                    let valid = start + error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.pending[start..valid]));
                    let Some(invalid) = error.error_len() else {
                        self.pending.drain(..valid);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    start = valid + invalid;
                }
            }
        }
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
            let mut stream = PartialText::default();
            let mut pieces = String::new();
            for token in &tokens {
                pieces += &stream.push(&tokenizer, *token);
            }
            pieces += &stream.finish();
            prop_assert_eq!(pieces, tokenizer.decode(&tokens));
        }
    }
}
