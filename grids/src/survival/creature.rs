//! What moves and grows in the world, beside the player.

use super::world::World;

/// What a creature is, with what only its kind has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Walks about; food.
    Cow,
    /// Comes for the player on grass.
    Zombie {
        /// Steps beside the player until it strikes again.
        cooldown: u8,
    },
    /// Shoots arrows in caves.
    Skeleton {
        /// Steps until it can shoot again.
        reload: u8,
    },
    /// Flies on until it hits something.
    Arrow {
        /// Columns and rows of its flight in a step.
        flight: (i8, i8),
    },
    /// Grows, and is eaten when it is ripe; cows, zombies and skeletons trample it.
    Plant {
        /// Its age in steps that the player was not too far away.
        grown: u16,
    },
}

impl Kind {
    /// Whether a plant can be eaten.
    pub fn is_ripe(self) -> bool {
        matches!(self, Self::Plant { grown } if grown > 300)
    }
}

/// A creature, a plant or an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creature {
    /// What it is.
    pub kind: Kind,
    /// Column and row.
    pub at: (u8, u8),
    /// At 0 it goes in its next step.
    pub health: u8,
    /// Whether it is no longer in the world.
    pub(super) is_gone: bool,
    /// When it came into its part of the world, counted by such comings.
    pub(super) arrival: u32,
}

impl World {
    /// What a creature does in a step, in the order in which the package draws.
    pub(super) fn update(&mut self, slot: usize) {
        match self.creatures[slot].kind {
            Kind::Cow => self.update_cow(slot),
            Kind::Zombie { cooldown } => self.update_zombie(slot, cooldown),
            Kind::Skeleton { reload } => self.update_skeleton(slot, reload),
            Kind::Arrow { flight } => self.update_arrow(slot, flight),
            Kind::Plant { grown } => self.update_plant(slot, grown),
        }
    }

    /// In its last step too, a creature draws and strikes as ever, and only does not move.
    fn leave_if_dead(&mut self, slot: usize) {
        if self.creatures[slot].health == 0 {
            self.remove(slot);
        }
    }

    fn update_cow(&mut self, slot: usize) {
        self.leave_if_dead(slot);
        if self.rng.random() < 0.5 {
            let way = self.random_way();
            self.shift(slot, way);
        }
    }

    fn update_zombie(&mut self, slot: usize, cooldown: u8) {
        self.leave_if_dead(slot);
        let way = if self.distance(self.creatures[slot].at) <= 8 && self.rng.random() < 0.9 {
            let by_long_axis = self.rng.random() < 0.8;
            self.towards_player(slot, by_long_axis)
        } else {
            self.random_way()
        };
        self.shift(slot, way);
        if self.distance(self.creatures[slot].at) > 1 {
            return;
        }
        let cooldown = if cooldown > 0 {
            cooldown - 1
        } else {
            let damage = if self.player.is_asleep { 7 } else { 2 };
            self.player.hurt(damage);
            5
        };
        self.creatures[slot].kind = Kind::Zombie { cooldown };
    }

    fn update_skeleton(&mut self, slot: usize, reload: u8) {
        self.leave_if_dead(slot);
        let reload = reload.saturating_sub(1);
        self.creatures[slot].kind = Kind::Skeleton { reload };
        let distance = self.distance(self.creatures[slot].at);
        if distance <= 3 {
            let by_long_axis = self.rng.random() < 0.6;
            let (x, y) = self.towards_player(slot, by_long_axis);
            if self.shift(slot, (-x, -y)) {
                return;
            }
        }
        if distance <= 5 && self.rng.random() < 0.5 {
            let way = self.towards_player(slot, true);
            self.shoot(slot, way, reload);
        } else if distance <= 8 && self.rng.random() < 0.3 {
            let by_long_axis = self.rng.random() < 0.6;
            let way = self.towards_player(slot, by_long_axis);
            self.shift(slot, way);
        } else if self.rng.random() < 0.2 {
            let way = self.random_way();
            self.shift(slot, way);
        }
    }

    fn shoot(&mut self, slot: usize, flight: (i8, i8), reload: u8) {
        if reload > 0 || flight == (0, 0) {
            return;
        }
        if let Some(at) = self.beside(self.creatures[slot].at, flight)
            && self.can_fly(at)
        {
            self.add(Kind::Arrow { flight }, at);
            self.creatures[slot].kind = Kind::Skeleton { reload: 4 };
        }
    }

    fn update_arrow(&mut self, slot: usize, flight: (i8, i8)) {
        let Some(at) = self.beside(self.creatures[slot].at, flight) else {
            return self.remove(slot);
        };
        if self.player.at == at {
            self.player.hurt(2);
            self.remove(slot);
        } else if let Some(hit) = self.slot_at(at) {
            let hit = &mut self.creatures[hit];
            hit.health = hit.health.saturating_sub(2);
            self.remove(slot);
        } else if self.can_fly(at) {
            self.place(slot, at);
        } else {
            self.remove(slot);
            self.shatter(at);
        }
    }

    fn update_plant(&mut self, slot: usize, grown: u16) {
        self.creatures[slot].kind = Kind::Plant { grown: grown.saturating_add(1) };
        let at = self.creatures[slot].at;
        let tramples = |beside: (i8, i8)| {
            let kind = self.beside(at, beside).and_then(|at| self.creature_at(at));
            kind.is_some_and(|it| {
                matches!(it.kind, Kind::Cow | Kind::Zombie { .. } | Kind::Skeleton { .. })
            })
        };
        if super::Way::ALL.into_iter().any(|way| tramples(way.offset())) {
            let plant = &mut self.creatures[slot];
            plant.health = plant.health.saturating_sub(1);
        }
        self.leave_if_dead(slot);
    }

    /// A step towards the player, along the longer or the shorter way, which can be none at all.
    fn towards_player(&self, slot: usize, by_long_axis: bool) -> (i8, i8) {
        let (from, to) = (self.creatures[slot].at, self.player.at);
        let (x, y) = (i16::from(to.0) - i16::from(from.0), i16::from(to.1) - i16::from(from.1));
        let by_columns = if by_long_axis { x.abs() > y.abs() } else { x.abs() <= y.abs() };
        if by_columns { (x.signum() as i8, 0) } else { (0, y.signum() as i8) }
    }

    fn random_way(&mut self) -> (i8, i8) {
        super::Way::ALL[self.rng.up_to(3) as usize].offset()
    }

    /// Whether a creature could step there; it does, unless it is gone already.
    fn shift(&mut self, slot: usize, way: (i8, i8)) -> bool {
        let Some(to) = self.beside(self.creatures[slot].at, way) else { return false };
        let is_free = self.is_empty(to) && self.material(to).is_walkable();
        if is_free && !self.creatures[slot].is_gone {
            self.place(slot, to);
        }
        is_free
    }
}
