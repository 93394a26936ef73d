//! The table of operators.

use tree_sitter::Node;

use super::scan::Source;
use super::{Edit, python, rust};

/// Adds to the drafts what an operator makes of a node, each draft the edits of one mutation.
type Find = fn(Node<'_>, &Source<'_>, &mut Vec<Vec<Edit>>);

/// One way of making bugs.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    /// Its name, in lower case with underscores.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    pub(super) python: Option<Find>,
    pub(super) rust: Option<Find>,
}

/// All operators.
pub const OPERATORS: [Operator; 21] = [
    Operator {
        name: "compare_changed",
        about: "A comparison becomes its neighbour: `<` and `<=`, `==` and `!=`, `in` and `not in`, `is` and `is not`.",
        python: Some(python::compare_changed),
        rust: Some(rust::compare_changed),
    },
    Operator {
        name: "operator_changed",
        about: "An operator of arithmetic or bits becomes another one, also where it assigns.",
        python: Some(python::operator_changed),
        rust: Some(rust::operator_changed),
    },
    Operator {
        name: "operands_swapped",
        about: "The two sides of an operator for which their order matters change places.",
        python: Some(python::operands_swapped),
        rust: Some(rust::operands_swapped),
    },
    Operator {
        name: "logic_changed",
        about: "`and` becomes `or`, and the other way round.",
        python: Some(python::logic_changed),
        rust: Some(rust::logic_changed),
    },
    Operator {
        name: "negation_removed",
        about: "A `not` is left out.",
        python: Some(python::negation_removed),
        rust: Some(rust::negation_removed),
    },
    Operator {
        name: "condition_negated",
        about: "The condition of a branch, a loop or an expression with two outcomes holds where it did not.",
        python: Some(python::condition_negated),
        rust: Some(rust::condition_negated),
    },
    Operator {
        name: "number_changed",
        about: "A whole number is one more, or one less.",
        python: Some(python::number_changed),
        rust: Some(rust::number_changed),
    },
    Operator {
        name: "boolean_changed",
        about: "`True` becomes `False`, and the other way round.",
        python: Some(python::boolean_changed),
        rust: Some(rust::boolean_changed),
    },
    Operator {
        name: "string_changed",
        about: "A text loses its last letter.",
        python: Some(python::string_changed),
        rust: Some(rust::string_changed),
    },
    Operator {
        name: "arguments_swapped",
        about: "Two arguments of a call beside each other change places.",
        python: Some(python::arguments_swapped),
        rust: Some(rust::arguments_swapped),
    },
    Operator {
        name: "argument_removed",
        about: "An argument that is given by its name is left out, so that its default holds.",
        python: Some(python::argument_removed),
        rust: None,
    },
    Operator {
        name: "call_changed",
        about: "A function becomes its counterpart: `min` and `max`, `any` and `all`, `startswith` and `endswith`.",
        python: Some(python::call_changed),
        rust: Some(rust::call_changed),
    },
    Operator {
        name: "statement_removed",
        about: "A call, an assignment to a place, a `raise` or a deletion is left out.",
        python: Some(python::statement_removed),
        rust: Some(rust::statement_removed),
    },
    Operator {
        name: "branch_removed",
        about: "An `if` without alternative, or one of the alternatives, is left out.",
        python: Some(python::branch_removed),
        rust: Some(rust::branch_removed),
    },
    Operator {
        name: "branches_swapped",
        about: "What is done if a condition holds and what is done otherwise change places.",
        python: Some(python::branches_swapped),
        rust: Some(rust::branches_swapped),
    },
    Operator {
        name: "loop_removed",
        about: "A loop is left out.",
        python: Some(python::loop_removed),
        rust: Some(rust::loop_removed),
    },
    Operator {
        name: "jump_changed",
        about: "`break` becomes `continue`, and the other way round.",
        python: Some(python::jump_changed),
        rust: Some(rust::jump_changed),
    },
    Operator {
        name: "result_removed",
        about: "A function returns nothing where it returned a value.",
        python: Some(python::result_removed),
        rust: None,
    },
    Operator {
        name: "handler_removed",
        about: "One of several handlers of exceptions is left out.",
        python: Some(python::handler_removed),
        rust: None,
    },
    Operator {
        name: "body_removed",
        about: "The body of a function is left out; what documents it stays.",
        python: Some(python::body_removed),
        rust: Some(rust::body_removed),
    },
    Operator {
        name: "method_removed",
        about: "A method of a class that has others is left out.",
        python: Some(python::method_removed),
        rust: None,
    },
];

impl Operator {
    /// The operator of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        OPERATORS.iter().find(|operator| operator.name == name)
    }
}

/// A replacement of a node.
pub(super) fn replace(node: Node<'_>, replacement: impl Into<String>) -> Edit {
    Edit { span: node.byte_range(), replacement: replacement.into() }
}

/// Two nodes that change places.
pub(super) fn swap(one: Node<'_>, other: Node<'_>, source: &Source<'_>) -> Vec<Edit> {
    vec![replace(one, source.text(other)), replace(other, source.text(one))]
}

/// The counterpart of a word in a table of pairs.
pub(super) fn counterpart<'a>(pairs: &[(&'a str, &'a str)], word: &str) -> Option<&'a str> {
    pairs.iter().find_map(|(one, other)| match word {
        word if word == *one => Some(*other),
        word if word == *other => Some(*one),
        _ => None,
    })
}

/// A decimal number one more and one less; no negative numbers, which would be operators.
pub(super) fn neighbours(number: &str) -> Vec<String> {
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<u64>() {
        Ok(value) if is_plain && value < u64::MAX => {
            let less = value.checked_sub(1).map(|less| less.to_string());
            [(value + 1).to_string()].into_iter().chain(less).collect()
        }
        _ => Vec::new(),
    }
}
