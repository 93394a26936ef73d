//! What can be said of things.

/// What a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Person,
    Town,
    Work,
    Company,
    Region,
    River,
}

/// What a fact is about: of every thing of its kind there is one fact of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Relation {
    Birthplace,
    Employer,
    Teacher,
    Profession,
    BirthYear,
    TownRegion,
    TownRiver,
    Mayor,
    Craft,
    Author,
    Setting,
    WorkYear,
    Founder,
    Seat,
    Product,
    Capital,
    Crop,
    Spring,
    Fish,
}

impl Kind {
    /// What is told of such a thing, in the order in which its document tells it.
    pub(super) fn relations(self) -> &'static [Relation] {
        use Relation::*;
        match self {
            Self::Person => &[Birthplace, BirthYear, Profession, Employer, Teacher],
            Self::Town => &[TownRegion, TownRiver, Mayor, Craft],
            Self::Work => &[Author, WorkYear, Setting],
            Self::Company => &[Founder, Seat, Product],
            Self::Region => &[Capital, Crop],
            Self::River => &[Spring, Fish],
        }
    }
}

/// How a relation is put into words; `{x}` is the thing, `{o}` what is told of it.
pub(super) struct Words {
    /// Sentences that tell it.
    pub(super) told: [&'static str; 2],
    /// What asks for it.
    pub(super) asked: &'static str,
    /// The object as a part of a longer question; absent where objects are words.
    pub(super) within: Option<&'static str>,
}

impl Relation {
    /// Its words.
    pub(super) fn words(self) -> Words {
        let words = |told, asked, within| Words { told, asked, within };
        match self {
            Self::Birthplace => words(
                ["{x} was born in {o}.", "The birthplace of {x} is {o}."],
                "In which town was {x} born?",
                Some("the town where {x} was born"),
            ),
            Self::Employer => words(
                ["{x} works for {o}.", "The employer of {x} is {o}."],
                "Which company does {x} work for?",
                Some("the company that {x} works for"),
            ),
            Self::Teacher => words(
                ["{x} was taught by {o}.", "The teacher of {x} was {o}."],
                "Who taught {x}?",
                Some("the teacher of {x}"),
            ),
            Self::Profession => words(
                ["By profession {x} is a {o}.", "{x} became known as a {o}."],
                "What is the profession of {x}?",
                None,
            ),
            Self::BirthYear => words(
                ["{x} was born in the year {o}.", "The year of birth of {x} is {o}."],
                "In which year was {x} born?",
                None,
            ),
            Self::TownRegion => words(
                ["{x} lies in the region {o}.", "{x} belongs to the region {o}."],
                "In which region does {x} lie?",
                Some("the region in which {x} lies"),
            ),
            Self::TownRiver => words(
                ["The river {o} flows through {x}.", "{x} stands on the river {o}."],
                "Which river flows through {x}?",
                Some("the river that flows through {x}"),
            ),
            Self::Mayor => words(
                ["The mayor of {x} is {o}.", "{o} is the mayor of {x}."],
                "Who is the mayor of {x}?",
                Some("the mayor of {x}"),
            ),
            Self::Craft => words(
                ["{x} is famous for its {o}.", "Traders come to {x} for its {o}."],
                "What is {x} famous for?",
                None,
            ),
            Self::Author => words(
                ["{x} was written by {o}.", "The author of {x} is {o}."],
                "Who wrote {x}?",
                Some("the author of {x}"),
            ),
            Self::Setting => words(
                ["{x} is set in {o}.", "The story of {x} takes place in {o}."],
                "In which town is {x} set?",
                Some("the town in which {x} is set"),
            ),
            Self::WorkYear => words(
                ["{x} was published in the year {o}.", "The year of publication of {x} is {o}."],
                "In which year was {x} published?",
                None,
            ),
            Self::Founder => words(
                ["{x} was founded by {o}.", "The founder of {x} is {o}."],
                "Who founded {x}?",
                Some("the founder of {x}"),
            ),
            Self::Seat => words(
                ["{x} has its seat in {o}.", "The seat of {x} is in {o}."],
                "In which town does {x} have its seat?",
                Some("the town in which {x} has its seat"),
            ),
            Self::Product => {
                words(["{x} makes {o}.", "What {x} sells is {o}."], "What does {x} make?", None)
            }
            Self::Capital => words(
                ["The capital of {x} is {o}.", "{o} is the capital of {x}."],
                "What is the capital of {x}?",
                Some("the capital of {x}"),
            ),
            Self::Crop => words(
                ["The farmers of {x} grow {o}.", "{x} lives on its {o}."],
                "What do the farmers of {x} grow?",
                None,
            ),
            Self::Spring => words(
                ["{x} rises in the region {o}.", "The spring of {x} is in the region {o}."],
                "In which region does {x} rise?",
                Some("the region in which {x} rises"),
            ),
            Self::Fish => words(
                ["Anglers come to {x} for its {o}.", "{x} is full of {o}."],
                "For which fish do anglers come to {x}?",
                None,
            ),
        }
    }

    /// What its objects may be, where they are words and no years.
    pub(super) fn objects(self) -> &'static [&'static str] {
        match self {
            Self::Profession => &[
                "painter",
                "doctor",
                "sailor",
                "lawyer",
                "weaver",
                "printer",
                "botanist",
                "mason",
                "baker",
                "surveyor",
                "poet",
                "judge",
                "miller",
                "singer",
                "carpenter",
                "historian",
            ],
            Self::Craft => &[
                "cheese", "lace", "clocks", "pottery", "swords", "carpets", "honey", "bells",
                "candles", "glass", "violins", "cider", "saddles", "paper", "salt", "gloves",
            ],
            Self::Product => &[
                "ale", "anchors", "flour", "maps", "barges", "loans", "rolls", "boots", "lenses",
                "brandy", "bricks", "planks", "shields", "butter", "watches", "wagons", "linen",
                "soap",
            ],
            Self::Crop => &[
                "barley", "olives", "flax", "apples", "hops", "saffron", "rye", "plums", "grapes",
                "beans", "oats", "cherries",
            ],
            Self::Fish => {
                &["trout", "salmon", "pike", "carp", "eels", "perch", "bream", "sturgeon"]
            }
            _ => &[],
        }
    }
}
