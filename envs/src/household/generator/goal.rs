//! The six families of tasks: their words, their goals in PDDL, and which scenes allow them.

use std::fmt;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::object_types::{Abilities, can_contain};
use super::scene::Scene;
use crate::household::pddl::Formula;

/// A family of household tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Put an object into a receptacle.
    PickAndPlace,
    /// Look at an object in the light of a lamp.
    LookInLight,
    /// Clean an object, then put it into a receptacle.
    CleanThenPlace,
    /// Heat an object, then put it into a receptacle.
    HeatThenPlace,
    /// Cool an object, then put it into a receptacle.
    CoolThenPlace,
    /// Put two objects of a type into one receptacle.
    PickTwo,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 6] = [
        Self::PickAndPlace,
        Self::LookInLight,
        Self::CleanThenPlace,
        Self::HeatThenPlace,
        Self::CoolThenPlace,
        Self::PickTwo,
    ];

    /// The name, as ALFWorld's folders have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PickAndPlace => "pick_and_place_simple",
            Self::LookInLight => "look_at_obj_in_light",
            Self::CleanThenPlace => "pick_clean_then_place_in_recep",
            Self::HeatThenPlace => "pick_heat_then_place_in_recep",
            Self::CoolThenPlace => "pick_cool_then_place_in_recep",
            Self::PickTwo => "pick_two_obj_and_place",
        }
    }

    /// The family of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// How often ALFWorld's training games are of the family, of 3,553.
    pub(super) fn weight(self) -> u32 {
        match self {
            Self::PickAndPlace => 790,
            Self::LookInLight => 308,
            Self::CleanThenPlace => 650,
            Self::HeatThenPlace => 459,
            Self::CoolThenPlace => 533,
            Self::PickTwo => 813,
        }
    }

    /// What must be possible with the object.
    fn ability(self) -> Abilities {
        let special = match self {
            Self::PickAndPlace | Self::LookInLight | Self::PickTwo => Abilities::default(),
            Self::CleanThenPlace => Abilities::CLEANABLE,
            Self::HeatThenPlace => Abilities::HEATABLE,
            Self::CoolThenPlace => Abilities::COOLABLE,
        };
        Abilities::PICKUPABLE.with(special)
    }

    /// The receptacle type that the work is done with.
    pub(super) fn tool(self) -> Option<&'static str> {
        match self {
            Self::PickAndPlace | Self::LookInLight | Self::PickTwo => None,
            Self::CleanThenPlace => Some("SinkBasin"),
            Self::HeatThenPlace => Some("Microwave"),
            Self::CoolThenPlace => Some("Fridge"),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a game demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Goal {
    pub(crate) family: Family,
    /// Type of the object.
    pub(crate) object: String,
    /// Type of the receptacle it goes to, or of the lamp.
    pub(crate) destination: String,
    /// Which of the family's two wordings is used.
    pub(crate) wording: usize,
}

impl Goal {
    /// Draws a goal that the scene allows, of `family` or of any.
    ///
    /// `None` when the scene allows none.
    pub(super) fn draw(
        scene: &Scene<'_>,
        family: Option<Family>,
        rng: &mut impl Rng,
    ) -> Option<Self> {
        let mut families: Vec<Family> = match family {
            Some(family) => vec![family],
            None => Family::ALL.to_vec(),
        };
        while !families.is_empty() {
            let family = *families.choose_weighted(rng, |family| family.weight()).ok()?;
            if let Some(goal) = Self::draw_in_family(scene, family, rng) {
                return Some(goal);
            }
            families.retain(|other| *other != family);
        }
        None
    }

    fn draw_in_family(scene: &Scene<'_>, family: Family, rng: &mut impl Rng) -> Option<Self> {
        if let Some(tool) = family.tool()
            && !scene.has_receptacle(tool)
        {
            return None;
        }
        // Objects first and then their destinations, so that a type that fits everywhere is not
        // asked for more often than one that fits in one place.
        let mut objects: Vec<&str> = Vec::new();
        for (index, object) in scene.objects.iter().enumerate() {
            let fits = object.abilities.has(family.ability()) && !object.places.is_empty();
            let first = scene.objects[..index].iter().all(|other| other.kind != object.kind);
            let enough = family != Family::PickTwo || scene.num_objects(object.kind) >= 2;
            if fits && first && enough {
                objects.push(object.kind);
            }
        }
        while !objects.is_empty() {
            let chosen = rng.random_range(0..objects.len());
            let object = objects[chosen];
            let destinations = Self::destinations(scene, family, object);
            if let Some(destination) = destinations.choose(rng) {
                let wording = rng.random_range(0..2);
                let (object, destination) = (object.to_owned(), (*destination).to_owned());
                return Some(Self { family, object, destination, wording });
            }
            objects.swap_remove(chosen);
        }
        None
    }

    fn destinations<'a>(scene: &Scene<'a>, family: Family, object: &str) -> Vec<&'a str> {
        if family == Family::LookInLight {
            let lamps = scene.objects.iter().filter(|lamp| {
                lamp.abilities.has(Abilities::TOGGLEABLE) && !lamp.places.is_empty()
            });
            let mut lamps: Vec<_> = lamps.map(|lamp| lamp.kind).collect();
            lamps.sort_unstable();
            lamps.dedup();
            return lamps;
        }
        let types = scene.receptacles.iter().map(|receptacle| receptacle.kind);
        let mut types: Vec<_> = types
            .filter(|kind| can_contain(kind, object) && family.tool() != Some(*kind))
            .collect();
        types.sort_unstable();
        types.dedup();
        if matches!(family, Family::PickAndPlace | Family::PickTwo) {
            // Their objects may not lie there from the start, so there must be another place.
            let elsewhere = |kind: &&str| {
                let others = || scene.receptacles.iter().filter(|other| other.kind != *kind);
                others().any(|other| can_contain(other.kind, object))
            };
            types.retain(elsewhere);
        }
        types
    }

    /// The demand in words, as the games put it.
    pub(crate) fn text(&self) -> String {
        let object = self.object.to_lowercase();
        let place = self.destination.to_lowercase();
        match (self.family, self.wording) {
            (Family::PickAndPlace, 0) => format!("put a {object} in {place}"),
            (Family::PickAndPlace, _) => format!("put some {object} on {place}"),
            (Family::LookInLight, 0) => format!("look at {object} under the {place}"),
            (Family::LookInLight, _) => format!("examine the {object} with the {place}"),
            (Family::CleanThenPlace, 0) => format!("put a clean {object} in {place}"),
            (Family::CleanThenPlace, _) => format!("clean some {object} and put it in {place}"),
            (Family::HeatThenPlace, 0) => format!("put a hot {object} in {place}"),
            (Family::HeatThenPlace, _) => format!("heat some {object} and put it in {place}"),
            (Family::CoolThenPlace, 0) => format!("put a cool {object} in {place}"),
            (Family::CoolThenPlace, _) => format!("cool some {object} and put it in {place}"),
            (Family::PickTwo, 0) => format!("put two {object} in {place}"),
            (Family::PickTwo, _) => format!("find two {object} and put them in {place}"),
        }
    }

    /// The demand in PDDL.
    pub(crate) fn formula(&self) -> Formula {
        let object = |variable| self.is_of_type("objectType", variable, &self.object);
        let place = || self.is_of_type("receptacleType", "?r", &self.destination);
        let treated = |ability: &str, state: &str| {
            placed(vec![
                Formula::atom(ability, &["?o"]),
                object("?o"),
                place(),
                Formula::atom(state, &["?o"]),
                Formula::atom("inReceptacle", &["?o", "?r"]),
            ])
        };
        let conjunction = match self.family {
            Family::PickAndPlace => {
                let inside = Formula::atom("inReceptacle", &["?o", "?r"]);
                vec![placed(vec![inside, object("?o"), place()])]
            }
            Family::LookInLight => self.lit(object("?o")),
            Family::CleanThenPlace => vec![treated("cleanable", "isClean")],
            Family::HeatThenPlace => vec![treated("heatable", "isHot")],
            Family::CoolThenPlace => vec![treated("coolable", "isCool")],
            Family::PickTwo => {
                let inside = |variable| Formula::atom("inReceptacle", &[variable, "?r"]);
                let same = Formula::Equal("?o1".to_owned(), "?o2".to_owned());
                let different = Formula::Not(Box::new(same));
                let second = vec![different, object("?o2"), place(), inside("?o2")];
                let second = Formula::exists(&[("?o2", "object")], Formula::And(second));
                let first = vec![object("?o1"), place(), inside("?o1"), second];
                let first = Formula::exists(&[("?o1", "object")], Formula::And(first));
                vec![Formula::exists(&[("?r", "receptacle")], first)]
            }
        };
        Formula::And(conjunction)
    }

    /// A lamp that was switched on stands where the agent is, who holds the object.
    fn lit(&self, is_object: Formula) -> Vec<Formula> {
        let variables =
            [("?ot", "object"), ("?r", "receptacle"), ("?a", "agent"), ("?l", "location")];
        let lamp = vec![
            self.is_of_type("objectType", "?ot", &self.destination),
            Formula::atom("toggleable", &["?ot"]),
            Formula::atom("isToggled", &["?ot"]),
            Formula::atom("receptacleAtLocation", &["?r", "?l"]),
            Formula::atom("atLocation", &["?a", "?l"]),
            Formula::atom("inReceptacle", &["?ot", "?r"]),
        ];
        let held = vec![is_object, Formula::atom("holds", &["?a", "?o"])];
        vec![
            Formula::exists(&variables, Formula::And(lamp)),
            Formula::exists(&[("?o", "object"), ("?a", "agent")], Formula::And(held)),
        ]
    }

    fn is_of_type(&self, predicate: &str, variable: &str, kind: &str) -> Formula {
        Formula::atom(predicate, &[variable, &format!("{kind}Type")])
    }
}

/// Some object and some receptacle satisfy all conditions.
fn placed(conditions: Vec<Formula>) -> Formula {
    let object = Formula::exists(&[("?o", "object")], Formula::And(conditions));
    Formula::exists(&[("?r", "receptacle")], object)
}
