//! How calls are bound to what a tool takes.

use serde_json::{Map, json};
use spar_core::ToolSpec;
use spar_python::{Exception, Outcome, Value, from_json, is_json_shallow};

/// What a tool does, as the release sorts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// Looks something up.
    Read,
    /// Changes something; only these are played again when an episode is judged.
    Write,
    /// Neither.
    Generic,
    /// No tool: a function that initial states and assertions call.
    Hidden,
}

/// The type of an argument, as it is offered. Arguments of other types are passed on as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentType {
    /// A text.
    Str,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A truth value.
    Bool,
    /// A list of texts.
    Strs,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An object with these texts, or whole numbers where the name begins with `#`.
    Object(&'static [&'static str]),
    /// A list of such objects.
    Objects(&'static [&'static str]),
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    /// The name.
    pub name: &'static str,
    /// The type, as it is offered.
    pub kind: ArgumentType,
    /// Whether it may be left out, and is `None` then.
    pub is_optional: bool,
    /// What it is.
    pub about: &'static str,
}

/// A tool, or a function that initial states and assertions call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signature {
    /// The name.
    pub name: &'static str,
    /// What it does.
    pub kind: ToolKind,
    /// What it takes, in the order of its arguments.
    pub parameters: &'static [Parameter],
    /// What it is for.
    pub about: &'static str,
}

/// An argument that has to be given.
pub(crate) const fn argument(
    name: &'static str,
    kind: ArgumentType,
    about: &'static str,
) -> Parameter {
    Parameter { name, kind, is_optional: false, about }
}

/// An argument that may be left out.
pub(crate) const fn optional(
    name: &'static str,
    kind: ArgumentType,
    about: &'static str,
) -> Parameter {
    Parameter { name, kind, is_optional: true, about }
}

/// The arguments of a call in the order of the tool's parameters; those that were left out are absent.
#[derive(Debug)]
pub(crate) struct Arguments(Vec<Option<Value>>);

impl Arguments {
    /// An argument by its place; `None` where it was left out.
    pub(crate) fn get(&self, place: usize) -> &Value {
        const ABSENT: &Value = &Value::None;
        self.given(place).unwrap_or(ABSENT)
    }

    /// An argument by its place, if it was given.
    pub(crate) fn given(&self, place: usize) -> Option<&Value> {
        self.0.get(place).and_then(Option::as_ref)
    }
}

impl Signature {
    /// Whether it has this name. Many are asked that, and most differ in their length or their last letter.
    #[inline]
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let (own, other) = (self.name.as_bytes(), name.as_bytes());
        own.len() == other.len() && own.last() == other.last() && own == other
    }

    /// Binds arguments by their names.
    ///
    /// # Errors
    ///
    /// The `TypeError` of a name that is not taken, or of arguments that are missing; those that nest too deeply are refused.
    pub(crate) fn bind(
        &self,
        class: &str,
        arguments: &Map<String, serde_json::Value>,
    ) -> Outcome<Arguments> {
        let mut bound = vec![None; self.parameters.len()];
        for (name, value) in arguments {
            match self.parameters.iter().position(|parameter| parameter.name == name) {
                Some(_) if !is_json_shallow(value) => {
                    return Err(Exception::refused("the arguments of a call nest too deeply"));
                }
                Some(place) => bound[place] = Some(from_json(value)),
                None => {
                    return Err(Exception::type_error(format_args!(
                        "{class}.{}() got an unexpected keyword argument '{name}'",
                        self.name
                    )));
                }
            }
        }
        let is_given = |(parameter, value): (&Parameter, &Option<Value>)| {
            value.is_some() || parameter.is_optional
        };
        if self.parameters.iter().zip(&bound).all(is_given) {
            return Ok(Arguments(bound));
        }
        let missing: Vec<_> = self
            .parameters
            .iter()
            .zip(&bound)
            .filter(|(parameter, value)| value.is_none() && !parameter.is_optional)
            .map(|(parameter, _)| format!("'{}'", parameter.name))
            .collect();
        let listed = match &missing[..] {
            [one] => one.clone(),
            [one, other] => format!("{one} and {other}"),
            [all @ .., last] => format!("{}, and {last}", all.join(", ")),
            [] => unreachable!("arguments are missing"),
        };
        Err(Exception::type_error(format_args!(
            "{class}.{}() missing {} required positional argument{}: {listed}",
            self.name,
            missing.len(),
            if missing.len() == 1 { "" } else { "s" },
        )))
    }

    /// How the tool is offered.
    pub(crate) fn spec(&self) -> ToolSpec {
        let object = |fields: &[&str]| {
            let properties: Map<_, _> = fields
                .iter()
                .map(|field| match field.strip_prefix('#') {
                    Some(number) => (number.to_owned(), json!({ "type": "integer" })),
                    None => ((*field).to_owned(), json!({ "type": "string" })),
                })
                .collect();
            let names: Vec<_> = properties.keys().cloned().collect();
            json!({ "type": "object", "properties": properties, "required": names })
        };
        let mut properties = Map::new();
        for parameter in self.parameters {
            let mut schema = match parameter.kind {
                ArgumentType::Str => json!({ "type": "string" }),
                ArgumentType::Int => json!({ "type": "integer" }),
                ArgumentType::Float => json!({ "type": "number" }),
                ArgumentType::Bool => json!({ "type": "boolean" }),
                ArgumentType::Strs => json!({ "type": "array", "items": { "type": "string" } }),
                ArgumentType::OneOf(values) => json!({ "type": "string", "enum": values }),
                ArgumentType::Object(fields) => {
                    let mut schema = object(fields);
                    schema["required"] = json!([]);
                    schema
                }
                ArgumentType::Objects(fields) => {
                    json!({ "type": "array", "items": object(fields) })
                }
            };
            schema["description"] = parameter.about.into();
            properties.insert(parameter.name.to_owned(), schema);
        }
        let required: Vec<_> =
            self.parameters.iter().filter(|it| !it.is_optional).map(|it| it.name).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        ToolSpec::new(self.name, self.about, schema)
    }
}
