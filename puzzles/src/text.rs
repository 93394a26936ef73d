//! How Python writes lists and floats, for questions and answers.

use std::fmt::Display;

use spar_python::repr_str;

/// Items with a separator between them.
pub(crate) fn joined<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push_str(separator);
        }
        let _ = write!(out, "{item}");
    }
    out
}

/// `str()` of a list whose items are written as they are.
pub(crate) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", joined(items, ", "))
}

/// `str()` of a list of texts.
pub(crate) fn list_of_texts<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    list(items.into_iter().map(|item| repr_str(item.as_ref())))
}

/// A matrix in lines, its cells with spaces between them.
pub(crate) fn matrix<T: Display>(rows: &[Vec<T>]) -> String {
    joined(rows.iter().map(|row| joined(row, " ")), "\n")
}

/// `round(value, digits)` of a float.
pub(crate) fn rounded(value: f64, digits: usize) -> f64 {
    match value.is_finite() {
        true => format!("{value:.digits$}").parse().expect("Rust reads what it writes"),
        false => value,
    }
}

/// A text in lower case with a capital at the beginning of every word, as `str.title()` has it for letters with one case
/// mapping.
pub(crate) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for character in text.chars() {
        match in_word {
            true => out.extend(character.to_lowercase()),
            false => out.extend(character.to_uppercase()),
        }
        in_word = character.is_lowercase() || character.is_uppercase();
    }
    out
}

/// `format(value, ".{digits}g")` of a finite float.
pub(crate) fn general(value: f64, digits: usize) -> String {
    let written = format!("{value:.places$e}", places = digits - 1);
    let (mantissa, exponent) = written.split_once('e').expect("it has an exponent");
    let exponent: i64 = exponent.parse().expect("it is a number");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..digits as i64).contains(&exponent) {
        let places = (digits as i64 - 1 - exponent) as usize;
        return trimmed(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_are_written_as_python_does() {
        for (value, written) in [
            (0.5, "0.5"),
            (1.0, "1"),
            (3.0517578125e-05, "3.051757812e-05"),
            (0.0, "0"),
            (1e10, "1e+10"),
        ] {
            assert_eq!(general(value, 10), written);
        }
        assert_eq!(list_of_texts(["a", "b'"]), r#"['a', "b'"]"#);
        assert_eq!((title("it's MONDAY"), rounded(2.675, 2)), ("It'S Monday".to_owned(), 2.67));
    }
}
