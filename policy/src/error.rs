//! What can go wrong with files of a model, and with requests.

use std::path::PathBuf;

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

/// A checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file could not be read or written.
    #[error("access `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The folder has no weights.
    #[error(
        "find `model.safetensors` or `model.safetensors.index.json` in `{}`; other formats of \
         weights, such as `pytorch_model.bin`, are not read",
        folder.display()
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
    },
    /// A file is not the JSON it should be.
    #[error("read `{}` as JSON", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where it departs.
        #[source]
        source: serde_json::Error,
    },
    /// `config.json` asks for what the decoder does not do.
    #[error("use `{}`: `{field}` is {found}, supported is {supported}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The field of `config.json`.
        field: String,
        /// Its value.
        found: String,
        /// What it may be.
        supported: String,
    },
    /// The values of `config.json` do not fit each other.
    #[error("use `{}`: {}", path.display(), problems.join("; "))]
    Config {
        /// The file.
        path: PathBuf,
        /// All that is wrong.
        problems: Vec<String>,
    },
    /// The index of a checkpoint in several files names a file outside its folder, or none.
    #[error("use `{}`: {detail}", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The file is no safetensors file, or not all of one; copying it again may help.
    #[error("read `{}` as safetensors; copy or download it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// A weight that `config.json` calls for is in no file.
    #[error("find tensor `{name}` in `{}`; `config.json` calls for it", folder.display())]
    MissingTensor {
        /// The folder.
        folder: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A file has a weight that `config.json` does not call for, or that another file had.
    #[error(
        "use tensor `{name}` of `{}`; `config.json` does not call for it, or it is there twice",
        path.display()
    )]
    ExtraTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A weight has another shape than `config.json` says.
    #[error(
        "use tensor `{name}` of `{}`: its shape is {found:?}, by `config.json` it is {expected:?}",
        path.display()
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape by `config.json`.
        expected: Vec<usize>,
    },
    /// A weight has a type of number that is not read.
    #[error(
        "use tensor `{name}` of `{}`: its type is {found}, supported are F32, BF16 and F16",
        path.display()
    )]
    NumberType {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its type.
        found: String,
    },
    /// A weight is infinite or no number: the training that wrote it had diverged.
    #[error(
        "use tensor `{name}` of `{}`: element {element} is {value}; take an earlier checkpoint",
        path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Which of its elements, counted in memory order.
        element: usize,
        /// What it is.
        value: f32,
    },
    /// A weight cannot be stored as a number of the type that was asked for.
    #[error(
        "store element {element} of tensor `{name}` in `{}`: {value:e} is too large for \
         {number_type}",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Which of its elements, counted in memory order.
        element: usize,
        /// What it is.
        value: f32,
        /// The type.
        number_type: &'static str,
    },
    /// The output matrix is stored, differs from the embedding, and yet the two are tied.
    #[error(
        "use `lm_head.weight` of `{}`: it differs from the embedding it is tied to; set \
         `tie_word_embeddings` to false",
        path.display()
    )]
    UntiedHead {
        /// The file.
        path: PathBuf,
    },
    /// The tokenizer could not be read or written.
    #[error("use the checkpoint's tokenizer")]
    Tokenizer(#[from] TokenizerError),
    /// The tokenizer has tokens that the model does not know.
    #[error("use a tokenizer of {tokenizer} tokens with a model of {model} in `{}`", folder.display())]
    Vocabulary {
        /// The folder.
        folder: PathBuf,
        /// Tokens of the tokenizer.
        tokenizer: usize,
        /// Tokens of the model.
        model: usize,
    },
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

/// A request cannot be answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The prompt has no token.
    #[error("continue an empty prompt")]
    EmptyPrompt,
    /// A token of the prompt is outside the vocabulary.
    #[error("use token {token}: the vocabulary has {vocabulary}")]
    UnknownToken {
        /// The token.
        token: u32,
        /// Tokens there are.
        vocabulary: usize,
    },
    /// The answer is to be one of no strings.
    #[error("answer with one of no choices")]
    NoChoices,
    /// A sampling option is outside its range.
    #[error("use `{option}` {found}, allowed are {allowed}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        allowed: String,
    },
    /// Prompt and answer are longer than the model can read.
    #[error(
        "fit {} tokens ({prompt} of the prompt, {max_tokens} for the answer) into a context of \
         {limit}",
        prompt.saturating_add(*max_tokens)
    )]
    ContextFull {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens reserved for the answer.
        max_tokens: usize,
        /// What the model can read.
        limit: usize,
    },
    /// Prompt and answer alone need more memory than there is for keys and values.
    #[error("keep {tokens} tokens in memory: there is room for {limit}")]
    MemoryTooSmall {
        /// Tokens of prompt and answer.
        tokens: usize,
        /// Tokens there is room for.
        limit: usize,
    },
    /// Too many requests wait; trying again later helps.
    #[error("queue another request: {waiting} wait already")]
    QueueFull {
        /// Requests that wait.
        waiting: usize,
    },
    /// What the answer is to be held to is no grammar.
    #[error("hold the answer to this {kind}: {detail}")]
    Grammar {
        /// `JSON schema`, `regular expression`, `grammar`.
        kind: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The decoder is on a GPU, which failed.
    #[error("generate on the GPU")]
    Device(#[from] crate::cuda::DeviceError),
    /// The generator was shut down.
    #[error("ask a generator that was shut down")]
    Closed,
}
