//! The files of a tokenizer, as Hugging Face's libraries read them.

use serde_json::{Value, json};

use super::bytes::to_characters;
use super::pieces::{Spaces, pattern_with};
use super::train::Vocabulary;
use crate::ChatTemplateError;
use crate::chat_template::ChatTemplate;

/// Marks of tokenizers made here, in the order of their ids, which follow those of the vocabulary.
pub(super) const MARKS: [&str; 5] = [PAD, SYSTEM, USER, ASSISTANT, END];
pub(super) const PAD: &str = "<|pad|>";
pub(super) const SYSTEM: &str = "<|system|>";
pub(super) const USER: &str = "<|user|>";
pub(super) const ASSISTANT: &str = "<|assistant|>";
pub(super) const END: &str = "<|end|>";

/// `tokenizer.json` of a vocabulary.
///
/// Where spaces are joined, one goes before every text, so that its first word is the same token as in the middle;
/// phrases are split off before words; a piece that is in the vocabulary is one token.
pub(super) fn tokenizer_json(vocabulary: &Vocabulary, spaces: Spaces) -> Value {
    let tokens: serde_json::Map<String, Value> =
        vocabulary.tokens.iter().cloned().zip((0..).map(|id: u32| json!(id))).collect();
    let marks = MARKS.iter().enumerate().map(|(index, mark)| {
        json!({
            "id": vocabulary.tokens.len() + index,
            "content": mark,
            "single_word": false,
            "lstrip": false,
            "rstrip": false,
            "normalized": false,
            "special": true,
        })
    });
    let byte_level = json!({
        "type": "ByteLevel",
        "add_prefix_space": false,
        "trim_offsets": true,
        "use_regex": false,
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": marks.collect::<Vec<_>>(),
        "normalizer": normalizer(spaces),
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": { "Regex": pattern_with(&vocabulary.phrases, spaces) },
                    "behavior": "Isolated",
                    "invert": false,
                },
                byte_level,
            ],
        },
        "post_processor": null,
        "decoder": match spaces {
            Spaces::Joined => json!({
                "type": "Sequence",
                "decoders": [byte_level, { "type": "Strip", "content": " ", "start": 1, "stop": 0 }],
            }),
            Spaces::Apart => byte_level.clone(),
        },
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": true,
            "vocab": tokens,
            "merges": vocabulary.merges,
        },
    })
}

/// What is done to a text before it is cut.
fn normalizer(spaces: Spaces) -> Value {
    match spaces {
        Spaces::Joined => json!({ "type": "Prepend", "prepend": " " }),
        Spaces::Apart => Value::Null,
    }
}

/// Where a `tokenizer.json` has its spaces, if it is one that [`tokenizer_json`] wrote.
pub(super) fn spaces(file: &Value) -> Spaces {
    [Spaces::Joined, Spaces::Apart]
        .into_iter()
        .find(|spaces| file["normalizer"] == normalizer(*spaces))
        .unwrap_or_default()
}

/// Whether a `tokenizer.json` cuts text as [`tokenizer_json`] writes it for these phrases.
pub(super) fn is_ours(file: &Value, phrases: &[String], spaces: Spaces) -> bool {
    let pattern = &file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
    file["normalizer"] == normalizer(spaces)
        && file["model"]["ignore_merges"] == json!(true)
        && pattern.as_str() == Some(&pattern_with(phrases, spaces))
        && phrases.iter().all(|phrase| file["model"]["vocab"].get(to_characters(phrase)).is_some())
}

/// `tokenizer_config.json` of a tokenizer with [`MARKS`].
pub(super) fn tokenizer_config_json() -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_TEMPLATE,
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": false,
    })
}

/// The layout of [`super::Tokenizer::encode_message`] as a template.
pub(super) fn chat_template() -> Result<ChatTemplate, ChatTemplateError> {
    let mut template = ChatTemplate::new(CHAT_TEMPLATE)?;
    template.set_token("eos_token", END);
    template.set_token("pad_token", PAD);
    Ok(template)
}

/// `tokenizer_config.json` of a tokenizer that has no layout of messages.
pub(super) fn plain_config_json(end: &str) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": end,
        "clean_up_tokenization_spaces": false,
    })
}

/// `tokenizer_config.json` of a tokenizer with the marks of ChatML.
pub(super) fn chat_ml_config_json() -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_ML_TEMPLATE,
        "eos_token": "<|im_end|>",
        "clean_up_tokenization_spaces": false,
    })
}

/// The layout of ChatML, for tokenizers that have its marks and no template.
pub(super) fn chat_ml_template() -> Result<ChatTemplate, ChatTemplateError> {
    ChatTemplate::new(CHAT_ML_TEMPLATE)
}

/// The layout of [`super::Tokenizer::encode_message`] in Jinja.
const CHAT_TEMPLATE: &str = concat!(
    "{%- for message in messages -%}",
    "{%- if message['role'] == 'system' -%}{{- '<|system|>' + message['content'] -}}",
    "{%- elif message['role'] == 'user' -%}",
    "{{- '<|user|>' + message['content'] + '<|assistant|>' -}}",
    "{%- else -%}{{- message['content'] + '<|end|>' -}}{%- endif -%}",
    "{%- endfor -%}",
);

const CHAT_ML_TEMPLATE: &str = concat!(
    "{%- for message in messages -%}",
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}",
    "{%- endfor -%}",
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}",
);
