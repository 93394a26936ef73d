//! Conditions and queries, compiled so that they run over bit matrices.

use super::entities::Kind;
use super::relations::{Facts, Relation, RelationId};

/// Most placeholders that a rule may use at once.
pub(crate) const MAX_SLOTS: usize = 16;

/// A placeholder that has no value yet.
pub(crate) const UNBOUND: u16 = u16::MAX;

/// Values of placeholders.
pub(crate) type Bindings = [u16; MAX_SLOTS];

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    /// The value of a placeholder.
    Slot(u8),
    /// This thing.
    Const(u16),
}

impl Term {
    pub(crate) fn value(self, bindings: &Bindings) -> u16 {
        match self {
            Self::Slot(slot) => bindings[usize::from(slot)],
            Self::Const(value) => value,
        }
    }

    fn is_same_slot(self, other: Self) -> bool {
        matches!((self, other), (Self::Slot(left), Self::Slot(right)) if left == right)
    }
}

/// A fact with placeholders. Predicates with one argument have `Const(0)` as their second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Atom {
    pub(crate) relation: RelationId,
    pub(crate) first: Term,
    pub(crate) second: Term,
}

/// A condition whose placeholders all have values, but for those of inner queries.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    /// The fact holds.
    Holds(Atom),
    /// The condition does not hold.
    Not(Box<Check>),
    /// All hold; always true where empty.
    All(Vec<Check>),
    /// One holds; never true where empty.
    Any(Vec<Check>),
    /// Both are the same thing.
    Equal(Term, Term),
    /// The query has an answer.
    Exists(Box<Query>),
}

/// A way to find values for placeholders: steps that bind or test, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    /// No steps: one answer that binds nothing.
    pub(crate) steps: Vec<Step>,
    /// Kinds of all placeholders in sight, if different ones must have different values.
    pub(crate) distinct: Option<Box<[Kind]>>,
    /// There is no answer, whatever the state.
    pub(crate) is_empty: bool,
}

/// One step of a query.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The fact has to hold; placeholders without value get one.
    Match(Atom),
    /// The condition has to hold.
    Test(Check),
}

/// What conditions look at: the relations and the facts of the moment.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) relations: &'a [Relation],
    pub(crate) facts: Facts<'a>,
}

impl View<'_> {
    pub(crate) fn holds(&self, atom: &Atom, bindings: &Bindings) -> bool {
        let relation = &self.relations[usize::from(atom.relation)];
        relation.holds(self.facts, atom.first.value(bindings), atom.second.value(bindings))
    }
}

impl Check {
    pub(crate) fn evaluate(&self, view: View<'_>, bindings: &mut Bindings) -> bool {
        match self {
            Self::Holds(atom) => view.holds(atom, bindings),
            Self::Not(inner) => !inner.evaluate(view, bindings),
            Self::All(parts) => parts.iter().all(|part| part.evaluate(view, bindings)),
            Self::Any(parts) => parts.iter().any(|part| part.evaluate(view, bindings)),
            Self::Equal(left, right) => left.value(bindings) == right.value(bindings),
            Self::Exists(query) => query.has_answer(view, bindings),
        }
    }

    /// Calls `visit` with every fact inside.
    pub(crate) fn visit_atoms(&self, visit: &mut impl FnMut(&Atom)) {
        match self {
            Self::Holds(atom) => visit(atom),
            Self::Not(inner) => inner.visit_atoms(visit),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.visit_atoms(visit));
            }
            Self::Equal(..) => {}
            Self::Exists(query) => query.visit_atoms(visit),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Holds(_) | Self::Equal(..) => 0,
            Self::Not(inner) => size_of::<Self>() + inner.heap_bytes(),
            Self::All(parts) | Self::Any(parts) => {
                parts.capacity() * size_of::<Self>()
                    + parts.iter().map(Self::heap_bytes).sum::<usize>()
            }
            Self::Exists(query) => size_of::<Query>() + query.heap_bytes(),
        }
    }
}

impl Query {
    /// Whether there is an answer. Bindings are as before afterwards.
    pub(crate) fn has_answer(&self, view: View<'_>, bindings: &mut Bindings) -> bool {
        self.solve(view, bindings, &mut |_| true)
    }

    /// Calls `found` with every answer, in order, until it returns true; says whether it did.
    ///
    /// Bindings are as before afterwards.
    pub(crate) fn solve(
        &self,
        view: View<'_>,
        bindings: &mut Bindings,
        found: &mut dyn FnMut(&mut Bindings) -> bool,
    ) -> bool {
        !self.is_empty && self.solve_from(0, view, bindings, found)
    }

    fn solve_from(
        &self,
        depth: usize,
        view: View<'_>,
        bindings: &mut Bindings,
        found: &mut dyn FnMut(&mut Bindings) -> bool,
    ) -> bool {
        let atom = match self.steps.get(depth) {
            None => return found(bindings),
            Some(Step::Test(check)) => {
                return check.evaluate(view, bindings)
                    && self.solve_from(depth + 1, view, bindings, found);
            }
            Some(Step::Match(atom)) => *atom,
        };
        let (first, second) = (atom.first.value(bindings), atom.second.value(bindings));
        let relation = &view.relations[usize::from(atom.relation)];
        let facts = view.facts;
        let mut bind_second = |bindings: &mut Bindings, first: u16| {
            relation.seconds(facts, first, &mut |value| {
                self.with(atom.second, value, depth, view, bindings, found)
            })
        };
        match (first == UNBOUND, second == UNBOUND) {
            (false, false) => {
                relation.holds(facts, first, second)
                    && self.solve_from(depth + 1, view, bindings, found)
            }
            (false, true) => bind_second(bindings, first),
            (true, false) => relation.firsts(facts, second, &mut |value| {
                self.with(atom.first, value, depth, view, bindings, found)
            }),
            (true, true) => (0..relation.num_firsts()).any(|first| {
                let Term::Slot(slot) = atom.first else { return false };
                if !self.allows(slot, first, bindings) {
                    return false;
                }
                bindings[usize::from(slot)] = first;
                let stop = if atom.first.is_same_slot(atom.second) {
                    relation.holds(facts, first, first)
                        && self.solve_from(depth + 1, view, bindings, found)
                } else {
                    relation.seconds(facts, first, &mut |value| {
                        self.with(atom.second, value, depth, view, bindings, found)
                    })
                };
                bindings[usize::from(slot)] = UNBOUND;
                stop
            }),
        }
    }

    /// Goes on with `value` for the placeholder.
    fn with(
        &self,
        term: Term,
        value: u16,
        depth: usize,
        view: View<'_>,
        bindings: &mut Bindings,
        found: &mut dyn FnMut(&mut Bindings) -> bool,
    ) -> bool {
        let Term::Slot(slot) = term else { return false };
        if !self.allows(slot, value, bindings) {
            return false;
        }
        bindings[usize::from(slot)] = value;
        let stop = self.solve_from(depth + 1, view, bindings, found);
        bindings[usize::from(slot)] = UNBOUND;
        stop
    }

    fn allows(&self, slot: u8, value: u16, bindings: &Bindings) -> bool {
        let Some(kinds) = &self.distinct else { return true };
        let kind = kinds[usize::from(slot)];
        !kinds.iter().zip(bindings).any(|(&other, &bound)| other == kind && bound == value)
    }

    pub(crate) fn visit_atoms(&self, visit: &mut impl FnMut(&Atom)) {
        for step in &self.steps {
            match step {
                Step::Match(atom) => visit(atom),
                Step::Test(check) => check.visit_atoms(visit),
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let steps = self.steps.capacity() * size_of::<Step>();
        let kinds = self.distinct.as_ref().map_or(0, |kinds| kinds.len());
        let inner = self.steps.iter().map(|step| match step {
            Step::Match(_) => 0,
            Step::Test(check) => check.heap_bytes(),
        });
        steps + kinds + inner.sum::<usize>()
    }
}
