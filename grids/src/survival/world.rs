//! The world, and a step in it.

use std::sync::Arc;

use spar_python::numpy_random::RandomState;

use super::creature::{Creature, Kind};
use super::{Achievements, Action, Item, Material, Player};

/// How far creatures are told from the player, by columns and rows together, to have their turn.
const NEAR: u32 = 18;
/// Rows and columns of a part of the world, by which creatures are kept in balance.
pub(super) const CHUNK: u8 = 12;
/// What the package's picture of 64 by 64 dots draws at night: two words for each of 63 by 49 dots.
const WORDS_OF_NIGHT: u32 = 2 * 63 * 49;
/// Places of creatures that went are closed up from this number on.
const GAPS: usize = 64;

const FREE: u16 = 0;
const PLAYER: u16 = 1;
const FIRST: u16 = 2;

/// What keeps a world from being made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// It would be too small or too large.
    #[error("a world has {min} to {max} rows and columns, not {found}", min = World::SIZES.0, max = World::SIZES.1)]
    Size {
        /// What was asked for.
        found: usize,
    },
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stepped {
    /// What was achieved for the first time.
    pub unlocked: Achievements,
    /// By how much health has changed since the step before.
    pub health: i8,
    /// Whether the player has died.
    pub is_dead: bool,
}

/// A world with a player in it. A clone goes on by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    pub(super) size: u8,
    /// Column by column.
    materials: Arc<[Material]>,
    /// Who is where: nobody, the player, or a creature.
    places: Arc<[u16]>,
    /// In the order of their coming.
    pub(super) creatures: Vec<Creature>,
    num_gone: usize,
    pub(super) player: Player,
    /// Parts of the world that somebody was in, in the order in which that was so first.
    pub(super) chunks: Vec<u8>,
    arrivals: u32,
    pub(super) rng: RandomState,
    pub(super) daylight: f64,
    num_steps: u32,
    /// As the last step left it.
    health: i8,
}

impl World {
    /// The fewest and the most rows and columns.
    pub const SIZES: (usize, usize) = (16, 128);

    /// The world of the first episode of `crafter.Env(area=(size, size), seed=seed)`, as its `reset` makes it.
    ///
    /// # Errors
    ///
    /// [`WorldError::Size`].
    pub fn new(seed: u64, size: usize) -> Result<Self, WorldError> {
        if !(Self::SIZES.0..=Self::SIZES.1).contains(&size) {
            return Err(WorldError::Size { found: size });
        }
        let center = (size / 2) as u8;
        let mut world = Self {
            size: size as u8,
            materials: vec![Material::Grass; size * size].into(),
            places: vec![FREE; size * size].into(),
            creatures: Vec::new(),
            num_gone: 0,
            player: Player::new((center, center)),
            chunks: Vec::new(),
            arrivals: 0,
            rng: RandomState::from_u32(seed_of_episode(seed, 1)),
            daylight: 0.0,
            num_steps: 0,
            health: Item::MOST,
        };
        world.light_up();
        world.place_player((center, center));
        world.generate();
        Ok(world)
    }

    /// Goes on by a step.
    pub fn step(&mut self, action: Action) -> Stepped {
        self.num_steps += 1;
        self.light_up();
        let before = self.player.achievements;
        // Who comes in this step has no turn in it.
        let num_creatures = self.creatures.len();
        self.update_player(action);
        for slot in 0..num_creatures {
            let creature = &self.creatures[slot];
            if !creature.is_gone && self.distance(creature.at) < NEAR {
                self.update(slot);
            }
        }
        if self.num_steps.is_multiple_of(10) {
            self.balance();
        }
        if self.daylight < 0.5 {
            self.rng.skip(WORDS_OF_NIGHT);
        }
        if self.num_gone >= GAPS {
            self.close_gaps();
        }
        let health = self.player.has[Item::Health as usize];
        let change = health - self.health;
        self.health = health;
        Stepped {
            unlocked: self.player.achievements.without(before),
            health: change,
            is_dead: self.player.is_dead(),
        }
    }

    /// Who plays.
    pub fn player(&self) -> &Player {
        &self.player
    }

    /// Who plays, to be given something before the first step.
    pub fn player_mut(&mut self) -> &mut Player {
        &mut self.player
    }

    /// Rows, of which there are as many as columns.
    pub fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// Steps that were made.
    pub fn num_steps(&self) -> u32 {
        self.num_steps
    }

    /// How light it is, 0 at night to 1; a day has 300 steps.
    pub fn daylight(&self) -> f64 {
        self.daylight
    }

    /// Whether it is so dark that zombies are many.
    pub fn is_night(&self) -> bool {
        self.daylight < 0.5
    }

    /// What a cell is made of, by column and row.
    ///
    /// # Panics
    ///
    /// For a cell outside of the world.
    pub fn material(&self, at: (u8, u8)) -> Material {
        self.materials[self.index(at)]
    }

    /// The creature in a cell.
    ///
    /// # Panics
    ///
    /// For a cell outside of the world.
    pub fn creature_at(&self, at: (u8, u8)) -> Option<&Creature> {
        self.slot_at(at).map(|slot| &self.creatures[slot])
    }

    /// All creatures, in the order of their coming.
    pub fn creatures(&self) -> impl Iterator<Item = &Creature> {
        self.creatures.iter().filter(|it| !it.is_gone)
    }

    /// The cell that lies so many columns and rows from another; absent outside of the world.
    pub fn beside(&self, at: (u8, u8), offset: (i8, i8)) -> Option<(u8, u8)> {
        let (x, y) = (at.0.checked_add_signed(offset.0)?, at.1.checked_add_signed(offset.1)?);
        (x < self.size && y < self.size).then_some((x, y))
    }

    /// Whether a material is in the player's cell or one around it. As in the package, nothing is near who stands in the first
    /// row or column.
    pub fn is_near(&self, material: Material) -> bool {
        let (x, y) = self.player.at;
        let (Some(left), Some(top)) = (x.checked_sub(1), y.checked_sub(1)) else { return false };
        let last = self.size - 1;
        (left..=(x + 1).min(last))
            .any(|x| (top..=(y + 1).min(last)).any(|y| self.material((x, y)) == material))
    }

    fn index(&self, (x, y): (u8, u8)) -> usize {
        usize::from(x) * usize::from(self.size) + usize::from(y)
    }

    pub(super) fn set_material(&mut self, at: (u8, u8), material: Material) {
        let index = self.index(at);
        if self.materials[index] != material {
            Arc::make_mut(&mut self.materials)[index] = material;
        }
    }

    /// Takes over the ground as it was generated.
    pub(super) fn set_materials(&mut self, materials: Vec<Material>) {
        self.materials = materials.into();
    }

    /// The materials of the rows of a column.
    pub(super) fn column(&self, x: u8, rows: std::ops::Range<u8>) -> &[Material] {
        &self.materials[self.index((x, rows.start))..][..rows.len()]
    }

    /// Whether neither a creature nor the player is there.
    pub(super) fn is_empty(&self, at: (u8, u8)) -> bool {
        self.places[self.index(at)] == FREE
    }

    pub(super) fn slot_at(&self, at: (u8, u8)) -> Option<usize> {
        self.places[self.index(at)].checked_sub(FIRST).map(usize::from)
    }

    pub(super) fn distance(&self, at: (u8, u8)) -> u32 {
        let (x, y) = self.player.at;
        u32::from(x.abs_diff(at.0)) + u32::from(y.abs_diff(at.1))
    }

    /// Whether an arrow can be there.
    pub(super) fn can_fly(&self, at: (u8, u8)) -> bool {
        let material = self.material(at);
        let is_open =
            material.is_walkable() || matches!(material, Material::Water | Material::Lava);
        is_open && self.is_empty(at)
    }

    /// What an arrow does to what it does not fly through.
    pub(super) fn shatter(&mut self, at: (u8, u8)) {
        if matches!(self.material(at), Material::Table | Material::Furnace) {
            self.set_material(at, Material::Path);
        }
    }

    pub(super) fn add(&mut self, kind: Kind, at: (u8, u8)) {
        let health = match kind {
            Kind::Cow | Kind::Skeleton { .. } => 3,
            Kind::Zombie { .. } => 5,
            Kind::Arrow { .. } => 0,
            Kind::Plant { .. } => 1,
        };
        let slot = self.creatures.len();
        let arrival = self.arrive(at);
        self.creatures.push(Creature { kind, at, health, is_gone: false, arrival });
        self.occupy(at, FIRST + slot as u16);
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let creature = &mut self.creatures[slot];
        if !creature.is_gone {
            creature.is_gone = true;
            let at = creature.at;
            self.num_gone += 1;
            self.occupy(at, FREE);
        }
    }

    /// Puts a creature elsewhere.
    pub(super) fn place(&mut self, slot: usize, to: (u8, u8)) {
        let from = self.creatures[slot].at;
        self.occupy(from, FREE);
        self.occupy(to, FIRST + slot as u16);
        self.creatures[slot].at = to;
        if self.chunk_of(from) != self.chunk_of(to) {
            self.creatures[slot].arrival = self.arrive(to);
        }
    }

    pub(super) fn place_player(&mut self, to: (u8, u8)) {
        let from = self.player.at;
        self.occupy(from, FREE);
        self.occupy(to, PLAYER);
        self.player.at = to;
        self.arrive(to);
    }

    fn occupy(&mut self, at: (u8, u8), by: u16) {
        let index = self.index(at);
        Arc::make_mut(&mut self.places)[index] = by;
    }

    /// Chunks are known once somebody was there.
    fn arrive(&mut self, at: (u8, u8)) -> u32 {
        let chunk = self.chunk_of(at);
        if !self.chunks.contains(&chunk) {
            self.chunks.push(chunk);
        }
        self.arrivals += 1;
        self.arrivals
    }

    fn chunk_of(&self, at: (u8, u8)) -> u8 {
        chunk_of(at, self.chunks_a_side())
    }

    pub(super) fn chunks_a_side(&self) -> u8 {
        self.size.div_ceil(CHUNK)
    }

    fn light_up(&mut self) {
        let progress = (f64::from(self.num_steps) / 300.0) % 1.0 + 0.3;
        self.daylight = 1.0 - (std::f64::consts::PI * progress).cos().abs().powf(3.0);
    }

    /// Forgets who is gone; the others stay in order.
    fn close_gaps(&mut self) {
        self.creatures.retain(|it| !it.is_gone);
        self.num_gone = 0;
        let size = usize::from(self.size);
        let places = Arc::make_mut(&mut self.places);
        for (slot, creature) in self.creatures.iter().enumerate() {
            places[usize::from(creature.at.0) * size + usize::from(creature.at.1)] =
                FIRST + slot as u16;
        }
    }
}

/// The number of the part of the world that a cell belongs to, in a world of so many a side.
pub(super) fn chunk_of(at: (u8, u8), a_side: u8) -> u8 {
    at.0 / CHUNK * a_side + at.1 / CHUNK
}

/// What the package seeds an episode by: CPython's hash of the pair of both numbers, by the 31 bits of a Mersenne prime.
fn seed_of_episode(seed: u64, episode: u64) -> u32 {
    const PRIMES: [u64; 3] =
        [11_400_714_785_074_694_791, 14_029_467_366_897_019_727, 2_870_177_450_012_600_261];
    // Whole numbers hash to themselves by the 61 bits of another.
    let hash_of = |number: u64| number % ((1 << 61) - 1);
    let mut sum = PRIMES[2];
    for number in [seed, episode] {
        let mixed = sum.wrapping_add(hash_of(number).wrapping_mul(PRIMES[1]));
        sum = mixed.rotate_left(31).wrapping_mul(PRIMES[0]);
    }
    let hash = sum.wrapping_add(2 ^ PRIMES[2] ^ 3_527_539) as i64;
    let hash = if hash == -1 { 1_546_275_796 } else { hash };
    hash.rem_euclid((1 << 31) - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_those_of_the_package() {
        // `hash((seed, episode)) % (2 ** 31 - 1)` of CPython 3.12.
        assert_eq!(seed_of_episode(1, 1), 535_231_920);
        assert_eq!(seed_of_episode(7, 1), 702_520_759);
        assert_eq!(seed_of_episode(1 << 40, 3), 1_322_538_036);
    }

    #[test]
    fn a_clone_goes_on_as_its_origin() {
        let mut world = World::new(5, 32).unwrap();
        let turns = |world: &mut World, from: usize| {
            (from..from + 200)
                .map(|number| world.step(Action::ALL[number * 7 % 17]).health)
                .collect::<Vec<_>>()
        };
        turns(&mut world, 0);
        let mut clone = world.clone();
        assert_eq!(turns(&mut world, 200), turns(&mut clone, 200));
        assert_eq!(world, clone);
    }

    #[test]
    fn worlds_are_bounded() {
        for found in [0, 15, 129, usize::MAX] {
            assert_eq!(World::new(1, found), Err(WorldError::Size { found }));
        }
        for size in [16, 128] {
            assert_eq!(World::new(u64::MAX, size).unwrap().size(), size);
        }
    }

    #[test]
    fn who_does_nothing_dies_in_time() {
        let mut world = World::new(3, 64).unwrap();
        let dead = (1..3000).find(|_| world.step(Action::Noop).is_dead);
        assert!(dead.is_some_and(|steps| steps > 100), "{dead:?}");
    }
}
