//! The judges of WebArena, where no model is asked.
//!
//! Rules of `evaluation_harness/evaluators.py` of WebArena (arXiv 2307.13854, section 3.2): scores are 0 or 1 and are multiplied.

/// A text as it is compared: without blanks around it, without the quotes that it may stand in, in small letters.
fn clean(text: &str) -> String {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"')).unwrap_or(text).to_lowercase()
}

/// Whether an answer is the reference, but for case, blanks around it and quotes.
pub fn exact_match(reference: &str, answer: &str) -> bool {
    clean(reference) == clean(answer)
}

/// Whether a reference stands in an answer. One of a single character has to be a word of it where it is the only one
/// (`is_only`), so that `1` is not found in `10`.
pub fn must_include(reference: &str, answer: &str, is_only: bool) -> bool {
    let (reference, answer) = (clean(reference), clean(answer));
    if is_only && reference.chars().count() == 1 {
        return words(&answer).any(|word| word == reference) || {
            // A mark is a word of its own.
            let is_mark = reference.chars().all(|character| !character.is_alphanumeric());
            is_mark && answer.contains(&reference)
        };
    }
    answer.contains(&reference)
}

/// Whether an answer says what the reference says, by a rule of our own in the place of WebArena's model: all words and
/// numbers of the reference stand in the answer, in any order, and no other number does, unless the reference has none.
pub fn fuzzy_match(reference: &str, answer: &str) -> bool {
    let is_none = |text: &str| ["n/a", "none", "not achievable"].contains(&&*clean(text));
    if is_none(reference) {
        return is_none(answer) || clean(answer).contains("n/a");
    }
    contains_words(reference, answer)
}

/// Whether all words and numbers of a text stand in another one, and no number that it does not have.
pub fn contains_words(reference: &str, answer: &str) -> bool {
    const EMPTY: [&str; 12] =
        ["a", "an", "the", "is", "are", "was", "of", "in", "on", "at", "to", "and"];
    let (reference, answer) = (clean(reference), clean(answer));
    let given: Vec<&str> = words(&answer).collect();
    let wanted: Vec<&str> = words(&reference).filter(|word| !EMPTY.contains(word)).collect();
    let is_number = |word: &&str| word.starts_with(|character: char| character.is_ascii_digit());
    let has_numbers = wanted.iter().any(is_number);
    let has_all = wanted.iter().all(|word| given.contains(word));
    has_all
        && (!has_numbers
            || given.iter().filter(|word| is_number(word)).all(|number| wanted.contains(number)))
}

/// The words and numbers of a text, in small letters.
pub(super) fn words_of(text: &str) -> Vec<String> {
    words(&text.to_lowercase()).map(str::to_owned).collect()
}

/// Words and numbers; points and commas between digits belong to a number.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || ".,:'-".contains(character)))
        .map(|word| word.trim_matches(|character: char| ".,:'-".contains(character)))
        .filter(|word| !word.is_empty())
}

/// Whether an address is one of the references, which stand apart by ` |OR| `: host and path of one of them stand in its own,
/// and it has every parameter of theirs, with one of the values that they give it.
pub fn url_match(reference: &str, address: &str) -> bool {
    let (place, parameters) = parse(address);
    let references: Vec<_> = reference.split(" |OR| ").map(parse).collect();
    if !references.iter().any(|(of, _)| place.contains(of)) {
        return false;
    }
    let mut names: Vec<&str> = references
        .iter()
        .flat_map(|(_, parameters)| parameters.iter().map(|(name, _)| name.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.iter().all(|name| {
        let values =
            references.iter().flat_map(|(_, parameters)| parameters).filter(|(of, _)| of == name);
        values
            .into_iter()
            .any(|(_, value)| parameters.iter().any(|(of, has)| of == name && has == value))
    })
}

/// Host with path, and the parameters that have a value.
fn parse(address: &str) -> (String, Vec<(String, String)>) {
    let address = address.trim().trim_end_matches('/');
    let address = address.split('#').next().unwrap_or_default();
    let (rest, query) = address.split_once('?').unwrap_or((address, ""));
    let place = rest.split_once("://").map_or(rest, |(_, place)| place).to_owned();
    (
        place,
        super::pages::parameters(query)
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_as_webarena_does() {
        assert!(exact_match("Yes", " 'yes' ") && !exact_match("yes", "yes."));
        assert!(
            must_include("12.5", "It costs $12.50.", true)
                && must_include("Oak St", "12 oak st, apt", false)
        );
        assert!(!must_include("1", "10 or 21", true) && must_include("1", "It is 1.", true));
        assert!(must_include("1", "10", false), "one of several is looked for as a text");
        assert!(fuzzy_match("The red house, 12 km", "12 km: it is the house that is red"));
        assert!(!fuzzy_match("12 km", "12 km or 13 km"), "what names all numbers says none");
        assert!(fuzzy_match("N/A", "n/a") && !fuzzy_match("N/A", "12"));
    }

    #[test]
    fn addresses_are_compared_by_place_and_parameters() {
        let one = "http://shop.test/orders?status=open";
        assert!(url_match(one, "http://shop.test/orders?page=2&status=open"));
        assert!(
            !url_match(one, "http://shop.test/orders?status=closed")
                && !url_match(one, "http://shop.test/orders")
        );
        assert!(url_match("http://shop.test/orders/ |OR| http://map.test/", "http://map.test"));
        assert!(
            url_match("http://shop.test/orders", "http://shop.test/orders/12"),
            "gold in predicted"
        );
        assert!(!url_match("http://shop.test/orders/12", "http://shop.test/orders"));
        assert!(url_match("http://a.test/x?q=a%20b", "http://a.test/x?q=a+b"));
    }
}
