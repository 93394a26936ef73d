//! Questions with exact answers, from seeds.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use spar_core::Seed;
use spar_tasks::{CodeInterpreter, CodeTask, ReferenceAnswer};

/// What a generated question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Family {
    /// A product and a sum.
    Arithmetic,
    /// A text from behind.
    Reverse,
    /// How often a letter occurs.
    Letters,
    /// The smallest, or nearly, of a list.
    Order,
    /// Divisors of a number.
    Divisors,
    /// A power modulo a number.
    Power,
    /// Digits of a large power.
    Digits,
    /// Letters that are moved along the alphabet.
    Caesar,
    /// A number in another base.
    Base,
    /// Primes up to a number.
    Primes,
    /// Steps of Collatz's sequence.
    Collatz,
    /// A linear recurrence modulo a number.
    Recurrence,
    /// Sets with a given sum.
    Subsets,
    /// The longest common subsequence of two texts.
    Subsequence,
    /// Paths through a grid with holes.
    Paths,
}

impl Family {
    /// Those of each level.
    const LEVELS: [&[Self]; 3] = [
        &[Self::Arithmetic, Self::Reverse, Self::Letters, Self::Order],
        &[Self::Divisors, Self::Power, Self::Digits, Self::Caesar, Self::Base, Self::Primes],
        &[Self::Collatz, Self::Recurrence, Self::Subsets, Self::Subsequence, Self::Paths],
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Reverse => "reverse",
            Self::Letters => "letters",
            Self::Order => "order",
            Self::Divisors => "divisors",
            Self::Power => "power",
            Self::Digits => "digits",
            Self::Caesar => "caesar",
            Self::Base => "base",
            Self::Primes => "primes",
            Self::Collatz => "collatz",
            Self::Recurrence => "recurrence",
            Self::Subsets => "subsets",
            Self::Subsequence => "subsequence",
            Self::Paths => "paths",
        }
    }

    /// That of the task of a seed, where it is not named.
    pub(super) fn of_seed(seed: u64, level: Option<u8>) -> Self {
        let mut rng = Seed::from_u64(seed).derive("family", 0).rng();
        let level = level.map_or_else(|| rng.random_range(0..3), |level| usize::from(level) - 1);
        let families = Self::LEVELS[level.min(2)];
        families[rng.random_range(0..families.len())]
    }
}

/// A question, how a program answers it, and the answer, which is computed here and not by that program.
struct Question {
    prompt: String,
    program: String,
    answer: String,
}

/// The task of a seed, of a level or a family where these are given.
pub(super) fn generate(seed: u64, level: Option<u8>, family: Option<Family>) -> (Family, CodeTask) {
    let family = family.unwrap_or_else(|| Family::of_seed(seed, level));
    let mut rng = Seed::from_u64(seed).derive(family.name(), 0).rng();
    let Question { prompt, program, answer } = question(family, &mut rng);
    let task = CodeTask {
        prompt,
        answer: Some(ReferenceAnswer::Text(answer)),
        tests: None,
        solution: Some(program),
        interpreter: CodeInterpreter::default(),
        metadata: Map::new(),
    };
    (family, task)
}

fn question(family: Family, rng: &mut dyn Rng) -> Question {
    match family {
        Family::Arithmetic => arithmetic(rng),
        Family::Reverse => reverse(rng),
        Family::Letters => letters(rng),
        Family::Order => order(rng),
        Family::Divisors => divisors(rng),
        Family::Power => power(rng),
        Family::Digits => digits(rng),
        Family::Caesar => caesar(rng),
        Family::Base => base(rng),
        Family::Primes => primes(rng),
        Family::Collatz => collatz(rng),
        Family::Recurrence => recurrence(rng),
        Family::Subsets => subsets(rng),
        Family::Subsequence => subsequence(rng),
        Family::Paths => paths(rng),
    }
}

fn arithmetic(rng: &mut dyn Rng) -> Question {
    let (a, b, c): (u64, u64, u64) =
        (rng.random_range(12..1000), rng.random_range(12..1000), rng.random_range(1..10_000));
    Question {
        prompt: format!("What is {a} * {b} + {c}?"),
        program: format!("print({a} * {b} + {c})"),
        answer: (a * b + c).to_string(),
    }
}

fn reverse(rng: &mut dyn Rng) -> Question {
    let text = word(rng, 6..14, "abcdefghijklmnopqrstuvwxyz");
    Question {
        prompt: format!("What is '{text}' from behind?"),
        program: format!("print('{text}'[::-1])"),
        answer: text.chars().rev().collect(),
    }
}

fn letters(rng: &mut dyn Rng) -> Question {
    let text = word(rng, 20..40, "abcd");
    let letter = pick(rng, &["a", "b", "c", "d"]);
    Question {
        prompt: format!("How often does '{letter}' occur in '{text}'?"),
        program: format!("print('{text}'.count('{letter}'))"),
        answer: text.matches(letter).count().to_string(),
    }
}

fn order(rng: &mut dyn Rng) -> Question {
    let mut numbers: Vec<i64> =
        (0..rng.random_range(7..14)).map(|_| rng.random_range(-999..1000)).collect();
    let place = rng.random_range(2..6);
    let list = listed(&numbers);
    numbers.sort_unstable();
    Question {
        prompt: format!(
            "Which number has place {place} when {list} is sorted upwards, counted from 1?"
        ),
        program: format!("print(sorted({list})[{}])", place - 1),
        answer: numbers[place - 1].to_string(),
    }
}

fn divisors(rng: &mut dyn Rng) -> Question {
    let number: u64 = (0..rng.random_range(4..8)).map(|_| rng.random_range(2..14)).product();
    Question {
        prompt: format!("How many positive divisors has {number}?"),
        program: format!(
            "n, count, p = {number}, 1, 2\nwhile n > 1:\n    k = 0\n    while n % p == 0:\n        n //= p\n        k += 1\n    count *= k + 1\n    p += 1\nprint(count)"
        ),
        answer: (1..=number.isqrt())
            .filter(|divisor| number.is_multiple_of(*divisor))
            .map(|divisor| if divisor * divisor == number { 1 } else { 2 })
            .sum::<u64>()
            .to_string(),
    }
}

fn power(rng: &mut dyn Rng) -> Question {
    let (base, exponent, modulus): (u64, u64, u64) = (
        rng.random_range(2..1000),
        rng.random_range(100..1_000_000),
        rng.random_range(1000..1_000_000),
    );
    let (mut result, mut square, mut rest) = (1 % modulus, base % modulus, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result * square % modulus;
        }
        square = square * square % modulus;
        rest /= 2;
    }
    Question {
        prompt: format!("What is {base}^{exponent} modulo {modulus}?"),
        program: format!("print(pow({base}, {exponent}, {modulus}))"),
        answer: result.to_string(),
    }
}

fn digits(rng: &mut dyn Rng) -> Question {
    let (base, exponent) = (rng.random_range(2..100_u32), rng.random_range(50..300_u32));
    // The lowest digit first.
    let mut digits = vec![1_u32];
    for _ in 0..exponent {
        let mut carry = 0;
        for digit in &mut digits {
            let product = *digit * base + carry;
            (*digit, carry) = (product % 10, product / 10);
        }
        while carry > 0 {
            digits.push(carry % 10);
            carry /= 10;
        }
    }
    Question {
        prompt: format!("What is the sum of the decimal digits of {base}^{exponent}?"),
        program: format!("print(sum(map(int, str({base} ** {exponent}))))"),
        answer: digits.iter().sum::<u32>().to_string(),
    }
}

fn caesar(rng: &mut dyn Rng) -> Question {
    let (text, shift) =
        (word(rng, 8..20, "abcdefghijklmnopqrstuvwxyz"), rng.random_range(1..26_u8));
    let moved = |letter: u8| char::from(b'a' + (letter - b'a' + shift) % 26);
    Question {
        prompt: format!(
            "What does '{text}' become when every letter is replaced by the one {shift} places further in the alphabet, \
             where a follows z?"
        ),
        program: format!(
            "print(''.join(chr((ord(c) - 97 + {shift}) % 26 + 97) for c in '{text}'))"
        ),
        answer: text.bytes().map(moved).collect(),
    }
}

fn base(rng: &mut dyn Rng) -> Question {
    let (number, base) =
        (rng.random_range(1_000_000..1_000_000_000_000_u64), rng.random_range(3..10_u64));
    let (mut rest, mut digits) = (number, Vec::new());
    while rest > 0 {
        digits.push((rest % base).to_string());
        rest /= base;
    }
    digits.reverse();
    Question {
        prompt: format!("How is {number} written in base {base}?"),
        program: format!(
            "n, s = {number}, ''\nwhile n:\n    n, d = divmod(n, {base})\n    s = str(d) + s\nprint(s)"
        ),
        answer: digits.concat(),
    }
}

fn primes(rng: &mut dyn Rng) -> Question {
    let start = rng.random_range(100..20_000_u64);
    let end = start + rng.random_range(500..5_000_u64);
    let is_prime = |number: &u64| (2..=number.isqrt()).all(|by| !number.is_multiple_of(by));
    Question {
        prompt: format!("How many primes are there from {start} to {end}, both included?"),
        program: format!(
            "print(sum(all(n % d for d in range(2, int(n ** 0.5) + 1)) for n in range({start}, {end} + 1)))"
        ),
        answer: (start..=end).filter(is_prime).count().to_string(),
    }
}

fn collatz(rng: &mut dyn Rng) -> Question {
    let limit = rng.random_range(300..3000_u64);
    let steps = |start: u64| {
        let (mut number, mut count) = (start, 0_u64);
        while number != 1 {
            number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
            count += 1;
        }
        count
    };
    Question {
        prompt: format!(
            "A number is halved if it is even, and else tripled and increased by 1, until it is 1. How many such steps \
             does the number from 1 to {limit} take that takes most?"
        ),
        program: format!(
            "def steps(n):\n    k = 0\n    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n        k += 1\n    return k\nprint(max(map(steps, range(1, {limit} + 1))))"
        ),
        answer: (1..=limit).map(steps).max().unwrap_or(0).to_string(),
    }
}

fn recurrence(rng: &mut dyn Rng) -> Question {
    let [a, b, p, q]: [u64; 4] = std::array::from_fn(|_| rng.random_range(1..20));
    let (place, modulus) = (rng.random_range(100..5000_u64), rng.random_range(1000..100_000_u64));
    let (mut first, mut second) = (a % modulus, b % modulus);
    for _ in 2..=place {
        (first, second) = (second, (p * second + q * first) % modulus);
    }
    Question {
        prompt: format!(
            "Let x(0) = {a}, x(1) = {b} and x(n) = {p} x(n-1) + {q} x(n-2). What is x({place}) modulo {modulus}?"
        ),
        program: format!(
            "a, b = {a}, {b}\nfor _ in range({place} - 1):\n    a, b = b, ({p} * b + {q} * a) % {modulus}\nprint(b % {modulus})"
        ),
        answer: second.to_string(),
    }
}

fn subsets(rng: &mut dyn Rng) -> Question {
    let count = rng.random_range(10..18);
    let numbers: Vec<i64> = (0..count).map(|_| rng.random_range(1..30)).collect();
    let target = numbers.iter().sum::<i64>() / 2 - rng.random_range(0..5_i64);
    let mut ways = vec![0_u64; target as usize + 1];
    ways[0] = 1;
    for number in &numbers {
        for sum in (*number as usize..ways.len()).rev() {
            ways[sum] += ways[sum - *number as usize];
        }
    }
    let list = listed(&numbers);
    Question {
        prompt: format!(
            "In how many ways can places of the list {list} be chosen so that the numbers there add up to {target}? Equal \
             numbers at different places count as different."
        ),
        program: format!(
            "ways = {{0: 1}}\nfor x in {list}:\n    new = dict(ways)\n    for s, k in ways.items():\n        new[s + x] = new.get(s + x, 0) + k\n    ways = new\nprint(ways.get({target}, 0))"
        ),
        answer: ways[target as usize].to_string(),
    }
}

fn subsequence(rng: &mut dyn Rng) -> Question {
    let (one, two) = (word(rng, 12..25, "abcde"), word(rng, 12..25, "abcde"));
    let (a, b) = (one.as_bytes(), two.as_bytes());
    let mut lengths = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            lengths[i][j] = match a[i - 1] == b[j - 1] {
                true => lengths[i - 1][j - 1] + 1,
                false => lengths[i - 1][j].max(lengths[i][j - 1]),
            };
        }
    }
    Question {
        prompt: format!("How long is the longest common subsequence of '{one}' and '{two}'?"),
        program: format!(
            "a, b = '{one}', '{two}'\nrow = [0] * (len(b) + 1)\nfor x in a:\n    old = row[:]\n    for j, y in enumerate(b):\n        row[j + 1] = old[j] + 1 if x == y else max(old[j + 1], row[j])\nprint(row[-1])"
        ),
        answer: lengths[a.len()][b.len()].to_string(),
    }
}

fn paths(rng: &mut dyn Rng) -> Question {
    let size = rng.random_range(6..11_usize);
    // Never a corner, so that there is a beginning and an end.
    let mut free: Vec<(usize, usize)> = (0..size * size)
        .map(|place| (place / size, place % size))
        .filter(|place| *place != (0, 0) && *place != (size - 1, size - 1))
        .collect();
    free.shuffle(rng);
    let mut holes: Vec<_> = free.into_iter().take(size).collect();
    holes.sort_unstable();
    let mut ways = vec![vec![0_u64; size]; size];
    for row in 0..size {
        for column in 0..size {
            ways[row][column] = match (row, column) {
                (0, 0) => 1,
                place if holes.contains(&place) => 0,
                _ => {
                    let above = if row > 0 { ways[row - 1][column] } else { 0 };
                    let left = if column > 0 { ways[row][column - 1] } else { 0 };
                    above + left
                }
            };
        }
    }
    let list: Vec<String> =
        holes.iter().map(|(row, column)| format!("({row}, {column})")).collect();
    let list = list.join(", ");
    Question {
        prompt: format!(
            "On a grid of {size} rows and {size} columns one goes from (0, 0) to ({last}, {last}), only to the next row or \
             the next column, and never onto these fields, given as (row, column): {list}. How many ways are there?",
            last = size - 1
        ),
        program: format!(
            "holes = {{{list}}}\nn = {size}\nw = [[0] * n for _ in range(n)]\nfor r in range(n):\n    for c in range(n):\n        if (r, c) not in holes:\n            w[r][c] = 1 if r == c == 0 else (w[r - 1][c] if r else 0) + (w[r][c - 1] if c else 0)\nprint(w[-1][-1])"
        ),
        answer: ways[size - 1][size - 1].to_string(),
    }
}

fn word(rng: &mut dyn Rng, lengths: std::ops::Range<usize>, letters: &str) -> String {
    let length = rng.random_range(lengths);
    let letters = letters.as_bytes();
    (0..length).map(|_| char::from(letters[rng.random_range(0..letters.len())])).collect()
}

fn pick<'a>(rng: &mut dyn Rng, of: &[&'a str]) -> &'a str {
    of[rng.random_range(0..of.len())]
}

fn listed(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn tasks_repeat_differ_and_are_of_their_level() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut prompts = BTreeSet::new();
        for seed in 0..300 {
            let (family, task) = generate(seed, None, None);
            assert_eq!((family, task.clone()), generate(seed, None, None));
            assert_eq!(task.problems(), [""; 0]);
            *counts.entry(family.name()).or_default() += 1;
            prompts.insert(task.prompt);
            for level in 1..=3 {
                let (family, _) = generate(seed, Some(level), None);
                assert!(Family::LEVELS[usize::from(level) - 1].contains(&family));
            }
        }
        assert_eq!(counts.len(), 15, "{counts:?}");
        assert_eq!(prompts.len(), 300);
    }

    #[test]
    fn answers_are_those_that_can_be_looked_up() {
        let answer = |seed, family| {
            let (_, task) = generate(seed, None, Some(family));
            (task.prompt, task.answer.unwrap().texts().remove(0))
        };
        // From Python.
        let (prompt, found) = answer(3, Family::Arithmetic);
        let numbers: Vec<u64> = prompt
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .collect();
        assert_eq!(found, (numbers[0] * numbers[1] + numbers[2]).to_string());
        let (prompt, found) = answer(3, Family::Letters);
        let quoted: Vec<&str> = prompt.split('\'').collect();
        assert_eq!(found, quoted[3].matches(quoted[1]).count().to_string());
    }
}
