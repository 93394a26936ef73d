//! One file per syntax.

mod bracketed;
mod code_tags;
mod deepseek;
mod fenced_bash;
mod hermes;
mod json_object;
mod llama3_json;
mod mini;
mod mistral;
mod plain;
mod python_calls;
mod qwen3_coder;
mod react;
mod search_tags;
mod tags;
mod whole;

pub(crate) use bracketed::Bracketed;
pub(crate) use code_tags::CodeTags;
pub(crate) use deepseek::DeepSeek;
pub(crate) use fenced_bash::FencedBash;
pub(crate) use hermes::Hermes;
pub(crate) use json_object::JsonObject;
pub(crate) use llama3_json::Llama3Json;
pub(crate) use mini::Mini;
pub(crate) use mistral::Mistral;
pub(crate) use plain::Plain;
pub(crate) use python_calls::PythonCalls;
pub(crate) use qwen3_coder::Qwen3Coder;
pub(crate) use react::React;
pub(crate) use search_tags::SearchTags;
pub(crate) use tags::Tags;
pub(crate) use whole::Whole;
