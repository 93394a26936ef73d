//! Wordle: find a word by what is said of other words.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word; the words are spar's own.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, is_word_character};
use crate::table::{MessageKind, Table};
use crate::words::{is_known_word, words_within};

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

/// Feedback for the letters: 0 wrong, 1 elsewhere, 2 right.
type Feedback = Vec<u8>;

const LETTERS: [char; 3] = ['X', 'Y', 'G'];

#[derive(Debug, Clone)]
struct Wordle {
    settings: Settings,
    words: Vec<&'static str>,
    secret: &'static str,
    history: Vec<(String, Feedback)>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("word_length", settings.word_length), 4..=8)?;
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
    let mut told = [0_u8; 8];
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
        let Some((_, told)) = self.history.last() else { return 0.0 };
        let sum: f64 = told.iter().map(|of_letter| f64::from(*of_letter) * 0.5).sum();
        sum / self.settings.word_length as f64
    }

    /// What is wrong with a guess.
    fn problem(&self, word: &str) -> Option<String> {
        let Settings { word_length, dictionary, .. } = self.settings;
        if word.chars().count() != word_length {
            return Some(format!("Your word must be exactly {word_length} letters."));
        }
        if self.history.iter().any(|(earlier, _)| earlier == word) {
            return Some(format!(
                "You have already guessed '{word}' before. Please try a different word."
            ));
        }
        let is_word = match dictionary {
            Dictionary::List => is_known_word(word),
            Dictionary::Any => word.bytes().all(|letter| letter.is_ascii_lowercase()),
        };
        (!is_word).then(|| format!("'{word}' is not an English word."))
    }
}

impl Rules for Wordle {
    fn begin(&mut self, table: &mut Table) {
        let Settings { word_length, num_guesses, .. } = self.settings;
        self.secret = table.rng.choice(&self.words).expect("there are words of every length");
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
        let word = said.to_lowercase();
        if let Some(problem) = self.problem(&word) {
            table.invalid_alone(|| self.completion(), format_args!("{problem}"));
            return table.end_move(false);
        }
        let mut told = vec![0; self.settings.word_length];
        feedback(self.secret.as_bytes(), word.as_bytes(), &mut told);
        let left = self.settings.num_guesses as i64 - i64::from(table.turn) - 1;
        if word == self.secret {
            let reason = "Congratulations! You guessed the word correctly!";
            table.set_outcome(1.0, true, reason.to_owned());
        } else {
            table.say_with(MessageKind::Message, |text| {
                text.push_str("You submitted [");
                text.push_str(&word);
                text.push_str("].\nFeedback:\n");
                for (at, letter) in word.chars().enumerate() {
                    if at > 0 {
                        text.push(' ');
                    }
                    text.push(letter.to_ascii_uppercase());
                }
                text.push('\n');
                for (at, of_letter) in told.iter().enumerate() {
                    if at > 0 {
                        text.push(' ');
                    }
                    text.push(LETTERS[usize::from(*of_letter)]);
                }
                text.push_str("\nYou have ");
                text.push_str(&left.to_string());
                text.push_str(" guesses left.");
            });
        }
        self.history.push((word, told));
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
        let mut told = [0; 8];
        let agrees = |word: &&&'static str| {
            self.history.iter().all(|(guess, answer)| {
                feedback(word.as_bytes(), guess.as_bytes(), &mut told[..length]);
                told[..length] == **answer
            })
        };
        if self.history.is_empty() {
            return opening(&self.words).map(|word| format!("[{word}]"));
        }
        let candidates: Vec<&'static str> = self.words.iter().filter(agrees).copied().collect();
        let is_last = self.history.len() + 1 >= self.settings.num_guesses;
        let best = match candidates.len() <= 2 || is_last {
            true => *candidates.first()?,
            false => {
                let open: Vec<&'static str> = (self.words.iter().copied())
                    .filter(|word| self.history.iter().all(|(earlier, _)| earlier != word))
                    .collect();
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
            told.map(|of_letter| LETTERS[usize::from(of_letter)]).iter().collect::<String>()
        };
        assert_eq!(told("apple", "paper"), "YYGYX");
        assert_eq!(told("lemon", "level"), "GGXXX");
        assert_eq!(told("eerie", "geese"), "XGYXG");
    }
}
