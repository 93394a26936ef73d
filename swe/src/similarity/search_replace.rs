use std::sync::LazyLock;

use indexmap::IndexMap;
use regex::Regex;

use super::{Files, MAX_TEXT_BYTES, SimilarityError};

/// What is wrong with an output, in the words of the reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A tag is missing, or there more than once.
    #[error("count of {tag} is not 1")]
    TagCount {
        /// The tag.
        tag: &'static str,
    },
    /// Nothing stands between the tags of the thought.
    #[error("Thought is empty")]
    NoThought,
    /// The solution has no block that can be read.
    #[error("No valid search blocks found")]
    NoBlocks,
    /// A block replaces a text by itself.
    #[error("Search and replace blocks are identical")]
    Unchanged,
    /// A block searches for what is not there.
    #[error("Search block not found in the code: {search}")]
    NotFound {
        /// The text with the line end before it.
        search: String,
    },
}

/// Splits an output into its thought and its solution, both without blanks around them.
///
/// # Errors
///
/// [`FormatError::TagCount`] and [`FormatError::NoThought`].
pub fn split_output(output: &str) -> Result<(&str, &str), FormatError> {
    for tag in ["<think>", "</think>", "<solution>", "</solution>"] {
        if output.matches(tag).count() != 1 {
            return Err(FormatError::TagCount { tag });
        }
    }
    let between = |start: &str, end: &str| {
        let text = output.split_once(start).map_or("", |(_, text)| text);
        crate::python_text::strip(text.split_once(end).map_or(text, |(text, _)| text))
    };
    let thought = between("<think>", "</think>");
    if thought.is_empty() {
        return Err(FormatError::NoThought);
    }
    Ok((thought, between("<solution>", "</solution>")))
}

/// The SEARCH/REPLACE blocks of a solution: for each path what is searched and what it is replaced by, in the order in which they
/// stand.
pub fn parse_edits(solution: &str) -> IndexMap<&str, Vec<(&str, &str)>> {
    static BLOCK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            "```.*?\n### (.*)\n<<<<<<< SEARCH\n((?s:.*?))\n=======\n((?s:.*?))\n>>>>>>> REPLACE\n```",
        )
        .expect("a pattern that was written here")
    });
    let mut edits: IndexMap<&str, Vec<(&str, &str)>> = IndexMap::new();
    for groups in BLOCK.captures_iter(solution) {
        let text = |group| groups.get(group).map_or("", |text: regex::Match<'_>| text.as_str());
        edits.entry(text(1)).or_default().push((text(2), text(3)));
    }
    edits
}

/// Applies edits, every one to all places where whole lines begin with what it searches.
///
/// # Errors
///
/// The outer one is [`SimilarityError::TooLarge`], the inner one [`FormatError::Unchanged`] or [`FormatError::NotFound`].
pub fn apply_edits(
    code: &Files,
    edits: &IndexMap<&str, Vec<(&str, &str)>>,
) -> Result<Result<Files, FormatError>, SimilarityError> {
    let mut changed = Files::new();
    for (path, edits) in edits {
        let mut content = format!("\n{}", code.get(*path).map_or("", String::as_str));
        for (search, replace) in edits {
            if search == replace {
                return Ok(Err(FormatError::Unchanged));
            }
            let (search, replace) = (format!("\n{search}"), format!("\n{replace}"));
            let places = content.matches(&search).count();
            if places == 0 {
                return Ok(Err(FormatError::NotFound { search }));
            }
            let grown = places.saturating_mul(replace.len()).saturating_add(content.len());
            if grown > MAX_TEXT_BYTES {
                return Err(SimilarityError::TooLarge);
            }
            content = content.replace(&search, &replace);
        }
        content.remove(0);
        changed.insert((*path).to_owned(), content);
    }
    Ok(Ok(changed))
}
