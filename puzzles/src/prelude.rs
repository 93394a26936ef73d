//! What nearly every dataset uses.

pub(crate) use serde_json::{Value, json};
pub(crate) use spar_python::text::{lower, strip, words};
pub(crate) use spar_python::{Random, repr_float};

pub(crate) use crate::dataset::Generator;
pub(crate) use crate::options::{options, texts};
pub(crate) use crate::scoring::{big_int, float, is_json_equal, json_loads, share};
pub(crate) use crate::text::{joined, list, list_of_texts, matrix, rounded};
pub(crate) use crate::{Item, ItemError};
