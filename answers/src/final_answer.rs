//! The answer that a text comes to.

use crate::effort::Effort;
use crate::equivalence::equal_within;

/// How many answers of a text are held against each other.
const MAX_CANDIDATES: usize = 64;
/// How long a text without any mark may be to be an answer itself.
const MAX_WHOLE: usize = 256;
/// How long a stated answer may be.
const MAX_STATED: usize = 4096;

/// Where the answer stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerForm {
    /// In the first of these forms that occurs; a text of one line without any is the answer.
    #[default]
    Any,
    /// In `\boxed{}`.
    Boxed,
    /// Behind `####`, as GSM8K has it.
    Hashes,
    /// Behind "the answer is", "answer:" and the like.
    Stated,
    /// The whole text is the answer.
    Whole,
}

/// What a text comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinalAnswer {
    /// This.
    Found(String),
    /// Nothing.
    Missing,
    /// Several answers that do not say the same, so that none counts.
    Conflicting,
}

/// The answer that a text comes to.
///
/// Several answers in the form that counts, such as two of `\boxed{}`, have to say the same, in words or as [mathematics](crate::math_equal):
/// otherwise none counts, since who tells several answers would be right too often.
///
/// ```
/// use spar_answers::{AnswerForm, FinalAnswer, final_answer};
///
/// let found = final_answer(r"So it is \boxed{\frac{1}{2}}.", AnswerForm::Any);
/// assert_eq!(found, FinalAnswer::Found(r"\frac{1}{2}".to_owned()));
/// assert_eq!(final_answer(r"\boxed{1} or \boxed{2}", AnswerForm::Any), FinalAnswer::Conflicting);
/// ```
pub fn final_answer(text: &str, form: AnswerForm) -> FinalAnswer {
    let Some(candidates) = candidates(text, form) else { return FinalAnswer::Conflicting };
    agreed(&candidates)
}

/// The last of several answers of a text that has to say its reference, such as a solution that boxes steps too.
pub fn last_answer(text: &str, form: AnswerForm) -> Option<String> {
    candidates(text, form)?.last().map(|it| (*it).to_owned())
}

/// The one answer that all candidates say.
fn agreed(candidates: &[&str]) -> FinalAnswer {
    let Some((last, others)) = candidates.split_last() else { return FinalAnswer::Missing };
    if last.is_empty() {
        return FinalAnswer::Missing;
    }
    // All of them share what one comparison may take.
    let effort = Effort::default();
    let is_same = |other: &&str| other == last || equal_within(last, other, &effort).is_equal();
    match others.iter().all(is_same) {
        true => FinalAnswer::Found((*last).to_owned()),
        false => FinalAnswer::Conflicting,
    }
}

/// All answers of a text in the form that counts, each as it is written; `None` where there are too many to look at.
pub(crate) fn candidates(text: &str, form: AnswerForm) -> Option<Vec<&str>> {
    let mut found = match form {
        AnswerForm::Boxed => boxed(text)?,
        AnswerForm::Hashes => hashes(text),
        AnswerForm::Stated => stated(text),
        AnswerForm::Whole => vec![text.trim()],
        AnswerForm::Any => {
            let mut found = boxed(text)?;
            for look in [hashes as fn(&str) -> Vec<&str>, stated] {
                if found.is_empty() {
                    found = look(text);
                }
            }
            let text = text.trim();
            if found.is_empty() && text.len() <= MAX_WHOLE && !text.contains('\n') {
                found.push(text);
            }
            found
        }
    };
    found.dedup();
    (found.len() <= MAX_CANDIDATES).then_some(found)
}

/// What stands in `\boxed{}` or `\fbox{}`, the outermost ones; `None` where there are too many. One that is not closed is none.
fn boxed(text: &str) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut found: Vec<(usize, usize)> = Vec::new();
    // Of boxes that are open: how deep they are, and where they begin.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => {
                let command = ["\\boxed", "\\fbox"]
                    .into_iter()
                    .find(|it| bytes[at..].starts_with(it.as_bytes()));
                let Some(command) = command else {
                    at += 2;
                    continue;
                };
                at += command.len();
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                if bytes.get(at) == Some(&b'{') {
                    depth += 1;
                    open.push((depth, at + 1));
                    if open.len() > MAX_CANDIDATES {
                        return None;
                    }
                    at += 1;
                } else if let Some(len) = bare_length(&bytes[at..]) {
                    found.push((at, at + len));
                    at += len;
                }
                continue;
            }
            b'{' => depth += 1,
            b'}' => {
                if let Some((at_depth, start)) = open.last().copied()
                    && at_depth == depth
                {
                    open.pop();
                    // What is inside this one was part of it.
                    found.retain(|(inner, _)| *inner < start);
                    found.push((start, at));
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        if found.len() > MAX_CANDIDATES {
            return None;
        }
        at += 1;
    }
    Some(found.into_iter().filter_map(|(start, end)| text.get(start..end)).map(str::trim).collect())
}

/// How long the word behind `\boxed` is, where that has no braces: `\boxed 5`.
fn bare_length(bytes: &[u8]) -> Option<usize> {
    let len = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-./".contains(byte))
        .count();
    (len > 0).then_some(len)
}

/// What stands behind `####` to the end of its line.
fn hashes(text: &str) -> Vec<&str> {
    let of_line = |line: &'_ str| line.rfind("####").map(|at| at + 4);
    let lines = text.lines().filter_map(|line| of_line(line).map(|at| line[at..].trim()));
    last_distinct(lines)
}

/// What is said to be the answer, to the end of its line or sentence.
fn stated(text: &str) -> Vec<&str> {
    const MARKS: [&str; 5] = ["answer is", "answer:", "answer =", "answer is:", "answers are"];
    let of_line = |line: &'_ str| -> Option<usize> {
        let small = line.to_ascii_lowercase();
        MARKS.iter().filter_map(|mark| small.rfind(mark).map(|at| at + mark.len())).max()
    };
    let lines = text.lines().filter_map(|line| of_line(line).map(|at| &line[at..]));
    last_distinct(lines.map(statement).filter(|it| !it.is_empty()))
}

/// The answer at the beginning of what follows a mark.
fn statement(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ":*=_`".contains(c));
    for (open, close) in [("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")] {
        if let Some(inside) = rest.strip_prefix(open)
            && let Some(end) = inside.find(close)
            && is_end(&inside[end + close.len()..])
        {
            return inside[..end].trim();
        }
    }
    let end = rest
        .char_indices()
        .zip(rest.chars().skip(1))
        .find(|((_, c), next)| ".!?".contains(*c) && next.is_whitespace())
        .map_or(rest.len(), |((at, _), _)| at);
    let mut end = end.min(MAX_STATED);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    rest[..end].trim_matches(|c: char| c.is_whitespace() || "*_`.".contains(c))
}

/// Whether nothing comes behind a formula that could be another answer.
fn is_end(rest: &str) -> bool {
    let says_more = |word: &str| matches!(word.to_ascii_lowercase().as_str(), "or" | "and" | "not");
    !rest.contains(|c: char| c == '$' || c == '\\' || c == '=' || c.is_ascii_digit())
        && !rest.split(|c: char| !c.is_alphabetic()).any(says_more)
}

/// Equal neighbours once, and no more than are looked at, with one to tell that there were more.
fn last_distinct<'a>(answers: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for answer in answers {
        if !found.contains(&answer) || found.last() != Some(&answer) {
            found.retain(|known| *known != answer);
            found.push(answer);
        }
        if found.len() > MAX_CANDIDATES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        match final_answer(text, AnswerForm::Any) {
            FinalAnswer::Found(answer) => Some(answer),
            _ => None,
        }
    }

    #[test]
    fn answers_are_found_where_they_usually_stand() {
        for (text, answer) in [
            (r"thus $\boxed{\frac{\sqrt{3}}{2}}$.", r"\frac{\sqrt{3}}{2}"),
            (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
            (r"\fbox{ 7 }", "7"),
            (r"It is \boxed 12.", "12."),
            (r"\boxed{\text{(\boxed{B})}}", r"\text{(\boxed{B})}"),
            (r"\boxed{1} and \boxed{\boxed{1}", "1"),
            ("48 + 24 = 72\n#### 72", "72"),
            ("#### 1,234\n", "1,234"),
            ("The final answer is $\\frac12$. I hope it is correct.", "\\frac12"),
            ("So the answer is **42**.", "42"),
            ("ANSWER: x = 3", "x = 3"),
            ("The answer is 3. It was easy.", "3"),
            ("The answer is 0.5", "0.5"),
            ("The answer is $12$ apples.", "12"),
            ("The answer is $3$ or $4$", "$3$ or $4$"),
            (" 17\n", "17"),
            (r"\boxed{\frac12} = \boxed{0.5}", "0.5"),
            ("The answer is 3. Really.\nThe answer is 3.0", "3.0"),
        ] {
            assert_eq!(found(text).as_deref(), Some(answer), "{text}");
        }
    }

    #[test]
    fn several_answers_that_differ_are_none() {
        for text in [
            r"\boxed{1} \boxed{2}",
            "#### 1\n#### 2",
            "The answer is 1.\nThe answer is 2.",
            &(0..100).map(|n| format!("\\boxed{{{n}}}")).collect::<String>(),
            &"\\boxed{".repeat(1000),
        ] {
            assert_eq!(final_answer(text, AnswerForm::Any), FinalAnswer::Conflicting, "{text}");
        }
        for text in ["", "first line\nsecond line", r"\boxed{", r"\boxed{}"] {
            assert_eq!(final_answer(text, AnswerForm::Boxed), FinalAnswer::Missing, "{text}");
        }
        assert_eq!(final_answer("one\ntwo", AnswerForm::Any), FinalAnswer::Missing);
        assert_eq!(
            last_answer(r"\boxed{1} then \boxed{2}", AnswerForm::Boxed).as_deref(),
            Some("2")
        );
    }

    #[test]
    fn long_texts_take_linear_time() {
        let text = format!("{}\\boxed{{5}}", "{".repeat(5_000_000));
        assert_eq!(found(&text).as_deref(), Some("5"));
        let text = format!("{}the answer is 5", "answer: ".repeat(300_000));
        assert_eq!(found(&text).as_deref(), Some("5"));
    }
}
