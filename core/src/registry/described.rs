//! What a row says about itself, whatever it opens.

use serde::Serialize;
use serde_json::{Map, Value};

/// A row, described.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DescribedRow {
    /// The name.
    pub name: String,
    /// One line on what it is.
    pub about: String,
    /// Where it is described.
    pub source: String,
    /// What it computes; empty where it is no method.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// What it consists of, where its axis tells; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<DescribedDetail>,
    /// What can be set.
    pub options: Vec<DescribedOption>,
}

/// How near a method is to what its source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// As its source has it: its equations, or the code of its authors.
    Exact,
    /// Parts of it could not be read there; the row's source says what is assumed.
    Reconstructed,
    /// Of this project.
    Own,
}

impl Exactness {
    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Reconstructed => "reconstructed",
            Self::Own => "own",
        }
    }
}

impl DescribedRow {
    /// How near it is to its source, in whose words it stands: whoever assumes something says `reconstructed` there, and
    /// what nobody has published begins with `own`.
    pub fn exactness(&self) -> Exactness {
        let source = self.source.to_lowercase();
        let is_own = source.split(|c: char| !c.is_alphanumeric()).next() == Some("own");
        match source.contains("reconstructed") {
            true => Exactness::Reconstructed,
            false if is_own => Exactness::Own,
            false => Exactness::Exact,
        }
    }
}

/// A part of what a row opens, described.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DescribedDetail {
    /// What it is.
    pub name: &'static str,
    /// The part itself; `null` where the row does without it.
    pub value: Value,
}

impl DescribedDetail {
    /// A part that may be absent.
    pub fn new(name: &'static str, value: impl Into<Value>) -> Self {
        Self { name, value: value.into() }
    }
}

/// An option, described.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DescribedOption {
    /// The name.
    pub name: String,
    /// What its values are, in words.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value it has where none is given; `null` where it is absent then.
    pub default: Value,
    /// What it means.
    pub doc: String,
}

impl DescribedOption {
    /// The option of a property of a JSON schema.
    pub(super) fn new(name: &str, schema: &Value, default: Option<&Value>) -> Self {
        let doc = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        Self {
            name: name.to_owned(),
            kind: kind(schema),
            default: shortest(default.cloned().unwrap_or_default()),
            doc: doc.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// The default as text.
    pub fn default_text(&self) -> String {
        match &self.default {
            Value::Null => "absent".to_owned(),
            value => value.to_string(),
        }
    }
}

/// What values of a schema are, in words.
fn kind(schema: &Value) -> String {
    let one_of = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(values) = one_of {
        let kinds = values.iter().filter(|value| value.get("type") != Some(&"null".into()));
        return kinds.map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        let values = values.iter().filter(|value| !value.is_null()).map(Value::to_string);
        return values.collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("any")
        }
        _ => "any",
    };
    let is_unsigned = schema.get("minimum").and_then(Value::as_f64) == Some(0.0);
    match kind {
        "integer" if is_unsigned => "whole number from 0".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "string" => "text".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("list of {}", kind_of_items(items)),
            None => match schema.get("prefixItems").and_then(Value::as_array) {
                Some(items) => {
                    format!("[{}]", items.iter().map(self::kind).collect::<Vec<_>>().join(", "))
                }
                None => "list".to_owned(),
            },
        },
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => table(properties),
            None => "table".to_owned(),
        },
        "any" => "any value".to_owned(),
        other => other.to_owned(),
    }
}

fn kind_of_items(items: &Value) -> String {
    match kind(items) {
        kind if kind.contains(" or ") => format!("({kind})"),
        kind => kind,
    }
}

fn table(properties: &Map<String, Value>) -> String {
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    format!("table of {}", names.join(", "))
}

/// Numbers that are exactly those of 32 bits are written as short as these can be.
fn shortest(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let wide = number.as_f64().unwrap_or_default();
            let narrow = wide as f32;
            let short = narrow.to_string().parse().ok();
            short
                .filter(|_| f64::from(narrow) == wide)
                .map_or(Value::Number(number), |short: f64| Value::from(short))
        }
        Value::Array(values) => values.into_iter().map(shortest).collect(),
        Value::Object(values) => {
            values.into_iter().map(|(name, value)| (name, shortest(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_told_in_words() {
        let told = |schema: Value| kind(&schema);
        assert_eq!(told(json!({ "type": "integer", "minimum": 0 })), "whole number from 0");
        assert_eq!(told(json!({ "type": ["number", "null"] })), "number");
        let choice = json!({ "oneOf": [{ "type": "string", "const": "a" }, { "const": "b" }] });
        assert_eq!(told(choice.clone()), "\"a\" or \"b\"");
        assert_eq!(told(json!({ "type": "array", "items": choice })), "list of (\"a\" or \"b\")");
        let table = json!({ "type": "object", "properties": { "x": {}, "y": {} } });
        assert_eq!(told(json!({ "anyOf": [table, { "type": "null" }] })), "table of x, y");
    }

    #[test]
    fn numbers_of_32_bits_are_short() {
        assert_eq!(shortest(json!([0.1_f32, 0.1, 0.5, 3])).to_string(), "[0.1,0.1,0.5,3]");
    }
}
