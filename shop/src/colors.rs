//! Colours in the names of options.

/// Base colours in the order in which they are looked for; WebShop's list.
const COLORS: &[&str] = &[
    "alabaster",
    "apricot",
    "aqua",
    "ash",
    "asphalt",
    "azure",
    "banana",
    "beige",
    "black",
    "blue",
    "blush",
    "bordeaux",
    "bronze",
    "brown",
    "burgundy",
    "camel",
    "camo",
    "caramel",
    "champagne",
    "charcoal",
    "cheetah",
    "chestnut",
    "chocolate",
    "christmas",
    "coffee",
    "cognac",
    "copper",
    "coral",
    "cranberry",
    "cream",
    "crystal",
    "dark",
    "denim",
    "eggplant",
    "elephant",
    "espresso",
    "fuchsia",
    "gold",
    "granite",
    "grape",
    "graphite",
    "grass",
    "gray",
    "green",
    "grey",
    "heather",
    "indigo",
    "ivory",
    "ivy",
    "khaki",
    "lavender",
    "lemon",
    "leopard",
    "light",
    "lilac",
    "lime",
    "magenta",
    "maroon",
    "mauve",
    "merlot",
    "midnight",
    "mint",
    "mocha",
    "multicolor",
    "mushroom",
    "mustard",
    "natural",
    "navy",
    "nude",
    "olive",
    "orange",
    "peach",
    "pewter",
    "pink",
    "plum",
    "purple",
    "rainbow",
    "red",
    "rose",
    "royal",
    "rust",
    "sand",
    "sapphire",
    "seashell",
    "silver",
    "skull",
    "slate",
    "steel",
    "stone",
    "stonewash",
    "sunflower",
    "tan",
    "taupe",
    "teal",
    "tiger",
    "turquoise",
    "violet",
    "walnut",
    "wheat",
    "white",
    "wine",
    "yellow",
];

/// The first base colour that stands in a text, or else the text.
pub(crate) fn base_color(text: &str) -> &str {
    COLORS.iter().copied().find(|color| text.contains(color)).unwrap_or(text)
}

/// A text that is a base colour, as a whole.
pub(crate) fn exact_color(text: &str) -> Option<&'static str> {
    COLORS.iter().copied().find(|color| *color == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_list_counts() {
        for (text, expected) in [
            ("", ""),
            ("black forest", "black"),
            ("violet lavender", "lavender"),
            ("steelivy fuchsia", "fuchsia"),
            ("123alabaster", "alabaster"),
            ("webshop", "webshop"),
        ] {
            assert_eq!(base_color(text), expected);
        }
        assert_eq!((exact_color("navy"), exact_color("navy blue")), (Some("navy"), None));
    }
}
