//! Countdown: combine numbers until one is the target.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;
use spar_python::repr_float;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, value};
use crate::table::{MessageKind, Table};
use crate::text::AddPiece;

const NAME: &str = "countdown";
const OPERATORS: [char; 4] = ['+', '-', '*', '/'];
const BIG: [i64; 4] = [25, 50, 75, 100];
/// Combinations that a search looks at, at the most.
const MAX_NODES: u32 = 3_000_000;
/// Draws of numbers and target among which one that can be reached is looked for, and what they may look at together.
const MAX_DRAWS: u32 = 10_000;
const MAX_NODES_OF_DRAWS: u32 = 10 * MAX_NODES;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    numbers: Option<Vec<i64>>,
    target: Option<i64>,
    max_turns: u32,
    big: usize,
    small: usize,
    min_target: i64,
    max_target: i64,
    solvable: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            numbers: None,
            target: None,
            max_turns: 12,
            big: 2,
            small: 4,
            min_target: 100,
            max_target: 999,
            solvable: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    i: usize,
    j: usize,
    operator: char,
}

#[derive(Debug, Clone)]
struct Countdown {
    settings: Settings,
    target: i64,
    numbers: Vec<i64>,
    expressions: Vec<String>,
    best: i64,
    best_expression: String,
    /// The moves that were made, line by line as they are told.
    history: String,
    /// The moves that are to be made, from the last on, and the numbers in front of the next one.
    way: Vec<Move>,
    way_from: Vec<i64>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=1000)?;
    check_range(NAME, ("big", settings.big), 0..=4)?;
    check_range(NAME, ("small", settings.small), 0..=6)?;
    check_range(NAME, ("min_target", settings.min_target), 1..=100_000)?;
    check_range(NAME, ("max_target", settings.max_target), settings.min_target..=100_000)?;
    if let Some(target) = settings.target {
        check_range(NAME, ("target", target), 1..=100_000)?;
    }
    let count = settings.numbers.as_ref().map_or(settings.big + settings.small, Vec::len);
    check_range(NAME, ("numbers (how many)", count), 2..=6)?;
    for number in settings.numbers.iter().flatten() {
        check_range(NAME, ("number", *number), 1..=1000)?;
    }
    Ok(Box::new(Countdown {
        settings,
        target: 0,
        numbers: Vec::new(),
        expressions: Vec::new(),
        best: 0,
        best_expression: String::new(),
        history: String::new(),
        way: Vec::new(),
        way_from: Vec::new(),
    }))
}

/// What `\[\s*(\d+)\s+(\d+)\s*([+\-*/])\s*\]` takes of the whole action.
fn move_of(action: &str) -> Option<(u64, u64, char)> {
    let mut cursor = Cursor { rest: spar_python::text::strip(action) };
    if !cursor.take('[') {
        return None;
    }
    cursor.spaces();
    let i = cursor.digits()?;
    if !cursor.spaces() {
        return None;
    }
    let j = cursor.digits()?;
    cursor.spaces();
    let operator = OPERATORS.into_iter().find(|operator| cursor.take(*operator))?;
    cursor.spaces();
    (cursor.take(']') && cursor.rest.is_empty()).then_some((value(i), value(j), operator))
}

/// What comes of two numbers; `None` of what is not allowed.
fn combine(a: i64, b: i64, operator: char) -> Option<i64> {
    let result = match operator {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        _ => return (b != 0 && a % b == 0).then(|| a / b),
    };
    (result.abs() <= 1_000_000).then_some(result)
}

/// A search for the target, or for what is nearest to it.
struct Search {
    target: i64,
    seen: HashSet<Vec<i64>>,
    nodes: u32,
    path: Vec<Move>,
    best: (i64, Vec<Move>),
}

impl Search {
    fn new(target: i64, numbers: &[i64]) -> Self {
        let nearest = numbers.iter().map(|number| (number - target).abs()).min();
        let best = (nearest.unwrap_or(i64::MAX), Vec::new());
        Self { target, seen: HashSet::new(), nodes: 0, path: Vec::new(), best }
    }

    /// Whether the target can be reached from these numbers; the way to what is nearest is kept.
    fn reaches(&mut self, numbers: &[i64]) -> bool {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        if self.nodes > MAX_NODES || !self.seen.insert(sorted) {
            return false;
        }
        let mut next = Vec::with_capacity(numbers.len());
        for i in 0..numbers.len() {
            for j in 0..numbers.len() {
                // Of two numbers that are exchanged, and of what changes nothing, one is enough.
                let (a, b) = (numbers[i], numbers[j]);
                if i == j || a < b || (a == b && i > j) {
                    continue;
                }
                for operator in OPERATORS {
                    if b == 1 && matches!(operator, '*' | '/') {
                        continue;
                    }
                    let Some(result) = combine(a, b, operator).filter(|result| *result > 0) else {
                        continue;
                    };
                    self.nodes += 1;
                    self.path.push(Move { i, j, operator });
                    let distance = (result - self.target).abs();
                    // What is at hand is as near, and no way.
                    if distance < self.best.0 || distance == 0 {
                        self.best = (distance, self.path.clone());
                    }
                    if distance == 0 {
                        return true;
                    }
                    if numbers.len() > 2 {
                        next.clear();
                        let others = numbers.iter().enumerate();
                        next.extend(
                            others.filter(|(at, _)| *at != i && *at != j).map(|(_, it)| *it),
                        );
                        next.push(result);
                        if self.reaches(&next.clone()) {
                            return true;
                        }
                    }
                    self.path.pop();
                }
            }
        }
        false
    }
}

impl Countdown {
    /// How far from the target the best number is.
    fn distance(&self) -> i64 {
        (self.best - self.target).abs()
    }

    fn progress(&self) -> f64 {
        (1.0 - self.distance() as f64 / 1000.0).max(0.0)
    }

    fn draw(&mut self, table: &mut Table) {
        let Settings { big, small, min_target, max_target, .. } = self.settings;
        let fits = "the settings were checked";
        self.numbers = self.settings.numbers.clone().unwrap_or_else(|| {
            let smalls: Vec<i64> = (1..=10).chain(1..=10).collect();
            let mut numbers = table.rng.sample(&BIG, big).expect(fits);
            numbers.extend(table.rng.sample(&smalls, small).expect(fits));
            numbers
        });
        self.target = match self.settings.target {
            Some(target) => target,
            None => table.rng.int(min_target, max_target).expect(fits),
        };
    }

    fn tell_board(&self, table: &mut Table) {
        table.say_with(MessageKind::Board, |text| {
            text.add("TARGET: ").add(self.target).add("\n\nAvailable numbers:");
            for (at, (number, expression)) in self.numbers.iter().zip(&self.expressions).enumerate()
            {
                text.add("\n  [").add(at).add("] ").add(*number);
                text.add("   (from: ").add(&**expression).add(')');
            }
            text.add("\n\nBest so far: ").add(self.best);
            text.add(" (distance: ").add(self.distance());
            text.add(")\nBest expression: ").add(&*self.best_expression);
            if !self.history.is_empty() {
                text.add("\n\nMove history:").add(&*self.history);
            }
            // The progress, of which three places are told, is a whole number of thousandths.
            let thousandths = (1000 - self.distance()).max(0);
            text.add("\nCurrent progress score: ").add(thousandths / 1000).add('.');
            text.add(thousandths / 100 % 10).add(thousandths / 10 % 10).add(thousandths % 10);
        });
    }

    /// Puts what comes of two numbers in their place, as the move of this number, from 1.
    fn take(&mut self, number: u32, Move { i, j, operator }: Move, result: i64) {
        self.history.add("\n  ").add(number).add(". ").add(self.numbers[i]).add(' ').add(operator);
        self.history.add(' ').add(self.numbers[j]).add(" = ").add(result);
        let (one, two) = (&*self.expressions[i], &*self.expressions[j]);
        let mut expression = String::with_capacity(one.len() + two.len() + 5);
        expression.add('(').add(one).add(' ').add(operator).add(' ').add(two).add(')');
        for at in [i.max(j), i.min(j)] {
            self.numbers.remove(at);
            self.expressions.remove(at);
        }
        self.numbers.push(result);
        if (result - self.target).abs() < (self.best - self.target).abs() {
            self.best = result;
            self.best_expression.clone_from(&expression);
        }
        self.expressions.push(expression);
    }
}

impl Rules for Countdown {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        let mut nodes = 0;
        for _ in 0..MAX_DRAWS {
            self.draw(table);
            if !self.settings.solvable {
                break;
            }
            let mut search = Search::new(self.target, &self.numbers);
            let is_reached = search.reaches(&self.numbers);
            nodes += search.nodes;
            if is_reached || nodes > MAX_NODES_OF_DRAWS {
                break;
            }
        }
        self.expressions = self.numbers.iter().map(i64::to_string).collect();
        let nearest = self.numbers.iter().copied().min_by_key(|it| (it - self.target).abs());
        self.best = nearest.unwrap_or_default();
        self.best_expression = self.best.to_string();
        self.history.clear();
        self.way.clear();
        self.way_from.clear();
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing Countdown numbers game!\n\
                 Goal: Combine numbers using +, -, *, / to reach the target.\n\
                 Action format: [i j op] where i,j are indices and op is the operation.\n\
                 Example: [0 2 *] multiplies number at index 0 with number at index 2.\n\
                 Division must result in whole numbers only."
            ),
        );
        self.tell_board(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let index = |number: u64| {
            usize::try_from(number).ok().filter(|number| *number < self.numbers.len())
        };
        let found = move_of(action).and_then(|(i, j, operator)| {
            let (i, j) = (index(i)?, index(j)?);
            if i == j {
                return None;
            }
            let result = combine(self.numbers[i], self.numbers[j], operator)?;
            Some((Move { i, j, operator }, result))
        });
        let Some((chosen, result)) = found else {
            // The package has reason and reward the wrong way round here: it tells the number.
            let progress = self.progress();
            table.invalid_alone(|| progress, format_args!("{}", repr_float(progress)));
            return table.end_move(false);
        };
        self.take(table.turn + 1, chosen, result);
        self.tell_board(table);
        let (target, best) = (self.target, self.best);
        if result == target {
            table.set_outcome(1.0, true, format!("Perfect! Found exact target: {target}"));
        } else if self.numbers.len() == 1 {
            let reason = format!("No more moves. Best result: {best} (target: {target})");
            table.set_outcome(self.progress(), false, reason);
        } else if table.is_out_of_turns() {
            let reason = format!("Turn limit reached. Best result: {best} (target: {target})");
            table.set_outcome(self.progress(), false, reason);
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let count = self.numbers.len();
        let pairs = (0..count).flat_map(|i| (0..count).map(move |j| (i, j)));
        let pairs = pairs.filter(|(i, j)| i != j);
        let moves = pairs.flat_map(|(i, j)| OPERATORS.map(|operator| (i, j, operator)));
        let legal = moves.filter(|(i, j, operator)| {
            combine(self.numbers[*i], self.numbers[*j], *operator).is_some()
        });
        Some(legal.map(|(i, j, operator)| format!("[{i} {j} {operator}]")).collect())
    }

    /// The way to the target, or to what is nearest to it, by trying all; behind that, anything.
    fn expert(&mut self, table: &Table, _: f64) -> Option<String> {
        if self.way_from != self.numbers {
            let mut search = Search::new(self.target, &self.numbers);
            search.reaches(&self.numbers);
            self.way = search.best.1;
            self.way.reverse();
            self.way_from.clone_from(&self.numbers);
        }
        let Some(Move { i, j, operator }) = self.way.pop() else {
            return self.legal(table)?.into_iter().next();
        };
        let result = combine(self.numbers[i], self.numbers[j], operator)?;
        let others = self.numbers.iter().enumerate();
        self.way_from = others.filter(|(at, _)| *at != i && *at != j).map(|(_, it)| *it).collect();
        self.way_from.push(result);
        Some(format!("[{i} {j} {operator}]"))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
