//! One game: its things, how it starts, and what has to be reached.

use std::borrow::Cow;
use std::fmt;

use super::Sexpr;
use super::formula::Formula;
use crate::household::error::{Fault, HouseholdError};

/// A parsed planning problem. [`Display`](fmt::Display) writes it back as a problem file.
///
/// ```
/// use spar_envs::household::pddl::Problem;
///
/// let text = "(define (problem p) (:domain alfred) (:objects a - agent l - location) \
///             (:init (atLocation a l)) (:goal (atLocation a l)))";
/// let problem = Problem::parse(text)?;
/// assert_eq!(Problem::parse(&problem.to_string())?, problem);
/// # Ok::<(), spar_envs::household::HouseholdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem<'a> {
    /// Name of the problem.
    pub name: Cow<'a, str>,
    /// Name of the domain it belongs to.
    pub domain: Cow<'a, str>,
    /// Declared things: name and type.
    pub objects: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The facts that hold at the start. Costs are left out.
    pub init: Vec<Fact<'a>>,
    /// What has to hold at the end.
    pub goal: Formula,
}

/// A fact about declared things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<'a> {
    /// Predicate.
    pub predicate: Cow<'a, str>,
    /// Arguments.
    pub arguments: Vec<Cow<'a, str>>,
}

impl<'a> Fact<'a> {
    /// A fact from a predicate and its arguments.
    pub fn new<P, A>(predicate: P, arguments: impl IntoIterator<Item = A>) -> Self
    where
        P: Into<Cow<'a, str>>,
        A: Into<Cow<'a, str>>,
    {
        Self {
            predicate: predicate.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }
}

impl<'a> Problem<'a> {
    /// Parses the text of a problem file. Names keep their case.
    ///
    /// # Errors
    /// When the text is not a problem, or uses a construct that is not implemented.
    pub fn parse(text: &'a str) -> Result<Self, HouseholdError> {
        Self::read(text).map_err(|fault| fault.of("", "pddl_problem"))
    }

    pub(crate) fn read(text: &'a str) -> Result<Self, Fault> {
        let root = Sexpr::parse(text)?;
        let (head, sections) = root.headed(text, "`(define (problem ...) ...)`")?;
        if head != "define" {
            return Err(Fault::syntax(
                text,
                root.offset(),
                format!("expected `define`, found `{head}`"),
            ));
        }
        let mut problem = Self {
            name: Cow::Borrowed(""),
            domain: Cow::Borrowed(""),
            objects: Vec::new(),
            init: Vec::new(),
            goal: Formula::And(Vec::new()),
        };
        let mut has_goal = false;
        for section in sections {
            let (head, rest) = section.headed(text, "a section")?;
            match (head, rest) {
                ("problem", [name]) => problem.name = name.word(text, "the name")?.into(),
                (":domain", [name]) => problem.domain = name.word(text, "the domain")?.into(),
                (":objects", items) => problem.objects = read_objects(text, items)?,
                (":init", facts) => {
                    problem.init.reserve(facts.len());
                    for fact in facts {
                        if let Some(fact) = read_fact(text, fact)? {
                            problem.init.push(fact);
                        }
                    }
                }
                (":goal", [goal]) => {
                    problem.goal = Formula::from_sexpr(text, goal)?;
                    has_goal = true;
                }
                (":metric" | ":requirements", _) => {}
                _ => {
                    return Err(Fault::unsupported(
                        format!("section `{head}`"),
                        "known sections are problem, :domain, :objects, :init, :goal, :metric, \
                         :requirements",
                    ));
                }
            }
        }
        if !has_goal {
            return Err(Fault::syntax(text, text.len(), "expected a section `:goal`"));
        }
        Ok(problem)
    }
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "(define (problem {})", self.name)?;
        writeln!(f, "    (:domain {})", self.domain)?;
        writeln!(f, "    (:objects")?;
        for (name, kind) in &self.objects {
            writeln!(f, "        {name} - {kind}")?;
        }
        writeln!(f, "    )\n    (:init")?;
        for fact in &self.init {
            write!(f, "        ({}", fact.predicate)?;
            fact.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))?;
            writeln!(f, ")")?;
        }
        writeln!(f, "    )\n    (:goal {})\n)", self.goal)
    }
}

type TypedNames<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Like `typed_list`, but without a copy of every name: problems declare hundreds.
fn read_objects<'a>(text: &str, items: &[Sexpr<'a>]) -> Result<TypedNames<'a>, Fault> {
    let mut objects: TypedNames<'a> = Vec::with_capacity(items.len() / 3);
    let mut untyped_from = 0;
    let mut items = items.iter();
    while let Some(item) = items.next() {
        match item.word(text, "a name")? {
            "-" => {
                let Some(kind) = items.next() else {
                    return Err(Fault::syntax(text, item.offset(), "expected a type after `-`"));
                };
                let kind = kind.word(text, "a type")?;
                for entry in &mut objects[untyped_from..] {
                    entry.1 = kind.into();
                }
                untyped_from = objects.len();
            }
            name => objects.push((name.into(), Cow::Borrowed("object"))),
        }
    }
    Ok(objects)
}

fn read_fact<'a>(text: &str, expression: &Sexpr<'a>) -> Result<Option<Fact<'a>>, Fault> {
    let (predicate, rest) = expression.headed(text, "a fact")?;
    match predicate {
        // `(= (total-cost) 0)` and distances matter to planners only.
        "=" => Ok(None),
        "not" | "and" | "or" | "forall" | "exists" | "at"
            if rest.iter().any(|item| matches!(item, Sexpr::List(..))) =>
        {
            Err(Fault::unsupported(
                format!("`{predicate}` among the facts of :init"),
                "only plain facts are known",
            ))
        }
        _ => {
            let arguments = rest
                .iter()
                .map(|argument| Ok(Cow::Borrowed(argument.word(text, "an argument")?)))
                .collect::<Result<_, Fault>>()?;
            Ok(Some(Fact { predicate: predicate.into(), arguments }))
        }
    }
}
