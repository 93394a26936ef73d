//! Tokenizers and layouts of conversations against Hugging Face's, in one binary.

mod layouts;
mod tokenizers;
