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
const WITH_STATE: u32 = 3;
/// Mugs of a hundred in a coffee machine that also count as on the counter below it, and pots and
/// pans on two burners.
const IN_TWO_PLACES: u32 = 40;

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
        for index in 0..self.objects.len() {
            let object = &self.objects[index];
            if object.is_fixed {
                continue;
            }
            let target = goal.filter(|goal| goal.object == object.kind);
            let forbidden = target.and_then(Goal::kept_clear);
            let places = self.draw_places(object.kind, forbidden, rng);
            let object = &mut self.objects[index];
            if !places.is_empty() {
                object.places = places;
            }
            object.state = None;
            if target.is_none() && rng.random_range(0..1_000) < WITH_STATE {
                object.state = draw_state(object.abilities, rng);
            }
        }
    }

    /// Draws where an object of this type lies, the likelier the more often it does in real rooms.
    fn draw_places(&self, object: &str, forbidden: Option<&str>, rng: &mut impl Rng) -> Vec<usize> {
        let allowed = |kind: &str| Some(kind) != forbidden && self.has_receptacle(kind);
        let rows = self.room.places(object);
        let likely: Vec<_> = rows.iter().filter(|(kind, _)| allowed(kind)).collect();
        let place = match likely.choose_weighted(rng, |(_, weight)| *weight) {
            Ok((kind, _)) => self.draw_receptacle(rng, |other| other == *kind),
            Err(_) => self.draw_receptacle(rng, |other| {
                Some(other) != forbidden && can_contain(other, object)
            }),
        };
        let Some(place) = place else { return Vec::new() };
        let mut places = vec![place];
        let second = match self.receptacles[place].kind {
            "CoffeeMachine" => Some("CounterTop"),
            "StoveBurner" => Some("StoveBurner"),
            _ => None,
        };
        if let Some(second) = second.filter(|kind| allowed(kind))
            && rng.random_range(0..100) < IN_TWO_PLACES
            && let Some(other) = self.draw_receptacle(rng, |kind| kind == second)
            && other != place
        {
            places.push(other);
        }
        places
    }

    fn draw_receptacle(&self, rng: &mut impl Rng, fits: impl Fn(&str) -> bool) -> Option<usize> {
        let num_fitting = self.receptacles.iter().filter(|other| fits(other.kind)).count();
        if num_fitting == 0 {
            return None;
        }
        let chosen = rng.random_range(0..num_fitting);
        let mut fitting = (0..self.receptacles.len()).filter(|i| fits(self.receptacles[*i].kind));
        fitting.nth(chosen)
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
