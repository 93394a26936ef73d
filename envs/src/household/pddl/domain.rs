//! The rules of a game: predicates and action schemas.

use super::Sexpr;
use super::formula::{Formula, Typed, typed_list};
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
        let root = Sexpr::parse(text)?;
        let (head, sections) = root.headed(text, "`(define (domain ...) ...)`")?;
        if head != "define" {
            return Err(Fault::syntax(
                text,
                root.offset(),
                format!("expected `define`, found `{head}`"),
            ));
        }
        let mut domain = Self {
            name: String::new(),
            types: Vec::new(),
            predicates: Vec::new(),
            schemas: Vec::new(),
        };
        for section in sections {
            let (head, rest) = section.headed(text, "a section")?;
            match head {
                "domain" => {
                    if let [name] = rest {
                        name.word(text, "the name of the domain")?.clone_into(&mut domain.name);
                    }
                }
                ":requirements" => {
                    for requirement in rest {
                        let requirement = requirement.word(text, "a requirement")?;
                        if !REQUIREMENTS.contains(&requirement) {
                            return Err(Fault::unsupported(
                                format!("requirement `{requirement}`"),
                                format!("known requirements are {}", REQUIREMENTS.join(", ")),
                            ));
                        }
                    }
                }
                ":types" => {
                    for typed in typed_list(text, rest)? {
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
                        let (name, parameters) = predicate.headed(text, "a predicate")?;
                        domain.predicates.push((name.to_owned(), typed_list(text, parameters)?));
                    }
                }
                // Costs guide planners only.
                ":functions" => {}
                ":action" => domain.schemas.push(Schema::from_sexpr(text, section, rest)?),
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
    fn from_sexpr(text: &str, section: &Sexpr<'_>, rest: &[Sexpr<'_>]) -> Result<Self, Fault> {
        let wrong = |reason: &str| Fault::syntax(text, section.offset(), reason);
        let [name, fields @ ..] = rest else { return Err(wrong("expected the name of an action")) };
        let mut schema = Self {
            name: name.word(text, "the name of an action")?.to_owned(),
            parameters: Vec::new(),
            precondition: Formula::And(Vec::new()),
            effects: Vec::new(),
        };
        for field in fields.chunks(2) {
            let [key, value] = field else { return Err(wrong("an action field lacks its value")) };
            match key.word(text, "an action field")? {
                ":parameters" => {
                    schema.parameters = typed_list(text, value.list(text, "typed parameters")?)?;
                }
                ":precondition" => schema.precondition = Formula::from_sexpr(text, value)?,
                ":effect" => read_effects(text, value, None, &mut schema.effects)?,
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
    text: &str,
    expression: &Sexpr<'_>,
    condition: Option<&Formula>,
    effects: &mut Vec<Effect>,
) -> Result<(), Fault> {
    if matches!(expression, Sexpr::List(items, _) if items.is_empty()) {
        return Ok(());
    }
    let (head, rest) = expression.headed(text, "an effect")?;
    match (head, rest) {
        ("and", parts) => {
            parts.iter().try_for_each(|part| read_effects(text, part, condition, effects))
        }
        ("increase", _) => Ok(()),
        ("when", [when, then]) if condition.is_none() => {
            read_effects(text, then, Some(&Formula::from_sexpr(text, when)?), effects)
        }
        ("when" | "forall" | "assign" | "decrease" | "scale-up" | "scale-down", _) => {
            Err(Fault::unsupported(
                format!("effect `{head}`"),
                "effects may use `and`, `not`, `increase`, facts, and `when` on the outside",
            ))
        }
        _ => {
            let (adds, fact) = match (head, rest) {
                ("not", [fact]) => (false, fact),
                _ => (true, expression),
            };
            let (predicate, arguments) = fact.headed(text, "a fact")?;
            let arguments = arguments
                .iter()
                .map(|argument| Ok(argument.word(text, "an argument")?.to_owned()))
                .collect::<Result<_, Fault>>()?;
            let predicate = predicate.to_owned();
            effects.push(Effect { condition: condition.cloned(), adds, predicate, arguments });
            Ok(())
        }
    }
}
