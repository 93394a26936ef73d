//! Names that resemble one that is not known.

/// The names that are known, those that resemble `name` first and the others in their own order.
///
/// Two names resemble each other when a third of the longer one, rounded up, suffices as edits: letters inserted,
/// left out, replaced, or swapped with their neighbours.
pub fn closest_first<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .map(|other| {
            let edits = strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
            let longest = name.chars().count().max(other.chars().count());
            (if edits <= longest.div_ceil(3) { edits } else { usize::MAX }, other)
        })
        .collect();
    ranked.sort_by_key(|(edits, _)| *edits);
    ranked.into_iter().map(|(_, other)| other).collect()
}

/// The names that are known, as errors list them: those that resemble `name` first, each in backticks.
pub fn known_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let names = closest_first(name, known).into_iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_resembles_a_name_comes_first_and_the_rest_stays_in_order() {
        let known = ["grpo", "gigpo", "salt", "gae"];
        assert_eq!(closest_first("slat", known), ["salt", "grpo", "gigpo", "gae"]);
        assert_eq!(closest_first("gipgo", known), ["gigpo", "grpo", "salt", "gae"]);
        assert_eq!(closest_first("nothing-like-it", known), known);
        assert_eq!(closest_first("GAE", known)[0], "gae");
        assert_eq!(known_names("sal", ["a_long_name", "salt"]), "`salt`, `a_long_name`");
    }
}
