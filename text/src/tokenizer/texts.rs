//! The bytes that tokens stand for.

use std::collections::HashMap;

use serde_json::Value;

use super::bytes;

/// How a tokenizer writes text in its vocabulary, by the `decoder` of `tokenizer.json`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Every character stands for a byte, as in GPT-2.
    byte_level: bool,
    /// The character that stands for a space, as in SentencePiece.
    space: Option<char>,
    /// `<0x0A>` and the like stand for bytes.
    byte_tokens: bool,
    /// A space at the start of a decoded text is dropped, for it was put there in encoding.
    pub(super) strips_space: bool,
}

impl Spelling {
    /// Reads the decoder of a file; `Err` has what is not supported.
    pub(super) fn of(decoder: &Value) -> Result<Self, String> {
        let mut spelling = Self::default();
        spelling.add(decoder)?;
        if spelling.byte_level && (spelling.space.is_some() || spelling.byte_tokens) {
            return Err("its decoder mixes two ways to write bytes".to_owned());
        }
        Ok(spelling)
    }

    fn add(&mut self, decoder: &Value) -> Result<(), String> {
        let unsupported = || {
            Err(format!(
                "its decoder {decoder} is not supported; supported are ByteLevel, Metaspace, and \
                 sequences of these with Replace, ByteFallback, Fuse and Strip"
            ))
        };
        match decoder["type"].as_str() {
            Some("ByteLevel") => self.byte_level = true,
            Some("ByteFallback") => self.byte_tokens = true,
            Some("Fuse") => {}
            Some("Sequence") => {
                let Some(steps) = decoder["decoders"].as_array() else { return unsupported() };
                steps.iter().try_for_each(|step| self.add(step))?;
            }
            Some("Replace") => {
                let pattern = decoder["pattern"]["String"].as_str().unwrap_or_default();
                let mut characters = pattern.chars();
                match (characters.next(), characters.next(), decoder["content"].as_str()) {
                    (Some(space), None, Some(" ")) => self.space = Some(space),
                    _ => return unsupported(),
                }
            }
            Some("Strip") => {
                let is_one_space =
                    decoder["content"] == " " && decoder["start"] == 1 && decoder["stop"] == 0;
                if !is_one_space {
                    return unsupported();
                }
                self.strips_space = true;
            }
            Some("Metaspace") => {
                let mut replacement = decoder["replacement"].as_str().unwrap_or("▁").chars();
                self.space = replacement.next();
                let scheme = decoder["prepend_scheme"].as_str().unwrap_or("always");
                self.strips_space = scheme != "never" && decoder["add_prefix_space"] != false;
            }
            _ => return unsupported(),
        }
        Ok(())
    }

    /// The bytes that `token` stands for.
    pub(super) fn bytes(&self, token: &str) -> Vec<u8> {
        if self.byte_level {
            // Added tokens are written as they are.
            return bytes::from_characters(token).unwrap_or_else(|| token.as_bytes().to_vec());
        }
        if self.byte_tokens
            && token.len() == 6
            && let Some(digits) = token.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'))
            && let Ok(byte) = u8::from_str_radix(digits, 16)
        {
            return vec![byte];
        }
        match self.space {
            Some(space) => token.replace(space, " ").into_bytes(),
            None => token.as_bytes().to_vec(),
        }
    }
}

/// The text of every token by id, control tokens included; ids that are not used are empty.
pub(super) fn texts(
    spelling: Spelling,
    vocabulary: &HashMap<String, u32>,
    added: impl Iterator<Item = (u32, String)>,
) -> Result<Vec<Box<[u8]>>, String> {
    let added: HashMap<u32, String> = added.collect();
    let ids = vocabulary.values().chain(added.keys());
    let size = ids.max().map_or(0, |id| *id as usize + 1);
    // Ids may have gaps, but a file of a few bytes must not fill the memory.
    if size > 2 * (vocabulary.len() + added.len()) {
        return Err(format!("its token ids reach {size}, with wide gaps"));
    }
    let mut texts: Vec<Box<[u8]>> = vec![Box::default(); size];
    for (token, id) in vocabulary {
        texts[*id as usize] = spelling.bytes(token).into();
    }
    for (id, token) in added {
        texts[id as usize] = spelling.bytes(&token).into();
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decoders_of_the_known_families_are_read() {
        let sentence_piece = json!({ "type": "Sequence", "decoders": [
            { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
            { "type": "ByteFallback" },
            { "type": "Fuse" },
            { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
        ] });
        let spelling = Spelling::of(&sentence_piece).unwrap();
        assert!(spelling.strips_space);
        for (token, bytes) in [
            ("▁a▁", b" a ".as_slice()),
            ("<0x0A>", b"\n"),
            ("<0xE2>", &[0xe2]),
            ("<0xZZ>", b"<0xZZ>"),
        ] {
            assert_eq!(spelling.bytes(token), bytes);
        }
        let metaspace =
            json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "never" });
        let spelling = Spelling::of(&metaspace).unwrap();
        assert_eq!(
            (spelling.strips_space, spelling.bytes("▁<0x0A>")),
            (false, b" <0x0A>".to_vec())
        );
        let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": true });
        let spelling = Spelling::of(&byte_level).unwrap();
        assert_eq!(
            (spelling.bytes("Ġa"), spelling.bytes("<a b>")),
            (b" a".to_vec(), b"<a b>".to_vec())
        );
        for unsupported in [
            json!(null),
            json!({ "type": "WordPiece", "prefix": "##", "cleanup": true }),
            json!({ "type": "Strip", "content": "x", "start": 1, "stop": 0 }),
            json!({ "type": "Replace", "pattern": { "Regex": "a" }, "content": " " }),
            json!({ "type": "Sequence", "decoders": [byte_level, { "type": "ByteFallback" }] }),
        ] {
            assert!(Spelling::of(&unsupported).is_err(), "{unsupported}");
        }
    }
}
