//! The actions of a game, compiled from the domain and the grammar.

use super::entities::Kind;
use super::error::Fault;
use super::facts::FactBase;
use super::lowering::{Lowered, Scope};
use super::narration::{self, Node, visit_queries};
use super::pddl::{Formula, Schema};
use super::plan::{Query, Term};
use super::relations::RelationId;
use super::text_compiler::{TextCompiler, TextScope};
use super::twl2::Grammar;

/// Most parameters that an action may have.
pub(crate) const MAX_PARAMETERS: usize = 8;

/// One kind of action.
#[derive(Debug)]
pub(crate) struct Action {
    /// Name, in lower case.
    pub(crate) name: Box<str>,
    /// Kinds of the parameters; parameter and slot have the same number.
    pub(crate) parameters: Box<[Kind]>,
    /// Names of the parameters, without question mark.
    pub(crate) parameter_names: Box<[Box<str>]>,
    /// Ways to find the possible values of the parameters.
    pub(crate) queries: Vec<Query>,
    /// The command.
    pub(crate) command: Vec<Node>,
    /// The answer.
    pub(crate) feedback: Vec<Node>,
    /// Nothing but the location of the player decides about it and its command.
    pub(crate) depends_on_location_only: bool,
    /// When it would change nothing; such actions are not offered.
    idle: Vec<Vec<[(Term, Term); 2]>>,
}

impl Action {
    /// Compiles a schema with its texts; `location` says where the player is.
    ///
    /// A fault comes with the part of the game it is in.
    pub(crate) fn new(
        schema: &Schema,
        grammar: &Grammar,
        facts: &mut FactBase<'_>,
        location: Option<RelationId>,
    ) -> Result<Self, (&'static str, Fault)> {
        let place = format!("action `{}`", schema.name);
        let in_domain = |fault| ("pddl_domain", fault);
        let in_grammar = |fault| ("grammar", fault);
        if schema.parameters.len() > MAX_PARAMETERS {
            let reason = format!("more than {MAX_PARAMETERS} parameters");
            return Err(in_domain(Fault::unsupported(place, reason)));
        }
        let mut scope = Scope::default();
        let is_possible = scope.declare(&schema.parameters, &place).map_err(in_domain)?;
        let kinds: Box<[Kind]> = schema
            .parameters
            .iter()
            .map(|parameter| Kind::from_name(&parameter.kind).unwrap_or(Kind::Object))
            .collect();
        let mut wanted = 0;
        for (slot, kind) in kinds.iter().enumerate() {
            if *kind != Kind::Agent {
                wanted |= 1 << slot;
            }
        }
        let queries = if is_possible {
            Lowered::new(&schema.precondition, &mut scope, facts, &place)
                .and_then(|lowered| lowered.queries(0, wanted, &place))
                .map_err(in_domain)?
        } else {
            Vec::new()
        };
        let text = grammar.actions.iter().find(|text| text.name == schema.name);
        let Some(text) = text else {
            let reason = "the grammar has no text for it";
            return Err(in_grammar(Fault::unsupported(place, reason)));
        };
        let names = || schema.parameters.iter().map(|parameter| parameter.name.trim_matches('?'));
        let mut text_scope: TextScope<'_> = names().zip(kinds.iter().copied()).collect();
        let mut compiler = TextCompiler::new(grammar, facts);
        let command = compiler.compile(&text.template, &mut text_scope).map_err(in_grammar)?;
        let feedback = compiler.compile(&text.feedback, &mut text_scope).map_err(in_grammar)?;
        let mut action = Self {
            name: schema.name.as_str().into(),
            parameter_names: names().map(Into::into).collect(),
            parameters: kinds,
            queries,
            command,
            feedback,
            depends_on_location_only: false,
            idle: idle_conditions(schema, facts),
        };
        action.depends_on_location_only = action.is_static_but_for(location, facts);
        Ok(action)
    }

    fn is_static_but_for(&self, location: Option<RelationId>, facts: &FactBase<'_>) -> bool {
        let mut is_static = true;
        let mut check = |query: &Query| {
            query.visit_atoms(&mut |atom| {
                let is_dynamic = facts.relations.list[usize::from(atom.relation)].is_dynamic;
                is_static &= !is_dynamic || Some(atom.relation) == location;
            });
        };
        self.queries.iter().for_each(&mut check);
        visit_queries(&self.command, &mut check);
        is_static
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let queries = self.queries.iter().map(|query| size_of::<Query>() + query.heap_bytes());
        let idle =
            self.idle.iter().map(|pairs| 24 + pairs.capacity() * size_of::<[(Term, Term); 2]>());
        self.name.len()
            + self.parameter_names.iter().map(|name| 16 + name.len()).sum::<usize>()
            + self.parameters.len()
            + queries.sum::<usize>()
            + idle.sum::<usize>()
            + narration::heap_bytes(&self.command)
            + narration::heap_bytes(&self.feedback)
    }

    /// Whether the action with these parameters would change nothing.
    ///
    /// The reference drops such actions before the game: to go where one is already.
    pub(crate) fn is_idle(&self, values: &[u16]) -> bool {
        let value = |term: Term| match term {
            Term::Slot(slot) => values[usize::from(slot)],
            Term::Const(value) => value,
        };
        !self.idle.is_empty()
            && self.idle.iter().all(|alternatives| {
                let equal = |pairs: &[(Term, Term); 2]| {
                    pairs.iter().all(|&(left, right)| value(left) == value(right))
                };
                alternatives.iter().any(equal)
            })
    }
}

pub(crate) fn term_of(argument: &str, schema: &Schema, facts: &FactBase<'_>) -> Option<Term> {
    if argument.starts_with('?') {
        let slot = schema.parameters.iter().rposition(|parameter| parameter.name == argument)?;
        if schema.parameters[slot].kind == Kind::Agent.name() {
            return Some(Term::Const(0));
        }
        return Some(Term::Slot(slot as u8));
    }
    facts.number(argument).map(|(_, number)| Term::Const(number))
}

/// Per effect, the ways in which it can be without effect; empty if one of them never is.
fn idle_conditions(schema: &Schema, facts: &FactBase<'_>) -> Vec<Vec<[(Term, Term); 2]>> {
    let mut idle = Vec::new();
    let conjuncts = match &schema.precondition {
        Formula::And(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    for effect in &schema.effects {
        let mut alternatives = Vec::new();
        let mut compare = |predicate: &str, arguments: &[String]| {
            if predicate != effect.predicate || arguments.len() != effect.arguments.len() {
                return;
            }
            let mut pairs = [(Term::Const(0), Term::Const(0)); 2];
            for (pair, (left, right)) in
                pairs.iter_mut().zip(arguments.iter().zip(&effect.arguments))
            {
                match (term_of(left, schema, facts), term_of(right, schema, facts)) {
                    (Some(left), Some(right)) => *pair = (left, right),
                    _ => return,
                }
            }
            alternatives.push(pairs);
        };
        for conjunct in conjuncts {
            match (effect.adds, conjunct) {
                (true, Formula::Atom { predicate, arguments }) => compare(predicate, arguments),
                (false, Formula::Not(inner)) => {
                    if let Formula::Atom { predicate, arguments } = &**inner {
                        compare(predicate, arguments);
                    }
                }
                _ => {}
            }
        }
        if !effect.adds {
            for other in schema.effects.iter().filter(|other| other.adds) {
                compare(&other.predicate, &other.arguments);
            }
        }
        if alternatives.is_empty() || effect.condition.is_some() {
            return Vec::new();
        }
        idle.push(alternatives);
    }
    idle
}
