//! From formulas of the planning language to queries.

use super::entities::Kind;
use super::error::Fault;
use super::facts::FactBase;
use super::pddl::{Formula, Typed};
use super::plan::{Atom, Check, MAX_SLOTS, Query, Step, Term};
use super::relations::Layer;

/// Most alternatives that one rule may be split into.
const MAX_BRANCHES: usize = 64;

/// A formula with placeholders for variables. There is one player, so variables for players are
/// constants.
#[derive(Debug, Clone)]
pub(crate) enum Lowered {
    /// A fact, with an estimate of how many there are and the numbers of things on both sides.
    Atom(Atom, Estimate),
    Not(Box<Lowered>),
    All(Vec<Lowered>),
    Any(Vec<Lowered>),
    Equal(Term, Term),
    /// A choice of the placeholders in the bit set.
    Exists(u32, Box<Lowered>),
}

/// How many facts a relation has, and how many things can be either argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    facts: f32,
    firsts: f32,
    seconds: f32,
}

/// Variables in sight, inner ones last.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    variables: Vec<(String, Kind, Term)>,
    num_slots: u8,
}

impl Scope {
    /// Adds variables; `Ok(false)` if one of them can have no value.
    ///
    /// A type that ends in a comma is how real domains write `?l - location, ?r - receptacle`.
    /// No thing has that type.
    pub(crate) fn declare(&mut self, variables: &[Typed], place: &str) -> Result<bool, Fault> {
        for variable in variables {
            if variable.kind.ends_with(',') {
                return Ok(false);
            }
            let kind = Kind::read(&variable.kind, || format!("of `{}` in {place}", variable.name))?;
            let term =
                if kind == Kind::Agent { Term::Const(0) } else { Term::Slot(self.num_slots) };
            // Slots of players are kept, so that parameters and slots have the same numbers.
            self.num_slots += 1;
            if usize::from(self.num_slots) > MAX_SLOTS {
                return Err(Fault::unsupported(
                    format!("the variables of {place}"),
                    format!("more than {MAX_SLOTS}"),
                ));
            }
            self.variables.push((variable.name.clone(), kind, term));
        }
        Ok(true)
    }

    fn find(&self, name: &str) -> Option<(Kind, Term)> {
        self.variables.iter().rev().find(|(known, ..)| known == name).map(|(_, k, t)| (*k, *t))
    }
}

impl Lowered {
    const NEVER: Self = Self::Any(Vec::new());

    pub(crate) fn new(
        formula: &Formula,
        scope: &mut Scope,
        facts: &mut FactBase<'_>,
        place: &str,
    ) -> Result<Self, Fault> {
        let mut parts = |parts: &[Formula], scope: &mut Scope| {
            parts.iter().map(|part| Self::new(part, scope, facts, place)).collect::<Result<_, _>>()
        };
        Ok(match formula {
            Formula::And(inner) => Self::All(parts(inner, scope)?),
            Formula::Or(inner) => Self::Any(parts(inner, scope)?),
            Formula::Not(inner) => Self::Not(Box::new(Self::new(inner, scope, facts, place)?)),
            Formula::Exists { variables, body } => {
                let (outer, first) = (scope.variables.len(), scope.num_slots);
                let inner = if scope.declare(variables, place)? {
                    Self::new(body, scope, facts, place)?
                } else {
                    Self::NEVER
                };
                scope.variables.truncate(outer);
                let own = (first..first + variables.len().min(MAX_SLOTS) as u8)
                    .fold(0, |own, slot| own | slot_bit(Term::Slot(slot)));
                Self::Exists(own, Box::new(inner))
            }
            Formula::Equal(left, right) => {
                match (resolve(left, scope, facts, place)?, resolve(right, scope, facts, place)?) {
                    (Some((left_kind, left)), Some((right_kind, right)))
                        if left_kind == right_kind =>
                    {
                        Self::Equal(left, right)
                    }
                    _ => Self::NEVER,
                }
            }
            Formula::Atom { predicate, arguments } => {
                let mut terms = Vec::with_capacity(2);
                for argument in arguments {
                    match resolve(argument, scope, facts, place)? {
                        Some(term) => terms.push(term),
                        // No fact mentions this thing.
                        None => return Ok(Self::NEVER),
                    }
                }
                let (first, second) = match *terms.as_slice() {
                    [first] => (first, None),
                    [first, second] => (first, Some(second)),
                    _ => {
                        return Err(Fault::unsupported(
                            format!("predicate `{predicate}` in {place}"),
                            format!("{} arguments; one or two are known", terms.len()),
                        ));
                    }
                };
                let kinds = (first.0, second.map(|(kind, _)| kind));
                match facts.relation(predicate, kinds, Layer::Truth) {
                    None => Self::NEVER,
                    Some(relation) => {
                        let num = |kind| facts.entities.num(kind).max(1) as f32;
                        let estimate = Estimate {
                            facts: facts.num_initial(predicate, kinds) as f32,
                            firsts: num(kinds.0),
                            seconds: kinds.1.map_or(1.0, num),
                        };
                        let second = second.map_or(Term::Const(0), |(_, term)| term);
                        Self::Atom(Atom { relation, first: first.1, second }, estimate)
                    }
                }
            }
        })
    }

    /// Ways to find the placeholders: all of `wanted`, starting from `bound` (bit sets).
    pub(crate) fn queries(self, bound: u32, wanted: u32, place: &str) -> Result<Vec<Query>, Fault> {
        let mut queries = Vec::new();
        split(vec![self], bound, wanted, place, &mut queries)?;
        Ok(queries)
    }

    /// The condition for when the placeholders in `bound` have values.
    pub(crate) fn check(self, bound: u32, place: &str) -> Result<Check, Fault> {
        let all = |parts: Vec<Self>| {
            parts.into_iter().map(|part| part.check(bound, place)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match self {
            Self::Atom(atom, _) => Check::Holds(atom),
            Self::Not(inner) => Check::Not(Box::new(inner.check(bound, place)?)),
            Self::All(parts) => Check::All(all(parts)?),
            Self::Any(parts) => Check::Any(all(parts)?),
            Self::Equal(left, right) => Check::Equal(left, right),
            Self::Exists(_, inner) => {
                let mut queries = inner.queries(bound, 0, place)?;
                match queries.len() {
                    1 => Check::Exists(Box::new(queries.swap_remove(0))),
                    _ => Check::Any(
                        queries.into_iter().map(|query| Check::Exists(Box::new(query))).collect(),
                    ),
                }
            }
        })
    }

    /// Placeholders that need a value from outside or from another part.
    fn free(&self) -> u32 {
        match self {
            Self::Atom(atom, _) => slot_bit(atom.first) | slot_bit(atom.second),
            Self::Equal(left, right) => slot_bit(*left) | slot_bit(*right),
            Self::Not(inner) => inner.free(),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().fold(0, |free, part| free | part.free())
            }
            Self::Exists(own, inner) => inner.free() & !own,
        }
    }
}

fn slot_bit(term: Term) -> u32 {
    match term {
        Term::Slot(slot) => 1 << (slot % 32),
        Term::Const(_) => 0,
    }
}

fn resolve(
    name: &str,
    scope: &Scope,
    facts: &FactBase<'_>,
    place: &str,
) -> Result<Option<(Kind, Term)>, Fault> {
    if name.starts_with('?') {
        return match scope.find(name) {
            Some(found) => Ok(Some(found)),
            None => Err(Fault::unsupported(
                format!("variable `{name}` in {place}"),
                "it is not declared there",
            )),
        };
    }
    Ok(facts.number(name).map(|(kind, number)| (kind, Term::Const(number))))
}

/// Flattens conjunctions, splits alternatives where their placeholders are needed, and puts facts
/// and tests into a good order.
fn split(
    parts: Vec<Lowered>,
    bound: u32,
    wanted: u32,
    place: &str,
    queries: &mut Vec<Query>,
) -> Result<(), Fault> {
    let mut conjuncts = Vec::new();
    let mut pending = parts;
    pending.reverse();
    while let Some(part) = pending.pop() {
        match part {
            Lowered::All(inner) => pending.extend(inner.into_iter().rev()),
            // In a conjunction the inner placeholders are just more placeholders.
            Lowered::Exists(_, inner) => pending.push(*inner),
            Lowered::Any(alternatives) if alternatives.is_empty() => return Ok(()),
            other => conjuncts.push(other),
        }
    }
    let mut needed = wanted;
    let mut given = bound;
    for conjunct in &conjuncts {
        match conjunct {
            Lowered::Atom(..) => given |= conjunct.free(),
            other => needed |= other.free(),
        }
    }
    if needed & !given != 0 {
        let alternatives = conjuncts.iter().position(|part| matches!(part, Lowered::Any(_)));
        let Some(Lowered::Any(alternatives)) =
            alternatives.map(|position| conjuncts.remove(position))
        else {
            return Err(Fault::unsupported(
                format!("the variables of {place}"),
                "one of them is in no positive fact, so its values cannot be listed",
            ));
        };
        for alternative in alternatives {
            let mut parts = conjuncts.clone();
            parts.push(alternative);
            split(parts, bound, wanted, place, queries)?;
        }
        return Ok(());
    }
    if queries.len() == MAX_BRANCHES {
        return Err(Fault::unsupported(
            format!("the alternatives of {place}"),
            format!("more than {MAX_BRANCHES}"),
        ));
    }
    queries.push(order(conjuncts, bound, place)?);
    Ok(())
}

/// Tests as early as possible, then the fact with the fewest expected answers.
fn order(mut conjuncts: Vec<Lowered>, mut bound: u32, place: &str) -> Result<Query, Fault> {
    let mut steps = Vec::with_capacity(conjuncts.len());
    while !conjuncts.is_empty() {
        if let Some(ready) = conjuncts.iter().position(|part| part.free() & !bound == 0) {
            steps.push(match conjuncts.remove(ready) {
                Lowered::Atom(atom, _) => Step::Match(atom),
                other => Step::Test(other.check(bound, place)?),
            });
            continue;
        }
        let cost = |part: &Lowered| match part {
            Lowered::Atom(atom, estimate) => {
                let has = |term| slot_bit(term) & !bound == 0;
                let firsts = if has(atom.first) { estimate.firsts } else { 1.0 };
                let seconds = if has(atom.second) { estimate.seconds } else { 1.0 };
                estimate.facts / firsts / seconds
            }
            _ => f32::INFINITY,
        };
        let cheapest = (0..conjuncts.len())
            .min_by(|&left, &right| cost(&conjuncts[left]).total_cmp(&cost(&conjuncts[right])));
        match cheapest.map(|cheapest| conjuncts.remove(cheapest)) {
            Some(Lowered::Atom(atom, _)) => {
                bound |= slot_bit(atom.first) | slot_bit(atom.second);
                steps.push(Step::Match(atom));
            }
            _ => {
                return Err(Fault::unsupported(
                    format!("the variables of {place}"),
                    "one of them is in no positive fact, so its values cannot be listed",
                ));
            }
        }
    }
    Ok(Query { steps, distinct: None, is_empty: false })
}
