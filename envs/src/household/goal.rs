//! What kind of task a goal is.

use std::fmt;

use super::pddl::Formula;

/// The six families of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TaskFamily {
    /// Put an object into a receptacle.
    PickAndPlaceSimple,
    /// Hold an object where a lamp is switched on.
    LookAtObjInLight,
    /// Clean an object, then put it into a receptacle.
    PickCleanThenPlaceInRecep,
    /// Heat an object, then put it into a receptacle.
    PickHeatThenPlaceInRecep,
    /// Cool an object, then put it into a receptacle.
    PickCoolThenPlaceInRecep,
    /// Put two objects of a type into the same receptacle.
    PickTwoObjAndPlace,
}

impl TaskFamily {
    /// All families.
    pub const ALL: [Self; 6] = [
        Self::PickAndPlaceSimple,
        Self::LookAtObjInLight,
        Self::PickCleanThenPlaceInRecep,
        Self::PickHeatThenPlaceInRecep,
        Self::PickCoolThenPlaceInRecep,
        Self::PickTwoObjAndPlace,
    ];

    /// The name that folders of games start with.
    pub fn name(self) -> &'static str {
        match self {
            Self::PickAndPlaceSimple => "pick_and_place_simple",
            Self::LookAtObjInLight => "look_at_obj_in_light",
            Self::PickCleanThenPlaceInRecep => "pick_clean_then_place_in_recep",
            Self::PickHeatThenPlaceInRecep => "pick_heat_then_place_in_recep",
            Self::PickCoolThenPlaceInRecep => "pick_cool_then_place_in_recep",
            Self::PickTwoObjAndPlace => "pick_two_obj_and_place",
        }
    }
}

impl fmt::Display for TaskFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A goal as a task: its family and the types of the things in it, all in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The family.
    pub family: TaskFamily,
    /// Type of the object that is handled.
    pub object_type: String,
    /// Type of the receptacle it goes into, or of the lamp.
    pub target_type: String,
}

impl Task {
    /// Reads a goal, in lower case; `None` if it belongs to none of the families.
    pub(crate) fn from_goal(goal: &Formula) -> Option<Self> {
        let mut atoms: Vec<(&str, Vec<String>)> = Vec::new();
        let mut negated_facts = false;
        inspect(
            goal,
            &mut |predicate, arguments| atoms.push((predicate, arguments.to_vec())),
            &mut negated_facts,
        );
        if negated_facts {
            return None;
        }
        let has = |name: &str| atoms.iter().any(|(predicate, _)| *predicate == name);
        let of_first = |name: &str, variable: &str| {
            atoms
                .iter()
                .find(|(predicate, arguments)| *predicate == name && arguments[0] == variable)
                .and_then(|(_, arguments)| arguments.get(1))
                .filter(|value| !value.starts_with('?'))
                .cloned()
        };
        let known = [
            "objecttype",
            "receptacletype",
            "inreceptacle",
            "cleanable",
            "isclean",
            "heatable",
            "ishot",
            "coolable",
            "iscool",
            "toggleable",
            "istoggled",
            "receptacleatlocation",
            "atlocation",
            "holds",
        ];
        if !atoms.iter().all(|(predicate, _)| known.contains(predicate)) {
            return None;
        }
        let placed: Vec<&Vec<String>> = atoms
            .iter()
            .filter(|(predicate, _)| *predicate == "inreceptacle")
            .map(|(_, arguments)| arguments)
            .collect();
        if has("istoggled") {
            let held = atoms.iter().find(|(predicate, _)| *predicate == "holds")?.1.get(1)?.clone();
            let lamp = atoms.iter().find(|(predicate, _)| *predicate == "istoggled")?.1[0].clone();
            return Some(Self {
                family: TaskFamily::LookAtObjInLight,
                object_type: of_first("objecttype", &held)?,
                target_type: of_first("objecttype", &lamp)?,
            });
        }
        let states = [has("isclean"), has("ishot"), has("iscool")];
        let family = match (placed.len(), states) {
            (1, [false, false, false]) => TaskFamily::PickAndPlaceSimple,
            (1, [true, false, false]) => TaskFamily::PickCleanThenPlaceInRecep,
            (1, [false, true, false]) => TaskFamily::PickHeatThenPlaceInRecep,
            (1, [false, false, true]) => TaskFamily::PickCoolThenPlaceInRecep,
            (2, [false, false, false]) => TaskFamily::PickTwoObjAndPlace,
            _ => return None,
        };
        if has("holds") || has("atlocation") {
            return None;
        }
        Some(Self {
            family,
            object_type: of_first("objecttype", &placed[0][0])?,
            target_type: of_first("receptacletype", &placed[0][1])?,
        })
    }
}

/// Visits the facts of conjunctions; notes anything else but inequality.
fn inspect<'a>(goal: &'a Formula, visit: &mut impl FnMut(&'a str, &'a [String]), other: &mut bool) {
    match goal {
        Formula::Atom { predicate, arguments } if !arguments.is_empty() => {
            visit(predicate, arguments)
        }
        Formula::And(parts) => parts.iter().for_each(|part| inspect(part, visit, other)),
        Formula::Exists { body, .. } => inspect(body, visit, other),
        Formula::Not(inner) if matches!(**inner, Formula::Equal(..)) => {}
        _ => *other = true,
    }
}
