//! The facts of a problem and which of them actions can change.

use rustc_hash::{FxHashMap, FxHashSet};

use super::entities::{Entities, Kind};
use super::error::Fault;
use super::pddl::{Domain, Problem};
use super::relations::{Layer, RelationId, Relations, Signature};

type Pairs = Vec<(u16, u16)>;
type Key<'a> = (&'a str, (Kind, Option<Kind>));

/// Gives relations to those who read facts, and fills them.
///
/// Only what something reads gets a relation: a fact that nothing reads is no part of the state.
pub(crate) struct FactBase<'a> {
    pub(crate) entities: Entities,
    pub(crate) relations: Relations,
    numbers: FxHashMap<&'a str, (Kind, u16)>,
    initial: FxHashMap<Key<'a>, Pairs>,
    changed: FxHashSet<Key<'a>>,
    deleted: FxHashSet<Key<'a>>,
    conditional: FxHashSet<&'a str>,
}

impl<'a> FactBase<'a> {
    /// Reads the declarations and facts of `problem`, all in lower case.
    pub(crate) fn new(problem: &'a Problem<'a>) -> Result<Self, Fault> {
        let mut declared: FxHashMap<&str, &str> =
            FxHashMap::with_capacity_and_hasher(problem.objects.len(), rustc_hash::FxBuildHasher);
        for (name, kind) in &problem.objects {
            let known = declared.insert(name, kind);
            if known.is_some_and(|known| known != &**kind) {
                return Err(Fault::unsupported(format!("`{name}`"), "declared with two types"));
            }
        }
        let mut found: FxHashMap<&str, Kind> =
            FxHashMap::with_capacity_and_hasher(256, rustc_hash::FxBuildHasher);
        for fact in &problem.init {
            if !(1..=2).contains(&fact.arguments.len()) {
                return Err(Fault::unsupported(
                    format!("fact `{}`", fact.predicate),
                    format!("{} arguments; one or two are known", fact.arguments.len()),
                ));
            }
            for argument in &fact.arguments {
                if !found.contains_key(&**argument) {
                    let kind = declared.get(&**argument).ok_or_else(|| {
                        Fault::unsupported(
                            format!("`{argument}` in a fact `{}`", fact.predicate),
                            "it is not declared under :objects",
                        )
                    })?;
                    found.insert(argument, Kind::read(kind, &format!("of `{argument}`"))?);
                }
            }
        }
        let (entities, numbers) = Entities::new(found)?;
        let mut initial: FxHashMap<Key<'a>, Pairs> = FxHashMap::default();
        for fact in &problem.init {
            let (first_kind, first) = numbers[&*fact.arguments[0]];
            let second = fact.arguments.get(1).map(|argument| numbers[&**argument]);
            let key = (&*fact.predicate, (first_kind, second.map(|(kind, _)| kind)));
            initial.entry(key).or_default().push((first, second.map_or(0, |(_, second)| second)));
        }
        Ok(Self {
            entities,
            relations: Relations::default(),
            numbers,
            initial,
            changed: FxHashSet::default(),
            deleted: FxHashSet::default(),
            conditional: FxHashSet::default(),
        })
    }

    /// Checks the facts against the predicates of `domain`, and notes what its actions change.
    pub(crate) fn learn(&mut self, domain: &'a Domain) -> Result<(), Fault> {
        for (predicate, (first, second)) in self.initial.keys() {
            let parameters = domain.predicates.iter().find(|(name, _)| name == predicate);
            let Some((_, parameters)) = parameters else {
                return Err(Fault::unsupported(
                    format!("fact `{predicate}`"),
                    "the domain does not declare this predicate",
                ));
            };
            let kinds: Vec<&str> =
                [Some(*first), *second].iter().flatten().map(|kind| kind.name()).collect();
            let fits = |(kind, parameter): (&&str, &super::pddl::Typed)| {
                **kind == parameter.kind || parameter.kind == "object"
            };
            if kinds.len() != parameters.len() || !kinds.iter().zip(parameters).all(fits) {
                return Err(Fault::unsupported(
                    format!("fact `{predicate}` over {}", kinds.join(" and ")),
                    "the domain declares other arguments",
                ));
            }
        }
        for schema in &domain.schemas {
            for effect in &schema.effects {
                if effect.condition.is_some() {
                    self.conditional.insert(&effect.predicate);
                }
                let Some(kinds) = self.kinds_of(&effect.arguments, &schema.parameters) else {
                    continue;
                };
                self.changed.insert((&effect.predicate, kinds));
                if !effect.adds {
                    self.deleted.insert((&effect.predicate, kinds));
                }
            }
        }
        Ok(())
    }

    /// The kinds of parameters and constants; `None` where one of them cannot exist.
    pub(crate) fn kinds_of(
        &self,
        arguments: &[String],
        parameters: &[super::pddl::Typed],
    ) -> Option<(Kind, Option<Kind>)> {
        let kind_of = |argument: &String| match parameters.iter().find(|p| p.name == *argument) {
            Some(parameter) => Kind::from_name(&parameter.kind),
            None => self.numbers.get(argument.as_str()).map(|&(kind, _)| kind),
        };
        match arguments {
            [first] => Some((kind_of(first)?, None)),
            [first, second] => Some((kind_of(first)?, Some(kind_of(second)?))),
            _ => None,
        }
    }

    /// The kind and number of a thing, if any fact mentions it.
    pub(crate) fn number(&self, id: &str) -> Option<(Kind, u16)> {
        self.numbers.get(id).copied()
    }

    /// Number of facts that the relation of this key has at the start.
    pub(crate) fn num_initial(&self, predicate: &str, kinds: (Kind, Option<Kind>)) -> usize {
        self.initial.get(&(predicate, kinds)).map_or(0, Vec::len)
    }

    /// The relation with the facts of a predicate; `None` if there can never be one.
    pub(crate) fn relation(
        &mut self,
        predicate: &str,
        kinds: (Kind, Option<Kind>),
        layer: Layer,
    ) -> Option<RelationId> {
        let key = (predicate, kinds);
        let layer = match layer {
            Layer::Text if !self.conditional.contains(predicate) => Layer::Truth,
            other => other,
        };
        let signature = Signature { predicate: predicate.into(), kinds, layer };
        if let Some(id) = self.relations.find(&signature) {
            return Some(id);
        }
        let is_dynamic = self.changed.contains(&key);
        let can_have_facts = match layer {
            Layer::Negated => self.deleted.contains(&key),
            _ => is_dynamic || self.initial.contains_key(&key),
        };
        if !can_have_facts {
            return None;
        }
        let id = self.relations.add(signature, is_dynamic, &self.entities);
        if layer != Layer::Negated {
            for &(first, second) in self.initial.get(&key).map_or(&[][..], |pairs| pairs) {
                self.relations.insert(id, first, second);
            }
        }
        Some(id)
    }

    /// The relation of a predicate if something reads it.
    pub(crate) fn existing(
        &self,
        predicate: &str,
        kinds: (Kind, Option<Kind>),
        layer: Layer,
    ) -> Option<RelationId> {
        self.relations.find(&Signature { predicate: predicate.into(), kinds, layer })
    }
}
