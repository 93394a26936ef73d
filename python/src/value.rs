//! Values of Python.

use std::sync::Arc;

use num_bigint::BigInt;
use smol_str::SmolStr;

use crate::budget::take_size;
use crate::{Dict, Exception, Int, Outcome, Set};

/// A value of Python.
///
/// Containers are shared until they are changed, so that a clone costs one count. They are values, not objects: a list
/// that stands in two places is two lists, and a change of one does not show in the other.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// `None`.
    #[default]
    None,
    /// `...`.
    Ellipsis,
    /// `True` and `False`.
    Bool(bool),
    /// A whole number, without bounds.
    Int(Int),
    /// A number in double precision.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
    /// A text; short ones stand in the value itself. It cannot hold lone surrogates, as one of Python's could.
    Str(SmolStr),
    /// A list.
    List(Arc<Vec<Value>>),
    /// A tuple.
    Tuple(Arc<Vec<Value>>),
    /// A dictionary, in the order of insertion.
    Dict(Arc<Dict>),
    /// A set. It goes over its elements in the order of insertion, where CPython's order is that of their hashes.
    Set(Arc<Set>),
    /// Something else, of which only the type and the representation are known.
    Opaque(Arc<Opaque>),
}

/// An object of which only these two texts are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// `type(value).__name__`.
    pub type_name: &'static str,
    /// `repr(value)`.
    pub repr: String,
}

impl Value {
    /// A text.
    pub fn str(text: impl Into<SmolStr>) -> Self {
        Self::Str(text.into())
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Self::List(Arc::new(items.into_iter().collect()))
    }

    /// A tuple.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Self {
        Self::Tuple(Arc::new(items.into_iter().collect()))
    }

    /// A dictionary with texts as its keys.
    pub fn dict<K: Into<SmolStr>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        let entries = entries.into_iter();
        let mut dict = Dict::with_capacity(entries.size_hint().0);
        for (key, value) in entries {
            dict.insert_str(key, value);
        }
        Self::Dict(Arc::new(dict))
    }

    /// A dictionary of some names, all different. They are not copied and not compared, which makes it the quickest one to
    /// make.
    ///
    /// # Panics
    ///
    /// When a name stands there twice and debug assertions are on.
    pub fn record<const N: usize>(entries: [(&'static str, Value); N]) -> Self {
        Self::Dict(Arc::new(Dict::of_different(entries)))
    }

    /// `type(value).__name__`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Ellipsis => "ellipsis",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Complex(..) => "complex",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Set(_) => "set",
            Self::Opaque(opaque) => opaque.type_name,
        }
    }

    /// `bool(value)`.
    pub fn is_true(&self) -> bool {
        match self {
            Self::None => false,
            Self::Ellipsis | Self::Opaque(_) => true,
            Self::Bool(value) => *value,
            Self::Int(value) => !value.is_zero(),
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(items) | Self::Tuple(items) => !items.is_empty(),
            Self::Dict(dict) => !dict.is_empty(),
            Self::Set(set) => !set.is_empty(),
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if it is one; truth values are ones too.
    pub fn as_int(&self) -> Option<BigInt> {
        match self {
            Self::Int(value) => Some(value.to_big()),
            Self::Bool(value) => Some(BigInt::from(u8::from(*value))),
            _ => None,
        }
    }

    /// The whole number, if it is one of 64 bits with its sign; truth values are ones too.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => value.to_i64(),
            Self::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// The dictionary, if it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The dictionary to change, if it is one.
    pub fn as_dict_mut(&mut self) -> Option<&mut Dict> {
        match self {
            Self::Dict(dict) => Some(Arc::make_mut(dict)),
            _ => None,
        }
    }

    /// The list to change, if it is one.
    pub fn as_list_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Self::List(items) => Some(Arc::make_mut(items)),
            _ => None,
        }
    }

    /// The elements of the list, if it is one.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is an instance of `int` or `float`.
    pub fn is_real(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Float(_))
    }

    /// How many bytes it has: those of its texts and large numbers, and of a [`Value`] for itself and everything in it.
    /// What is shared counts as often as it occurs. None beyond a limit, which also ends the count.
    pub fn size_within(&self, most: usize) -> Option<usize> {
        let mut left = most;
        take_size(self, &mut left)?;
        Some(most - left)
    }

    /// What raises unless the value can be hashed.
    ///
    /// # Errors
    ///
    /// The `TypeError` that names the type which cannot.
    pub fn check_hashable(&self) -> Outcome<()> {
        match self {
            Self::List(_) | Self::Dict(_) | Self::Set(_) => {
                Err(Exception::type_error(format_args!("unhashable type: '{}'", self.type_name())))
            }
            Self::Tuple(items) => items.iter().try_for_each(Value::check_hashable),
            _ => Ok(()),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::str(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Int(value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Int(value.into())
    }
}

impl From<BigInt> for Value {
    fn from(value: BigInt) -> Self {
        Self::Int(value.into())
    }
}
