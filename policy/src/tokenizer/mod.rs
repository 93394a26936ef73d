//! Text to tokens and back.

mod bytes;
mod file;
mod pieces;
mod train;

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::{Message, Role};
use tokenizers::{Model, ModelWrapper};

use self::pieces::{Kind, kind_at, last_kind, piece_end, pieces};
use crate::TokenizerError;
use crate::atomic_file::write_atomically;

/// Name of the file in a model's folder.
const FILE: &str = "tokenizer.json";
const CONFIG_FILE: &str = "tokenizer_config.json";

/// How a tokenizer is made from texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenizerConfig {
    /// Tokens there may be at the most, the 256 bytes and 5 marks included. Default 768.
    pub vocab_size: usize,
    /// Phrases that may become single tokens. Default 32.
    pub max_phrases: usize,
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        Self { vocab_size: 768, max_phrases: 32 }
    }
}

/// Turns text into tokens and back without loss.
///
/// Text is cut into words with the space before them, groups of up to three digits, punctuation
/// and space. A piece in the vocabulary is one token; others are put together from parts, in the
/// last resort from bytes, so that every text has an encoding. A space is thought before every
/// text: its first word is the token that the word is in the middle. *Phrases*, sequences of words
/// that nearly all games share, are single tokens too.
///
/// The content of messages never becomes a mark: `<|end|>` in an observation is five characters
/// and more.
///
/// Besides tokenizers made here, those with the marks of ChatML (`<|im_start|>`, `<|im_end|>`)
/// can be opened. Their messages are laid out as `<|im_start|>user\n...<|im_end|>\n`, with
/// `<|im_start|>assistant\n` behind the user's; the line break behind the policy's own
/// `<|im_end|>` is left out, since a message's tokens do not depend on its neighbours.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    /// What `tokenizer.json` holds.
    file: Value,
    inner: tokenizers::Tokenizer,
    /// Text of every token; empty for marks.
    texts: Vec<Box<[u8]>>,
    marks: Marks,
    /// The vocabulary as text, for tokenizers made here.
    lexicon: Option<Lexicon>,
}

/// What stands around the content of messages.
#[derive(Debug, Clone)]
struct Marks {
    before_system: Vec<u32>,
    after_system: Vec<u32>,
    before_user: Vec<u32>,
    /// Opens the policy's turn.
    after_user: Vec<u32>,
    end: u32,
}

/// Tokens that are found without merging.
#[derive(Debug, Clone)]
struct Lexicon {
    tokens: HashMap<Box<str>, u32>,
    /// Phrases by their first two bytes, longest first.
    phrases: HashMap<[u8; 2], Vec<Phrase>>,
}

#[derive(Debug, Clone)]
struct Phrase {
    text: Box<str>,
    token: u32,
    last: Kind,
}

impl Tokenizer {
    /// Finds a vocabulary in games, each a list of its messages.
    ///
    /// Words are kept by frequency. Phrases consist of words that at least nine of ten games have
    /// in common, and occur in every other game on average; numbers, and words that a number
    /// follows anywhere (`desk 2`), are in none. With fewer than ten games there are no phrases.
    /// Equal games give an equal tokenizer.
    ///
    /// # Errors
    ///
    /// [`TokenizerError::VocabularyTooSmall`].
    pub fn train<'a, G>(
        games: impl IntoIterator<Item = G>,
        config: &TokenizerConfig,
    ) -> Result<Self, TokenizerError>
    where
        G: IntoIterator<Item = &'a str>,
    {
        let least = 256 + file::MARKS.len();
        if config.vocab_size < least {
            return Err(TokenizerError::VocabularyTooSmall { found: config.vocab_size, least });
        }
        let prefixed = |text: &str| format!(" {text}");
        let games: Vec<Vec<String>> =
            games.into_iter().map(|game| game.into_iter().map(prefixed).collect()).collect();
        let size = config.vocab_size - file::MARKS.len();
        let vocabulary = train::vocabulary(&games, size, config.max_phrases);
        Self::from_value(file::tokenizer_json(&vocabulary), Path::new(FILE))
    }

    /// Reads `tokenizer.json` in `folder`.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it is no tokenizer that this crate can use.
    pub fn load(folder: &Path) -> Result<Self, TokenizerError> {
        let path = folder.join(FILE);
        let bytes = std::fs::read(&path)
            .map_err(|source| TokenizerError::Io { path: path.clone(), source })?;
        let file = serde_json::from_slice(&bytes).map_err(|error| TokenizerError::Invalid {
            path: path.clone(),
            detail: error.to_string(),
        })?;
        Self::from_value(file, &path)
    }

    /// Writes `tokenizer.json` and `tokenizer_config.json` into `folder`, which exists.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), TokenizerError> {
        let config = match self.lexicon {
            Some(_) => file::tokenizer_config_json(),
            None => file::chat_ml_config_json(),
        };
        for (name, value) in [(FILE, &self.file), (CONFIG_FILE, &config)] {
            let path = folder.join(name);
            let text = format!("{value:#}\n");
            write_atomically(&path, text.as_bytes())
                .map_err(|source| TokenizerError::Io { path, source })?;
        }
        Ok(())
    }

    /// The tokens of `text`; marks in it are ordinary characters.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.encode_into(text, &mut ids);
        ids
    }

    /// The text of `ids`, marks left out; bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let texts = ids.iter().filter_map(|id| self.texts.get(*id as usize));
        let bytes: Vec<u8> = texts.flat_map(|text| text.iter().copied()).collect();
        let bytes = match (&self.lexicon, bytes.split_first()) {
            (Some(_), Some((b' ', rest))) => rest,
            _ => &bytes,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The tokens of a message with the marks of its role.
    ///
    /// Behind a user's message comes the mark that opens the policy's turn, behind the policy's
    /// own the one that ends it.
    pub fn encode_message(&self, message: &Message) -> Vec<u32> {
        let end = [self.marks.end];
        let (before, after): (&[u32], &[u32]) = match message.role {
            Role::System => (&self.marks.before_system, &self.marks.after_system),
            Role::User => (&self.marks.before_user, &self.marks.after_user),
            Role::Assistant => (&[], &end),
        };
        let mut ids = before.to_vec();
        self.encode_into(&message.content, &mut ids);
        ids.extend_from_slice(after);
        ids
    }

    /// The tokens of a turn of the policy that says `text`, with its end.
    pub fn choice_ids(&self, text: &str) -> Vec<u32> {
        let mut ids = self.encode(text);
        ids.push(self.marks.end);
        ids
    }

    /// The token that ends a turn of the policy.
    pub fn end_of_turn(&self) -> u32 {
        self.marks.end
    }

    /// Tokens there are; ids are below.
    pub fn vocab_size(&self) -> usize {
        self.texts.len()
    }

    /// The tokens that stand for several words, as text.
    pub fn phrases(&self) -> impl Iterator<Item = &str> {
        let lexicon = self.lexicon.iter().flat_map(|lexicon| lexicon.phrases.values().flatten());
        lexicon.map(|phrase| &*phrase.text)
    }

    fn from_value(file: Value, path: &Path) -> Result<Self, TokenizerError> {
        let invalid = |detail: String| TokenizerError::Invalid { path: path.to_owned(), detail };
        let mut inner = tokenizers::Tokenizer::from_bytes(file.to_string())
            .map_err(|error| invalid(error.to_string()))?;
        inner.set_encode_special_tokens(true);
        let ModelWrapper::BPE(model) = inner.get_model() else {
            return Err(invalid("its model is not BPE".to_owned()));
        };

        // Text of every token; added ones are marks.
        let vocabulary = model.get_vocab();
        let added = inner.get_added_tokens_decoder();
        let ids = vocabulary.values().chain(added.keys());
        let size = ids.max().map_or(0, |id| *id as usize + 1);
        // Ids may have gaps, but a file of a few bytes must not fill the memory.
        if size > 2 * (vocabulary.len() + added.len()) {
            return Err(invalid(format!("its token ids reach {size}, with wide gaps")));
        }
        let mut texts: Vec<Box<[u8]>> = vec![Box::default(); size];
        for (token, id) in &vocabulary {
            if !added.contains_key(id) {
                let bytes = bytes::from_characters(token).ok_or_else(|| {
                    invalid(format!("token {id} `{token}` is not written as bytes"))
                })?;
                texts[*id as usize] = bytes.into();
            }
        }
        for (id, token) in added.iter().filter(|(_, token)| !token.special) {
            texts[*id as usize] = token.content.as_bytes().into();
        }

        let lexicon = Lexicon::new(&texts);
        let mut phrases: Vec<String> =
            lexicon.phrases.values().flatten().map(|phrase| phrase.text.to_string()).collect();
        phrases.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        let has_bytes =
            (0..=255).all(|byte| vocabulary.contains_key(&*bytes::character(byte).to_string()));
        let lexicon = (has_bytes && file::is_ours(&file, &phrases)).then_some(lexicon);
        let marks = if lexicon.is_some() { Marks::own(&inner) } else { Marks::chat_ml(&inner) };
        let marks = marks.ok_or_else(|| TokenizerError::NoMarks {
            path: path.to_owned(),
            own: file::MARKS.join(" "),
            chat_ml: "<|im_start|> <|im_end|>".to_owned(),
        })?;
        Ok(Self { file, inner, texts, marks, lexicon })
    }

    fn encode_into(&self, text: &str, ids: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        let Some(lexicon) = &self.lexicon else { return self.encode_with_crate(text, ids) };
        let text = format!(" {text}");
        let mut start = 0;
        while start < text.len() {
            if let Some(phrase) = lexicon.phrase_at(&text, start) {
                ids.push(phrase.token);
                start += phrase.text.len();
                continue;
            }
            let end = piece_end(&text, start);
            let piece = &text[start..end];
            start = end;
            match lexicon.tokens.get(piece) {
                Some(token) => ids.push(*token),
                None => self.merge(piece, ids),
            }
        }
    }

    /// Puts a piece together from parts.
    fn merge(&self, piece: &str, ids: &mut Vec<u32>) {
        let characters = bytes::to_characters(piece);
        let tokens = self.inner.get_model().tokenize(&characters);
        let tokens = tokens.expect("every byte is in the vocabulary, so merging cannot fail");
        ids.extend(tokens.iter().map(|token| token.id));
    }

    /// Encodes with foreign rules. Where these fail, as backtracking expressions do on overlong
    /// texts, the halves are encoded apart.
    fn encode_with_crate(&self, text: &str, ids: &mut Vec<u32>) {
        if let Ok(encoding) = self.inner.encode_fast(text, false) {
            ids.extend_from_slice(encoding.get_ids());
            return;
        }
        let middle = (0..=text.len() / 2).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        if middle > 0 {
            self.encode_with_crate(&text[..middle], ids);
            self.encode_with_crate(&text[middle..], ids);
        }
    }
}

impl Lexicon {
    fn new(texts: &[Box<[u8]>]) -> Self {
        let mut lexicon = Self { tokens: HashMap::new(), phrases: HashMap::new() };
        for (token, bytes) in (0..).zip(texts) {
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            match pieces(text).take(2).count() {
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
    fn phrase_at(&self, text: &str, start: usize) -> Option<&Phrase> {
        let rest = &text.as_bytes()[start..];
        let key = [*rest.first()?, *rest.get(1)?];
        self.phrases.get(&key)?.iter().find(|phrase| {
            let ends = || kind_at(text, start + phrase.text.len());
            rest.starts_with(phrase.text.as_bytes())
                && ends().is_none_or(|(kind, _)| kind != phrase.last)
        })
    }
}

impl Marks {
    fn own(inner: &tokenizers::Tokenizer) -> Option<Self> {
        let special = inner.get_added_tokens_decoder();
        let mark = |mark: &str| inner.token_to_id(mark).filter(|id| special.contains_key(id));
        Some(Self {
            before_system: vec![mark(file::SYSTEM)?],
            after_system: Vec::new(),
            before_user: vec![mark(file::USER)?],
            after_user: vec![mark(file::ASSISTANT)?],
            end: mark(file::END)?,
        })
    }

    fn chat_ml(inner: &tokenizers::Tokenizer) -> Option<Self> {
        let special = inner.get_added_tokens_decoder();
        let mark = |mark: &str| inner.token_to_id(mark).filter(|id| special.contains_key(id));
        let (start, end) = (mark("<|im_start|>")?, mark("<|im_end|>")?);
        let text = |text: &str| Some(inner.encode_fast(text, false).ok()?.get_ids().to_vec());
        let open = |role: &str| Some([vec![start], text(&format!("{role}\n"))?].concat());
        let after_system = [vec![end], text("\n")?].concat();
        Some(Self {
            before_system: open("system")?,
            before_user: open("user")?,
            after_user: [after_system.clone(), open("assistant")?].concat(),
            after_system,
            end,
        })
    }
}

#[cfg(test)]
mod tests;
