//! Calls of tools that are drawn from their schemas.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};
use spar_core::{ToolCall, ToolSpec};

/// How deep values are drawn; what lies deeper is empty.
const MAX_DEPTH: u32 = 4;
/// The most items of a list.
const MAX_ITEMS: usize = 2;
/// How often a parameter is given that may be left out.
const OPTIONAL_SHARE: f64 = 0.5;
/// The range of numbers whose schema gives none.
const NUMBERS: (i64, i64) = (0, 10);

/// A call of a tool with arguments that its schema describes: one of the values where it lists some, whole numbers from 0 to 10
/// where it names no range, and for texts one of `words`.
///
/// Patterns, formats, lengths and references of schemas are not heeded.
pub(super) fn random_call(tool: &ToolSpec, words: &[&str], rng: &mut impl RngExt) -> ToolCall {
    ToolCall::new(&*tool.name, object(&tool.parameters, words, 0, rng))
}

/// What the properties of a schema describe; those that need not be there half of the time.
fn object(schema: &Value, words: &[&str], depth: u32, rng: &mut impl RngExt) -> Map<String, Value> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut drawn = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|it| it.as_str() == Some(name));
        if is_required || rng.random_bool(OPTIONAL_SHARE) {
            drawn.insert(name.clone(), value(schema, words, depth + 1, rng));
        }
    }
    drawn
}

fn value(schema: &Value, words: &[&str], depth: u32, rng: &mut impl RngExt) -> Value {
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(drawn) = schema["enum"].as_array().and_then(|values| values.choose(rng)) {
        return drawn.clone();
    }
    let either = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(of) = either.and_then(|schemas| schemas.choose(rng))
        && depth < MAX_DEPTH
    {
        return value(of, words, depth + 1, rng);
    }
    let one_of = schema["type"].as_array().and_then(|types| types.choose(rng));
    match one_of.unwrap_or(&schema["type"]).as_str() {
        Some("boolean") => rng.random_bool(0.5).into(),
        Some("null") => Value::Null,
        Some("integer") => rng.random_range(range(schema)).into(),
        Some("number") => json!(rng.random_range(range(schema))),
        Some("array") if depth < MAX_DEPTH => {
            let count = rng.random_range(0..=MAX_ITEMS);
            (0..count).map(|_| value(&schema["items"], words, depth + 1, rng)).collect()
        }
        Some("array") => json!([]),
        Some("object") if depth < MAX_DEPTH => object(schema, words, depth, rng).into(),
        Some("object") => json!({}),
        _ => words.choose(rng).copied().unwrap_or_default().into(),
    }
}

/// The whole numbers that a schema allows, as far as it says; eleven of them where one end is open.
fn range(schema: &Value) -> std::ops::RangeInclusive<i64> {
    let bound = |name: &str| schema[name].as_f64();
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|it| it + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|it| it - 1.0));
    #[expect(clippy::cast_possible_truncation, reason = "what is larger counts as the largest")]
    let (least, most) = (least.map(|it| it.ceil() as i64), most.map(|it| it.floor() as i64));
    let width = NUMBERS.1 - NUMBERS.0;
    let (least, most) = match (least, most) {
        (None, None) => NUMBERS,
        (Some(least), None) => (least, least.saturating_add(width)),
        (None, Some(most)) => (most.saturating_sub(width), most),
        (Some(least), Some(most)) => (least, most),
    };
    least..=most.max(least)
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;

    #[test]
    fn arguments_are_such_as_the_schema_describes() {
        let schema = json!({
            "type": "object",
            "properties": {
                "size": { "type": "string", "enum": ["small", "large"] },
                "count": { "type": "integer", "minimum": 3, "maximum": 5 },
                "price": { "type": "number", "exclusiveMinimum": 0 },
                "name": { "type": "string" },
                "note": { "type": ["string", "null"] },
                "items": { "type": "array", "items": { "type": "boolean" } },
                "at": { "type": "object", "properties": { "x": { "const": 1 } }, "required": ["x"] },
                "who": { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] },
                "any": true,
            },
            "required": ["size", "count", "price", "name", "items", "at"],
        });
        let tool = ToolSpec::new("order", "", schema);
        let words = ["tea", "cup"];
        let is_word = |value: &Value| words.iter().any(|word| value == word);
        let mut has_note = [0; 2];
        for seed in 0..200 {
            let call = random_call(&tool, &words, &mut Seed::from_u64(seed).rng());
            let given = call.arguments;
            assert!(given["size"] == "small" || given["size"] == "large");
            assert!((3..=5).contains(&given["count"].as_i64().unwrap()));
            assert!((1..=11).contains(&given["price"].as_i64().unwrap()));
            assert!(is_word(&given["name"]));
            assert!(given["items"].as_array().unwrap().iter().all(Value::is_boolean));
            assert_eq!(given["at"], json!({ "x": 1 }));
            let note = given.get("note");
            assert!(note.is_none_or(|note| note.is_null() || is_word(note)));
            has_note[usize::from(note.is_some())] += 1;
        }
        assert!(has_note.iter().all(|count| *count > 60), "{has_note:?}");
        let wide = json!({ "minimum": i64::MIN, "maximum": i64::MAX });
        assert_eq!(
            (range(&wide), range(&json!({ "maximum": -5 }))),
            (i64::MIN..=i64::MAX, -15..=-5)
        );
        assert_eq!(range(&json!({ "minimum": 3, "maximum": 1 })), 3..=3);
    }

    #[test]
    fn schemas_that_never_end_are_cut_off() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..50 {
            schema =
                json!({ "type": "object", "properties": { "in": schema }, "required": ["in"] });
        }
        let tool = ToolSpec::new("deep", "", schema);
        let call = random_call(&tool, &[], &mut Seed::from_u64(0).rng());
        assert!(Value::from(call.arguments).to_string().len() < 100);
    }
}
