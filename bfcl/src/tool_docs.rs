//! Descriptions of functions, as a policy is shown them.

use serde_json::{Map, Value as Json, json};

use crate::Language;

/// A function as it is offered as a tool: name, description, JSON schema of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeTool {
    /// The name, with underscores for dots.
    pub name: String,
    /// The description, with what is said of its language.
    pub description: String,
    /// The schema.
    pub parameters: Json,
}

/// A description of a function with what is said of its language; values of Java and JavaScript are asked for in words.
pub fn in_language(function: &Json, language: Language) -> Json {
    let mut function = function.clone();
    append(&mut function["description"], language.description_suffix());
    let (name, list_types): (&str, &[&str]) = match language {
        Language::Python => return function,
        Language::Java => ("Java", &["ArrayList", "Array"]),
        Language::JavaScript => ("JavaScript", &["array"]),
    };
    for (_, value) in function["parameters"]["properties"].as_object_mut().into_iter().flatten() {
        let documented = value["type"].as_str().unwrap_or_default().to_owned();
        let told = match &*documented {
            "any" => format!(
                " This parameter can be of any type of {name} object in string representation."
            ),
            other => format!(" This is {name} {other} type parameter in string representation."),
        };
        append(&mut value["description"], &told);
        if list_types.contains(&&*documented) {
            let inner = value["items"]["type"].as_str().unwrap_or_default().to_owned();
            append(
                &mut value["description"],
                &format!(
                    " The list elements are of type {inner}; they are not in string representation."
                ),
            );
            take(value, "items");
        }
        if language == Language::JavaScript
            && documented == "dict"
            && let Some(properties) = value.get("properties").cloned()
        {
            let shown = spar_python::json_dumps(&spar_python::from_json(&properties));
            let told = format!(
                " The dictionary entries have the following schema; they are not in string representation. {}",
                shown.unwrap_or_default()
            );
            append(&mut value["description"], &told);
            take(value, "properties");
        }
        value["type"] = json!("string");
    }
    function
}

/// A described function as a native tool: types by their names in JSON schemas, names without dots.
pub fn native_tool(function: &Json) -> NativeTool {
    let mut parameters = function["parameters"].clone();
    parameters["type"] = json!("object");
    match parameters.get_mut("properties").and_then(Json::as_object_mut) {
        Some(properties) => cast_all(properties),
        None => parameters["properties"] = json!({}),
    }
    NativeTool {
        name: function["name"].as_str().unwrap_or_default().replace('.', "_"),
        description: function["description"].as_str().unwrap_or_default().to_owned(),
        parameters,
    }
}

fn cast_all(properties: &mut Map<String, Json>) {
    for value in properties.values_mut().filter(|value| value.is_object()) {
        let documented = value["type"].as_str().unwrap_or("any").to_owned();
        if documented == "float" {
            value["format"] = json!("float");
            append(&mut value["description"], " This is a float type value.");
        }
        let cast = json_type(&documented);
        value["type"] = json!(cast);
        if cast == "array" || cast == "object" {
            if let Some(inner) = value.get_mut("properties").and_then(Json::as_object_mut) {
                cast_all(inner);
            } else if let Some(items) = value.get_mut("items") {
                cast_items(items);
            }
        }
    }
}

fn cast_items(items: &mut Json) {
    let Some(documented) = items["type"].as_str().map(str::to_owned) else { return };
    let cast = json_type(&documented);
    items["type"] = json!(cast);
    if cast == "array" {
        if let Some(inner) = items.get_mut("items") {
            let documented = inner["type"].as_str().unwrap_or("any").to_owned();
            inner["type"] = json!(json_type(&documented));
        }
    } else if cast == "object"
        && let Some(inner) = items.get_mut("properties").and_then(Json::as_object_mut)
    {
        cast_all(inner);
    }
}

/// The name of a type in JSON schemas; what is unknown is a text.
fn json_type(documented: &str) -> &'static str {
    match documented {
        "integer" | "byte" | "short" | "long" | "Bigint" => "integer",
        "number" | "float" | "double" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" | "tuple" | "ArrayList" | "Array" | "Queue" | "Stack" => "array",
        "dict" | "object" | "HashMap" | "Hashtable" => "object",
        _ => "string",
    }
}

fn append(text: &mut Json, more: &str) {
    *text = json!(format!("{}{more}", text.as_str().unwrap_or_default()));
}

fn take(value: &mut Json, name: &str) {
    if let Some(entries) = value.as_object_mut() {
        entries.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_names_are_those_of_native_calls() {
        let function = json!({
            "name": "a.b",
            "description": "Does.",
            "parameters": {"type": "dict", "required": ["x"], "properties": {
                "x": {"type": "float", "description": "A number."},
                "y": {"type": "array", "items": {"type": "dict", "properties": {"z": {"type": "any"}}}},
                "t": {"type": "tuple", "items": {"type": "array", "items": {"type": "float"}}},
            }},
        });
        let tool = native_tool(&in_language(&function, Language::Python));
        assert_eq!(tool.name, "a_b");
        assert_eq!(
            tool.description,
            "Does. Note that the provided function is in Python 3 syntax."
        );
        let expected = json!({"type": "object", "required": ["x"], "properties": {
            "x": {"type": "number", "description": "A number. This is a float type value.", "format": "float"},
            "y": {"type": "array", "items": {"type": "object", "properties": {"z": {"type": "string"}}}},
            "t": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        }});
        assert_eq!(tool.parameters, expected);
    }

    #[test]
    fn values_of_java_are_asked_for_in_words() {
        let function = json!({"name": "f", "description": "D.", "parameters": {"type": "dict", "properties": {
            "l": {"type": "ArrayList", "description": "L.", "items": {"type": "String"}},
        }}});
        let told = in_language(&function, Language::Java);
        assert_eq!(
            told["parameters"]["properties"]["l"],
            json!({
                "type": "string",
                "description": "L. This is Java ArrayList type parameter in string representation. The list elements are of type String; they are not in string representation.",
            })
        );
    }
}
