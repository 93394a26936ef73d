//! What worlds are made of.

pub(crate) const FIRST_NAMES: &[&str] = &[
    "Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gwen", "Hal", "Iris", "Jack", "Kira", "Leo",
    "Mona", "Nils", "Olga", "Paul", "Rosa", "Sam", "Tess", "Vera",
];

pub(crate) const LAST_NAMES: &[&str] = &[
    "Archer", "Baker", "Cooper", "Dyer", "Fisher", "Gardner", "Hunter", "Joiner", "Mason",
    "Miller", "Porter", "Potter", "Sawyer", "Shepherd", "Tanner", "Turner", "Walker", "Weaver",
];

pub(crate) const GROUPS: &[&str] = &["family", "choir", "team", "neighbours", "runners"];

pub(crate) const CITIES: &[&str] =
    &["Aldford", "Brinley", "Corvale", "Dunmere", "Eastwick", "Farrow", "Glenby", "Hartsea"];

pub(crate) const PLACES: &[&str] = &[
    "Room 4",
    "Room 7",
    "the library",
    "the old mill",
    "the town hall",
    "Cafe Anton",
    "the harbour",
];

/// More than any world has events.
pub(crate) const TITLES: &[&str] = &[
    "Budget review",
    "Choir practice",
    "Dentist",
    "Garden party",
    "Book club",
    "Board meeting",
    "Yoga class",
    "Piano lesson",
    "House viewing",
    "Team lunch",
    "Chess evening",
    "Budget planning",
    "School concert",
    "Car inspection",
    "Garden club",
    "Museum visit",
    "Job interview",
    "Board game night",
    "Boat trip",
    "Pottery course",
    "Team dinner",
];

/// More than any world has mails.
pub(crate) const SUBJECTS: &[&str] = &[
    "Lunch",
    "Holiday plans",
    "Broken window",
    "Library books",
    "New bicycle",
    "Concert tickets",
    "Old photos",
    "Recipe",
    "Moving house",
    "Train times",
    "Spare key",
    "Summer camp",
    "Lost umbrella",
    "Wedding gift",
    "Paint for the shed",
    "Choir trip",
    "School fair",
    "Camera",
    "Garden tools",
    "Birthday cake",
    "Parking",
    "Language course",
    "Water bill",
    "Cinema",
];

/// More than any world has files of its own.
pub(crate) const FILE_NAMES: &[&str] = &[
    "plan.txt",
    "list.txt",
    "ideas.txt",
    "costs.txt",
    "guests.txt",
    "menu.txt",
    "route.txt",
    "rules.txt",
    "songs.txt",
    "words.txt",
    "letter.txt",
    "draft.txt",
    "report.txt",
    "prices.txt",
    "dates.txt",
    "names.txt",
    "goals.txt",
    "tools.txt",
    "plants.txt",
    "books.txt",
];

pub(crate) const FOLDERS: &[&str] = &["notes", "home", "work", "travel", "archive"];

pub(crate) const NOTES: &[&str] = &[
    "groceries",
    "rent",
    "concert",
    "pizza",
    "petrol",
    "books",
    "flowers",
    "train ticket",
    "museum",
    "cinema",
    "repair",
    "gift",
];
