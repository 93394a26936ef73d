//! Arguments of calls as a struct: its JSON schema, and how it is read.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use spar_core::{ToolCall, ToolSpec};

use super::schema_check::mismatches;

/// The tool that takes a struct's fields: its doc comment is the description, those of its fields are theirs. Arguments that
/// it does not have are refused, and a field that may be absent is none that may be `null` to the policy.
pub fn spec_of<A: JsonSchema>(name: impl Into<String>) -> ToolSpec {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    let description = schema.get("description").and_then(Value::as_str).map(joined);
    plain(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|name, _| !["$schema", "title", "description"].contains(&name.as_str()));
        fields.entry("type").or_insert_with(|| "object".into());
        fields.entry("properties").or_insert_with(|| json!({}));
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    ToolSpec::new(name, description.unwrap_or_default(), schema)
}

/// Reads the arguments of a call of a tool whose schema is that of `A`, as [`spec_of`] makes it. A field that need not be there
/// may be `null`.
///
/// # Errors
///
/// A sentence for the policy: which arguments are unknown, absent, or of another form than expected.
pub fn read_arguments<A: DeserializeOwned>(spec: &ToolSpec, call: &ToolCall) -> Result<A, String> {
    let refuse = |detail: String| format!("The arguments of `{}` do not fit: {detail}.", call.name);
    let schema = &spec.parameters;
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
    let mut arguments: Map<String, Value> = call.arguments.clone();
    arguments.retain(|name, value| !value.is_null() || is_required(name) || !has(schema, name));
    let told = mismatches(schema, &arguments);
    if !told.is_empty() {
        return Err(refuse(told.join("; ")));
    }
    // What a schema cannot say, such as a number beyond its type.
    A::deserialize(Value::Object(arguments)).map_err(|error| refuse(error.to_string()))
}

fn has(schema: &Value, name: &str) -> bool {
    schema.get("properties").and_then(|properties| properties.get(name)).is_some()
}

/// Takes from a schema what only Rust knows: formats of numbers, `null` beside another type, and line breaks of comments.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_number = |fields: &Map<String, Value>| {
                let types = fields.get("type").map(Value::to_string).unwrap_or_default();
                types.contains("integer") || types.contains("number")
            };
            if is_number(fields) {
                fields.shift_remove("format");
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    fields.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type") != Some(&"null".into()));
                if let [Value::Object(one)] = &mut choices[..] {
                    let one = std::mem::take(one);
                    fields.shift_remove("anyOf");
                    for (name, value) in one {
                        fields.entry(name).or_insert(value);
                    }
                }
            }
            if fields.get("default") == Some(&Value::Null) {
                fields.shift_remove("default");
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = joined(text);
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        _ => {}
    }
}

/// A comment in one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Sends a
    /// letter.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Letter {
        /// To whom.
        to: String,
        /// How many
        /// sheets, at least 1.
        #[schemars(range(min = 1))]
        sheets: u8,
        /// How it goes.
        #[serde(default)]
        by: Way,
        /// What stands on it.
        note: Option<String>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Way {
        #[default]
        Land,
        Air,
    }

    fn read(arguments: Value) -> Result<Letter, String> {
        let call = ToolCall::new("send", arguments.as_object().unwrap().clone());
        read_arguments(&spec_of::<Letter>("send"), &call)
    }

    #[test]
    fn the_schema_is_that_of_the_struct() {
        let spec = spec_of::<Letter>("send");
        spec.validate().unwrap();
        assert_eq!(spec.description, "Sends a letter.");
        let expected = json!({
            "type": "object",
            "properties": {
                "to": { "description": "To whom.", "type": "string" },
                "sheets": {
                    "description": "How many sheets, at least 1.", "type": "integer", "minimum": 1, "maximum": 255,
                },
                "by": {
                    "description": "How it goes.", "type": "string", "enum": ["land", "air"], "default": "land",
                },
                "note": { "description": "What stands on it.", "type": "string" },
            },
            "required": ["to", "sheets"],
            "additionalProperties": false,
        });
        // Defaults that are no JSON of their own are left out by schemars.
        let mut found = spec.parameters.clone();
        let mut expected = expected;
        for schema in [&mut found, &mut expected] {
            schema["properties"]["by"].as_object_mut().unwrap().shift_remove("default");
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn arguments_are_read_or_told_what_is_wrong_with_them() {
        let letter = Letter { to: "Ann".to_owned(), sheets: 2, by: Way::Land, note: None };
        assert_eq!(read(json!({ "to": "Ann", "sheets": 2, "note": null })), Ok(letter));
        let told = read(json!({ "to": 1, "sheets": 0, "by": "sea", "from": "Bob" })).unwrap_err();
        for part in [
            "The arguments of `send` do not fit: `to`: expected a string, got 1; ",
            "`sheets`: expected a number of at least 1, got 0; ",
            "`by`: expected one of \"land\", \"air\", got the string \"sea\"; ",
            "there is no `from`, only ",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let told = read(json!({ "sheets": 256 })).unwrap_err();
        assert!(told.contains("a number of at most 255, got 256; `to` is missing"), "{told}");
    }
}
