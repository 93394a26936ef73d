//! The nouns of a product's name.

/// Words of names that are no nouns: of closed classes, and adjectives, verbs and adverbs that names of products have.
const OTHERS: &[&str] = &[
    "a",
    "about",
    "above",
    "across",
    "active",
    "adult",
    "after",
    "against",
    "all",
    "along",
    "also",
    "an",
    "and",
    "any",
    "are",
    "around",
    "as",
    "at",
    "authentic",
    "be",
    "before",
    "behind",
    "below",
    "beneath",
    "beside",
    "best",
    "better",
    "between",
    "big",
    "bold",
    "both",
    "bright",
    "built",
    "but",
    "by",
    "can",
    "casual",
    "classic",
    "clean",
    "clear",
    "cold",
    "compact",
    "complete",
    "cool",
    "cute",
    "dark",
    "deep",
    "double",
    "dry",
    "dual",
    "each",
    "easy",
    "either",
    "elegant",
    "every",
    "extra",
    "fast",
    "fine",
    "firm",
    "flat",
    "for",
    "free",
    "fresh",
    "from",
    "full",
    "fun",
    "gentle",
    "good",
    "great",
    "hard",
    "heavy",
    "her",
    "high",
    "his",
    "hot",
    "huge",
    "i",
    "ideal",
    "in",
    "inside",
    "into",
    "is",
    "it",
    "its",
    "kosher",
    "large",
    "light",
    "long",
    "loose",
    "low",
    "made",
    "maximum",
    "may",
    "medium",
    "mini",
    "modern",
    "more",
    "most",
    "multi",
    "my",
    "natural",
    "neutral",
    "new",
    "next",
    "nice",
    "no",
    "non",
    "nor",
    "not",
    "of",
    "off",
    "old",
    "on",
    "one",
    "only",
    "onto",
    "open",
    "or",
    "organic",
    "other",
    "our",
    "out",
    "outside",
    "over",
    "per",
    "perfect",
    "plain",
    "plus",
    "premium",
    "pure",
    "quick",
    "raw",
    "real",
    "regular",
    "rich",
    "round",
    "safe",
    "semi",
    "shiny",
    "short",
    "simple",
    "single",
    "slim",
    "slow",
    "small",
    "smart",
    "smooth",
    "soft",
    "solid",
    "some",
    "square",
    "strong",
    "super",
    "sweet",
    "tall",
    "that",
    "the",
    "their",
    "these",
    "thick",
    "thin",
    "this",
    "those",
    "through",
    "tight",
    "tiny",
    "to",
    "toward",
    "triple",
    "true",
    "two",
    "ultra",
    "under",
    "unique",
    "universal",
    "until",
    "up",
    "upon",
    "very",
    "via",
    "warm",
    "was",
    "we",
    "wet",
    "which",
    "whole",
    "wide",
    "wild",
    "will",
    "with",
    "within",
    "without",
    "yet",
    "you",
    "your",
];

/// Endings of adjectives and adverbs.
const ENDINGS: &[&str] =
    &["able", "ible", "ful", "less", "ous", "ive", "ish", "ically", "fully", "ently", "antly"];

/// The nouns of a name in lower case, in their order, doubles kept.
///
/// WebShop asks a statistical tagger (spaCy's `en_core_web_sm`), which calls nearly every content word of a name a noun. Here a
/// rule stands for it: a run of letters is a noun unless it is one of a list of other words, or longer than five letters and ends
/// as adjectives do. Runs end at whatever is no letter, as the tagger's do at blanks, hyphens and other marks; runs with
/// a digit are numbers or measures.
pub fn nouns(name: &str) -> Vec<String> {
    let runs = name.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    let mut found = Vec::new();
    for run in runs {
        let word = run.trim_matches(['\'', '’']);
        // The ending of a genitive is a word of its own.
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
        let is_word =
            word.chars().count() > 1 && word.chars().all(|c| c.is_alphabetic() || c == '\'');
        if !is_word {
            continue;
        }
        let word = word.to_lowercase();
        let is_other = OTHERS.binary_search(&word.as_str()).is_ok()
            || word.len() > 5 && ENDINGS.iter().any(|ending| word.ends_with(ending));
        if !is_other {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(OTHERS.is_sorted());
    }

    #[test]
    fn what_names_a_thing_is_a_noun() {
        assert_eq!(
            nouns("Velora Men's Non-Slip Waterproof Hiking Boots for the Trail, 2 Pack, VX4821"),
            ["velora", "men", "slip", "waterproof", "hiking", "boots", "trail", "pack"]
        );
        assert!(nouns("The 3 of 12\" (A)").is_empty());
        assert_eq!(nouns(&"Schuh ".repeat(100_000)).len(), 100_000);
    }
}
