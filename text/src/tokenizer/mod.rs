//! Text to tokens and back.

mod bytes;
mod chat;
mod conversation;
mod file;
mod gguf_tokenizer;
mod layout;
mod lexicon;
mod pieces;
mod renderings;
mod stream;
mod texts;
mod train;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::{Message, Role};
use tokenizers::{Model, PreTokenizerWrapper};

pub use self::chat::MaskedTokens;
use self::gguf_tokenizer::GgufTokenizer;
use self::layout::{Layout, Marks, TemplateLayout};
use self::lexicon::Lexicon;
pub use self::pieces::Spaces;
use self::pieces::piece_end;
use self::renderings::Renderings;
pub use self::stream::PartialText;
pub use self::stream::TextStream;
use self::texts::Spelling;
use crate::TokenizerError;
use crate::atomic_file::write_atomically;
use crate::chat_template::{ChatTemplate, ControlTokens};
use crate::gguf::Gguf;

/// Bytes that a token may have: what is found in texts is no longer, since grammars take no longer ones.
pub(crate) const LONGEST_TOKEN: usize = 1024;

/// Name of the file in a model's folder.
const FILE: &str = "tokenizer.json";
const CONFIG_FILE: &str = "tokenizer_config.json";
/// Further files that belong to it, kept as they are.
const COMPANIONS: [&str; 4] =
    [CONFIG_FILE, "special_tokens_map.json", "chat_template.jinja", "chat_template.json"];
/// Files that tell which tokens end a completion.
const END_FILES: [&str; 2] = ["generation_config.json", "config.json"];

/// How a tokenizer is made from texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenizerConfig {
    /// Tokens there may be at the most, the 256 bytes and 5 marks included. Default 768.
    pub vocab_size: usize,
    /// Phrases that may become single tokens. Default 32.
    pub max_phrases: usize,
    /// Where the space before a word goes: `joined` to it (the default) or `apart`.
    pub spaces: Spaces,
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        Self { vocab_size: 768, max_phrases: 32, spaces: Spaces::Joined }
    }
}

/// Turns text into tokens and back.
///
/// Any `tokenizer.json` can be opened whose decoder writes bytes as GPT-2 does (Llama 3, Qwen,
/// SmolLM) or as SentencePiece does (Llama 2, Mistral); those made here lose nothing of any text.
///
/// **Those made here** cut text into words with the space before them or [apart](Spaces) from it, groups of up to three
/// digits, punctuation and space. A piece in the vocabulary is one token; others are put together
/// from parts, in the last resort from bytes, so that every text has an encoding. Where
/// spaces are joined, one is thought before every text: its first word is the token that the word is in the middle.
/// *Phrases*, sequences of words that nearly all games share, are single tokens too.
///
/// **Control tokens** (`<|im_end|>`, `</s>`, all that the file calls special) come from whoever
/// lays out a conversation, never from its contents: [`encode`](Self::encode),
/// [`encode_message`](Self::encode_message) and [`encode_chat`](Self::encode_chat) take what looks
/// like one in a message for the characters it is made of. Only
/// [`encode_prompt`](Self::encode_prompt) reads them from a text.
///
/// **Conversations** are laid out by the model's own [`ChatTemplate`]. Message by message, as
/// [`encode_message`](Self::encode_message) does, that is possible for tokenizers made here, and
/// where the template only ever appends, to the token: those of Qwen, Llama 3, SmolLM and Mistral
/// do, as long as no answer has reasoning in it. On opening, that is tried on conversations.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    /// What `tokenizer.json` holds.
    file: Value,
    /// Further files of a foreign tokenizer, by name.
    companions: Vec<(&'static str, Vec<u8>)>,
    inner: tokenizers::Tokenizer,
    /// Encodes what does not stand at the start of a text, where that makes a difference.
    inner_later: Option<Box<tokenizers::Tokenizer>>,
    spelling: Spelling,
    /// Text of every token.
    texts: Vec<Box<[u8]>>,
    control: Control,
    layout: Option<Layout>,
    chat: Option<Arc<ChatTemplate>>,
    /// What that has rendered last.
    renderings: Renderings,
    /// Tokens that end a completion; the first one ends a turn.
    ends: Vec<u32>,
    /// The vocabulary as text, for tokenizers made here.
    lexicon: Option<Lexicon>,
}

/// What belongs to a `tokenizer.json`.
enum Beside<'a> {
    /// It stands alone.
    Nothing,
    /// Further files of a model.
    Folder(&'a Path),
    /// What a GGUF file says besides.
    Gguf(&'a GgufTokenizer),
}

/// The control tokens of a tokenizer.
#[derive(Debug, Clone)]
struct Control {
    texts: ControlTokens,
    /// Of each text.
    tokens: Vec<ControlToken>,
    /// By id.
    is_control: Vec<bool>,
}

/// A control token and how it is told from text.
#[derive(Debug, Clone, Copy)]
struct ControlToken {
    id: u32,
    /// Takes the white space before it.
    takes_before: bool,
    /// Takes the white space behind it.
    takes_behind: bool,
    /// Is one only between other characters than letters and digits.
    is_word: bool,
}

impl Tokenizer {
    /// Finds a vocabulary in games, each a list of its messages.
    ///
    /// Words are kept by frequency. No token has more than 1,024 bytes. Phrases consist of words that at least nine of ten games have
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
        let prefixed = |text: &str| format!("{}{text}", config.spaces.before_text());
        let games: Vec<Vec<String>> =
            games.into_iter().map(|game| game.into_iter().map(prefixed).collect()).collect();
        let size = config.vocab_size - file::MARKS.len();
        let vocabulary = train::vocabulary(&games, size, config);
        Self::from_value(
            file::tokenizer_json(&vocabulary, config.spaces),
            Path::new(FILE),
            Beside::Nothing,
        )
    }

    /// Whether a folder has a `tokenizer.json`.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// Reads `tokenizer.json` in `folder`, with the chat template and what else belongs to it; or the tokenizer of the GGUF
    /// file that `folder` [means](Gguf::find), with its templates.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it is no tokenizer that this crate can use.
    pub fn load(folder: &Path) -> Result<Self, TokenizerError> {
        if let Some(file) = Gguf::find(folder) {
            let gguf = GgufTokenizer::read(&Gguf::open(&file)?)?;
            return Self::from_value(gguf.file.clone(), &file, Beside::Gguf(&gguf));
        }
        let path = folder.join(FILE);
        let bytes = std::fs::read(&path)
            .map_err(|source| TokenizerError::Io { path: path.clone(), source })?;
        let file = serde_json::from_slice(&bytes).map_err(|error| TokenizerError::Invalid {
            path: path.clone(),
            detail: error.to_string(),
        })?;
        Self::from_value(file, &path, Beside::Folder(folder))
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` and what else belongs to the tokenizer into
    /// `folder`, which exists.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), TokenizerError> {
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            write_atomically(&path, bytes).map_err(|source| TokenizerError::Io { path, source })
        };
        write(FILE, format!("{:#}\n", self.file).as_bytes())?;
        if self.lexicon.is_some() {
            return write(CONFIG_FILE, format!("{:#}\n", file::tokenizer_config_json()).as_bytes());
        }
        if self.companions.iter().all(|(name, _)| *name != CONFIG_FILE) {
            let end = String::from_utf8_lossy(self.token_bytes(self.end_of_turn())).into_owned();
            let config = match self.chat {
                None if self.layout.is_some() => file::chat_ml_config_json(),
                _ => file::plain_config_json(&end),
            };
            write(CONFIG_FILE, format!("{config:#}\n").as_bytes())?;
        }
        self.companions.iter().try_for_each(|(name, bytes)| write(name, bytes))
    }

    /// The tokens of `text`; what looks like a control token in it is ordinary characters.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.encode_into(text, true, &mut ids);
        ids
    }

    /// The text of `ids`, control tokens left out; bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.text_of(ids.iter().copied().filter(|id| !self.is_control(*id)))
    }

    /// The text of `ids`, with control tokens as they are written.
    pub fn decode_with_control(&self, ids: &[u32]) -> String {
        self.text_of(ids.iter().copied())
    }

    fn text_of(&self, ids: impl Iterator<Item = u32>) -> String {
        let bytes: Vec<u8> = ids.flat_map(|id| self.token_bytes(id).iter().copied()).collect();
        let bytes = match bytes.split_first() {
            Some((b' ', rest)) if self.strips_space() => rest,
            _ => &bytes,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Turns tokens into text while they come in, control tokens left out.
    pub fn stream(&self) -> TextStream<'_> {
        TextStream::new(self, false)
    }

    /// As [`Tokenizer::stream`], with control tokens as they are written.
    pub fn stream_with_control(&self) -> TextStream<'_> {
        TextStream::new(self, true)
    }

    /// Whether [`Tokenizer::encode_message`] knows how messages are laid out one by one.
    pub fn has_message_layout(&self) -> bool {
        self.layout.is_some()
    }

    /// Whether the model's own template has a place for instructions (system messages) in such a
    /// layout. Where it has none, [`Tokenizer::encode_message`] puts them before the first
    /// question, with an empty line between.
    pub fn has_place_for_instructions(&self) -> bool {
        self.layout.as_ref().is_some_and(Layout::has_place_for_instructions)
    }

    /// The tokens of a message with the marks of its role, behind the message `before` it; absent
    /// where it is the first.
    ///
    /// Behind a user's message comes the mark that opens the policy's turn, behind the policy's
    /// own the one that ends it. One after the other, the messages of a conversation up to a
    /// user's one have the tokens of [`Tokenizer::encode_chat`], and so of transformers'
    /// `apply_chat_template`, on the day of 26 July 2024 where the template tells the day. A
    /// conversation opens with instructions or a user's message, and user and policy take turns.
    ///
    /// A foreign tokenizer's instructions come with the message behind them and have no tokens of
    /// their own.
    ///
    /// # Panics
    ///
    /// When [`Tokenizer::has_message_layout`] says no; callers check.
    pub fn encode_message(&self, before: Option<&Message>, message: &Message) -> Vec<u32> {
        let layout = self.layout.as_ref();
        let layout = layout.expect("callers check that there is a layout of messages");
        layout.encode(self, before, message)
    }

    /// The tokens of a turn of the policy that says `text`, with its end.
    pub fn choice_ids(&self, text: &str) -> Vec<u32> {
        if let Some(layout) = &self.layout {
            return layout.encode(self, None, &Message::new(Role::Assistant, text));
        }
        let mut ids = Vec::with_capacity(text.len() / 3 + 1);
        self.encode_into(text, false, &mut ids);
        ids.push(self.end_of_turn());
        ids
    }

    /// The text of a turn of the policy, without its end and without what the chat template writes
    /// before every answer, such as the end of a thought that was left out.
    pub fn answer_text(&self, ids: &[u32]) -> String {
        let text = self.decode(ids);
        let before = self.layout.as_ref().map_or("", Layout::before_answer);
        // Decoding may have dropped a space.
        let dropped = before.strip_prefix(' ').unwrap_or(before);
        match text.strip_prefix(before).or_else(|| text.strip_prefix(dropped)) {
            Some(rest) if !before.trim().is_empty() => rest.to_owned(),
            _ => text,
        }
    }

    /// The token that ends a turn of the policy.
    pub fn end_of_turn(&self) -> u32 {
        self.ends[0]
    }

    /// The tokens that end a completion, the end of a turn first.
    pub fn end_tokens(&self) -> &[u32] {
        &self.ends
    }

    /// Whether a token is a control token.
    pub fn is_control(&self, id: u32) -> bool {
        self.control.is_control.get(id as usize).is_some_and(|is_control| *is_control)
    }

    /// The bytes that a token stands for, which may be part of a character; those of a control
    /// token are how it is written. None for ids that are not used.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.texts.get(id as usize).map_or(&[], |text| text)
    }

    /// The id of a token by how the vocabulary writes it.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The model's chat template.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.chat.as_deref()
    }

    /// Whether decoding drops a space at the start of a text.
    pub(crate) fn strips_space(&self) -> bool {
        self.spelling.strips_space
    }

    /// Whether every text that was encoded has that space.
    pub(crate) fn always_has_space(&self) -> bool {
        self.lexicon.is_some()
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

    /// The tokenizer of a `tokenizer.json`, with what lies beside it.
    fn from_value(file: Value, path: &Path, beside: Beside<'_>) -> Result<Self, TokenizerError> {
        let invalid = |detail: String| TokenizerError::Invalid { path: path.to_owned(), detail };
        let mut inner = tokenizers::Tokenizer::from_bytes(file.to_string())
            .map_err(|error| invalid(error.to_string()))?;
        inner.set_encode_special_tokens(true);
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| invalid(error.to_string()))?;

        // 1. Text of every token; special ones are control tokens.
        let vocabulary = inner.get_vocab(false);
        let added = inner.get_added_tokens_decoder();
        let spelling = Spelling::of(&file["decoder"]).map_err(&invalid)?;
        let contents = added.iter().map(|(id, token)| (*id, token.content.clone()));
        let texts = texts::texts(spelling, &vocabulary, contents).map_err(&invalid)?;
        let control = Control::new(&added, texts.len()).map_err(&invalid)?;

        // 2. Whether it was made here.
        let spaces = file::spaces(&file);
        let lexicon = Lexicon::new(&texts, |id| control.is_control[id as usize], spaces);
        let mut phrases: Vec<String> =
            lexicon.phrases.values().flatten().map(|phrase| phrase.text.to_string()).collect();
        phrases.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        let has_bytes =
            (0..=255).all(|byte| vocabulary.contains_key(&*bytes::character(byte).to_string()));
        let is_ours = has_bytes && file::is_ours(&file, &phrases, spaces);
        let lexicon = is_ours.then_some(lexicon);
        let inner_later = later(&inner);

        // 3. How conversations are laid out.
        let chat = match beside {
            _ if is_ours => file::chat_template().map(Some),
            Beside::Folder(folder) => ChatTemplate::load(folder),
            Beside::Gguf(gguf) => gguf.chat_template(),
            Beside::Nothing => Ok(None),
        };
        let chat =
            chat.map_err(|source| TokenizerError::ChatTemplate { path: path.to_owned(), source })?;
        let mut tokenizer = Self {
            companions: Vec::new(),
            file,
            inner,
            inner_later,
            spelling,
            texts,
            control,
            layout: None,
            chat: chat.map(Arc::new),
            renderings: Renderings::default(),
            ends: Vec::new(),
            lexicon,
        };
        tokenizer.layout = if is_ours {
            Marks::new(&tokenizer.inner).map(Layout::Own)
        } else {
            // The marks of ChatML without a template have only one meaning.
            let chat = tokenizer.chat.clone().or_else(|| {
                let is_mark =
                    |mark| tokenizer.token_id(mark).is_some_and(|id| tokenizer.is_control(id));
                let is_chat_ml = is_mark("<|im_start|>") && is_mark("<|im_end|>");
                is_chat_ml.then(file::chat_ml_template)?.ok().map(Arc::new)
            });
            let layout = chat.and_then(|chat| TemplateLayout::new(&tokenizer, &chat));
            layout.map(|layout| Layout::Template(Box::new(layout)))
        };
        tokenizer.ends.extend(tokenizer.layout.as_ref().map(Layout::end));
        match beside {
            Beside::Folder(folder) if !is_ours => tokenizer.read_companions(folder)?,
            Beside::Gguf(gguf) => {
                tokenizer.companions = vec![(CONFIG_FILE, gguf.config_file())];
                tokenizer.end_with(gguf.ends.iter().copied());
            }
            _ => {}
        }
        if tokenizer.ends.is_empty() {
            return Err(TokenizerError::NoMarks {
                path: path.to_owned(),
                own: file::MARKS.join(" "),
                chat_ml: "<|im_start|> <|im_end|>".to_owned(),
            });
        }
        Ok(tokenizer)
    }

    /// Keeps the files that belong to the tokenizer, and learns which tokens end a completion.
    fn read_companions(&mut self, folder: &Path) -> Result<(), TokenizerError> {
        let read = |name: &str| match std::fs::read(folder.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(TokenizerError::Io { path: folder.join(name), source }),
        };
        for name in COMPANIONS {
            if let Some(bytes) = read(name)? {
                self.companions.push((name, bytes));
            }
        }
        let mut ends = Vec::new();
        for name in END_FILES {
            let Some(bytes) = read(name)? else { continue };
            let file: Value = serde_json::from_slice(&bytes).map_err(|error| {
                TokenizerError::Invalid { path: folder.join(name), detail: error.to_string() }
            })?;
            let end = &file["eos_token_id"];
            let several = end.as_array().map_or(std::slice::from_ref(end), Vec::as_slice);
            ends = several.iter().filter_map(Value::as_u64).collect();
            if !ends.is_empty() {
                break;
            }
        }
        let names = ChatTemplate::token_names(folder)
            .map_err(|source| TokenizerError::ChatTemplate { path: folder.to_owned(), source })?;
        let named = names.get("eos_token").and_then(Value::as_str);
        let named = named.and_then(|name| self.token_id(name));
        self.end_with(ends.into_iter().filter_map(|id| u32::try_from(id).ok()).chain(named));
        Ok(())
    }

    /// Adds tokens to those that end a completion.
    fn end_with(&mut self, ends: impl IntoIterator<Item = u32>) {
        for id in ends {
            if (id as usize) < self.texts.len() && !self.ends.contains(&id) {
                self.ends.push(id);
            }
        }
    }

    /// Appends the tokens of `text`, in which nothing is a control token; `at_start` tells whether
    /// it is the start of a text or goes on with one.
    fn encode_into(&self, text: &str, at_start: bool, ids: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        let Some(lexicon) = &self.lexicon else {
            let inner = match &self.inner_later {
                Some(later) if !at_start => later,
                _ => &self.inner,
            };
            return encode_with_crate(inner, text, ids);
        };
        let text = match lexicon.spaces.before_text() {
            "" => Cow::Borrowed(text),
            before => Cow::Owned(format!("{before}{text}")),
        };
        let mut start = 0;
        while start < text.len() {
            if let Some(phrase) = lexicon.phrase_at(&text, start) {
                ids.push(phrase.token);
                start += phrase.text.len();
                continue;
            }
            let end = piece_end(&text, start, lexicon.spaces);
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
}

/// Encodes with foreign rules. Where these fail, as backtracking expressions do on overlong texts,
/// the halves are encoded apart.
fn encode_with_crate(inner: &tokenizers::Tokenizer, text: &str, ids: &mut Vec<u32>) {
    if let Ok(encoding) = inner.encode_fast(text, false) {
        ids.extend_from_slice(encoding.get_ids());
        return;
    }
    let middle = (0..=text.len() / 2).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    if middle > 0 {
        encode_with_crate(inner, &text[..middle], ids);
        encode_with_crate(inner, &text[middle..], ids);
    }
}

/// The same tokenizer for what does not stand at the start of a text; absent where that is the
/// same.
fn later(inner: &tokenizers::Tokenizer) -> Option<Box<tokenizers::Tokenizer>> {
    use tokenizers::pre_tokenizers::metaspace::PrependScheme;
    /// Whether anything changed.
    fn change(wrapper: &mut PreTokenizerWrapper) -> bool {
        match wrapper {
            PreTokenizerWrapper::Metaspace(metaspace)
                if metaspace.get_prepend_scheme() == PrependScheme::First =>
            {
                metaspace.set_prepend_scheme(PrependScheme::Never);
                true
            }
            PreTokenizerWrapper::Sequence(sequence) => {
                sequence.as_mut().iter_mut().fold(false, |changed, step| change(step) | changed)
            }
            _ => false,
        }
    }
    let mut wrapper = inner.get_pre_tokenizer()?.clone();
    change(&mut wrapper).then(|| {
        let mut later = inner.clone();
        later.with_pre_tokenizer(Some(wrapper));
        Box::new(later)
    })
}

impl Control {
    fn new<'a>(
        added: impl IntoIterator<Item = (&'a u32, &'a tokenizers::AddedToken)>,
        vocab_size: usize,
    ) -> Result<Self, String> {
        let mut special: Vec<_> = added
            .into_iter()
            .filter(|(_, token)| token.special && !token.content.is_empty())
            .collect();
        special.sort_by_key(|(id, _)| **id);
        let mut is_control = vec![false; vocab_size];
        for (id, _) in &special {
            is_control[**id as usize] = true;
        }
        let tokens = special.iter().map(|(id, token)| ControlToken {
            id: **id,
            takes_before: token.lstrip,
            takes_behind: token.rstrip,
            is_word: token.single_word,
        });
        Ok(Self {
            tokens: tokens.collect(),
            texts: ControlTokens::new(special.iter().map(|(_, token)| token.content.clone()))?,
            is_control,
        })
    }
}

#[cfg(test)]
mod tests;
