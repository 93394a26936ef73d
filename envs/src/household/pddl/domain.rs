//! The rules of a game: predicates and action schemas.

use super::formula::{Formula, Typed, typed_list};
use super::{Items, Sexpr, Tape};
use crate::household::error::Fault;

const REQUIREMENTS: [&str; 9] = [
    ":adl",
    ":action-costs",
    ":typing",
    ":strips",
    ":equality",
    ":negative-preconditions",
    ":disjunctive-preconditions",
    ":existential-preconditions",
    ":conditional-effects",
];

/// A parsed planning domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Name of the domain.
    pub name: String,
    /// Declared types, without hierarchy.
    pub types: Vec<String>,
    /// Declared predicates: name and typed parameters.
    pub predicates: Vec<(String, Vec<Typed>)>,
    /// Action schemas in file order.
    pub schemas: Vec<Schema>,
}

/// One action schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Name of the action.
    pub name: String,
    /// Typed parameters; names keep their question mark.
    pub parameters: Vec<Typed>,
    /// When the action is possible.
    pub precondition: Formula,
    /// What the action changes, in file order. Costs are left out.
    pub effects: Vec<Effect>,
}

/// One change to the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The change happens only where this holds before the action.
    pub condition: Option<Formula>,
    /// Whether the fact becomes true or false.
    pub adds: bool,
    /// Predicate of the fact.
    pub predicate: String,
    /// Arguments of the fact: parameters or constants.
    pub arguments: Vec<String>,
}

impl Domain {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let tape = Tape::parse(text)?;
        let root = tape.root();
        let (head, sections) = root.headed("`(define (domain ...) ...)`")?;
        if head != "define" {
            return Err(root.fault(format!("expected `define`, found `{head}`")));
        }
        let mut domain = Self {
            name: String::new(),
            types: Vec::new(),
            predicates: Vec::new(),
            schemas: Vec::new(),
        };
        for section in sections {
            let (head, rest) = section.headed("a section")?;
            match head {
                "domain" => {
                    if let Some(name) = rest.single() {
                        name.word("the name of the domain")?.clone_into(&mut domain.name);
                    }
                }
                ":requirements" => {
                    for requirement in rest {
                        let requirement = requirement.word("a requirement")?;
                        if !REQUIREMENTS.contains(&requirement) {
                            return Err(Fault::unsupported(
                                format!("requirement `{requirement}`"),
                                format!("known requirements are {}", REQUIREMENTS.join(", ")),
                            ));
                        }
                    }
                }
                ":types" => {
                    for typed in typed_list(rest)? {
                        if typed.kind != "object" {
                            return Err(Fault::unsupported(
                                format!("type `{}` below `{}`", typed.name, typed.kind),
                                "types have no hierarchy here",
                            ));
                        }
                        domain.types.push(typed.name);
                    }
                }
                ":predicates" => {
                    for predicate in rest {
                        let (name, parameters) = predicate.headed("a predicate")?;
                        domain.predicates.push((name.to_owned(), typed_list(parameters)?));
                    }
                }
                // Costs guide planners only.
                ":functions" => {}
                ":action" => domain.schemas.push(Schema::from_sexpr(section, rest)?),
                _ => {
                    return Err(Fault::unsupported(
                        format!("section `{head}`"),
                        "known sections are :requirements, :types, :predicates, :functions, :action",
                    ));
                }
            }
        }
        domain.check()?;
        Ok(domain)
    }

    /// Every fact in a rule must be of a declared predicate with the declared number of arguments.
    fn check(&self) -> Result<(), Fault> {
        for schema in &self.schemas {
            let mut fault = None;
            let mut visit = |predicate: &str, arguments: &[String]| {
                if fault.is_some() {
                    return;
                }
                match self.predicates.iter().find(|(name, _)| name == predicate) {
                    Some((_, parameters)) if parameters.len() == arguments.len() => {}
                    Some((_, parameters)) => {
                        fault = Some(Fault::unsupported(
                            format!("predicate `{predicate}` in action `{}`", schema.name),
                            format!(
                                "declared with {} arguments, used with {}",
                                parameters.len(),
                                arguments.len()
                            ),
                        ));
                    }
                    None => {
                        fault = Some(Fault::unsupported(
                            format!("predicate `{predicate}` in action `{}`", schema.name),
                            "it is not declared under :predicates",
                        ));
                    }
                }
            };
            schema.precondition.visit_atoms(&mut visit);
            for effect in &schema.effects {
                if let Some(condition) = &effect.condition {
                    condition.visit_atoms(&mut visit);
                }
                visit(&effect.predicate, &effect.arguments);
            }
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        Ok(())
    }
}

impl Schema {
    fn from_sexpr(section: Sexpr<'_, '_>, mut rest: Items<'_, '_>) -> Result<Self, Fault> {
        let name = rest.next().ok_or_else(|| section.fault("expected the name of an action"))?;
        let mut schema = Self {
            name: name.word("the name of an action")?.to_owned(),
            parameters: Vec::new(),
            precondition: Formula::And(Vec::new()),
            effects: Vec::new(),
        };
        while let Some(key) = rest.next() {
            let value = rest.next().ok_or_else(|| key.fault("this field lacks its value"))?;
            match key.word("an action field")? {
                ":parameters" => schema.parameters = typed_list(value.list("typed parameters")?)?,
                ":precondition" => schema.precondition = Formula::from_sexpr(value)?,
                ":effect" => read_effects(value, None, &mut schema.effects)?,
                other => {
                    return Err(Fault::unsupported(
                        format!("field `{other}` of action `{}`", schema.name),
                        "known fields are :parameters, :precondition, :effect",
                    ));
                }
            }
        }
        Ok(schema)
    }
}

fn read_effects(
    expression: Sexpr<'_, '_>,
    condition: Option<&Formula>,
    effects: &mut Vec<Effect>,
) -> Result<(), Fault> {
    if expression.is_empty_list() {
        return Ok(());
    }
    let (head, mut rest) = expression.headed("an effect")?;
    match (head, rest.pair()) {
        ("and", _) => rest.try_for_each(|part| read_effects(part, condition, effects)),
        ("increase", _) => Ok(()),
        ("when", Some((when, then))) if condition.is_none() => {
            read_effects(then, Some(&Formula::from_sexpr(when)?), effects)
        }
        ("when" | "forall" | "assign" | "decrease" | "scale-up" | "scale-down", _) => {
            Err(Fault::unsupported(
                format!("effect `{head}`"),
                "effects may use `and`, `not`, `increase`, facts, and `when` on the outside",
            ))
        }
        _ => {
            let (adds, fact) = match (head, rest.single()) {
                ("not", Some(fact)) => (false, fact),
                _ => (true, expression),
            };
            let (predicate, arguments) = fact.headed("a fact")?;
            let arguments = arguments
                .map(|argument| Ok(argument.word("an argument")?.to_owned()))
                .collect::<Result<_, Fault>>()?;
            let predicate = predicate.to_owned();
            effects.push(Effect { condition: condition.cloned(), adds, predicate, arguments });
            Ok(())
        }
    }
}
