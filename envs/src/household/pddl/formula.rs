//! Conditions: preconditions, conditions of effects and goals.

use std::fmt;

use super::{Items, Sexpr};
use crate::household::error::Fault;

/// A name with its type, as in `?o - object`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Typed {
    /// The name; variables keep their question mark.
    pub name: String,
    /// The type; `object` where none is written.
    pub kind: String,
}

/// A condition over the facts of a state. The empty conjunction is always true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Formula {
    /// A fact; arguments are variables (with question mark) or constants.
    Atom {
        /// Predicate.
        predicate: String,
        /// Arguments.
        arguments: Vec<String>,
    },
    /// Both names stand for the same thing.
    Equal(String, String),
    /// The opposite of a condition.
    Not(Box<Formula>),
    /// All of them.
    And(Vec<Formula>),
    /// At least one of them.
    Or(Vec<Formula>),
    /// Some choice of the variables satisfies the body.
    Exists {
        /// The variables that are chosen.
        variables: Vec<Typed>,
        /// The condition over them.
        body: Box<Formula>,
    },
}

impl Formula {
    /// A fact as a condition.
    pub fn atom(predicate: &str, arguments: &[&str]) -> Self {
        Self::Atom {
            predicate: predicate.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        }
    }

    /// Some choice of `variables`, pairs of name and type, that satisfies `body`.
    pub fn exists(variables: &[(&str, &str)], body: Formula) -> Self {
        let typed = |&(name, kind): &(&str, &str)| Typed { name: name.into(), kind: kind.into() };
        Self::Exists { variables: variables.iter().map(typed).collect(), body: Box::new(body) }
    }

    /// Calls `visit` with every fact inside, in the order of the text.
    pub fn visit_atoms(&self, visit: &mut impl FnMut(&str, &[String])) {
        match self {
            Self::Atom { predicate, arguments } => visit(predicate, arguments),
            Self::Equal(..) => {}
            Self::Not(inner) | Self::Exists { body: inner, .. } => inner.visit_atoms(visit),
            Self::And(parts) | Self::Or(parts) => {
                for part in parts {
                    part.visit_atoms(visit);
                }
            }
        }
    }

    pub(crate) fn from_sexpr(expression: Sexpr<'_, '_>) -> Result<Self, Fault> {
        if expression.is_empty_list() {
            return Ok(Self::And(Vec::new()));
        }
        let (head, rest) = expression.headed("a condition")?;
        let parts = || rest.map(Self::from_sexpr).collect::<Result<_, _>>();
        let wrong = |form: &str| expression.fault(format!("expected {form}"));
        match head {
            "and" => Ok(Self::And(parts()?)),
            "or" => Ok(Self::Or(parts()?)),
            "not" => {
                let inner = rest.single().ok_or_else(|| wrong("`(not condition)`"))?;
                Ok(Self::Not(Box::new(Self::from_sexpr(inner)?)))
            }
            "exists" => {
                let form = "`(exists (variables) condition)`";
                let (variables, body) = rest.pair().ok_or_else(|| wrong(form))?;
                Ok(Self::Exists {
                    variables: typed_list(variables.list("typed variables")?)?,
                    body: Box::new(Self::from_sexpr(body)?),
                })
            }
            "=" => {
                let (left, right) = rest.pair().ok_or_else(|| wrong("`(= name name)`"))?;
                Ok(Self::Equal(left.word("a name")?.to_owned(), right.word("a name")?.to_owned()))
            }
            "forall" | "imply" | "when" | "<" | ">" | "<=" | ">=" | "preference" => {
                Err(Fault::unsupported(
                    format!("`{head}`"),
                    "conditions may use `and`, `or`, `not`, `exists`, `=` and facts",
                ))
            }
            _ if head.starts_with(':') || head.starts_with('?') => {
                Err(wrong(&format!("a predicate, found `{head}`")))
            }
            predicate => {
                let arguments = rest
                    .map(|argument| Ok(argument.word("an argument")?.to_owned()))
                    .collect::<Result<_, Fault>>()?;
                Ok(Self::Atom { predicate: predicate.to_owned(), arguments })
            }
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Atom { predicate, arguments } => {
                write!(f, "({predicate}")?;
                arguments.iter().try_for_each(|argument| write!(f, " {argument}"))?;
                f.write_str(")")
            }
            Self::Equal(left, right) => write!(f, "(= {left} {right})"),
            Self::Not(inner) => write!(f, "(not {inner})"),
            Self::And(parts) | Self::Or(parts) => {
                f.write_str(if matches!(self, Self::And(_)) { "(and" } else { "(or" })?;
                parts.iter().try_for_each(|part| write!(f, " {part}"))?;
                f.write_str(")")
            }
            Self::Exists { variables, body } => {
                f.write_str("(exists (")?;
                for (index, variable) in variables.iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    write!(f, "{gap}{} - {}", variable.name, variable.kind)?;
                }
                write!(f, ") {body})")
            }
        }
    }
}

/// Reads `a b - type c - type ...`; names without a type have type `object`.
///
/// The type is the next word whatever it looks like. Real domains contain
/// `(?l - location, ?r - receptacle)`, which gives `?l` the type `location,`.
pub(crate) fn typed_list(items: Items<'_, '_>) -> Result<Vec<Typed>, Fault> {
    let own = |(name, kind): (&str, &str)| Typed { name: name.to_owned(), kind: kind.to_owned() };
    Ok(typed_names(items)?.into_iter().map(own).collect())
}

/// Like [`typed_list`], without a copy of every name: problems declare hundreds.
pub(crate) fn typed_names<'a>(items: Items<'_, 'a>) -> Result<Vec<(&'a str, &'a str)>, Fault> {
    let mut typed = Vec::with_capacity(items.num_at_most() / 3);
    let mut untyped_from = 0;
    let mut items = items;
    while let Some(item) = items.next() {
        match item.word("a name")? {
            "-" => {
                let kind = items.next().ok_or_else(|| item.fault("expected a type after `-`"))?;
                let kind = kind.word("a type; `either` is not supported")?;
                for (_, known) in &mut typed[untyped_from..] {
                    *known = kind;
                }
                untyped_from = typed.len();
            }
            name => typed.push((name, "object")),
        }
    }
    Ok(typed)
}
