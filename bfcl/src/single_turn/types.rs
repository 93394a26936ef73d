//! Names of types in descriptions of functions.

use spar_python::{Exception, Outcome};

use super::Language;

/// The name of the Python type that a documented type stands for.
///
/// # Errors
///
/// The `KeyError` of a type that the language has not.
pub(super) fn python_type(language: Language, documented: &str) -> Outcome<&'static str> {
    let found = match language {
        Language::Python => match documented {
            "string" | "any" => Some("str"),
            "integer" => Some("int"),
            "float" => Some("float"),
            "boolean" => Some("bool"),
            "array" | "tuple" => Some("list"),
            "dict" => Some("dict"),
            _ => None,
        },
        Language::Java => match documented {
            "byte" | "short" | "integer" | "long" => Some("int"),
            "float" | "double" => Some("float"),
            "boolean" => Some("bool"),
            "char" | "String" | "any" => Some("str"),
            "Array" | "ArrayList" | "Queue" | "Stack" => Some("list"),
            "Set" => Some("set"),
            "HashMap" | "Hashtable" => Some("dict"),
            _ => None,
        },
        Language::JavaScript => match documented {
            "String" | "any" => Some("str"),
            "integer" | "Bigint" => Some("int"),
            "float" => Some("float"),
            "Boolean" => Some("bool"),
            "dict" => Some("dict"),
            "array" => Some("list"),
            _ => None,
        },
    };
    found.ok_or_else(|| Exception::key_error(&spar_python::Value::from(documented)))
}
