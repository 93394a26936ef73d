//! What programs are about.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_sandbox::interpreter::Language;

use super::program::{
    Binary, Compare, Expression, Function, Name, Program, Statement, Type, add, binary, compare,
    int, item, length, name,
};
use super::render;

/// How much a program has in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// One formula, one choice or one loop.
    Easy,
    /// A loop with a condition.
    Medium,
    /// Two functions, two loops, or a state that is kept.
    Hard,
}

/// What a program is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Formula,
    Choice,
    Fold,
    FoldIf,
    First,
    Any,
    Select,
    Letters,
    Span,
    Digits,
    Helper,
    Pairs,
    Neighbours,
    Tally,
    Longest,
}

impl Level {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }

    /// Its families.
    pub(super) fn families(self) -> &'static [Family] {
        match self {
            Self::Easy => &[Family::Formula, Family::Choice, Family::Fold],
            Self::Medium => &[
                Family::FoldIf,
                Family::First,
                Family::Any,
                Family::Select,
                Family::Letters,
                Family::Span,
                Family::Digits,
            ],
            Self::Hard => {
                &[Family::Helper, Family::Pairs, Family::Neighbours, Family::Tally, Family::Longest]
            }
        }
    }
}

impl Family {
    /// Its name, a tag of tasks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Formula => "formula",
            Self::Choice => "choice",
            Self::Fold => "fold",
            Self::FoldIf => "fold-if",
            Self::First => "first",
            Self::Any => "any",
            Self::Select => "select",
            Self::Letters => "letters",
            Self::Span => "span",
            Self::Digits => "digits",
            Self::Helper => "helper",
            Self::Pairs => "pairs",
            Self::Neighbours => "neighbours",
            Self::Tally => "tally",
            Self::Longest => "longest",
        }
    }

    /// A program of it, what it is to do in words, and what it is tried on.
    pub(super) fn draw(self, rng: &mut dyn Rng, language: Language) -> Drawn {
        let words = Words { language };
        match self {
            Self::Formula => formula(rng, words),
            Self::Choice => choice(rng, words),
            Self::Fold => fold(rng, words, false),
            Self::FoldIf => fold(rng, words, true),
            Self::First => first(rng, words),
            Self::Any => any(rng, words),
            Self::Select => select(rng, words),
            Self::Letters => letters(rng),
            Self::Span => span(rng, words),
            Self::Digits => digits(rng, words),
            Self::Helper => helper(rng, words),
            Self::Pairs => pairs(rng, words),
            Self::Neighbours => neighbours(rng, words),
            Self::Tally => tally(rng, words),
            Self::Longest => longest(rng, words),
        }
    }
}

/// A program that is right.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) program: Program,
    /// What it is to do, a sentence.
    pub(super) about: String,
    pub(super) inputs: Vec<Input>,
}

/// The values that a parameter is tried with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input {
    /// From, to and with the second.
    Int(i64, i64),
    /// At least so many, each from 0 to 9.
    Ints(usize),
    /// Of a few letters.
    Text,
    /// Of a few letters each.
    Texts,
}

/// The letters of texts.
const LETTERS: &str = "abc";
/// The longest list or text.
const LONGEST: usize = 5;

impl Input {
    /// One of its values; the first tries are the smallest.
    pub(super) fn draw(self, rng: &mut dyn Rng, is_first: bool) -> Value {
        match self {
            Self::Int(from, _) if is_first => from.into(),
            Self::Int(from, to) => rng.random_range(from..=to).into(),
            Self::Ints(least) => {
                let count = if is_first { least } else { rng.random_range(least..=LONGEST) };
                (0..count).map(|_| Value::from(rng.random_range(0..=9))).collect()
            }
            Self::Text => text(rng, if is_first { 0 } else { LONGEST }).into(),
            Self::Texts => {
                let count = if is_first { 0 } else { rng.random_range(0..=LONGEST) };
                (0..count).map(|_| Value::from(text(rng, 2))).collect()
            }
        }
    }
}

fn text(rng: &mut dyn Rng, most: usize) -> String {
    let count = if most == 0 { 0 } else { rng.random_range(1..=most) };
    let letters = LETTERS.as_bytes();
    (0..count).map(|_| char::from(letters[rng.random_range(0..letters.len())])).collect()
}

/// How parts of programs are put in sentences: as the language has them.
#[derive(Clone, Copy)]
struct Words {
    language: Language,
}

impl Words {
    fn of(self, expression: &Expression) -> String {
        render::expression(expression, self.language)
    }
}

/// A condition, and how it goes on behind a name.
struct Condition {
    expression: Expression,
    words: String,
}

const ENTRY: [Name; 8] = ["solve", "score", "total", "measure", "check", "rate", "weigh", "calc"];
const LISTS: [Name; 4] = ["xs", "nums", "items", "values"];
const INTS: [Name; 5] = ["k", "n", "m", "limit", "step"];
const ITEMS: [Name; 3] = ["x", "v", "item"];
const RESULTS: [Name; 4] = ["out", "acc", "result", "s"];

fn pick<T: Copy>(rng: &mut dyn Rng, of: &[T]) -> T {
    *of.choose(rng).expect("there is one")
}

fn two(rng: &mut dyn Rng) -> (Name, Name) {
    let mut names = ["a", "b", "k", "n", "p", "q"];
    names.shuffle(rng);
    (names[0], names[1])
}

fn one_function(
    entry: Name,
    parameters: Vec<(Name, Type)>,
    returns: Type,
    body: Vec<Statement>,
) -> Program {
    Program { functions: vec![Function { name: entry, parameters, returns, body }] }
}

/// Something small that is made of a whole number.
fn small(rng: &mut dyn Rng, of: Expression) -> Expression {
    let constant = int(rng.random_range(2..=9));
    match rng.random_range(0..8) {
        0 => add(of, constant),
        1 => binary(Binary::Subtract, of, constant),
        2 => binary(Binary::Subtract, constant, of),
        3 => binary(Binary::Multiply, of.clone(), of),
        4 => Expression::Max(Box::new(of), Box::new(constant)),
        5 => Expression::Min(Box::new(of), Box::new(constant)),
        6 => Expression::Abs(Box::new(binary(Binary::Subtract, of, constant))),
        _ => binary(Binary::Multiply, of, constant),
    }
}

/// A condition on a whole number, against a constant or one of `others`.
fn condition(rng: &mut dyn Rng, words: Words, of: &Expression, others: &[Name]) -> Condition {
    let shape = rng.random_range(0..6);
    if shape == 0 {
        let (by, rest) = (rng.random_range(2..=4), rng.random_range(0..=1));
        let left = binary(Binary::Modulo, of.clone(), int(by));
        let words = match rest {
            0 => format!("a multiple of {by}"),
            _ => format!("one more than a multiple of {by}"),
        };
        return Condition { expression: compare(Compare::Equal, left, int(rest)), words };
    }
    if shape == 1 {
        let (low, high) = (rng.random_range(1..=4), rng.random_range(5..=8));
        let (above, below) = (
            pick(rng, &[Compare::Above, Compare::AtLeast]),
            pick(rng, &[Compare::Below, Compare::AtMost]),
        );
        let expression = Expression::And(
            Box::new(compare(above, of.clone(), int(low))),
            Box::new(compare(below, of.clone(), int(high))),
        );
        let words = format!("{} {low} and {} {high}", above.words(), below.words());
        return Condition { expression, words };
    }
    if shape == 2 {
        let (low, high) = (rng.random_range(1..=4), rng.random_range(5..=8));
        let expression = Expression::Or(
            Box::new(compare(Compare::Below, of.clone(), int(low))),
            Box::new(compare(Compare::Above, of.clone(), int(high))),
        );
        return Condition { expression, words: format!("below {low} or above {high}") };
    }
    let operator = pick(rng, &Compare::ALL);
    let right = match others.choose(rng) {
        Some(other) if rng.random_bool(0.6) => name(other),
        _ => int(rng.random_range(2..=8)),
    };
    let words = format!("{} {}", operator.words(), words.of(&right));
    Condition { expression: compare(operator, of.clone(), right), words }
}

fn formula(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (a, b) = two(rng);
    let entry = pick(rng, &ENTRY);
    let t = pick(rng, &["t", "part", "r"]);
    let operator =
        |rng: &mut dyn Rng| pick(rng, &[Binary::Add, Binary::Subtract, Binary::Multiply]);
    let first = binary(operator(rng), name(a), int(rng.random_range(2..=9)));
    let second = small(rng, name(b));
    let (inner, outer) = (operator(rng), operator(rng));
    let third = binary(outer, second, int(rng.random_range(2..=5)));
    let whole = binary(inner, first.clone(), third.clone());
    let body = vec![Statement::Let(t, first), Statement::Return(binary(inner, name(t), third))];
    Drawn {
        program: one_function(entry, vec![(a, Type::Int), (b, Type::Int)], Type::Int, body),
        about: format!("`{entry}` gives {}.", words.of(&whole)),
        inputs: vec![Input::Int(0, 9), Input::Int(0, 9)],
    }
}

fn choice(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (a, b) = two(rng);
    let entry = pick(rng, &ENTRY);
    let Condition { expression, words: told } = condition(rng, words, &name(a), &[b]);
    let (then, otherwise) = (pick(rng, &[a, b]), pick(rng, &[a, b]));
    let (then, otherwise) = (small(rng, name(then)), small(rng, name(otherwise)));
    let about = format!(
        "`{entry}` gives {} if {a} is {told}, else {}.",
        words.of(&then),
        words.of(&otherwise)
    );
    let body = vec![
        Statement::If(expression, vec![Statement::Return(then)], Vec::new()),
        Statement::Return(otherwise),
    ];
    Drawn {
        program: one_function(entry, vec![(a, Type::Int), (b, Type::Int)], Type::Int, body),
        about,
        inputs: vec![Input::Int(0, 9), Input::Int(0, 9)],
    }
}

fn fold(rng: &mut dyn Rng, words: Words, is_chosen: bool) -> Drawn {
    let (entry, xs, x) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &ITEMS));
    let (k, s) = (pick(rng, &INTS), pick(rng, &RESULTS));
    let first = rng.random_range(0..=5);
    let value = if rng.random_bool(0.3) { name(x) } else { small(rng, name(x)) };
    let operator = pick(rng, &[Binary::Add, Binary::Add, Binary::Subtract]);
    let Condition { expression, words: told } = condition(rng, words, &name(x), &[k]);
    let change = Statement::Change(s, operator, value.clone());
    let (inside, which) = match is_chosen {
        false => (change, String::new()),
        true => {
            let which = format!(" that is {told}");
            (Statement::If(expression, vec![change], Vec::new()), which)
        }
    };
    let verb = if operator == Binary::Add { "adds" } else { "takes" };
    let place = if operator == Binary::Add { "to" } else { "from" };
    let about = format!(
        "`{entry}` {verb} {} {place} {first} for each {x} of {xs}{which}.",
        words.of(&value)
    );
    let body = vec![
        Statement::Let(s, int(first)),
        Statement::Each(x, name(xs), vec![inside]),
        Statement::Return(name(s)),
    ];
    let mut parameters = vec![(xs, Type::Ints)];
    let mut inputs = vec![Input::Ints(0)];
    if is_chosen {
        parameters.push((k, Type::Int));
        inputs.push(Input::Int(0, 9));
    }
    Drawn { program: one_function(entry, parameters, Type::Int, body), about, inputs }
}

fn first(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, x) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &ITEMS));
    let (k, s) = (pick(rng, &INTS), pick(rng, &RESULTS));
    let value = if rng.random_bool(0.3) { name(x) } else { small(rng, name(x)) };
    let Condition { expression, words: told } = condition(rng, words, &name(x), &[k]);
    let others = if rng.random_bool(0.5) { name(k) } else { int(rng.random_range(0..=5)) };
    let about = format!(
        "`{entry}` gives {} for the first {x} of {xs} that is {told}, or {} without one.",
        words.of(&value),
        words.of(&others)
    );
    let found = vec![Statement::Set(s, value), Statement::Break];
    let body = vec![
        Statement::Let(s, others),
        Statement::Each(x, name(xs), vec![Statement::If(expression, found, Vec::new())]),
        Statement::Return(name(s)),
    ];
    Drawn {
        program: one_function(entry, vec![(xs, Type::Ints), (k, Type::Int)], Type::Int, body),
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 9)],
    }
}

fn any(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, x) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &ITEMS));
    let k = pick(rng, &INTS);
    let value = if rng.random_bool(0.5) { name(x) } else { small(rng, name(x)) };
    let Condition { expression, words: told } = condition(rng, words, &value, &[k]);
    let is_found = rng.random_bool(0.5);
    let which = if is_found { "some" } else { "no" };
    let about =
        format!("`{entry}` tells whether {} is {told} for {which} {x} of {xs}.", words.of(&value));
    let found = vec![Statement::Return(Expression::Bool(is_found))];
    let body = vec![
        Statement::Each(x, name(xs), vec![Statement::If(expression, found, Vec::new())]),
        Statement::Return(Expression::Bool(!is_found)),
    ];
    Drawn {
        program: one_function(entry, vec![(xs, Type::Ints), (k, Type::Int)], Type::Bool, body),
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 9)],
    }
}

fn select(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, x) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &ITEMS));
    let (k, out) = (pick(rng, &INTS), pick(rng, &RESULTS));
    let value = if rng.random_bool(0.3) { name(x) } else { small(rng, name(x)) };
    let Condition { expression, words: told } = condition(rng, words, &name(x), &[k]);
    let about =
        format!("`{entry}` lists {} for each {x} of {xs} that is {told}.", words.of(&value));
    let inside = match rng.random_bool(0.5) {
        true => vec![Statement::If(expression, vec![Statement::Append(out, value)], Vec::new())],
        false => {
            let skipped = match expression {
                Expression::Compare(operator, left, right) => {
                    Expression::Compare(operator.negated(), left, right)
                }
                other => Expression::Not(Box::new(other)),
            };
            vec![
                Statement::If(skipped, vec![Statement::Continue], Vec::new()),
                Statement::Append(out, value),
            ]
        }
    };
    let body = vec![
        Statement::Let(out, Expression::Empty(Type::Ints)),
        Statement::Each(x, name(xs), inside),
        Statement::Return(name(out)),
    ];
    let parameters = vec![(xs, Type::Ints), (k, Type::Int)];
    Drawn {
        program: one_function(entry, parameters, Type::Ints, body),
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 9)],
    }
}

fn letters(rng: &mut dyn Rng) -> Drawn {
    let entry = pick(rng, &ENTRY);
    let (text, c) = (pick(rng, &["text", "word", "line"]), pick(rng, &["c", "ch", "letter"]));
    let s = pick(rng, &RESULTS);
    let letter = pick(rng, &["a", "b", "c"]);
    let operator = pick(rng, &[Compare::Equal, Compare::Other]);
    let is = compare(operator, name(c), Expression::Text(letter));
    let which = match operator {
        Compare::Equal => format!("that is {letter}"),
        _ => format!("other than {letter}"),
    };
    let (first, value) = (rng.random_range(0..=9), rng.random_range(1..=9));
    let empty = || Expression::Text("");
    let (begin, inside, about) = match rng.random_range(0..4) {
        0 => {
            let count = Statement::Change(s, Binary::Add, int(value));
            let about = format!("adds {value} to {first} for each {c} of {text} {which}");
            (int(first), vec![Statement::If(is, vec![count], Vec::new())], about)
        }
        1 => {
            let kept = Statement::Set(s, add(name(s), name(c)));
            let about = format!("joins each {c} of {text} {which}");
            (empty(), vec![Statement::If(is, vec![kept], Vec::new())], about)
        }
        2 => {
            let kept = Statement::Set(s, add(name(c), name(s)));
            let about = format!("joins each {c} of {text} {which}, the last first");
            (empty(), vec![Statement::If(is, vec![kept], Vec::new())], about)
        }
        _ => {
            let other = pick(rng, &["x", "y", "z"]);
            let then = vec![Statement::Set(s, add(name(s), Expression::Text(other)))];
            let otherwise = vec![Statement::Set(s, add(name(s), name(c)))];
            let about = format!("writes {other} for each {c} of {text} {which}");
            (empty(), vec![Statement::If(is, then, otherwise)], about)
        }
    };
    let returns = if matches!(begin, Expression::Int(_)) { Type::Int } else { Type::Text };
    let body = vec![
        Statement::Let(s, begin),
        Statement::Each(c, name(text), inside),
        Statement::Return(name(s)),
    ];
    Drawn {
        program: one_function(entry, vec![(text, Type::Text)], returns, body),
        about: format!("`{entry}` {about}."),
        inputs: vec![Input::Text],
    }
}

fn span(rng: &mut dyn Rng, words: Words) -> Drawn {
    let entry = pick(rng, &ENTRY);
    let (a, b) = two(rng);
    let (i, s) = (pick(rng, &["i", "j"]), pick(rng, &RESULTS));
    let is_closed = rng.random_bool(0.5);
    let value = if rng.random_bool(0.3) { name(i) } else { small(rng, name(i)) };
    let Condition { expression, words: told } = condition(rng, words, &name(i), &[]);
    let to = if is_closed { add(name(b), int(1)) } else { name(b) };
    let end = if is_closed { "with" } else { "without" };
    let about = format!(
        "`{entry}` adds up {} for each {i} from {a} to {b}, {end} {b}, that is {told}.",
        words.of(&value)
    );
    let change = Statement::Change(s, Binary::Add, value);
    let body = vec![
        Statement::Let(s, int(0)),
        Statement::Range(i, name(a), to, vec![Statement::If(expression, vec![change], Vec::new())]),
        Statement::Return(name(s)),
    ];
    Drawn {
        program: one_function(entry, vec![(a, Type::Int), (b, Type::Int)], Type::Int, body),
        about,
        inputs: vec![Input::Int(0, 6), Input::Int(0, 12)],
    }
}

fn digits(rng: &mut dyn Rng, words: Words) -> Drawn {
    let entry = pick(rng, &ENTRY);
    let n = pick(rng, &["n", "number", "num"]);
    let (d, s) = (pick(rng, &["d", "r"]), pick(rng, &RESULTS));
    let base = pick(rng, &[10, 10, 10, 5, 7, 8]);
    let value = if rng.random_bool(0.3) { name(d) } else { small(rng, name(d)) };
    let Condition { expression, words: told } = condition(rng, words, &name(d), &[]);
    let about = format!(
        "`{entry}` adds up {} for each digit {d} of {n} in base {base} that is {told}.",
        words.of(&value)
    );
    let change = Statement::Change(s, Binary::Add, value);
    let inside = vec![
        Statement::Let(d, binary(Binary::Modulo, name(n), int(base))),
        Statement::If(expression, vec![change], Vec::new()),
        Statement::Set(n, binary(Binary::Divide, name(n), int(base))),
    ];
    let body = vec![
        Statement::Let(s, int(0)),
        Statement::While(compare(Compare::Above, name(n), int(0)), inside),
        Statement::Return(name(s)),
    ];
    Drawn {
        program: one_function(entry, vec![(n, Type::Int)], Type::Int, body),
        about,
        inputs: vec![Input::Int(0, 9999)],
    }
}

fn helper(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, x) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &ITEMS));
    let (k, s) = (pick(rng, &INTS), pick(rng, &RESULTS));
    let (one, a, b) = (pick(rng, &["one", "value", "cost"]), "a", "b");
    let Condition { expression, words: told } = condition(rng, words, &name(a), &[b]);
    let then = small(rng, name(a));
    let otherwise = pick(rng, &[a, b]);
    let otherwise = small(rng, name(otherwise));
    let first = rng.random_range(0..=5);
    let about = format!(
        "`{one}` gives {} if {a} is {told}, else {}; `{entry}` adds {one}({x}, {k}) to {first} for each {x} of {xs}.",
        words.of(&then),
        words.of(&otherwise)
    );
    let inner = vec![
        Statement::If(expression, vec![Statement::Return(then)], Vec::new()),
        Statement::Return(otherwise),
    ];
    let call = Expression::Call(one, vec![name(x), name(k)]);
    let outer = vec![
        Statement::Let(s, int(first)),
        Statement::Each(x, name(xs), vec![Statement::Change(s, Binary::Add, call)]),
        Statement::Return(name(s)),
    ];
    let inner = Function {
        name: one,
        parameters: vec![(a, Type::Int), (b, Type::Int)],
        returns: Type::Int,
        body: inner,
    };
    let outer = Function {
        name: entry,
        parameters: vec![(xs, Type::Ints), (k, Type::Int)],
        returns: Type::Int,
        body: outer,
    };
    Drawn {
        program: Program { functions: vec![inner, outer] },
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 9)],
    }
}

fn pairs(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, k) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &["k", "m", "limit"]));
    let s = pick(rng, &RESULTS);
    let at = |place: Name| item(name(xs), name(place));
    let operator = pick(rng, &[Binary::Add, Binary::Subtract, Binary::Multiply]);
    let made = binary(operator, at("i"), at("j"));
    let test = pick(rng, &Compare::ALL);
    let (first, value) = (rng.random_range(0..=5), rng.random_range(1..=5));
    let about = format!(
        "`{entry}` adds {value} to {first} for each i and later j where {} is {} {k}.",
        words.of(&made),
        test.words()
    );
    let change = Statement::Change(s, Binary::Add, int(value));
    let chosen = Statement::If(compare(test, made, name(k)), vec![change], Vec::new());
    let size = || length(name(xs));
    let inner = Statement::Range("j", add(name("i"), int(1)), size(), vec![chosen]);
    let body = vec![
        Statement::Let(s, int(first)),
        Statement::Range("i", int(0), size(), vec![inner]),
        Statement::Return(name(s)),
    ];
    Drawn {
        program: one_function(entry, vec![(xs, Type::Ints), (k, Type::Int)], Type::Int, body),
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 18)],
    }
}

fn neighbours(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, out) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &RESULTS));
    let k = pick(rng, &["k", "n", "m", "limit"]);
    let (now, before) =
        (item(name(xs), name("i")), item(name(xs), binary(Binary::Subtract, name("i"), int(1))));
    let test = pick(rng, &Compare::ALL);
    let by = rng.random_range(1..=4);
    let value = match rng.random_range(0..4) {
        0 => now.clone(),
        1 => binary(Binary::Subtract, now.clone(), before.clone()),
        2 => binary(Binary::Subtract, now.clone(), name(k)),
        _ => binary(Binary::Multiply, before.clone(), int(by + 1)),
    };
    let right = add(before, int(by));
    let about = format!(
        "`{entry}` lists {} for each i from 1 on where {} is {} {}, and {k} for others.",
        words.of(&value),
        words.of(&now),
        test.words(),
        words.of(&right)
    );
    let chosen = Statement::If(
        compare(test, now, right),
        vec![Statement::Append(out, value)],
        vec![Statement::Append(out, name(k))],
    );
    let body = vec![
        Statement::Let(out, Expression::Empty(Type::Ints)),
        Statement::Range("i", int(1), length(name(xs)), vec![chosen]),
        Statement::Return(name(out)),
    ];
    Drawn {
        program: one_function(entry, vec![(xs, Type::Ints), (k, Type::Int)], Type::Ints, body),
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 9)],
    }
}

fn tally(rng: &mut dyn Rng, words: Words) -> Drawn {
    let entry = pick(rng, &ENTRY);
    let (list, w) = (pick(rng, &["names", "words", "keys"]), pick(rng, &["w", "key"]));
    let (d, k) = (pick(rng, &["seen", "counts", "d"]), pick(rng, &["k", "n", "m"]));
    let size = length(name(w));
    let of_size = pick(rng, &[Compare::Equal, Compare::Other, Compare::AtLeast, Compare::Below]);
    let bound = rng.random_range(1..=2);
    let step = rng.random_range(1..=6);
    let value = match rng.random_range(0..3) {
        0 => int(step),
        1 => name(k),
        _ => binary(Binary::Multiply, size.clone(), int(step)),
    };
    let count = Expression::Count(Box::new(name(d)), Box::new(name(w)));
    let (told, test) = (words.of(&value), compare(of_size, size.clone(), int(bound)));
    let change = Statement::Put(d, name(w), add(count, value));
    let (inside, about) = match rng.random_bool(0.5) {
        true => {
            let otherwise = Statement::Put(d, name(w), name(k));
            let about = format!(
                "`{entry}` counts {told} more for each {w} of {list} where {} is {} {bound}, and sets others to {k}.",
                words.of(&size),
                of_size.words()
            );
            (Statement::If(test, vec![change], vec![otherwise]), about)
        }
        false => {
            let about = format!(
                "`{entry}` counts {told} more for each {w} of {list} where {} is {} {bound}.",
                words.of(&size),
                of_size.words()
            );
            (Statement::If(test, vec![change], Vec::new()), about)
        }
    };
    let body = vec![
        Statement::Let(d, Expression::Empty(Type::Counts)),
        Statement::Each(w, name(list), vec![inside]),
        Statement::Return(name(d)),
    ];
    Drawn {
        program: one_function(entry, vec![(list, Type::Texts), (k, Type::Int)], Type::Counts, body),
        about,
        inputs: vec![Input::Texts, Input::Int(0, 9)],
    }
}

fn longest(rng: &mut dyn Rng, words: Words) -> Drawn {
    let (entry, xs, x) = (pick(rng, &ENTRY), pick(rng, &LISTS), pick(rng, &ITEMS));
    let (run, best) = (pick(rng, &["run", "now"]), pick(rng, &["best", "most", "top"]));
    let k = pick(rng, &INTS);
    let Condition { expression, words: told } = condition(rng, words, &name(x), &[k]);
    let by = if rng.random_bool(0.5) { int(1) } else { name(x) };
    let first = rng.random_range(0..=4);
    let what = if by == int(1) { "length" } else { "sum" };
    let about = format!(
        "`{entry}` gives the greatest {what} of a run in {xs} where each {x} is {told}, and at least {first}."
    );
    let chosen = Statement::If(
        expression,
        vec![Statement::Change(run, Binary::Add, by)],
        vec![Statement::Set(run, int(0))],
    );
    let larger = Expression::Max(Box::new(name(best)), Box::new(name(run)));
    let body = vec![
        Statement::Let(best, int(first)),
        Statement::Let(run, int(0)),
        Statement::Each(x, name(xs), vec![chosen, Statement::Set(best, larger)]),
        Statement::Return(name(best)),
    ];
    Drawn {
        program: one_function(entry, vec![(xs, Type::Ints), (k, Type::Int)], Type::Int, body),
        about,
        inputs: vec![Input::Ints(0), Input::Int(0, 9)],
    }
}
