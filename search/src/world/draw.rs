//! Worlds from seeds.

use std::collections::HashSet;

use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use spar_core::Seed;

use super::names::{self, Names};
use super::relations::{Kind, Relation};
use super::{Object, Thing, World, WorldSpec};
use crate::Document;

/// How many things of each kind a world has.
const COUNTS: [(Kind, usize); 6] = [
    (Kind::Person, 56),
    (Kind::Town, 24),
    (Kind::Work, 36),
    (Kind::Company, 16),
    (Kind::Region, 6),
    (Kind::River, 10),
];
/// Documents that mention things and tell no fact of them.
const MENTIONS: usize = 32;
const YEARS: std::ops::Range<u32> = 1700..1980;

/// Draws a world.
pub(super) fn world(spec: &WorldSpec) -> World {
    let seed = Seed::from_u64(spec.seed).derive("search world", format!("{:?}", spec.names));
    let mut things = named_things(spec.names, seed);
    let mut rng = seed.derive("facts", 0).rng();
    for place in 0..things.len() {
        let relations = things[place].kind.relations();
        things[place].facts =
            relations.iter().map(|it| (*it, object(*it, place, &things, &mut rng))).collect();
    }
    let mut rng = seed.derive("documents", 0).rng();
    let mut documents: Vec<Document> =
        (0..things.len()).map(|place| document(place, &things, &mut rng)).collect();
    documents.extend((0..MENTIONS).map(|_| mention(&things, &mut rng)));
    documents.shuffle(&mut rng);
    for (place, document) in documents.iter_mut().enumerate() {
        document.id = format!("d{place}");
    }
    World { documents, things }
}

fn named_things(names: Names, seed: Seed) -> Vec<Thing> {
    let mut rng = seed.derive("names", 0).rng();
    let mut taken = HashSet::new();
    let mut things = Vec::new();
    for (kind, count) in COUNTS {
        for _ in 0..count {
            let mut draw = |first: &[&str], last: &[&str]| {
                names::draw(first, last, names, &mut taken, &mut rng)
            };
            let name = match kind {
                Kind::Person => draw(&names::FIRST, &names::LAST),
                Kind::Town => draw(&names::TOWN_FIRST, &names::TOWN_LAST),
                Kind::Work => draw(&names::WORK_FIRST, &names::WORK_LAST),
                Kind::Company => draw(&names::LAST, &names::TRADES),
                Kind::Region => draw(&names::REGION_FIRST, &names::REGION_LAST),
                Kind::River => draw(&names::RIVER_FIRST, &names::RIVER_LAST),
            };
            let alias = match kind {
                Kind::Person => {
                    let first = name.split(' ').next().expect("names have words");
                    names::draw_alias(
                        &format!("{first} "),
                        &names::EPITHETS,
                        names,
                        &mut taken,
                        &mut rng,
                    )
                }
                Kind::Work => names::draw_alias(
                    "The Book of the ",
                    &[name.split(' ').next_back().expect("names have words")],
                    names,
                    &mut taken,
                    &mut rng,
                ),
                _ => None,
            };
            things.push(Thing { kind, name, alias, facts: Vec::new() });
        }
    }
    things
}

fn object(relation: Relation, of: usize, things: &[Thing], rng: &mut impl RngExt) -> Object {
    let kind = match relation {
        Relation::Birthplace | Relation::Setting | Relation::Seat | Relation::Capital => Kind::Town,
        Relation::Employer => Kind::Company,
        Relation::Teacher | Relation::Mayor | Relation::Author | Relation::Founder => Kind::Person,
        Relation::TownRegion | Relation::Spring => Kind::Region,
        Relation::TownRiver => Kind::River,
        Relation::BirthYear | Relation::WorkYear => {
            return Object::Word(rng.random_range(YEARS).to_string());
        }
        Relation::Profession
        | Relation::Craft
        | Relation::Product
        | Relation::Crop
        | Relation::Fish => {
            let word = relation.objects().choose(rng).expect("there are some");
            return Object::Word((*word).to_owned());
        }
    };
    let of_kind: Vec<usize> =
        (0..things.len()).filter(|place| things[*place].kind == kind && *place != of).collect();
    Object::Thing(*of_kind.choose(rng).expect("there are several of every kind"))
}

/// What can be read of a thing: all its facts, each in one of its sentences.
fn document(place: usize, things: &[Thing], rng: &mut impl RngExt) -> Document {
    let thing = &things[place];
    let mut sentences = Vec::new();
    if let Some(alias) = &thing.alias {
        let called = ["{x} is also called {o}.", "{o} is another name of {x}."];
        let told = called.choose(rng).expect("there are two");
        sentences.push(fill(told, &thing.name, alias));
    }
    for (relation, object) in &thing.facts {
        let object = match object {
            Object::Word(word) => word,
            Object::Thing(place) => &things[*place].name,
        };
        let words = relation.words();
        let told = words.told.choose(rng).expect("there are two");
        sentences.push(fill(told, &thing.name, object));
    }
    Document { id: String::new(), title: thing.name.clone(), text: sentences.join(" ") }
}

/// A document that tells that things had to do with each other, and no fact of theirs.
fn mention(things: &[Thing], rng: &mut impl RngExt) -> Document {
    let year = rng.random_range(YEARS);
    let mut one_of = |kind: Kind| {
        let of_kind: Vec<&Thing> = things.iter().filter(|it| it.kind == kind).collect();
        of_kind.choose(rng).expect("there are several of every kind").name.clone()
    };
    let (guest, other, town) = (one_of(Kind::Person), one_of(Kind::Person), one_of(Kind::Town));
    let (work, company) = (one_of(Kind::Work), one_of(Kind::Company));
    let text = [
        format!("{guest} and {other} came to the fair, where {work} was read aloud."),
        format!("A speech of {guest} was heard, and {company} gave the wine."),
        format!("{other} spoke of {work}, and {guest} of {company}."),
    ];
    let text = text.choose(rng).expect("there are three").clone();
    Document { id: String::new(), title: format!("Fair of {town} in {year}"), text }
}

/// A sentence with its thing and what is told of it.
pub(super) fn fill(words: &str, thing: &str, object: &str) -> String {
    let filled = words.replace("{x}", thing).replace("{o}", object);
    let mut chars = filled.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => filled,
    }
}
