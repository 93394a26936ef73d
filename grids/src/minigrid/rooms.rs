//! Grids of rooms of one size, with doors between them.

use super::object::{Cell, Color, DoorState, Kind, Object, Position};
use super::world::{Area, Rejected, World};

/// As many tries as a place in a room may take.
const MAX_TRIES: Option<u32> = Some(1000);
/// As many places as the agent is given in a room until nothing stands before it; the package tries for ever.
const MOST_PLACES: u32 = 10_000;
/// As many draws as connecting all rooms may take.
const MAX_CONNECTIONS: u32 = 5000;

/// What is drawn where nothing is said: keys, balls, boxes.
const KINDS: [Kind; 3] = [Kind::Key, Kind::Ball, Kind::Box];

/// Rooms of one size in rows and columns, while a level is made.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(crate) size: i8,
    pub(crate) rows: i8,
    pub(crate) columns: i8,
    rooms: Vec<Room>,
}

/// What leads through one wall of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Nothing.
    Closed,
    /// The wall was taken away.
    Wall,
    /// A door.
    Door(Cell),
}

#[derive(Debug)]
struct Room {
    top: Position,
    /// Right, down, left, up.
    openings: [Opening; 4],
    door_places: [Option<Position>; 4],
    is_locked: bool,
    objects: Vec<Cell>,
}

/// A room, by its column and row.
pub(crate) type At = (i8, i8);

impl Rooms {
    /// Draws the walls and where doors can be, and puts the agent into the middle.
    pub(crate) fn build(world: &mut World, size: i8, rows: i8, columns: i8) -> Self {
        world.clear();
        let mut rooms = Self { size, rows, columns, rooms: Vec::new() };
        for row in 0..rows {
            for column in 0..columns {
                let top = Position::new(column * (size - 1), row * (size - 1));
                world.wall_rectangle(top.x, top.y, size, size);
                rooms.rooms.push(Room {
                    top,
                    openings: [Opening::Closed; 4],
                    door_places: [None; 4],
                    is_locked: false,
                    objects: Vec::new(),
                });
            }
        }
        for row in 0..rows {
            for column in 0..columns {
                let at = rooms.index((column, row));
                let Position { x, y } = rooms.rooms[at].top;
                let (right, bottom) = (x + size - 1, y + size - 1);
                if column < columns - 1 {
                    let place = Position::new(right, world.draw(y + 1, bottom));
                    rooms.rooms[at].door_places[0] = Some(place);
                }
                if row < rows - 1 {
                    let place = Position::new(world.draw(x + 1, right), bottom);
                    rooms.rooms[at].door_places[1] = Some(place);
                }
                if column > 0 {
                    rooms.rooms[at].door_places[2] = rooms.rooms[at - 1].door_places[0];
                }
                if row > 0 {
                    let above = at - columns as usize;
                    rooms.rooms[at].door_places[3] = rooms.rooms[above].door_places[1];
                }
            }
        }
        let middle = |count: i8| (count / 2) * (size - 1) + size / 2;
        world.agent = Position::new(middle(columns), middle(rows));
        world.direction = 0;
        rooms
    }

    fn index(&self, (column, row): At) -> usize {
        row as usize * self.columns as usize + column as usize
    }

    fn room(&self, at: At) -> &Room {
        &self.rooms[self.index(at)]
    }

    fn neighbour(&self, (column, row): At, wall: u8) -> Option<At> {
        let place = Position::new(column, row).towards(wall);
        let is_inside = (0..self.columns).contains(&place.x) && (0..self.rows).contains(&place.y);
        is_inside.then_some((place.x, place.y))
    }

    /// What leads out of a room: right, down, left, up.
    pub(crate) fn openings(&self, at: At) -> [Opening; 4] {
        self.room(at).openings
    }

    /// Any room.
    pub(crate) fn draw_room(&self, world: &mut World) -> At {
        (world.draw(0, self.columns), world.draw(0, self.rows))
    }

    /// All rooms, column by column.
    pub(crate) fn all(&self) -> impl Iterator<Item = At> + use<> {
        let rows = self.rows;
        (0..self.columns).flat_map(move |column| (0..rows).map(move |row| (column, row)))
    }

    /// The room that a place belongs to; a wall belongs to the room right of it or below it.
    pub(crate) fn room_of(&self, place: Position) -> At {
        (place.x / (self.size - 1), place.y / (self.size - 1))
    }

    /// Whether a place is in a room, walls included.
    pub(crate) fn is_inside(&self, at: At, place: Position) -> bool {
        let top = self.room(at).top;
        (top.x..top.x + self.size).contains(&place.x)
            && (top.y..top.y + self.size).contains(&place.y)
    }

    fn area(&self, at: At) -> Area {
        let top = self.room(at).top;
        Area::new(top.x, top.y, self.size, self.size)
    }

    /// Puts an object somewhere in a room, not beside the agent.
    pub(crate) fn place(
        &mut self,
        world: &mut World,
        at: At,
        object: Object,
    ) -> Result<(Cell, Position), Rejected> {
        let cell = world.add(object);
        let place = world.place(cell, self.area(at), MAX_TRIES, |world, place| {
            world.agent.distance(place) < 2
        })?;
        let index = self.index(at);
        self.rooms[index].objects.push(cell);
        Ok((cell, place))
    }

    /// Adds an object to a room; what is not said of it is drawn.
    pub(crate) fn add(
        &mut self,
        world: &mut World,
        at: At,
        kind: Option<Kind>,
        color: Option<Color>,
    ) -> Result<Cell, Rejected> {
        let kind = kind.unwrap_or_else(|| world.pick(&KINDS));
        let color = color.unwrap_or_else(|| world.pick_color());
        Ok(self.place(world, at, Object::new(kind, color))?.0)
    }

    /// Adds a door to a room; what is not said of it is drawn.
    pub(crate) fn add_door(
        &mut self,
        world: &mut World,
        at: At,
        wall: Option<u8>,
        color: Option<Color>,
        is_locked: Option<bool>,
    ) -> (Cell, Position) {
        let wall = wall.unwrap_or_else(|| {
            let is_closed = |wall: u8| {
                self.room(at).openings[usize::from(wall)] == Opening::Closed
                    && self.neighbour(at, wall).is_some()
            };
            assert!((0..4).any(is_closed), "levels add doors where a wall is left for them");
            loop {
                let wall = world.draw(0, 4) as u8;
                if is_closed(wall) {
                    return wall;
                }
            }
        });
        let color = color.unwrap_or_else(|| world.pick_color());
        let is_locked = is_locked.unwrap_or_else(|| world.draw_bool());
        let door = world.add(Object::door(color, is_locked));
        let index = self.index(at);
        let room = &mut self.rooms[index];
        room.is_locked = is_locked;
        let place = room.door_places[usize::from(wall)].expect("levels add doors between rooms");
        world.put(place, door);
        self.open(at, wall, Opening::Door(door));
        (door, place)
    }

    fn open(&mut self, at: At, wall: u8, opening: Opening) {
        let other = self.neighbour(at, wall).expect("levels open walls between rooms");
        let (index, other) = (self.index(at), self.index(other));
        self.rooms[index].openings[usize::from(wall)] = opening;
        self.rooms[other].openings[usize::from((wall + 2) % 4)] = opening;
    }

    /// Takes the wall between two rooms away.
    pub(crate) fn remove_wall(&mut self, world: &mut World, at: At, wall: u8) {
        let top = self.room(at).top;
        let last = self.size - 1;
        for i in 1..last {
            let (x, y) = match wall {
                0 => (last, i),
                1 => (i, last),
                2 => (0, i),
                _ => (i, 0),
            };
            world.set(Position::new(top.x + x, top.y + y), Cell::EMPTY);
        }
        self.open(at, wall, Opening::Wall);
    }

    /// Places the agent in a room, any where none is named, not in front of an object.
    pub(crate) fn place_agent(&self, world: &mut World, at: Option<At>) -> Result<(), Rejected> {
        let at = at.unwrap_or_else(|| self.draw_room(world));
        for _ in 0..MOST_PLACES {
            world.place_agent(self.area(at), MAX_TRIES)?;
            if matches!(world.get(world.front()), Cell::EMPTY | Cell::WALL) {
                return Ok(());
            }
        }
        Err(Rejected::Exhausted)
    }

    /// Adds doors until every room can be reached from that of the agent.
    pub(crate) fn connect_all(
        &mut self,
        world: &mut World,
        colors: &[Color],
    ) -> Result<(), Rejected> {
        let start = self.room_of(world.agent);
        for _ in 0..=MAX_CONNECTIONS {
            if self.num_reached(start) == self.rooms.len() {
                return Ok(());
            }
            let at = self.draw_room(world);
            let wall = world.draw(0, 4) as u8;
            let room = self.room(at);
            let side = usize::from(wall);
            if room.door_places[side].is_none() || room.openings[side] != Opening::Closed {
                continue;
            }
            let Some(neighbour) = self.neighbour(at, wall) else { continue };
            if room.is_locked || self.room(neighbour).is_locked {
                continue;
            }
            let color = world.pick(colors);
            self.add_door(world, at, Some(wall), Some(color), Some(false));
        }
        Err(Rejected::Exhausted)
    }

    fn num_reached(&self, start: At) -> usize {
        let mut reached = vec![false; self.rooms.len()];
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut reached[self.index(at)], true) {
                continue;
            }
            for wall in 0..4 {
                if self.room(at).openings[usize::from(wall)] != Opening::Closed {
                    open.extend(self.neighbour(at, wall));
                }
            }
        }
        reached.iter().filter(|is_reached| **is_reached).count()
    }

    /// Adds objects in a room, or each in any, all different from each other and from what there is where that is asked.
    pub(crate) fn add_distractors(
        &mut self,
        world: &mut World,
        at: Option<At>,
        count: usize,
        all_unique: bool,
    ) -> Result<Vec<Cell>, Rejected> {
        let objects = self.rooms.iter().flat_map(|room| &room.objects);
        let mut known: Vec<(Kind, Color)> = objects
            .filter_map(|cell| world.object(*cell))
            .map(|object| (object.kind, object.color))
            .collect();
        let mut added = Vec::with_capacity(count);
        while added.len() < count {
            let color = world.pick_color();
            let kind = world.pick(&KINDS);
            if all_unique && known.contains(&(kind, color)) {
                continue;
            }
            let at = at.unwrap_or_else(|| self.draw_room(world));
            added.push(self.add(world, at, Some(kind), Some(color))?);
            known.push((kind, color));
        }
        Ok(added)
    }

    /// The colours of all locked doors.
    pub(crate) fn locked_colors(&self, world: &World) -> Vec<Color> {
        let openings = self.rooms.iter().flat_map(|room| room.openings);
        openings
            .filter_map(|opening| match opening {
                Opening::Door(door) => world.object(door),
                _ => None,
            })
            .filter(|door| door.door == DoorState::Locked)
            .map(|door| door.color)
            .collect()
    }

    /// Opens all doors.
    pub(crate) fn open_all_doors(&self, world: &mut World) {
        for opening in self.rooms.iter().flat_map(|room| room.openings) {
            if let Opening::Door(door) = opening
                && let Some(object) = door.object()
            {
                world.objects[object].door = DoorState::Open;
            }
        }
    }
}

/// Whether everything but walls can be reached from the agent without moving anything; doors count as open.
pub(crate) fn all_reachable(world: &World) -> bool {
    let (width, height) = (world.width, world.height);
    let index = |at: Position| at.y as usize * width as usize + at.x as usize;
    let mut reached = vec![false; world.cells.len()];
    let mut open = vec![world.agent];
    while let Some(at) = open.pop() {
        if !(0..width).contains(&at.x) || !(0..height).contains(&at.y) {
            continue;
        }
        if std::mem::replace(&mut reached[index(at)], true) {
            continue;
        }
        let kind = world.kind(world.get(at));
        if kind.is_none_or(|kind| kind == Kind::Door) {
            open.extend((0..4).map(|direction| at.towards(direction)));
        }
    }
    world
        .cells
        .iter()
        .zip(reached)
        .all(|(cell, reached)| reached || matches!(*cell, Cell::EMPTY | Cell::WALL))
}

#[cfg(test)]
mod tests {
    use spar_python::numpy_random::Generator;

    use super::*;

    #[test]
    fn what_fits_nowhere_is_given_up() {
        let mut world = World::new(3, 3, Generator::from_u64(0));
        let rooms = Rooms::build(&mut world, 3, 1, 1);
        let middle = world.agent;
        rooms.place_agent(&mut world, None).unwrap();
        let places = (0..4).map(|direction| middle.towards(direction)).chain([middle]);
        for (number, place) in places.enumerate() {
            let ball = world.add(Object::new(Kind::Ball, Color::Red));
            world.put(place, ball);
            // Balls all around are always in front of the agent; then there is no place at all.
            if number >= 3 {
                assert_eq!(rooms.place_agent(&mut world, None), Err(Rejected::Exhausted));
            }
        }
        assert_eq!(world.place_agent_anywhere(), Err(Rejected::Exhausted));
    }
}
