//! The tokenizer of a GGUF file, as Hugging Face's libraries would have it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::ChatTemplateError;
use crate::chat_template::ChatTemplate;
use crate::gguf::{Gguf, GgufError, GgufValue};

/// How a token is marked; others are ordinary.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
/// Fills the vocabulary up to a round size.
const UNUSED: i64 = 5;

/// Tokens above are taken for damage; the largest vocabularies have a quarter of that.
const MOST_TOKENS: usize = 1 << 20;
/// Bytes of a SentencePiece piece: every place where it can be cut in two is tried.
const LONGEST_PIECE: usize = 128;

/// Tokens by what templates call them.
const NAMED: [(&str, &str); 4] = [
    ("bos_token", "tokenizer.ggml.bos_token_id"),
    ("eos_token", "tokenizer.ggml.eos_token_id"),
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
];
/// Tokens that end a completion.
const ENDS: [&str; 3] =
    ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];

/// Name of the template that is used unless another one is asked for.
const DEFAULT: &str = "default";

/// What a GGUF file says of a tokenizer.
#[derive(Debug)]
pub(super) struct GgufTokenizer {
    /// `tokenizer.json` of the same tokenizer.
    pub(super) file: Value,
    /// Tokens that end a completion.
    pub(super) ends: Vec<u32>,
    /// Templates by name, the default one first.
    templates: Vec<(String, String)>,
    /// Tokens by what templates call them.
    names: Map<String, Value>,
}

impl GgufTokenizer {
    /// Reads what a file says.
    ///
    /// BPE over bytes (`gpt2`) is cut into words as `tokenizer.ggml.pre` names it: `smollm`, `qwen2`, `llama-bpe`, `gpt-2`
    /// and their kin; SentencePiece's (`llama`) is BPE whose merges follow from the scores of its pieces, as transformers
    /// converts it.
    pub(super) fn read(gguf: &Gguf) -> Result<Self, GgufError> {
        let tokens = gguf.texts("tokenizer.ggml.tokens")?;
        if tokens.len() > MOST_TOKENS {
            let detail = format!("it has {} tokens, allowed are {MOST_TOKENS}", tokens.len());
            return Err(gguf.invalid(detail));
        }
        let kinds = kinds(gguf, tokens.len())?;
        let mut vocabulary = Map::new();
        let mut added = Vec::new();
        for (id, (token, kind)) in tokens.iter().zip(&kinds).enumerate() {
            if *kind == UNUSED {
                continue;
            }
            if vocabulary.insert((*token).to_owned(), id.into()).is_some() {
                return Err(gguf.invalid(format!("two tokens are {token:?}")));
            }
            if matches!(*kind, UNKNOWN | CONTROL | USER_DEFINED) {
                added.push(json!({
                    "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": *kind != USER_DEFINED,
                }));
            }
        }
        let mut file = match gguf.text("tokenizer.ggml.model") {
            Some("gpt2") => byte_level(gguf, vocabulary)?,
            Some("llama") => sentence_piece(gguf, &tokens, &kinds, vocabulary)?,
            other => {
                let found = other.unwrap_or("not told");
                let detail = format!(
                    "its tokenizer (`tokenizer.ggml.model`) is {found}, read are gpt2 and llama"
                );
                return Err(gguf.invalid(detail));
            }
        };
        file["added_tokens"] = added.into();

        let id = |key: &str| -> Result<Option<u32>, GgufError> {
            let Some(id) = gguf.count(key) else { return Ok(None) };
            let known = u32::try_from(id).ok().filter(|id| (*id as usize) < tokens.len());
            known
                .map(Some)
                .ok_or_else(|| gguf.invalid(format!("`{key}` is {id}, there is no such token")))
        };
        let mut names = Map::new();
        for (name, key) in NAMED {
            if let Some(id) = id(key)? {
                names.insert(name.to_owned(), tokens[id as usize].into());
            }
        }
        let mut ends = Vec::new();
        for key in ENDS {
            ends.extend(id(key)?);
        }
        if gguf.flag("tokenizer.ggml.add_bos_token").unwrap_or(false)
            && let (Some(bos), Some(id)) =
                (names.get("bos_token").and_then(Value::as_str), id(NAMED[0].1)?)
        {
            file["post_processor"] = before_every_text(bos, id);
        }
        Ok(Self { file, ends, templates: templates(gguf), names })
    }

    /// The templates; `None` where there are none.
    pub(super) fn chat_template(&self) -> Result<Option<ChatTemplate>, ChatTemplateError> {
        if self.templates.is_empty() {
            return Ok(None);
        }
        ChatTemplate::from_sources(self.templates.clone(), self.names.clone()).map(Some)
    }

    /// `tokenizer_config.json` of the same tokenizer.
    pub(super) fn config_file(&self) -> Vec<u8> {
        let mut config = self.names.clone();
        config.insert("tokenizer_class".to_owned(), "PreTrainedTokenizerFast".into());
        config.insert("clean_up_tokenization_spaces".to_owned(), false.into());
        let named =
            self.templates.iter().map(|(name, source)| json!({ "name": name, "template": source }));
        match &*self.templates {
            [] => {}
            [(name, source)] if name == DEFAULT => {
                config.insert("chat_template".to_owned(), source.as_str().into());
            }
            _ => {
                config.insert("chat_template".to_owned(), named.collect());
            }
        }
        format!("{:#}\n", Value::Object(config)).into_bytes()
    }
}

/// The chat templates of a file by name.
fn templates(gguf: &Gguf) -> Vec<(String, String)> {
    const KEY: &str = "tokenizer.chat_template";
    let default = gguf.text(KEY).map(|source| (DEFAULT.to_owned(), source.to_owned()));
    let names = gguf.texts("tokenizer.chat_templates").unwrap_or_default();
    let named = names.into_iter().filter(|name| *name != DEFAULT).filter_map(|name| {
        Some((name.to_owned(), gguf.text(&format!("{KEY}.{name}"))?.to_owned()))
    });
    default.into_iter().chain(named).collect()
}

/// What puts a token before every text that is no conversation.
fn before_every_text(token: &str, id: u32) -> Value {
    let (special, text) = (
        json!({ "SpecialToken": { "id": token, "type_id": 0 } }),
        |name: &str| json!({ "Sequence": { "id": name, "type_id": 0 } }),
    );
    json!({
        "type": "TemplateProcessing",
        "single": [special, text("A")],
        "pair": [special, text("A"), text("B")],
        "special_tokens": { token: { "id": token, "ids": [id], "tokens": [token] } },
    })
}

/// Where Qwen2's and Llama 3's tokenizers cut text; they differ in how many digits stay together.
fn gpt4_pattern(digits: &str) -> String {
    format!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
}

/// How every token is marked; all are ordinary where nothing tells.
fn kinds(gguf: &Gguf, len: usize) -> Result<Vec<i64>, GgufError> {
    let key = "tokenizer.ggml.token_type";
    let Some(items) = gguf.list(key) else { return Ok(vec![1; len]) };
    let kinds: Option<Vec<i64>> = items
        .iter()
        .map(|item| match item {
            GgufValue::Int(kind) => Some(*kind),
            _ => None,
        })
        .collect();
    let kinds = kinds.filter(|kinds| kinds.len() == len);
    kinds.ok_or_else(|| gguf.invalid(format!("`{key}` does not tell of every token")))
}

/// BPE over bytes.
fn byte_level(gguf: &Gguf, vocabulary: Map<String, Value>) -> Result<Value, GgufError> {
    let bytes = |use_regex: bool| {
        json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex,
        })
    };
    let split = |digits: &str| {
        json!({
            "type": "Split", "pattern": { "Regex": gpt4_pattern(digits) }, "behavior": "Isolated", "invert": false,
        })
    };
    let sequence = |parts: [Value; 2]| json!({ "type": "Sequence", "pretokenizers": parts });
    let (normalizer, cut, ignores_merges) = match gguf.text("tokenizer.ggml.pre") {
        Some("smollm") => {
            let digits = json!({ "type": "Digits", "individual_digits": true });
            (Value::Null, sequence([digits, bytes(true)]), false)
        }
        Some("qwen2" | "deepseek-r1-qwen") => {
            (json!({ "type": "NFC" }), sequence([split(""), bytes(false)]), false)
        }
        Some("llama-bpe" | "llama3" | "llama-v3") => {
            (Value::Null, sequence([split("{1,3}"), bytes(false)]), true)
        }
        Some("gpt-2") => (Value::Null, bytes(true), false),
        other => {
            let found = other.unwrap_or("not told");
            let detail = format!(
                "how its tokenizer cuts text (`tokenizer.ggml.pre`) is {found}, known are smollm, qwen2, llama-bpe, \
                 gpt-2; take the model's folder in the layout of Hugging Face"
            );
            return Err(gguf.invalid(detail));
        }
    };
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null,
        "normalizer": normalizer, "pre_tokenizer": cut, "post_processor": null, "decoder": bytes(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": ignores_merges, "vocab": vocabulary,
            "merges": gguf.texts("tokenizer.ggml.merges")?,
        },
    }))
}

/// SentencePiece's BPE: pieces are merged in the order of their scores.
fn sentence_piece(
    gguf: &Gguf,
    tokens: &[&str],
    kinds: &[i64],
    vocabulary: Map<String, Value>,
) -> Result<Value, GgufError> {
    let key = "tokenizer.ggml.scores";
    let scores: Option<Vec<f64>> = gguf.list(key).and_then(|items| {
        let score = |item: &GgufValue| match item {
            GgufValue::Float(score) => Some(*score),
            _ => None,
        };
        items.iter().map(score).collect()
    });
    let scores = scores.filter(|scores| scores.len() == tokens.len());
    let scores =
        scores.ok_or_else(|| gguf.invalid(format!("`{key}` does not tell of every token")))?;
    if let Some(long) = tokens.iter().find(|token| token.len() > LONGEST_PIECE) {
        let detail = format!("a token has {} bytes, allowed are {LONGEST_PIECE}", long.len());
        return Err(gguf.invalid(detail));
    }
    let place: HashMap<&str, usize> = tokens
        .iter()
        .enumerate()
        .filter(|(id, _)| kinds[*id] != UNUSED)
        .map(|(id, token)| (*token, id))
        .collect();
    let mut merges: Vec<(f64, &str, &str)> = Vec::new();
    for ((token, score), kind) in tokens.iter().zip(&scores).zip(kinds) {
        // No text is put together to what is more than text.
        if matches!(*kind, UNKNOWN | CONTROL | UNUSED) {
            continue;
        }
        let mut of_token: Vec<(usize, usize, &str, &str)> = Vec::new();
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if let (Some(first), Some(second)) = (place.get(left), place.get(right)) {
                of_token.push((*first, *second, left, right));
            }
        }
        of_token.sort_unstable();
        merges.extend(of_token.into_iter().map(|(_, _, left, right)| (*score, left, right)));
    }
    // Stable, so that equal scores stay in the order of their tokens.
    merges.sort_by(|a, b| b.0.total_cmp(&a.0));
    let merges: Vec<[&str; 2]> = merges.into_iter().map(|(_, left, right)| [left, right]).collect();
    let unknown = gguf.count("tokenizer.ggml.unknown_token_id").unwrap_or(0);
    let unknown = usize::try_from(unknown).ok().and_then(|id| tokens.get(id)).copied();
    let space = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" });
    let has_prefix = gguf.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true);
    let prefix = json!({ "type": "Prepend", "prepend": "\u{2581}" });
    let normalizers = if has_prefix { vec![prefix, space] } else { vec![space] };
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": "\u{2581}" }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if has_prefix {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null,
        "normalizer": { "type": "Sequence", "normalizers": normalizers },
        "pre_tokenizer": null, "post_processor": null,
        "decoder": { "type": "Sequence", "decoders": decoders },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": vocabulary, "merges": merges,
        },
    }))
}
