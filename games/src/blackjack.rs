//! Blackjack: several hands against a dealer, from a deck without end.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use spar_python::Random;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::table::{MessageKind, Table};

const NAME: &str = "blackjack";
const RANKS: [&str; 13] = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"];
const SUITS: [char; 4] = ['♠', '♥', '♦', '♣'];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    num_hands: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { num_hands: 5 }
    }
}

/// Rank and suit by their places.
type Card = (u8, u8);

#[derive(Debug, Clone)]
struct Blackjack {
    settings: Settings,
    hand_number: u32,
    player: Vec<Card>,
    dealer: Vec<Card>,
    wins: u32,
    losses: u32,
    draws: u32,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("num_hands", settings.num_hands), 1..=1000)?;
    Ok(Box::new(Blackjack {
        settings,
        hand_number: 1,
        player: Vec::new(),
        dealer: Vec::new(),
        wins: 0,
        losses: 0,
        draws: 0,
    }))
}

fn points(rank: u8) -> u32 {
    match rank {
        12 => 11,
        9..=11 => 10,
        rank => u32::from(rank) + 2,
    }
}

fn score(hand: &[Card]) -> u32 {
    let mut total: u32 = hand.iter().map(|(rank, _)| points(*rank)).sum();
    let mut aces = hand.iter().filter(|(rank, _)| *rank == 12).count();
    while total > 21 && aces > 0 {
        total -= 10;
        aces -= 1;
    }
    total
}

fn draw(rng: &mut Random) -> Card {
    let rank = rng.below(RANKS.len() as u64) as u8;
    (rank, rng.below(SUITS.len() as u64) as u8)
}

/// A total with whether an ace counts 11 in it, behind one more card.
fn with_card(total: u32, is_soft: bool, rank: u8) -> (u32, bool) {
    let total = total + points(rank);
    // At most one ace counts 11.
    let soft_aces = u32::from(is_soft) + u32::from(rank == 12);
    match total > 21 {
        true if soft_aces > 0 => {
            let total = total - 10;
            if total > 21 && soft_aces > 1 { (total - 10, false) } else { (total, soft_aces > 1) }
        }
        _ => (total, soft_aces > 0),
    }
}

/// How likely each total of the dealer is, who draws up to 17: 17 to 21, and beyond.
fn dealer_totals(total: u32, is_soft: bool, share: f64, totals: &mut [f64; 6]) {
    if total >= 17 {
        totals[(total.min(22) - 17) as usize] += share;
        return;
    }
    for rank in 0..13 {
        let (total, is_soft) = with_card(total, is_soft, rank);
        dealer_totals(total, is_soft, share / 13.0, totals);
    }
}

/// What is won on average against these totals of the dealer, by standing.
fn stand(total: u32, dealer: &[f64; 6]) -> f64 {
    let mut won = dealer[5];
    for (at, share) in dealer[..5].iter().enumerate() {
        let other = at as u32 + 17;
        won += match total.cmp(&other) {
            std::cmp::Ordering::Greater => *share,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Less => -share,
        };
    }
    won
}

/// What is won on average by the best play, and whether that draws a card.
fn best(total: u32, is_soft: bool, dealer: &[f64; 6], known: &mut [[Option<f64>; 2]; 22]) -> f64 {
    if total > 21 {
        return -1.0;
    }
    if let Some(value) = known[total as usize][usize::from(is_soft)] {
        return value;
    }
    let value = stand(total, dealer).max(hit(total, is_soft, dealer, known));
    known[total as usize][usize::from(is_soft)] = Some(value);
    value
}

fn hit(total: u32, is_soft: bool, dealer: &[f64; 6], known: &mut [[Option<f64>; 2]; 22]) -> f64 {
    let values = (0..13).map(|rank| {
        let (total, is_soft) = with_card(total, is_soft, rank);
        best(total, is_soft, dealer, known)
    });
    values.sum::<f64>() / 13.0
}

impl Blackjack {
    fn completion(&self) -> f64 {
        (f64::from(self.wins) + 0.5 * f64::from(self.draws)) / f64::from(self.settings.num_hands)
    }

    fn deal(&mut self, rng: &mut Random) {
        self.player.clear();
        self.dealer.clear();
        let cards = [draw(rng), draw(rng), draw(rng), draw(rng)];
        self.player.extend(&cards[..2]);
        self.dealer.extend(&cards[2..]);
    }

    fn observe(&self, table: &mut Table) {
        table.say_with(MessageKind::Message, |text| {
            let _ =
                write!(text, "Hand {}/{}\nYour hand: ", self.hand_number, self.settings.num_hands);
            let card = |text: &mut String, (rank, suit): Card| {
                text.push_str(RANKS[usize::from(rank)]);
                text.push(SUITS[usize::from(suit)]);
            };
            for (at, held) in self.player.iter().enumerate() {
                if at > 0 {
                    text.push_str(", ");
                }
                card(text, *held);
            }
            let _ = write!(text, " (Score: {})\nDealer shows: ", score(&self.player));
            card(text, self.dealer[0]);
        });
    }

    fn finish(&mut self, table: &mut Table, outcome: &str) {
        table.say(
            MessageKind::Message,
            format_args!(
                "Hand {}: you {outcome}. Your final {}, Dealer {}.",
                self.hand_number,
                score(&self.player),
                score(&self.dealer)
            ),
        );
        let num_hands = self.settings.num_hands;
        if self.hand_number < num_hands {
            self.hand_number += 1;
            self.deal(&mut table.rng);
            return;
        }
        let Self { wins, losses, draws, .. } = *self;
        table.say(
            MessageKind::Message,
            format_args!(
                "=== All {num_hands} hands complete ===\nWins: {wins}, Losses: {losses}, Draws: {draws}\n"
            ),
        );
        let reward = f64::from(wins) / f64::from(wins + losses + draws);
        let reason = format!(
            "The game has concluded. Final scores: Dealer: {losses}, You: {wins}, Draws: {draws}"
        );
        table.set_outcome(reward, wins > losses, reason);
    }
}

impl Rules for Blackjack {
    fn begin(&mut self, table: &mut Table) {
        (self.hand_number, self.wins, self.losses, self.draws) = (1, 0, 0, 0);
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing Blackjack against the dealer.\n\
                 Your goal is to get as close to 21 as possible without going over.\n\
                 On your turn, choose '[Hit]' to draw another card or '[Stand]' to hold.\n\
                 J/Q/K = 10 points; A = 11 or 1, whichever is better.\n"
            ),
        );
        self.deal(&mut table.rng);
        self.observe(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let said = action.to_lowercase();
        if said.contains("[hit]") {
            self.player.push(draw(&mut table.rng));
            if score(&self.player) > 21 {
                self.losses += 1;
                self.finish(table, "bust");
            }
            self.observe(table);
        } else if said.contains("[stand]") {
            while score(&self.dealer) < 17 {
                self.dealer.push(draw(&mut table.rng));
            }
            let (own, other) = (score(&self.player), score(&self.dealer));
            let outcome = match own.cmp(&other) {
                std::cmp::Ordering::Greater => "win",
                _ if other > 21 => "win",
                std::cmp::Ordering::Equal => "draw",
                std::cmp::Ordering::Less => "lose",
            };
            match outcome {
                "win" => self.wins += 1,
                "draw" => self.draws += 1,
                _ => self.losses += 1,
            }
            self.finish(table, outcome);
            self.observe(table);
        } else {
            table.invalid_alone(
                || self.completion(),
                format_args!("Invalid action. Use '[Hit]' or '[Stand]'."),
            );
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        Some(vec!["[Hit]".to_owned(), "[Stand]".to_owned()])
    }

    /// What wins more on average, exactly: the deck has no end, so a hand is its total and whether an ace counts 11.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let (mut total, mut is_soft) = (0, false);
        for (rank, _) in &self.player {
            (total, is_soft) = with_card(total, is_soft, *rank);
        }
        let mut dealer = [0.0; 6];
        let (shown, is_soft_dealer) = with_card(0, false, self.dealer.first()?.0);
        dealer_totals(shown, is_soft_dealer, 1.0, &mut dealer);
        let mut known = [[None; 2]; 22];
        let draws = hit(total, is_soft, &dealer, &mut known) > stand(total, &dealer);
        Some(if draws { "[Hit]" } else { "[Stand]" }.to_owned())
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(own: &[u8], shown: u8) -> bool {
        let mut game = Blackjack {
            settings: Settings::default(),
            hand_number: 1,
            player: own.iter().map(|rank| (*rank, 0)).collect(),
            dealer: vec![(shown, 0), (0, 0)],
            wins: 0,
            losses: 0,
            draws: 0,
        };
        let rng = Random::from_u64(0);
        let table = Table::new(crate::table::Seating::Alone, 1, None, rng);
        game.expert(&table, 0.5).unwrap() == "[Hit]"
    }

    #[test]
    fn the_best_play_is_that_of_the_tables() {
        // Hard 16 against 10 and against 6, hard 12 against 2 and against 4, soft 18 against 9 and against 7.
        assert!(draws(&[8, 4], 8) && !draws(&[8, 4], 4));
        assert!(draws(&[8, 0], 0) && !draws(&[8, 0], 2));
        assert!(draws(&[12, 5], 7) && !draws(&[12, 5], 5));
        assert!(!draws(&[8, 9], 8));
    }

    #[test]
    fn an_ace_counts_eleven_as_long_as_it_can() {
        assert_eq!(score(&[(12, 0), (12, 0), (7, 0)]), 21);
        assert_eq!(score(&[(12, 0), (9, 0), (3, 0)]), 16);
        assert_eq!(with_card(21, true, 12), (12, false));
        assert_eq!(with_card(11, true, 12), (12, true));
    }
}
