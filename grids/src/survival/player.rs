//! The player, and what actions do.

use super::action::Tool;
use super::creature::Kind;
use super::world::World;
use super::{Achievement, Achievements, Action, Item, Material, Way};

/// Steps until something is used up or recovers, in halves of a step, since some go half as fast in sleep.
const HUNGER: i16 = 50;
const THIRST: i16 = 40;
const RECOVERY: i16 = 50;
const DECAY: i16 = -30;

/// The player. A clone goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Player {
    pub(super) at: (u8, u8),
    pub(super) facing: Way,
    pub(super) is_asleep: bool,
    /// By item; at most [`Item::MOST`] of each between steps.
    pub(super) has: [i8; 16],
    pub(super) achievements: Achievements,
    /// As it was when the last step began to look whether the player was hurt.
    last_health: i8,
    hunger: i16,
    thirst: i16,
    fatigue: i16,
    recovery: i16,
}

impl Player {
    pub(super) fn new(at: (u8, u8)) -> Self {
        let mut has = [0; 16];
        for vital in Item::ALL.into_iter().filter(|item| item.is_vital()) {
            has[vital as usize] = Item::MOST;
        }
        Self {
            at,
            facing: Way::Down,
            is_asleep: false,
            has,
            achievements: Achievements::default(),
            last_health: Item::MOST,
            hunger: 0,
            thirst: 0,
            fatigue: 0,
            recovery: 0,
        }
    }

    /// Column and row.
    pub fn at(&self) -> (u8, u8) {
        self.at
    }

    /// Where the player looks.
    pub fn facing(&self) -> Way {
        self.facing
    }

    /// Whether the player sleeps, and does nothing else until energy is full or something hurts.
    pub fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// How many of an item the player has, 0 to 9.
    pub fn count(&self, item: Item) -> u8 {
        self.has[item as usize].max(0).unsigned_abs()
    }

    /// Gives the player an item more, 9 of each at most.
    pub fn give(&mut self, item: Item, count: u8) {
        let has = &mut self.has[item as usize];
        *has = has.saturating_add(count.min(9) as i8).min(Item::MOST);
    }

    /// What was achieved.
    pub fn achievements(&self) -> Achievements {
        self.achievements
    }

    /// Whether it was achieved.
    pub fn has(&self, achievement: Achievement) -> bool {
        self.achievements.has(achievement)
    }

    /// Whether the player is dead.
    pub fn is_dead(&self) -> bool {
        self.has[Item::Health as usize] <= 0
    }

    pub(super) fn hurt(&mut self, damage: i8) {
        let health = &mut self.has[Item::Health as usize];
        *health = (*health - damage).max(0);
    }

    fn change(&mut self, item: Item, by: i8) {
        self.has[item as usize] += by;
    }

    /// What a blow takes.
    fn damage(&self) -> u8 {
        match self {
            _ if self.count(Item::IronSword) > 0 => 5,
            _ if self.count(Item::StoneSword) > 0 => 3,
            _ if self.count(Item::WoodSword) > 0 => 2,
            _ => 1,
        }
    }

    /// Whether a material gives what it has, and what that is and leaves.
    pub(super) fn collects(&self, material: Material) -> Option<(Item, Achievement, Material)> {
        use Achievement as A;
        let (wants, item, achievement, left) = match material {
            Material::Tree => (None, Item::Wood, A::CollectWood, Material::Grass),
            Material::Stone => {
                (Some(Item::WoodPickaxe), Item::Stone, A::CollectStone, Material::Path)
            }
            Material::Coal => (Some(Item::WoodPickaxe), Item::Coal, A::CollectCoal, Material::Path),
            Material::Iron => {
                (Some(Item::StonePickaxe), Item::Iron, A::CollectIron, Material::Path)
            }
            Material::Diamond => {
                (Some(Item::IronPickaxe), Item::Diamond, A::CollectDiamond, Material::Path)
            }
            Material::Water => (None, Item::Drink, A::CollectDrink, Material::Water),
            Material::Grass => (None, Item::Sapling, A::CollectSapling, Material::Grass),
            _ => return None,
        };
        let has = wants.is_none_or(|tool| self.count(tool) > 0);
        has.then_some((item, achievement, left))
    }

    fn grow_hungry_and_tired(&mut self) {
        let pace = if self.is_asleep { 1 } else { 2 };
        self.hunger += pace;
        if self.hunger > HUNGER {
            self.hunger = 0;
            self.change(Item::Food, -1);
        }
        self.thirst += pace;
        if self.thirst > THIRST {
            self.thirst = 0;
            self.change(Item::Drink, -1);
        }
        self.fatigue = if self.is_asleep { (self.fatigue - 1).min(0) } else { self.fatigue + 1 };
        if self.fatigue < -10 {
            self.fatigue = 0;
            self.change(Item::Energy, 1);
        }
        if self.fatigue > 30 {
            self.fatigue = 0;
            self.change(Item::Energy, -1);
        }
    }

    fn recover_or_decay(&mut self) {
        let has = |item: Item| self.has[item as usize] > 0;
        let is_well = has(Item::Food) && has(Item::Drink) && (has(Item::Energy) || self.is_asleep);
        self.recovery += match (is_well, self.is_asleep) {
            (true, true) => 4,
            (true, false) => 2,
            (false, true) => -1,
            (false, false) => -2,
        };
        if self.recovery > RECOVERY {
            self.recovery = 0;
            self.change(Item::Health, 1);
        }
        if self.recovery < DECAY {
            self.recovery = 0;
            self.hurt(1);
        }
    }
}

impl World {
    /// The player's share of a step.
    pub(super) fn update_player(&mut self, action: Action) {
        let mut action = action;
        if self.player.is_asleep {
            if self.player.count(Item::Energy) < Item::MOST.unsigned_abs() {
                action = Action::Sleep;
            } else {
                self.player.is_asleep = false;
                self.player.achievements.insert(Achievement::WakeUp);
            }
        }
        // What was faced when the step began.
        let faced = self.beside(self.player.at, self.player.facing.offset());
        match action {
            Action::Noop => {}
            Action::Move(way) => self.walk(way),
            Action::Do => {
                if let Some(faced) = faced {
                    self.do_to(faced);
                }
            }
            Action::Sleep => {
                let can = self.player.count(Item::Energy) < Item::MOST.unsigned_abs();
                self.player.is_asleep |= can;
            }
            Action::PlaceStone | Action::PlaceTable | Action::PlaceFurnace | Action::PlacePlant => {
                self.put(action, faced)
            }
            Action::Make(tool) => self.make(tool),
        }
        let player = &mut self.player;
        player.grow_hungry_and_tired();
        player.recover_or_decay();
        for count in &mut player.has {
            *count = (*count).clamp(0, Item::MOST);
        }
        let health = player.has[Item::Health as usize];
        player.is_asleep &= health >= player.last_health;
        player.last_health = health;
    }

    fn walk(&mut self, way: Way) {
        self.player.facing = way;
        let Some(to) = self.beside(self.player.at, way.offset()) else { return };
        let material = self.material(to);
        if self.is_empty(to) && (material.is_walkable() || material == Material::Lava) {
            self.place_player(to);
            if material == Material::Lava {
                self.player.has[Item::Health as usize] = 0;
            }
        }
    }

    fn do_to(&mut self, faced: (u8, u8)) {
        let damage = self.player.damage();
        if let Some(slot) = self.slot_at(faced) {
            let creature = &mut self.creatures[slot];
            let mut is_beaten = || {
                creature.health = creature.health.saturating_sub(damage);
                creature.health == 0
            };
            match creature.kind {
                Kind::Plant { grown: _ } if creature.kind.is_ripe() => {
                    creature.kind = Kind::Plant { grown: 0 };
                    self.player.change(Item::Food, 4);
                    self.player.achievements.insert(Achievement::EatPlant);
                }
                Kind::Zombie { .. } if is_beaten() => {
                    self.player.achievements.insert(Achievement::DefeatZombie);
                }
                Kind::Skeleton { .. } if is_beaten() => {
                    self.player.achievements.insert(Achievement::DefeatSkeleton);
                }
                Kind::Cow if is_beaten() => {
                    self.player.change(Item::Food, 6);
                    self.player.hunger = 0;
                    self.player.achievements.insert(Achievement::EatCow);
                }
                _ => {}
            }
            return;
        }
        let material = self.material(faced);
        if material == Material::Water {
            self.player.thirst = 0;
        }
        let Some((item, achievement, left)) = self.player.collects(material) else { return };
        self.set_material(faced, left);
        // A number is drawn in any case.
        let probability = if item == Item::Sapling { 0.1 } else { 1.0 };
        if self.rng.random() <= probability {
            self.player.change(item, 1);
            self.player.achievements.insert(achievement);
        }
    }

    /// Whether an action that places something has what it takes, and where to.
    fn can_put(&self, action: Action, faced: Option<(u8, u8)>) -> bool {
        let (Some((item, count, on)), Some(faced)) = (action.places(), faced) else { return false };
        self.is_empty(faced)
            && on.contains(&self.material(faced))
            && self.player.has[item as usize] >= count
    }

    fn put(&mut self, action: Action, faced: Option<(u8, u8)>) {
        let (Some((item, count, _)), Some(at)) = (action.places(), faced) else { return };
        if !self.can_put(action, faced) {
            return;
        }
        self.player.change(item, -count);
        let achievement = match action {
            Action::PlaceTable => {
                self.set_material(at, Material::Table);
                Achievement::PlaceTable
            }
            Action::PlaceFurnace => {
                self.set_material(at, Material::Furnace);
                Achievement::PlaceFurnace
            }
            Action::PlacePlant => {
                self.add(Kind::Plant { grown: 0 }, at);
                Achievement::PlacePlant
            }
            _ => {
                self.set_material(at, Material::Stone);
                Achievement::PlaceStone
            }
        };
        self.player.achievements.insert(achievement);
    }

    /// Whether a tool can be made here and now.
    fn can_make(&self, tool: Tool) -> bool {
        tool.wants_near().iter().all(|it| self.is_near(*it))
            && tool.uses().iter().all(|item| self.player.count(*item) > 0)
    }

    fn make(&mut self, tool: Tool) {
        if !self.can_make(tool) {
            return;
        }
        for item in tool.uses() {
            self.player.change(*item, -1);
        }
        self.player.change(tool.item(), 1);
        self.player.achievements.insert(Achievement::of_tool(tool));
    }

    /// Whether an action would change something beside the time. Asleep, nothing but sleeping is left.
    pub fn has_effect(&self, action: Action) -> bool {
        let is_tired = self.player.count(Item::Energy) < Item::MOST.unsigned_abs();
        if self.player.is_asleep && is_tired {
            return action == Action::Sleep;
        }
        let faced = self.beside(self.player.at, self.player.facing.offset());
        match action {
            Action::Noop | Action::Move(_) => true,
            Action::Sleep => is_tired,
            Action::Do => faced.is_some_and(|faced| match self.creature_at(faced) {
                Some(creature) => match creature.kind {
                    Kind::Plant { .. } => creature.kind.is_ripe(),
                    Kind::Arrow { .. } => false,
                    Kind::Cow | Kind::Zombie { .. } | Kind::Skeleton { .. } => true,
                },
                None => self.player.collects(self.material(faced)).is_some(),
            }),
            Action::Make(tool) => self.can_make(tool),
            _ => self.can_put(action, faced),
        }
    }
}
