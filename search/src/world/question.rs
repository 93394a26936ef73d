//! Questions about a world.

use rand::RngExt;
use rand::seq::IndexedRandom;
use spar_core::Seed;

use super::draw::fill;
use super::{Object, Relation, World};

/// The most facts that a question is away from its answer.
pub const MAX_HOPS: usize = 4;
/// How often a way that leads nowhere is given up for another. Every thing has facts, so that few do.
const MAX_TRIES: usize = 1000;
/// One question in so many calls its thing by its other name, where it may.
const ALIAS_IN: u32 = 3;

/// Which question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionSpec {
    /// Where its random choices begin.
    pub seed: u64,
    /// How many facts it takes, 1 to [`MAX_HOPS`].
    pub hops: usize,
    /// Whether the thing that it begins with may be called by its other name.
    pub aliases: bool,
}

/// A question with what is right, and the way there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldQuestion {
    /// The question.
    pub text: String,
    /// What may be answered.
    pub answers: Vec<String>,
    /// The facts that one needs, in their order.
    pub chain: Vec<Hop>,
}

/// A fact on the way to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// What to search for: a name that is known by then.
    pub query: String,
    /// The title of the document that tells the fact.
    pub title: String,
    /// What the fact tells.
    pub finds: String,
}

impl World {
    /// The question of a spec; equal specs give equal questions.
    ///
    /// # Panics
    ///
    /// When `hops` is not 1 to [`MAX_HOPS`].
    pub fn question(&self, spec: &QuestionSpec) -> WorldQuestion {
        assert!(
            (1..=MAX_HOPS).contains(&spec.hops),
            "{} hops, allowed are 1 to {MAX_HOPS}",
            spec.hops
        );
        let seed = Seed::from_u64(spec.seed).derive("search question", spec.hops);
        let mut rng = seed.rng();
        let way = (0..MAX_TRIES)
            .find_map(|_| self.way(spec.hops, &mut rng))
            .expect("most ways lead somewhere");
        let start = &self.things[way.start];
        let is_alias = spec.aliases && rng.random_ratio(1, ALIAS_IN);
        let called = start.alias.as_ref().filter(|_| is_alias).unwrap_or(&start.name);
        let mut phrase = called.clone();
        let mut chain = Vec::new();
        let (mut thing, mut query) = (start, called.clone());
        for (step, (relation, object)) in way.steps.iter().enumerate() {
            let finds = self.answers(object).swap_remove(0);
            chain.push(Hop { query, title: thing.name.clone(), finds: finds.clone() });
            let words = relation.words();
            let is_last = step + 1 == way.steps.len();
            phrase = match (is_last, words.within, object) {
                (false, Some(within), Object::Thing(place)) => {
                    thing = &self.things[*place];
                    within.replace("{x}", &phrase)
                }
                _ => fill(words.asked, &phrase, ""),
            };
            query = finds;
        }
        let (_, last) = way.steps.last().expect("there is at least one");
        WorldQuestion { text: phrase, answers: self.answers(last), chain }
    }

    /// A way of so many facts from some thing, through things that are all different; absent where it came to an end
    /// before.
    fn way(&self, hops: usize, rng: &mut impl RngExt) -> Option<Way> {
        let start = rng.random_range(0..self.things.len());
        let (mut seen, mut steps) = (vec![start], Vec::new());
        for left in (0..hops).rev() {
            let at = seen.last().expect("it starts somewhere");
            let goes_on = |(_, object): &&(Relation, Object)| match object {
                Object::Thing(place) => !seen.contains(place),
                Object::Word(_) => left == 0,
            };
            let facts: Vec<&(Relation, Object)> =
                self.things[*at].facts.iter().filter(goes_on).collect();
            let (relation, object) = *facts.choose(rng)?;
            steps.push((*relation, object.clone()));
            if let Object::Thing(place) = object {
                seen.push(*place);
            }
        }
        Some(Way { start, steps })
    }
}

/// A way through a world.
struct Way {
    start: usize,
    steps: Vec<(Relation, Object)>,
}
