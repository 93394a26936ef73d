//! Syllogisms.

use crate::prelude::*;

const TERMS: [&str; 36] = [
    "mortals",
    "humans",
    "children",
    "adults",
    "parents",
    "grandparents",
    "philosophers",
    "students",
    "teachers",
    "doctors",
    "scientists",
    "artists",
    "musicians",
    "writers",
    "programmers",
    "engineers",
    "lawyers",
    "chefs",
    "animals",
    "mammals",
    "dogs",
    "cats",
    "birds",
    "fish",
    "reptiles",
    "insects",
    "butterflies",
    "bees",
    "ants",
    "spiders",
    "horses",
    "elephants",
    "lions",
    "tigers",
    "whales",
    "dolphins",
];

options! {
    /// Options of `syllogism`.
    SyllogismOptions {
        /// Whether statements can begin with `All`. Default true.
        allow_all: bool = true,
        /// Whether statements can begin with `No`. Default true.
        allow_no: bool = true,
        /// Whether statements can begin with `Some`. Default true.
        allow_some: bool = true,
        /// Whether there can be statements that some are not. Default true.
        allow_some_not: bool = true,
        /// How often a conclusion is meant not to follow, 0 to 1. Default 0.3.
        invalid_ratio: f64 = 0.3,
        /// How often the conclusion inverts one statement, 0 to 1. Default 0.3.
        inversion_probability: f64 = 0.3,
    }
    |given, problems| {
        problems.require(given.allow_all || given.allow_no || given.allow_some || given.allow_some_not, || {
            "one of allow_all, allow_no, allow_some and allow_some_not must be true".to_owned()
        });
        problems.between("invalid_ratio", given.invalid_ratio, 0.0, 1.0);
        problems.between("inversion_probability", given.inversion_probability, 0.0, 1.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    All,
    No,
    Some,
    SomeNot,
}

impl Quantifier {
    fn is_negative(self) -> bool {
        matches!(self, Self::No | Self::SomeNot)
    }

    fn is_particular(self) -> bool {
        matches!(self, Self::Some | Self::SomeNot)
    }

    /// Whether subject and predicate are distributed.
    fn distributes(self) -> (bool, bool) {
        (!self.is_particular(), self.is_negative())
    }
}

/// A quantifier, the place of the subject and that of the predicate.
type Statement = (Quantifier, usize, usize);

/// Two statements and a third; whether it follows is asked, by the package's rules.
pub(crate) struct Syllogism;

impl Generator for Syllogism {
    type Options = SyllogismOptions;

    fn item(options: &SyllogismOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let terms = rng.sample(&TERMS, 3)?;
        let allowed = [
            (options.allow_all, Quantifier::All),
            (options.allow_no, Quantifier::No),
            (options.allow_some, Quantifier::Some),
            (options.allow_some_not, Quantifier::SomeNot),
        ];
        let quantifiers: Vec<Quantifier> =
            allowed.into_iter().filter(|(is_allowed, _)| *is_allowed).map(|(_, one)| one).collect();
        let (premises, conclusion, is_valid) = match rng.random() < options.inversion_probability {
            true => inversion(options, rng, &quantifiers)?,
            false => syllogism(options, rng, &quantifiers)?,
        };
        let told = |(quantifier, subject, predicate): Statement| {
            let (subject, predicate) = (terms[subject], terms[predicate]);
            match quantifier {
                Quantifier::All => format!("All {subject} are {predicate}"),
                Quantifier::No => format!("No {subject} are {predicate}"),
                Quantifier::Some => format!("Some {subject} are {predicate}"),
                Quantifier::SomeNot => format!("Some {subject} are not {predicate}"),
            }
        };
        let question = format!(
            "Consider these statements:\n1. {}\n2. {}\n\nDoes it logically follow that:\n{}?\n(Answer Yes or No)",
            told(premises[0]),
            told(premises[1]),
            told(conclusion)
        );
        Ok(Item::new(question, if is_valid { "Yes" } else { "No" }).with("is_valid", is_valid))
    }
}

type Drawn = ([Statement; 2], Statement, bool);

fn inversion(
    o: &SyllogismOptions,
    rng: &mut Random,
    quantifiers: &[Quantifier],
) -> Result<Drawn, ItemError> {
    let mut premises = [(*rng.choice(quantifiers)?, 0, 1), (Quantifier::All, 1, 2)];
    premises[1].0 = *rng.choice(quantifiers)?;
    let chosen = usize::from(rng.random() >= 0.5);
    let is_meant = rng.random() > o.invalid_ratio;
    let others: Vec<Quantifier> =
        quantifiers.iter().copied().filter(|one| *one != Quantifier::SomeNot).collect();
    if is_meant && premises[chosen].0 == Quantifier::SomeNot {
        premises[chosen].0 = *rng.choice(&others)?;
    }
    let (quantifier, subject, predicate) = premises[chosen];
    let inverted = match (is_meant, quantifier) {
        (true, Quantifier::No) => Quantifier::No,
        (true, _) => Quantifier::Some,
        (false, Quantifier::No) => *rng.choice(&[Quantifier::All, Quantifier::Some])?,
        (false, Quantifier::SomeNot) => *rng.choice(&others)?,
        (false, _) => *rng.choice(&[Quantifier::All, Quantifier::No])?,
    };
    // The conclusion has subject and predicate of the statement the other way round.
    let is_valid = match quantifier {
        Quantifier::No => inverted == Quantifier::No,
        Quantifier::All | Quantifier::Some => inverted == Quantifier::Some,
        Quantifier::SomeNot => false,
    };
    Ok((premises, (inverted, predicate, subject), is_valid))
}

fn syllogism(
    o: &SyllogismOptions,
    rng: &mut Random,
    quantifiers: &[Quantifier],
) -> Result<Drawn, ItemError> {
    let is_meant = rng.random() > o.invalid_ratio;
    for _ in 0..100 {
        let first = *rng.choice(quantifiers)?;
        let second = *rng.choice(quantifiers)?;
        let third = *rng.choice(quantifiers)?;
        let is_valid = is_valid(first, second, third);
        if is_valid == is_meant {
            return Ok(([(first, 0, 1), (second, 1, 2)], (third, 0, 2), is_valid));
        }
    }
    let all = Quantifier::All;
    Ok(([(all, 0, 1), (all, 1, 2)], (all, 0, 2), true))
}

/// Whether of `first a b` and `second b c` follows `third a c`, by the rules that the package has.
fn is_valid(first: Quantifier, second: Quantifier, third: Quantifier) -> bool {
    let one_is = |is: fn(Quantifier) -> bool| is(first) || is(second);
    let both_are = |is: fn(Quantifier) -> bool| is(first) && is(second);
    if both_are(Quantifier::is_negative) || both_are(Quantifier::is_particular) {
        return false;
    }
    if !third.is_particular() && one_is(Quantifier::is_particular) {
        return false;
    }
    if third.is_negative() != one_is(Quantifier::is_negative) {
        return false;
    }
    // The subject stands in the first statement, the predicate in the second.
    let (subject, predicate) = third.distributes();
    (!subject || first.distributes().0) && (!predicate || second.distributes().1)
}
