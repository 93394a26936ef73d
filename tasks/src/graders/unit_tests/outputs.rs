//! Whether what a program gave is what it had to give.

use serde_json::Value;

/// How far floating-point numbers may be apart, relative to the right one, and absolutely.
const RELATIVE: f64 = 1e-6;
const ABSOLUTE: f64 = 1e-9;

/// Whether a program wrote what it had to: the same words on the same lines.
///
/// White space at the ends of lines, blank lines at the end, and how words are set apart say nothing. Words that are decimal
/// numbers are compared as numbers where the right one has a point or an exponent: within 1e-6 of it.
///
/// Source: the checkers of APPS (arXiv 2105.09938) and LiveCodeBench (arXiv 2403.07974), without their comparison of lines as
/// sets, by which lines in any order are right.
pub(super) fn is_same_output(found: &str, right: &str) -> bool {
    let lines = |text: &str| -> Vec<Vec<String>> {
        let lines = text.trim_end().lines();
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let (found, right) = (lines(found), lines(right));
    let is_same_line = |(found, right): (&Vec<String>, &Vec<String>)| {
        found.len() == right.len()
            && found.iter().zip(right).all(|(found, right)| is_same_word(found, right))
    };
    found.len() == right.len() && found.iter().zip(&right).all(is_same_line)
}

fn is_same_word(found: &str, right: &str) -> bool {
    if found == right {
        return true;
    }
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
            && word.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c))
    };
    if !is_number(found) || !is_number(right) || !right.contains(['.', 'e', 'E']) {
        return false;
    }
    match (found.parse::<f64>(), right.parse::<f64>()) {
        (Ok(found), Ok(right)) => is_close(found, right),
        _ => false,
    }
}

fn is_close(found: f64, right: f64) -> bool {
    found == right
        || found.is_finite()
            && right.is_finite()
            && (found - right).abs() <= ABSOLUTE.max(RELATIVE * right.abs())
}

/// Whether a function returned what it had to; `found` is [plain](super::values::plain).
pub(super) fn is_same_value(found: &Value, right: &Value) -> bool {
    match (found, right) {
        // True is 1 there.
        (Value::Bool(found), _) if right.is_number() => {
            is_same_value(&i32::from(*found).into(), right)
        }
        (_, Value::Bool(right)) if found.is_number() => {
            is_same_value(found, &i32::from(*right).into())
        }
        (Value::Number(found), Value::Number(right)) => {
            let whole = |number: &serde_json::Number| {
                number.as_i64().map(i128::from).or(number.as_u64().map(i128::from))
            };
            match (whole(found), whole(right)) {
                (Some(found), Some(right)) => found == right,
                _ => match (found.as_f64(), right.as_f64()) {
                    (Some(found), Some(right)) => is_close(found, right),
                    _ => false,
                },
            }
        }
        (Value::Array(found), Value::Array(right)) => {
            found.len() == right.len()
                && found.iter().zip(right).all(|(found, right)| is_same_value(found, right))
        }
        (Value::Object(found), Value::Object(right)) => {
            found.len() == right.len()
                && found.iter().all(|(key, value)| {
                    right.get(key).is_some_and(|right| is_same_value(value, right))
                })
        }
        _ => found == right,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_compared_word_by_word() {
        for (found, right, is_same) in [
            ("1 2\n3\n", "1  2 \n3", true),
            ("1 2 3", "1 2\n3", false),
            ("0.3333333", "0.33333334", true),
            ("0.34", "0.33", false),
            ("3", "3.0", true),
            ("3.0", "3", false),
            ("nan", "nan", true),
            ("inf", "1.0", false),
            ("YES", "yes", false),
            ("", "", true),
            ("", "0", false),
            ("b\na", "a\nb", false),
            ("1e400", "1e300", false),
        ] {
            assert_eq!(is_same_output(found, right), is_same, "{found:?} {right:?}");
        }
    }

    #[test]
    fn values_are_compared_as_python_compares_them_but_for_tuples() {
        for (found, right, is_same) in [
            (json!([1, 2.0]), json!([1.0, 2]), true),
            (json!(0.1 + 0.2), json!(0.3), true),
            (json!("1"), json!(1), false),
            (json!(true), json!(1), true),
            (json!(0), json!(true), false),
            (json!({ "a": [1] }), json!({ "a": [1] }), true),
            (json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), false),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64), false),
            (json!(null), json!([]), false),
        ] {
            assert_eq!(is_same_value(&found, &right), is_same, "{found} {right}");
        }
    }
}
