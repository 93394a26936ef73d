//! A furnished room, apart from the names of the things in it.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::goal::Goal;
use super::object_types::{Abilities, can_contain};
use super::rooms::RoomKind;
use crate::household::TaskFamily;

/// A room: what stands in it and what lies where.
#[derive(Debug, Clone)]
pub(super) struct Scene<'a> {
    pub(super) room: RoomKind,
    pub(super) receptacles: Vec<Receptacle<'a>>,
    pub(super) objects: Vec<Object<'a>>,
}

/// Something that holds objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receptacle<'a> {
    pub(super) kind: &'a str,
    pub(super) openable: bool,
    /// Receptacles at the same location are reached together.
    pub(super) location: usize,
}

/// A thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object<'a> {
    pub(super) kind: &'a str,
    pub(super) abilities: Abilities,
    /// Indices of the receptacles it is in; the format's games have objects in two at once.
    pub(super) places: Vec<usize>,
    /// A state it has from the start.
    pub(super) state: Option<&'static str>,
    /// Whether it stays where it is.
    pub(super) is_fixed: bool,
}

/// Objects of a thousand that are clean, hot or cool from the start.
const WITH_STATE: u32 = 6;
/// Mugs of a hundred in a coffee machine that also count as on the counter below it, and pots and
/// pans on two burners.
const IN_TWO_PLACES: u32 = 65;

impl Scene<'_> {
    /// Whether a receptacle of this type stands here.
    pub(super) fn has_receptacle(&self, kind: &str) -> bool {
        self.receptacles.iter().any(|receptacle| receptacle.kind == kind)
    }

    /// How many objects of this type lie somewhere.
    pub(super) fn num_objects(&self, kind: &str) -> usize {
        self.objects
            .iter()
            .filter(|object| object.kind == kind && !object.places.is_empty())
            .count()
    }

    /// Lays all objects that are not fixed somewhere else, such that `goal` is not yet reached.
    ///
    /// With `goal` absent nothing is kept clear. An object without a likely place keeps the one
    /// it has.
    pub(super) fn lay_out(&mut self, goal: Option<&Goal>, rng: &mut impl Rng) {
        let by_kind = ByKind::new(&self.receptacles);
        for object in &mut self.objects {
            if object.is_fixed {
                continue;
            }
            let target = goal.filter(|goal| goal.object == object.kind);
            let forbidden = target.and_then(Goal::kept_clear);
            let places = by_kind.draw_places(self.room, object.kind, forbidden, rng);
            if !places.is_empty() {
                object.places = places;
            }
            object.state = None;
            if target.is_none() && rng.random_range(0..1_000) < WITH_STATE {
                object.state = draw_state(object.abilities, rng);
            }
        }
    }
}

/// The receptacle types of a room, each with the indices of its receptacles.
struct ByKind<'a>(Vec<(&'a str, Vec<usize>)>);

impl<'a> ByKind<'a> {
    fn new(receptacles: &[Receptacle<'a>]) -> Self {
        let mut kinds: Vec<(&str, Vec<usize>)> = Vec::new();
        for (index, receptacle) in receptacles.iter().enumerate() {
            match kinds.iter_mut().find(|(kind, _)| *kind == receptacle.kind) {
                Some((_, indices)) => indices.push(index),
                None => kinds.push((receptacle.kind, vec![index])),
            }
        }
        Self(kinds)
    }

    fn of(&self, kind: &str) -> Option<&[usize]> {
        self.0.iter().find(|(other, _)| *other == kind).map(|(_, indices)| &indices[..])
    }

    /// Draws where an object of a type lies, the likelier the more often it does in real rooms.
    fn draw_places(
        &self,
        room: RoomKind,
        object: &str,
        forbidden: Option<&str>,
        rng: &mut impl Rng,
    ) -> Vec<usize> {
        let rows = room.places(object).iter().filter(|(kind, _)| Some(*kind) != forbidden);
        let likely: Vec<(&str, &[usize], u32)> =
            rows.filter_map(|(kind, weight)| Some((*kind, self.of(kind)?, *weight))).collect();
        let (kind, indices) = match likely.choose_weighted(rng, |(.., weight)| *weight) {
            Ok((kind, indices, _)) => (*kind, *indices),
            Err(_) => {
                let fits = |kind: &str| Some(kind) != forbidden && can_contain(kind, object);
                let possible: Vec<_> = self.0.iter().filter(|(kind, _)| fits(kind)).collect();
                let Some((kind, indices)) = possible.choose(rng) else { return Vec::new() };
                (*kind, &indices[..])
            }
        };
        let mut places = Vec::with_capacity(1);
        places.extend(indices.choose(rng));
        let second = match kind {
            "CoffeeMachine" => Some("CounterTop"),
            "StoveBurner" => Some("StoveBurner"),
            _ => None,
        };
        if let Some(second) = second.filter(|kind| Some(*kind) != forbidden)
            && rng.random_range(0..100) < IN_TWO_PLACES
            && let Some(other) = self.of(second).and_then(|indices| indices.choose(rng))
            && !places.contains(other)
        {
            places.push(*other);
        }
        places
    }
}

impl Goal {
    /// The receptacle type that the goal's objects do not lie in from the start.
    ///
    /// Where an object must be cleaned, heated or cooled first, untreated ones may lie in the
    /// destination, as they do in real games.
    fn kept_clear(&self) -> Option<&str> {
        match self.family {
            TaskFamily::PickAndPlaceSimple | TaskFamily::PickTwoObjAndPlace => {
                Some(&self.destination)
            }
            TaskFamily::LookAtObjInLight
            | TaskFamily::PickCleanThenPlaceInRecep
            | TaskFamily::PickHeatThenPlaceInRecep
            | TaskFamily::PickCoolThenPlaceInRecep => None,
        }
    }
}

fn draw_state(abilities: Abilities, rng: &mut impl Rng) -> Option<&'static str> {
    let states = [
        (Abilities::CLEANABLE, "isClean"),
        (Abilities::HEATABLE, "isHot"),
        (Abilities::COOLABLE, "isCool"),
        (Abilities::COOLABLE, "isCool"),
        (Abilities::COOLABLE, "isCool"),
    ];
    let (ability, state) = states.choose(rng)?;
    abilities.has(*ability).then_some(*state)
}
