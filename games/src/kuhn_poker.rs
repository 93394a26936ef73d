//! Kuhn poker: three cards, one bet (Kuhn, 1950), for several rounds.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;
use spar_python::Random;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first};
use crate::table::{MessageKind, Seating, Table};
use crate::text::AddPiece;

const NAME: &str = "kuhn-poker";
const RANKS: [char; 3] = ['J', 'Q', 'K'];
const WORDS: [&str; 4] = ["check", "bet", "fold", "call"];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    max_rounds: u32,
    bets_count: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_rounds: 3, bets_count: false }
    }
}

/// What was done in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing, or nothing but a check.
    Open { has_checked: bool },
    /// There is a bet.
    Bet,
}

impl Stage {
    fn legal(self) -> [&'static str; 2] {
        match self {
            Self::Open { .. } => ["check", "bet"],
            Self::Bet => ["fold", "call"],
        }
    }
}

#[derive(Debug, Clone)]
struct KuhnPoker {
    settings: Settings,
    /// The deck stays as it was shuffled, and is shuffled anew from there.
    deck: [u8; 3],
    chips: [i64; 2],
    round: u32,
    starting: usize,
    stage: Stage,
    pot: i64,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("max_rounds", settings.max_rounds), 1..=1000)?;
    Ok(Box::new(KuhnPoker {
        settings,
        deck: [0, 1, 2],
        chips: [0; 2],
        round: 0,
        starting: 0,
        stage: Stage::Open { has_checked: false },
        pot: 0,
    }))
}

/// What `\[(Check|Bet|Fold|Call)\]` with `IGNORECASE` takes, in lower case; a text that is none of these words where
/// letters only look like theirs.
fn word(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    WORDS.into_iter().find(|word| {
        let mut ahead = *cursor;
        ahead.word(word) && ahead.take(']')
    })
}

/// Tells a player what it can do.
fn tell_moves(table: &mut Table, player: usize, [one, two]: [&str; 2]) {
    table.say_to_with(Some(player), MessageKind::Board, |text| {
        text.add("Your available actions are: '[").add(one).add("]', '[").add(two).add("]'");
    });
}

impl KuhnPoker {
    fn begin_round(&mut self, table: &mut Table) {
        let max_rounds = self.settings.max_rounds;
        self.round += 1;
        if self.round > max_rounds {
            let [one, two] = self.chips;
            if one == two {
                table.set_draw(format!(
                    "At the end of {max_rounds} rounds, both players had the same number of chips."
                ));
            } else {
                let winner = usize::from(two > one);
                let reason = format!(
                    "Player {winner} won by having more chips at the end of all {max_rounds} rounds."
                );
                table.set_winners(|player| player == winner, reason);
            }
        }
        // The package deals once more behind the last round, and says so.
        table.rng.shuffle(&mut self.deck);
        self.chips[0] -= 1;
        self.chips[1] -= 1;
        self.pot = 2;
        self.stage = Stage::Open { has_checked: false };
        self.starting = 1 - self.starting;
        table.pass_to(self.starting);
        for player in 0..2 {
            let card = RANKS[usize::from(self.deck[player])];
            let round = self.round;
            let starting = |text: &mut String| {
                text.add("### Starting round ").add(round).add(" out of ").add(max_rounds);
                text.add(" rounds. Your card is: '").add(card).add('\'');
            };
            table.say_to_with(Some(player), MessageKind::Message, starting);
            // Who does not begin is told the same twice.
            match player == self.starting {
                true => tell_moves(table, player, self.stage.legal()),
                false => table.say_to_with(Some(player), MessageKind::Board, starting),
            }
        }
    }

    /// A bet or a call, which the package never takes from anybody, whatever its rules say.
    fn pay_in(&mut self, player: usize) {
        if self.settings.bets_count {
            self.chips[player] -= 1;
            self.pot += 1;
        }
    }

    /// Pays the pot; what the reason writes is told with the scores.
    fn end_round(&mut self, table: &mut Table, winner: usize, reason: impl FnOnce(&mut String)) {
        self.chips[winner] += self.pot;
        let [one, two] = self.chips;
        table.say_with(MessageKind::Message, |text| {
            reason(text);
            text.add(" Current scores: Player 0: '").add(one);
            text.add("'; Player 1: '").add(two).add('\'');
        });
        self.begin_round(table);
    }

    fn show_down(&mut self, table: &mut Table) {
        let cards = [self.deck[0], self.deck[1]];
        let winner = usize::from(cards[1] > cards[0]);
        let card = |player: usize| RANKS[usize::from(cards[player])];
        let (loser, pot) = (1 - winner, self.pot);
        self.end_round(table, winner, |text| {
            text.add("Showdown: Player ").add(winner).add("'s ").add(card(winner));
            text.add(" beats Player ").add(loser).add("'s ").add(card(loser));
            text.add(". Player ").add(winner).add(" wins pot of ").add(pot).add(" chips.");
        });
    }
}

impl Rules for KuhnPoker {
    fn seating(&self) -> Seating {
        Seating::Duel
    }

    fn num_players(&self) -> usize {
        2
    }

    fn begin(&mut self, table: &mut Table) {
        (self.deck, self.chips, self.round, self.starting) = ([0, 1, 2], [0; 2], 0, 0);
        let max_rounds = self.settings.max_rounds;
        for player in 0..2 {
            table.say_to(
                Some(player),
                MessageKind::Prompt,
                format_args!(
                    "You are Player {player} in a {max_rounds} round game of Kuhn Poker.\n\
                     Game Rules:\n\
                     - Kuhn Poker uses a 3-card deck with J, Q, K (J lowest, K highest)\n\
                     - Each player antes 1 chip and receives 1 card each round (note that the cards are dealt without \
                     replacement, so you cannot have the same card as your opponent).\n\
                     - Game continues for {max_rounds} rounds\n\
                     - The player with the most chips after all rounds wins\n\n\
                     Action Rules:\n\
                     - '[check]': Pass without betting (only if no bet is on the table)\n\
                     - '[bet]': Add 1 chip to the pot (only if no bet is on the table)\n\
                     - '[call]': Match an opponent's bet by adding 1 chip to the pot\n\
                     - '[fold]': Surrender your hand and let your opponent win the pot\n"
                ),
            );
        }
        self.begin_round(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        table.pass_on(player, None, action);
        let Some(chosen) = first(action, word) else {
            table.invalid(format_args!("Action must be [Check], [Bet], [Call], or [Fold]."));
            return table.end_move(true);
        };
        let legal = self.stage.legal();
        if !legal.contains(&chosen) {
            let [one, two] = legal;
            table.invalid(format_args!("Action must be [{one}], [{two}]."));
            return table.end_move(true);
        }
        table.say_with(MessageKind::Description, |text| {
            text.add("Player ").add(player).add(", submitted move: '[").add(chosen).add("]'.");
        });
        match (self.stage, chosen) {
            (Stage::Open { has_checked: true }, "check") | (_, "call") => {
                if chosen == "call" {
                    self.pay_in(player);
                }
                self.show_down(table);
                return table.end_move(false);
            }
            (_, "fold") => {
                self.end_round(table, 1 - player, |text| {
                    text.add("Player ").add(player).add(" has folded.");
                });
                return table.end_move(false);
            }
            (Stage::Open { .. }, "check") => self.stage = Stage::Open { has_checked: true },
            _ => {
                self.pay_in(player);
                self.stage = Stage::Bet;
            }
        }
        tell_moves(table, 1 - player, self.stage.legal());
        table.end_move(true);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        Some(self.stage.legal().iter().map(|chosen| format!("[{chosen}]")).collect())
    }

    /// Where bets count, the equilibrium of a single round with the most bluffs: who begins bets the jack one time in three and the king
    /// always, and calls with the queen two times in three; who answers bets the jack and calls with the queen one time in
    /// three (Kuhn, 1950, with alpha = 1/3).
    fn expert(&mut self, table: &Table, luck: f64) -> Option<String> {
        let card = self.deck[table.current];
        let is_first = table.current == self.starting;
        let share = match (self.stage, is_first, card) {
            // Where bets cost nothing, nothing is gained by folding.
            _ if !self.settings.bets_count => 1.0,
            (_, _, 2) => 1.0,
            (Stage::Open { .. }, _, 0) => 1.0 / 3.0,
            (Stage::Open { .. }, _, _) => 0.0,
            (Stage::Bet, _, 0) => 0.0,
            (Stage::Bet, true, _) => 2.0 / 3.0,
            (Stage::Bet, false, _) => 1.0 / 3.0,
        };
        let [passive, active] = self.stage.legal();
        Some(format!("[{}]", if luck < share { active } else { passive }))
    }

    /// Bets and calls with the higher card, else checks and folds.
    fn oracle(&mut self, table: &Table) -> Option<String> {
        let player = table.current;
        let [passive, active] = self.stage.legal();
        let is_ahead = self.deck[player] > self.deck[1 - player];
        Some(format!("[{}]", if is_ahead { active } else { passive }))
    }

    fn determinize(&mut self, table: &mut Table, player: usize, below: &mut dyn FnMut(u64) -> u64) {
        if below(2) == 1 {
            self.deck.swap(1 - player, 2);
        }
        table.rng = Random::from_u64(below(1 << 32));
    }

    fn judge(&self, _: &Table, player: usize) -> f64 {
        (self.chips[player] - self.chips[1 - player]) as f64
            / f64::from(self.settings.max_rounds * 4)
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
