//! The commands that are possible at a moment, sorted and without duplicates.

use std::cmp::Ordering;

use super::entities::Kind;
use super::game::Game;
use super::plan::{MAX_SLOTS, UNBOUND};
use super::rules::MAX_PARAMETERS;

/// One possible action and where its command is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    start: u32,
    length: u16,
    pub(crate) action: u16,
    pub(crate) values: [u16; MAX_PARAMETERS],
}

/// Commands with their actions, in one text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offers {
    text: String,
    list: Vec<Offer>,
    /// The first bytes of each command, as a number: sorts like the text.
    keys: Vec<u128>,
}

/// The sorted list of commands that are possible at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Admissible<'a> {
    offers: &'a Offers,
}

impl<'a> Admissible<'a> {
    pub(crate) fn new(offers: &'a Offers) -> Self {
        Self { offers }
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.offers.list.len()
    }

    /// Whether nothing is possible.
    pub fn is_empty(&self) -> bool {
        self.offers.list.is_empty()
    }

    /// The command at a place of the list.
    pub fn get(&self, index: usize) -> Option<&'a str> {
        self.offers.list.get(index).map(|offer| self.offers.command(offer))
    }

    /// All commands, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        let offers = self.offers;
        offers.list.iter().map(|offer| offers.command(offer))
    }

    /// Whether a command is among them, letter by letter.
    pub fn contains(&self, command: &str) -> bool {
        self.offers.find(command).is_some()
    }
}

impl Offers {
    pub(crate) fn list(&self) -> &[Offer] {
        &self.list
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn command(&self, offer: &Offer) -> &str {
        let start = offer.start as usize;
        &self.text[start..start + usize::from(offer.length)]
    }

    /// The action with that command.
    pub(crate) fn find(&self, command: &str) -> Option<&Offer> {
        self.list.iter().find(|offer| self.command(offer) == command)
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.list.clear();
        self.keys.clear();
    }

    /// Adds the possible actions of one kind, in no useful order.
    pub(crate) fn collect(&mut self, game: &Game, dynamic: &[u64], index: usize) {
        let action = &game.program.actions[index];
        let view = game.view(dynamic);
        let narrator = game.narrator(dynamic);
        let mut bindings = [UNBOUND; MAX_SLOTS];
        for (value, kind) in bindings.iter_mut().zip(&action.parameters) {
            if *kind == Kind::Agent {
                *value = 0;
            }
        }
        for query in &action.queries {
            query.solve(view, &mut bindings, &mut |found| {
                // What follows the parameters are placeholders of the query; texts have their own.
                let num = action.parameters.len();
                let mut values = [UNBOUND; MAX_PARAMETERS];
                values[..num].copy_from_slice(&found[..num]);
                if action.is_idle(&values) {
                    return false;
                }
                let start = self.text.len();
                let mut text_bindings = [UNBOUND; MAX_SLOTS];
                text_bindings[..MAX_PARAMETERS].copy_from_slice(&values);
                narrator.write(&action.command, &mut text_bindings, &mut self.text);
                let key = sort_key(&self.text.as_bytes()[start..]);
                // A command longer than this is cut off; names are far shorter.
                let length = u16::try_from(self.text.len() - start).unwrap_or(0);
                self.list.push(Offer { start: start as u32, length, action: index as u16, values });
                self.keys.push(key);
                false
            });
        }
    }

    /// Fills `self` with all of `fixed` and `moving`, which need not be sorted; `fixed` must be.
    pub(crate) fn merge(&mut self, fixed: &Offers, moving: &mut Offers, order: &mut Vec<u16>) {
        self.clear();
        order.clear();
        order.extend(0..moving.list.len() as u16);
        let (text, list, keys) = (&moving.text, &moving.list, &moving.keys);
        let command = |index: u16| {
            let offer = &list[usize::from(index)];
            &text[offer.start as usize..][..usize::from(offer.length)]
        };
        // The order of actions decides between equal commands, as in the reference.
        order.sort_by(|&left, &right| {
            keys[usize::from(left)]
                .cmp(&keys[usize::from(right)])
                .then_with(|| command(left).cmp(command(right)))
        });
        let mut order = order.iter().map(|&index| usize::from(index)).peekable();
        let mut next_fixed = 0;
        loop {
            let take_fixed = match (next_fixed < fixed.list.len(), order.peek()) {
                (false, None) => break,
                (true, None) => true,
                (false, Some(_)) => false,
                (true, Some(&index)) => {
                    let by_key = fixed.keys[next_fixed].cmp(&moving.keys[index]);
                    let by_text = || {
                        fixed
                            .command(&fixed.list[next_fixed])
                            .cmp(moving.command(&moving.list[index]))
                    };
                    by_key.then_with(by_text) != Ordering::Greater
                }
            };
            if take_fixed {
                self.push(fixed, next_fixed);
                next_fixed += 1;
            } else if let Some(index) = order.next() {
                self.push(moving, index);
            }
        }
    }

    fn push(&mut self, from: &Offers, index: usize) {
        let offer = &from.list[index];
        let (command, key) = (from.command(offer), from.keys[index]);
        let is_repeated = self.keys.last() == Some(&key)
            && self.list.last().is_some_and(|last| self.command(last) == command);
        if is_repeated {
            return;
        }
        let start = self.text.len() as u32;
        self.text.push_str(command);
        self.list.push(Offer { start, ..*offer });
        self.keys.push(key);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.text.capacity()
            + self.list.capacity() * size_of::<Offer>()
            + self.keys.capacity() * size_of::<u128>()
    }

    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.list.shrink_to_fit();
        self.keys.shrink_to_fit();
    }
}

fn sort_key(command: &[u8]) -> u128 {
    let mut first = [0; 16];
    let length = command.len().min(16);
    first[..length].copy_from_slice(&command[..length]);
    u128::from_be_bytes(first)
}
