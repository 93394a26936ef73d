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
    declared: Declared<'a>,
    initial: FxHashMap<Key<'a>, Pairs>,
    changed: FxHashSet<Key<'a>>,
    deleted: FxHashSet<Key<'a>>,
    conditional: FxHashSet<&'a str>,
}

/// The things that a problem declares.
#[derive(Default)]
struct Declared<'a> {
    places: FxHashMap<&'a str, u32>,
    kinds: Vec<&'a str>,
    /// Kind and number of those that facts mention.
    numbers: Vec<Option<(Kind, u16)>>,
}

impl<'a> Declared<'a> {
    fn new(problem: &'a Problem<'a>) -> Result<Self, Fault> {
        let mut declared = Self::default();
        declared.places.reserve(problem.objects.len());
        for (name, kind) in &problem.objects {
            let place = *declared.places.entry(name).or_insert(declared.kinds.len() as u32);
            match declared.kinds.get(place as usize) {
                None => declared.kinds.push(kind),
                Some(known) if known == kind => {}
                Some(_) => {
                    let reason = "declared with two types";
                    return Err(Fault::unsupported(format!("`{name}`"), reason));
                }
            }
        }
        declared.numbers = vec![None; declared.kinds.len()];
        Ok(declared)
    }

    fn place(&self, name: &str, predicate: &str) -> Result<usize, Fault> {
        self.places.get(name).map(|&place| place as usize).ok_or_else(|| {
            Fault::unsupported(
                format!("`{name}` in a fact `{predicate}`"),
                "it is not declared under :objects",
            )
        })
    }
}

impl<'a> FactBase<'a> {
    /// Reads the declarations and facts of `problem`, all in lower case.
    pub(crate) fn new(problem: &'a Problem<'a>) -> Result<Self, Fault> {
        let mut declared = Declared::new(problem)?;
        // Numbers are known when all things are; until then facts point to declarations.
        let mut things: Vec<(&str, Kind)> = Vec::with_capacity(256);
        let mut thing_places = Vec::with_capacity(256);
        let mut facts = Vec::with_capacity(problem.init.len());
        for fact in &problem.init {
            if !(1..=2).contains(&fact.arguments.len()) {
                return Err(Fault::unsupported(
                    format!("fact `{}`", fact.predicate),
                    format!("{} arguments; one or two are known", fact.arguments.len()),
                ));
            }
            let mut places = [usize::MAX; 2];
            for (place, argument) in places.iter_mut().zip(&fact.arguments) {
                *place = declared.place(argument, &fact.predicate)?;
                if declared.numbers[*place].is_none() {
                    let kind = Kind::read(declared.kinds[*place], || format!("of `{argument}`"))?;
                    declared.numbers[*place] = Some((kind, 0));
                    things.push((argument, kind));
                    thing_places.push(*place);
                }
            }
            facts.push((&*fact.predicate, places));
        }
        let (entities, numbers) = Entities::new(&things)?;
        for ((place, (_, kind)), number) in thing_places.iter().zip(&things).zip(numbers) {
            declared.numbers[*place] = Some((*kind, number));
        }
        let mut initial: FxHashMap<Key<'a>, Pairs> = FxHashMap::default();
        let number_at = |place: usize| declared.numbers.get(place).copied().flatten();
        for (predicate, [first, second]) in facts {
            let Some((first_kind, first)) = number_at(first) else { continue };
            let second = number_at(second);
            let key = (predicate, (first_kind, second.map(|(kind, _)| kind)));
            let pair = (first, second.map_or(0, |(_, second)| second));
            initial.entry(key).or_default().push(pair);
        }
        Ok(Self {
            entities,
            relations: Relations::default(),
            declared,
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
            None => self.number(argument).map(|(kind, _)| kind),
        };
        match arguments {
            [first] => Some((kind_of(first)?, None)),
            [first, second] => Some((kind_of(first)?, Some(kind_of(second)?))),
            _ => None,
        }
    }

    /// The kind and number of a thing, if any fact mentions it.
    pub(crate) fn number(&self, id: &str) -> Option<(Kind, u16)> {
        self.declared.places.get(id).and_then(|&place| self.declared.numbers[place as usize])
    }

    /// The predicates that have facts at the start, sorted.
    pub(crate) fn initial_keys(&self) -> Vec<(&'a str, (Kind, Option<Kind>))> {
        let mut keys: Vec<_> = self.initial.keys().copied().collect();
        keys.sort_unstable();
        keys
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
