//! What can go wrong with files of a model, and with requests.

use std::path::PathBuf;

use spar_text::gguf::GgufError;
use spar_text::{GrammarError, TokenizerError};

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
    /// The GGUF file cannot be used.
    #[error(transparent)]
    Gguf(GgufError),
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
    /// The generator has no model in this place.
    #[error("ask model {model}: there are {models}")]
    NoSuchModel {
        /// Its place.
        model: usize,
        /// Models there are.
        models: usize,
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
    /// What an answer shall begin with is not what it is held to.
    #[error(
        "go on behind a partial answer: token {token} in place {place} could not be drawn there"
    )]
    PartialNotAllowed {
        /// The place in the answer, from 0.
        place: usize,
        /// The token.
        token: u32,
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
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// The decoder is on a GPU, which failed.
    #[error("generate on the GPU")]
    Device(#[from] crate::cuda::DeviceError),
    /// The generator was shut down.
    #[error("ask a generator that was shut down")]
    Closed,
}
