//! Playing a game.

use std::sync::Arc;

use super::admissible::{Admissible, Offer, Offers};
use super::entities::Kind;
use super::game::Game;
use super::plan::{Bindings, MAX_SLOTS, UNBOUND};
use super::relations::{Layer, RelationId};

/// The answer to a command that is not possible.
pub const NOTHING_HAPPENS: &str = "Nothing happens.";

/// A game being played.
///
/// A clone is a fork: it goes on from the same moment and shares nothing that changes.
///
/// The engine knows no limit of steps and goes on after the goal is reached, as the reference
/// does below its wrappers.
#[derive(Debug)]
pub struct Engine {
    game: Arc<Game>,
    dynamic: Box<[u64]>,
    location: Option<u16>,
    won: bool,
    observation: String,
    offers: Offers,
    scratch: Scratch,
}

/// Buffers that are kept from step to step.
#[derive(Debug, Default)]
struct Scratch {
    moving: Offers,
    order: Vec<u16>,
}

/// What a command led to; the observation is in [`Engine::observation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the goal holds now.
    pub won: bool,
    /// Whether the command was possible. If not, nothing changed.
    pub executable: bool,
}

impl Clone for Engine {
    fn clone(&self) -> Self {
        Self {
            game: Arc::clone(&self.game),
            dynamic: self.dynamic.clone(),
            location: self.location,
            won: self.won,
            observation: self.observation.clone(),
            offers: self.offers.clone(),
            scratch: Scratch::default(),
        }
    }
}

impl Engine {
    /// Starts a game.
    pub fn new(game: Arc<Game>) -> Self {
        let mut engine = Self {
            dynamic: game.initial.clone().into_boxed_slice(),
            location: None,
            won: false,
            observation: game.intro.clone(),
            offers: Offers::default(),
            scratch: Scratch::default(),
            game,
        };
        engine.settle();
        engine
    }

    /// The game that is played.
    pub fn game(&self) -> &Arc<Game> {
        &self.game
    }

    /// The last answer; at the start the introduction with the task.
    pub fn observation(&self) -> &str {
        &self.observation
    }

    /// The commands that are possible now.
    pub fn admissible(&self) -> Admissible<'_> {
        Admissible::new(&self.offers)
    }

    /// Whether the goal holds.
    pub fn won(&self) -> bool {
        self.won
    }

    /// What the player is told to do, without "Your task is to: ".
    pub fn goal_text(&self) -> &str {
        self.game.goal_text()
    }

    /// Names of the receptacles in front of the player; empty in the middle of the room.
    pub fn location(&self) -> Vec<&str> {
        let entities = &self.game.entities;
        let mut names = Vec::new();
        self.receptacles_here(&mut |receptacle| {
            names.push(entities.name(Kind::Receptacle, receptacle))
        });
        names
    }

    /// Name of the object in the player's hand.
    pub fn held(&self) -> Option<&str> {
        self.held_number().map(|object| self.game.entities.name(Kind::Object, object))
    }

    /// Gives a command. Blanks around it do not matter, anything else does.
    pub fn step(&mut self, command: &str) -> Outcome {
        let is_blank = |char: char| char.is_whitespace() || ('\x1c'..='\x1f').contains(&char);
        let offer = self.offers.find(command.trim_matches(is_blank)).copied();
        self.observation.clear();
        let Some(offer) = offer else {
            self.observation.push_str(NOTHING_HAPPENS);
            return Outcome { won: self.won, executable: false };
        };
        self.apply(&offer);
        let game = &self.game;
        let action = &game.program.actions[usize::from(offer.action)];
        let mut bindings = bindings_of(&offer);
        game.narrator(&self.dynamic).write(&action.feedback, &mut bindings, &mut self.observation);
        self.settle();
        Outcome { won: self.won, executable: true }
    }

    /// A key of what the player can see: equal keys, equal situation.
    ///
    /// It covers the location, the object in hand with its state, the state of the objects in
    /// sight, and the possible commands; not what is hidden, and not the last answer.
    pub fn state_key(&self) -> u128 {
        let mut key = Key::default();
        key.add(u64::from(self.location.unwrap_or(UNBOUND)));
        key.add_text(self.offers.text());
        let mut in_sight = Vec::new();
        in_sight.extend(self.held_number());
        let facts = self.game.view(&self.dynamic).facts;
        let game = &*self.game;
        self.receptacles_here(&mut |receptacle| {
            let is = |id| game.relation(id).is_some_and(|found| found.holds(facts, receptacle, 0));
            if is(game.known.openable) && !is(game.known.opened) {
                return;
            }
            if let Some(contains) = game.relation(game.known.contains) {
                contains.firsts(facts, receptacle, &mut |object| {
                    in_sight.push(object);
                    false
                });
            }
        });
        for object in in_sight {
            key.add(u64::from(object));
            for relation in &game.relations {
                let signature = &relation.signature;
                if relation.is_dynamic
                    && signature.kinds == (Kind::Object, None)
                    && signature.layer != Layer::Negated
                {
                    key.add(u64::from(relation.holds(facts, object, 0)));
                }
            }
        }
        key.0
    }

    /// A key of the whole state, hidden things included: equal keys, equal future.
    pub fn full_state_key(&self) -> u128 {
        let mut key = Key::default();
        self.dynamic.iter().for_each(|&word| key.add(word));
        key.0
    }

    /// Bytes that this engine holds on the heap, without the game.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.dynamic.len() * 8
            + self.observation.capacity()
            + self.offers.heap_bytes()
            + self.scratch.moving.heap_bytes()
            + self.scratch.order.capacity() * 2
    }

    /// Makes the changes of a possible action, and nothing else.
    fn apply(&mut self, offer: &Offer) {
        let game = &*self.game;
        let changes = &game.effects[usize::from(offer.action)];
        let mut bindings = bindings_of(offer);
        let mut skipped = 0_u64;
        for (index, change) in changes.iter().enumerate() {
            if let Some(condition) = &change.condition
                && !condition.evaluate(game.view(&self.dynamic), &mut bindings)
            {
                skipped |= 1 << index;
            }
        }
        for (index, change) in changes.iter().enumerate() {
            let first = change.first.value(&bindings);
            let second = change.second.value(&bindings);
            let mut set = |relation: Option<RelationId>, value| {
                if let Some(relation) = game.relation(relation) {
                    relation.set(&mut self.dynamic, first, second, value);
                }
            };
            if skipped & (1 << index) == 0 {
                set(change.truth, change.adds);
            }
            // Texts take conditional effects for unconditional ones.
            set(change.text, change.adds);
            set(change.negated, !change.adds);
        }
    }

    /// Does an action without writing its answer, for searches.
    pub(crate) fn advance(&mut self, offer: &Offer) {
        self.apply(offer);
        self.settle();
    }

    pub(crate) fn offers(&self) -> &Offers {
        &self.offers
    }

    pub(crate) fn dynamic(&self) -> &[u64] {
        &self.dynamic
    }

    pub(crate) fn location_number(&self) -> Option<u16> {
        self.location
    }

    pub(crate) fn held_number(&self) -> Option<u16> {
        let holds = self.game.relation(self.game.known.holds)?;
        let mut held = None;
        holds.seconds(self.game.view(&self.dynamic).facts, 0, &mut |object| {
            held = Some(object);
            true
        });
        held
    }

    fn receptacles_here(&self, visit: &mut impl FnMut(u16)) {
        let facts = self.game.view(&self.dynamic).facts;
        if let (Some(relation), Some(location)) =
            (self.game.relation(self.game.known.receptacle_at), self.location)
        {
            relation.firsts(facts, location, &mut |receptacle| {
                visit(receptacle);
                false
            });
        }
    }

    /// Brings everything that follows from the facts up to date.
    fn settle(&mut self) {
        let game = &*self.game;
        let view = game.view(&self.dynamic);
        let mut locations = (None, 0);
        if let Some(at) = game.relation(game.known.at) {
            at.seconds(view.facts, 0, &mut |location| {
                locations = (Some(location), locations.1 + 1);
                false
            });
        }
        // Rules that leave the player nowhere or in two places get no prepared list.
        self.location = locations.0.filter(|_| locations.1 == 1);
        self.won = game.goal.evaluate(view, &mut [UNBOUND; MAX_SLOTS]);
        let Scratch { moving, order } = &mut self.scratch;
        moving.clear();
        let nothing = Offers::default();
        let fixed = match self.location {
            None => &nothing,
            Some(location) => game.offers[usize::from(location)].get_or_init(|| {
                let mut unsorted = Offers::default();
                for (index, action) in game.program.actions.iter().enumerate() {
                    if action.depends_on_location_only {
                        unsorted.collect(game, &self.dynamic, index);
                    }
                }
                let mut sorted = Offers::default();
                sorted.merge(&nothing, &mut unsorted, order);
                sorted.shrink();
                sorted
            }),
        };
        for (index, action) in game.program.actions.iter().enumerate() {
            if self.location.is_none() || !action.depends_on_location_only {
                moving.collect(game, &self.dynamic, index);
            }
        }
        self.offers.merge(fixed, moving, order);
    }
}

fn bindings_of(offer: &Offer) -> Bindings {
    let mut bindings = [UNBOUND; MAX_SLOTS];
    bindings[..offer.values.len()].copy_from_slice(&offer.values);
    bindings
}

/// A hash that is the same on every machine and in every version.
#[derive(Default)]
struct Key(u128);

impl Key {
    /// An odd number with well-mixed bits (the multiplier of 128-bit PCG generators).
    const FACTOR: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word)).wrapping_add(1).wrapping_mul(Self::FACTOR);
        self.0 ^= self.0 >> 67;
    }

    fn add_text(&mut self, text: &str) {
        for bytes in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.add(u64::from_le_bytes(word));
        }
        self.add(text.len() as u64);
    }
}
