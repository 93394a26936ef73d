//! What CPython raises.

use std::fmt;

/// The classes of exceptions that are told apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExceptionKind {
    /// `AttributeError`.
    Attribute,
    /// `IndexError`.
    Index,
    /// `KeyError`.
    Key,
    /// `NameError`.
    Name,
    /// `OverflowError`.
    Overflow,
    /// `RecursionError`.
    Recursion,
    /// `SyntaxError`.
    Syntax,
    /// `TypeError`.
    Type,
    /// `ValueError`.
    Value,
    /// `ZeroDivisionError`.
    ZeroDivision,
    /// Any other class, such as `decimal.InvalidOperation`.
    Other,
    /// No exception of CPython's: what was asked is beyond a limit of this crate, or beyond what it implements.
    Refused,
}

/// An exception: its class, and what `str()` says of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Exception {
    /// The class.
    pub kind: ExceptionKind,
    /// `str(exception)`.
    pub text: String,
}

/// What a computation gives, or raises.
pub type Outcome<T> = Result<T, Exception>;

impl Exception {
    /// An exception of a class with these words.
    pub fn new(kind: ExceptionKind, text: impl fmt::Display) -> Self {
        Self { kind, text: text.to_string() }
    }

    /// A `TypeError`.
    pub fn type_error(text: impl fmt::Display) -> Self {
        Self::new(ExceptionKind::Type, text)
    }

    /// A `ValueError`.
    pub fn value_error(text: impl fmt::Display) -> Self {
        Self::new(ExceptionKind::Value, text)
    }

    /// A `KeyError`, of which `str()` shows the representation of the key.
    pub fn key_error(key: &crate::Value) -> Self {
        match crate::repr(key) {
            Ok(text) => Self::new(ExceptionKind::Key, text),
            Err(error) => error,
        }
    }

    /// An `AttributeError` of an object of this type.
    pub fn no_attribute(type_name: &str, attribute: &str) -> Self {
        Self::new(
            ExceptionKind::Attribute,
            format_args!("'{type_name}' object has no attribute '{attribute}'"),
        )
    }

    /// What is beyond this crate.
    pub fn refused(text: impl fmt::Display) -> Self {
        Self::new(ExceptionKind::Refused, text)
    }

    /// The `ValueError` of whole numbers with more than 4300 digits, which CPython does not write out.
    pub fn too_many_digits() -> Self {
        Self::value_error(
            "Exceeds the limit (4300 digits) for integer string conversion; use sys.set_int_max_str_digits() to increase the limit",
        )
    }
}
