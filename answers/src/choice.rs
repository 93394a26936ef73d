//! Answers that are a letter.

use crate::final_answer::{AnswerForm, candidates};
use crate::words;

/// The choice that a text comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The number of the choice, from 0: `A` is 0.
    Found(usize),
    /// None.
    Missing,
    /// Several, so that none counts.
    Conflicting,
}

/// The choice that a text comes to, out of `num_choices` (at most 26), which are called by letters.
///
/// It is found as [final answers](crate::final_answer) are, or else in the last line: `B`, `(b)`, `**B**`, `B.`, `B) Paris`, `option B`,
/// `\boxed{\text{B}}`. Who names several has chosen none.
///
/// ```
/// use spar_answers::{Choice, choice};
///
/// assert_eq!(choice("I think so. The answer is (C).", 4), Choice::Found(2));
/// assert_eq!(choice("A, B, C or D", 4), Choice::Conflicting);
/// ```
pub fn choice(text: &str, num_choices: usize) -> Choice {
    let Some(mut found) = candidates(text, AnswerForm::Any) else { return Choice::Conflicting };
    if found.is_empty() {
        found.extend(text.trim().lines().next_back());
    }
    let mut chosen = Choice::Missing;
    for candidate in found {
        match (letter(candidate, num_choices), chosen) {
            (Choice::Found(new), Choice::Found(known)) if new != known => {
                return Choice::Conflicting;
            }
            (Choice::Found(new), _) => chosen = Choice::Found(new),
            (Choice::Conflicting, _) => return Choice::Conflicting,
            (Choice::Missing, _) => {}
        }
    }
    chosen
}

/// The letter that an answer is, or begins with.
fn letter(answer: &str, num_choices: usize) -> Choice {
    let number_of = |c: char| {
        let number =
            usize::try_from(u32::from(c.to_ascii_uppercase())).unwrap_or(0).wrapping_sub(65);
        (c.is_ascii_alphabetic() && number < num_choices.min(26)).then_some(number)
    };
    // The whole of it, in whatever type it is set.
    let bare = words::bare(answer);
    let alone = bare.trim_matches(|c| "()[].,:;!".contains(c));
    let mut chars = alone.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        return number_of(only).map_or(Choice::Missing, Choice::Found);
    }
    let mut rest = answer.trim().trim_start_matches(|c| "*_`$(".contains(c)).trim_start();
    for command in ["\\textbf{", "\\text{", "\\mathrm{"] {
        rest = rest.strip_prefix(command).unwrap_or(rest).trim_start_matches(|c| "*( ".contains(c));
    }
    for word in ["option", "choice", "answer"] {
        let head = rest.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word));
        if head.is_some() {
            rest = rest[word.len()..]
                .trim_start_matches(|c: char| c.is_whitespace() || "*(:".contains(c));
        }
    }
    let mut chars = rest.chars();
    let Some(number) = chars.next().filter(char::is_ascii_uppercase).and_then(number_of) else {
        return Choice::Missing;
    };
    let behind = chars.as_str();
    // A word, or the article of one.
    let is_marked = behind.is_empty() || behind.starts_with(|c| ").:*,;]}\\".contains(c));
    let is_article = number == 0 || rest.starts_with('I');
    if !is_marked && (is_article || !behind.starts_with(char::is_whitespace)) {
        return Choice::Missing;
    }
    // `\text` and the like are no choices.
    let others = behind.split(|c: char| !c.is_alphanumeric());
    let mut others = others.filter_map(|word| {
        let mut chars = word.chars();
        let only = chars.next().filter(|_| chars.next().is_none())?;
        only.is_ascii_uppercase().then(|| number_of(only)).flatten()
    });
    match others.any(|other| other != number) {
        true => Choice::Conflicting,
        false => Choice::Found(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_they_are_usually_written() {
        for text in [
            "B",
            "b",
            "(B)",
            "B.",
            "**B**",
            "B) Paris",
            "B: 12",
            "Option B",
            "choice (B)",
            r"\boxed{B}",
            r"\boxed{\text{B}}",
            r"\boxed{\textbf{(B)}\ 12}",
            "The answer is B.",
            "The answer is (b).",
            "Answer: B",
            "the correct answer is **B**",
            "#### B",
            "I weigh them.\nA is wrong.\nB",
            "Because of this,\nthe answer is B because it is",
            "final answer: $B$",
            r"\boxed{\mathrm{(B)}}",
        ] {
            assert_eq!(choice(text, 4), Choice::Found(1), "{text}");
        }
    }

    #[test]
    fn several_letters_are_no_choice() {
        for text in [
            "A, B, C, D",
            "B or C",
            "(A) (B)",
            r"\boxed{A} \boxed{B}",
            "B and C",
            "The answer is A.\nThe answer is C.",
            "B) or D)",
        ] {
            assert_eq!(choice(text, 4), Choice::Conflicting, "{text}");
        }
        for text in ["", "E", "Paris", "A dog", "ABCD", "Both are right", "?", "1"] {
            assert_eq!(choice(text, 4), Choice::Missing, "{text}");
        }
        assert_eq!(choice("E", 5), Choice::Found(4));
        assert_eq!(choice("A", 0), Choice::Missing);
    }
}
