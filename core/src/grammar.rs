//! What an answer can be held to, as it is asked for and kept.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A set of texts that an answer has to be one of, as whoever asks for it writes it down.
///
/// Equal sources are compiled to the same tokens by the same tokenizer, so that what could be drawn in each place of an
/// answer need not be kept: it is found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum GrammarSource {
    /// JSON that a schema accepts.
    JsonSchema {
        /// The schema. The order of its properties is that of the answer's.
        schema: Value,
    },
    /// JSON that a schema accepts, between two texts, such as the marks of a tool call.
    JsonBetween {
        /// What stands before it.
        before: String,
        /// The schema.
        schema: Value,
        /// What stands behind it.
        after: String,
    },
    /// Text that a regular expression matches as a whole.
    Regex {
        /// The expression.
        expression: String,
    },
    /// Text of a grammar in llguidance's variant of Lark.
    Lark {
        /// The grammar.
        grammar: String,
    },
}

impl GrammarSource {
    /// JSON that `schema` accepts.
    pub fn json_schema(schema: Value) -> Self {
        Self::JsonSchema { schema }
    }

    /// Text that a regular expression matches as a whole.
    pub fn regex(expression: impl Into<String>) -> Self {
        Self::Regex { expression: expression.into() }
    }

    /// Text of a grammar in Lark.
    pub fn lark(grammar: impl Into<String>) -> Self {
        Self::Lark { grammar: grammar.into() }
    }

    /// The hash of its content: BLAKE3 of its JSON, the order of keys included, since it tells in a schema.
    pub fn hash(&self) -> GrammarHash {
        let json = serde_json::to_vec(self).expect("keys are strings, and numbers are finite");
        GrammarHash(*blake3::hash(&json).as_bytes())
    }
}

/// Names a [`GrammarSource`] by its content; 64 hexadecimal digits where it is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct GrammarHash([u8; 32]);

impl fmt::Display for GrammarHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for GrammarHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrammarHash({self})")
    }
}

impl From<GrammarHash> for String {
    fn from(hash: GrammarHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for GrammarHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let hash = blake3::Hash::from_hex(&text);
        hash.map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| format!("`{text}` is no hash: it has to be 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hash_tells_sources_apart_and_survives_their_files() {
        let schema: Value = serde_json::from_str(r#"{ "b": 1, "a": 0.1 }"#).unwrap();
        let reordered: Value = serde_json::from_str(r#"{ "a": 0.1, "b": 1 }"#).unwrap();
        let sources = [
            GrammarSource::JsonSchema { schema: schema.clone() },
            GrammarSource::JsonSchema { schema: reordered },
            GrammarSource::JsonBetween { before: "<".into(), schema, after: ">".into() },
            GrammarSource::Regex { expression: "a".into() },
            GrammarSource::Lark { grammar: "a".into() },
        ];
        for (index, source) in sources.iter().enumerate() {
            let json = serde_json::to_string(source).unwrap();
            let read: GrammarSource = serde_json::from_str(&json).unwrap();
            assert_eq!((&read, read.hash()), (source, source.hash()));
            assert!(sources[..index].iter().all(|other| other.hash() != source.hash()));
            let hash = serde_json::to_value(source.hash()).unwrap();
            assert_eq!(hash.as_str().unwrap().len(), 64);
            assert_eq!(serde_json::from_value::<GrammarHash>(hash).unwrap(), source.hash());
        }
        assert!(serde_json::from_value::<GrammarHash>(json!("ab")).is_err());
        let unknown = json!({ "kind": "regex", "expression": "a", "flags": "i" });
        assert!(serde_json::from_value::<GrammarSource>(unknown).is_err());
    }
}
