//! Methods as rows.

use spar_python::{Outcome, Signature, Value};

use crate::Process;

/// A method of a class: its parameters, and what it does with arguments in their order.
pub(crate) struct Method<S> {
    /// Its name and parameters.
    pub(crate) signature: Signature,
    /// What it does.
    pub(crate) run: fn(&mut S, &mut Process, &[Value]) -> Outcome<Value>,
}

/// Rows of methods: `name(parameter, parameter = default) => function;`
macro_rules! methods {
    ($state:ty, $class:literal, {
        $($name:ident($($parameter:ident $(= $default:expr)?),*) => $run:expr;)*
    }) => {
        &[$(
            $crate::apis::method::Method::<$state> {
                signature: spar_python::Signature {
                    name: concat!($class, ".", stringify!($name)),
                    parameters: &[$(
                        spar_python::Parameter {
                            name: stringify!($parameter),
                            default: $crate::apis::method::default_of!($($default)?),
                        },
                    )*],
                },
                run: $run,
            },
        )*]
    };
}

/// The default of a parameter, if it has one.
macro_rules! default_of {
    () => {
        None
    };
    ($default:expr) => {
        Some($default)
    };
}

pub(crate) use {default_of, methods};

/// `{"error": text}`, by which methods tell that they did nothing.
pub(crate) fn error(text: impl Into<Value>) -> Value {
    Value::record([("error", text.into())])
}
