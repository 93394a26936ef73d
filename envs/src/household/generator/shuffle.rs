//! A given game's room with its objects laid elsewhere and another goal.

use std::borrow::Cow;
use std::collections::HashMap;

use spar_core::Seed;

use super::NewGame;
use super::goal::Goal;
use super::object_types::Abilities;
use super::rooms::RoomKind;
use super::scene::{Object, Receptacle, Scene};
use crate::household::TaskFamily;
use crate::household::pddl::{Fact, Problem};

/// How often another goal is drawn when the game's own rules do not allow the last one.
const ATTEMPTS: u32 = 32;

/// Words before the demand in every grammar.
const TASK_MARK: &str = "Your task is to: ";

/// States of objects that end when they are laid elsewhere.
const STATES: [&str; 4] = ["isClean", "isHot", "isCool", "isSliced"];

/// Lays the objects of `problem`'s room elsewhere and draws another goal, of `family` or of any.
///
/// Receptacles, locations and the set of objects stay; so do objects that cannot be carried or
/// lie nowhere. `None` when the room allows no goal of the family. Equal seeds give equal games.
pub fn shuffle_problem<'a>(
    problem: &Problem<'a>,
    family: Option<TaskFamily>,
    seed: Seed,
) -> Option<NewGame<'a>> {
    let facts = RoomFacts::read(problem);
    for attempt in 0..ATTEMPTS {
        let mut rng = seed.derive("household shuffle", attempt).rng();
        let mut scene = facts.scene(problem);
        let goal = Goal::draw(&scene, family, &mut rng)?;
        if !facts.allows(problem, &goal) {
            continue;
        }
        scene.lay_out(Some(&goal), &mut rng);
        let problem = facts.rewrite(problem, &scene, &goal);
        return Some(NewGame { problem, task: goal.text(), family: goal.family });
    }
    None
}

/// `grammar` with another demand; the original where it speaks of no task.
pub fn grammar_with_task<'a>(grammar: &'a str, task: &str) -> Cow<'a, str> {
    let Some(start) = grammar.find(TASK_MARK).map(|start| start + TASK_MARK.len()) else {
        return Cow::Borrowed(grammar);
    };
    let Some(length) = grammar[start..].find(".\"") else { return Cow::Borrowed(grammar) };
    Cow::Owned(format!("{}{task}{}", &grammar[..start], &grammar[start + length..]))
}

/// Indices of a problem's receptacles and objects, in the order of its type facts.
struct RoomFacts<'p> {
    receptacles: Vec<&'p str>,
    objects: Vec<&'p str>,
    receptacle_index: HashMap<&'p str, usize>,
    object_index: HashMap<&'p str, usize>,
    locations: Vec<&'p str>,
}

impl<'p> RoomFacts<'p> {
    fn read(problem: &'p Problem<'_>) -> Self {
        let named = |predicate: &str| -> Vec<&'p str> {
            let facts = problem.init.iter().filter(|fact| is(fact, predicate));
            facts.filter_map(|fact| fact.arguments.first()).map(|name| &**name).collect()
        };
        let (receptacles, objects) = (named("receptacleType"), named("objectType"));
        let locations =
            problem.objects.iter().filter(|(_, kind)| kind == "location").map(|(name, _)| &**name);
        Self {
            receptacle_index: receptacles.iter().copied().zip(0..).collect(),
            object_index: objects.iter().copied().zip(0..).collect(),
            locations: locations.collect(),
            receptacles,
            objects,
        }
    }

    fn scene(&self, problem: &'p Problem<'_>) -> Scene<'p> {
        let mut receptacles =
            vec![Receptacle { kind: "", openable: false, location: 0 }; self.receptacles.len()];
        let object = Object {
            kind: "",
            abilities: Abilities::default(),
            places: Vec::new(),
            state: None,
            is_fixed: false,
        };
        let mut objects = vec![object; self.objects.len()];
        let location_index: HashMap<&str, usize> =
            self.locations.iter().copied().zip(0..).collect();
        for fact in &problem.init {
            let Some(first) = fact.arguments.first() else { continue };
            let second = fact.arguments.get(1).map(|name| &**name);
            let receptacle = self.receptacle_index.get(&**first).copied();
            let object = self.object_index.get(&**first).copied();
            match (&*fact.predicate, receptacle, object, second) {
                ("receptacleType", Some(index), _, Some(kind)) => {
                    receptacles[index].kind = bare(kind);
                }
                ("openable", Some(index), ..) => receptacles[index].openable = true,
                ("receptacleAtLocation", Some(index), _, Some(location)) => {
                    let location = location_index.get(location).copied();
                    receptacles[index].location = location.unwrap_or_default();
                }
                ("objectType", _, Some(index), Some(kind)) => objects[index].kind = bare(kind),
                ("inReceptacle", _, Some(index), Some(place)) => {
                    objects[index].places.extend(self.receptacle_index.get(place));
                }
                (predicate, _, Some(index), None) => {
                    let known = Abilities::PREDICATES.iter().find(|(_, name)| *name == predicate);
                    if let Some((ability, _)) = known {
                        objects[index].abilities = objects[index].abilities.with(*ability);
                    }
                }
                _ => {}
            }
        }
        for object in &mut objects {
            let carried = object.abilities.has(Abilities::PICKUPABLE);
            object.is_fixed = !carried || object.places.is_empty();
        }
        let room = RoomKind::from_receptacles(receptacles.iter().map(|other| other.kind));
        Scene { room, receptacles, objects }
    }

    /// Whether the game's own rules let the object lie in the goal's destination.
    fn allows(&self, problem: &Problem<'_>, goal: &Goal) -> bool {
        goal.family == TaskFamily::LookAtObjInLight
            || problem.init.iter().any(|fact| {
                let [receptacle, object] = &fact.arguments[..] else { return false };
                is(fact, "canContain")
                    && bare(receptacle) == goal.destination
                    && bare(object) == goal.object
            })
    }

    fn rewrite<'a>(&self, problem: &Problem<'a>, scene: &Scene<'_>, goal: &Goal) -> Problem<'a> {
        let is_moved = |name: &str| {
            let index = self.object_index.get(name);
            index.is_some_and(|index| !scene.objects[*index].is_fixed)
        };
        let is_stale = |fact: &Fact<'_>| {
            let places = ["inReceptacle", "objectAtLocation", "inReceptacleObject"];
            let about_place = places.contains(&&*fact.predicate);
            (about_place || STATES.contains(&&*fact.predicate))
                && fact.arguments.iter().any(|name| is_moved(name))
        };
        let mut init: Vec<Fact<'a>> =
            problem.init.iter().filter(|fact| !is_stale(fact)).cloned().collect();
        for (object, name) in scene.objects.iter().zip(&self.objects) {
            if object.is_fixed {
                continue;
            }
            for place in &object.places {
                let arguments = [(*name).to_owned(), self.receptacles[*place].to_owned()];
                init.push(Fact::new("inReceptacle", arguments));
            }
            if let Some(place) = object.places.first() {
                let location = self.locations.get(scene.receptacles[*place].location);
                let location = (*location.unwrap_or(&"")).to_owned();
                init.push(Fact::new("objectAtLocation", [(*name).to_owned(), location]));
            }
            if let Some(state) = object.state {
                init.push(Fact::new(state, [(*name).to_owned()]));
            }
        }
        let goal = goal.formula();
        let (name, domain) = (problem.name.clone(), problem.domain.clone());
        Problem { name, domain, objects: problem.objects.clone(), init, goal }
    }
}

fn is(fact: &Fact<'_>, predicate: &str) -> bool {
    fact.predicate == predicate
}

/// A type's name without the word `Type`.
fn bare(kind: &str) -> &str {
    kind.strip_suffix("Type").unwrap_or(kind)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::{GameOptions, RoomSize, SceneSet, generate};
    use super::*;

    fn room_facts(problem: &Problem<'_>) -> BTreeSet<String> {
        let kept =
            ["receptacleType", "receptacleAtLocation", "openable", "objectType", "canContain"];
        let facts = problem.init.iter().filter(|fact| kept.contains(&&*fact.predicate));
        facts.map(|fact| format!("{fact:?}")).collect()
    }

    proptest! {
        #[test]
        fn a_shuffle_keeps_the_room_and_its_objects(seed: u64, shuffle: u64) {
            let options =
                GameOptions { scenes: SceneSet::Train, size: RoomSize::Medium, family: None };
            let game = generate(&options, Seed::from_u64(seed)).unwrap();
            let shuffle = Seed::from_u64(shuffle);
            let shuffled = shuffle_problem(&game.problem, None, shuffle).unwrap();
            prop_assert_eq!(room_facts(&game.problem), room_facts(&shuffled.problem));
            prop_assert_eq!(&game.problem.objects, &shuffled.problem.objects);
            let again = shuffle_problem(&game.problem, None, shuffle).unwrap();
            prop_assert_eq!(shuffled, again);
        }
    }

    #[test]
    fn a_grammar_gets_another_task() {
        let grammar = r#""task": [{"rhs": "Your task is to: put a mug in desk."}], "x""#;
        let expected = r#""task": [{"rhs": "Your task is to: heat some egg."}], "x""#;
        assert_eq!(grammar_with_task(grammar, "heat some egg"), expected);
        assert_eq!(grammar_with_task("none", "heat some egg"), "none");
    }
}
