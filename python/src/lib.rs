//! What CPython gives for the same input: its generator of random numbers, its words for values, its calls.
//!
//! Programs that were written in Python are rebuilt on this, equal to the character: what they print, what they draw
//! and what they raise. Version 3.12 is meant throughout.
//!
//! ```text
//! text ──parse──▶ Expression ──evaluate──▶ Value ──▶ repr, to_str, json_dumps, equal
//!                                 │ Scope (names of the caller)
//!                                 └──▶ Exception (class and words, as CPython words them)
//!
//! seed ──▶ Random, numpy_random::{Generator, RandomState} ──▶ random, int, uniform, choice, shuffle, sample, ...
//! ```
//!
//! ```
//! use spar_python::{NoNames, Random, eval, repr};
//!
//! let value = eval("[1, 2.0 ** 0.5, 'it\\'s']", &mut NoNames).unwrap();
//! assert_eq!(repr(&value).unwrap(), r#"[1, 1.4142135623730951, "it's"]"#);
//! let error = eval("len(5)", &mut NoNames).unwrap_err();
//! assert_eq!(error.text, "object of type 'int' has no len()");
//! assert_eq!(Random::from_u64(200_191).int(10_000, 99_999).unwrap(), 67_410);
//! ```
//!
//! Whatever is evaluated ends: texts, depths and sizes have limits, beyond which an exception of the kind
//! [`Refused`](ExceptionKind::Refused) says so. A value counts as large as it is written out, so that going over one
//! takes no longer than its size allows, however much of it is shared ([`Budget`]).

mod arithmetic;
mod arithmetic_errors;
mod budget;
mod builtins;
pub mod characters;
mod compare;
mod convert;
mod dict;
mod equal;
mod evaluate;
mod exception;
mod int;
mod json_dumps;
mod literal_call;
mod methods;
pub mod numpy_random;
mod random;
mod repr;
mod sequence;
pub mod signature;
mod sum;
mod syntax;
pub mod text;
mod tokens;
mod unicode_tables;
mod value;

pub use arithmetic::{BinaryOperator, absolute, binary, int_to_float, invert, negate, plus};
pub use budget::Budget;
pub use compare::{Comparison, compare, contains, maximum, minimum, sorted};
pub use convert::{fixed, format_fixed, round, square, square_root, to_float, to_int};
pub use dict::{Dict, Keys, Set};
pub use equal::equal;
pub use evaluate::{Arguments, NoNames, Scope, eval, evaluate, evaluate_within, name_error};
pub use exception::{Exception, ExceptionKind, Outcome};
pub use int::Int;
pub use json_dumps::{
    JsonOptions, MAX_JSON_DEPTH, from_json, is_json_shallow, json_dumps, json_dumps_to,
    json_dumps_with,
};
pub use literal_call::{BoundArguments, LiteralCall};
pub use random::{Random, seeded};
pub use repr::{repr, repr_float, repr_int, repr_str, to_str};
pub use sequence::{elements, iterate, join, length, slice, subscript, to_list};
pub use signature::{Parameter, Signature};
pub use sum::sum;
pub use syntax::{Argument, BitOperator, Expression, Relation, UnaryOperator, is_keyword, parse};
pub use tokens::MAX_BYTES as MAX_EXPRESSION_BYTES;
pub use value::{Opaque, Value};
