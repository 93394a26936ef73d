//! Alice in Wonderland: questions about who somebody's brother has.

use crate::prelude::*;

const MALE: [&str; 11] = [
    "James", "John", "Robert", "Michael", "William", "David", "Richard", "Joseph", "Thomas",
    "Charles", "Bob",
];
const FEMALE: [&str; 11] = [
    "Mary",
    "Patricia",
    "Jennifer",
    "Linda",
    "Elizabeth",
    "Barbara",
    "Susan",
    "Jessica",
    "Sarah",
    "Margaret",
    "Alice",
];
const KINDS: [&str; 3] = ["siblings", "friends", "colleagues"];

options! {
    /// Options of `aiw`.
    AiwOptions {
        /// Names of men, at least one. Default the package's eleven.
        male_names: Vec<String> = texts(&MALE),
        /// Names of women, `Alice` among them. Default the package's eleven.
        female_names: Vec<String> = texts(&FEMALE),
        /// Kinds of questions: `siblings`, `friends`, `colleagues`. Default all.
        task_types: Vec<String> = texts(&KINDS),
        /// How often each kind is drawn; together 1. Default a third each.
        task_type_weights: Vec<f64> = vec![1.0 / 3.0; 3],
        /// Most people of each group, 1 to a million. Default 6.
        max_entities: i64 = 6,
    }
    |given, problems| {
        problems.require(!given.male_names.is_empty(), || "male_names is empty, must have at least one name".to_owned());
        problems.require(given.female_names.iter().any(|name| name == "Alice"), || {
            "female_names has no `Alice`, must have her".to_owned()
        });
        problems.subset("task_types", &given.task_types, &KINDS);
        problems.weights("task_type_weights", &given.task_type_weights, given.task_types.len());
        problems.between("max_entities", given.max_entities, 1, 1_000_000);
    }
}

/// A question about siblings, friends or colleagues that is easily got wrong.
pub(crate) struct Aiw;

impl Generator for Aiw {
    type Options = AiwOptions;

    fn item(options: &AiwOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let kind =
            rng.weighted_choices(&options.task_types, &options.task_type_weights, 1)?[0].as_str();
        let she = rng.choice(&options.female_names)?.clone();
        let he = rng.choice(&options.male_names)?.clone();
        let count = |rng: &mut Random| rng.int(1, options.max_entities);
        let (men, women) = (count(rng)?, count(rng)?);
        let question = match kind {
            "siblings" => match rng.below(2) {
                0 => format!(
                    "{she} has {men} brothers and she also has {women} sisters. How many sisters does {she}'s brother have?"
                ),
                _ => format!(
                    "{she} has {women} sisters and she also has {men} brothers. How many sisters does {he}'s brother have?"
                ),
            },
            "friends" => {
                rng.below(1);
                format!(
                    "{she} has {men} male friends and she also has {women} female friends. They all are friends with each other and have no other friends aside. How many female friends does {he}, a male friend of {she}, have?"
                )
            }
            _ => {
                let (his_men, his_women) = (count(rng)?, count(rng)?);
                rng.below(1);
                format!(
                    "{she} has {men} male colleagues and she also has {women} female colleagues. These are all colleagues that {she} has. All these mentioned persons around {she} are colleagues of each other. {he} has {his_men} male colleagues and {his_women} female colleagues in total. All these mentioned persons around {he} are colleagues of each other. The people in the circle around {he} do not have other colleagues aside - with the only exception of Matilda. She is colleague of {he} and she is also colleague of {she}, being part of {she}'s circle. How many female colleagues does Matilda have?"
                )
            }
        };
        Ok(Item::new(question, women + 1).with("task_type", kind))
    }
}
