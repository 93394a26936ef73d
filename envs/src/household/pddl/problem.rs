//! One game: its things, how it starts, and what has to be reached.

use std::borrow::Cow;
use std::fmt;

use super::formula::{Formula, typed_names};
use super::{Sexpr, Tape};
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
        let tape = Tape::parse(text)?;
        let root = tape.root();
        let (head, sections) = root.headed("`(define (problem ...) ...)`")?;
        if head != "define" {
            return Err(root.fault(format!("expected `define`, found `{head}`")));
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
            let (head, rest) = section.headed("a section")?;
            match (head, rest.single()) {
                ("problem", Some(name)) => problem.name = name.word("the name")?.into(),
                (":domain", Some(name)) => problem.domain = name.word("the domain")?.into(),
                (":objects", _) => {
                    let own = |(name, kind): (&'a str, &'a str)| (name.into(), kind.into());
                    problem.objects = typed_names(rest)?.into_iter().map(own).collect();
                }
                (":init", _) => {
                    problem.init.reserve(rest.num_at_most() / 4);
                    for fact in rest {
                        problem.init.extend(read_fact(fact)?);
                    }
                }
                (":goal", Some(goal)) => {
                    problem.goal = Formula::from_sexpr(goal)?;
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
        let needed = [
            ("problem", !problem.name.is_empty()),
            (":domain", !problem.domain.is_empty()),
            (":goal", has_goal),
        ];
        if let Some((section, _)) = needed.iter().find(|(_, is_there)| !is_there) {
            let detail = format!("expected a section `{section}`");
            return Err(Fault::syntax(text, text.len(), detail));
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

fn read_fact<'a>(expression: Sexpr<'_, 'a>) -> Result<Option<Fact<'a>>, Fault> {
    let (predicate, rest) = expression.headed("a fact")?;
    // `(= (total-cost) 0)` and distances matter to planners only.
    if predicate == "=" {
        return Ok(None);
    }
    let mut arguments = Vec::with_capacity(2);
    for argument in rest {
        if argument.is_list() {
            return Err(Fault::unsupported(
                format!("`{predicate}` around a list in :init"),
                "the start may have plain facts only",
            ));
        }
        arguments.push(Cow::Borrowed(argument.word("an argument")?));
    }
    Ok(Some(Fact { predicate: predicate.into(), arguments }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_needs_its_sections() {
        let whole = "(define (problem p) (:domain d) (:goal (and)))";
        let written = Problem::parse(whole).unwrap().to_string();
        assert_eq!(Problem::parse(&written).unwrap().to_string(), written);
        for section in ["(problem p)", "(:domain d)", "(:goal (and))"] {
            let error = Problem::parse(&whole.replace(section, "")).unwrap_err();
            let error = with_sources(&error);
            assert!(error.contains("expected a section"), "{error}");
        }
    }

    fn with_sources(error: &dyn std::error::Error) -> String {
        let source = error.source().map(with_sources).unwrap_or_default();
        format!("{error} {source}")
    }
}
