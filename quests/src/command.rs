//! Commands, and how words become them.

use std::fmt::Write as _;

use crate::game::{Direction, Game};
use crate::play::Play;

/// Characters of a command that are read.
const MOST_CHARS: usize = 200;

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Looks around.
    Look,
    /// Looks at what is carried.
    Inventory,
    /// Goes into a neighbouring room.
    Go(Direction),
    /// Looks at a thing.
    Examine(usize),
    /// Opens a container or a door.
    Open(usize),
    /// Closes it.
    Close(usize),
    /// Locks the first with the second.
    Lock(usize, usize),
    /// Unlocks the first with the second.
    Unlock(usize, usize),
    /// Takes a thing from wherever it lies.
    Take(usize),
    /// Lays a thing on the floor.
    Drop(usize),
    /// Puts the first on the second.
    Put(usize, usize),
    /// Puts the first into the second.
    Insert(usize, usize),
    /// Eats a thing.
    Eat(usize),
}

/// Why words are no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError(pub String);

const VERBS: &str =
    "look, inventory, go, examine, open, close, lock, unlock, take, drop, put, insert and eat";

impl Command {
    /// The command in words, as it is listed.
    pub fn words(self, game: &Game, play: &Play) -> String {
        let mut words = String::with_capacity(40);
        self.write(game, play, &mut words);
        words
    }

    pub(crate) fn write(self, game: &Game, play: &Play, out: &mut String) {
        let name = |thing: usize| game.things[thing].name.as_str();
        // Writing into a string cannot fail.
        let _ = match self {
            Self::Look => write!(out, "look"),
            Self::Inventory => write!(out, "inventory"),
            Self::Go(direction) => write!(out, "go {}", direction.name()),
            Self::Examine(thing) => write!(out, "examine {}", name(thing)),
            Self::Open(thing) => write!(out, "open {}", name(thing)),
            Self::Close(thing) => write!(out, "close {}", name(thing)),
            Self::Lock(thing, key) => write!(out, "lock {} with {}", name(thing), name(key)),
            Self::Unlock(thing, key) => write!(out, "unlock {} with {}", name(thing), name(key)),
            Self::Take(thing) => match play.holder(thing) {
                Some(other) => write!(out, "take {} from {}", name(thing), name(other)),
                None => write!(out, "take {}", name(thing)),
            },
            Self::Drop(thing) => write!(out, "drop {}", name(thing)),
            Self::Put(thing, other) => write!(out, "put {} on {}", name(thing), name(other)),
            Self::Insert(thing, other) => {
                write!(out, "insert {} into {}", name(thing), name(other))
            }
            Self::Eat(thing) => write!(out, "eat {}", name(thing)),
        };
    }

    /// Reads words as a command.
    ///
    /// Articles do not count, `l`, `i`, `x`, `n`, `e`, `s`, `w`, `get`, `pick up`, `walk` and `place` stand for what they usually do, and a part of a name is
    /// enough where only one thing in sight has it.
    ///
    /// # Errors
    ///
    /// [`ReadError`] with a sentence for the player: the verb is not known, something is missing, or no thing in sight, or several, are called so.
    pub fn read(text: &str, play: &Play) -> Result<Self, ReadError> {
        let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(place, _)| place);
        let text = text[..end].to_lowercase();
        let words: Vec<&str> = text
            .split_whitespace()
            .map(|word| word.trim_end_matches(['.', '!', ',']))
            .filter(|word| !["the", "a", "an", ""].contains(word))
            .collect();
        let refuse = |text: String| Err(ReadError(text));
        let Some((verb, rest)) = words.split_first() else {
            return refuse("Say what you want to do.".to_owned());
        };
        let (verb, rest) = match (*verb, rest) {
            ("pick", ["up", rest @ ..]) => ("take", rest),
            ("look", ["at", rest @ ..]) if !rest.is_empty() => ("examine", rest),
            ("put", [.., second, _] | [.., second, _, _] | [.., second, _, _, _])
                if ["in", "into"].contains(second) =>
            {
                ("insert", rest)
            }
            (verb, rest) => (verb, rest),
        };
        if let Some(direction) = direction(verb).filter(|_| rest.is_empty()) {
            return Ok(Self::Go(direction));
        }
        let thing = |words: &[&str]| find(words, verb, play);
        // The words on both sides of a preposition.
        let pair = |prepositions: &[&str]| {
            let place = rest.iter().position(|word| prepositions.contains(word));
            place.map(|place| (&rest[..place], &rest[place + 1..]))
        };
        match verb {
            "look" | "l" if rest.is_empty() => Ok(Self::Look),
            "inventory" | "i" if rest.is_empty() => Ok(Self::Inventory),
            "look" | "l" | "inventory" | "i" => {
                refuse(format!("`{verb}` stands alone; say `examine` for a thing."))
            }
            "go" | "walk" => match rest {
                [way] if direction(way).is_some() => {
                    Ok(Self::Go(direction(way).expect("it was looked at")))
                }
                _ => refuse("Go where? Say east, north, south or west.".to_owned()),
            },
            "examine" | "x" => Ok(Self::Examine(thing(rest)?)),
            "open" => Ok(Self::Open(thing(rest)?)),
            "close" | "shut" => Ok(Self::Close(thing(rest)?)),
            "drop" => Ok(Self::Drop(thing(rest)?)),
            "eat" => Ok(Self::Eat(thing(rest)?)),
            "take" | "get" => match pair(&["from"]) {
                None => Ok(Self::Take(thing(rest)?)),
                Some((first, second)) => {
                    let (first, second) = (thing(first)?, thing(second)?);
                    if play.holder(first) != Some(second) {
                        let (first, second) = (play.name(first), play.name(second));
                        return refuse(format!("The {first} is not at the {second}."));
                    }
                    Ok(Self::Take(first))
                }
            },
            "lock" | "unlock" => {
                let Some((first, second)) = pair(&["with", "using"]) else {
                    return refuse(format!("Say what with: {verb} ... with ..."));
                };
                let (first, second) = (thing(first)?, thing(second)?);
                Ok(if verb == "lock" {
                    Self::Lock(first, second)
                } else {
                    Self::Unlock(first, second)
                })
            }
            "put" | "place" => {
                let Some((first, second)) = pair(&["on", "onto"]) else {
                    return refuse("Say where: put ... on ...".to_owned());
                };
                Ok(Self::Put(thing(first)?, thing(second)?))
            }
            "insert" => {
                let Some((first, second)) = pair(&["into", "in"]) else {
                    return refuse("Say where: insert ... into ...".to_owned());
                };
                Ok(Self::Insert(thing(first)?, thing(second)?))
            }
            _ => {
                let verb: String = verb.chars().take(40).collect();
                refuse(format!("There is no verb `{verb}` here; known are {VERBS}."))
            }
        }
    }
}

fn direction(word: &str) -> Option<Direction> {
    Direction::ALL
        .into_iter()
        .find(|way| way.name() == word || word.len() == 1 && way.name().starts_with(word))
}

/// The thing in sight that is called so.
fn find(words: &[&str], verb: &str, play: &Play) -> Result<usize, ReadError> {
    if words.is_empty() {
        return Err(ReadError(format!("{} what?", capital(verb))));
    }
    let name = words.join(" ");
    let game = play.game();
    let mut found = Vec::new();
    for (number, thing) in game.things.iter().enumerate() {
        if !play.is_in_sight(number) {
            continue;
        }
        if thing.name == name {
            return Ok(number);
        }
        let mut parts = thing.name.split(' ');
        if words.iter().all(|word| parts.any(|part| part == *word)) {
            found.push(number);
        }
    }
    match found[..] {
        [one] => Ok(one),
        [] => {
            let name: String = name.chars().take(60).collect();
            Err(ReadError(format!("You see no `{name}` here.")))
        }
        _ => {
            let names: Vec<_> =
                found.iter().map(|number| format!("the {}", game.things[*number].name)).collect();
            Err(ReadError(format!("Which one do you mean: {}?", names.join(", or "))))
        }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
