//! The program in an answer.

/// The program in an answer: what the last fenced block holds, or all of it where there is none. Absent where that is empty.
///
/// A block whose fence is not closed reaches to the end.
pub fn program_in(answer: &str) -> Option<String> {
    let (mut last, mut open): (Option<String>, Option<(usize, String)>) = (None, None);
    for line in answer.split_inclusive('\n') {
        let bare = line.trim();
        let ticks = bare.len() - bare.trim_start_matches('`').len();
        match &mut open {
            Some((fence, block)) => {
                if ticks >= *fence && bare.len() == ticks {
                    last = open.take().map(|(_, block)| block);
                } else {
                    block.push_str(line);
                }
            }
            // What is called something by an inline span is no fence.
            None if ticks >= 3 && !bare[ticks..].contains('`') => {
                open = Some((ticks, String::new()));
            }
            None => {}
        }
    }
    let unclosed = open.map(|(_, block)| block);
    let program = unclosed.or(last).unwrap_or_else(|| answer.to_owned());
    (!program.trim().is_empty()).then_some(program)
}

/// Whether an answer holds a fenced block.
pub fn has_program(answer: &str) -> bool {
    answer.lines().any(|line| line.trim_start().starts_with("```")) && program_in(answer).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_is_the_program() {
        let found = |answer: &str| program_in(answer).unwrap_or_default();
        assert_eq!(found("a\n```python\nx = 1\n```\nb\n```\ny = 2\n```\nend"), "y = 2\n");
        assert_eq!(found("````py\n```\nz\n```\n````"), "```\nz\n```\n");
        assert_eq!(found("def f(): pass"), "def f(): pass");
        assert_eq!(found("```python\nx = 1\n"), "x = 1\n");
        assert_eq!(found("``` `x` ```"), "``` `x` ```");
        assert_eq!(program_in("```\n```"), None);
        assert_eq!(program_in(" "), None);
        assert!(has_program("so\n```python\nx\n```") && !has_program("x = 1"));
    }
}
