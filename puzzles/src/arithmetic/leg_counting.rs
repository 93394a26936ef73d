//! Legs of animals.

use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::text::joined;
use crate::{Item, ItemError};

/// Animals with their legs, in the package's order.
const ANIMALS: [(&str, i64); 37] = [
    ("snake", 0),
    ("sea slug", 0),
    ("jellyfish", 0),
    ("flatworm", 0),
    ("leech", 0),
    ("chicken", 2),
    ("bird", 2),
    ("human", 2),
    ("duck", 2),
    ("dog", 4),
    ("cat", 4),
    ("cow", 4),
    ("horse", 4),
    ("lion", 4),
    ("elephant", 4),
    ("giraffe", 4),
    ("tiger", 4),
    ("deer", 4),
    ("sheep", 4),
    ("starfish", 5),
    ("insect", 6),
    ("ant", 6),
    ("butterfly", 6),
    ("beetle", 6),
    ("bee", 6),
    ("wasp", 6),
    ("grasshopper", 6),
    ("cricket", 6),
    ("cockroach", 6),
    ("praying mantis", 6),
    ("firefly", 6),
    ("spider", 8),
    ("scorpion", 8),
    ("crab", 10),
    ("lobster", 10),
    ("shrimp", 10),
    ("woodlouse", 14),
];

options! {
    /// Options of `leg_counting`.
    LegCountingOptions {
        /// Fewest kinds of animals, at least 1. Default 3.
        min_animals: i64 = 3,
        /// Most kinds of animals, up to 37. Default 10.
        max_animals: i64 = 10,
        /// Fewest animals of a kind, at least 1. Default 1.
        min_instances: i64 = 1,
        /// Most animals of a kind, up to a million. Default 15.
        max_instances: i64 = 15,
    }
    |given, problems| {
        let most = ANIMALS.len() as i64;
        problems.span(("min_animals", "max_animals"), (given.min_animals, given.max_animals), (1, most));
        problems.span(("min_instances", "max_instances"), (given.min_instances, given.max_instances), (1, 1_000_000));
    }
}

/// A list of animals, whose legs are counted.
pub(crate) struct LegCounting;

impl Generator for LegCounting {
    type Options = LegCountingOptions;

    fn item(options: &LegCountingOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let kinds = rng.int(options.min_animals, options.max_animals)?;
        let mut legs = 0;
        let mut told = Vec::with_capacity(kinds as usize);
        for (animal, each) in rng.sample(&ANIMALS, kinds as usize)? {
            let count = rng.int(options.min_instances, options.max_instances)?;
            legs += count * each;
            told.push(format!("{count} {animal}{}", if count > 1 { "s" } else { "" }));
        }
        let question = format!(
            "Your task is to count how many legs there are in total when given a list of animals.\n\nNow, how many legs are there in total if you have {}?\n",
            joined(told, ", ")
        );
        Ok(Item::new(question, legs).with("total_legs", legs))
    }
}
