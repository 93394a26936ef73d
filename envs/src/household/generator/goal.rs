//! Goals of the six families: which ones a scene allows, their words, and their PDDL.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::object_types::{Abilities, can_contain};
use super::scene::Scene;
use crate::household::TaskFamily;
use crate::household::pddl::Formula;

/// How often ALFWorld's training games are of a family, of 3,553.
pub(super) fn weight(family: TaskFamily) -> u32 {
    match family {
        TaskFamily::PickAndPlaceSimple => 790,
        TaskFamily::LookAtObjInLight => 308,
        TaskFamily::PickCleanThenPlaceInRecep => 650,
        TaskFamily::PickHeatThenPlaceInRecep => 459,
        TaskFamily::PickCoolThenPlaceInRecep => 533,
        TaskFamily::PickTwoObjAndPlace => 813,
    }
}

/// The receptacle type that the work of a family is done with, and what it needs of the object.
fn work(family: TaskFamily) -> Option<(&'static str, Abilities)> {
    match family {
        TaskFamily::PickAndPlaceSimple
        | TaskFamily::LookAtObjInLight
        | TaskFamily::PickTwoObjAndPlace => None,
        TaskFamily::PickCleanThenPlaceInRecep => Some(("SinkBasin", Abilities::CLEANABLE)),
        TaskFamily::PickHeatThenPlaceInRecep => Some(("Microwave", Abilities::HEATABLE)),
        TaskFamily::PickCoolThenPlaceInRecep => Some(("Fridge", Abilities::COOLABLE)),
    }
}

/// What a game demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Goal {
    pub(crate) family: TaskFamily,
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
        family: Option<TaskFamily>,
        rng: &mut impl Rng,
    ) -> Option<Self> {
        let mut families: Vec<TaskFamily> = match family {
            Some(family) => vec![family],
            None => TaskFamily::ALL.to_vec(),
        };
        while !families.is_empty() {
            let family = *families.choose_weighted(rng, |family| weight(*family)).ok()?;
            if let Some(goal) = Self::draw_in_family(scene, family, rng) {
                return Some(goal);
            }
            families.retain(|other| *other != family);
        }
        None
    }

    fn draw_in_family(scene: &Scene<'_>, family: TaskFamily, rng: &mut impl Rng) -> Option<Self> {
        let mut ability = Abilities::PICKUPABLE;
        if let Some((tool, special)) = work(family) {
            if !scene.has_receptacle(tool) {
                return None;
            }
            ability = ability.with(special);
        }
        // Objects first and then their destinations, so that a type that fits everywhere is not
        // asked for more often than one that fits in one place.
        let mut objects: Vec<&str> = Vec::new();
        for (index, object) in scene.objects.iter().enumerate() {
            let fits = object.abilities.has(ability) && !object.places.is_empty();
            let first = scene.objects[..index].iter().all(|other| other.kind != object.kind);
            let enough =
                family != TaskFamily::PickTwoObjAndPlace || scene.num_objects(object.kind) >= 2;
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

    fn destinations<'a>(scene: &Scene<'a>, family: TaskFamily, object: &str) -> Vec<&'a str> {
        if family == TaskFamily::LookAtObjInLight {
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
            .filter(|kind| {
                can_contain(kind, object) && work(family).is_none_or(|(tool, _)| tool != *kind)
            })
            .collect();
        types.sort_unstable();
        types.dedup();
        if matches!(family, TaskFamily::PickAndPlaceSimple | TaskFamily::PickTwoObjAndPlace) {
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
            (TaskFamily::PickAndPlaceSimple, 0) => format!("put a {object} in {place}"),
            (TaskFamily::PickAndPlaceSimple, _) => format!("put some {object} on {place}"),
            (TaskFamily::LookAtObjInLight, 0) => format!("look at {object} under the {place}"),
            (TaskFamily::LookAtObjInLight, _) => format!("examine the {object} with the {place}"),
            (TaskFamily::PickCleanThenPlaceInRecep, 0) => {
                format!("put a clean {object} in {place}")
            }
            (TaskFamily::PickCleanThenPlaceInRecep, _) => {
                format!("clean some {object} and put it in {place}")
            }
            (TaskFamily::PickHeatThenPlaceInRecep, 0) => format!("put a hot {object} in {place}"),
            (TaskFamily::PickHeatThenPlaceInRecep, _) => {
                format!("heat some {object} and put it in {place}")
            }
            (TaskFamily::PickCoolThenPlaceInRecep, 0) => format!("put a cool {object} in {place}"),
            (TaskFamily::PickCoolThenPlaceInRecep, _) => {
                format!("cool some {object} and put it in {place}")
            }
            (TaskFamily::PickTwoObjAndPlace, 0) => format!("put two {object} in {place}"),
            (TaskFamily::PickTwoObjAndPlace, _) => {
                format!("find two {object} and put them in {place}")
            }
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
            TaskFamily::PickAndPlaceSimple => {
                let inside = Formula::atom("inReceptacle", &["?o", "?r"]);
                vec![placed(vec![inside, object("?o"), place()])]
            }
            TaskFamily::LookAtObjInLight => self.lit(object("?o")),
            TaskFamily::PickCleanThenPlaceInRecep => vec![treated("cleanable", "isClean")],
            TaskFamily::PickHeatThenPlaceInRecep => vec![treated("heatable", "isHot")],
            TaskFamily::PickCoolThenPlaceInRecep => vec![treated("coolable", "isCool")],
            TaskFamily::PickTwoObjAndPlace => {
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
