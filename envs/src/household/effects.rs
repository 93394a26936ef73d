//! What the actions of a game change, compiled from the domain.

use super::error::Fault;
use super::facts::FactBase;
use super::lowering::{Lowered, Scope};
use super::pddl::{Domain, Schema};
use super::plan::{Check, Term};
use super::relations::{Layer, RelationId};
use super::rules::term_of;

/// Most effects that an action may have, not counting those on facts that nothing reads.
const MAX_EFFECTS: usize = 64;

/// One change of the facts, in all views that something reads.
#[derive(Debug)]
pub(crate) struct Change {
    /// The truth changes only where this holds before the action.
    pub(crate) condition: Option<Check>,
    /// Whether the fact becomes true or false.
    pub(crate) adds: bool,
    pub(crate) first: Term,
    pub(crate) second: Term,
    pub(crate) truth: Option<RelationId>,
    pub(crate) text: Option<RelationId>,
    pub(crate) negated: Option<RelationId>,
}

/// Compiles the effects of all actions, in the order of the domain.
///
/// Effects are kept only for facts that something reads, so all readers have to be compiled
/// before.
pub(crate) fn compile_effects(
    domain: &Domain,
    facts: &mut FactBase<'_>,
) -> Result<Vec<Vec<Change>>, Fault> {
    // What a condition reads makes the effects on it count, and so on until nothing is new.
    loop {
        let before = facts.relations.list.len();
        for schema in &domain.schemas {
            read_conditions(schema, facts)?;
        }
        if facts.relations.list.len() == before {
            break;
        }
    }
    domain.schemas.iter().map(|schema| changes(schema, facts)).collect()
}

fn read_conditions(schema: &Schema, facts: &mut FactBase<'_>) -> Result<(), Fault> {
    for effect in &schema.effects {
        let Some(condition) = &effect.condition else { continue };
        let Some(kinds) = facts.kinds_of(&effect.arguments, &schema.parameters) else { continue };
        let layers = [Layer::Truth, Layer::Text, Layer::Negated];
        if layers.iter().any(|&layer| facts.existing(&effect.predicate, kinds, layer).is_some()) {
            let place = format!("an effect of action `{}`", schema.name);
            let mut scope = Scope::default();
            if scope.declare(&schema.parameters, &place)? {
                Lowered::new(condition, &mut scope, facts, &place)?;
            }
        }
    }
    Ok(())
}

fn changes(schema: &Schema, facts: &mut FactBase<'_>) -> Result<Vec<Change>, Fault> {
    let place = format!("an effect of action `{}`", schema.name);
    let mut scope = Scope::default();
    let mut changes = Vec::with_capacity(schema.effects.len());
    if !scope.declare(&schema.parameters, &place)? {
        return Ok(changes);
    }
    for effect in &schema.effects {
        let mut terms = Vec::with_capacity(2);
        for argument in &effect.arguments {
            let term = term_of(argument, schema, facts);
            if argument.starts_with('?') && term.is_none() {
                return Err(Fault::unsupported(
                    format!("variable `{argument}` in {place}"),
                    "it is not a parameter",
                ));
            }
            terms.extend(term);
        }
        // An argument that no fact mentions cannot be read about either.
        let Some(kinds) = facts.kinds_of(&effect.arguments, &schema.parameters) else { continue };
        let (Some(&first), second) = (terms.first(), terms.get(1)) else { continue };
        let find = |layer| facts.existing(&effect.predicate, kinds, layer);
        let (truth, text, negated) = (find(Layer::Truth), find(Layer::Text), find(Layer::Negated));
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
        let second = second.copied().unwrap_or(Term::Const(0));
        changes.push(Change { condition, adds: effect.adds, first, second, truth, text, negated });
    }
    if changes.len() > MAX_EFFECTS {
        return Err(Fault::unsupported(place, format!("more than {MAX_EFFECTS} effects")));
    }
    // What becomes false goes first: where both are asked for, the fact becomes true. For facts
    // with conditional effects the texts of the reference have it the other way round.
    changes.sort_by_key(|change| change.adds != change.text.is_some());
    Ok(changes)
}
