//! What all games share: whose turn it is, what was said to whom, errors, ends and rewards.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use spar_python::Random;

/// The most players of a game.
pub(crate) const MAX_PLAYERS: usize = 15;
/// Invalid moves in a row that are forgiven, as in TextArena.
const ERROR_ALLOWANCE: u32 = 1;
/// Room for what most games tell in a step, so that it is made once and not bit by bit: bytes, and messages.
const ROOM: (usize, usize) = (512, 8);

/// What a message is, as TextArena's `ObservationType` tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// The rules, told once.
    Prompt,
    /// What a player said.
    Action,
    /// What came of an action.
    Description,
    /// Anything else that the game says.
    Message,
    /// The situation.
    Board,
    /// What was wrong with a move.
    Admin,
}

impl MessageKind {
    /// TextArena's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "PROMPT",
            Self::Action => "PLAYER_ACTION",
            Self::Description => "GAME_ACTION_DESCRIPTION",
            Self::Message => "GAME_MESSAGE",
            Self::Board => "GAME_BOARD",
            Self::Admin => "GAME_ADMIN",
        }
    }
}

/// A message that somebody has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'t> {
    /// The player who said it; absent: the game.
    pub from: Option<usize>,
    /// What it is.
    pub kind: MessageKind,
    /// Its words.
    pub text: &'t str,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Negative: the game.
    from: i8,
    /// Negative: all.
    to: i8,
    kind: MessageKind,
    end: u32,
}

/// How players take turns, and what an invalid move costs: TextArena's kinds of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seating {
    /// One plays alone: a second invalid move in a row ends the game.
    Alone,
    /// Two play against each other, in turns: a second invalid move in a row loses.
    Duel,
    /// Several play, and the game says who is next and what an invalid move costs.
    Teams,
}

/// The end of a game.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    rewards: [f64; MAX_PLAYERS],
    reason: Cow<'static, str>,
    is_solved: bool,
}

/// What all games share.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) rng: Random,
    /// Valid moves that were made.
    pub(crate) turn: u32,
    pub(crate) current: usize,
    pub(crate) was_invalid: bool,
    /// Whether the last move was one.
    last_was_invalid: bool,
    num_players: usize,
    seating: Seating,
    max_turns: Option<u32>,
    error_count: u32,
    outcome: Option<Box<Outcome>>,
    text: String,
    entries: Vec<Entry>,
    read: [u32; MAX_PLAYERS],
}

impl Table {
    pub(crate) fn new(
        seating: Seating,
        num_players: usize,
        max_turns: Option<u32>,
        rng: Random,
    ) -> Self {
        Self {
            rng,
            turn: 0,
            current: 0,
            was_invalid: false,
            last_was_invalid: false,
            num_players,
            seating,
            max_turns,
            error_count: 0,
            outcome: None,
            text: String::new(),
            entries: Vec::new(),
            read: [0; MAX_PLAYERS],
        }
    }

    pub(crate) fn num_players(&self) -> usize {
        self.num_players
    }

    pub(crate) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    pub(crate) fn is_solved(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.is_solved)
    }

    pub(crate) fn rewards(&self) -> Option<&[f64]> {
        self.outcome.as_ref().map(|outcome| &outcome.rewards[..self.num_players])
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        self.outcome.as_ref().map(|outcome| &*outcome.reason)
    }

    pub(crate) fn last_was_invalid(&self) -> bool {
        self.last_was_invalid
    }

    /// Whether the limit of turns is reached and the game is not over.
    pub(crate) fn is_out_of_turns(&self) -> bool {
        self.max_turns.is_some_and(|most| self.turn >= most) && !self.is_over()
    }

    /// Says something to all.
    pub(crate) fn say(&mut self, kind: MessageKind, text: fmt::Arguments<'_>) {
        self.say_to(None, kind, text);
    }

    /// Says something to one player, or to all.
    pub(crate) fn say_to(
        &mut self,
        to: Option<usize>,
        kind: MessageKind,
        text: fmt::Arguments<'_>,
    ) {
        // Writing into a string cannot fail.
        let _ = self.text.write_fmt(text);
        self.finish(None, to, kind);
    }

    /// Says what a function writes.
    pub(crate) fn say_with(&mut self, kind: MessageKind, write: impl FnOnce(&mut String)) {
        self.say_to_with(None, kind, write);
    }

    /// Says what a function writes to one player, or to all.
    pub(crate) fn say_to_with(
        &mut self,
        to: Option<usize>,
        kind: MessageKind,
        write: impl FnOnce(&mut String),
    ) {
        write(&mut self.text);
        self.finish(None, to, kind);
    }

    /// Passes on what a player said to the others: without the tags that the game's own voice has.
    pub(crate) fn pass_on(&mut self, from: usize, to: Option<usize>, said: &str) {
        if self.seating == Seating::Alone {
            return;
        }
        let mut brackets = said.match_indices('[').map(|(at, _)| &said[at..]);
        if brackets.any(|rest| rest.starts_with("[Player ") || rest.starts_with("[GAME]")) {
            let mut cleaned = said.to_owned();
            for player in 0..self.num_players {
                let tag = format!("[Player {player}]");
                if cleaned.contains(&tag) {
                    cleaned = cleaned.replace(&tag, "");
                }
            }
            self.text += &cleaned.replace("[GAME]", "");
        } else {
            self.text += said;
        }
        self.finish(Some(from), to, MessageKind::Action);
    }

    fn finish(&mut self, from: Option<usize>, to: Option<usize>, kind: MessageKind) {
        let number = |player: Option<usize>| player.map_or(-1, |player| player as i8);
        let end = self.text.len() as u32;
        self.entries.push(Entry { from: number(from), to: number(to), kind, end });
    }

    /// What a player has not read yet: without what it said itself.
    pub(crate) fn unread(&self, player: usize) -> impl Iterator<Item = Message<'_>> {
        let first = self.read[player] as usize;
        let seat = player as i8;
        let is_for = move |entry: &Entry| (entry.to < 0 || entry.to == seat) && entry.from != seat;
        self.entries.iter().enumerate().skip(first).filter(move |(_, it)| is_for(it)).map(
            |(at, entry)| {
                let start = at.checked_sub(1).map_or(0, |before| self.entries[before].end);
                Message {
                    from: usize::try_from(entry.from).ok(),
                    kind: entry.kind,
                    text: &self.text[start as usize..entry.end as usize],
                }
            },
        )
    }

    /// Marks all as read by a player.
    pub(crate) fn mark_read(&mut self, player: usize) {
        let all = self.entries.len() as u32;
        self.read[player] = all;
        if self.read[..self.num_players].iter().all(|read| *read == all) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.read = [0; MAX_PLAYERS];
    }

    /// Drops all that nobody has read, as a player who only thinks ahead does.
    pub(crate) fn silence(&mut self) {
        self.forget();
    }

    fn end(
        &mut self,
        rewards: [f64; MAX_PLAYERS],
        is_solved: bool,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let reason = reason.into();
        self.outcome = Some(Box::new(Outcome { rewards, reason, is_solved }));
    }

    /// Ends a game of one.
    pub(crate) fn set_outcome(
        &mut self,
        reward: f64,
        is_solved: bool,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let mut rewards = [0.0; MAX_PLAYERS];
        rewards[0] = reward;
        self.end(rewards, is_solved, reason);
    }

    /// These players win 1, the others lose 1.
    pub(crate) fn set_winners(
        &mut self,
        is_winner: impl Fn(usize) -> bool,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let mut rewards = [0.0; MAX_PLAYERS];
        for (player, reward) in rewards.iter_mut().enumerate() {
            *reward = if is_winner(player) { 1.0 } else { -1.0 };
        }
        self.end(rewards, true, reason);
    }

    /// Nobody wins anything.
    pub(crate) fn set_draw(&mut self, reason: impl Into<Cow<'static, str>>) {
        self.end([0.0; MAX_PLAYERS], false, reason);
    }

    /// Notes an invalid move of a game of one, which ends it with a reward where another one came right before.
    pub(crate) fn invalid_alone(&mut self, reward: impl FnOnce() -> f64, why: fmt::Arguments<'_>) {
        self.last_was_invalid = true;
        if ERROR_ALLOWANCE > self.error_count {
            self.error_count += 1;
            self.was_invalid = true;
            self.say(
                MessageKind::Admin,
                format_args!(
                    "You attempted an invalid move. Reason: {why} Please resubmit a valid move and remember to follow \
                     the game rules to avoid penalties."
                ),
            );
        } else {
            self.set_outcome(reward(), false, format!("Invalid Move: {why}"));
        }
    }

    /// Notes an invalid move of who is to move; whether it was one too many, which in a duel has lost it.
    pub(crate) fn invalid(&mut self, why: fmt::Arguments<'_>) -> bool {
        self.last_was_invalid = true;
        let player = self.current;
        if ERROR_ALLOWANCE > self.error_count {
            self.error_count += 1;
            self.was_invalid = true;
            self.say_to(
                Some(player),
                MessageKind::Admin,
                format_args!(
                    "Player {player} attempted an invalid move. Reason: {why} Please resubmit a valid move and remember \
                     to follow the game rules to avoid penalties."
                ),
            );
            return false;
        }
        if self.seating == Seating::Duel {
            self.set_winners(|other| other != player, why.to_string());
        }
        true
    }

    /// Makes somebody the next to move, unless the last move was invalid.
    pub(crate) fn pass_to(&mut self, player: usize) {
        if !self.was_invalid {
            self.current = player;
            self.error_count = 0;
        }
    }

    /// The last move was carried out, though it costs what an invalid one does.
    pub(crate) fn excuse(&mut self) {
        self.last_was_invalid = false;
    }

    /// Before a move.
    pub(crate) fn begin_move(&mut self) {
        self.last_was_invalid = false;
        if self.text.capacity() == 0 {
            let (bytes, messages) = ROOM;
            self.text.reserve(bytes);
            self.entries.reserve(messages);
        }
    }

    /// Behind a move; in a duel the other one is next where `rotates`.
    pub(crate) fn end_move(&mut self, rotates: bool) {
        if !self.was_invalid {
            self.error_count = 0;
            self.turn += 1;
        }
        if self.is_over() {
            return;
        }
        if rotates && self.seating == Seating::Duel && !self.was_invalid {
            self.current = 1 - self.current;
            self.error_count = 0;
        }
        self.was_invalid = false;
    }
}
