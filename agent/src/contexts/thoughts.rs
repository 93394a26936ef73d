//! Thoughts before an answer.

/// The thoughts at the beginning of an answer, and what was said behind them.
pub(crate) fn split_thoughts(text: &str) -> (Option<&str>, &str) {
    const OPEN: &str = "<think>";
    const CLOSE: &str = "</think>";
    // Some templates open the thoughts in the prompt.
    let begun = text.trim_start().strip_prefix(OPEN);
    match begun.unwrap_or(text).split_once(CLOSE) {
        Some((thoughts, said)) => (Some(thoughts.trim()), said.trim_start()),
        // Thoughts that never end say nothing.
        None => begun.map_or((None, text), |thoughts| (Some(thoughts.trim()), "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_found_before_what_was_said() {
        assert_eq!(split_thoughts("go"), (None, "go"));
        assert_eq!(split_thoughts("<think>a</think>\n\ngo"), (Some("a"), "go"));
        assert_eq!(split_thoughts("a</think>go"), (Some("a"), "go"));
        assert_eq!(split_thoughts(" <think>a"), (Some("a"), ""));
    }
}
