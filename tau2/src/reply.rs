//! What tools return, and how it reads.

use spar_python::{Outcome, Value, json_dumps, json_dumps_to, to_str};

/// What most answers take, so that few have to grow as they are written.
const USUAL_BYTES: usize = 512;

/// What a tool returns.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A text, which stands for itself.
    Text(String),
    /// An object, or a list of objects, whose fields are written as what they are.
    Models(Value),
    /// The same, in writing.
    Written(String),
    /// A dictionary of single values and objects: numbers in it become texts, as the reference writes them.
    Mixed(Vec<(&'static str, Part)>),
    /// What an assertion finds.
    Truth(bool),
    /// Nothing.
    Nothing,
}

/// A value in a dictionary that is no object.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// A single value.
    Value(Value),
    /// An object.
    Model(Value),
}

impl Reply {
    /// A text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// How it reads.
    ///
    /// # Errors
    ///
    /// The `ValueError` of numbers with thousands of digits.
    pub(crate) fn into_text(self) -> Outcome<String> {
        match self {
            Self::Text(text) | Self::Written(text) => Ok(text),
            Self::Models(value) => {
                let mut text = String::with_capacity(USUAL_BYTES);
                json_dumps_to(&value, &mut text)?;
                Ok(text)
            }
            Self::Truth(truth) => json_dumps(&Value::from(if truth { "True" } else { "False" })),
            Self::Nothing => json_dumps(&Value::None),
            Self::Mixed(parts) => {
                let mut dict = spar_python::Dict::with_capacity(parts.len());
                for (name, part) in parts {
                    let value = match part {
                        Part::Model(value) => value,
                        Part::Value(value) if value.is_real() => to_str(&value)?.into(),
                        Part::Value(value) => value,
                    };
                    dict.insert_str(name, value);
                }
                json_dumps(&Value::Dict(dict.into()))
            }
        }
    }

    /// `type(value).__name__`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "str",
            Self::Models(_) | Self::Written(_) | Self::Mixed(_) => "dict",
            Self::Truth(_) => "bool",
            Self::Nothing => "NoneType",
        }
    }
}
