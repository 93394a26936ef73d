//! A furnished room as a planning problem.

use std::borrow::Cow;

use super::goal::Goal;
use super::object_types::{Abilities, contents};
use super::scene::Scene;
use crate::household::pddl::{Fact, Problem};

const AGENT: &str = "agent1";
const START: &str = "loc_bar_start";

/// Types that the domain's actions name, so that every problem has to declare them.
const NAMED_OBJECT_TYPES: [&str; 2] = ["ButterKnife", "Knife"];
const NAMED_RECEPTACLE_TYPES: [&str; 3] = ["Fridge", "Microwave", "SinkBasin"];

/// The problem of reaching `goal` in `scene`.
pub(super) fn write_problem<'a>(name: String, scene: &Scene<'_>, goal: &Goal) -> Problem<'a> {
    let receptacles = names(scene.receptacles.iter().map(|receptacle| receptacle.kind));
    let objects = names(scene.objects.iter().map(|object| object.kind));
    let locations = scene.receptacles.iter().map(|receptacle| receptacle.location);
    let num_locations = locations.max().map_or(0, |last| last + 1);
    let object_types = types(scene.objects.iter().map(|object| object.kind), &NAMED_OBJECT_TYPES);
    let receptacle_types =
        types(scene.receptacles.iter().map(|other| other.kind), &NAMED_RECEPTACLE_TYPES);

    let mut writer = Writer::default();
    writer.declare(AGENT.to_owned(), "agent");
    for kind in &object_types {
        writer.declare(format!("{kind}Type"), "otype");
    }
    for kind in &receptacle_types {
        writer.declare(format!("{kind}Type"), "rtype");
    }
    for object in &objects {
        writer.declare(object.clone(), "object");
    }
    for receptacle in &receptacles {
        writer.declare(receptacle.clone(), "receptacle");
    }
    writer.declare(START.to_owned(), "location");
    for location in 0..num_locations {
        writer.declare(location_name(location), "location");
    }

    writer.fact("atLocation", [AGENT.to_owned(), START.to_owned()]);
    for (receptacle, name) in scene.receptacles.iter().zip(&receptacles) {
        writer.fact("receptacleType", [name.clone(), format!("{}Type", receptacle.kind)]);
        writer.fact("receptacleAtLocation", [name.clone(), location_name(receptacle.location)]);
        if receptacle.openable {
            writer.fact("openable", [name.clone()]);
        }
    }
    for kind in types(scene.receptacles.iter().map(|other| other.kind), &[]) {
        for object in
            contents(kind).iter().filter(|object| object_types.binary_search(object).is_ok())
        {
            writer.fact("canContain", [format!("{kind}Type"), format!("{object}Type")]);
        }
    }
    for (object, name) in scene.objects.iter().zip(&objects) {
        writer.fact("objectType", [name.clone(), format!("{}Type", object.kind)]);
        for (ability, predicate) in Abilities::PREDICATES {
            if object.abilities.has(ability) {
                writer.fact(predicate, [name.clone()]);
            }
        }
        if let Some(state) = object.state {
            writer.fact(state, [name.clone()]);
        }
        for place in &object.places {
            writer.fact("inReceptacle", [name.clone(), receptacles[*place].clone()]);
        }
        if let Some(place) = object.places.first() {
            let location = location_name(scene.receptacles[*place].location);
            writer.fact("objectAtLocation", [name.clone(), location]);
        }
    }
    Problem {
        name: Cow::Owned(name),
        domain: Cow::Borrowed("alfred"),
        objects: writer.objects,
        init: writer.facts,
        goal: goal.formula(),
    }
}

#[derive(Default)]
struct Writer<'a> {
    objects: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    facts: Vec<Fact<'a>>,
}

impl Writer<'_> {
    fn declare(&mut self, name: String, kind: &'static str) {
        self.objects.push((Cow::Owned(name), Cow::Borrowed(kind)));
    }

    fn fact<const N: usize>(&mut self, predicate: &'static str, arguments: [String; N]) {
        self.facts.push(Fact::new(predicate, arguments));
    }
}

/// Names of things of these types, numbered within each type.
fn names<'a>(kinds: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    let mut names = Vec::new();
    for kind in kinds {
        let number = match counts.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                counts.push((kind, 1));
                1
            }
        };
        names.push(match kind.strip_suffix("Basin") {
            // The format's way to say that the basin is part of a larger thing.
            Some(whole) => format!("{whole}_bar_{number:02}_bar_{kind}"),
            None => format!("{kind}_bar_{number:02}"),
        });
    }
    names
}

fn types<'a>(kinds: impl Iterator<Item = &'a str>, always: &[&'static str]) -> Vec<&'a str> {
    let mut types: Vec<&str> = kinds.chain(always.iter().copied()).collect();
    types.sort_unstable();
    types.dedup();
    types
}

fn location_name(location: usize) -> String {
    format!("loc_bar_{location:02}")
}
