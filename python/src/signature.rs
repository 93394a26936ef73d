//! How arguments find their parameters.

use crate::evaluate::Arguments;
use crate::{Exception, Outcome, Value};

/// The parameters of a method, `self` apart.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// `Class.method`, as exceptions name it.
    pub name: &'static str,
    /// The parameters in order; those with a default stand behind those without.
    pub parameters: &'static [Parameter],
}

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is when it is not given; absent, it has to be.
    pub default: Option<Default>,
}

/// What a parameter is when it is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// `None`
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A text.
    Str(&'static str),
    /// An empty list.
    EmptyList,
    /// An empty list that all calls share, and so can be changed by one for the others: an
    /// [opaque](Value::Opaque) stand-in of this name, which the method replaces.
    SharedList(&'static str),
}

impl Default {
    /// The value.
    pub fn value(self) -> Value {
        match self {
            Self::None => Value::None,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::from(value),
            Self::Str(text) => Value::from(text),
            Self::EmptyList => Value::list([]),
            Self::SharedList(name) => Value::Opaque(std::sync::Arc::new(crate::Opaque {
                type_name: "list",
                repr: name.to_owned(),
            })),
        }
    }
}

impl Signature {
    /// Puts arguments to their parameters: one value for each, in their order.
    ///
    /// # Errors
    ///
    /// The `TypeError` that CPython words for too many, unknown, doubled or missing ones.
    pub fn bind(&self, arguments: Arguments) -> Outcome<Vec<Value>> {
        let name = self.name;
        let count = self.parameters.len();
        let num_positional = arguments.positional.len();
        let mut places: Vec<Option<Value>> = vec![None; count];
        for (place, value) in places.iter_mut().zip(arguments.positional) {
            *place = Some(value);
        }
        for (keyword, value) in arguments.keyword {
            if keyword == "self" {
                return Err(Exception::type_error(format_args!(
                    "{name}() got multiple values for argument 'self'"
                )));
            }
            let Some(at) = self.parameters.iter().position(|known| known.name == keyword) else {
                return Err(Exception::type_error(format_args!(
                    "{name}() got an unexpected keyword argument '{keyword}'"
                )));
            };
            if places[at].is_some() {
                return Err(Exception::type_error(format_args!(
                    "{name}() got multiple values for argument '{keyword}'"
                )));
            }
            places[at] = Some(value);
        }
        if num_positional > count {
            return Err(self.too_many(num_positional));
        }
        let missing: Vec<&str> = self
            .parameters
            .iter()
            .zip(&places)
            .filter(|(parameter, place)| place.is_none() && parameter.default.is_none())
            .map(|(parameter, _)| parameter.name)
            .collect();
        if !missing.is_empty() {
            return Err(self.missing(&missing));
        }
        Ok(places
            .into_iter()
            .zip(self.parameters)
            .map(|(place, parameter)| {
                place.unwrap_or_else(|| parameter.default.map(Default::value).unwrap_or_default())
            })
            .collect())
    }

    fn too_many(&self, num_positional: usize) -> Exception {
        let (most, given) = (self.parameters.len() + 1, num_positional + 1);
        let defaults = self.parameters.iter().filter(|known| known.default.is_some()).count();
        let takes = match defaults {
            0 => format!("{most} positional argument{}", if most == 1 { "" } else { "s" }),
            _ => format!("from {} to {most} positional arguments", most - defaults),
        };
        let were = if given == 1 { "was" } else { "were" };
        Exception::type_error(format_args!(
            "{}() takes {takes} but {given} {were} given",
            self.name
        ))
    }

    fn missing(&self, names: &[&str]) -> Exception {
        let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let list = match &*quoted {
            [only] => only.clone(),
            [one, other] => format!("{one} and {other}"),
            [first @ .., last] => format!("{}, and {last}", first.join(", ")),
            [] => String::new(),
        };
        Exception::type_error(format_args!(
            "{}() missing {} required positional argument{}: {list}",
            self.name,
            names.len(),
            if names.len() == 1 { "" } else { "s" }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: Signature = Signature {
        name: "C.f",
        parameters: &[
            Parameter { name: "a", default: None },
            Parameter { name: "b", default: None },
            Parameter { name: "c", default: None },
            Parameter { name: "d", default: Some(Default::Int(3)) },
        ],
    };

    fn bound(positional: usize, keyword: &[&str]) -> Result<String, String> {
        let arguments = Arguments {
            positional: vec![Value::None; positional],
            keyword: keyword.iter().map(|name| ((*name).to_owned(), Value::Bool(true))).collect(),
        };
        match SIGNATURE.bind(arguments) {
            Ok(bound) => Ok(crate::repr(&Value::list(bound)).unwrap()),
            Err(error) => Err(error.text),
        }
    }

    #[test]
    fn arguments_find_their_parameters_or_raise() {
        assert_eq!(bound(1, &["c", "b"]), Ok("[None, True, True, 3]".into()));
        for (positional, keyword, words) in [
            (0, &[][..], "C.f() missing 3 required positional arguments: 'a', 'b', and 'c'"),
            (1, &[], "C.f() missing 2 required positional arguments: 'b' and 'c'"),
            (2, &[], "C.f() missing 1 required positional argument: 'c'"),
            (1, &["a"], "C.f() got multiple values for argument 'a'"),
            (9, &["x"], "C.f() got an unexpected keyword argument 'x'"),
            (5, &[], "C.f() takes from 4 to 5 positional arguments but 6 were given"),
        ] {
            assert_eq!(bound(positional, keyword), Err(words.into()));
        }
        let none = Signature { name: "C.g", parameters: &[] };
        let one = Arguments { positional: vec![Value::None], keyword: Vec::new() };
        let words = "C.g() takes 1 positional argument but 2 were given";
        assert_eq!(none.bind(one).unwrap_err().text, words);
    }
}
