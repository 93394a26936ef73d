//! The actions of a game, compiled from the domain and the grammar.

use super::entities::Kind;
use super::error::Fault;
use super::facts::FactBase;
use super::lowering::{Lowered, Scope};
use super::narration::{self, Node, visit_queries};
use super::pddl::{Formula, Schema};
use super::plan::{Check, Query, Term};
use super::relations::{Layer, RelationId};
use super::text_compiler::{TextCompiler, TextScope};
use super::twl2::Grammar;

/// Most parameters that an action may have.
pub(crate) const MAX_PARAMETERS: usize = 8;

/// Most effects that an action may have, not counting those on facts that nothing reads.
const MAX_EFFECTS: usize = 64;

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
    /// What it changes.
    pub(crate) effects: Vec<Change>,
    /// The command.
    pub(crate) command: Vec<Node>,
    /// The answer.
    pub(crate) feedback: Vec<Node>,
    /// Nothing but the location of the player decides about it and its command.
    pub(crate) depends_on_location_only: bool,
    /// When it would change nothing; such actions are not offered.
    idle: Vec<Vec<[(Term, Term); 2]>>,
}

/// One change of the facts, in all views that something reads.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) condition: Option<Check>,
    pub(crate) adds: bool,
    pub(crate) first: Term,
    pub(crate) second: Term,
    pub(crate) truth: Option<RelationId>,
    pub(crate) text: Option<RelationId>,
    pub(crate) negated: Option<RelationId>,
}

impl Action {
    /// Compiles a schema with its texts. Effects come later, see [`Action::learn_effects`].
    pub(crate) fn new(
        schema: &Schema,
        grammar: &Grammar,
        facts: &mut FactBase<'_>,
    ) -> Result<Self, Fault> {
        let place = format!("action `{}`", schema.name);
        if schema.parameters.len() > MAX_PARAMETERS {
            return Err(Fault::unsupported(
                place,
                format!("more than {MAX_PARAMETERS} parameters"),
            ));
        }
        let mut scope = Scope::default();
        let is_possible = scope.declare(&schema.parameters, &place)?;
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
            let lowered = Lowered::new(&schema.precondition, &mut scope, facts, &place)?;
            lowered.queries(0, wanted, &place)?
        } else {
            Vec::new()
        };
        let text = grammar.actions.iter().find(|text| text.name == schema.name);
        let Some(text) = text else {
            return Err(Fault::unsupported(place, "the grammar has no text for it"));
        };
        let names = || schema.parameters.iter().map(|parameter| parameter.name.trim_matches('?'));
        let mut text_scope: TextScope<'_> = names().zip(kinds.iter().copied()).collect();
        let mut compiler = TextCompiler::new(grammar, facts);
        let command = compiler.compile(&text.template, &mut text_scope)?;
        let feedback = compiler.compile(&text.feedback, &mut text_scope)?;
        Ok(Self {
            name: schema.name.as_str().into(),
            parameter_names: names().map(Into::into).collect(),
            parameters: kinds,
            queries,
            effects: Vec::new(),
            command,
            feedback,
            depends_on_location_only: false,
            idle: idle_conditions(schema, facts),
        })
    }

    /// Makes relations for what the conditions of effects read. Says whether there are new ones.
    ///
    /// Only effects on facts that something reads count, so this is called until nothing is new.
    pub(crate) fn read_conditions(
        schema: &Schema,
        facts: &mut FactBase<'_>,
    ) -> Result<bool, Fault> {
        let place = format!("an effect of action `{}`", schema.name);
        let before = facts.relations.list.len();
        for effect in &schema.effects {
            let Some(condition) = &effect.condition else { continue };
            let Some(kinds) = facts.kinds_of(&effect.arguments, &schema.parameters) else {
                continue;
            };
            let layers = [Layer::Truth, Layer::Text, Layer::Negated];
            let mut scope = Scope::default();
            if layers.iter().any(|&layer| facts.existing(&effect.predicate, kinds, layer).is_some())
                && scope.declare(&schema.parameters, &place)?
            {
                Lowered::new(condition, &mut scope, facts, &place)?;
            }
        }
        Ok(facts.relations.list.len() > before)
    }

    /// Compiles the effects, when it is known which facts are read.
    pub(crate) fn learn_effects(
        &mut self,
        schema: &Schema,
        facts: &mut FactBase<'_>,
        location: Option<RelationId>,
    ) -> Result<(), Fault> {
        let place = format!("an effect of action `{}`", schema.name);
        let mut scope = Scope::default();
        if !scope.declare(&schema.parameters, &place)? {
            return Ok(());
        }
        for effect in &schema.effects {
            let terms: Option<Vec<Term>> =
                effect.arguments.iter().map(|argument| term_of(argument, schema, facts)).collect();
            for argument in &effect.arguments {
                if argument.starts_with('?') && term_of(argument, schema, facts).is_none() {
                    return Err(Fault::unsupported(
                        format!("variable `{argument}` in {place}"),
                        "it is not a parameter",
                    ));
                }
            }
            let (Some(terms), Some(kinds)) =
                (terms, facts.kinds_of(&effect.arguments, &schema.parameters))
            else {
                continue;
            };
            let find = |layer| facts.existing(&effect.predicate, kinds, layer);
            let (truth, text, negated) =
                (find(Layer::Truth), find(Layer::Text), find(Layer::Negated));
            if truth.or(text).or(negated).is_none() {
                continue;
            }
            let condition = match &effect.condition {
                None => None,
                Some(condition) => {
                    let lowered = Lowered::new(condition, &mut scope, facts, &place)?;
                    Some(lowered.check(u32::MAX, &place)?)
                }
            };
            self.effects.push(Change {
                condition,
                adds: effect.adds,
                first: terms[0],
                second: terms.get(1).copied().unwrap_or(Term::Const(0)),
                truth,
                text,
                negated,
            });
        }
        if self.effects.len() > MAX_EFFECTS {
            return Err(Fault::unsupported(place, format!("more than {MAX_EFFECTS} effects")));
        }
        // What becomes false goes first: where both are asked for, the fact becomes true. For
        // facts with conditional effects the texts of the reference have it the other way round.
        self.effects.sort_by_key(|effect| effect.adds != effect.text.is_some());
        self.depends_on_location_only = self.is_static_but_for(location, facts);
        Ok(())
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
        let effects = self.effects.iter().map(|effect| {
            size_of::<Change>() + effect.condition.as_ref().map_or(0, Check::heap_bytes)
        });
        let queries = self.queries.iter().map(|query| size_of::<Query>() + query.heap_bytes());
        let idle =
            self.idle.iter().map(|pairs| 24 + pairs.capacity() * size_of::<[(Term, Term); 2]>());
        self.name.len()
            + self.parameter_names.iter().map(|name| 16 + name.len()).sum::<usize>()
            + self.parameters.len()
            + queries.sum::<usize>()
            + effects.sum::<usize>()
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

fn term_of(argument: &str, schema: &Schema, facts: &FactBase<'_>) -> Option<Term> {
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
