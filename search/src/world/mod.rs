//! Invented worlds: facts about people, towns, works, companies, regions and rivers that are nowhere, and questions whose
//! answers are one to four facts away.
//!
//! ```text
//!  WorldSpec (seed, names) ──▶ World ──▶ documents, one on each thing, and some that only mention things
//!                                └─question(seed, hops)─▶ WorldQuestion { text, answers, chain of Hops }
//! ```

mod draw;
mod names;
mod question;
mod relations;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

pub use names::Names;
pub use question::{Hop, MAX_HOPS, QuestionSpec, WorldQuestion};

use crate::Document;
use relations::{Kind, Relation};

/// Which world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldSpec {
    /// Where its facts begin.
    pub seed: u64,
    /// The names that its things may have; those of different kinds have none in common.
    pub names: Names,
}

/// An invented world.
#[derive(Debug)]
pub struct World {
    /// What can be read of it, in no order that means anything.
    pub documents: Vec<Document>,
    things: Vec<Thing>,
}

/// Something that has a name and facts.
#[derive(Debug)]
struct Thing {
    kind: Kind,
    name: String,
    /// What it is called beside that, which its document tells.
    alias: Option<String>,
    facts: Vec<(Relation, Object)>,
}

/// What a fact tells.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Object {
    /// The thing at this place.
    Thing(usize),
    /// A word or a year.
    Word(String),
}

/// The most worlds that are kept.
const MAX_KEPT: usize = 96;

impl World {
    /// Makes a world; equal specs make equal worlds.
    pub fn new(spec: &WorldSpec) -> Self {
        draw::world(spec)
    }

    /// The world of a spec, made once for all who ask; of many, those that were made first are let go.
    pub fn shared(spec: &WorldSpec) -> Arc<Self> {
        type Kept = (HashMap<WorldSpec, Arc<World>>, std::collections::VecDeque<WorldSpec>);
        static KEPT: OnceLock<Mutex<Kept>> = OnceLock::new();
        let kept = KEPT.get_or_init(Mutex::default);
        if let Some(world) = kept.lock().unwrap_or_else(PoisonError::into_inner).0.get(spec) {
            return Arc::clone(world);
        }
        let world = Arc::new(Self::new(spec));
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (worlds, order) = &mut *kept;
        if worlds.insert(*spec, Arc::clone(&world)).is_none() {
            order.push_back(*spec);
        }
        if order.len() > MAX_KEPT
            && let Some(first) = order.pop_front()
        {
            worlds.remove(&first);
        }
        world
    }

    /// What an object is called, and what else it may be called.
    fn answers(&self, object: &Object) -> Vec<String> {
        match object {
            Object::Word(word) => vec![word.clone()],
            Object::Thing(place) => {
                let thing = &self.things[*place];
                std::iter::once(&thing.name).chain(&thing.alias).cloned().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::SearchIndex;

    fn spec(seed: u64, names: Names) -> WorldSpec {
        WorldSpec { seed, names }
    }

    #[test]
    fn equal_specs_make_equal_worlds_and_others_others() {
        let one = World::new(&spec(1, Names::Train));
        assert_eq!(one.documents, World::new(&spec(1, Names::Train)).documents);
        assert_eq!(one.documents, World::shared(&spec(1, Names::Train)).documents);
        assert_ne!(one.documents, World::new(&spec(2, Names::Train)).documents);
        assert!((150..400).contains(&one.documents.len()), "{}", one.documents.len());
    }

    #[test]
    fn things_of_different_splits_have_no_name_in_common() {
        let names = |names| -> HashSet<String> {
            let worlds = (0..6).map(|seed| World::new(&spec(seed, names)));
            let of_world = |world: World| {
                world.things.into_iter().flat_map(|it| std::iter::once(it.name).chain(it.alias))
            };
            worlds.flat_map(of_world).collect()
        };
        let [train, dev, test] = [Names::Train, Names::Dev, Names::Test].map(names);
        assert!(train.is_disjoint(&dev) && train.is_disjoint(&test) && dev.is_disjoint(&test));
        // The words of which they are made are the same.
        let words = |names: &HashSet<String>| -> HashSet<String> {
            names.iter().flat_map(|name| name.split(' ')).map(str::to_owned).collect()
        };
        let (train, dev) = (words(&train), words(&dev));
        let known = dev.iter().filter(|word| train.contains(*word)).count();
        assert!(known as f64 > 0.95 * dev.len() as f64, "{known} of {}", dev.len());
    }

    #[test]
    fn names_tell_things_apart() {
        for seed in 0..8 {
            let world = World::new(&spec(seed, Names::Dev));
            let mut names = HashSet::new();
            for thing in &world.things {
                for name in std::iter::once(&thing.name).chain(&thing.alias) {
                    assert!(names.insert(name.clone()), "{name} is two things");
                }
            }
        }
    }

    /// What makes the oracle's way a way: each search finds the document that tells what the next one needs.
    #[test]
    fn every_hop_is_found_by_its_query_and_told_by_its_document() {
        let (mut hops, mut first) = (0, 0);
        for seed in 0..6 {
            let spec = spec(seed, Names::Train);
            let world = World::new(&spec);
            let index = SearchIndex::in_memory(world.documents.clone()).unwrap();
            for number in 0..60 {
                let wanted = 1 + number as usize % MAX_HOPS;
                let question =
                    world.question(&QuestionSpec { seed: number, hops: wanted, aliases: true });
                assert_eq!(question.chain.len(), wanted);
                let mut known = question.text.clone();
                for hop in &question.chain {
                    assert!(
                        known.contains(&hop.query),
                        "{} is not known from {known:?}",
                        hop.query
                    );
                    let found = index.search(&hop.query, 3).unwrap();
                    let place = found.iter().position(|hit| hit.document.title == hop.title);
                    assert!(place.is_some(), "{:?} in {:#?}", hop, found);
                    hops += 1;
                    first += usize::from(place == Some(0));
                    let told = &found[place.unwrap()].document.text;
                    assert!(told.contains(&hop.finds), "{hop:?} in {told}");
                    known = told.clone();
                }
                let last = question.chain.last().unwrap();
                assert!(question.answers.contains(&last.finds));
                for answer in &question.answers {
                    assert!(
                        !question.text.contains(answer.as_str()),
                        "{question:?} tells its answer"
                    );
                }
            }
        }
        assert!(first as f64 > 0.8 * hops as f64, "{first} of {hops} come first");
    }

    #[test]
    fn questions_repeat_and_differ() {
        let world = World::new(&spec(3, Names::Test));
        let ask = |seed, hops| world.question(&QuestionSpec { seed, hops, aliases: false });
        assert_eq!(ask(1, 2), ask(1, 2));
        let texts: HashSet<String> = (0..100).map(|seed| ask(seed, 1).text).collect();
        assert!(texts.len() > 60, "{}", texts.len());
    }
}
