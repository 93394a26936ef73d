//! How the levels of BabyAI are made.

use super::episode::{Goal, Made};
use super::instruction::{Clause, Description, Instruction, Location, Order, Verb, is_locked};
use super::object::{Cell, Color, Kind, Object, Position};
use super::rooms::{At, Opening, Rooms, all_reachable};
use super::world::{Rejected, World};

/// A level: its rooms, and how they are furnished.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BabyLevel {
    pub(crate) columns: i8,
    pub(crate) rows: i8,
    pub(crate) kind: Baby,
}

/// How a level is furnished, and what it asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Baby {
    GoToRedBall { others: usize, grey: bool },
    GoToObj,
    GoToLocal { others: usize },
    GoTo { others: usize, open: bool },
    GoToImpUnlock,
    GoToRedBlueBall,
    GoToDoor,
    GoToObjDoor,
    Open,
    OpenRedDoor,
    OpenDoor { strict: bool, by: Option<Select> },
    OpenTwoDoors { colors: Option<(Color, Color)>, strict: bool },
    OpenDoorsOrder { count: usize, strict: bool },
    Pickup,
    UnblockPickup,
    PickupDist { strict: bool },
    PickupAbove,
    PutNextLocal { count: usize },
    PutNext { count: usize, carrying: bool },
    Unlock,
    UnlockLocal { others: bool },
    KeyInBox,
    UnlockPickup { others: bool },
    BlockedUnlockPickup,
    UnlockToUnlock,
    ActionObjDoor,
    FindObj,
    KeyCorridor,
    OneRoom,
    MoveTwoAcross { count: usize },
    Generated(Generated),
}

/// By what a door is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Select {
    Color,
    Location,
}

/// A level whose instructions are any that its grammar allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Generated {
    others: usize,
    locked_room: f64,
    locations: bool,
    unblocking: bool,
    implicit_unlock: bool,
    actions: &'static [ActionKind],
    forms: &'static [Form],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActionKind {
    GoTo,
    PickUp,
    Open,
    PutNext,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Action,
    And,
    Sequence,
}

/// As many drafts as are made of a level until one is fit; the package makes them for ever.
const MOST_DRAFTS: u32 = 10_000;

const ALL_ACTIONS: &[ActionKind] =
    &[ActionKind::GoTo, ActionKind::PickUp, ActionKind::Open, ActionKind::PutNext];
const ALL_FORMS: &[Form] = &[Form::Action, Form::And, Form::Sequence];
const TYPES: &[Kind] = &[Kind::Box, Kind::Ball, Kind::Key, Kind::Door];
const TYPES_NOT_DOOR: &[Kind] = &[Kind::Box, Kind::Ball, Kind::Key];

impl Generated {
    pub(crate) const BOSS: Self = Self {
        others: 18,
        locked_room: 0.5,
        locations: true,
        unblocking: true,
        implicit_unlock: true,
        actions: ALL_ACTIONS,
        forms: ALL_FORMS,
    };
    pub(crate) const BOSS_NO_UNLOCK: Self =
        Self { locked_room: 0.0, implicit_unlock: false, ..Self::BOSS };
    pub(crate) const MINI_BOSS: Self = Self { others: 7, locked_room: 0.25, ..Self::BOSS };
    pub(crate) const SYNTH_SEQ: Self = Self { implicit_unlock: false, ..Self::BOSS };
    pub(crate) const SYNTH_LOC: Self = Self { forms: &[Form::Action], ..Self::SYNTH_SEQ };
    pub(crate) const SYNTH: Self = Self { locations: false, ..Self::SYNTH_LOC };
    pub(crate) const PICKUP_LOC: Self = Self {
        others: 8,
        locked_room: 0.0,
        unblocking: false,
        actions: &[ActionKind::PickUp],
        forms: &[Form::Action],
        ..Self::BOSS
    };

    pub(crate) const fn goto_seq(others: usize) -> Self {
        Self {
            others,
            locked_room: 0.0,
            locations: false,
            unblocking: false,
            actions: &[ActionKind::GoTo],
            ..Self::BOSS
        }
    }
}

/// Makes a level, again and again until what was drawn is fit.
pub(crate) fn make(
    level: &BabyLevel,
    size: i8,
    max_steps: u32,
    world: &mut World,
) -> Result<Made, Rejected> {
    for _ in 0..MOST_DRAFTS {
        let mut rooms = Rooms::build(world, size, level.rows, level.columns);
        let mut draft = Draft { world, rooms: &mut rooms, carrying: None };
        let unblocking = matches!(level.kind, Baby::Generated(it) if it.unblocking);
        let Ok(order) = draft.furnish(&level.kind) else { continue };
        let carrying = draft.carrying;
        if order.check(world, &rooms, unblocking).is_err() {
            continue;
        }
        let (instruction, progress) = Instruction::bind(&order, world, &rooms);
        let mission = instruction.words.clone();
        let max_steps = match max_steps {
            0 => {
                let area = u32::from(size.unsigned_abs()).pow(2);
                let count = u32::from((level.rows * level.columns).unsigned_abs());
                order.num_ways() * area * count
            }
            fixed => fixed,
        };
        let goal = Goal::Instruction(instruction.into(), progress);
        return Ok(Made { goal, mission, max_steps: Some(max_steps), carrying });
    }
    Err(Rejected::Exhausted)
}

/// A level in the making.
struct Draft<'w> {
    world: &'w mut World,
    rooms: &'w mut Rooms,
    carrying: Option<Cell>,
}

const MIDDLE: At = (1, 1);

impl Draft<'_> {
    fn furnish(&mut self, kind: &Baby) -> Result<Order, Rejected> {
        match *kind {
            Baby::GoToRedBall { others, grey } => {
                self.place_agent(None)?;
                self.add((0, 0), Some(Kind::Ball), Some(Color::Red))?;
                let others = self.add_others(None, others, false)?;
                if grey {
                    for object in others.iter().filter_map(|cell| cell.object()) {
                        self.world.objects[object].color = Color::Grey;
                    }
                }
                self.all_reachable()?;
                Ok(one(Verb::GoTo, Description::of(Kind::Ball, Color::Red)))
            }
            Baby::GoToObj => {
                self.place_agent(None)?;
                let objects = self.add_others(None, 1, true)?;
                Ok(one(Verb::GoTo, self.described(objects[0])))
            }
            Baby::GoToLocal { others } => {
                self.place_agent(None)?;
                let objects = self.add_others(None, others, false)?;
                self.all_reachable()?;
                Ok(self.about_one_of(Verb::GoTo, &objects))
            }
            Baby::GoTo { others, open } => {
                self.place_agent(None)?;
                self.connect_all()?;
                let objects = self.add_others(None, others, false)?;
                self.all_reachable()?;
                let order = self.about_one_of(Verb::GoTo, &objects);
                if open {
                    self.rooms.open_all_doors(self.world);
                }
                Ok(order)
            }
            Baby::GoToImpUnlock => self.implicit_unlock(),
            Baby::GoToRedBlueBall => {
                self.place_agent(None)?;
                let others = self.add_others(None, 7, false)?;
                let is_meant = |cell: &Cell| {
                    self.world.object(*cell).is_some_and(|it| {
                        it.kind == Kind::Ball && matches!(it.color, Color::Blue | Color::Red)
                    })
                };
                if others.iter().any(is_meant) {
                    return Err(Rejected::Unfit);
                }
                let color = self.world.pick(&[Color::Red, Color::Blue]);
                self.add((0, 0), Some(Kind::Ball), Some(color))?;
                self.all_reachable()?;
                Ok(one(Verb::GoTo, Description::of(Kind::Ball, color)))
            }
            Baby::GoToDoor => {
                let doors = self.add_doors(None);
                self.place_agent(Some(MIDDLE))?;
                Ok(self.about_one_of(Verb::GoTo, &doors))
            }
            Baby::GoToObjDoor => {
                self.place_agent(Some(MIDDLE))?;
                let mut objects = self.add_others(Some(MIDDLE), 8, false)?;
                objects.extend(self.add_doors(None));
                self.all_reachable()?;
                Ok(self.about_one_of(Verb::GoTo, &objects))
            }
            Baby::Open => {
                self.place_agent(None)?;
                self.connect_all()?;
                self.add_others(None, 18, false)?;
                self.all_reachable()?;
                let openings = self.rooms.all().flat_map(|at| self.rooms.openings(at));
                let doors: Vec<Cell> = openings
                    .filter_map(|it| if let Opening::Door(door) = it { Some(door) } else { None })
                    .collect();
                Ok(self.about_one_of(Verb::Open, &doors))
            }
            Baby::OpenRedDoor => {
                self.door((0, 0), Some(0), Some(Color::Red), Some(false));
                self.place_agent(Some((0, 0)))?;
                Ok(one(Verb::Open, Description::of(Kind::Door, Color::Red)))
            }
            Baby::OpenDoor { strict, by } => self.open_door(strict, by),
            Baby::OpenTwoDoors { colors, strict } => {
                let drawn = self.world.pick_some(&Color::SORTED, 2);
                let (first, second) = colors.unwrap_or((drawn[0], drawn[1]));
                self.door(MIDDLE, Some(2), Some(first), Some(false));
                self.door(MIDDLE, Some(0), Some(second), Some(false));
                self.place_agent(Some(MIDDLE))?;
                let open = |color| Clause::new(Verb::Open, Description::of(Kind::Door, color));
                let first = Clause { is_strict: strict, ..open(first) };
                Ok(Order::Before(first.into(), open(second).into()))
            }
            Baby::OpenDoorsOrder { count, strict } => {
                let colors = self.world.pick_some(&Color::SORTED, count);
                let doors: Vec<Cell> = colors
                    .iter()
                    .map(|color| self.door(MIDDLE, None, Some(*color), Some(false)).0)
                    .collect();
                self.place_agent(Some(MIDDLE))?;
                let chosen = self.world.pick_some(&doors, 2);
                let open = |door: Cell| Clause {
                    is_strict: strict,
                    ..Clause::new(Verb::Open, Description::of_object(self.world, door))
                };
                let (first, second) = (open(chosen[0]).into(), open(chosen[1]).into());
                Ok(match self.world.draw(0, 3) {
                    0 => Order::One(first),
                    1 => Order::Before(first, second),
                    _ => Order::After(first, second),
                })
            }
            Baby::Pickup => {
                self.place_agent(None)?;
                self.connect_all()?;
                let objects = self.add_others(None, 18, false)?;
                self.all_reachable()?;
                Ok(self.about_one_of(Verb::PickUp, &objects))
            }
            Baby::UnblockPickup => {
                self.place_agent(None)?;
                self.connect_all()?;
                let objects = self.add_others(None, 20, false)?;
                if all_reachable(self.world) {
                    return Err(Rejected::Unfit);
                }
                Ok(self.about_one_of(Verb::PickUp, &objects))
            }
            Baby::PickupDist { strict } => {
                let objects = self.add_others(None, 5, true)?;
                self.place_agent(Some((0, 0)))?;
                let object = self.world.pick(&objects);
                let mut what = self.described(object);
                match self.world.draw(0, 3) {
                    0 => what.color = None,
                    1 => what.kind = None,
                    _ => {}
                }
                let clause = Clause { is_strict: strict, ..Clause::new(Verb::PickUp, what) };
                Ok(Order::One(clause.into()))
            }
            Baby::PickupAbove => {
                let object = self.add((1, 0), None, None)?;
                self.door(MIDDLE, Some(3), None, Some(false));
                self.place_agent(Some(MIDDLE))?;
                self.connect_all()?;
                Ok(one(Verb::PickUp, self.described(object)))
            }
            Baby::PutNextLocal { count } => {
                self.place_agent(None)?;
                let objects = self.add_others(None, count, true)?;
                self.all_reachable()?;
                let chosen = self.world.pick_some(&objects, 2);
                Ok(Order::One(self.put(chosen[0], chosen[1]).into()))
            }
            Baby::PutNext { count, carrying } => {
                self.place_agent(Some((0, 0)))?;
                let left = self.add_others(Some((0, 0)), count, true)?;
                let right = self.add_others(Some((1, 0)), count, true)?;
                self.rooms.remove_wall(self.world, (0, 0), 0);
                let (a, b) = (self.world.pick(&left), self.world.pick(&right));
                let (moved, fixed) = if self.world.draw_bool() { (b, a) } else { (a, b) };
                self.carrying = carrying.then_some(moved);
                Ok(Order::One(self.put(moved, fixed).into()))
            }
            Baby::Unlock => self.unlock(),
            Baby::UnlockLocal { others } => {
                let (door, _) = self.door(MIDDLE, None, None, Some(true));
                self.add(MIDDLE, Some(Kind::Key), self.world.color(door))?;
                if others {
                    self.add_others(Some(MIDDLE), 3, true)?;
                }
                self.place_agent(Some(MIDDLE))?;
                Ok(one(Verb::Open, Description::kind(Kind::Door)))
            }
            Baby::KeyInBox => {
                let (door, _) = self.door(MIDDLE, None, None, Some(true));
                let key = self.key_of(door);
                let color = self.world.pick_color();
                let object = Object { inside: key, ..Object::new(Kind::Box, color) };
                self.rooms.place(self.world, MIDDLE, object)?;
                self.place_agent(Some(MIDDLE))?;
                Ok(one(Verb::Open, Description::kind(Kind::Door)))
            }
            Baby::UnlockPickup { others } => {
                let object = self.add((1, 0), Some(Kind::Box), None)?;
                let (door, _) = self.door((0, 0), Some(0), None, Some(true));
                self.add((0, 0), Some(Kind::Key), self.world.color(door))?;
                if others {
                    self.add_others(None, 4, true)?;
                }
                self.place_agent(Some((0, 0)))?;
                Ok(one(Verb::PickUp, self.described(object)))
            }
            Baby::BlockedUnlockPickup => {
                self.add((1, 0), Some(Kind::Box), None)?;
                let (door, place) = self.door((0, 0), Some(0), None, Some(true));
                let color = self.world.pick_color();
                let ball = self.world.add(Object::new(Kind::Ball, color));
                self.world.set(Position::new(place.x - 1, place.y), ball);
                self.add((0, 0), Some(Kind::Key), self.world.color(door))?;
                self.place_agent(Some((0, 0)))?;
                Ok(one(Verb::PickUp, Description::kind(Kind::Box)))
            }
            Baby::UnlockToUnlock => {
                let colors = self.world.pick_some(&Color::SORTED, 2);
                self.door((0, 0), Some(0), Some(colors[0]), Some(true));
                self.add((2, 0), Some(Kind::Key), Some(colors[0]))?;
                self.door((1, 0), Some(0), Some(colors[1]), Some(true));
                self.add((1, 0), Some(Kind::Key), Some(colors[1]))?;
                self.add((0, 0), Some(Kind::Ball), None)?;
                self.place_agent(Some((1, 0)))?;
                Ok(one(Verb::PickUp, Description::kind(Kind::Ball)))
            }
            Baby::ActionObjDoor => {
                let mut objects = self.add_others(Some(MIDDLE), 5, true)?;
                objects.extend(self.add_doors(Some(false)));
                self.place_agent(Some(MIDDLE))?;
                let object = self.world.pick(&objects);
                let what = self.described(object);
                let goes = self.world.draw_bool();
                let other = if what.kind == Some(Kind::Door) { Verb::Open } else { Verb::PickUp };
                Ok(one(if goes { Verb::GoTo } else { other }, what))
            }
            Baby::FindObj => {
                let at = self.rooms.draw_room(self.world);
                let object = self.add(at, None, None)?;
                self.place_agent(Some(MIDDLE))?;
                self.connect_all()?;
                let kind = self.world.kind(object);
                Ok(one(Verb::PickUp, Description { kind, color: None, location: None }))
            }
            Baby::KeyCorridor => {
                self.key_corridor()?;
                Ok(one(Verb::PickUp, Description::kind(Kind::Ball)))
            }
            Baby::OneRoom => {
                self.add((0, 0), Some(Kind::Ball), None)?;
                self.place_agent(None)?;
                Ok(one(Verb::PickUp, Description::kind(Kind::Ball)))
            }
            Baby::MoveTwoAcross { count } => {
                self.place_agent(Some((0, 0)))?;
                let left = self.add_others(Some((0, 0)), count, true)?;
                let right = self.add_others(Some((1, 0)), count, true)?;
                self.rooms.remove_wall(self.world, (0, 0), 0);
                let left = self.world.pick_some(&left, 2);
                let right = self.world.pick_some(&right, 2);
                let (there, back) = (self.put(left[0], right[0]), self.put(right[1], left[1]));
                Ok(Order::Before(there.into(), back.into()))
            }
            Baby::Generated(level) => self.generate(&level),
        }
    }

    fn place_agent(&mut self, at: Option<At>) -> Result<(), Rejected> {
        self.rooms.place_agent(self.world, at)
    }

    fn connect_all(&mut self) -> Result<(), Rejected> {
        self.rooms.connect_all(self.world, &Color::SORTED)
    }

    fn add(&mut self, at: At, kind: Option<Kind>, color: Option<Color>) -> Result<Cell, Rejected> {
        self.rooms.add(self.world, at, kind, color)
    }

    fn add_others(
        &mut self,
        at: Option<At>,
        count: usize,
        all_unique: bool,
    ) -> Result<Vec<Cell>, Rejected> {
        self.rooms.add_distractors(self.world, at, count, all_unique)
    }

    fn door(
        &mut self,
        at: At,
        wall: Option<u8>,
        color: Option<Color>,
        is_locked: Option<bool>,
    ) -> (Cell, Position) {
        self.rooms.add_door(self.world, at, wall, color, is_locked)
    }

    /// Four doors of the middle room.
    fn add_doors(&mut self, is_locked: Option<bool>) -> Vec<Cell> {
        (0..4).map(|_| self.door(MIDDLE, None, None, is_locked).0).collect()
    }

    /// A key of a door's colour, that stands nowhere.
    fn key_of(&mut self, door: Cell) -> Cell {
        let color = self.world.color(door).expect("doors have colours");
        self.world.add(Object::new(Kind::Key, color))
    }

    fn all_reachable(&self) -> Result<(), Rejected> {
        if all_reachable(self.world) { Ok(()) } else { Err(Rejected::Unfit) }
    }

    fn described(&self, cell: Cell) -> Description {
        Description::of_object(self.world, cell)
    }

    fn about_one_of(&mut self, verb: Verb, objects: &[Cell]) -> Order {
        let object = self.world.pick(objects);
        one(verb, self.described(object))
    }

    fn put(&self, moved: Cell, fixed: Cell) -> Clause {
        Clause::new(Verb::PutNext(self.described(fixed)), self.described(moved))
    }

    /// A locked room, and a key to it in some room. The package means to leave the locked room out there and does not,
    /// since it compares numbers by identity.
    fn locked_room_with_key(&mut self) -> Result<(At, Cell), Rejected> {
        let at = self.rooms.draw_room(self.world);
        let (door, _) = self.door(at, None, None, Some(true));
        let key_at = self.rooms.draw_room(self.world);
        self.add(key_at, Some(Kind::Key), self.world.color(door))?;
        Ok((at, door))
    }

    fn has_several_rooms(&self) -> bool {
        self.rooms.all().nth(1).is_some()
    }

    /// Places the agent anywhere but in a room.
    fn place_agent_outside(&mut self, room: Option<At>) -> Result<(), Rejected> {
        assert!(
            room.is_none() || self.has_several_rooms(),
            "levels with a locked room have others"
        );
        loop {
            self.place_agent(None)?;
            if Some(self.rooms.room_of(self.world.agent)) != room {
                return Ok(());
            }
        }
    }

    fn implicit_unlock(&mut self) -> Result<Order, Rejected> {
        let (locked, _) = self.locked_room_with_key()?;
        self.connect_all()?;
        for at in self.rooms.all() {
            self.add_others(Some(at), 2, false)?;
        }
        self.place_agent_outside(Some(locked))?;
        self.all_reachable()?;
        let objects = self.add_others(Some(locked), 1, false)?;
        Ok(one(Verb::GoTo, self.described(objects[0])))
    }

    fn unlock(&mut self) -> Result<Order, Rejected> {
        let (locked, door) = self.locked_room_with_key()?;
        let what = self.described(door);
        if self.world.draw_bool() {
            let others: Vec<Color> =
                Color::SORTED.into_iter().filter(|color| Some(*color) != what.color).collect();
            self.rooms.connect_all(self.world, &others)?;
        } else {
            self.connect_all()?;
        }
        for at in self.rooms.all() {
            self.add_others(Some(at), 3, false)?;
        }
        self.place_agent_outside(Some(locked))?;
        self.all_reachable()?;
        Ok(one(Verb::Open, what))
    }

    fn open_door(&mut self, strict: bool, by: Option<Select>) -> Result<Order, Rejected> {
        let colors = self.world.pick_some(&Color::SORTED, 4);
        for (wall, color) in (0..).zip(&colors) {
            self.door(MIDDLE, Some(wall), Some(*color), Some(false));
        }
        let by = by.unwrap_or_else(|| self.world.pick(&[Select::Color, Select::Location]));
        let what = match by {
            Select::Color => Description::of(Kind::Door, colors[0]),
            Select::Location => {
                let location = Some(self.world.pick(&Location::ALL));
                Description { location, ..Description::kind(Kind::Door) }
            }
        };
        self.place_agent(Some(MIDDLE))?;
        let clause = Clause { is_strict: strict, ..Clause::new(Verb::Open, what) };
        Ok(Order::One(clause.into()))
    }

    fn key_corridor(&mut self) -> Result<Cell, Rejected> {
        key_corridor(self.world, self.rooms)
    }

    fn generate(&mut self, level: &Generated) -> Result<Order, Rejected> {
        let mut locked = None;
        if self.world.rng.random() < level.locked_room {
            locked = Some(self.add_locked_room()?);
        }
        self.connect_all()?;
        self.add_others(None, level.others, false)?;
        self.place_agent_outside(locked)?;
        if !level.unblocking {
            self.all_reachable()?;
        }
        let mut speaker = Speaker { draft: self, level, locked };
        Ok(match speaker.draft.world.pick(level.forms) {
            Form::Action => Order::One(speaker.clause()?.into()),
            Form::And => Order::One(speaker.both()?),
            Form::Sequence => {
                let parts = (speaker.part()?, speaker.part()?);
                match speaker.draft.world.draw_bool() {
                    true => Order::Before(parts.0, parts.1),
                    false => Order::After(parts.0, parts.1),
                }
            }
        })
    }

    fn add_locked_room(&mut self) -> Result<At, Rejected> {
        // So there is a wall between two rooms, and a room for the key.
        assert!(self.has_several_rooms(), "levels with a locked room have others");
        let (locked, door) = loop {
            let at = self.rooms.draw_room(self.world);
            let wall = self.world.draw(0, 4) as u8;
            let place = Position::new(at.0, at.1).towards(wall);
            let is_inner = (0..self.rooms.columns).contains(&place.x)
                && (0..self.rooms.rows).contains(&place.y);
            if is_inner {
                break (at, self.door(at, Some(wall), None, Some(true)).0);
            }
        };
        debug_assert!(is_locked(self.world, door));
        loop {
            let at = self.rooms.draw_room(self.world);
            if at != locked {
                self.add(at, Some(Kind::Key), self.world.color(door))?;
                return Ok(locked);
            }
        }
    }
}

/// Corridors with a locked room on the right, whose key lies in a room on the left, and what is in the locked room.
pub(crate) fn key_corridor(world: &mut World, rooms: &mut Rooms) -> Result<Cell, Rejected> {
    for row in 1..rooms.rows {
        rooms.remove_wall(world, (1, row), 3);
    }
    let row = world.draw(0, rooms.rows);
    let (door, _) = rooms.add_door(world, (2, row), Some(2), None, Some(true));
    let ball = rooms.add(world, (2, row), Some(Kind::Ball), None)?;
    let row = world.draw(0, rooms.rows);
    rooms.add(world, (0, row), Some(Kind::Key), world.color(door))?;
    rooms.place_agent(world, Some((1, rooms.rows / 2)))?;
    rooms.connect_all(world, &Color::SORTED)?;
    Ok(ball)
}

fn one(verb: Verb, what: Description) -> Order {
    Order::One(Clause::new(verb, what).into())
}

/// Draws instructions for a level as it stands.
struct Speaker<'d, 'w> {
    draft: &'d mut Draft<'w>,
    level: &'d Generated,
    locked: Option<At>,
}

impl Speaker<'_, '_> {
    fn part(&mut self) -> Result<super::instruction::Part, Rejected> {
        match self.draft.world.pick(&[Form::Action, Form::And]) {
            Form::And => self.both(),
            _ => Ok(self.clause()?.into()),
        }
    }

    fn both(&mut self) -> Result<super::instruction::Part, Rejected> {
        let first = self.clause()?;
        Ok(super::instruction::Part { first, second: Some(self.clause()?) })
    }

    fn clause(&mut self) -> Result<Clause, Rejected> {
        Ok(match self.draft.world.pick(self.level.actions) {
            ActionKind::GoTo => Clause::new(Verb::GoTo, self.description(TYPES)?),
            ActionKind::PickUp => Clause::new(Verb::PickUp, self.description(TYPES_NOT_DOOR)?),
            ActionKind::Open => Clause::new(Verb::Open, self.description(&[Kind::Door])?),
            ActionKind::PutNext => {
                let moved = self.description(TYPES_NOT_DOOR)?;
                Clause::new(Verb::PutNext(self.description(TYPES)?), moved)
            }
        })
    }

    /// Draws descriptions until one means something.
    fn description(&mut self, kinds: &[Kind]) -> Result<Description, Rejected> {
        for _ in 0..=100 {
            let Draft { world, rooms, .. } = &mut *self.draft;
            let color = match world.draw(0, 7) {
                0 => None,
                color => Some(Color::SORTED[color as usize - 1]),
            };
            let kind = Some(world.pick(kinds));
            let mut location = None;
            if self.level.locations && world.draw_bool() {
                location = Some(world.pick(&Location::ALL));
            }
            let description = Description { kind, color, location };
            let meant = description.find(world, rooms);
            let is_open =
                |at: &Position| self.locked.is_none_or(|locked| !rooms.is_inside(locked, *at));
            let is_fit = self.level.implicit_unlock || meant.places.iter().any(is_open);
            if !meant.places.is_empty() && is_fit {
                return Ok(description);
            }
        }
        Err(Rejected::Exhausted)
    }
}
