//! The towers of Hanoi.

use spar_python::characters::decimal_value;
use spar_python::text::split_lines;

use crate::prelude::*;

options! {
    /// Options of `tower_of_hanoi`.
    TowerOfHanoiOptions {
        /// Fewest disks, at least 1. Default 3.
        min_disks: i64 = 3,
        /// Most disks, up to 16. Default 7.
        max_disks: i64 = 7,
        /// Fewest pegs, at least 3. Default 3.
        min_pegs: i64 = 3,
        /// Most pegs, up to 20. Default 4.
        max_pegs: i64 = 4,
        /// Has no effect on questions and scores. Default false.
        visualize: bool = false,
    }
    |given, problems| {
        problems.span(("min_disks", "max_disks"), (given.min_disks, given.max_disks), (1, 16));
        problems.span(("min_pegs", "max_pegs"), (given.min_pegs, given.max_pegs), (3, 20));
    }
}

/// Disks to be moved from one peg to another.
pub(crate) struct TowerOfHanoi;

impl Generator for TowerOfHanoi {
    type Options = TowerOfHanoiOptions;

    fn item(options: &TowerOfHanoiOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let disks = rng.int(options.min_disks, options.max_disks)? as usize;
        let pegs = rng.int(options.min_pegs, options.max_pegs)? as usize;
        let all: Vec<usize> = (1..=pegs).collect();
        let chosen = rng.sample(&all, 2)?;
        let (start, target) = (chosen[0], chosen[1]);
        let others: Vec<usize> =
            all.into_iter().filter(|peg| ![start, target].contains(peg)).collect();
        let mut towers = Towers::new(disks, pegs, start);
        towers.carry(disks, start, target, &others);
        let question = format!(
            "Solve the Tower of Hanoi problem with {disks} disks and {pegs} pegs.\nMove all disks from Peg {start} to Peg {target} following the rules:\n- Only one disk can be moved at a time.\n- A larger disk cannot be placed on top of a smaller disk.\n- All disks must be on a peg at all times.\n\nProvide the sequence of moves.\n\nFormatting guidelines:\n- Each instruction should be placed on a single line.\n- Each line should be formatted as 'Move disk X from Peg Y to Peg Z'\n- Do not include any other text or formatting.\n"
        );
        Ok(Item::new(question, towers.told.join("\n"))
            .with("num_disks", disks)
            .with("num_pegs", pegs)
            .with("start_peg", start)
            .with("target_peg", target)
            .with("solution_length", towers.told.len()))
    }

    fn score(_: &TowerOfHanoiOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let fact = |name: &str| item.int(name) as usize;
        let (disks, pegs) = (fact("num_disks"), fact("num_pegs"));
        let mut towers = Towers::new(disks, pegs, fact("start_peg"));
        let mut count = 0;
        for line in
            split_lines(strip(answer)).into_iter().map(strip).filter(|line| !line.is_empty())
        {
            count += 1;
            let Some((disk, from, to)) = read_move(line) else { return 0.0 };
            let top =
                |peg: usize| (1..=pegs).contains(&peg).then(|| towers.pegs[peg].last().copied());
            let (Some(moved), Some(under)) = (top(from), top(to)) else { return 0.0 };
            if moved != Some(disk) || under.is_some_and(|under| under < disk) {
                return 0.0;
            }
            towers.pegs[from].pop();
            towers.pegs[to].push(disk);
        }
        if towers.pegs[fact("target_peg")].len() != disks {
            return 0.05;
        }
        let best = item.int("solution_length") as f64;
        (best / f64::from(count)).min(1.0)
    }
}

/// Pegs with their disks, and the moves that were made.
struct Towers {
    /// By the number of the peg; the first one is none.
    pegs: Vec<Vec<usize>>,
    told: Vec<String>,
}

impl Towers {
    fn new(disks: usize, pegs: usize, start: usize) -> Self {
        let mut all = vec![Vec::new(); pegs + 1];
        all[start] = (1..=disks).rev().collect();
        Self { pegs: all, told: Vec::new() }
    }

    fn one(&mut self, from: usize, to: usize) {
        let disk = self.pegs[from].pop().expect("there is a disk to move");
        self.pegs[to].push(disk);
        self.told.push(format!("Move disk {disk} from Peg {from} to Peg {to}"));
    }

    /// Moves the smallest disks with the help of other pegs: of Frame and Stewart where there are several.
    fn carry(&mut self, disks: usize, from: usize, to: usize, others: &[usize]) {
        match (disks, others) {
            (0, _) => {}
            (1, _) => self.one(from, to),
            (_, [other]) => {
                self.carry(disks - 1, from, *other, &[to]);
                self.one(from, to);
                self.carry(disks - 1, *other, to, &[from]);
            }
            (_, [aside, rest @ ..]) => {
                let pegs = others.len() + 2;
                let cost = |upper: usize| 2 * fewest(upper, pegs) + fewest(disks - upper, pegs - 1);
                let upper = (1..disks).min_by_key(|upper| cost(*upper)).unwrap_or(1);
                self.carry(upper, from, *aside, &[rest, &[to]].concat());
                self.carry(disks - upper, from, to, rest);
                self.carry(upper, *aside, to, &[rest, &[from]].concat());
            }
            (_, []) => {}
        }
    }
}

/// The moves that so many disks take with so many pegs.
fn fewest(disks: usize, pegs: usize) -> u64 {
    if disks <= 1 {
        return disks as u64;
    }
    if pegs == 3 {
        return (1 << disks) - 1;
    }
    // Frame and Stewart's number in closed form: steps of doubling costs, each for as many disks as a binomial says.
    let (mut left, mut cost, mut level, mut moves) = (disks as u64, 1, 0_u64, 0);
    while left > 0 {
        let width =
            (1..pegs as u64 - 2).fold(1, |binomial, place| binomial * (level + place) / place);
        let now = left.min(width);
        moves += now * cost;
        left -= now;
        cost *= 2;
        level += 1;
    }
    moves
}

/// The parts of a move: nine words, in which the package's pattern stands somewhere.
fn read_move(line: &str) -> Option<(usize, usize, usize)> {
    let parts: Vec<&str> = words(line).take(10).collect();
    let number = |text: &str| -> Option<usize> {
        big_int(text).and_then(|value| usize::try_from(value).ok())
    };
    if parts.len() != 9 {
        return None;
    }
    let plain = number_at(line, "Move disk ", None)?;
    let from = number_at(line, " from Peg ", Some(plain.1))?;
    let to = number_at(line, " to Peg ", Some(from.1))?;
    let named = (number(parts[2])?, number(parts[5])?, number(parts[8])?);
    (named == (plain.0, from.0, to.0)).then_some(named)
}

/// The number behind some words: anywhere, or at a place.
fn number_at(line: &str, before: &str, at: Option<usize>) -> Option<(usize, usize)> {
    let start = match at {
        Some(at) => line[at..].starts_with(before).then(|| at + before.len())?,
        None => line.find(before)? + before.len(),
    };
    let rest = &line[start..];
    let end = rest.find(|c| decimal_value(c).is_none()).unwrap_or(rest.len());
    let value = big_int(&rest[..end]).and_then(|value| usize::try_from(value).ok())?;
    Some((value, start + end))
}
