//! Leduc hold'em: six cards, two rounds of bets (Southey and others, 2005), for several hands.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word. It prints sets, whose order depends on the hashes of texts:
//! here they stand as with PYTHONHASHSEED=0.

use serde::Deserialize;
use serde_json::Value;
use spar_python::Random;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first};
use crate::table::{MessageKind, Seating, Table};

const NAME: &str = "leduc-holdem";
const RANKS: [char; 3] = ['J', 'Q', 'K'];
const WORDS: [&str; 5] = ["check", "call", "bet", "raise", "fold"];
const BETS: [i64; 2] = [2, 4];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    starting_bank: i64,
    max_rounds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { starting_bank: 100, max_rounds: 5 }
    }
}

#[derive(Debug, Clone)]
struct LeducHoldem {
    settings: Settings,
    hands: u32,
    /// 0 before the flop, 1 behind it.
    street: usize,
    pot: i64,
    banks: [i64; 2],
    cards: [u8; 2],
    board: u8,
    current_bet: i64,
    raises: u32,
    starting: usize,
    /// Whether the last move was a check. It is not forgotten between hands, so that the first check of a hand may close a
    /// round.
    has_checked: bool,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("starting_bank", settings.starting_bank), 2..=1_000_000)?;
    check_range(NAME, ("max_rounds", settings.max_rounds), 1..=1000)?;
    Ok(Box::new(LeducHoldem {
        settings,
        hands: 0,
        street: 0,
        pot: 0,
        banks: [0; 2],
        cards: [0; 2],
        board: 0,
        current_bet: 0,
        raises: 0,
        starting: 0,
        has_checked: false,
    }))
}

/// What `\[(check|call|bet|raise|fold)]` with `IGNORECASE` takes; absent within where its lower case is no such word.
fn word(cursor: &mut Cursor<'_>) -> Option<Option<&'static str>> {
    WORDS.into_iter().find_map(|word| {
        let mut ahead = *cursor;
        if !(ahead.word(word) && ahead.take(']')) {
            return None;
        }
        let said = &cursor.rest[..cursor.rest.len() - ahead.rest.len() - 1];
        Some((said.to_lowercase() == word).then_some(word))
    })
}

impl LeducHoldem {
    /// The moves, in the order of the set.
    fn moves(&self) -> &'static [&'static str] {
        match (self.current_bet, self.raises) {
            (0, _) => &["bet", "check"],
            (_, 0 | 1) => &["fold", "call", "raise"],
            _ => &["fold", "call"],
        }
    }

    fn announce(&self, table: &mut Table, player: usize) {
        let moves: Vec<String> = self.moves().iter().map(|it| format!("'[{it}]'")).collect();
        table.say_to(
            Some(player),
            MessageKind::Board,
            format_args!("Valid actions: {}", moves.join(", ")),
        );
    }

    fn deal(&mut self, table: &mut Table) {
        let [one, two] = self.banks;
        if self.hands >= self.settings.max_rounds {
            let reason = "Reached hand limit";
            if one == two {
                return table.set_draw(format!("{reason} | equal stacks"));
            }
            let winner = usize::from(two > one);
            let reason = format!("{reason} | stacks {}>{}", one.max(two), one.min(two));
            return table.set_winners(|player| player == winner, reason);
        }
        if one < BETS[0] || two < BETS[0] {
            let busted = usize::from(one >= BETS[0]);
            return table
                .set_winners(|player| player != busted, format!("Player {busted} is busted."));
        }
        self.hands += 1;
        (self.street, self.pot, self.current_bet, self.raises) = (0, 2, 0, 0);
        self.banks = [one - 1, two - 1];
        let mut deck = [0_u8, 0, 1, 1, 2, 2];
        table.rng.shuffle(&mut deck);
        self.cards = [deck[5], deck[4]];
        self.board = deck[3];
        self.starting ^= 1;
        table.pass_to(self.starting);
        for player in 0..2 {
            let card = RANKS[usize::from(self.cards[player])];
            table.say_to(
                Some(player),
                MessageKind::Message,
                format_args!("### New hand - your private card: {card}"),
            );
        }
        self.announce(table, table.current);
    }

    fn commit(&mut self, player: usize, amount: i64) {
        self.banks[player] -= amount;
        self.pot += amount;
    }

    fn close_round(&mut self, table: &mut Table) {
        if self.street == 0 {
            (self.street, self.current_bet, self.raises, self.has_checked) = (1, 0, 0, false);
            let card = RANKS[usize::from(self.board)];
            table.say(MessageKind::Message, format_args!("Flop card revealed: {card}"));
            table.pass_to(self.starting);
            self.announce(table, self.starting);
            return;
        }
        let strength = |player: usize| (self.cards[player] == self.board, self.cards[player]);
        match strength(0).cmp(&strength(1)) {
            std::cmp::Ordering::Equal => {
                let half = self.pot.div_euclid(2);
                self.banks[0] += half;
                self.banks[1] += self.pot - half;
                table.say(MessageKind::Message, format_args!("Exact tie."));
                self.deal(table);
            }
            order => {
                let winner = usize::from(order == std::cmp::Ordering::Less);
                self.award(table, winner, format!("Showdown - Player {winner} wins. "));
            }
        }
    }

    fn award(&mut self, table: &mut Table, winner: usize, reason: String) {
        self.banks[winner] += self.pot;
        let [one, two] = self.banks;
        table.say(
            MessageKind::Message,
            format_args!("{reason}Current banks: Player 0: {one}; Player 1: {two}\n"),
        );
        self.deal(table);
    }

    /// How sure a hand is, from 0 to 1, by what the player knows.
    fn confidence(&self, player: usize) -> f64 {
        let card = self.cards[player];
        match (self.street, card == self.board, card) {
            (1, true, _) => 1.0,
            (1, false, 2) => 0.65,
            (1, false, 1) => 0.35,
            (1, ..) => 0.1,
            (_, _, 2) => 0.85,
            (_, _, 1) => 0.5,
            _ => 0.3,
        }
    }
}

impl Rules for LeducHoldem {
    fn seating(&self) -> Seating {
        Seating::Duel
    }

    fn num_players(&self) -> usize {
        2
    }

    fn begin(&mut self, table: &mut Table) {
        self.banks = [self.settings.starting_bank; 2];
        (self.hands, self.starting, self.has_checked) = (0, 0, false);
        for player in 0..2 {
            table.say_to(
                Some(player),
                MessageKind::Prompt,
                format_args!(
                    "You are Player {player} in Leduc Hold'em.\n\
                     Respond with one action token like '[check]', '[bet]', '[call]', '[raise]', or '[fold]' when it is your turn.\n\
                     Fixed bet sizes: 2 chips pre-flop, 4 chips post-flop (max 2 raises per round)."
                ),
            );
        }
        self.deal(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        table.pass_on(player, None, action);
        let Some(said) = first(action, word) else {
            table.invalid(format_args!("Supply exactly one legal action token."));
            return table.end_move(true);
        };
        let Some(chosen) = said.filter(|said| self.moves().contains(said)) else {
            let moves: Vec<String> = self.moves().iter().map(|it| format!("'{it}'")).collect();
            table.invalid(format_args!("Illegal now. Allowed: {{{}}}", moves.join(", ")));
            return table.end_move(true);
        };
        let unit = BETS[self.street];
        if chosen == "check" {
            if self.has_checked {
                self.close_round(table);
                return table.end_move(false);
            }
            self.has_checked = true;
            table.say(MessageKind::Message, format_args!("Player {player} checks."));
            self.announce(table, 1 - player);
            return table.end_move(true);
        }
        self.has_checked = false;
        match chosen {
            "bet" => {
                (self.current_bet, self.raises) = (unit, 0);
                self.commit(player, unit);
                table.say(MessageKind::Message, format_args!("Player {player} bets {unit}."));
            }
            "raise" => {
                self.raises += 1;
                self.current_bet += unit;
                self.commit(player, unit);
                table.say(MessageKind::Message, format_args!("Player {player} raises {unit}."));
            }
            "call" => {
                let amount = self.current_bet;
                self.commit(player, amount);
                table.say(MessageKind::Message, format_args!("Player {player} calls {amount}."));
                self.close_round(table);
                return table.end_move(false);
            }
            _ => {
                self.award(table, 1 - player, format!("Player {player} folds."));
                return table.end_move(false);
            }
        }
        self.announce(table, 1 - player);
        table.end_move(true);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        Some(self.moves().iter().map(|chosen| format!("[{chosen}]")).collect())
    }

    /// Bets what is likely ahead, bluffs now and then, and folds what is likely behind.
    fn expert(&mut self, table: &Table, luck: f64) -> Option<String> {
        let sure = self.confidence(table.current);
        let chosen = match (self.current_bet, self.raises) {
            (0, _) if sure > 0.6 || luck < 0.15 => "bet",
            (0, _) => "check",
            (_, 0 | 1) if sure > 0.8 => "raise",
            _ if sure > 0.32 || luck < 0.1 => "call",
            _ => "fold",
        };
        Some(format!("[{chosen}]"))
    }

    /// Bets and calls where its hand is the better one, else checks and folds.
    fn oracle(&mut self, table: &Table) -> Option<String> {
        let player = table.current;
        let strength = |player: usize| (self.cards[player] == self.board, self.cards[player]);
        let is_ahead = strength(player) > strength(1 - player);
        let chosen = match (self.current_bet, self.raises) {
            (0, _) => {
                if is_ahead {
                    "bet"
                } else {
                    "check"
                }
            }
            (_, 0 | 1) if is_ahead => "raise",
            _ => {
                if is_ahead {
                    "call"
                } else {
                    "fold"
                }
            }
        };
        Some(format!("[{chosen}]"))
    }

    fn determinize(&mut self, table: &mut Table, player: usize, below: &mut dyn FnMut(u64) -> u64) {
        // The cards that this player has not seen.
        let mut unseen = vec![0_u8, 0, 1, 1, 2, 2];
        let mut take = |card: u8| {
            if let Some(at) = unseen.iter().position(|other| *other == card) {
                unseen.swap_remove(at);
            }
        };
        take(self.cards[player]);
        if self.street == 1 {
            take(self.board);
        }
        let mut draw = || unseen.swap_remove(below(unseen.len() as u64) as usize);
        self.cards[1 - player] = draw();
        if self.street == 0 {
            self.board = draw();
        }
        table.rng = Random::from_u64(below(1 << 32));
    }

    fn judge(&self, _: &Table, player: usize) -> f64 {
        ((self.banks[player] - self.banks[1 - player]) as f64 / 40.0).clamp(-1.0, 1.0)
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
