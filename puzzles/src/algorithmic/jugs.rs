//! Jugs of water.

use std::collections::{HashMap, HashSet, VecDeque};

use num_integer::gcd;

use crate::prelude::*;

/// Moves of an answer beyond which it is not carried out.
const MOST_MOVES: usize = 1_000_000;

options! {
    /// Options of `jugs`.
    JugsOptions {
        /// Jugs, 3 to 5. Default 3.
        num_jugs: i64 = 3,
        /// Fewest moves of the shortest solution, and how large jugs can be, 1 to 40. Default 10.
        difficulty: i64 = 10,
    }
    |given, problems| {
        problems.between("num_jugs", given.num_jugs, 3, 5);
        problems.between("difficulty", given.difficulty, 1, 40);
    }
}

/// Jugs that are filled, emptied and poured into each other until one holds the target.
pub(crate) struct Jugs;

/// What each jug holds; those that there are not hold nothing.
type State = [u8; 5];

impl Generator for Jugs {
    type Options = JugsOptions;

    fn item(options: &JugsOptions, rng: &mut Random) -> Result<Item, ItemError> {
        const MOST_TRIES: u64 = 10_000;
        for _ in 0..MOST_TRIES {
            let mut capacities = Vec::new();
            for _ in 0..options.num_jugs {
                capacities.push(rng.int(3, 3 + options.difficulty)?);
            }
            let largest = capacities.iter().copied().max().unwrap_or_default();
            let common = capacities.iter().copied().fold(0, gcd);
            let targets: Vec<i64> = (1..=largest).filter(|target| target % common == 0).collect();
            let target = *rng.choice(&targets)?;
            if let Some(moves) = fewest_moves(&capacities, target)
                && moves >= options.difficulty
            {
                return Ok(puzzle(&capacities, target, moves));
            }
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }

    fn score(_: &JugsOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(moves) = answer.and_then(json_loads) else { return 0.0 };
        let puzzle = item.fact("puzzle");
        let capacities: Vec<i64> = puzzle["jug_capacities"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64)
            .collect();
        let moves: Vec<&str> = match &moves {
            Value::Array(moves) if moves.iter().all(Value::is_string) => {
                moves.iter().filter_map(Value::as_str).collect()
            }
            // A table is walked by its names, an empty text has no moves.
            Value::Object(moves) => moves.keys().map(String::as_str).collect(),
            Value::String(text) if text.is_empty() => Vec::new(),
            _ => return 0.0,
        };
        match carry_out(&capacities, &moves) {
            Some(state) if state.iter().any(|held| Some(*held) == puzzle["target"].as_i64()) => 1.0,
            Some(_) => 0.01,
            None => 0.0,
        }
    }
}

/// All states that follow from one, in the package's order.
fn follow(state: State, capacities: &[u8], mut tell: impl FnMut(State)) {
    let count = capacities.len();
    let with = |jug: usize, held: u8| {
        let mut next = state;
        next[jug] = held;
        next
    };
    (0..count).for_each(|jug| tell(with(jug, capacities[jug])));
    (0..count).for_each(|jug| tell(with(jug, 0)));
    for from in 0..count {
        for to in 0..count {
            let amount = state[from].min(capacities[to] - state[to]);
            if from != to && amount > 0 {
                let mut next = state;
                next[from] -= amount;
                next[to] += amount;
                tell(next);
            }
        }
    }
}

/// The fewest moves after which a jug holds the target; absent where none ever does.
fn fewest_moves(capacities: &[i64], target: i64) -> Option<i64> {
    let capacities: Vec<u8> = capacities.iter().map(|capacity| *capacity as u8).collect();
    let mut seen = HashSet::from([State::default()]);
    let mut states = vec![State::default()];
    let mut moves = 0;
    while !states.is_empty() {
        if states.iter().any(|state| state[..capacities.len()].contains(&(target as u8))) {
            return Some(moves);
        }
        moves += 1;
        let mut next = Vec::new();
        for state in states {
            follow(state, &capacities, |state| {
                if seen.insert(state) {
                    next.push(state);
                }
            });
        }
        states = next;
    }
    None
}

fn puzzle(capacities: &[i64], target: i64, moves: i64) -> Item {
    let named = capacities.iter().zip('A'..).map(|(capacity, name)| format!("{name}:{capacity}"));
    let question = format!(
        "You are a police officer. A maniac has planted a bomb next to a public fountain.\n\nTo defuse the bomb, you must solve a puzzle. The puzzle is solved when you fill any of the available jugs with the target amount of water.\n\nYou have three move types: 'fill', 'empty' and 'pour'.\n\nTo fill Jug A, you 'fill A'.\nTo empty Jug B, you 'empty B'.\nTo pour the contents of Jug A into Jug B, you 'pour A->B'.\nAll jugs are empty to begin with.\n\nThe empty jugs hold this many litres of water: {}\nAnd your target is: {target} litres.\n\nHow do you defuse the bomb?\n\nReply as a JSON-parsable list of moves which result in any of the jugs being filled with the target amount.\n",
        joined(named, ", ")
    );
    let answer = list(solution(capacities, target).iter().map(|one| format!("\"{one}\"")));
    let puzzle = json!({ "jug_capacities": capacities, "target": target, "min_moves": moves });
    Item::new(question, answer).with("puzzle", puzzle)
}

/// A shortest solution with the first three jugs, the first that the package's search comes upon; that has no more jugs.
fn solution(capacities: &[i64], target: i64) -> Vec<String> {
    let capacities: [u8; 3] = [capacities[0] as u8, capacities[1] as u8, capacities[2] as u8];
    let name = |jug: usize| char::from(b'A' + jug as u8);
    // Each state with the state before it and the move between them.
    let mut before: HashMap<[u8; 3], ([u8; 3], String)> = HashMap::new();
    let mut queue = VecDeque::from([[0; 3]]);
    while let Some(state) = queue.pop_front() {
        if state.contains(&(target as u8)) {
            let (mut moves, mut at) = (Vec::new(), state);
            while at != [0; 3] {
                let (earlier, told) = &before[&at];
                moves.push(told.clone());
                at = *earlier;
            }
            moves.reverse();
            return moves;
        }
        let mut reach = |next: [u8; 3], told: String| {
            // A state that comes up again is queued by the package as well, behind its first time.
            if next != [0; 3] && !before.contains_key(&next) {
                before.insert(next, (state, told));
                queue.push_back(next);
            }
        };
        for jug in 0..3 {
            let mut next = state;
            next[jug] = capacities[jug];
            reach(next, format!("fill {}", name(jug)));
            next[jug] = 0;
            reach(next, format!("empty {}", name(jug)));
            for other in (0..3).filter(|other| *other != jug) {
                let amount = state[jug].min(capacities[other] - state[other]);
                let mut next = state;
                next[jug] -= amount;
                next[other] += amount;
                reach(next, format!("pour {}->{}", name(jug), name(other)));
            }
        }
    }
    vec!["No solution".to_owned()]
}

/// What jugs hold after moves; absent where one is none.
fn carry_out(capacities: &[i64], moves: &[&str]) -> Option<Vec<i64>> {
    if moves.len() > MOST_MOVES {
        return None;
    }
    let place = |name: &str| {
        let mut letters = name.chars();
        let place = (letters.next()? as usize).checked_sub('A' as usize)?;
        (letters.next().is_none() && place < capacities.len()).then_some(place)
    };
    let mut held = vec![0; capacities.len()];
    for told in moves {
        let mut tokens = words(told);
        match tokens.next()? {
            "fill" => {
                let jug = place(tokens.next()?)?;
                held[jug] = capacities[jug];
            }
            "empty" => held[place(tokens.next()?)?] = 0,
            "pour" => {
                let (from, to) = tokens.next()?.split_once("->")?;
                let (from, to) = (place(from)?, place(to)?);
                let amount = held[from].min(capacities[to] - held[to]);
                held[from] -= amount;
                held[to] += amount;
            }
            _ => return None,
        }
    }
    Some(held)
}
