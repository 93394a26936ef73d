//! The words of generated products.

/// A kind of product.
pub(super) struct Kind {
    pub(super) category: &'static str,
    pub(super) path: &'static str,
    pub(super) query: &'static str,
    /// What a product is called.
    pub(super) heads: &'static [&'static str],
    /// What it is for, behind `for`.
    pub(super) uses: &'static [&'static str],
    pub(super) materials: &'static [&'static str],
    /// What it can be beside what all of its department can be.
    pub(super) attributes: &'static [&'static str],
    pub(super) options: &'static [Choice],
    /// Whole dollars.
    pub(super) prices: (u32, u32),
}

/// An option with its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Color,
    ClothingSize,
    ShoeSize,
    BedSize,
    Scent,
    Flavor,
    PackSize,
    Volume,
    Capacity,
    Length,
    Pattern,
    Style,
}

impl Choice {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Color => "color",
            Self::ClothingSize | Self::ShoeSize | Self::BedSize => "size",
            Self::Scent => "scent",
            Self::Flavor => "flavor name",
            Self::PackSize => "item package quantity",
            Self::Volume => "volume",
            Self::Capacity => "capacity",
            Self::Length => "length",
            Self::Pattern => "pattern name",
            Self::Style => "style",
        }
    }

    pub(super) fn values(self) -> &'static [&'static str] {
        match self {
            Self::Color => COLORS,
            Self::ClothingSize => &[
                "x-small", "small", "medium", "large", "x-large", "xx-large", "3x-large",
                "4x-large",
            ],
            Self::ShoeSize => &[
                "5.5", "6", "6.5", "7", "7.5", "8", "8.5", "9", "9.5", "10", "10.5", "11", "12",
                "13",
            ],
            Self::BedSize => &["twin", "twin xl", "full", "queen", "king", "california king"],
            Self::Scent => &[
                "lemon grass",
                "sea breeze",
                "cedar",
                "vanilla bean",
                "bergamot",
                "wild fig",
                "almond milk",
                "green tea",
                "rain",
                "orange peel",
                "unscented",
                "juniper",
            ],
            Self::Flavor => &[
                "sea salt",
                "smoked paprika",
                "dark cocoa",
                "hazelnut",
                "apple cinnamon",
                "ginger",
                "maple",
                "sour cherry",
                "lime chili",
                "garlic herb",
                "plain",
                "toffee",
                "mango",
                "thyme",
            ],
            Self::PackSize => &["1", "2", "3", "4", "6", "8", "12", "24"],
            Self::Volume => &[
                "1 fl oz",
                "2 fl oz",
                "4 fl oz",
                "6.7 fl oz",
                "8 fl oz",
                "12 fl oz",
                "16 fl oz",
                "32 fl oz",
            ],
            Self::Capacity => &["16 gb", "32 gb", "64 gb", "128 gb", "256 gb", "512 gb", "1 tb"],
            Self::Length => &["1 ft", "3 ft", "6 ft", "10 ft", "15 ft", "25 ft", "50 ft"],
            Self::Pattern => &[
                "plaid",
                "striped",
                "dotted",
                "herringbone",
                "floral vine",
                "terrazzo",
                "waves",
                "leaves",
                "mountain line",
                "honeycomb",
            ],
            Self::Style => &[
                "basic",
                "with case",
                "with remote",
                "upgraded",
                "two tier",
                "left hand",
                "right hand",
                "with hook",
                "foldable",
                "deluxe",
            ],
        }
    }

    /// How many values a product has of it.
    pub(super) fn counts(self) -> (u32, u32) {
        match self {
            Self::ShoeSize => (5, 9),
            Self::Color => (3, 8),
            Self::Style => (2, 4),
            _ => (3, 6),
        }
    }
}

const COLORS: &[&str] = &[
    "black",
    "white",
    "navy",
    "deep navy",
    "heather grey",
    "stone grey",
    "slate",
    "charcoal",
    "red",
    "brick red",
    "burgundy",
    "dusty rose",
    "blush pink",
    "hot pink",
    "coral",
    "burnt orange",
    "mustard",
    "pale yellow",
    "olive",
    "forest green",
    "sage green",
    "mint",
    "teal",
    "turquoise",
    "sky blue",
    "cobalt blue",
    "royal blue",
    "lilac",
    "lavender",
    "plum",
    "violet",
    "espresso",
    "walnut",
    "caramel",
    "tan",
    "khaki",
    "sand",
    "ivory",
    "cream",
    "beige",
    "copper",
    "gold",
    "silver",
    "rainbow",
];

use Choice::{
    BedSize, Capacity, ClothingSize, Color, Flavor, Length, PackSize, Pattern, Scent, ShoeSize,
    Style, Volume,
};

const CLOTH: &[&str] =
    &["cotton", "linen", "wool", "fleece", "denim", "jersey", "corduroy", "bamboo", "flannel"];
const LEATHER: &[&str] = &["leather", "suede", "canvas", "mesh", "rubber"];
const METAL: &[&str] = &["steel", "aluminum", "brass", "titanium", "plastic"];
const WOOD: &[&str] = &["oak", "pine", "walnut", "rattan", "steel", "bamboo", "velvet"];
const PLANT: &[&str] = &["aloe", "oat", "rosehip", "jojoba", "charcoal", "honey", "clay"];
const GRAIN: &[&str] = &["oat", "rice", "almond", "chickpea", "quinoa", "coconut", "cocoa"];

/// What all of a department can be.
pub(super) fn department(category: &str) -> &'static [&'static str] {
    match category {
        "fashion" => &[
            "machine wash",
            "hand wash only",
            "quick dry",
            "moisture wicking",
            "slim fit",
            "relaxed fit",
            "loose fit",
            "stretch fabric",
            "breathable lining",
            "elastic closure",
            "button closure",
            "zipper closure",
            "reinforced seams",
            "water repellent",
            "wrinkle resistant",
            "hidden pocket",
            "tag free",
            "soft touch",
            "uv protection",
            "everyday wear",
            "gift wrapped",
            "odor control",
        ],
        "beauty" => &[
            "cruelty free",
            "fragrance free",
            "paraben free",
            "sulfate free",
            "alcohol free",
            "dermatologist tested",
            "sensitive skin",
            "dry skin",
            "oily skin",
            "long lasting",
            "travel size",
            "vegan formula",
            "fine mist",
            "refillable bottle",
            "non greasy",
            "fast absorbing",
            "water based",
            "recycled packaging",
            "daily use",
            "color safe",
            "tear free",
        ],
        "electronics" => &[
            "fast charging",
            "noise cancelling",
            "water resistant",
            "dust proof",
            "plug and play",
            "long battery life",
            "high resolution",
            "low latency",
            "usb c",
            "wall mountable",
            "voice control",
            "energy saving",
            "shock proof",
            "gold plated",
            "tangle free",
            "auto shutoff",
            "wireless range",
            "night mode",
            "easy pairing",
            "travel ready",
            "child lock",
        ],
        "furniture" => &[
            "easy assemble",
            "space saving",
            "stain resistant",
            "solid wood",
            "heavy duty",
            "high density foam",
            "non slip feet",
            "adjustable height",
            "scratch resistant",
            "living room",
            "dining room",
            "kids room",
            "mid century",
            "removable cover",
            "machine washable",
            "soft close",
            "hidden storage",
            "fade resistant",
            "rust resistant",
            "noise free",
            "weather proof",
        ],
        _ => &[
            "gluten free",
            "non gmo",
            "dairy free",
            "low sugar",
            "low sodium",
            "plant based",
            "nut free",
            "keto friendly",
            "high protein",
            "high fiber",
            "resealable bag",
            "artificial colors free",
            "slow roasted",
            "stone ground",
            "small batch",
            "ready to eat",
            "fair trade",
            "caffeine free",
            "whole grain",
            "individually wrapped",
            "shelf stable",
        ],
    }
}

macro_rules! kinds {
    ($($category:literal, $path:literal, $query:literal, [$($head:literal),*], [$($use:literal),*], $materials:expr,
        [$($attribute:literal),*], [$($choice:expr),*], $low:literal, $high:literal;)*) => {
        &[$(Kind {
            category: $category,
            path: $path,
            query: $query,
            heads: &[$($head),*],
            uses: &[$($use),*],
            materials: $materials,
            attributes: &[$($attribute),*],
            options: &[$($choice),*],
            prices: ($low, $high),
        }),*]
    };
}

pub(super) const KINDS: &[Kind] = kinds![
    "fashion", "Clothing & Shoes › Men › Shirts", "men's shirts", ["shirt", "polo shirt", "henley", "work shirt"], ["work", "the weekend", "travel", "golf"], CLOTH, ["long sleeve", "short sleeve", "spread collar"], [Color, ClothingSize], 14, 60;
    "fashion", "Clothing & Shoes › Men › Trousers", "men's trousers", ["trousers", "chinos", "cargo pants", "joggers"], ["work", "hiking", "the gym", "travel"], CLOTH, ["drawstring waist", "tapered leg", "cargo pockets"], [Color, ClothingSize], 19, 80;
    "fashion", "Clothing & Shoes › Men › Jackets", "men's jackets", ["jacket", "parka", "windbreaker", "vest"], ["winter", "hiking", "rainy days", "commuting"], CLOTH, ["detachable hood", "two way zipper", "padded shoulders"], [Color, ClothingSize], 35, 190;
    "fashion", "Clothing & Shoes › Women › Dresses", "women's dresses", ["dress", "midi dress", "wrap dress", "sundress"], ["summer", "parties", "the office", "the beach"], CLOTH, ["short sleeve", "v neck", "side pockets"], [Color, ClothingSize, Pattern], 20, 110;
    "fashion", "Clothing & Shoes › Women › Sweaters", "women's sweaters", ["sweater", "cardigan", "pullover", "turtleneck"], ["winter", "layering", "the office", "lounging"], CLOTH, ["long sleeve", "crew neck", "ribbed cuffs"], [Color, ClothingSize], 22, 95;
    "fashion", "Clothing & Shoes › Women › Leggings", "women's leggings", ["leggings", "tights", "capris", "shorts"], ["yoga", "running", "the gym", "lounging"], &["nylon", "spandex", "cotton", "bamboo"], ["high waist", "tummy control", "squat proof"], [Color, ClothingSize], 12, 55;
    "fashion", "Clothing & Shoes › Shoes › Sneakers", "sneakers", ["sneakers", "running shoes", "walking shoes", "trainers"], ["running", "walking", "nurses", "the gym"], LEATHER, ["arch support", "rubber outsole", "memory foam insole"], [Color, ShoeSize], 28, 140;
    "fashion", "Clothing & Shoes › Shoes › Boots", "boots", ["boots", "ankle boots", "hiking boots", "rain boots"], ["hiking", "snow", "work", "the garden"], LEATHER, ["steel toe", "fleece lined", "rubber outsole"], [Color, ShoeSize], 39, 180;
    "fashion", "Clothing & Shoes › Shoes › Sandals", "sandals", ["sandals", "slides", "clogs", "flip flops"], ["the beach", "summer", "the garden", "travel"], LEATHER, ["open toe", "arch support", "adjustable straps"], [Color, ShoeSize], 12, 70;
    "fashion", "Clothing & Shoes › Accessories › Bags", "bags", ["backpack", "tote bag", "messenger bag", "duffel"], ["school", "travel", "work", "the gym"], LEATHER, ["laptop sleeve", "padded straps", "anti theft pocket"], [Color, Style], 18, 120;
    "fashion", "Clothing & Shoes › Accessories › Hats", "hats", ["hat", "beanie", "baseball cap", "sun hat"], ["winter", "fishing", "the beach", "running"], CLOTH, ["wide brim", "chin strap", "adjustable strap"], [Color, Pattern], 9, 40;
    "beauty", "Beauty & Care › Hair › Shampoo", "shampoo", ["shampoo", "conditioner", "hair mask", "scalp scrub"], ["curly hair", "fine hair", "damaged hair", "men"], PLANT, ["anti frizz", "volume boost", "tea tree oil"], [Scent, Volume], 6, 40;
    "beauty", "Beauty & Care › Hair › Styling", "hair styling", ["pomade", "hair spray", "styling cream", "curl gel"], ["short hair", "curly hair", "long hair", "men"], PLANT, ["strong hold", "matte finish", "heat protection"], [Scent, Volume], 7, 38;
    "beauty", "Beauty & Care › Skin › Moisturizers", "moisturizers", ["face cream", "body lotion", "night cream", "serum"], ["the face", "hands", "winter skin", "men"], PLANT, ["hyaluronic acid", "vitamin c", "anti aging"], [Scent, Volume], 8, 75;
    "beauty", "Beauty & Care › Skin › Cleansers", "cleansers", ["face wash", "cleansing balm", "toner", "makeup remover"], ["the face", "teens", "travel", "the evening"], PLANT, ["deep pore", "vitamin c", "salicylic acid"], [Scent, Volume], 6, 45;
    "beauty", "Beauty & Care › Skin › Sunscreen", "sunscreen", ["sunscreen", "sun stick", "after sun gel", "lip balm"], ["the beach", "sports", "kids", "the face"], PLANT, ["mineral filter", "reef safe", "broad spectrum"], [Scent, Volume], 7, 42;
    "beauty", "Beauty & Care › Makeup › Lips", "lipstick", ["lipstick", "lip gloss", "lip liner", "lip stain"], ["parties", "the office", "weddings", "beginners"], PLANT, ["matte finish", "transfer proof", "plumping effect"], [Color, Style], 5, 34;
    "beauty", "Beauty & Care › Makeup › Eyes", "eye makeup", ["mascara", "eyeliner", "eyeshadow palette", "brow pencil"], ["parties", "sensitive eyes", "beginners", "the stage"], PLANT, ["smudge proof", "waterproof wear", "precise tip"], [Color, Style], 6, 48;
    "beauty", "Beauty & Care › Tools › Brushes", "makeup brushes", ["brush set", "makeup sponge", "hair brush", "comb"], ["foundation", "powder", "thick hair", "travel"], &["bamboo", "nylon", "silicone", "beech"], ["soft bristles", "storage pouch", "ergonomic handle"], [Color, PackSize], 5, 44;
    "beauty", "Beauty & Care › Oral › Toothpaste", "oral care", ["toothpaste", "mouthwash", "dental floss", "whitening strips"], ["kids", "sensitive teeth", "fresh breath", "travel"], PLANT, ["fluoride free", "enamel repair", "cavity protection"], [Flavor, PackSize], 4, 30;
    "electronics", "Electronics › Audio › Headphones", "headphones", ["headphones", "earbuds", "headset", "neckband earphones"], ["running", "calls", "gaming", "flights"], METAL, ["deep bass", "built in microphone", "over ear"], [Color, Style], 19, 240;
    "electronics", "Electronics › Audio › Speakers", "speakers", ["speaker", "soundbar", "bookshelf speaker", "party speaker"], ["the patio", "parties", "the television", "the shower"], METAL, ["stereo pairing", "deep bass", "carry strap"], [Color, Style], 24, 320;
    "electronics", "Electronics › Phones › Cables", "charging cables", ["charging cable", "adapter cable", "extension cord", "audio cable"], ["phones", "tablets", "the car", "laptops"], &["nylon", "copper", "silicone", "plastic"], ["braided jacket", "right angle plug", "data transfer"], [Color, Length], 5, 35;
    "electronics", "Electronics › Phones › Cases", "phone cases", ["phone case", "screen protector", "card holder", "phone stand"], ["phones", "tablets", "the desk", "the car"], &["silicone", "leather", "glass", "plastic"], ["raised edges", "wireless charging", "fingerprint resistant"], [Color, Pattern], 7, 50;
    "electronics", "Electronics › Phones › Chargers", "chargers", ["power bank", "wall charger", "car charger", "charging station"], ["travel", "phones", "camping", "the office"], METAL, ["four ports", "led display", "foldable plug"], [Color, Style], 12, 95;
    "electronics", "Electronics › Computers › Keyboards", "keyboards", ["keyboard", "number pad", "mouse", "trackball"], ["gaming", "the office", "small hands", "tablets"], METAL, ["quiet keys", "back light", "wrist rest"], [Color, Style], 15, 160;
    "electronics", "Electronics › Computers › Storage", "storage drives", ["flash drive", "memory card", "solid state drive", "card reader"], ["cameras", "laptops", "backups", "consoles"], METAL, ["data recovery", "key ring", "write protection"], [Color, Capacity], 8, 190;
    "electronics", "Electronics › Computers › Monitors", "monitors", ["monitor", "portable monitor", "monitor arm", "privacy filter"], ["gaming", "the office", "photo editing", "laptops"], METAL, ["anti glare", "height adjustable", "thin bezel"], [Color, Style], 39, 480;
    "electronics", "Electronics › Cameras › Accessories", "camera accessories", ["tripod", "camera strap", "ring light", "camera bag"], ["video calls", "landscapes", "beginners", "travel"], METAL, ["quick release", "ball head", "carrying case"], [Color, Style], 14, 150;
    "electronics", "Electronics › Home › Lamps", "smart lamps", ["lamp", "light bulb", "light strip", "night light"], ["the bedroom", "the desk", "kids", "the hallway"], METAL, ["dimmable light", "motion sensor", "timer function"], [Color, PackSize], 9, 85;
    "furniture", "Home & Kitchen › Furniture › Chairs", "chairs", ["chair", "office chair", "accent chair", "bar stool"], ["the office", "the kitchen", "reading", "gaming"], WOOD, ["lumbar support", "swivel seat", "padded armrests"], [Color, Style], 49, 420;
    "furniture", "Home & Kitchen › Furniture › Tables", "tables", ["coffee table", "side table", "desk", "console table"], ["the hallway", "small rooms", "the office", "the patio"], WOOD, ["cable hole", "drop leaf", "round corners"], [Color, Style], 45, 460;
    "furniture", "Home & Kitchen › Furniture › Shelves", "shelves", ["bookcase", "wall shelf", "shoe rack", "storage cabinet"], ["books", "plants", "the bathroom", "the hallway"], WOOD, ["five tiers", "wall anchor", "glass doors"], [Color, Style], 25, 330;
    "furniture", "Home & Kitchen › Bedding › Sheets", "bed sheets", ["sheet set", "pillowcase set", "duvet cover", "fitted sheet"], ["hot sleepers", "kids", "guests", "winter"], CLOTH, ["deep pocket", "thread count", "pre washed"], [Color, BedSize, Pattern], 18, 140;
    "furniture", "Home & Kitchen › Bedding › Blankets", "blankets", ["blanket", "quilt", "throw blanket", "comforter"], ["the sofa", "winter", "camping", "kids"], CLOTH, ["double sided", "quilted stitching", "light weight"], [Color, BedSize], 19, 150;
    "furniture", "Home & Kitchen › Bedding › Pillows", "pillows", ["pillow", "body pillow", "neck pillow", "cushion"], ["side sleepers", "travel", "the sofa", "reading"], &["down", "foam", "cotton", "latex", "bamboo"], ["cooling gel", "contoured shape", "zippered cover"], [Color, PackSize], 14, 95;
    "furniture", "Home & Kitchen › Decor › Rugs", "rugs", ["rug", "runner rug", "bath mat", "door mat"], ["the hallway", "the kitchen", "the nursery", "the porch"], &["jute", "wool", "cotton", "rubber"], ["low pile", "non slip backing", "woven edges"], [Color, Pattern], 16, 260;
    "furniture", "Home & Kitchen › Decor › Curtains", "curtains", ["curtains", "sheer panels", "blackout drapes", "shower curtain"], ["the bedroom", "the kitchen", "the nursery", "tall windows"], CLOTH, ["light blocking", "rod pocket", "thermal insulated"], [Color, Pattern], 13, 120;
    "furniture", "Home & Kitchen › Kitchen › Cookware", "cookware", ["frying pan", "saucepan", "baking dish", "kettle"], ["eggs", "camping", "induction stoves", "beginners"], METAL, ["oven safe", "non stick", "pour spout"], [Color, Style], 17, 180;
    "furniture", "Home & Kitchen › Kitchen › Storage", "food containers", ["lunch box", "storage jar", "water bottle", "food container"], ["school", "leftovers", "the office", "camping"], &["glass", "steel", "silicone", "plastic"], ["leak proof", "dishwasher safe", "snap lid"], [Color, PackSize], 8, 60;
    "food", "Grocery › Snacks › Bars", "snack bars", ["granola bars", "protein bars", "fruit bars", "oat bars"], ["hiking", "lunch boxes", "breakfast", "athletes"], GRAIN, ["chewy texture", "real fruit", "no added sugar"], [Flavor, PackSize], 6, 45;
    "food", "Grocery › Snacks › Chips", "chips", ["chips", "crackers", "popcorn", "pretzels"], ["parties", "movies", "lunch boxes", "dips"], GRAIN, ["kettle cooked", "lightly salted", "baked crisp"], [Flavor, PackSize], 4, 38;
    "food", "Grocery › Snacks › Nuts", "nuts", ["mixed nuts", "trail mix", "roasted seeds", "nut butter"], ["hiking", "baking", "salads", "the office"], GRAIN, ["dry roasted", "unsalted mix", "no palm oil"], [Flavor, PackSize], 7, 52;
    "food", "Grocery › Drinks › Tea", "tea", ["tea bags", "loose tea", "iced tea mix", "tea sampler"], ["bedtime", "mornings", "summer", "gifts"], &["hibiscus", "mint", "ginger", "rooibos", "jasmine"], ["single origin", "hand picked", "strong brew"], [Flavor, PackSize], 5, 40;
    "food", "Grocery › Drinks › Coffee", "coffee", ["coffee beans", "ground coffee", "instant coffee", "coffee pods"], ["espresso", "mornings", "camping", "cold brew"], &["arabica", "robusta", "mocha", "chicory"], ["medium roast", "dark roast", "single origin"], [Flavor, PackSize], 8, 60;
    "food", "Grocery › Pantry › Sauces", "sauces", ["pasta sauce", "hot sauce", "salad dressing", "marinade"], ["tacos", "grilling", "salads", "noodles"], &["tomato", "garlic", "chili", "sesame", "mustard"], ["extra spicy", "no added sugar", "cold pressed"], [Flavor, PackSize], 4, 36;
    "food", "Grocery › Pantry › Baking", "baking mixes", ["pancake mix", "bread mix", "cake mix", "flour"], ["birthdays", "breakfast", "beginners", "muffins"], GRAIN, ["just add water", "extra fluffy", "cold pressed"], [Flavor, PackSize], 5, 34;
    "food", "Grocery › Breakfast › Cereal", "cereal", ["cereal", "muesli", "granola", "porridge"], ["kids", "breakfast", "athletes", "travel"], GRAIN, ["real fruit", "no added sugar", "crunchy clusters"], [Flavor, PackSize], 5, 42;
];

/// Syllables of brands: one of each.
pub(super) const BRANDS: [&[&str]; 3] = [
    &[
        "Ve", "Tam", "Or", "Lu", "Bri", "Kes", "No", "Fal", "Mi", "Har", "Sol", "Du", "Pel", "Zan",
        "Gri", "Aru", "Ced", "Jo", "Wim", "Ro",
    ],
    &["lo", "ri", "va", "ne", "do", "mi", "sta", "ku", "fe", "lan"],
    &["ra", "k", "sen", "x", "th", "lia", "mont", "ry"],
];

/// Sentences of descriptions; `{head}`, `{brand}`, `{use}`, `{material}` and attributes by their places stand for a product's own.
pub(super) const DESCRIPTIONS: &[&str] = &[
    "The {head} by {brand} is made for {use}. {material} where it counts, {0}, and {1}.",
    "{brand} began with a sketch of a {head} and kept what worked: {0}, {2}, and nothing that gets in the way.",
    "A {head} of {material} that is ready for {use}. Buyers choose it since it is {1} and {0}.",
    "Think of {use}, then of a {head} that goes along. This one is {0}; it is also {2}.",
    "Every {head} leaves the workshop of {brand} checked by hand. It is {1}, {2}, and comes with a note about {material}.",
];

/// Sentences of points, about one attribute.
pub(super) const POINTS: &[&str] = &[
    "{0}: what you notice first on day one and still on day ninety.",
    "{0} by design, so this {head} does its part during {use}.",
    "{0}. Tested by {brand} on a hundred samples before the first sale.",
    "You asked for {0}, and the newest {head} has it.",
    "{0}, with {material} that holds up.",
];

pub(super) const REVIEW_TITLES: &[&str] = &[
    "Does what it says",
    "Better than my old one",
    "Not for me",
    "Would buy again",
    "Good, with one flaw",
];

pub(super) const REVIEW_BODIES: &[&str] = &[
    "I use this {head} for {use} and have nothing to add.",
    "Arrived on time. The {material} feels right, and it really is {0}.",
    "The {head} is fine, the box was not.",
    "Compared three brands; {brand} won, mostly since it is {1}.",
    "Runs a little different from the picture, but {0} as promised.",
];
