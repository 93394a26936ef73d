//! What generated databases are about.

use serde::{Deserialize, Serialize};

/// Which domains databases are of; those of two sets have no table in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DomainSet {
    /// Eight domains, to be trained on.
    #[default]
    Seen,
    /// Three others, for what is to be new.
    Unseen,
}

impl DomainSet {
    pub(super) fn domains(self) -> &'static [Domain] {
        match self {
            Self::Seen => SEEN,
            Self::Unseen => UNSEEN,
        }
    }
}

/// Two tables, of which the rows of the second belong to rows of the first.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: &'static str,
    pub(super) parent: TableKind,
    pub(super) child: TableKind,
}

#[derive(Debug)]
pub(super) struct TableKind {
    /// As the table is called.
    pub(super) name: &'static str,
    /// One row of it, in words.
    pub(super) one: &'static str,
    /// The column that tells its rows apart, and what it is made of.
    pub(super) label: (&'static str, Label),
    /// Columns with a few values.
    pub(super) groups: &'static [(&'static str, &'static [&'static str])],
    /// Columns of whole numbers, with their least and largest.
    pub(super) numbers: &'static [(&'static str, i64, i64)],
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Label {
    /// Names of people.
    Person,
    /// Two words.
    Title,
}

pub(super) const FIRST_NAMES: &[&str] = &[
    "Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo", "Mia",
    "Ned", "Ola", "Pam",
];
pub(super) const LAST_NAMES: &[&str] = &[
    "Abel", "Berg", "Cole", "Dorn", "Eng", "Frey", "Gold", "Holm", "Iyer", "Kurt", "Lund", "Moss",
    "Nash", "Orr",
];
pub(super) const FIRST_WORDS: &[&str] = &[
    "Blue", "Calm", "Dark", "East", "Fast", "Gold", "High", "Iron", "Long", "Mild", "New", "Old",
    "Pale", "Red", "Slow", "Tall",
];
pub(super) const LAST_WORDS: &[&str] = &[
    "Apple", "Bridge", "Cloud", "Dawn", "Field", "Gate", "Hill", "Island", "Lamp", "Moon", "North",
    "Oak", "River", "Star",
];

const CITIES: &[&str] = &["Bern", "Cork", "Lyon", "Oslo", "Pisa", "Riga"];
const COUNTRIES: &[&str] = &["Chile", "Egypt", "Italy", "Japan", "Kenya", "Norway"];

const SEEN: &[Domain] = &[
    Domain {
        name: "library",
        parent: TableKind {
            name: "authors",
            one: "author",
            label: ("name", Label::Person),
            groups: &[("country", COUNTRIES)],
            numbers: &[("birthyear", 1900, 1990)],
        },
        child: TableKind {
            name: "books",
            one: "book",
            label: ("title", Label::Title),
            groups: &[
                ("genre", &["crime", "poetry", "travel", "history"]),
                ("language", &["Dutch", "Greek", "Latin"]),
            ],
            numbers: &[("length", 80, 900), ("price", 5, 95)],
        },
    },
    Domain {
        name: "store",
        parent: TableKind {
            name: "suppliers",
            one: "supplier",
            label: ("name", Label::Person),
            groups: &[("city", CITIES)],
            numbers: &[("rating", 1, 99)],
        },
        child: TableKind {
            name: "products",
            one: "product",
            label: ("title", Label::Title),
            groups: &[
                ("category", &["garden", "kitchen", "office", "sport"]),
                ("color", &["black", "green", "white"]),
            ],
            numbers: &[("price", 5, 400), ("stock", 0, 250), ("weight", 1, 120)],
        },
    },
    Domain {
        name: "school",
        parent: TableKind {
            name: "teachers",
            one: "teacher",
            label: ("name", Label::Person),
            groups: &[("subject", &["art", "biology", "math", "music"])],
            numbers: &[("salary", 2000, 6000), ("age", 24, 66)],
        },
        child: TableKind {
            name: "courses",
            one: "course",
            label: ("title", Label::Title),
            groups: &[
                ("level", &["beginner", "middle", "expert"]),
                ("day", &["Monday", "Tuesday", "Friday"]),
            ],
            numbers: &[("capacity", 5, 120), ("fee", 10, 300)],
        },
    },
    Domain {
        name: "cinema",
        parent: TableKind {
            name: "directors",
            one: "director",
            label: ("name", Label::Person),
            groups: &[("country", COUNTRIES)],
            numbers: &[("age", 25, 85)],
        },
        child: TableKind {
            name: "films",
            one: "film",
            label: ("title", Label::Title),
            groups: &[("genre", &["comedy", "drama", "horror", "western"])],
            numbers: &[("duration", 60, 210), ("year", 1950, 2024), ("budget", 1, 300)],
        },
    },
    Domain {
        name: "farm",
        parent: TableKind {
            name: "farms",
            one: "farm",
            label: ("name", Label::Title),
            groups: &[("region", &["north", "south", "east", "west"])],
            numbers: &[("area", 10, 500)],
        },
        child: TableKind {
            name: "animals",
            one: "animal",
            label: ("name", Label::Person),
            groups: &[
                ("species", &["cow", "goat", "horse", "sheep"]),
                ("sex", &["female", "male"]),
            ],
            numbers: &[("weight", 20, 900), ("age", 1, 60)],
        },
    },
    Domain {
        name: "harbor",
        parent: TableKind {
            name: "ports",
            one: "port",
            label: ("name", Label::Title),
            groups: &[("country", COUNTRIES)],
            numbers: &[("depth", 5, 60)],
        },
        child: TableKind {
            name: "ships",
            one: "ship",
            label: ("name", Label::Title),
            groups: &[
                ("kind", &["ferry", "tanker", "trawler", "yacht"]),
                ("flag", &["Malta", "Panama", "Togo"]),
            ],
            numbers: &[("length", 10, 400), ("speed", 5, 70), ("year", 1960, 2024)],
        },
    },
    Domain {
        name: "kitchen",
        parent: TableKind {
            name: "cooks",
            one: "cook",
            label: ("name", Label::Person),
            groups: &[("city", CITIES)],
            numbers: &[("experience", 1, 50)],
        },
        child: TableKind {
            name: "recipes",
            one: "recipe",
            label: ("title", Label::Title),
            groups: &[
                ("course", &["starter", "main", "dessert"]),
                ("cuisine", &["French", "Indian", "Thai"]),
            ],
            numbers: &[("duration", 5, 240), ("calories", 50, 1500)],
        },
    },
    Domain {
        name: "office",
        parent: TableKind {
            name: "departments",
            one: "department",
            label: ("name", Label::Title),
            groups: &[("city", CITIES)],
            numbers: &[("budget", 100, 9000)],
        },
        child: TableKind {
            name: "employees",
            one: "employee",
            label: ("name", Label::Person),
            groups: &[
                ("role", &["analyst", "clerk", "engineer", "manager"]),
                ("contract", &["fixed", "open"]),
            ],
            numbers: &[("salary", 1800, 9000), ("age", 20, 66)],
        },
    },
];

const UNSEEN: &[Domain] = &[
    Domain {
        name: "museum",
        parent: TableKind {
            name: "artists",
            one: "artist",
            label: ("name", Label::Person),
            groups: &[("style", &["baroque", "cubist", "modern"])],
            numbers: &[("birthyear", 1500, 1990)],
        },
        child: TableKind {
            name: "paintings",
            one: "painting",
            label: ("title", Label::Title),
            groups: &[("technique", &["fresco", "ink", "oil"]), ("hall", &["A", "B", "C", "D"])],
            numbers: &[("width", 20, 400), ("height", 20, 400), ("insurance", 1, 900)],
        },
    },
    Domain {
        name: "league",
        parent: TableKind {
            name: "clubs",
            one: "club",
            label: ("name", Label::Title),
            groups: &[("town", CITIES)],
            numbers: &[("founded", 1880, 2010)],
        },
        child: TableKind {
            name: "players",
            one: "player",
            label: ("name", Label::Person),
            groups: &[
                ("position", &["defender", "keeper", "striker"]),
                ("foot", &["left", "right"]),
            ],
            numbers: &[("goals", 0, 90), ("wage", 10, 800), ("shirt", 1, 99)],
        },
    },
    Domain {
        name: "clinic",
        parent: TableKind {
            name: "doctors",
            one: "doctor",
            label: ("name", Label::Person),
            groups: &[("field", &["heart", "lung", "skin"])],
            numbers: &[("room", 1, 300)],
        },
        child: TableKind {
            name: "patients",
            one: "patient",
            label: ("name", Label::Person),
            groups: &[("blood", &["A", "AB", "B", "O"]), ("ward", &["green", "red", "yellow"])],
            numbers: &[("age", 1, 99), ("pulse", 45, 140), ("bill", 50, 5000)],
        },
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn unseen_domains_share_no_table_with_those_that_are_trained_on() {
        let names = |set: DomainSet| -> HashSet<&str> {
            set.domains().iter().flat_map(|it| [it.parent.name, it.child.name]).collect()
        };
        let (seen, unseen) = (names(DomainSet::Seen), names(DomainSet::Unseen));
        assert_eq!((seen.len(), unseen.len()), (16, 6), "no name stands twice");
        assert!(seen.is_disjoint(&unseen));
        for domain in SEEN.iter().chain(UNSEEN) {
            for table in [&domain.parent, &domain.child] {
                assert!(!table.groups.is_empty() && !table.numbers.is_empty());
                for (column, low, high) in table.numbers {
                    assert!(high - low > 40, "{column}: enough numbers to tell all rows apart");
                }
            }
        }
    }
}
