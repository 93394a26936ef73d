//! Conditions: preconditions, conditions of effects and goals.

use std::fmt;

use super::Sexpr;
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

    pub(crate) fn from_sexpr(text: &str, expression: &Sexpr<'_>) -> Result<Self, Fault> {
        if matches!(expression, Sexpr::List(items, _) if items.is_empty()) {
            return Ok(Self::And(Vec::new()));
        }
        let (head, rest) = expression.headed(text, "a condition")?;
        let parts =
            || rest.iter().map(|part| Self::from_sexpr(text, part)).collect::<Result<_, _>>();
        let wrong =
            |form: &str| Fault::syntax(text, expression.offset(), format!("expected {form}"));
        match head {
            "and" => Ok(Self::And(parts()?)),
            "or" => Ok(Self::Or(parts()?)),
            "not" => match rest {
                [inner] => Ok(Self::Not(Box::new(Self::from_sexpr(text, inner)?))),
                _ => Err(wrong("`(not condition)`")),
            },
            "exists" => match rest {
                [variables, body] => Ok(Self::Exists {
                    variables: typed_list(text, variables.list(text, "typed variables")?)?,
                    body: Box::new(Self::from_sexpr(text, body)?),
                }),
                _ => Err(wrong("`(exists (variables) condition)`")),
            },
            "=" => match rest {
                [left, right] => Ok(Self::Equal(
                    left.word(text, "a name")?.to_owned(),
                    right.word(text, "a name")?.to_owned(),
                )),
                _ => Err(wrong("`(= name name)`")),
            },
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
                    .iter()
                    .map(|argument| Ok(argument.word(text, "an argument")?.to_owned()))
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
pub(crate) fn typed_list(text: &str, items: &[Sexpr<'_>]) -> Result<Vec<Typed>, Fault> {
    let mut typed: Vec<Typed> = Vec::with_capacity(items.len() / 3);
    let mut untyped_from = 0;
    let mut items = items.iter();
    while let Some(item) = items.next() {
        match item.word(text, "a name")? {
            "-" => {
                let Some(kind) = items.next() else {
                    return Err(Fault::syntax(text, item.offset(), "expected a type after `-`"));
                };
                let kind = kind.word(text, "a type; `either` is not supported")?;
                for entry in &mut typed[untyped_from..] {
                    kind.clone_into(&mut entry.kind);
                }
                untyped_from = typed.len();
            }
            name => typed.push(Typed { name: name.to_owned(), kind: "object".to_owned() }),
        }
    }
    Ok(typed)
}
