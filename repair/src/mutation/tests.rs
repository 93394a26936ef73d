use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::MutationError;

const PYTHON: &str = r#""""A module."""
import os

LIMIT = 3


def first(values, default=0, *, strict=True):
    """Documented."""
    if not values and strict is not None:
        raise ValueError("no values")
    elif len(values) == 1:
        return values[0]
    else:
        pass
    total = 0
    for value in values:
        if value in (1, 2):
            continue
        total += value * 2 - LIMIT
        while total > 10:
            total = total // 2
            break
    try:
        os.path.join("ab", "cd", *values)
    except TypeError:
        values.append(default)
    except ValueError:
        return sorted(values, key=len, reverse=False)
    return min(total, default) if strict else [v for v in values if v]


class Cache:
    size: int = 4

    def put(self, key, value):
        self.items[key] = value
        self.grow(key, value)
        return self

    @property
    def full(self) -> bool:
        """Documented as well."""
        count = len(self.items)
        if count >= self.size:
            return True
        return count < 0 or f"{count + 1}" == "ö"
"#;

const RUST: &str = r#"//! A module.
use std::fmt;

/// Documented.
pub fn first(values: &[u32], strict: bool) -> u32 {
    if values.is_empty() && !strict {
        return 0;
    }
    let mut total = 1;
    for value in values {
        if *value == 2 {
            continue;
        }
        total += value * 2;
        while total > 10 {
            total = total / 2 - 1;
            break;
        }
    }
    if let Some(value) = values.first() {
        note("seen", *value);
    } else if strict {
        note("none", 0);
    }
    if strict { total.min(3) } else { total - 1 }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.size >= 4 || true;
        write!(f, "{full}")
    }
}

const fn two() -> u32 { 1 + 1 }

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(1 + 1, 2);
    }
}
"#;

fn all() -> [(Language, &'static str); 2] {
    [(Language::Python, PYTHON), (Language::Rust, RUST)]
}

/// The laws of a mutation of a source.
fn holds(language: Language, source: &str, mutation: &Mutation) {
    let mutant = mutation.apply(source);
    assert!(parses(language, &mutant), "{mutation:?}\n{mutant}");
    assert_ne!(mutant, source);
    assert_eq!(mutation.inverse(source).apply(&mutant), source);
    // Outside of the spans nothing differs, and within them something does.
    let inverse = mutation.inverse(source);
    let (edits, back) = (mutation.edits.as_slice(), inverse.as_slice());
    let (mut from, mut to) = (0, 0);
    for (edit, back) in edits.iter().zip(back) {
        assert_eq!(source[from..edit.span.start], mutant[to..back.span.start]);
        assert_ne!(source[edit.span.clone()], mutant[back.span.clone()]);
        (from, to) = (edit.span.end, back.span.end);
    }
    assert_eq!(source[from..], mutant[to..]);
    assert!(Operator::find(&mutation.operator).is_some());
    assert!(!mutation.lines.is_empty() && !mutation.function.is_empty());
}

#[test]
fn mutants_parse_differ_in_their_spans_and_lead_back() {
    for (language, source) in all() {
        let found = mutations(language, source).unwrap();
        assert!(found.len() > 25, "{}", found.len());
        found.iter().for_each(|mutation| holds(language, source, mutation));
        assert_eq!(mutations(language, source).unwrap(), found, "the same again");
        let distinct: BTreeSet<String> = found.iter().map(|m| m.apply(source)).collect();
        assert_eq!(distinct.len(), found.len());
    }
}

#[test]
fn every_operator_finds_something() {
    for (language, source) in all() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for mutation in mutations(language, source).unwrap() {
            *counts.entry(mutation.operator).or_default() += 1;
        }
        for operator in OPERATORS {
            let has = match language {
                Language::Python => operator.python.is_some(),
                Language::Rust => operator.rust.is_some(),
            };
            assert_eq!(
                counts.contains_key(operator.name),
                has,
                "{} in {language:?}",
                operator.name
            );
        }
    }
}

#[test]
fn documentation_types_imports_tests_and_modules_stay() {
    let found = mutations(Language::Python, PYTHON).unwrap();
    let touched = |text: &str, source: &str, found: &[Mutation]| {
        let at = source.find(text).unwrap();
        let within = |edit: &Edit| edit.span.start >= at && edit.span.end <= at + text.len();
        found.iter().any(|mutation| mutation.edits.as_slice().iter().any(within))
    };
    for text in [
        "\"\"\"A module.\"\"\"",
        "\"\"\"Documented.\"\"\"",
        "import os",
        "LIMIT = 3",
        "-> bool",
        "size: int = 4",
    ] {
        assert!(!touched(text, PYTHON, &found), "{text}");
    }
    assert!(touched("default=0", PYTHON, &found));
    let found = mutations(Language::Rust, RUST).unwrap();
    for text in ["assert_eq!(1 + 1, 2)", "1 + 1 }", "write!(f, \"{full}\")"] {
        assert!(!touched(text, RUST, &found), "{text}");
    }
}

#[test]
fn functions_are_named_with_what_is_around_them() {
    let names = |language, source| -> BTreeSet<String> {
        mutations(language, source).unwrap().into_iter().map(|m| m.function).collect()
    };
    assert_eq!(
        names(Language::Python, PYTHON),
        ["Cache.full", "Cache.put", "first"].map(str::to_owned).into()
    );
    assert_eq!(names(Language::Rust, RUST), ["Cache::fmt", "first"].map(str::to_owned).into());
}

#[test]
fn what_is_no_source_is_told() {
    let wrong = mutations(Language::Python, "def f(:\n").unwrap_err();
    assert_eq!(wrong, MutationError::Syntax { language: "python", line: 1 });
    let large = " ".repeat(MAX_SOURCE_BYTES + 1);
    assert!(matches!(mutations(Language::Rust, &large), Err(MutationError::TooLarge { .. })));
    let deep = format!("def f():\n    return {}1{}\n", "(".repeat(2000), ")".repeat(2000));
    assert!(!mutations(Language::Python, &deep).unwrap().is_empty());
}

/// Statements of Python in a function, nested.
fn python_source() -> impl Strategy<Value = String> {
    let expression = prop_oneof![
        Just("a"),
        Just("b.c"),
        Just("f(a, 1, k=2)"),
        Just("a + b * 3"),
        Just("not a"),
        Just("a and b"),
        Just("x if a < b else y"),
        Just("[i for i in a if i in b]"),
        Just("'tëxt'"),
        Just("\"it's\""),
        Just("True"),
        Just("f'{a + 1}'"),
        Just("lambda q: q - 1"),
        Just("a[1:2]"),
        Just("(yield a)"),
        Just("0x1f"),
        Just("1_000"),
    ];
    let simple = (expression, 0usize..9).prop_map(|(value, form)| match form {
        0 => vec![format!("x = {value}")],
        1 => vec![format!("self.y = {value}")],
        2 => vec![format!("return {value}")],
        3 => vec![format!("g({value})  # why")],
        4 => vec![format!("x += {value}")],
        5 => vec![format!("raise E({value})")],
        6 => vec![format!("assert {value}, 'no'")],
        7 => vec!["x = 1; g(2, 3); del x".to_owned()],
        _ => vec!["\"\"\"text\"\"\"".to_owned()],
    });
    let block = simple.prop_recursive(3, 24, 4, |inner| {
        (prop::collection::vec(inner, 1..4), 0usize..7).prop_map(|(parts, form)| {
            let body: Vec<String> =
                parts.concat().iter().map(|line| format!("    {line}")).collect();
            let with = |heads: &[&str]| -> Vec<String> {
                heads
                    .iter()
                    .flat_map(|head| [vec![(*head).to_owned()], body.clone()].concat())
                    .collect()
            };
            match form {
                0 => with(&["if a > 1:"]),
                1 => with(&["if a:", "elif not b:", "else:"]),
                2 => with(&["for i in a:", "else:"]),
                3 => with(&["while a != 2:"]),
                4 => with(&["try:", "except E:", "except (F, G) as e:", "finally:"]),
                5 => with(&["with a(1, 2) as b:"]),
                _ => with(&["def inner(q=1):", "class K:", "async def other():"]),
            }
        })
    });
    (prop::collection::vec(block, 1..4), any::<bool>()).prop_map(|(blocks, crlf)| {
        let lines: Vec<String> = blocks.concat().iter().map(|line| format!("    {line}")).collect();
        let text = format!("def outer(a, b=2):\n{}\n", lines.join("\n"));
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_for_sources_of_all_shapes(source in python_source()) {
        if let Ok(found) = mutations(Language::Python, &source) {
            for mutation in found {
                holds(Language::Python, &source, &mutation);
            }
        }
    }

    #[test]
    fn whatever_is_given_is_no_panic(text in "[a-z \n:()\"'=+<>{}#é]{0,80}") {
        for language in Language::ALL {
            let _ = mutations(language, &text);
        }
    }
}
