//! Creatures that come and go.

use super::creature::Kind;
use super::world::{CHUNK, World, chunk_of};
use super::{Creature, Material};

/// How one kind of creature is kept in balance.
struct Balance {
    is_of_kind: fn(Kind) -> bool,
    fresh: Kind,
    on: Material,
    /// How far from the player they come.
    appears_from: u32,
    /// How far from the player they go.
    vanishes_from: u32,
    appearing: f64,
    vanishing: f64,
}

const ZOMBIES: Balance = Balance {
    is_of_kind: |kind| matches!(kind, Kind::Zombie { .. }),
    fresh: Kind::Zombie { cooldown: 0 },
    on: Material::Grass,
    appears_from: 6,
    vanishes_from: 0,
    appearing: 0.3,
    vanishing: 0.4,
};

const SKELETONS: Balance = Balance {
    is_of_kind: |kind| matches!(kind, Kind::Skeleton { .. }),
    fresh: Kind::Skeleton { reload: 0 },
    on: Material::Path,
    appears_from: 7,
    vanishes_from: 7,
    appearing: 0.1,
    vanishing: 0.1,
};

const COWS: Balance = Balance {
    is_of_kind: |kind| matches!(kind, Kind::Cow),
    fresh: Kind::Cow,
    on: Material::Grass,
    appears_from: 5,
    vanishes_from: 5,
    appearing: 0.01,
    vanishing: 0.1,
};

/// Columns and rows of a chunk.
type Area = (std::ops::Range<u8>, std::ops::Range<u8>);

impl World {
    /// Has creatures come and go in every part of the world that somebody was in.
    pub(super) fn balance(&mut self) {
        let light = self.daylight;
        for number in 0..self.chunks.len() {
            let chunk = self.chunks[number];
            let area = self.area(chunk);
            let (grass, path) = self.grass_and_path(&area);
            let zombies = 3.5 - 3.0 * light;
            let at_least = if grass < 50 { 0.0 } else { zombies };
            self.balance_kind(&ZOMBIES, chunk, &area, grass, (at_least, zombies));
            let at_least = if path < 6 { 0.0 } else { 1.0 };
            self.balance_kind(&SKELETONS, chunk, &area, path, (at_least, 2.0));
            let at_least = if grass < 30 { 0.0 } else { 1.0 };
            self.balance_kind(&COWS, chunk, &area, grass, (at_least, 1.5 + light));
        }
    }

    fn area(&self, chunk: u8) -> Area {
        let side = |number: u8| {
            let first = number * CHUNK;
            first..(first + CHUNK).min(self.size)
        };
        (side(chunk / self.chunks_a_side()), side(chunk % self.chunks_a_side()))
    }

    fn grass_and_path(&self, (columns, rows): &Area) -> (u64, u64) {
        let count = |material: Material| {
            let of_column = |x: u8| {
                self.column(x, rows.clone()).iter().filter(|it| **it == material).count() as u64
            };
            columns.clone().map(of_column).sum()
        };
        (count(Material::Grass), count(Material::Path))
    }

    fn balance_kind(
        &mut self,
        of: &Balance,
        chunk: u8,
        area: &Area,
        space: u64,
        (at_least, at_most): (f64, f64),
    ) {
        let side = self.chunks_a_side();
        let is_here = |it: &Creature| {
            !it.is_gone && (of.is_of_kind)(it.kind) && chunk_of(it.at, side) == chunk
        };
        let count = self.creatures.iter().filter(|it| is_here(it)).count();
        if count < at_least as usize {
            if self.rng.random() < of.appearing {
                let number = self.rng.up_to(space - 1);
                let at = self.nth_of(area, of.on, number);
                if self.is_empty(at) && self.distance(at) >= of.appears_from {
                    self.add(of.fresh, at);
                }
            }
        } else if count > at_most as usize && self.rng.random() < of.vanishing {
            // In the order in which they came here, where the package goes by their places in memory.
            let mut here: Vec<usize> =
                (0..self.creatures.len()).filter(|slot| is_here(&self.creatures[*slot])).collect();
            here.sort_by_key(|slot| self.creatures[*slot].arrival);
            let slot = here[self.rng.up_to(count as u64 - 1) as usize];
            if self.distance(self.creatures[slot].at) >= of.vanishes_from {
                self.remove(slot);
            }
        }
    }

    /// The cell of a material in an area by number, column by column.
    fn nth_of(&self, (columns, rows): &Area, material: Material, number: u64) -> (u8, u8) {
        let cells = columns.clone().flat_map(|x| rows.clone().map(move |y| (x, y)));
        let mut cells = cells.filter(|at| self.material(*at) == material);
        cells.nth(number as usize).expect("cells of the material were counted")
    }
}
