//! Nim: take from piles, the last to take wins.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, is_too_long, printed, value};
use crate::table::{MessageKind, Seating, Table};
use crate::text::AddPiece;

const NAME: &str = "nim";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    piles: Vec<u32>,
    max_pile: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { piles: vec![3, 4, 5], max_pile: 0 }
    }
}

#[derive(Debug, Clone)]
struct Nim {
    settings: Settings,
    piles: Vec<u32>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("piles (how many)", settings.piles.len()), 1..=10)?;
    for pile in &settings.piles {
        check_range(NAME, ("pile", *pile), 1..=100)?;
    }
    check_range(NAME, ("max_pile", settings.max_pile), 0..=100)?;
    Ok(Box::new(Nim { settings, piles: Vec::new() }))
}

/// What `\[\s*(\d+)\s+(\d+)\s*\]` takes.
fn take<'t>(cursor: &mut Cursor<'t>) -> Option<(&'t str, &'t str)> {
    cursor.spaces();
    let pile = cursor.digits()?;
    let quantity = if cursor.spaces() { cursor.digits()? } else { return None };
    cursor.spaces();
    cursor.take(']').then_some((pile, quantity))
}

impl Nim {
    fn tell_piles(&self, table: &mut Table) {
        table.say_with(MessageKind::Board, |text| {
            text.push_str("Current Pile:");
            for (at, amount) in self.piles.iter().enumerate() {
                text.add("\n  pile ").add(at).add(": ").add(*amount);
            }
        });
    }

    fn move_of(&mut self, table: &mut Table, action: &str) {
        let Some((pile, quantity)) = first(action, take) else {
            table.invalid(format_args!("No valid move format found. Use '[pile quantity]'."));
            return;
        };
        if [pile, quantity].into_iter().any(is_too_long) {
            table.invalid(format_args!("Action must be two integers: '[pile quantity]'."));
            return;
        }
        let at = usize::try_from(value(pile)).ok().filter(|pile| *pile < self.piles.len());
        let Some(at) = at else {
            let pile = printed(pile);
            table.invalid(format_args!("Pile index {pile} is out of range."));
            return;
        };
        let taken = value(quantity);
        let left = self.piles[at];
        if taken == 0 {
            table.invalid(format_args!("Must remove at least 1 object."));
        } else if u64::from(left) < taken {
            let quantity = printed(quantity);
            table.invalid(format_args!(
                "Cannot remove {quantity} from pile {at} (only {left} left)."
            ));
        } else {
            self.piles[at] -= taken as u32;
            let player = table.current;
            table.say_with(MessageKind::Description, |text| {
                text.add("Player ").add(player).add(" removes ").add(taken);
                text.add(" from pile ").add(at).add('.');
            });
        }
    }
}

impl Rules for Nim {
    fn seating(&self) -> Seating {
        Seating::Duel
    }

    fn num_players(&self) -> usize {
        2
    }

    fn begin(&mut self, table: &mut Table) {
        self.piles.clone_from(&self.settings.piles);
        if self.settings.max_pile > 0 {
            for pile in &mut self.piles {
                *pile = 1 + table.rng.below(u64::from(self.settings.max_pile)) as u32;
            }
        }
        for player in 0..2 {
            table.say_to(
                Some(player),
                MessageKind::Prompt,
                format_args!(
                    "Welcome to Nim, Player {player}!\nRules:\n\
                     - On your turn, remove at least one object from exactly one pile.\n\
                     - Remove objects with the format '[pile quantity]', e.g. '[0 3]'.\n\
                     - Whoever takes the last object(s) wins!"
                ),
            );
        }
        self.tell_piles(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        table.pass_on(player, None, action);
        self.move_of(table, action);
        self.tell_piles(table);
        if self.piles.iter().all(|pile| *pile == 0) {
            let reason = format!("Player {player} took the last object(s)!");
            table.set_winners(|other| other == player, reason);
        }
        table.end_move(true);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let moves = self.piles.iter().enumerate();
        let moves = moves.flat_map(|(at, pile)| (1..=*pile).map(move |taken| (at, taken)));
        Some(moves.map(|(at, taken)| format!("[{at} {taken}]")).collect())
    }

    /// Perfect play: a move to a nim-sum of zero (Bouton, 1901), or one object of the largest pile where there is none.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let sum = self.piles.iter().fold(0, |sum, pile| sum ^ pile);
        let mut moves = self.piles.iter().enumerate();
        let winning = moves.find(|(_, pile)| *pile ^ sum < **pile);
        let (at, taken) = match winning {
            Some((at, pile)) => (at, pile - (pile ^ sum)),
            None => {
                let (at, _) = self.piles.iter().enumerate().max_by_key(|(_, pile)| **pile)?;
                (at, 1)
            }
        };
        Some(format!("[{at} {taken}]"))
    }

    fn key(&self, table: &Table) -> Option<u128> {
        let piles = self.piles.iter().fold(0_u128, |key, pile| key << 7 | u128::from(*pile));
        Some(piles << 1 | table.current as u128)
    }

    fn search_depth(&self) -> u32 {
        64
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
