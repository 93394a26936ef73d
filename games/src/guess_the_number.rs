//! GuessTheNumber: find a number by what is said of other numbers.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{bracketed_number, first, value};
use crate::table::{MessageKind, Table};

const NAME: &str = "guess-the-number";
/// The most numbers of which all are listed.
const MAX_LISTED: i64 = 100;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    min_number: i64,
    max_number: i64,
    max_turns: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_number: 1, max_number: 20, max_turns: 10 }
    }
}

#[derive(Debug, Clone)]
struct GuessTheNumber {
    settings: Settings,
    number: i64,
    guessed: Vec<i64>,
    /// The last guess that was not right.
    last: Option<i64>,
    /// Between which numbers it lies, by what was told.
    low: i64,
    high: i64,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("min_number", settings.min_number), 0..=1_000_000)?;
    check_range(NAME, ("max_number", settings.max_number), settings.min_number + 1..=1_000_001)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=10_000)?;
    let (low, high) = (settings.min_number, settings.max_number);
    Ok(Box::new(GuessTheNumber { settings, number: 0, guessed: Vec::new(), last: None, low, high }))
}

impl GuessTheNumber {
    fn completion(&self) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        let distance = (last - self.number).abs() as f64;
        1.0 - distance / (self.settings.max_number - self.settings.min_number) as f64
    }
}

impl Rules for GuessTheNumber {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        let Settings { min_number, max_number, max_turns } = self.settings;
        self.number = table.rng.int(min_number, max_number).expect("the range was checked");
        self.guessed.clear();
        self.last = None;
        (self.low, self.high) = (min_number, max_number);
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are Player 0. You are playing Guess The Number.\n\
                 You have to guess the number between {min_number} and {max_number} within {max_turns} turns.\n\
                 As you enter your guess, the game will provide you with hints such as 'higher' or 'lower'.\n\
                 You may provide your response in any manner. Only the number that is wrapped in square brackets will be \
                 considered as your guess. For example, [5].\n\
                 As you play, the history of your guesses will be appended below. Use the information to complete the \
                 game before you run out of guesses.\n\
                 Enter your guess."
            ),
        );
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let Settings { min_number, max_number, .. } = self.settings;
        let completion = || self.completion();
        match first(action, bracketed_number) {
            None => table.invalid_alone(
                completion,
                format_args!(
                    "Invalid move format. Player 0 did not respond with valid '[number]'."
                ),
            ),
            Some(digits) => {
                let guess = i64::try_from(value(digits)).unwrap_or(i64::MAX);
                if guess < min_number || guess > max_number {
                    table.invalid_alone(
                        completion,
                        format_args!(
                            "Invalid move. Player 0 guessed a number outside the range specified."
                        ),
                    );
                } else if self.guessed.contains(&guess) {
                    table.invalid_alone(
                        completion,
                        format_args!("Invalid move. Player 0 has already guessed the number."),
                    );
                } else {
                    self.guessed.push(guess);
                    if guess == self.number {
                        let reason = "Congratulations! You guessed the correct number.";
                        table.set_outcome(1.0, true, reason);
                    } else {
                        let is_lower = guess > self.number;
                        match is_lower {
                            true => self.high = self.high.min(guess - 1),
                            false => self.low = self.low.max(guess + 1),
                        }
                        let hint = if is_lower { "lower" } else { "higher" };
                        let said = format_args!("The target number is {hint}.");
                        table.say(MessageKind::Message, said);
                        self.last = Some(guess);
                    }
                }
                if table.is_out_of_turns() {
                    let reason = format!(
                        "The turn limit has been reached. Guess: {guess}, Target: {}",
                        self.number
                    );
                    table.set_outcome(self.completion(), false, reason);
                }
            }
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let Settings { min_number, max_number, .. } = self.settings;
        if max_number - min_number >= MAX_LISTED {
            return None;
        }
        let open = (min_number..=max_number).filter(|number| !self.guessed.contains(number));
        Some(open.map(|number| format!("[{number}]")).collect())
    }

    /// Halves what is left.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        Some(format!("[{}]", self.low + (self.high - self.low) / 2))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
