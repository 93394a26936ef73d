//! How the levels of MiniGrid without a grid of rooms are made.

use super::episode::{Goal, Made};
use super::levels::{Family, Level};
use super::object::{Cell, Color, Kind, Object, Position};
use super::world::{Area, Rejected, World};

/// As many rows of rooms as are drawn until one has enough of them; the package draws for ever.
const MOST_DRAFTS: u32 = 10_000;

const TO_GOAL: &str = "get to the green goal square";
const PAST_LAVA: &str = "avoid the lava and get to the green goal square";
const THROUGH_OPENING: &str = "find the opening and get to the green goal square";

/// Makes a level of one of the families that stand here.
pub(crate) fn make(level: &Level, world: &mut World) -> Result<Made, Rejected> {
    let (width, height) = (world.width, world.height);
    world.wall_rectangle(0, 0, width, height);
    let corner = Position::new(width - 2, height - 2);
    Ok(match level.family {
        Family::Empty { anywhere } => {
            world.set(corner, Cell::GOAL);
            start(world, anywhere)?;
            Made::new(Goal::Reach, TO_GOAL)
        }
        Family::DistShift { row } => {
            world.set(Position::new(width - 2, 1), Cell::GOAL);
            for x in 3..width - 3 {
                world.set(Position::new(x, 1), Cell::LAVA);
                world.set(Position::new(x, row), Cell::LAVA);
            }
            start(world, false)?;
            Made::new(Goal::Reach, TO_GOAL)
        }
        Family::Crossing { count, walls } => {
            start(world, false)?;
            world.set(corner, Cell::GOAL);
            cross(world, count, if walls { Cell::WALL } else { Cell::LAVA });
            Made::new(Goal::Reach, if walls { THROUGH_OPENING } else { PAST_LAVA })
        }
        Family::DoorKey => {
            world.set(corner, Cell::GOAL);
            let wall = world.draw(2, width - 2);
            world.vertical_wall(wall, 0, height);
            let left = Area::new(0, 0, wall, height);
            world.place_agent(left, None)?;
            let row = world.draw(1, height - 2);
            let door = world.add(Object::door(Color::Yellow, true));
            world.put(Position::new(wall, row), door);
            let key = world.add(Object::new(Kind::Key, Color::Yellow));
            world.place(key, left, None, |_, _| false)?;
            Made::new(Goal::Reach, "use the key to open the door and then get to the goal")
        }
        Family::Obstacles { anywhere, count } => {
            world.set(corner, Cell::GOAL);
            start(world, anywhere)?;
            let mut balls = Vec::with_capacity(count);
            for _ in 0..count {
                let ball = world.add(Object::new(Kind::Ball, Color::Blue));
                world.place(ball, Area::ALL, Some(100), |_, _| false)?;
                balls.push(ball);
            }
            Made::new(Goal::Dodge(balls), TO_GOAL)
        }
        Family::Fetch { count } => fetch(world, count)?,
        Family::FourRooms => {
            let (w, h) = (width / 2, height / 2);
            for row in 0..2 {
                for column in 0..2 {
                    let (left, top) = (column * w, row * h);
                    if column == 0 {
                        world.vertical_wall(left + w, top, h);
                        let y = world.draw(top + 1, top + h);
                        world.set(Position::new(left + w, y), Cell::EMPTY);
                    }
                    if row == 0 {
                        world.horizontal_wall(left, top + h, w);
                        let x = world.draw(left + 1, left + w);
                        world.set(Position::new(x, top + h), Cell::EMPTY);
                    }
                }
            }
            world.place_agent_anywhere()?;
            world.place_anywhere(Cell::GOAL)?;
            Made::new(Goal::Reach, "reach the goal")
        }
        Family::GoToDoor => go_to_door(world)?,
        Family::GoToObject { count } => {
            let objects = furnish(world, count, |_, _, _| false)?;
            world.place_agent_anywhere()?;
            let (object, place) = world.pick(&objects);
            Made::new(Goal::Done(place), format!("go to the {}", named(object)))
        }
        Family::LavaGap => {
            start(world, false)?;
            world.set(corner, Cell::GOAL);
            let gap = Position::new(world.draw(2, width - 2), world.draw(1, height - 1));
            (1..height - 1).for_each(|y| world.set(Position::new(gap.x, y), Cell::LAVA));
            world.set(gap, Cell::EMPTY);
            Made::new(Goal::Reach, PAST_LAVA)
        }
        Family::LockedRoom => locked_room(world)?,
        Family::Memory { any_length } => remember(world, any_length),
        Family::MultiRoom { count, largest } => many_rooms(world, count, largest)?,
        Family::Playground => {
            playground(world)?;
            Made::new(Goal::Reach, "")
        }
        Family::PutNear { count } => {
            let near = |objects: &[(Object, Position)], at: Position| {
                objects.iter().any(|(_, it)| it.x.abs_diff(at.x) <= 1 && it.y.abs_diff(at.y) <= 1)
            };
            let objects = furnish(world, count, |_, objects, at| near(objects, at))?;
            world.place_agent_anywhere()?;
            let moved = world.draw(0, count as i8);
            let target = world.draw_other(count as i8, moved);
            let ((moved, _), (target, near)) = (objects[moved as usize], objects[target as usize]);
            let mission = format!("put the {} near the {}", named(moved), named(target));
            Made::new(Goal::PutNear { kind: moved.kind, color: moved.color, near }, mission)
        }
        Family::RedBlueDoors => {
            let (half, size) = (height / 2, height);
            world.wall_rectangle(half, 0, size, size);
            world.place_agent(Area::new(half, 0, size, size), None)?;
            let mut add = |color, x| {
                let y = world.draw(1, size - 1);
                let door = world.add(Object::door(color, false));
                world.put(Position::new(x, y), door);
                door
            };
            let doors = (add(Color::Red, half), add(Color::Blue, half + size - 1));
            Made::new(Goal::Doors(doors.0, doors.1), "open the red door then the blue door")
        }
        _ => unreachable!("the other families stand elsewhere"),
    })
}

fn named(object: Object) -> String {
    format!("{} {}", object.color.name(), object.kind.name())
}

/// Puts the agent into the upper left corner, looking right, or anywhere.
fn start(world: &mut World, anywhere: bool) -> Result<(), Rejected> {
    if anywhere {
        world.place_agent_anywhere()?;
    } else {
        (world.agent, world.direction) = (Position::new(1, 1), 0);
    }
    Ok(())
}

/// Rivers from side to side, with openings along one way to the goal.
fn cross(world: &mut World, count: usize, obstacle: Cell) {
    let (width, height) = (world.width, world.height);
    let upright = (2..height - 2).step_by(2).map(|x| (true, x));
    let mut rivers: Vec<(bool, i8)> =
        upright.chain((2..width - 2).step_by(2).map(|y| (false, y))).collect();
    world.rng.shuffle(&mut rivers);
    rivers.truncate(count);
    rivers.sort_unstable();
    let of = |is_upright: bool| -> Vec<i8> {
        rivers.iter().filter(|river| river.0 == is_upright).map(|river| river.1).collect()
    };
    let (columns, rows) = (of(true), of(false));
    for y in &rows {
        (1..width - 1).for_each(|x| world.set(Position::new(x, *y), obstacle));
    }
    for x in &columns {
        (1..height - 1).for_each(|y| world.set(Position::new(*x, y), obstacle));
    }
    let mut path = vec![false; columns.len()];
    path.resize(columns.len() + rows.len(), true);
    world.rng.shuffle(&mut path);
    let limits = |inner: &[i8], last: i8| [&[0], inner, &[last]].concat();
    let (columns, rows) = (limits(&columns, height - 1), limits(&rows, width - 1));
    let (mut column, mut row) = (0, 0);
    for is_down in path {
        let at = if is_down {
            row += 1;
            Position::new(world.draw(columns[column] + 1, columns[column + 1]), rows[row])
        } else {
            column += 1;
            Position::new(columns[column], world.draw(rows[row] + 1, rows[row + 1]))
        };
        world.set(at, Cell::EMPTY);
    }
}

/// Adds objects that differ from each other, each in a place that is not refused.
fn furnish(
    world: &mut World,
    count: usize,
    is_refused: impl Fn(&World, &[(Object, Position)], Position) -> bool,
) -> Result<Vec<(Object, Position)>, Rejected> {
    let mut objects: Vec<(Object, Position)> = Vec::with_capacity(count);
    while objects.len() < count {
        let kind = world.pick(&[Kind::Key, Kind::Ball, Kind::Box]);
        let color = world.pick_color();
        if objects.iter().any(|(it, _)| (it.kind, it.color) == (kind, color)) {
            continue;
        }
        let object = Object::new(kind, color);
        let cell = world.add(object);
        let place =
            world.place(cell, Area::ALL, None, |world, at| is_refused(world, &objects, at))?;
        objects.push((object, place));
    }
    Ok(objects)
}

fn fetch(world: &mut World, count: usize) -> Result<Made, Rejected> {
    let mut objects = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = world.pick(&[Kind::Key, Kind::Ball]);
        let object = Object::new(kind, world.pick_color());
        let cell = world.add(object);
        world.place_anywhere(cell)?;
        objects.push(object);
    }
    world.place_agent_anywhere()?;
    let target = world.pick(&objects);
    let words = ["get a", "go get a", "fetch a", "go fetch a", "you must fetch a"];
    let mission = format!("{} {}", world.pick(&words), named(target));
    Ok(Made::new(Goal::Fetch(target.kind, target.color), mission))
}

fn go_to_door(world: &mut World) -> Result<Made, Rejected> {
    let (most_width, most_height) = (world.width, world.height);
    // The room may be smaller than the grid.
    world.clear();
    let (width, height) = (world.draw(5, most_width + 1), world.draw(5, most_height + 1));
    world.wall_rectangle(0, 0, width, height);
    let places = [
        Position::new(world.draw(2, width - 2), 0),
        Position::new(world.draw(2, width - 2), height - 1),
        Position::new(0, world.draw(2, height - 2)),
        Position::new(width - 1, world.draw(2, height - 2)),
    ];
    let mut colors = Vec::with_capacity(4);
    while colors.len() < 4 {
        let color = world.pick_color();
        if !colors.contains(&color) {
            colors.push(color);
        }
    }
    for (place, color) in places.iter().zip(&colors) {
        let door = world.add(Object::door(*color, false));
        world.put(*place, door);
    }
    world.place_agent(Area::new(0, 0, width, height), None)?;
    let target = world.draw(0, 4) as usize;
    Ok(Made::new(Goal::Done(places[target]), format!("go to the {} door", colors[target].name())))
}

fn locked_room(world: &mut World) -> Result<Made, Rejected> {
    let (width, height) = (world.width, world.height);
    let (left, right) = (width / 2 - 2, width / 2 + 2);
    world.vertical_wall(left, 0, height);
    world.vertical_wall(right, 0, height);
    let mut rooms: Vec<(Position, Position)> = Vec::with_capacity(6);
    for row in 0..3 {
        let y = row * (height / 3);
        world.horizontal_wall(0, y, left);
        world.horizontal_wall(right, y, width - right);
        rooms.push((Position::new(0, y), Position::new(left, y + 3)));
        rooms.push((Position::new(right, y), Position::new(right, y + 3)));
    }
    let (room_width, room_height) = (left + 1, height / 3 + 1);
    let inside = |world: &mut World, top: Position| {
        let x = world.draw(top.x + 1, top.x + room_width - 1);
        Position::new(x, world.draw(top.y + 1, top.y + room_height - 1))
    };
    let locked = world.draw(0, 6);
    let goal = inside(world, rooms[locked as usize].0);
    world.set(goal, Cell::GOAL);
    let mut left_over = Color::SORTED.to_vec();
    let mut colors = Vec::with_capacity(6);
    for (number, (_, door)) in (0_i8..).zip(&rooms) {
        let color = left_over.remove(world.rng.up_to(left_over.len() as u64 - 1) as usize);
        let cell = world.add(Object::door(color, number == locked));
        world.put(*door, cell);
        colors.push(color);
    }
    let with_key = world.draw_other(6, locked) as usize;
    let locked = locked as usize;
    let place = inside(world, rooms[with_key].0);
    let key = world.add(Object::new(Kind::Key, colors[locked]));
    world.put(place, key);
    world.place_agent(Area::new(left, 0, right - left, height), None)?;
    let (color, room) = (colors[locked].name(), colors[with_key].name());
    let mission = format!(
        "get the {color} key from the {room} room, unlock the {color} door and go to the goal"
    );
    Ok(Made::new(Goal::Reach, mission))
}

fn remember(world: &mut World, any_length: bool) -> Made {
    let (width, height) = (world.width, world.height);
    let middle = height / 2;
    let end = if any_length { world.draw(4, width - 2) } else { width - 3 };
    for x in 1..5 {
        world.set(Position::new(x, middle - 2), Cell::WALL);
        world.set(Position::new(x, middle + 2), Cell::WALL);
    }
    for x in 4..end.max(5) {
        world.set(Position::new(x, middle - 1), Cell::WALL);
        world.set(Position::new(x, middle + 1), Cell::WALL);
    }
    for y in 0..height {
        if y != middle {
            world.set(Position::new(end, y), Cell::WALL);
        }
        world.set(Position::new(end + 2, y), Cell::WALL);
    }
    world.agent = Position::new(world.draw(1, end + 1), middle);
    world.direction = 0;
    let first = world.pick(&[Kind::Key, Kind::Ball]);
    let others = world.pick(&[[Kind::Ball, Kind::Key], [Kind::Key, Kind::Ball]]);
    let (upper, lower) = (Position::new(end + 1, middle - 2), Position::new(end + 1, middle + 2));
    for (kind, at) in
        [(first, Position::new(1, middle - 1)), (others[0], upper), (others[1], lower)]
    {
        let cell = world.add(Object::new(kind, Color::Green));
        world.put(at, cell);
    }
    let (above, below) = (Position::new(end + 1, middle - 1), Position::new(end + 1, middle + 1));
    let (right, wrong) = if first == others[0] { (above, below) } else { (below, above) };
    let mission = "go to the matching object at the end of the hallway";
    Made::new(Goal::Remember { right, wrong }, mission)
}

/// A room of a row of rooms.
#[derive(Debug, Clone, Copy)]
struct Link {
    top: Position,
    width: i8,
    height: i8,
    entry: Position,
}

fn many_rooms(world: &mut World, count: i8, largest: i8) -> Result<Made, Rejected> {
    let width = world.width;
    world.clear();
    let mut rooms: Vec<Link> = Vec::new();
    let mut drafts = 0;
    while rooms.len() < count as usize {
        if drafts == MOST_DRAFTS {
            return Err(Rejected::Exhausted);
        }
        drafts += 1;
        let mut tried = Vec::new();
        let entry = Position::new(world.draw(0, width - 2), world.draw(0, width - 2));
        add_room(world, count, &mut tried, largest, 2, entry);
        if tried.len() > rooms.len() {
            rooms = tried;
        }
    }
    let mut last = None;
    for (number, room) in rooms.iter().enumerate() {
        world.wall_rectangle(room.top.x, room.top.y, room.width, room.height);
        if number > 0 {
            let colors: Vec<Color> =
                Color::SORTED.into_iter().filter(|color| Some(*color) != last).collect();
            let color = world.pick(&colors);
            let door = world.add(Object::door(color, false));
            world.put(room.entry, door);
            last = Some(color);
        }
    }
    let area = |room: &Link| Area::new(room.top.x, room.top.y, room.width, room.height);
    world.place_agent(area(&rooms[0]), None)?;
    world.place(Cell::GOAL, area(&rooms[rooms.len() - 1]), None, |_, _| false)?;
    Ok(Made::new(Goal::Reach, "traverse the rooms to get to the goal"))
}

/// Adds a room behind a door, and as many behind it as fit; whether there was a place for the first.
fn add_room(
    world: &mut World,
    left: i8,
    rooms: &mut Vec<Link>,
    largest: i8,
    wall: u8,
    entry: Position,
) -> bool {
    let (width, height) = (world.draw(4, largest + 1), world.draw(4, largest + 1));
    let Position { x, y } = entry;
    let top = match (rooms.is_empty(), wall) {
        (true, _) => entry,
        (_, 0) => Position::new(x - width + 1, world.draw(y - height + 2, y)),
        (_, 1) => Position::new(world.draw(x - width + 2, x), y - height + 1),
        (_, 2) => Position::new(x, world.draw(y - height + 2, y)),
        _ => Position::new(world.draw(x - width + 2, x), y),
    };
    let is_inside =
        top.x >= 0 && top.y >= 0 && top.x + width <= world.width && top.y + height < world.height;
    let before = &rooms[..rooms.len().saturating_sub(1)];
    let is_apart = |room: &Link| {
        top.x + width < room.top.x
            || room.top.x + room.width <= top.x
            || top.y + height < room.top.y
            || room.top.y + room.height <= top.y
    };
    if !is_inside || !before.iter().all(is_apart) {
        return false;
    }
    rooms.push(Link { top, width, height, entry });
    if left == 1 {
        return true;
    }
    for _ in 0..8 {
        let walls: Vec<u8> = (0..4).filter(|it| *it != wall).collect();
        let exit = world.pick(&walls);
        let door = match exit {
            0 => Position::new(top.x + width - 1, top.y + world.draw(1, height - 1)),
            1 => Position::new(top.x + world.draw(1, width - 1), top.y + height - 1),
            2 => Position::new(top.x, top.y + world.draw(1, height - 1)),
            _ => Position::new(top.x + world.draw(1, width - 1), top.y),
        };
        if add_room(world, left - 1, rooms, largest, (exit + 2) % 4, door) {
            break;
        }
    }
    true
}

fn playground(world: &mut World) -> Result<(), Rejected> {
    let (w, h) = (world.width / 3, world.height / 3);
    for row in 0..3 {
        for column in 0..3 {
            let (left, top) = (column * w, row * h);
            let door = |world: &mut World, at: Position| {
                let color = world.pick_color();
                let cell = world.add(Object::door(color, false));
                world.put(at, cell);
            };
            if column < 2 {
                world.vertical_wall(left + w, top, h);
                let y = world.draw(top + 1, top + h - 1);
                door(world, Position::new(left + w, y));
            }
            if row < 2 {
                world.horizontal_wall(left, top + h, w);
                let x = world.draw(left + 1, left + w - 1);
                door(world, Position::new(x, top + h));
            }
        }
    }
    world.place_agent_anywhere()?;
    for _ in 0..12 {
        let kind = world.pick(&[Kind::Key, Kind::Ball, Kind::Box]);
        let object = Object::new(kind, world.pick_color());
        let cell = world.add(object);
        world.place_anywhere(cell)?;
    }
    Ok(())
}
