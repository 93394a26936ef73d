//! What environments do alike with the calls of an answer.

/// Calls of one answer that are carried out; those behind are answered with [`too_many`].
pub(crate) const MOST_CALLS: usize = 16;
/// The same in benchmarks of others, which have no such bound: more than their solutions ever make at a time.
pub(crate) const MOST_CALLS_OF_BENCHMARKS: usize = 64;

/// What a call is told that stands behind `most` others.
pub(crate) fn too_many(most: usize) -> String {
    format!("At most {most} calls of an answer are carried out.")
}

/// The name of a tool that there is not, as it is quoted: what is beyond 64 characters is cut.
pub(crate) fn clipped(name: &str) -> &str {
    name.char_indices().nth(64).map_or(name, |(end, _)| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(clipped("é"), "é");
        assert_eq!(clipped(&"é".repeat(64)), "é".repeat(64));
        assert_eq!(clipped(&"é".repeat(10_000)), "é".repeat(64));
    }
}
