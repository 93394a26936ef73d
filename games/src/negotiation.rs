//! A simple negotiation: two trade what each values in its own way.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use std::borrow::Cow;

use num_bigint::BigUint;
use serde::Deserialize;
use serde_json::Value;
use spar_python::Random;
use spar_python::characters::decimal_value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, big_value, brackets, is_letter_of_any_case, value};
use crate::table::{MessageKind, Seating, Table};
use crate::text::AddPiece;

const NAME: &str = "negotiation";
const RESOURCES: [&str; 5] = ["Wheat", "Wood", "Sheep", "Brick", "Ore"];
const WOOD: usize = 1;
const SHEEP: usize = 2;
/// What they are worth on average, and how far from that a player's values are.
const BASE: [(i64, i64); 5] = [(5, 1), (10, 2), (15, 3), (25, 5), (40, 8)];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    max_turns: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_turns: 10 }
    }
}

/// The most digits that always fit into 64 bits.
const SMALL_DIGITS: usize = 19;

/// A quantity that somebody names, which can be of any size.
#[derive(Debug, Clone, PartialEq)]
enum Quantity {
    Small(u64),
    Large(BigUint),
}

impl Quantity {
    /// The number of digits; `None` where CPython refuses to make one.
    fn of(digits: &str) -> Option<Self> {
        match digits.len() <= SMALL_DIGITS {
            true => Some(Self::Small(value(digits))),
            false => big_value(digits).map(Self::Large),
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Self::Small(number) => *number == 0,
            Self::Large(number) => *number == BigUint::ZERO,
        }
    }

    fn add(&mut self, other: &Self) {
        let sum = match (&*self, other) {
            (Self::Small(one), Self::Small(two)) => one.checked_add(*two),
            _ => None,
        };
        *self = match sum {
            Some(sum) => Self::Small(sum),
            None => Self::Large(self.large() + other.large()),
        };
    }

    fn large(&self) -> BigUint {
        match self {
            Self::Small(number) => (*number).into(),
            Self::Large(number) => number.clone(),
        }
    }

    /// As a number that can be counted with: what is larger than that, and than what anybody has, is the largest.
    fn amount(&self) -> i64 {
        match self {
            Self::Small(number) => i64::try_from(*number).unwrap_or(i64::MAX),
            Self::Large(number) => i64::try_from(number).unwrap_or(i64::MAX),
        }
    }
}

/// Quantities of resources in the order in which they were named.
type Goods = Vec<(usize, Quantity)>;

#[derive(Debug, Clone)]
struct Offer {
    from: usize,
    offered: Goods,
    requested: Goods,
}

#[derive(Debug, Clone)]
struct Negotiation {
    settings: Settings,
    resources: [[i64; 5]; 2],
    values: [[i64; 5]; 2],
    initial: [i64; 2],
    change: [i64; 2],
    offer: Option<Offer>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=1000)?;
    Ok(Box::new(Negotiation {
        settings,
        resources: [[0; 5]; 2],
        values: [[0; 5]; 2],
        initial: [0; 2],
        change: [0; 2],
        offer: None,
    }))
}

/// What is inside the first offer in brackets; `None` where there is none.
fn offer_in(action: &str) -> Option<&str> {
    brackets(action).find_map(|mut cursor| {
        if !cursor.word("offer") {
            return None;
        }
        let end = cursor.rest.find(['[', ']'])?;
        (cursor.rest[end..].starts_with(']') && end > 0).then(|| &cursor.rest[..end])
    })
}

fn without_opening(text: &str) -> &str {
    let mut cursor = Cursor { rest: text };
    let is_opening = cursor.word("i")
        && cursor.spaces()
        && (cursor.word("give") || cursor.word("offer"))
        && cursor.spaces();
    if is_opening { cursor.rest } else { text }
}

/// Both sides of an offer.
fn parse(inner: &str) -> Option<(Goods, Goods)> {
    let mut cursor = Cursor { rest: inner };
    cursor.take(':');
    cursor.spaces();
    let text = without_opening(cursor.rest);
    // The package makes a single space of all between two words here; nothing below asks how much there is.
    let text = spar_python::text::strip(text.trim_end_matches('.'));
    let text = without_opening(text.trim_end_matches(['.', ',', '!', '?']));
    let (offered, requested) = text.split_once("->")?;
    if requested.contains("->") {
        return None;
    }
    Some((goods(offered)?, goods(requested)?))
}

/// All `(\d+)\s+([A-Za-z]+)` of a side.
fn goods(side: &str) -> Option<Goods> {
    let mut goods: Goods = Vec::new();
    let mut rest = side;
    while let Some(at) = rest.find(|next| decimal_value(next).is_some()) {
        let mut cursor = Cursor { rest: &rest[at..] };
        let digits = cursor.digits().unwrap_or_default();
        rest = cursor.rest;
        if !cursor.spaces() {
            continue;
        }
        let Some(name) = cursor.run(is_letter_of_any_case) else { continue };
        rest = cursor.rest;
        let quantity = Quantity::of(digits)?;
        let resource = resource(name)?;
        if quantity.is_zero() {
            return None;
        }
        match goods.iter_mut().find(|(other, _)| *other == resource) {
            Some((_, sum)) => sum.add(&quantity),
            None => goods.push((resource, quantity)),
        }
    }
    (!goods.is_empty()).then_some(goods)
}

/// The resource of a name in any case, as `capitalize` writes it, two of which have a plural.
fn resource(name: &str) -> Option<usize> {
    let name = match name.is_ascii() {
        true => Cow::Borrowed(name),
        // Some letters that are none of ASCII have one of it in the other case.
        false => {
            let mut letters = name.chars();
            let initial: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            Cow::Owned(initial + &letters.as_str().to_lowercase())
        }
    };
    let is_name = |known: &str| name.eq_ignore_ascii_case(known);
    match (is_name("Sheeps"), is_name("Woods")) {
        (true, _) => Some(SHEEP),
        (_, true) => Some(WOOD),
        _ => RESOURCES.iter().position(|resource| is_name(resource)),
    }
}

fn tell_goods(text: &mut String, goods: &Goods) {
    for (at, (resource, quantity)) in goods.iter().enumerate() {
        text.add(if at == 0 { "" } else { ", " });
        match quantity {
            Quantity::Small(number) => text.add(*number),
            Quantity::Large(number) => text.add(&*number.to_string()),
        };
        text.add(' ').add(RESOURCES[*resource]);
    }
}

fn worth(goods: &Goods, values: &[i64; 5]) -> i64 {
    goods
        .iter()
        .map(|(resource, quantity)| quantity.amount().saturating_mul(values[*resource]))
        .fold(0, i64::saturating_add)
}

impl Negotiation {
    fn has(&self, player: usize, goods: &Goods) -> bool {
        let has = &self.resources[player];
        goods.iter().all(|(resource, quantity)| quantity.amount() <= has[*resource])
    }

    fn inventory(&self, player: usize) -> i64 {
        self.resources[player]
            .iter()
            .zip(&self.values[player])
            .map(|(have, value)| have * value)
            .sum()
    }

    fn trade(&mut self, acceptor: usize, offer: &Offer) {
        for (goods, giver, taker) in
            [(&offer.offered, offer.from, acceptor), (&offer.requested, acceptor, offer.from)]
        {
            for (resource, quantity) in goods {
                self.resources[giver][*resource] -= quantity.amount();
                self.resources[taker][*resource] += quantity.amount();
            }
        }
        for player in 0..2 {
            self.change[player] = self.inventory(player) - self.initial[player];
        }
    }

    fn answer(&mut self, table: &mut Table, player: usize, action: &str) {
        let Some(offer) = &self.offer else { return };
        let accepts = brackets(action).any(|mut cursor| cursor.word("accept") && cursor.take(']'));
        if !accepts {
            // The offer stands nevertheless, for both.
            return table.say_with(MessageKind::Description, |text| {
                text.add("Player ").add(player).add(" rejected the trade offer.");
            });
        }
        if !self.has(player, &offer.requested) {
            let why = "Player tried accepting a trade without having the necessary resources.";
            table.invalid(format_args!("{why}"));
            return;
        }
        let Some(offer) = self.offer.take() else { return };
        self.trade(player, &offer);
        table.say_with(MessageKind::Description, |text| {
            text.add("Player ").add(player).add(" accepted the trade offer from Player ");
            text.add(offer.from).add('.');
        });
    }

    fn propose(&mut self, table: &mut Table, player: usize, action: &str) {
        if table.is_over() {
            return;
        }
        let Some(inner) = offer_in(action) else {
            return table.say_with(MessageKind::Description, |text| {
                text.add("Player ").add(player).add(" made no new trade offer.");
            });
        };
        let Some((offered, requested)) = parse(inner) else {
            table.invalid(format_args!(
                "Player {player} made a trade offer in an incorrect format."
            ));
            return;
        };
        if !self.has(player, &offered) {
            table.invalid(format_args!(
                "Player {player} tried to make a trade offer without having the necessary resources."
            ));
            return;
        }
        table.say_with(MessageKind::Description, |text| {
            text.add("Player ").add(player).add(" made the following offer to Player ");
            text.add(1 - player).add(": Offered items: ");
            tell_goods(text, &offered);
            text.push_str(" -> Requested items: ");
            tell_goods(text, &requested);
        });
        self.offer = Some(Offer { from: player, offered, requested });
    }

    /// What this player would gain by its own values, and the other by the usual ones.
    fn gains(&self, player: usize, offer: &Offer) -> (i64, i64) {
        let usual = BASE.map(|(value, _)| value);
        let own = &self.values[player];
        let gain = worth(&offer.offered, own).saturating_sub(worth(&offer.requested, own));
        let other = worth(&offer.requested, &usual).saturating_sub(worth(&offer.offered, &usual));
        (gain, other)
    }
}

impl Rules for Negotiation {
    fn seating(&self) -> Seating {
        Seating::Duel
    }

    fn num_players(&self) -> usize {
        2
    }

    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        let mut int = |low: i64, high: i64| table.rng.int(low, high).expect("a range");
        for have in self.resources.iter_mut().flatten() {
            *have = int(5, 25);
        }
        for values in &mut self.values {
            for (value, (base, spread)) in values.iter_mut().zip(BASE) {
                *value = int((base - spread).max(5), (base + spread).min(40));
            }
        }
        self.initial = [self.inventory(0), self.inventory(1)];
        self.change = [0; 2];
        self.offer = None;
        for player in 0..2 {
            let lines: Vec<String> = (0..5)
                .map(|resource| {
                    format!(
                        "{:<8}  Qty: {:<2}   Value: {}",
                        format!("[{}]", RESOURCES[resource]),
                        self.resources[player][resource],
                        self.values[player][resource]
                    )
                })
                .collect();
            table.say_to(
                Some(player),
                MessageKind::Prompt,
                format_args!(
                    "You are Player {player} in the Negotiation Game.\n\
                     You have some resources, and your task is to trade such that the total value of your resources increases.\n\
                     The resources and associated values you currently have are:\n\t+ {}\n\
                     At each turn, you can talk to your opponent and make a trade offer.\n\
                     Use the following special tokens for actions:\n  \
                     - '[Offer: 3 Sheep, 2 Ore -> 5 Brick, 2 Sheep]': [Offer: Offered Resources -> Requested Resources]\n  \
                     - '[Accept]': To accept an incoming offer.\n  \
                     - '[Deny]': To deny an incoming offer (default).\n\
                     The game lasts for {} turns in total.",
                    lines.join("\n\t+ "),
                    self.settings.max_turns
                ),
            );
        }
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        table.pass_on(player, None, action);
        self.answer(table, player, action);
        self.propose(table, player, action);
        if table.is_out_of_turns() {
            let [one, two] = self.change;
            if one == two {
                let reason = "Same change in inventory value for all players. Draw.";
                table.set_draw(reason);
            } else {
                let winner = usize::from(two > one);
                let reason =
                    format!("Player {winner} won by having a larger gain in inventory value.");
                table.set_winners(|player| player == winner, reason);
            }
        }
        table.end_move(true);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        None
    }

    /// Accepts what it gains by at least as much as the other does by the usual values, and offers what it values least,
    /// compared with these, for what it values most.
    fn expert(&mut self, table: &Table, luck: f64) -> Option<String> {
        let player = table.current;
        if let Some(offer) = self.offer.as_ref().filter(|offer| offer.from != player) {
            let (gain, other) = self.gains(player, offer);
            if gain > 0 && gain >= other && self.has(player, &offer.requested) {
                return Some("[Accept]".to_owned());
            }
        }
        let values = &self.values[player];
        let ratio = |resource: usize| values[resource] as f64 / BASE[resource].0 as f64;
        let have = |resource: usize| self.resources[player][resource];
        let given = (0..5)
            .filter(|resource| have(*resource) > 0)
            .min_by(|one, two| ratio(*one).total_cmp(&ratio(*two)))?;
        let wanted = (0..5)
            .filter(|resource| *resource != given)
            .max_by(|one, two| ratio(*one).total_cmp(&ratio(*two)))?;
        let least = BASE[given].0.max(BASE[wanted].0) + (luck * 20.0) as i64;
        let quantity = have(given).min((least / BASE[given].0).max(1));
        // As much as pays, by the own values, a little more than is given.
        let asked = (quantity * values[given] / values[wanted] + 1).max(1);
        Some(format!("[Offer: {quantity} {} -> {asked} {}]", RESOURCES[given], RESOURCES[wanted]))
    }

    fn determinize(&mut self, table: &mut Table, _: usize, below: &mut dyn FnMut(u64) -> u64) {
        table.rng = Random::from_u64(below(1 << 32));
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_any_size_are_added_and_told_in_full() {
        let told = |inner: &str| {
            let (offered, _) = parse(inner)?;
            let mut text = String::new();
            tell_goods(&mut text, &offered);
            Some(text)
        };
        let most = u64::MAX;
        assert_eq!(
            told(&format!("{most} Ore, 1 ores, 1 Wood -> 1 Ore")),
            None,
            "ores are no resource"
        );
        assert_eq!(
            told(&format!(": {most} Ore, 007 woods,{most} ORE -> 1 Ore")),
            Some(format!("{} Ore, 7 Wood", u128::from(most) * 2))
        );
        assert_eq!(
            told("9999999999999999999 Ore 9999999999999999999 Ore -> 1 Ore"),
            Some("19999999999999999998 Ore".to_owned())
        );
        assert_eq!(told("00000000000000000000000 Ore -> 1 Ore"), None);
    }

    #[test]
    fn resources_are_named_in_any_case() {
        assert_eq!(resource("sHEEPS"), Some(SHEEP));
        assert_eq!(resource("\u{17f}heep"), Some(SHEEP));
        assert_eq!(resource("bric\u{212a}"), Some(3));
        assert_eq!(resource("sheep\u{17f}"), None);
        assert_eq!(resource("Wheats"), None);
    }
}
