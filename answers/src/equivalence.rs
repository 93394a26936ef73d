//! Whether two answers say the same.

use crate::effort::Effort;
use crate::expression::{Bracket, Comparison, Expression};
use crate::latex::{self, MAX_BYTES, Units};
use crate::real_set::RealSet;
use crate::{Unclear, scalar, words};

/// Whether an answer says what the reference says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Equivalence {
    /// It does.
    Equal,
    /// It does not.
    Different,
    /// That cannot be told, so that it does not count.
    CannotTell(Unclear),
}

impl Equivalence {
    /// Whether they are known to be equal.
    pub fn is_equal(&self) -> bool {
        *self == Self::Equal
    }
}

/// Whether `answer` says what `reference` says, as mathematics: both in LaTeX or as they are typed.
///
/// The two are not alike: of an answer `x = 5` the right side counts where the reference is `5`, and an equation as the reference wants the
/// equation or, where it tells what one variable is, the value. docs/answers.md has the rules.
///
/// ```
/// use spar_answers::math_equal;
///
/// assert!(math_equal(r"\frac{\sqrt{3}}{3}", "1/sqrt(3)").is_equal());
/// assert!(math_equal("(-∞, 2]", r"x \le 2").is_equal());
/// assert!(!math_equal("0.3333", r"\frac13").is_equal());
/// ```
pub fn math_equal(reference: &str, answer: &str) -> Equivalence {
    equal_within(reference, answer, &Effort::default())
}

/// The same, with what comparisons may still take.
pub(crate) fn equal_within(reference: &str, answer: &str, effort: &Effort) -> Equivalence {
    match compare(reference, answer, effort) {
        Ok(true) => Equivalence::Equal,
        Ok(false) => Equivalence::Different,
        Err(unclear) => Equivalence::CannotTell(unclear),
    }
}

fn compare(reference: &str, answer: &str, effort: &Effort) -> Result<bool, Unclear> {
    for text in [reference, answer] {
        if text.len() > MAX_BYTES {
            return Err(Unclear::TooLong { bytes: text.len(), limit: MAX_BYTES });
        }
        if text.chars().all(|c| c.is_whitespace() || "$.{}".contains(c)) {
            return Err(Unclear::Empty);
        }
    }
    let (reference_words, answer_words) = (words::key(reference), words::key(answer));
    if reference_words.is_some() && reference_words == answer_words {
        return Ok(true);
    }
    let read = |units| (latex::read(reference, units), latex::read(answer, units));
    let is_same_text = || words::bare(reference) == words::bare(answer);
    let first = match read(Units::Words) {
        (Ok(one), Ok(other)) => match (Comparing { effort }).same(&one, &other) {
            // What nobody can compute says the same where it is written the same.
            Err(Unclear::NotComputed { .. } | Unclear::TooLarge) if is_same_text() => Ok(true),
            compared => compared,
        },
        // What nobody can read says the same where it is written the same.
        (Err(Unclear::Unreadable { .. }), Err(Unclear::Unreadable { .. })) if is_same_text() => {
            return Ok(true);
        }
        (Err(unclear), _) | (_, Err(unclear)) => Err(unclear),
    };
    let has_units = latex::has_unit_letters(reference) || latex::has_unit_letters(answer);
    if first != Ok(true)
        && has_units
        && let (Ok(reference), Ok(answer)) = read(Units::Letters)
    {
        return Comparing { effort }.same(&reference, &answer);
    }
    first
}

/// One comparison, with what it may take.
#[derive(Debug)]
struct Comparing<'a> {
    effort: &'a Effort,
}

impl Comparing<'_> {
    fn same(&self, reference: &Expression, answer: &Expression) -> Result<bool, Unclear> {
        self.effort.spend(reference, answer)?;
        let (reference, answer) = match (reference, answer) {
            // Assignments are compared as they are: x = 1 is not y = 1.
            (Expression::Relation(..), Expression::Relation(..)) => {
                (reference.clone(), answer.clone())
            }
            (reference, Expression::Relation(..)) => match assigned(answer)? {
                Some(value) => (reference.clone(), value.clone()),
                None => (reference.clone(), answer.clone()),
            },
            (Expression::Relation(first, _), answer) if first.is_of_variables() => {
                match assigned(reference)? {
                    Some(value) => (value.clone(), answer.clone()),
                    None => (reference.clone(), answer.clone()),
                }
            }
            _ => (reference.clone(), answer.clone()),
        };
        self.same_kind(&reference, &answer)
    }

    fn same_kind(&self, reference: &Expression, answer: &Expression) -> Result<bool, Unclear> {
        use Expression as E;
        self.effort.spend(reference, answer)?;
        match (reference, answer) {
            (E::Relation(first, rest), E::Relation(other, others)) => {
                match self.same_relation((first, rest), (other, others)) {
                    Ok(false) => {}
                    decided => return decided,
                }
                self.same_set(reference, answer)
            }
            (E::Matrix(rows), E::Matrix(others)) => {
                let shape = |rows: &Vec<Vec<Expression>>| (rows.len(), rows[0].len());
                if shape(rows) != shape(others) {
                    return Ok(false);
                }
                self.all_same(rows.iter().flatten(), others.iter().flatten())
            }
            (E::Matrix(_), _) | (_, E::Matrix(_)) => Ok(false),
            (E::NamedSet(set), E::NamedSet(other)) => Ok(set == other),
            _ if reference.is_scalar() && answer.is_scalar() => {
                scalar::are_equal(reference, answer)
            }
            _ => self.same_collection(reference, answer),
        }
    }

    /// Points, tuples, sets and lists.
    fn same_collection(
        &self,
        reference: &Expression,
        answer: &Expression,
    ) -> Result<bool, Unclear> {
        use Expression as E;
        match (reference, answer) {
            (
                E::Bracketed { open, close, items },
                E::Bracketed { open: other_open, close: other_close, items: others },
            ) => {
                // Of more than two the brackets say nothing.
                if items.len() == 2 && (open, close) != (other_open, other_close) {
                    return Ok(false);
                }
                self.all_same(items.iter(), others.iter())
            }
            (
                E::Bracketed { open: Bracket::Round, close: Bracket::Round, items },
                E::Set(others) | E::List { items: others, .. },
            ) => self.all_same(items.iter(), others.iter()),
            (E::Bracketed { items, .. }, E::Set(others) | E::List { items: others, .. })
                if items.len() > 2 =>
            {
                self.all_same(items.iter(), others.iter())
            }
            (
                E::Set(items) | E::List { items, .. },
                E::Bracketed { open, close, items: others },
            ) => {
                let is_round = (*open, *close) == (Bracket::Round, Bracket::Round);
                if !is_round && others.len() == 2 {
                    return Ok(false);
                }
                // What names its variables has an order.
                let is_assignment = |it: &Expression| matches!(it, E::Relation(first, _) if first.is_of_variables());
                match items.iter().any(is_assignment) {
                    true => self.all_same(items.iter(), others.iter()),
                    false => self.same_members(items, others),
                }
            }
            (
                E::Set(items) | E::List { items, .. },
                E::Set(others) | E::List { items: others, .. },
            ) => match self.same_members(items, others) {
                Ok(false) => self.same_set(reference, answer),
                decided => decided,
            },
            (E::Set(items), one) | (one, E::Set(items)) if one.is_scalar() => match &items[..] {
                [only] if only.is_scalar() => scalar::are_equal(only, one),
                _ => Ok(false),
            },
            (one, E::List { .. }) | (E::List { .. }, one) if one.is_scalar() => Ok(false),
            _ => self.same_set(reference, answer),
        }
    }

    /// Sets of real numbers, however they are told.
    fn same_set(&self, reference: &Expression, answer: &Expression) -> Result<bool, Unclear> {
        match (RealSet::of(reference), RealSet::of(answer)) {
            (Some(reference), Some(answer)) => reference.is_same(&answer),
            _ => Ok(false),
        }
    }

    fn all_same<'a>(
        &self,
        references: impl Iterator<Item = &'a Expression>,
        answers: impl Iterator<Item = &'a Expression>,
    ) -> Result<bool, Unclear> {
        let (references, answers): (Vec<_>, Vec<_>) = (references.collect(), answers.collect());
        if references.len() != answers.len() {
            return Ok(false);
        }
        for (reference, answer) in references.into_iter().zip(answers) {
            if !self.same(reference, answer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two sets have the same members, each told once or more often.
    fn same_members(
        &self,
        references: &[Expression],
        answers: &[Expression],
    ) -> Result<bool, Unclear> {
        let (references, answers) = (self.distinct(references)?, self.distinct(answers)?);
        if references.len() != answers.len() {
            return Ok(false);
        }
        let mut taken = vec![false; answers.len()];
        for reference in references {
            let mut found = false;
            for (number, answer) in answers.iter().enumerate() {
                if !taken[number] && self.same(reference, answer)? {
                    (taken[number], found) = (true, true);
                    break;
                }
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn distinct<'a>(&self, items: &'a [Expression]) -> Result<Vec<&'a Expression>, Unclear> {
        let mut distinct: Vec<&Expression> = Vec::with_capacity(items.len());
        for item in items {
            let mut is_new = true;
            for known in &distinct {
                if *known == item || self.same_kind(known, item)? {
                    is_new = false;
                    break;
                }
            }
            if is_new {
                distinct.push(item);
            }
        }
        Ok(distinct)
    }

    fn same_relation(
        &self,
        (first, rest): (&Expression, &[(Comparison, Expression)]),
        (other, others): (&Expression, &[(Comparison, Expression)]),
    ) -> Result<bool, Unclear> {
        let (rest, others) = (shortened(first, rest), shortened(other, others));
        if rest.len() != others.len() {
            return Ok(false);
        }
        let (mut left, mut other_left) = (first, other);
        for ((comparison, right), (other_comparison, other_right)) in rest.iter().zip(others) {
            let is_same = self.same_step(
                (left, *comparison, right),
                (other_left, *other_comparison, other_right),
            )?;
            if !is_same {
                return Ok(false);
            }
            (left, other_left) = (right, other_right);
        }
        Ok(true)
    }

    /// Whether two relations of two sides are one: equal sides, or sides whose differences are multiples of each other.
    ///
    /// In one variable a multiple is no answer: whoever asks for x wants `x = 3`, not `2x = 6`.
    fn same_step(
        &self,
        (left, comparison, right): (&Expression, Comparison, &Expression),
        (other_left, other, other_right): (&Expression, Comparison, &Expression),
    ) -> Result<bool, Unclear> {
        let is_scalar =
            [left, right, other_left, other_right].into_iter().all(Expression::is_scalar);
        if comparison.is_equation() != other.is_equation() {
            return Ok(false);
        }
        if !is_scalar {
            return Ok(comparison.is_equation()
                && self.same_kind(left, other_left)?
                && self.same_kind(right, other_right)?);
        }
        let infinite = |it: &Expression| scalar::infinite(it).is_some();
        if infinite(right) || infinite(other_right) || infinite(left) || infinite(other_left) {
            return Ok(comparison == other
                && scalar::are_equal(left, other_left)?
                && scalar::are_equal(right, other_right)?);
        }
        // Rounding is for what is told, not for the difference of two sides.
        if comparison == other && left == other_left {
            return scalar::are_equal(right, other_right);
        }
        let Some(ratio) = scalar::ratio((left, right), (other_left, other_right))? else {
            return Ok(false);
        };
        let wanted = if ratio > 0 { comparison } else { comparison.flipped() };
        Ok(wanted == other || (comparison.is_equation() && other.is_equation()))
    }
}

/// Of `x = a = b` what is told in the end: `x = b`.
fn shortened<'a>(
    first: &Expression,
    rest: &'a [(Comparison, Expression)],
) -> &'a [(Comparison, Expression)] {
    let is_assignment =
        first.is_of_variables() && rest.iter().all(|(comparison, _)| comparison.is_equation());
    match is_assignment {
        true => &rest[rest.len() - 1..],
        false => rest,
    }
}

/// What a chain of equations comes to; `None` where it is none. Numbers in it that are not equal make it no answer: `1 = 2 = 3`.
fn assigned(expression: &Expression) -> Result<Option<&Expression>, Unclear> {
    let Expression::Relation(first, rest) = expression else { return Ok(None) };
    if !rest.iter().all(|(comparison, _)| comparison.is_equation()) {
        return Ok(None);
    }
    let sides: Vec<&Expression> =
        std::iter::once(&**first).chain(rest.iter().map(|(_, it)| it)).collect();
    for pair in sides.windows(2) {
        let is_number =
            |it: &Expression| it.is_scalar() && it.is_constant() && !it.is_of_variables();
        if is_number(pair[0]) && is_number(pair[1]) && !scalar::are_equal(pair[0], pair[1])? {
            return Ok(None);
        }
    }
    Ok(sides.last().copied())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn answers_that_say_the_same_are_equal() {
        for (reference, answer) in [
            (r"\frac12", "0.5"),
            ("1,000", "1000"),
            (r"2\frac{1}{2}", "2.5"),
            ("2 1/2", "5/2"),
            (r"\sqrt{8}", r"2\sqrt2"),
            ("x^2+2x+1", "(x+1)^2"),
            (r"\sin^2 x+\cos^2 x", "1"),
            (r"\sin 30^\circ", r"\frac12"),
            ("1,2", r"\{2,1\}"),
            (r"\pm 3", "3, -3"),
            ("x=3", "3"),
            (r"x \in [1,2]", "[1,2]"),
            (r"(-\infty,0)\cup(0,\infty)", r"\mathbb{R}\setminus\{0\}"),
            (r"1 < x \le 2", "(1, 2]"),
            (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1.0\\2\end{bmatrix}"),
            (r"12\text{ cm}^2", "12"),
            ("12 m", "12"),
            (r"\$5", "5 dollars"),
            (r"\text{No solution}", "no solution"),
            (r"e^{i\pi}", "-1"),
            (r"\sqrt[3]{-8}", "-2"),
            ("5!", "120"),
            (r"\binom{10}{3}", "120"),
            (r"10\%", "10"),
            (r"\frac13", "0.333333"),
            ("x+y=1", "2x+2y=2"),
            (r"y=\frac1x", "xy=1"),
            (r"\int_0^1 x\,dx", r"\int_0^1 x dx"),
            ("2^{100000}", "2^{100000}"),
            ("1e3", "1000"),
            ("(x+1)^{1000}", "(x^2+2x+1)^{500}"),
            (r"\lfloor\sqrt{n-1}\rfloor", r"\lfloor \sqrt{n-1} \rfloor"),
            (r"\vec{v}=(5,9)", "(5,9)"),
            (r"f^{-1}(x)=7x", "7x"),
            (r"\angle ABC=7^\circ", "7"),
            (r"\textbf{(E)}", "E"),
            (r"1.6\times 10^{-19}", "1.6e-19"),
            (r"\frac{1}{7000000}", "0.000000142857"),
        ] {
            assert_eq!(math_equal(reference, answer), Equivalence::Equal, "{reference} {answer}");
        }
    }

    #[test]
    fn answers_that_do_not_are_different() {
        for (reference, answer) in [
            (r"\frac13", "0.3333"),
            ("3", "2.9999999"),
            ("(1,2)", "[1,2]"),
            ("(1,2,3)", "(1,3,2)"),
            ("1,2", "1,2,3"),
            ("5", "1,2,3,4,5"),
            ("3", "1=2=3"),
            ("x=1", "y=1"),
            ("x=3", "2x=6"),
            ("x>0", r"x\ge 0"),
            (r"\sqrt{x^2}", "x"),
            ("10^{100}", "10^{100}+1"),
            ("(x+1)^{1000}", "(x+1)^{1000}+1"),
            ("x^2-1", "1-x^2"),
            (r"\infty", r"-\infty"),
            (r"\text{east}", "west"),
            ("2", r"\begin{pmatrix}2\end{pmatrix}"),
            ("x=1,y=2", "(2,1)"),
            (r"3 \text{ or } 4", "3"),
            (r"1.6\times 10^{-19}", "0.0"),
            (r"10^{-7}", "0.0"),
            (r"\pi\cdot 10^{-9}", "0.000000"),
            (r"\frac{1}{3000000}", "-0.0000003"),
            ("4", "f^{-1}=3"),
        ] {
            assert_eq!(
                math_equal(reference, answer),
                Equivalence::Different,
                "{reference} {answer}"
            );
        }
    }

    #[test]
    fn what_cannot_be_told_does_not_count() {
        let cases = [
            ("", ""),
            ("5", ""),
            (r"\frac10", r"\frac10"),
            ("3", r"3\text{ or 4}"),
            (r"\int x", "x"),
            ("5", "5 6"),
            ("5", "5)"),
            ("0^{-1}", "0^{-1}"),
            (r"\tan 90^\circ", r"\tan 90^\circ"),
        ];
        for (reference, answer) in cases {
            let found = math_equal(reference, answer);
            assert!(matches!(found, Equivalence::CannotTell(_)), "{reference} {answer} {found:?}");
        }
    }

    #[test]
    fn roots_and_the_imaginary_unit_are_not_rounded() {
        let large = r"((\sqrt{2}-({2}\cdot{13})^{3})^{3})";
        for (reference, answer, is_equal) in [
            (format!("{large}+1"), large.to_owned(), false),
            (large.to_owned(), large.to_owned(), true),
            (r"(1+\sqrt2)^{60}+(1-\sqrt2)^{60}".into(), r"(1+\sqrt2)^{60}".into(), false),
            (r"\sqrt{6}^{51}".into(), r"\sqrt2^{51} \sqrt3^{51}".into(), true),
            (r"10^{30}+\sqrt{-4}".into(), "10^{30}+2i".into(), true),
            (r"10^{30}+\sqrt{-4}".into(), "10^{30}-2i".into(), false),
            (r"10^{30}+\sqrt{\frac{8}{27}}".into(), r"10^{30}+\frac{2\sqrt6}{9}".into(), true),
            (r"10^{30}+8^{-\frac12}".into(), r"10^{30}+\frac{\sqrt2}{4}".into(), true),
            (r"10^{30}+8^{-\frac12}".into(), r"10^{30}-\frac{\sqrt2}{4}".into(), false),
            (r"10^{30}+8^{\frac32}".into(), r"10^{30}+16\sqrt2".into(), true),
        ] {
            let found = math_equal(&reference, &answer);
            assert_eq!(found.is_equal(), is_equal, "{reference} {answer} {found:?}");
        }
    }

    #[test]
    fn sets_of_large_numbers_end_soon() {
        let set = |member: &dyn Fn(usize) -> String, count: usize| {
            format!("\\{{{}\\}}", (0..count).map(member).collect::<Vec<_>>().join(","))
        };
        let binomials = set(&|n| format!("\\binom{{{}}}{{2000}}", 9999 - n), 200);
        let factorials = set(&|n| format!("{}!", 1999 - n), 100);
        let sines = set(&|n| format!("\\sin({n}x)"), 1000);
        let edges = (0..400).map(|n| format!("({n}!,\\infty)")).collect::<Vec<_>>().join("\\cup ");
        for answer in [&binomials, &factorials, &sines, &edges] {
            let start = Instant::now();
            let found = math_equal(&answer.replace('1', "2"), answer);
            assert!(start.elapsed().as_secs() < 8, "{answer:.20}: {:?}", start.elapsed());
            assert!(!found.is_equal(), "{answer:.20}");
        }
        // What people write is compared as before.
        let powers = set(&|n| format!("2^{{{n}}}"), 40);
        let turned = set(&|n| format!("{}", 1_u64 << (39 - n)), 40);
        assert!(math_equal(&powers, &turned).is_equal());
    }

    #[test]
    fn hostile_answers_end_soon() {
        let deep =
            |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
        let hostile = [
            deep("(", ")", 5000),
            deep("{", "}", 5000),
            deep("\\sqrt{", "}", 2000),
            deep("\\frac{1}{", "}", 1400),
            "-".repeat(16_000) + "1",
            "1/".repeat(8000) + "1",
            "5".to_owned() + &"!".repeat(16_000),
            "9".repeat(16_000),
            "x^".repeat(8000) + "2",
            "10^{10^{10^{10}}}".to_owned(),
            "(1+x)^{99999999999999999999}".to_owned(),
            "100000!".to_owned(),
            "1/0".to_owned(),
            "\\pm1,".repeat(2700) + "1",
            "1,".repeat(8000) + "1",
            "\\{".repeat(5000),
            "|".repeat(16_000),
            "1".repeat(10_000_000),
            "\u{0}\u{202e}\u{1f600}".to_owned(),
            "\\begin{pmatrix}".repeat(1000),
            "x_{".repeat(5000),
            (0..700).map(|n| format!("x_{{{n}}}^{{99}}+")).collect::<String>() + "1",
        ];
        for answer in &hostile {
            for reference in ["7", answer.as_str()] {
                let start = Instant::now();
                let found = math_equal(reference, answer);
                let took = start.elapsed();
                let shown: String = answer.chars().take(30).collect();
                assert!(took.as_millis() < 1500, "{shown}: {took:?} {found:?}");
                if reference == "7" {
                    assert!(!found.is_equal(), "{shown}");
                }
            }
        }
    }
}

#[cfg(test)]
mod laws {
    use proptest::prelude::*;

    use super::*;

    /// A formula of one or two variables, in LaTeX.
    fn formula() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            (1..50_u32).prop_map(|n| n.to_string()),
            Just("x".to_owned()),
            Just("y".to_owned()),
            Just(r"\pi".to_owned()),
            (2..9_u32).prop_map(|n| format!(r"\sqrt{{{n}}}")),
        ];
        leaf.prop_recursive(4, 16, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}+{b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}-{b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!(r"{{{a}}} \cdot {{{b}}}")),
                (inner.clone(), 2..4_u32).prop_map(|(a, n)| format!("{{({a})}}^{{{n}}}")),
                inner.prop_map(|a| format!(r"\frac{{{a}}}{{7}}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_formula_equals_itself_rewritten_and_nothing_else(a in formula(), b in formula()) {
            prop_assert!(math_equal(&a, &a).is_equal());
            let turned = math_equal(&format!("{a}+{b}"), &format!("{b} + {a}"));
            prop_assert!(turned.is_equal(), "{a} {b} {turned:?}");
            let factored = math_equal(&format!("({a})({a}+{b})"), &format!("({a})^2 + ({a})({b})"));
            prop_assert!(factored.is_equal(), "{a} {b} {factored:?}");
            prop_assert_eq!(math_equal(&format!("{a}+1"), &a), Equivalence::Different);
            prop_assert_eq!(math_equal(&a, &b).is_equal(), math_equal(&b, &a).is_equal());
        }

        #[test]
        fn nothing_that_is_written_breaks_it(a in "[-+*/^_{}()\\[\\]\\\\a-z0-9.,<>=|!% ]{0,40}", b in ".{0,40}") {
            let _ = (math_equal(&a, &b), math_equal(&b, &a), math_equal(&a, &a));
            let _ = (crate::final_answer(&b, crate::AnswerForm::Any), crate::choice(&b, 4));
        }
    }
}
