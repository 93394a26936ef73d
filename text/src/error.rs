//! What can go wrong with the files of a model's text side, and with what they are asked for.

use std::path::PathBuf;

use crate::gguf::GgufError;

/// A tokenizer could not be made, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The vocabulary cannot hold what every vocabulary holds.
    #[error("make a vocabulary of {found} tokens; bytes and marks alone are {least}")]
    VocabularyTooSmall {
        /// What was asked for.
        found: usize,
        /// The least that works.
        least: usize,
    },
    /// The file could not be read or written.
    #[error("access `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is no tokenizer.
    #[error("read `{}` as a tokenizer: {detail}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The GGUF file cannot be used.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Nothing tells where a completion ends.
    #[error(
        "use the tokenizer `{}`: it has neither the marks {own} nor the marks {chat_ml}, and no file \
         beside it names an end token (`eos_token_id` in generation_config.json)",
        path.display()
    )]
    NoMarks {
        /// The file.
        path: PathBuf,
        /// Marks of tokenizers made here.
        own: String,
        /// Marks of the ChatML layout.
        chat_ml: String,
    },
    /// The chat template that belongs to the tokenizer cannot be used.
    #[error("use the chat template beside `{}`", path.display())]
    ChatTemplate {
        /// The tokenizer.
        path: PathBuf,
        /// Why.
        #[source]
        source: ChatTemplateError,
    },
}

/// An answer could not be replayed with the grammar that it is said to have been held to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A token stands where the grammar has no place for it.
    #[error("replay an answer: the grammar does not allow token {token} in place {place}")]
    NotAllowed {
        /// The place in the answer, from 0.
        place: usize,
        /// The token.
        token: u32,
    },
    /// A step took the grammar too much work.
    #[error("replay an answer: the grammar gave up in place {place}: {detail}")]
    GivenUp {
        /// The place in the answer, from 0.
        place: usize,
        /// Why.
        detail: String,
    },
    /// The grammar is none, for this tokenizer.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}

/// A chat template could not be read, or not be applied to a conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatTemplateError {
    /// A file could not be read.
    #[error("access `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold templates as it should.
    #[error("read the chat template in `{}`: {detail}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The model has no chat template.
    #[error("lay out messages: the model has no chat template; give it a prompt as text")]
    None,
    /// The model has no template of that name.
    #[error("use chat template `{name}`; known are {}", known.join(", "))]
    UnknownTemplate {
        /// The name.
        name: String,
        /// Names there are.
        known: Vec<String>,
    },
    /// The template is not well-formed.
    #[error("read chat template `{template}`, line {}: {detail}", line_or_unknown(*line))]
    Syntax {
        /// Name of the template.
        template: String,
        /// Line, counted from 1.
        line: Option<usize>,
        /// What is wrong there.
        detail: String,
    },
    /// The template calls a function, filter, test or method that there is not.
    #[error("apply chat template `{template}`, line {}: {detail}", line_or_unknown(*line))]
    Unknown {
        /// Name of the template.
        template: String,
        /// Line, counted from 1.
        line: Option<usize>,
        /// What it calls.
        detail: String,
    },
    /// The template refuses the conversation.
    #[error("apply the chat template, which refuses this conversation: {message}")]
    Raised {
        /// What the template says.
        message: String,
    },
    /// The template failed on the conversation.
    #[error("apply chat template `{template}`, line {}: {detail}", line_or_unknown(*line))]
    Failed {
        /// Name of the template.
        template: String,
        /// Line, counted from 1.
        line: Option<usize>,
        /// Why.
        detail: String,
        /// What the template engine said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The messages are not what templates are given.
    #[error("lay out messages: {detail}")]
    Messages {
        /// What is wrong with them.
        detail: String,
    },
    /// The conversation contains every private character, so that none is left to mark things.
    #[error("lay out messages that contain all private characters of Unicode")]
    NoMarks,
    /// The template writes earlier messages differently once later ones follow.
    #[error(
        "tell what the assistant wrote: with message {message} the chat template writes {after:?} \
         at byte {at} where it wrote {before:?} before; train on such conversations turn by turn"
    )]
    NotAppending {
        /// The message, counted from 0.
        message: usize,
        /// Where the texts part.
        at: usize,
        /// How the text before the message, or up to it, goes on there.
        before: String,
        /// How the text with more messages does.
        after: String,
    },
}

fn line_or_unknown(line: Option<usize>) -> String {
    line.map_or_else(|| "unknown".to_owned(), |line| line.to_string())
}

/// What an answer is to be held to is no grammar.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("hold the answer to this {kind}: {detail}")]
pub struct GrammarError {
    /// `JSON schema`, `regular expression`, `grammar`, `vocabulary`.
    pub kind: &'static str,
    /// What is wrong with it.
    pub detail: String,
}
