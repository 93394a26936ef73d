//! Shapes of data: which fields a model has, of which kinds, in which order.

use std::sync::{Arc, OnceLock};

use spar_python::{Dict, Keys, Outcome, Value};

use crate::object::{attribute, attribute_mut};

/// A model: an object with declared fields, which is stored as a dictionary in the order of these.
#[derive(Debug)]
pub(crate) struct Model {
    /// The name, which error texts show.
    pub(crate) name: &'static str,
    /// The fields in the order in which they are written.
    pub(crate) fields: &'static [Field],
    /// Whether other fields are refused; else they are dropped.
    pub is_closed: bool,
    /// The names of the fields as keys, which all objects of the model share.
    keys: OnceLock<Arc<Keys>>,
}

/// A field of a model.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name.
    pub(crate) name: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What it holds where nothing is given; absent: it has to be given.
    pub default: Option<fn() -> Value>,
}

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A text.
    Str,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A truth value.
    Bool,
    /// A day, written `2025-02-01`.
    Date,
    /// A time, written `2025-02-01 12:30:00`.
    DateTime,
    /// One of these texts.
    Literal(&'static [&'static str]),
    /// A member of an enumeration, by its value.
    Enum(&'static [&'static str]),
    /// That, or nothing.
    Optional(&'static Kind),
    /// A list of these.
    List(&'static Kind),
    /// A dictionary from one kind to another.
    Dict(&'static Kind, &'static Kind),
    /// An object.
    Model(&'static Model),
    /// An object of one of several models.
    Union(&'static [&'static Model]),
}

impl Model {
    /// A model that drops fields it does not have.
    pub(crate) const fn open(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, is_closed: false, keys: OnceLock::new() }
    }

    /// A model that refuses fields it does not have.
    pub(crate) const fn closed(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, is_closed: true, keys: OnceLock::new() }
    }

    /// An object with these values of its fields, of all in their order, which nobody checks.
    pub(crate) fn object(&self, values: Vec<Value>) -> Value {
        Value::Dict(Dict::of_shape(Arc::clone(self.keys()), values).into())
    }

    fn keys(&self) -> &Arc<Keys> {
        self.keys.get_or_init(|| {
            let names = self.fields.iter().map(|field| Value::from(field.name));
            Arc::new(Keys::from_distinct(names.collect()))
        })
    }

    /// The value of a field, by its place among the fields: without a search in what was made as an object of this model.
    ///
    /// # Errors
    ///
    /// The `AttributeError` of what has no such attribute.
    pub(crate) fn get<'v>(&self, object: &'v Value, place: usize) -> Outcome<&'v Value> {
        match object.as_dict().and_then(|fields| fields.at(self.keys(), place)) {
            Some(value) => Ok(value),
            None => attribute(object, self.fields[place].name),
        }
    }

    /// As [`get`](Self::get), to be changed.
    ///
    /// # Errors
    ///
    /// The same.
    pub(crate) fn get_mut<'v>(
        &self,
        object: &'v mut Value,
        place: usize,
    ) -> Outcome<&'v mut Value> {
        let keys = self.keys();
        if object.as_dict().is_none_or(|fields| fields.at(keys, place).is_none()) {
            return attribute_mut(object, self.fields[place].name);
        }
        let value = object.as_dict_mut().and_then(|fields| fields.at_mut(keys, place));
        Ok(value.expect("a copy has the same keys"))
    }
}

/// Names the fields of a model, in their order, so that each finds its value by its place.
macro_rules! attributes {
    ($(#[$about:meta])* $name:ident of $model:ident { $($field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(dead_code, reason = "some stand there for the places of those behind them")]
        #[allow(clippy::enum_variant_names, reason = "fields are called what the release calls them")]
        pub(crate) enum $name { $($field),* }

        impl $name {
            /// Its value.
            #[inline]
            pub(crate) fn of(self, object: &spar_python::Value) -> spar_python::Outcome<&spar_python::Value> {
                $model.get(object, self as usize)
            }

            /// Its value, to be changed.
            #[allow(dead_code, reason = "some models are never changed")]
            pub(crate) fn of_mut(
                self,
                object: &mut spar_python::Value,
            ) -> spar_python::Outcome<&mut spar_python::Value> {
                $model.get_mut(object, self as usize)
            }

            /// All of them with the names that the model has at their places.
            #[cfg(test)]
            pub(crate) fn named() -> Vec<(String, &'static str)> {
                let all = [$($name::$field),*];
                assert_eq!(all.len(), $model.fields.len());
                all.into_iter().map(|it| (format!("{it:?}"), $model.fields[it as usize].name)).collect()
            }
        }
    };
}
pub(crate) use attributes;

/// A field that has to be given.
pub(crate) const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, default: None }
}

/// A field that has a value of its own.
pub(crate) const fn defaults(name: &'static str, kind: Kind, default: fn() -> Value) -> Field {
    Field { name, kind, default: Some(default) }
}

/// A field that may be absent, and is nothing then.
pub(crate) const fn optional(name: &'static str, kind: &'static Kind) -> Field {
    Field { name, kind: Kind::Optional(kind), default: Some(|| Value::None) }
}

#[cfg(test)]
mod tests {
    use crate::telecom::data::{Bill, Customer, Line, Plan};
    use crate::telecom::device_data::{Around, Phone};

    /// `WifiSsid` as `wifi_ssid`.
    fn snake_case(name: &str) -> String {
        let mut snake = String::new();
        for letter in name.chars() {
            if (letter.is_uppercase() || letter.is_ascii_digit()) && !snake.is_empty() {
                snake.push('_');
            }
            snake.extend(letter.to_lowercase());
        }
        snake
    }

    #[test]
    fn attributes_stand_in_the_order_of_the_fields() {
        for named in [
            Phone::named(),
            Around::named(),
            Plan::named(),
            Line::named(),
            Bill::named(),
            Customer::named(),
        ] {
            for (attribute, field) in named {
                assert_eq!(snake_case(&attribute), field);
            }
        }
    }
}
