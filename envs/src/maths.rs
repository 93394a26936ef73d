//! Problems of school mathematics from seeds.

use rand::RngExt;
use serde_json::Map;
use spar_core::Seed;
use spar_tasks::{QuestionTask, ReferenceAnswer};

/// A problem whose answer is a fraction, a root, a polynomial or a set, with what is right in LaTeX.
pub(crate) fn problem(seed: u64) -> QuestionTask {
    let mut rng = Seed::from_u64(seed).derive("maths", 0).rng();
    let (prompt, answer) = match rng.random_range(0..6_u32) {
        0 => sum_of_fractions(&mut rng),
        1 => root(&mut rng),
        2 => expansion(&mut rng),
        3 => linear_equation(&mut rng),
        4 => quadratic_equation(&mut rng),
        _ => percentage(&mut rng),
    };
    QuestionTask { prompt, answer: Some(ReferenceAnswer::Text(answer)), metadata: Map::new() }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// A fraction in its lowest terms.
fn fraction(above: i64, below: i64) -> String {
    let shared = gcd(above, below).max(1) * below.signum();
    match (above / shared, below / shared) {
        (above, 1) => above.to_string(),
        (above, below) if above < 0 => format!("-\\frac{{{}}}{{{below}}}", -above),
        (above, below) => format!("\\frac{{{above}}}{{{below}}}"),
    }
}

fn sum_of_fractions(rng: &mut impl RngExt) -> (String, String) {
    let mut part = || (rng.random_range(1..10_i64), rng.random_range(2..10_i64));
    let ((a, b), (c, d)) = (part(), part());
    (format!("What is {a}/{b} + {c}/{d}?"), fraction(a * d + c * b, b * d))
}

fn root(rng: &mut impl RngExt) -> (String, String) {
    let free = [2_i64, 3, 5, 6, 7, 10][rng.random_range(0..6_usize)];
    let outside = rng.random_range(2..8_i64);
    let asked = format!("Simplify the square root of {}.", outside * outside * free);
    (asked, format!("{outside}\\sqrt{{{free}}}"))
}

/// `+ n` or `- n`, or nothing, with what stands behind the number.
fn term(number: i64, of: &str) -> String {
    match number {
        0 => String::new(),
        1 if !of.is_empty() => format!(" + {of}"),
        -1 if !of.is_empty() => format!(" - {of}"),
        _ if number < 0 => format!(" - {}{of}", -number),
        _ => format!(" + {number}{of}"),
    }
}

fn nonzero(rng: &mut impl RngExt) -> i64 {
    let size = rng.random_range(1..10_i64);
    if rng.random_bool(0.5) { size } else { -size }
}

fn expansion(rng: &mut impl RngExt) -> (String, String) {
    let (a, b) = (nonzero(rng), nonzero(rng));
    let asked = format!("Expand (x{})(x{}).", term(a, ""), term(b, ""));
    (asked, format!("x^2{}{}", term(a + b, "x"), term(a * b, "")))
}

fn linear_equation(rng: &mut impl RngExt) -> (String, String) {
    let (a, b, c) = (rng.random_range(2..10_i64), nonzero(rng), nonzero(rng));
    (format!("Solve {a}x{} = {c} for x.", term(b, "")), fraction(c - b, a))
}

fn quadratic_equation(rng: &mut impl RngExt) -> (String, String) {
    let one = nonzero(rng);
    let other = one + rng.random_range(1..8_i64);
    let asked = format!(
        "Solve x^2{}{} = 0 for x. Tell all solutions.",
        term(-one - other, "x"),
        term(one * other, "")
    );
    (asked, format!("{one}, {other}"))
}

fn percentage(rng: &mut impl RngExt) -> (String, String) {
    let (share, of) = (rng.random_range(1..20_i64) * 5, rng.random_range(1..50_i64) * 2);
    (format!("What is {share} percent of {of}?"), fraction(share * of, 100))
}

#[cfg(test)]
mod tests {
    use spar_answers::math_equal;
    use spar_tasks::graders::MathAnswer;

    use super::*;

    #[test]
    fn problems_have_the_answers_that_they_should() {
        assert_eq!(fraction(6, -4), "-\\frac{3}{2}");
        assert_eq!(fraction(8, 4), "2");
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..400 {
            let task = problem(seed);
            assert_eq!(problem(seed), task);
            let right = task.answer.unwrap();
            let text = right.texts().remove(0);
            assert!(
                MathAnswer::default().verdict(&format!("\\boxed{{{text}}}"), &right).success,
                "{text}"
            );
            assert!(
                !MathAnswer::default().verdict(&format!("\\boxed{{{text} + 1}}"), &right).success
            );
            kinds.insert(task.prompt.split(' ').next().unwrap().to_owned());
            // What is asked is what is answered.
            if let Some(rest) = task.prompt.strip_prefix("Expand ") {
                assert!(math_equal(rest.trim_end_matches('.'), &text).is_equal(), "{rest} {text}");
            }
            if let Some((asked, _)) =
                task.prompt.strip_prefix("What is ").and_then(|it| it.split_once('?'))
                && asked.contains('/')
            {
                assert!(math_equal(asked, &text).is_equal(), "{asked} {text}");
            }
        }
        assert_eq!(kinds.len(), 4);
    }
}
