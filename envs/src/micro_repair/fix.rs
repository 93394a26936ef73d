//! How a program becomes another, line by line.

/// One change of a program's lines, which are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// Line and its text.
    Replace(usize, String),
    /// The line in front, or 0, and the text of a new one.
    Insert(usize, String),
    /// A line that goes.
    Delete(usize),
}

impl Edit {
    /// The first of the changes that lead from some lines to others; absent where they are equal.
    pub(super) fn towards(now: &[String], right: &[String]) -> Option<Self> {
        let same = now.iter().zip(right).take_while(|(now, right)| now == right).count();
        let (left, wanted) = (&now[same..], &right[same..]);
        let pairs = left.iter().rev().zip(wanted.iter().rev());
        let behind = pairs.take_while(|(now, right)| now == right).count();
        match (left.len() - behind, wanted.len() - behind) {
            (0, 0) => None,
            (0, _) => Some(Self::Insert(same, wanted[0].clone())),
            (_, 0) => Some(Self::Delete(same + 1)),
            _ => Some(Self::Replace(same + 1, wanted[0].clone())),
        }
    }

    /// Carries it out; `false` where there is no such line.
    pub(super) fn apply(self, lines: &mut Vec<String>) -> bool {
        match self {
            Self::Replace(line, text) => match line.checked_sub(1).and_then(|it| lines.get_mut(it))
            {
                Some(old) => *old = text,
                None => return false,
            },
            Self::Insert(line, text) if line <= lines.len() => lines.insert(line, text),
            Self::Delete(line) if (1..=lines.len()).contains(&line) => drop(lines.remove(line - 1)),
            Self::Insert(..) | Self::Delete(_) => return false,
        }
        true
    }
}

/// `text` as it stands at a place: with white space in front it is left as it is, else it gets that of `like`, and of a step more
/// where `like` opens a block that it goes into.
pub(super) fn indented(text: &str, like: &str, goes_into: bool) -> String {
    if text.starts_with([' ', '\t']) {
        return text.to_owned();
    }
    let space = &like[..like.len() - like.trim_start().len()];
    let step = match like.trim_end().chars().next_back() {
        Some(':') if goes_into => "    ",
        Some('{') if goes_into => "  ",
        _ => "",
    };
    format!("{space}{step}{text}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn changes_lead_to_the_other_lines(
            now in prop::collection::vec("[ab]", 0..6),
            right in prop::collection::vec("[ab]", 0..6),
        ) {
            let mut lines = now;
            for _ in 0..12 {
                let Some(edit) = Edit::towards(&lines, &right) else { break };
                prop_assert!(edit.apply(&mut lines));
            }
            prop_assert_eq!(lines, right);
        }
    }

    #[test]
    fn lines_that_are_not_there_cannot_be_changed() {
        let mut lines = vec!["a".to_owned()];
        let text = String::new;
        for edit in [
            Edit::Replace(0, text()),
            Edit::Replace(2, text()),
            Edit::Insert(2, text()),
            Edit::Insert(usize::MAX, text()),
            Edit::Delete(0),
            Edit::Delete(usize::MAX),
        ] {
            assert!(!edit.apply(&mut lines), "{lines:?}");
        }
        assert_eq!(lines, ["a"]);
    }

    #[test]
    fn text_without_white_space_in_front_gets_that_of_its_place() {
        assert_eq!(indented("s += x", "    s = x", false), "    s += x");
        assert_eq!(indented("s += x", "    if x > 1:", false), "    s += x");
        assert_eq!(indented("s += x", "    if x > 1:", true), "        s += x");
        assert_eq!(indented("s += x;", "  if (x > 1) {", true), "    s += x;");
        assert_eq!(indented("  s += x", "    if x > 1:", true), "  s += x");
        assert_eq!(indented("", "", true), "");
    }
}
