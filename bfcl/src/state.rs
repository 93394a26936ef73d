//! States as JSON.

use serde_json::{Map, Value as Json, json};
use spar_python::{Value, repr, sorted};

/// A value as JSON that tells its types apart.
pub(crate) fn encoded(value: &Value) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) => match (number.to_i64(), u64::try_from(number.to_big())) {
            (Some(number), _) => json!(number),
            (None, Ok(number)) => json!(number),
            _ => json!({ "@repr": number.to_string() }),
        },
        Value::Float(number) if number.is_finite() => json!(number),
        Value::Str(text) => json!(**text),
        Value::List(items) => items.iter().map(encoded).collect(),
        Value::Tuple(items) => json!({ "@tuple": items.iter().map(encoded).collect::<Json>() }),
        Value::Set(items) => {
            // The order of a set says nothing.
            let sorted = sorted(items.iter().cloned().collect());
            let items = sorted.unwrap_or_else(|_| items.iter().cloned().collect());
            json!({ "@set": items.iter().map(encoded).collect::<Json>() })
        }
        Value::Dict(entries) => {
            let entries: Map<String, Json> = entries
                .iter()
                .map(|(key, value)| {
                    let key = match key {
                        Value::Str(text) => (**text).to_owned(),
                        other => {
                            let shown = repr(other).unwrap_or_default();
                            format!("@{}:{shown}", other.type_name())
                        }
                    };
                    (key, encoded(value))
                })
                .collect();
            Json::Object(entries)
        }
        Value::Ellipsis => json!({ "@ellipsis": true }),
        other => json!({ "@repr": repr(other).unwrap_or_default() }),
    }
}
