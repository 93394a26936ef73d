//! Instructions of the baby language, and whether they are fulfilled.

use std::sync::Arc;

use super::Action;
use super::object::{Cell, Color, DoorState, Kind, Position};
use super::rooms::Rooms;
use super::world::{Rejected, World};

/// Where something is, seen from the agent at the start, in the same room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Left,
    Right,
    Front,
    Behind,
}

impl Location {
    pub(crate) const ALL: [Self; 4] = [Self::Left, Self::Right, Self::Front, Self::Behind];
}

/// What describes objects; what is absent is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) kind: Option<Kind>,
    pub(crate) color: Option<Color>,
    pub(crate) location: Option<Location>,
}

/// The objects that a description means, and where they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Meant {
    /// A set of cells.
    pub(crate) set: u64,
    pub(crate) places: Vec<Position>,
}

impl Description {
    pub(crate) fn of(kind: Kind, color: Color) -> Self {
        Self { kind: Some(kind), color: Some(color), location: None }
    }

    pub(crate) fn kind(kind: Kind) -> Self {
        Self { kind: Some(kind), color: None, location: None }
    }

    pub(crate) fn of_object(world: &World, cell: Cell) -> Self {
        Self { kind: world.kind(cell), color: world.color(cell), location: None }
    }

    /// What it means now.
    pub(crate) fn find(&self, world: &World, rooms: &Rooms) -> Meant {
        let mut meant = Meant::default();
        let room = rooms.room_of(world.agent);
        for x in 0..world.width {
            for y in 0..world.height {
                let at = Position::new(x, y);
                let cell = world.get(at);
                if cell.is_empty()
                    || self.kind.is_some_and(|kind| world.kind(cell) != Some(kind))
                    || self.color.is_some_and(|color| world.color(cell) != Some(color))
                {
                    continue;
                }
                if let Some(location) = self.location
                    && !(rooms.is_inside(room, at) && is_located(world, at, location))
                {
                    continue;
                }
                meant.set |= cell.bit();
                meant.places.push(at);
            }
        }
        meant
    }

    /// It in words, with the article that their number demands.
    fn words(&self, meant: &Meant) -> String {
        let kind = self.kind.map_or("object", Kind::name);
        let color = self.color.map_or(String::new(), |color| format!("{} ", color.name()));
        let location = match self.location {
            None => "",
            Some(Location::Left) => " on your left",
            Some(Location::Right) => " on your right",
            Some(Location::Front) => " in front of you",
            Some(Location::Behind) => " behind you",
        };
        let article = if meant.places.len() > 1 { "a" } else { "the" };
        format!("{article} {color}{kind}{location}")
    }
}

fn is_located(world: &World, at: Position, location: Location) -> bool {
    let (x, y) = (i16::from(at.x - world.agent.x), i16::from(at.y - world.agent.y));
    let along = |direction: u8| {
        let (dx, dy) = super::object::STEPS[usize::from(direction % 4)];
        x * i16::from(dx) + y * i16::from(dy)
    };
    let (ahead, aside) = (along(world.direction), along(world.direction + 1));
    match location {
        Location::Left => aside < 0,
        Location::Right => aside > 0,
        Location::Front => ahead > 0,
        Location::Behind => ahead < 0,
    }
}

/// What a clause asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    GoTo,
    PickUp,
    Open,
    /// Beside something else.
    PutNext(Description),
}

/// One demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) verb: Verb,
    pub(crate) what: Description,
    /// Whether doing it with something else is failing.
    pub(crate) is_strict: bool,
}

impl Clause {
    pub(crate) fn new(verb: Verb, what: Description) -> Self {
        Self { verb, what, is_strict: false }
    }
}

/// Up to two demands, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: Clause,
    pub(crate) second: Option<Clause>,
}

impl From<Clause> for Part {
    fn from(first: Clause) -> Self {
        Self { first, second: None }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    One(Part),
    /// The first, then the second.
    Before(Part, Part),
    /// The first after the second.
    After(Part, Part),
}

impl Order {
    /// The parts in the order in which they are named.
    fn parts(&self) -> impl Iterator<Item = &Part> {
        let (first, second) = match self {
            Self::One(part) => (part, None),
            Self::Before(first, second) | Self::After(first, second) => (first, Some(second)),
        };
        std::iter::once(first).chain(second)
    }

    fn clauses(&self) -> impl Iterator<Item = &Clause> {
        self.parts().flat_map(|part| std::iter::once(&part.first).chain(&part.second))
    }

    /// How many ways to somewhere it takes: putting takes two.
    pub(crate) fn num_ways(&self) -> u32 {
        let ways = |clause: &Clause| if matches!(clause.verb, Verb::PutNext(_)) { 2 } else { 1 };
        self.clauses().map(ways).sum()
    }

    /// Refuses what makes no sense in a world.
    pub(crate) fn check(
        &self,
        world: &World,
        rooms: &Rooms,
        unblocking: bool,
    ) -> Result<(), Rejected> {
        let locked = if unblocking { rooms.locked_colors(world) } else { Vec::new() };
        let opens = |it: &Description| {
            it.kind == Some(Kind::Key) && it.color.is_some_and(|color| locked.contains(&color))
        };
        for clause in self.clauses() {
            if let Verb::PutNext(fixed) = &clause.verb {
                let (moved, fixed) = (clause.what.find(world, rooms), fixed.find(world, rooms));
                let is_beside = |at: &Position| fixed.places.iter().any(|it| it.distance(*at) == 1);
                if moved.set & fixed.set != 0 || moved.places.iter().any(is_beside) {
                    return Err(Rejected::Unfit);
                }
                if opens(&clause.what) {
                    return Err(Rejected::Unfit);
                }
            }
            let other = match &clause.verb {
                Verb::PutNext(fixed) => Some(fixed),
                _ => None,
            };
            if opens(&clause.what) || other.is_some_and(opens) {
                return Err(Rejected::Unfit);
            }
        }
        Ok(())
    }
}

/// An instruction with what it means in its world.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instruction {
    /// The parts in the order in which they are to be done.
    parts: Vec<Vec<Bound>>,
    /// In words.
    pub(crate) words: Arc<str>,
}

/// A clause, and the objects that it means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) verb: Verb,
    pub(crate) is_strict: bool,
    /// The number among all clauses.
    pub(crate) number: usize,
    pub(crate) what: u64,
    pub(crate) fixed: u64,
}

/// How far an instruction is fulfilled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    /// Where what each clause means is, as of the last drop.
    places: Arc<Places>,
    /// What was carried when each clause was looked at last.
    carried: [Cell; 4],
    done: [bool; 4],
}

/// By clause: where what is meant is, and what it is put beside.
pub(crate) type Places = Vec<[Vec<Position>; 2]>;

/// What an action has made of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Fulfilled,
    Failed,
    Open,
}

impl Instruction {
    /// Binds an instruction to a world as it is when an episode begins.
    pub(crate) fn bind(order: &Order, world: &World, rooms: &Rooms) -> (Self, Progress) {
        let mut places = Places::new();
        let mut bind = |part: &Part| -> (Vec<Bound>, String) {
            let mut words = Vec::new();
            let clauses = std::iter::once(&part.first).chain(&part.second);
            let bound = clauses
                .map(|clause| {
                    let what = clause.what.find(world, rooms);
                    let named = clause.what.words(&what);
                    let mut fixed = Meant::default();
                    words.push(match &clause.verb {
                        Verb::GoTo => format!("go to {named}"),
                        Verb::PickUp => format!("pick up {named}"),
                        Verb::Open => format!("open {named}"),
                        Verb::PutNext(other) => {
                            fixed = other.find(world, rooms);
                            format!("put {named} next to {}", other.words(&fixed))
                        }
                    });
                    let number = places.len();
                    places.push([what.places, fixed.places]);
                    let (verb, is_strict) = (clause.verb, clause.is_strict);
                    Bound { verb, is_strict, number, what: what.set, fixed: fixed.set }
                })
                .collect();
            (bound, words.join(" and "))
        };
        let (parts, words) = match order {
            Order::One(part) => {
                let (part, words) = bind(part);
                (vec![part], words)
            }
            Order::Before(first, second) => {
                let (first, second) = (bind(first), bind(second));
                (vec![first.0, second.0], format!("{}, then {}", first.1, second.1))
            }
            Order::After(first, second) => {
                let (first, second) = (bind(first), bind(second));
                (vec![second.0, first.0], format!("{} after you {}", first.1, second.1))
            }
        };
        let progress =
            Progress { places: Arc::new(places), carried: [Cell::EMPTY; 4], done: [false; 4] };
        (Self { parts, words: words.into() }, progress)
    }

    /// The clauses that are to be fulfilled next, in any order.
    pub(crate) fn due(&self, progress: &Progress) -> Vec<&Bound> {
        let open = |part: &&Vec<Bound>| part.iter().any(|clause| !progress.done[clause.number]);
        let part = self.parts.iter().find(open);
        part.into_iter().flatten().filter(|clause| !progress.done[clause.number]).collect()
    }

    /// Takes in that an action was carried out.
    pub(crate) fn note(&self, progress: &mut Progress, world: &World, action: Action) -> Outcome {
        if action == Action::Drop {
            self.find_again(progress, world);
        }
        for part in &self.parts {
            if part.iter().all(|clause| progress.done[clause.number]) {
                continue;
            }
            let is_alone = part.len() == 1;
            for clause in part {
                if progress.done[clause.number] {
                    continue;
                }
                match clause.note(progress, world, action) {
                    Outcome::Fulfilled => progress.done[clause.number] = true,
                    Outcome::Failed if is_alone => return Outcome::Failed,
                    Outcome::Failed | Outcome::Open => {}
                }
            }
            // What fulfils one part may fulfil the next with the same action.
            if !part.iter().all(|clause| progress.done[clause.number]) {
                return Outcome::Open;
            }
        }
        Outcome::Fulfilled
    }

    /// Finds again where what is meant is, for it was dropped elsewhere.
    fn find_again(&self, progress: &mut Progress, world: &World) {
        let places = Arc::make_mut(&mut progress.places);
        places.iter_mut().flatten().for_each(Vec::clear);
        let clauses: Vec<&Bound> = self.parts.iter().flatten().collect();
        for x in 0..world.width {
            for y in 0..world.height {
                let at = Position::new(x, y);
                let bit = world.get(at).bit();
                for clause in &clauses {
                    let [what, fixed] = &mut places[clause.number];
                    if clause.what & bit != 0 {
                        what.push(at);
                    }
                    if clause.fixed & bit != 0 {
                        fixed.push(at);
                    }
                }
            }
        }
    }
}

impl Progress {
    /// Where what a clause means was last known to be, and what it is put beside.
    pub(crate) fn places(&self, clause: &Bound) -> &[Vec<Position>; 2] {
        &self.places[clause.number]
    }
}

impl Bound {
    fn note(&self, progress: &mut Progress, world: &World, action: Action) -> Outcome {
        let before = std::mem::replace(&mut progress.carried[self.number], world.carrying);
        let met = |is_met: bool, fails: bool| match (is_met, fails && self.is_strict) {
            (true, _) => Outcome::Fulfilled,
            (false, true) => Outcome::Failed,
            (false, false) => Outcome::Open,
        };
        let [places, fixed] = &progress.places[self.number];
        match self.verb {
            Verb::GoTo => met(places.contains(&world.front()), false),
            Verb::Open if action == Action::Toggle => {
                let front = world.get(world.front());
                let is_meant = self.what & front.bit() != 0 && world.is_open_door(front);
                met(is_meant, world.kind(front) == Some(Kind::Door))
            }
            Verb::PickUp if action == Action::PickUp => {
                let carried = world.carrying;
                let is_meant = !carried.is_empty() && self.what & carried.bit() != 0;
                met(before.is_empty() && is_meant, !carried.is_empty())
            }
            Verb::PutNext(_) if action == Action::PickUp => met(false, !world.carrying.is_empty()),
            Verb::PutNext(_) if action == Action::Drop => {
                let moved = world.object(before).filter(|_| self.what & before.bit() != 0);
                let is_beside =
                    moved.is_some_and(|it| fixed.iter().any(|at| at.distance(it.place) == 1));
                met(is_beside, false)
            }
            _ => Outcome::Open,
        }
    }
}

/// Whether a door is locked.
pub(crate) fn is_locked(world: &World, cell: Cell) -> bool {
    world.object(cell).is_some_and(|it| it.door == DoorState::Locked)
}
