//! Text that comes out while tokens come in.

use super::Tokenizer;

/// Turns tokens into text one by one.
///
/// No piece ends within a character; the pieces together are what decoding all tokens at once
/// gives.
///
/// ```
/// # use spar_policy::{Tokenizer, TokenizerConfig};
/// # let tokenizer = Tokenizer::train([["a"]], &TokenizerConfig::default())?;
/// let mut stream = tokenizer.stream();
/// let mut text = String::new();
/// for id in tokenizer.encode("naïve 🙂") {
///     text += &stream.push(id);
/// }
/// text += &stream.finish();
/// assert_eq!(text, "naïve 🙂");
/// # Ok::<(), spar_policy::TokenizerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    shows_control: bool,
    /// Whether no byte has come yet.
    is_start: bool,
    /// The beginning of a character.
    pending: Vec<u8>,
}

impl<'a> TextStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, shows_control: bool) -> Self {
        Self { tokenizer, shows_control, is_start: true, pending: Vec::new() }
    }

    /// Takes the next token and returns what text is certain now, which may be none.
    pub fn push(&mut self, id: u32) -> String {
        if !self.shows_control && self.tokenizer.is_control(id) {
            return String::new();
        }
        let bytes = self.tokenizer.token_bytes(id);
        let Some(first) = bytes.first() else { return String::new() };
        let drops_space = self.is_start && self.tokenizer.strips_space() && *first == b' ';
        self.is_start = false;
        self.pending.extend_from_slice(&bytes[usize::from(drops_space)..]);
        self.take()
    }

    /// Ends the text: returns U+FFFD where it ends within a character.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
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
