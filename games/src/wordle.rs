//! Wordle: find a word by what is said of other words.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word; the words are spar's own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, is_word_character};
use crate::table::{MessageKind, Table};
use crate::text::AddPiece;
use crate::words::words_within;

const NAME: &str = "wordle";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dictionary {
    /// The words that can be the secret, and no others.
    List,
    /// Whatever is made of lower-case letters of ASCII.
    Any,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    word_length: usize,
    num_guesses: usize,
    dictionary: Dictionary,
}

impl Default for Settings {
    fn default() -> Self {
        Self { word_length: 5, num_guesses: 6, dictionary: Dictionary::List }
    }
}

/// The most letters of a word.
const MAX_LENGTH: usize = 8;

const LETTERS: [u8; 3] = *b"XYG";

/// A guess and what was said of it.
#[derive(Debug, Clone, Copy)]
struct Guess {
    /// Lower-case letters of ASCII, as all words are; behind the last one zeros.
    letters: [u8; MAX_LENGTH],
    /// Feedback for the letters: 0 wrong, 1 elsewhere, 2 right.
    told: [u8; MAX_LENGTH],
}

#[derive(Debug, Clone)]
struct Wordle {
    settings: Settings,
    words: &'static [&'static str],
    secret: &'static str,
    history: Vec<Guess>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("word_length", settings.word_length), 4..=MAX_LENGTH)?;
    check_range(NAME, ("num_guesses", settings.num_guesses), 1..=100)?;
    let length = settings.word_length;
    let words = words_within(length..=length);
    let secret = words[0];
    Ok(Box::new(Wordle { settings, words, secret, history: Vec::new() }))
}

/// What `\[(\w+)\]` takes.
fn word<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    let word = cursor.run(is_word_character)?;
    cursor.take(']').then_some(word)
}

/// Feedback of a guess: right letters first, then from the left those that are elsewhere in what remains.
fn feedback(secret: &[u8], guess: &[u8], told: &mut [u8]) {
    let mut open = [0_u8; 256];
    for (at, letter) in secret.iter().enumerate() {
        told[at] = if guess[at] == *letter { 2 } else { 0 };
        open[usize::from(*letter)] += u8::from(told[at] == 0);
    }
    for (at, letter) in guess.iter().enumerate() {
        let left = &mut open[usize::from(*letter)];
        if told[at] == 0 && *left > 0 {
            *left -= 1;
            told[at] = 1;
        }
    }
}

/// Feedback as one number.
fn pattern(secret: &[u8], guess: &[u8]) -> usize {
    let mut told = [0_u8; MAX_LENGTH];
    feedback(secret, guess, &mut told[..secret.len()]);
    told[..secret.len()].iter().fold(0, |number, of_letter| number * 3 + usize::from(*of_letter))
}

/// Of these guesses, the one whose answer tells most of which of the candidates is it: by the entropy of its answers, and
/// a candidate before others.
fn most_telling(guesses: &[&'static str], candidates: &[&'static str]) -> Option<&'static str> {
    let mut best: Option<(f64, &str)> = None;
    let num_patterns = 3_usize.pow(candidates.first()?.len() as u32);
    let mut counts = vec![0_u32; num_patterns];
    for guess in guesses {
        counts.fill(0);
        for secret in candidates {
            counts[pattern(secret.as_bytes(), guess.as_bytes())] += 1;
        }
        let all = candidates.len() as f64;
        let entropy: f64 = counts
            .iter()
            .filter(|count| **count > 0)
            .map(|count| -f64::from(*count) / all * (f64::from(*count) / all).ln())
            .sum();
        let worth = entropy + if candidates.contains(guess) { 1e-6 } else { 0.0 };
        if best.is_none_or(|(other, _)| worth > other) {
            best = Some((worth, guess));
        }
    }
    best.map(|(_, guess)| guess)
}

/// The most telling first guess for words of a length, which is found once.
fn opening(words: &[&'static str]) -> Option<&'static str> {
    static KNOWN: OnceLock<Mutex<HashMap<usize, &'static str>>> = OnceLock::new();
    let length = words.first()?.len();
    let mut known =
        KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(&length) {
        Some(word) => Some(word),
        None => {
            let best = most_telling(words, words)?;
            known.insert(length, best);
            Some(best)
        }
    }
}

impl Wordle {
    fn completion(&self) -> f64 {
        let Some(Guess { told, .. }) = self.history.last() else { return 0.0 };
        let sum: f64 = told.iter().map(|of_letter| f64::from(*of_letter) * 0.5).sum();
        sum / self.settings.word_length as f64
    }

    fn was_guessed(&self, word: &str) -> bool {
        let length = self.settings.word_length;
        self.history.iter().any(|guess| guess.letters[..length] == *word.as_bytes())
    }

    /// What is wrong with a guess.
    fn problem(&self, word: &str) -> Option<String> {
        let Settings { word_length, dictionary, .. } = self.settings;
        if word.chars().count() != word_length {
            return Some(format!("Your word must be exactly {word_length} letters."));
        }
        if self.was_guessed(word) {
            return Some(format!(
                "You have already guessed '{word}' before. Please try a different word."
            ));
        }
        let is_word = match dictionary {
            // Those of this length, by the alphabet.
            Dictionary::List => self.words.binary_search(&word).is_ok(),
            Dictionary::Any => word.bytes().all(|letter| letter.is_ascii_lowercase()),
        };
        (!is_word).then(|| format!("'{word}' is not an English word."))
    }
}

impl Rules for Wordle {
    fn begin(&mut self, table: &mut Table) {
        let Settings { word_length, num_guesses, .. } = self.settings;
        self.secret = table.rng.choice(self.words).expect("there are words of every length");
        self.history.clear();
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are Playing Wordle.\n\
                 A secret {word_length}-letter word has been chosen. You have {num_guesses} attempts to guess it.\n\
                 For each guess, wrap your word in square brackets (e.g., '[apple]').\n\
                 Feedback for each letter will be given as follows:\n  \
                 - G (green): correct letter in the correct position\n  \
                 - Y (yellow): letter exists in the word but in the wrong position\n  \
                 - X (wrong): letter is not in the word\n\
                 Enter your guess to begin.\n"
            ),
        );
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let Some(said) = first(action, word) else {
            table.invalid_alone(
                || self.completion(),
                format_args!(
                    "You tried submitting a word in the wrong format. Please make sure to use squared brackets."
                ),
            );
            return table.end_move(false);
        };
        let word = match said.bytes().all(|letter| letter.is_ascii_lowercase()) {
            true => Cow::Borrowed(said),
            false => Cow::Owned(said.to_lowercase()),
        };
        if let Some(problem) = self.problem(&word) {
            table.invalid_alone(|| self.completion(), format_args!("{problem}"));
            return table.end_move(false);
        }
        let length = self.settings.word_length;
        let mut guess = Guess { letters: [0; MAX_LENGTH], told: [0; MAX_LENGTH] };
        guess.letters[..length].copy_from_slice(word.as_bytes());
        feedback(self.secret.as_bytes(), word.as_bytes(), &mut guess.told);
        let left = self.settings.num_guesses as i64 - i64::from(table.turn) - 1;
        if word == self.secret {
            let reason = "Congratulations! You guessed the word correctly!";
            table.set_outcome(1.0, true, reason);
        } else {
            table.say_with(MessageKind::Message, |text| {
                text.add("You submitted [").add(&*word).add("].\nFeedback:\n");
                // Both lines, with a space between what they have of the letters.
                let mut lines = [[b' '; 2 * MAX_LENGTH]; 2];
                for at in 0..length {
                    lines[0][2 * at] = guess.letters[at].to_ascii_uppercase();
                    lines[1][2 * at] = LETTERS[usize::from(guess.told[at])];
                }
                let [of_word, of_answer] = lines.each_ref().map(|line| &line[..2 * length - 1]);
                text.add(of_word).add('\n').add(of_answer);
                text.add("\nYou have ").add(left).add(" guesses left.");
            });
        }
        self.history.push(guess);
        if self.history.len() >= self.settings.num_guesses && !table.is_over() {
            let reward = self.completion();
            let percent = (reward * 100.0).round_ties_even();
            let reason = format!(
                "The turn limit has been reached. You didn't guess the word, but your best guess matched {percent}% of \
                 the letters in the correct positions.\nThe secret word was: **{}**.",
                self.secret
            );
            table.set_outcome(reward, false, reason);
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        None
    }

    /// The word whose answer tells most, by entropy.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let length = self.settings.word_length;
        let mut told = [0; MAX_LENGTH];
        let agrees = |word: &&&'static str| {
            self.history.iter().all(|guess| {
                feedback(word.as_bytes(), &guess.letters[..length], &mut told);
                told == guess.told
            })
        };
        if self.history.is_empty() {
            return opening(self.words).map(|word| format!("[{word}]"));
        }
        let candidates: Vec<&'static str> = self.words.iter().filter(agrees).copied().collect();
        let is_last = self.history.len() + 1 >= self.settings.num_guesses;
        let best = match candidates.len() <= 2 || is_last {
            true => *candidates.first()?,
            false => {
                let open: Vec<&'static str> =
                    (self.words.iter().copied()).filter(|word| !self.was_guessed(word)).collect();
                most_telling(&open, &candidates)?
            }
        };
        Some(format!("[{best}]"))
    }

    fn oracle(&mut self, _: &Table) -> Option<String> {
        Some(format!("[{}]", self.secret))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_elsewhere_as_often_as_it_is_there() {
        let told = |secret: &str, guess: &str| {
            let mut told = [0; 5];
            feedback(secret.as_bytes(), guess.as_bytes(), &mut told);
            told.map(|of_letter| char::from(LETTERS[usize::from(of_letter)]))
                .iter()
                .collect::<String>()
        };
        assert_eq!(told("apple", "paper"), "YYGYX");
        assert_eq!(told("lemon", "level"), "GGXXX");
        assert_eq!(told("eerie", "geese"), "XGYXG");
    }
}
