//! What a player who knows all would do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::action::Tool;
use super::creature::Kind;
use super::{Achievement, Action, Item, Material, Way, World};

/// What is left to be done before something: an action, or nothing that would help.
type Before = ControlFlow<Option<Action>>;

/// All achievements, in an order in which they can be had one after the other.
pub const COURSE: [Achievement; 22] = [
    Achievement::CollectSapling,
    Achievement::PlacePlant,
    Achievement::CollectWood,
    Achievement::PlaceTable,
    Achievement::MakeWoodPickaxe,
    Achievement::MakeWoodSword,
    Achievement::EatCow,
    Achievement::CollectDrink,
    Achievement::CollectStone,
    Achievement::PlaceStone,
    Achievement::MakeStonePickaxe,
    Achievement::MakeStoneSword,
    Achievement::WakeUp,
    Achievement::CollectCoal,
    Achievement::PlaceFurnace,
    Achievement::DefeatZombie,
    Achievement::CollectIron,
    Achievement::MakeIronPickaxe,
    Achievement::MakeIronSword,
    Achievement::CollectDiamond,
    Achievement::DefeatSkeleton,
    Achievement::EatPlant,
];

/// Something to be seen to before it is too late.
const LOW: u8 = 3;
/// Steps of a way that is dug: turning, digging, and going there.
const DIGGING: u32 = 3;

/// What a player who sees the whole world does next, for the first of the achievements that is not there yet and that something can be
/// done for. It defends the player, sees to food and drink, and finds ways by Dijkstra's algorithm over cells and directions, also through
/// stone. It does not look ahead for what creatures do, so that it can fail.
pub fn next_action(world: &World, wanted: &[Achievement]) -> Action {
    if world.player.is_asleep {
        return Action::Sleep;
    }
    let oracle = Oracle { world };
    let mut pursuits = wanted.iter().filter(|it| !world.player.has(**it));
    let found = oracle.defend().or_else(|| oracle.survive()).or_else(|| {
        pursuits.find_map(|goal| match oracle.pursue(*goal) {
            ControlFlow::Break(action) => action,
            ControlFlow::Continue(()) => None,
        })
    });
    found.unwrap_or(Action::Noop)
}

struct Oracle<'a> {
    world: &'a World,
}

/// What is in a cell that is faced.
struct Faced<'a> {
    world: &'a World,
    at: (u8, u8),
}

impl Faced<'_> {
    fn is(&self, material: Material) -> bool {
        self.world.is_empty(self.at) && self.world.material(self.at) == material
    }

    fn has(&self, is_wanted: fn(Kind) -> bool) -> bool {
        self.world.creature_at(self.at).is_some_and(|it| is_wanted(it.kind))
    }

    /// Whether something can be placed there that wants such ground.
    fn is_open(&self, on: &[Material]) -> bool {
        self.world.is_empty(self.at) && on.contains(&self.world.material(self.at))
    }
}

fn is_zombie(kind: Kind) -> bool {
    matches!(kind, Kind::Zombie { .. })
}

fn is_skeleton(kind: Kind) -> bool {
    matches!(kind, Kind::Skeleton { .. })
}

fn is_cow(kind: Kind) -> bool {
    kind == Kind::Cow
}

impl Oracle<'_> {
    fn count(&self, item: Item) -> u8 {
        self.world.player.count(item)
    }

    /// Strikes at what stands beside the player.
    fn defend(&self) -> Option<Action> {
        let player = &self.world.player;
        let is_foe = |way: &Way| {
            let at = self.world.beside(player.at, way.offset());
            at.and_then(|at| self.world.creature_at(at))
                .is_some_and(|it| it.health > 0 && (is_zombie(it.kind) || is_skeleton(it.kind)))
        };
        let way = if is_foe(&player.facing) {
            player.facing
        } else {
            Way::ALL.into_iter().find(is_foe)?
        };
        Some(if way == player.facing { Action::Do } else { Action::Move(way) })
    }

    /// Drinks, eats and sleeps when it has to be.
    fn survive(&self) -> Option<Action> {
        let get = |is_wanted: fn(&Faced<'_>) -> bool| match self.face(is_wanted) {
            ControlFlow::Break(action) => action,
            ControlFlow::Continue(()) => Some(Action::Do),
        };
        let drink = (self.count(Item::Drink) <= LOW).then(|| get(|it| it.is(Material::Water)));
        if let Some(action) = drink.flatten() {
            return Some(action);
        }
        let food = (self.count(Item::Food) <= LOW)
            .then(|| get(|it| it.has(|kind| is_cow(kind) || kind.is_ripe())));
        if let Some(action) = food.flatten() {
            return Some(action);
        }
        (self.count(Item::Energy) <= LOW).then(|| self.sleep())
    }

    /// Walls the player in where there are stones for it, and sleeps.
    fn sleep(&self) -> Action {
        let player = &self.world.player;
        if self.count(Item::Stone) > 0 {
            let on = [Material::Grass, Material::Sand, Material::Path];
            let is_open = |way: &Way| {
                let at = self.world.beside(player.at, way.offset());
                at.is_some_and(|at| Faced { world: self.world, at }.is_open(&on))
            };
            if is_open(&player.facing) {
                return Action::PlaceStone;
            }
            // Turning to where nothing is open keeps the player in place; to where it is, it goes a step, and is as well off there.
            if let Some(way) = Way::ALL.into_iter().find(is_open)
                && !self.world.num_steps().is_multiple_of(8)
            {
                return Action::Move(way);
            }
        }
        Action::Sleep
    }

    /// What comes before an achievement; goes on where that is there already.
    fn pursue(&self, goal: Achievement) -> Before {
        use Achievement as A;
        match goal {
            A::CollectWood => self.dig(Material::Tree),
            A::CollectDrink => self.dig(Material::Water),
            A::CollectSapling => self.dig(Material::Grass),
            A::CollectStone => self.obtain_one_more(Item::Stone),
            A::CollectCoal => self.obtain_one_more(Item::Coal),
            A::CollectIron => self.obtain_one_more(Item::Iron),
            A::CollectDiamond => self.obtain_one_more(Item::Diamond),
            A::PlaceTable => self.put(Action::PlaceTable),
            A::PlaceFurnace => self.put(Action::PlaceFurnace),
            A::PlaceStone => self.put(Action::PlaceStone),
            A::PlacePlant => self.put(Action::PlacePlant),
            A::MakeWoodPickaxe => self.make(Tool::WoodPickaxe),
            A::MakeStonePickaxe => self.make(Tool::StonePickaxe),
            A::MakeIronPickaxe => self.make(Tool::IronPickaxe),
            A::MakeWoodSword => self.make(Tool::WoodSword),
            A::MakeStoneSword => self.make(Tool::StoneSword),
            A::MakeIronSword => self.make(Tool::IronSword),
            A::EatCow => self.strike(is_cow),
            A::DefeatZombie => self.strike(is_zombie),
            A::DefeatSkeleton => self.strike(is_skeleton),
            A::EatPlant => self.eat_plant(),
            A::WakeUp if self.count(Item::Energy) < 9 => ControlFlow::Break(Some(self.sleep())),
            // Time makes tired.
            A::WakeUp => ControlFlow::Break(Some(Action::Noop)),
        }
    }

    /// Goes to where something is faced, and does something to it.
    fn dig(&self, material: Material) -> Before {
        self.face(|it| it.is(material))?;
        ControlFlow::Break(Some(Action::Do))
    }

    fn strike(&self, is_wanted: fn(Kind) -> bool) -> Before {
        self.face(|it| it.has(is_wanted))?;
        ControlFlow::Break(Some(Action::Do))
    }

    fn eat_plant(&self) -> Before {
        if let ControlFlow::Break(Some(action)) = self.strike(Kind::is_ripe) {
            return ControlFlow::Break(Some(action));
        }
        if self.world.creatures().any(|it| matches!(it.kind, Kind::Plant { .. })) {
            // It stands beside what grows, which keeps one side of it free of cows.
            self.face(|it| it.has(|kind| matches!(kind, Kind::Plant { .. })))?;
            return ControlFlow::Break(Some(Action::Noop));
        }
        self.put(Action::PlacePlant)
    }

    /// Has so many of something that is collected.
    fn obtain(&self, item: Item, count: u8) -> Before {
        if self.count(item) >= count {
            return ControlFlow::Continue(());
        }
        let (tool, material) = match item {
            Item::Wood => (None, Material::Tree),
            Item::Sapling => (None, Material::Grass),
            Item::Stone => (Some(Tool::WoodPickaxe), Material::Stone),
            Item::Coal => (Some(Tool::WoodPickaxe), Material::Coal),
            Item::Iron => (Some(Tool::StonePickaxe), Material::Iron),
            Item::Diamond => (Some(Tool::IronPickaxe), Material::Diamond),
            _ => return ControlFlow::Break(None),
        };
        if let Some(tool) = tool.filter(|tool| self.count(tool.item()) == 0) {
            return self.make(tool);
        }
        self.dig(material)
    }

    fn obtain_one_more(&self, item: Item) -> Before {
        self.obtain(item, (self.count(item) + 1).min(9))
    }

    fn put(&self, action: Action) -> Before {
        let Some((item, count, on)) = action.places() else { return ControlFlow::Break(None) };
        self.obtain(item, count.unsigned_abs())?;
        // Stone goes where it is not needed for digging itself in, and no table goes into what is dug.
        self.face(|it| it.is_open(on))?;
        ControlFlow::Break(Some(action))
    }

    fn make(&self, tool: Tool) -> Before {
        let wants_furnace = tool.wants_near().contains(&Material::Furnace);
        for item in tool.uses().iter().rev() {
            self.obtain(*item, 1)?;
        }
        if wants_furnace {
            match self.way_to_table_and_furnace() {
                Some((_, None)) => return ControlFlow::Break(Some(Action::Make(tool))),
                Some((_, action)) => return ControlFlow::Break(action),
                // Before it goes to the table, so that it does not go to and fro.
                None => self.obtain(Item::Stone, 4)?,
            }
        }
        if !self.world.is_near(Material::Table) {
            if self.count(Item::Wood) > 2 {
                // One more is nearer than the way back.
                if self.way_to_table().is_none_or(|(steps, _)| steps > 12) {
                    self.put(Action::PlaceTable)?;
                }
            }
            match self.way_to_table() {
                Some((_, action)) => return ControlFlow::Break(action),
                None => {
                    self.obtain(Item::Wood, 3)?;
                    self.put(Action::PlaceTable)?;
                }
            }
        }
        if wants_furnace && !self.world.is_near(Material::Furnace) {
            return self.put_beside(Action::PlaceFurnace, Material::Table);
        }
        ControlFlow::Break(Some(Action::Make(tool)))
    }

    /// Places something from where another thing stays near.
    fn put_beside(&self, action: Action, near: Material) -> Before {
        let Some((_, _, on)) = action.places() else { return ControlFlow::Break(None) };
        self.go(|from, it| is_near(self.world, from, near) && it.is_some_and(|it| it.is_open(on)))?;
        ControlFlow::Break(Some(action))
    }

    fn way_to_table(&self) -> Option<(u32, Option<Action>)> {
        self.way(|from, _| is_near(self.world, from, Material::Table))
    }

    fn way_to_table_and_furnace(&self) -> Option<(u32, Option<Action>)> {
        let wanted = [Material::Table, Material::Furnace];
        self.way(|from, _| wanted.iter().all(|it| is_near(self.world, from, *it)))
    }

    /// Goes to where something is faced.
    fn face(&self, is_wanted: impl Fn(&Faced<'_>) -> bool) -> Before {
        self.go(|_, faced| faced.is_some_and(&is_wanted))
    }

    fn go(&self, is_there: impl Fn((u8, u8), Option<&Faced<'_>>) -> bool) -> Before {
        match self.way(is_there) {
            None => ControlFlow::Break(None),
            Some((_, None)) => ControlFlow::Continue(()),
            Some((_, Some(action))) => ControlFlow::Break(Some(action)),
        }
    }

    /// The fewest steps to a cell and a direction, and the first of them, which is absent where the player is there: Dijkstra's algorithm,
    /// in which stone is walked through by digging, where there is a pickaxe.
    fn way(
        &self,
        is_there: impl Fn((u8, u8), Option<&Faced<'_>>) -> bool,
    ) -> Option<(u32, Option<Action>)> {
        let (world, player) = (self.world, &self.world.player);
        let size = world.size();
        let index = |at: (u8, u8), way: Way| {
            (usize::from(at.0) * size + usize::from(at.1)) * 4 + way as usize
        };
        let mut cost = vec![u32::MAX; size * size * 4];
        // The first step of the way there: 0 none, then a direction and 1, or digging.
        const DIG: u8 = 5;
        let mut open =
            BinaryHeap::from([Reverse((0_u32, 0_u8, player.at, player.facing as usize))]);
        cost[index(player.at, player.facing)] = 0;
        while let Some(Reverse((steps, first, at, facing))) = open.pop() {
            let facing = Way::ALL[facing];
            if steps > cost[index(at, facing)] {
                continue;
            }
            let faced = world.beside(at, facing.offset()).map(|at| Faced { world, at });
            if is_there(at, faced.as_ref()) {
                let action = match first {
                    0 => None,
                    DIG => Some(Action::Do),
                    way => Some(Action::Move(Way::ALL[usize::from(way) - 1])),
                };
                return Some((steps, action));
            }
            for way in Way::ALL {
                let Some(to) = world.beside(at, way.offset()) else { continue };
                let material = world.material(to);
                let is_free = world.is_empty(to) && material.is_walkable();
                let can_dig = world.is_empty(to)
                    && material == Material::Stone
                    && self.count(Item::WoodPickaxe) > 0;
                let mut go = |to: (u8, u8), by: u32, step: u8| {
                    let (steps, place) = (steps + by, index(to, way));
                    if steps < cost[place] {
                        cost[place] = steps;
                        let first = if first == 0 { step } else { first };
                        open.push(Reverse((steps, first, to, way as usize)));
                    }
                };
                let step = way as u8 + 1;
                if is_free {
                    go(to, 1, step);
                } else if way != facing {
                    go(at, 1, step);
                }
                if can_dig {
                    let turns = u32::from(way != facing);
                    go(to, DIGGING - 1 + turns, if turns > 0 { step } else { DIG });
                }
            }
        }
        None
    }
}

/// As [`World::is_near`], from another cell.
fn is_near(world: &World, at: (u8, u8), material: Material) -> bool {
    let around = (-1..=1).flat_map(|x| (-1..=1).map(move |y| (x, y)));
    at.0 > 0
        && at.1 > 0
        && around
            .filter_map(|offset| world.beside(at, offset))
            .any(|at| world.material(at) == material)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps until a goal is reached, in at most so many of a life.
    fn steps_to(seed: u64, goal: Achievement, most: u32) -> Option<u32> {
        let mut world = World::new(seed, 64).unwrap();
        for number in 1..=most {
            let stepped = world.step(next_action(&world, &[goal]));
            if stepped.unlocked.has(goal) {
                return Some(number);
            }
            if stepped.is_dead {
                return None;
            }
        }
        None
    }

    #[test]
    fn goals_are_reached() {
        use Achievement as A;
        for (goal, most) in [
            (A::CollectWood, 100),
            (A::CollectSapling, 100),
            (A::PlacePlant, 150),
            (A::CollectDrink, 200),
            (A::PlaceTable, 200),
            (A::MakeWoodPickaxe, 300),
            (A::MakeWoodSword, 300),
            (A::EatCow, 300),
            (A::CollectStone, 400),
            (A::PlaceStone, 400),
            (A::MakeStonePickaxe, 500),
            (A::MakeIronPickaxe, 450),
        ] {
            let solved = (0..10).filter(|seed| steps_to(*seed, goal, most).is_some()).count();
            assert!(solved >= 9, "{goal:?}: {solved} of 10");
        }
    }

    #[test]
    fn most_of_all_is_reached_in_a_life() {
        let mut counts: Vec<u32> = Vec::new();
        for seed in 0..4 {
            let mut world = World::new(seed, 64).unwrap();
            for _ in 0..450 {
                if world.step(next_action(&world, &COURSE)).is_dead {
                    break;
                }
            }
            counts.push(world.player().achievements().len());
        }
        assert!(counts.iter().all(|count| *count >= 12), "{counts:?}");
    }
}
