//! What things are called.

use std::collections::HashSet;

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};

/// Which names things may have: of all that can be made, half are for training, a quarter each for development and test, so that
/// what was learnt of things is of no use for others. The words of which names are made are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// Those of training.
    Train,
    /// Those of development.
    Dev,
    /// Those of tests.
    Test,
}

impl Names {
    /// Whether a name is one of these.
    fn has(self, name: &str) -> bool {
        let class = blake3::hash(name.as_bytes()).as_bytes()[0] % 4;
        match self {
            Self::Train => class < 2,
            Self::Dev => class == 2,
            Self::Test => class == 3,
        }
    }
}

pub(super) const FIRST: [&str; 40] = [
    "Adra", "Belin", "Corvo", "Dalia", "Edrik", "Fenna", "Galen", "Hesta", "Ilmar", "Jorun",
    "Kestra", "Lorin", "Mirel", "Nadir", "Orsa", "Perrin", "Quilla", "Rodan", "Selka", "Tavi",
    "Ulrik", "Vesna", "Wendel", "Xanti", "Yorick", "Zelma", "Anselm", "Brida", "Cassio", "Doria",
    "Emeric", "Flora", "Gideon", "Halda", "Isolde", "Jasper", "Katrin", "Leander", "Moira",
    "Nestor",
];
pub(super) const LAST: [&str; 60] = [
    "Abell",
    "Barlow",
    "Caxton",
    "Denham",
    "Ellwood",
    "Farrow",
    "Garrick",
    "Harlan",
    "Ingram",
    "Jessop",
    "Kendry",
    "Lorimer",
    "Morrel",
    "Norwin",
    "Oakley",
    "Pellam",
    "Quarrie",
    "Redfern",
    "Selwyn",
    "Tarrant",
    "Underhill",
    "Varley",
    "Wexford",
    "Yarrow",
    "Zander",
    "Ashcombe",
    "Brandel",
    "Corliss",
    "Dunmore",
    "Everard",
    "Fenwick",
    "Gorman",
    "Hathorn",
    "Ivory",
    "Joyner",
    "Kestrel",
    "Lambert",
    "Maddox",
    "Nettle",
    "Osgood",
    "Penrose",
    "Quince",
    "Rowland",
    "Stroud",
    "Thorne",
    "Upton",
    "Vickers",
    "Whitlock",
    "Yeoman",
    "Alder",
    "Birch",
    "Cotter",
    "Draper",
    "Elgin",
    "Foster",
    "Granger",
    "Holloway",
    "Irving",
    "Jarvis",
    "Kirby",
];
pub(super) const EPITHETS: [&str; 16] = [
    "the Elder",
    "the Younger",
    "the Quiet",
    "the Bold",
    "the Wise",
    "the Tall",
    "the Red",
    "the Grey",
    "the Lame",
    "the Good",
    "the Swift",
    "the Stern",
    "the Merry",
    "the Blind",
    "the Silent",
    "the Fair",
];
pub(super) const TOWN_FIRST: [&str; 12] = [
    "Upper", "Lower", "Port", "Saint", "New", "Castle", "Market", "Stone", "White", "Long", "High",
    "West",
];
pub(super) const TOWN_LAST: [&str; 50] = [
    "Kessin", "Velmar", "Ardle", "Bruna", "Calder", "Dorne", "Elsing", "Fallow", "Grimsey",
    "Harrick", "Istrel", "Jarrow", "Kelby", "Lunden", "Marrow", "Nairn", "Ostrel", "Pinner",
    "Quorn", "Rossal", "Sundry", "Tamsel", "Ulster", "Vardy", "Wendle", "Yelling", "Zennor",
    "Amber", "Bellow", "Crick", "Dunlin", "Embry", "Fossil", "Gallow", "Hollis", "Inver", "Joss",
    "Kippen", "Lorne", "Mossel", "Norby", "Orrin", "Pavel", "Rudding", "Selby", "Tolland",
    "Uffing", "Vennor", "Warble", "Yaxley",
];
pub(super) const WORK_FIRST: [&str; 36] = [
    "Silver",
    "Broken",
    "Hidden",
    "Crimson",
    "Winter",
    "Golden",
    "Silent",
    "Burning",
    "Hollow",
    "Distant",
    "Paper",
    "Iron",
    "Velvet",
    "Crooked",
    "Frozen",
    "Lonely",
    "Painted",
    "Sleeping",
    "Stolen",
    "Wandering",
    "Bitter",
    "Copper",
    "Drowned",
    "Endless",
    "Fallen",
    "Glass",
    "Humble",
    "Ivory",
    "Jagged",
    "Kindly",
    "Laughing",
    "Midnight",
    "Narrow",
    "Open",
    "Patient",
    "Quiet",
];
pub(super) const WORK_LAST: [&str; 36] = [
    "Lantern",
    "Orchard",
    "Mirror",
    "Harbour",
    "Staircase",
    "Garden",
    "Compass",
    "Violin",
    "Bridge",
    "Window",
    "Crown",
    "Feather",
    "Mountain",
    "Letter",
    "Candle",
    "Meadow",
    "Shadow",
    "Kingdom",
    "Wheel",
    "Anchor",
    "Bell",
    "Cloak",
    "Door",
    "Ember",
    "Fountain",
    "Gate",
    "Hammer",
    "Island",
    "Journey",
    "Key",
    "Labyrinth",
    "Mask",
    "Needle",
    "Oath",
    "Pearl",
    "Road",
];
pub(super) const TRADES: [&str; 20] = [
    "Brewery",
    "Foundry",
    "Mills",
    "Press",
    "Shipyard",
    "Bank",
    "Bakery",
    "Tannery",
    "Glassworks",
    "Distillery",
    "Pottery",
    "Quarry",
    "Sawmill",
    "Armoury",
    "Dairy",
    "Optics",
    "Clockworks",
    "Carriages",
    "Textiles",
    "Chemicals",
];
pub(super) const REGION_FIRST: [&str; 8] =
    ["North", "South", "East", "Inner", "Outer", "Old", "Great", "Little"];
pub(super) const REGION_LAST: [&str; 30] = [
    "Halvia",
    "Moraland",
    "Tressia",
    "Borany",
    "Caldonia",
    "Drevany",
    "Estoria",
    "Feldmark",
    "Gorland",
    "Hestria",
    "Ilvania",
    "Jurland",
    "Karelund",
    "Lothany",
    "Merovia",
    "Nordany",
    "Ostmark",
    "Pellonia",
    "Quaria",
    "Rhovia",
    "Savony",
    "Thurland",
    "Ulvany",
    "Vestria",
    "Westmarch",
    "Yslany",
    "Zarland",
    "Altmark",
    "Brennia",
    "Corvany",
];
pub(super) const RIVER_FIRST: [&str; 12] = [
    "Black", "Clear", "Swift", "Dark", "Winding", "Cold", "Twin", "Shallow", "Deep", "Green",
    "Sweet", "Muddy",
];
pub(super) const RIVER_LAST: [&str; 30] = [
    "Orm", "Tessel", "Avon", "Brae", "Cherwin", "Dovel", "Esk", "Fenn", "Gale", "Huss", "Irwell",
    "Jore", "Kell", "Lude", "Mease", "Nene", "Ouse", "Pell", "Quill", "Rhee", "Sark", "Trent",
    "Ure", "Vyr", "Wharf", "Yare", "Zell", "Alne", "Blyth", "Coln",
];

/// Draws a name of two words that no other thing has, and that is one of `names`.
pub(super) fn draw(
    first: &[&str],
    last: &[&str],
    names: Names,
    taken: &mut HashSet<String>,
    rng: &mut impl RngExt,
) -> String {
    // A world takes a small share of the names that there are.
    let mut draw = || {
        let (first, last) =
            (first.choose(rng).expect("there are some"), last.choose(rng).expect("there are some"));
        let name = format!("{first} {last}");
        (names.has(&name) && taken.insert(name.clone())).then_some(name)
    };
    let found = (0..100_000).find_map(|_| draw());
    found.expect("the lists leave room for the names of a world")
}

/// Draws a second name, of a beginning and one of several ends, that no other thing has and that is one of `names`; absent
/// where there is none.
pub(super) fn draw_alias(
    begin: &str,
    ends: &[&str],
    names: Names,
    taken: &mut HashSet<String>,
    rng: &mut impl RngExt,
) -> Option<String> {
    let free = |end: &&str| {
        let alias = format!("{begin}{end}");
        (names.has(&alias) && !taken.contains(&alias)).then_some(alias)
    };
    let alias = ends.iter().filter_map(free).collect::<Vec<_>>().choose(rng)?.clone();
    taken.insert(alias.clone());
    Some(alias)
}
