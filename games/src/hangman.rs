//! Hangman: find a word by its letters.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word; the words are spar's own.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use spar_python::fixed;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, is_letter_of_any_case};
use crate::table::{MessageKind, Table};
use crate::text::AddPiece;
use crate::words::{all_words, words_within};

const NAME: &str = "hangman";
const TRIES: u32 = 6;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    min_length: usize,
    max_length: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_length: 4, max_length: 10 }
    }
}

#[derive(Debug, Clone)]
struct Hangman {
    words: &'static [&'static str],
    word: &'static str,
    /// Which letters are shown.
    shown: [bool; 16],
    /// Letters that were guessed, by their place in the alphabet.
    guessed: u32,
    /// Guessed characters that are no letters of the alphabet: `IGNORECASE` lets four in, of which these stay.
    strange: Vec<char>,
    tries_left: u32,
    is_revealed: bool,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("min_length", settings.min_length), 4..=10)?;
    check_range(NAME, ("max_length", settings.max_length), settings.min_length..=10)?;
    let words = words_within(settings.min_length..=settings.max_length);
    Ok(Box::new(Hangman {
        words,
        word: all_words()[0],
        shown: [false; 16],
        guessed: 0,
        strange: Vec::new(),
        tries_left: TRIES,
        is_revealed: false,
    }))
}

/// What `\[([a-zA-Z]+)\]` with `IGNORECASE` takes.
fn letters<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    let word = cursor.run(is_letter_of_any_case)?;
    cursor.take(']').then_some(word)
}

fn bit(letter: u8) -> u32 {
    1 << (letter.to_ascii_lowercase() - b'a')
}

impl Hangman {
    fn is_shown(&self, at: usize) -> bool {
        self.is_revealed || self.shown[at]
    }

    fn is_complete(&self) -> bool {
        (0..self.word.len()).all(|at| self.is_shown(at))
    }

    fn completion(&self) -> f64 {
        let shown = (0..self.word.len()).filter(|at| self.is_shown(*at)).count();
        shown as f64 / self.word.len() as f64
    }

    fn render(&self, text: &mut String) {
        text.push('\n');
        for at in 0..self.word.len() {
            text.add(if at == 0 { "C" } else { " C" }).add(at / 10).add(at % 10);
        }
        text.push('\n');
        for (at, letter) in self.word.chars().enumerate() {
            let shown = if self.is_shown(at) { letter.to_ascii_uppercase() } else { '_' };
            text.add("  ").add(shown).add(' ');
        }
    }

    /// The words that agree with all that is shown.
    fn candidates(&self) -> impl Iterator<Item = &'static str> {
        let word = self.word.as_bytes();
        self.words.iter().copied().filter(move |candidate| {
            candidate.len() == word.len()
                && candidate.bytes().enumerate().all(|(at, letter)| match self.shown[at] {
                    true => letter == word[at],
                    // A letter that was guessed stands everywhere it is in the word.
                    false => self.guessed & bit(letter) == 0,
                })
        })
    }
}

impl Rules for Hangman {
    fn begin(&mut self, table: &mut Table) {
        self.word = table.rng.choice(self.words).expect("there are words of every length");
        self.shown = [false; 16];
        (self.guessed, self.tries_left, self.is_revealed) = (0, TRIES, false);
        self.strange.clear();
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing Hangman. The objective of the game is to guess the word by providing one letter \
                 guesses or the entire word.\n\
                 Each column is numbered. The cells that need to be populated with letters are represented by '_'.\n\n\
                 There are two ways you can answer. You can provide one letter guesses in the format of '[L]', or you \
                 can guess the entire word in the format of '[LIGHT]'.\n\
                 If the given letter is in the word, it will be revealed in the grid.\n\
                 If the given word is correct, you win.\n\
                 As you play, the history of your choices will be appended below. Use the information to figure out \
                 the word and win.\n\
                 You have 6 incorrect tries before the game ends.\n\n"
            ),
        );
        table.say_with(MessageKind::Board, |text| {
            text.push_str("Current board:\n");
            self.render(text);
            text.add("\nYou have ").add(TRIES).add(" tries left.\nGuessed letters: ");
        });
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let Some(said) = first(action, letters) else {
            table.invalid_alone(
                || self.completion(),
                format_args!(
                    "Invalid move format. You did not respond with a valid 'letter' or 'word'."
                ),
            );
            return table.end_move(false);
        };
        let said = match said.bytes().all(|letter| letter.is_ascii_uppercase()) {
            true => Cow::Borrowed(said),
            false => Cow::Owned(said.to_uppercase()),
        };
        let mut characters = said.chars();
        let letter = characters.next().unwrap_or_default();
        if characters.next().is_some() {
            if said.eq_ignore_ascii_case(self.word) {
                let reason = "Congratulations! You completed the Hangman puzzle.";
                table.set_outcome(1.0, true, reason);
                self.is_revealed = true;
            } else {
                table.say_with(MessageKind::Message, |text| {
                    text.add("Your guess of '").add(&*said).add("' is not the target word.");
                });
            }
        } else {
            let is_known = match letter.is_ascii() {
                true => self.guessed & bit(letter as u8) != 0,
                false => self.strange.contains(&letter),
            };
            if is_known {
                table.invalid_alone(
                    || self.completion(),
                    format_args!(
                        "You guessed the letter '{letter}' which has already been guessed."
                    ),
                );
            } else {
                match letter.is_ascii() {
                    true => self.guessed |= bit(letter as u8),
                    false => self.strange.push(letter),
                }
                let mut is_in = false;
                for (at, other) in self.word.chars().enumerate() {
                    if other.to_ascii_uppercase() == letter {
                        self.shown[at] = true;
                        is_in = true;
                    }
                }
                self.tries_left -= u32::from(!is_in);
                table.say_with(MessageKind::Message, |text| {
                    text.add("Your guess of ").add(letter);
                    if is_in {
                        text.add(" is in the word");
                    } else {
                        text.add(" is not in the word. You have ").add(self.tries_left);
                        text.add(" lives left.");
                    }
                });
                table.say_with(MessageKind::Board, |text| self.render(text));
            }
        }
        if self.tries_left == 0 {
            let reward = self.completion();
            let reason = format!(
                "You are out of tries. You guessed {} percentage of the characters correctly. The target word was : {}",
                fixed(reward * 100.0, 2),
                self.word
            );
            table.set_outcome(reward, false, reason);
        } else if self.is_complete() {
            let reason = "Congratulations! You have completed the Hangman puzzle.";
            table.set_outcome(1.0, true, reason);
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let open = ('A'..='Z').filter(|letter| self.guessed & bit(*letter as u8) == 0);
        Some(open.map(|letter| format!("[{letter}]")).collect())
    }

    /// The letter that most of the words have that agree with what is shown.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let mut counts = [0_u32; 26];
        for word in self.candidates() {
            let letters = word.bytes().fold(0, |letters, letter| letters | bit(letter));
            for (at, count) in counts.iter_mut().enumerate() {
                *count += u32::from((letters & !self.guessed) >> at & 1 == 1);
            }
        }
        let open = (0..26).filter(|at| self.guessed >> at & 1 == 0);
        let best = open.max_by_key(|at| (counts[*at], std::cmp::Reverse(*at)))?;
        Some(format!("[{}]", char::from(b'A' + best as u8)))
    }

    fn oracle(&mut self, _: &Table) -> Option<String> {
        let mut hidden = (0..self.word.len()).filter(|at| !self.is_shown(*at));
        let letter = self.word.as_bytes()[hidden.next()?];
        Some(format!("[{}]", char::from(letter.to_ascii_uppercase())))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
