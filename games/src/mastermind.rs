//! Mastermind: find a code by pegs.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;
use spar_python::fixed;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, is_too_long, value};
use crate::table::{MessageKind, Table};

const NAME: &str = "mastermind";
/// Up to so many codes, the solver weighs every one of them against every other.
const MAX_WEIGHED: usize = 600;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    code_length: usize,
    num_numbers: u8,
    max_turns: u32,
    duplicate_numbers: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { code_length: 4, num_numbers: 6, max_turns: 20, duplicate_numbers: false }
    }
}

type Code = Vec<u8>;

#[derive(Debug, Clone)]
struct Mastermind {
    settings: Settings,
    secret: Code,
    history: Vec<(Code, Pegs)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pegs {
    black: u8,
    white: u8,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("code_length", settings.code_length), 1..=8)?;
    check_range(NAME, ("num_numbers", settings.num_numbers), 2..=12)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=10_000)?;
    let (length, numbers) = (settings.code_length, usize::from(settings.num_numbers));
    if !settings.duplicate_numbers && length > numbers {
        let detail = format!(
            "`code_length` is {length}, allowed are 1 to {numbers} where no number comes twice"
        );
        return Err(GameError::Settings { game: NAME, detail });
    }
    Ok(Box::new(Mastermind { settings, secret: Vec::new(), history: Vec::new() }))
}

/// The pegs of a guess: black for right places, white for what is in the code and elsewhere.
fn pegs(secret: &[u8], guess: &[u8]) -> Pegs {
    let (mut black, mut common) = (0, 0);
    let (mut of_secret, mut of_guess) = ([0_u8; 16], [0_u8; 16]);
    for (secret, guess) in secret.iter().zip(guess) {
        black += u8::from(secret == guess);
        of_secret[usize::from(*secret)] += 1;
        of_guess[usize::from(*guess)] += 1;
    }
    for (secret, guess) in of_secret.iter().zip(&of_guess) {
        common += *secret.min(guess);
    }
    Pegs { black, white: common - black }
}

/// What `\[(\d+(?:\s+\d+)*)\]` takes: the numbers, and the text that they stand in.
fn numbers<'t>(cursor: &mut Cursor<'t>) -> Option<(Vec<&'t str>, &'t str)> {
    let start = cursor.rest;
    let mut numbers = vec![cursor.digits()?];
    loop {
        let mut ahead = *cursor;
        if ahead.spaces()
            && let Some(number) = ahead.digits()
        {
            numbers.push(number);
            *cursor = ahead;
        } else {
            break;
        }
    }
    let text = &start[..start.len() - cursor.rest.len()];
    cursor.take(']').then_some((numbers, text))
}

impl Mastermind {
    fn completion(&self) -> f64 {
        let Some((_, Pegs { black, white })) = self.history.last() else { return 0.0 };
        (f64::from(*black) + f64::from(*white) * 0.5) / self.settings.code_length as f64
    }

    /// What is wrong with a guess.
    fn problem(&self, numbers: &[&str], guess: &[u8]) -> Option<String> {
        let Settings { code_length, num_numbers, duplicate_numbers, .. } = self.settings;
        if numbers.iter().any(|digits| is_too_long(digits)) {
            return Some("All entries must be valid integers.".to_owned());
        }
        if numbers.len() != code_length {
            return Some(format!("The guess should contain exactly {code_length} numbers."));
        }
        if guess.iter().any(|number| *number < 1 || *number > num_numbers) {
            return Some(format!("All numbers must be between 1 and {num_numbers}."));
        }
        let is_twice = |(at, number): (usize, &u8)| guess[..at].contains(number);
        if !duplicate_numbers && guess.iter().enumerate().any(is_twice) {
            return Some("Duplicate numbers are not allowed.".to_owned());
        }
        if self.history.iter().any(|(earlier, _)| earlier == guess) {
            let list = join(guess, ", ");
            return Some(format!(
                "You have already guessed [{list}]. Please try a different guess."
            ));
        }
        None
    }

    /// The codes that agree with all that was said, in the order of their numbers, up to `most` of them.
    fn candidates(&self, most: usize) -> Vec<Code> {
        let mut found = Vec::new();
        let mut code = Vec::with_capacity(self.settings.code_length);
        // Codes are tried up to a bound, so that no setting takes long.
        let mut budget = 4_000_000_u32;
        self.extend(&mut code, most, &mut found, &mut budget);
        found
    }

    fn extend(&self, code: &mut Code, most: usize, found: &mut Vec<Code>, budget: &mut u32) {
        let Settings { code_length, num_numbers, duplicate_numbers, .. } = self.settings;
        if found.len() >= most || *budget == 0 {
            return;
        }
        if code.len() == code_length {
            *budget -= 1;
            if self.history.iter().all(|(guess, told)| pegs(code, guess) == *told) {
                found.push(code.clone());
            }
            return;
        }
        for number in 1..=num_numbers {
            if duplicate_numbers || !code.contains(&number) {
                code.push(number);
                self.extend(code, most, found, budget);
                code.pop();
            }
        }
    }
}

fn join(numbers: &[u8], between: &str) -> String {
    numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(between)
}

impl Rules for Mastermind {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        let Settings { code_length, num_numbers, max_turns, duplicate_numbers } = self.settings;
        let numbers: Vec<u8> = (1..=num_numbers).collect();
        let drawn = "the length of codes was checked";
        self.secret = match duplicate_numbers {
            true => table
                .rng
                .choices(&numbers, code_length)
                .expect(drawn)
                .into_iter()
                .copied()
                .collect(),
            false => table.rng.sample(&numbers, code_length).expect(drawn),
        };
        self.history.clear();
        let repeats =
            if duplicate_numbers { "with possible repeats" } else { "with no duplicates" };
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing Mastermind.\n\
                 You need to find the code that is {code_length} digits long, each digit from 1 to {num_numbers}, {repeats}.\n\
                 In your response, you can submit your guess in the following format: '[2 1 4 5]'.\n\
                 After each guess, you will receive feedback in the form of black and white pegs.\n\
                 A black peg indicates a correct digit in the correct position, while a white peg indicates a correct \
                 digit in the wrong position.\n\
                 You have {max_turns} turns to guess the code.\n"
            ),
        );
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let Some((numbers, text)) = first(action, numbers) else {
            table.invalid_alone(
                || self.completion(),
                format_args!(
                    "You did not respond with a space-separated list of numbers wrapped in square brackets."
                ),
            );
            return table.end_move(false);
        };
        // One more than is asked for tells that there are too many.
        let guess: Code = (numbers.iter().take(self.settings.code_length + 1))
            .map(|digits| u8::try_from(value(digits)).unwrap_or(u8::MAX))
            .collect();
        if let Some(problem) = self.problem(&numbers, &guess) {
            table.invalid_alone(|| self.completion(), format_args!("{problem}"));
            return table.end_move(false);
        }
        let told = pegs(&self.secret, &guess);
        self.history.push((guess, told));
        let Pegs { black, white } = told;
        if usize::from(black) == self.settings.code_length {
            let reason = format!(
                "You have cracked the code, solving {black} out of {} pegs correctly",
                self.settings.code_length
            );
            table.set_outcome(1.0, true, reason);
        } else {
            table.say(
                MessageKind::Description,
                format_args!(
                    "Submitted [{text}]. Feedback: {black} black peg(s), {white} white peg(s)."
                ),
            );
        }
        if table.is_out_of_turns() {
            let reward = self.completion();
            let reason = format!(
                "Turn limit reached. You guessed {} percent of the numbers correctly.",
                fixed(reward * 100.0, 2)
            );
            table.set_outcome(reward, false, reason);
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        None
    }

    /// Of the codes that agree with all that was said, the one whose answers leave the fewest at the worst; where too many
    /// agree, the first.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let candidates = self.candidates(MAX_WEIGHED + 1);
        let first = candidates.first()?;
        let best = match self.history.is_empty() || candidates.len() > MAX_WEIGHED {
            true => first,
            false => candidates.iter().min_by_key(|guess| {
                let mut left = [0_u16; 128];
                for secret in &candidates {
                    let Pegs { black, white } = pegs(secret, guess);
                    left[usize::from(black * 9 + white)] += 1;
                }
                left.into_iter().max()
            })?,
        };
        Some(format!("[{}]", join(best, " ")))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
