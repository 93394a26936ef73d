//! How the levels of MiniGrid with a grid of rooms are made.

use super::baby::key_corridor;
use super::episode::{Goal, Made};
use super::levels::{Family, Level};
use super::object::{Cell, Color, Kind, Object, Position};
use super::rooms::{At, Rooms};
use super::world::{Rejected, World};

/// The colours of the ball to find, of balls in the way and of boxes: those that stand first by name.
const BALL: Color = Color::SORTED[0];
const BLOCKER: Color = Color::SORTED[1];
const BOX: Color = Color::SORTED[2];

/// Makes a level of one of the families that stand here.
pub(crate) fn make(level: &Level, world: &mut World) -> Result<Made, Rejected> {
    let build = |world: &mut World, rows, columns| Rooms::build(world, level.size, rows, columns);
    let pick_up = |world: &World, cell: Cell| {
        let object = world.object(cell).expect("what is picked up is an object");
        let mission = format!("pick up the {} {}", object.color.name(), object.kind.name());
        Made::new(Goal::PickUp(cell), mission)
    };
    match level.family {
        Family::KeyCorridor { rows } => {
            let mut rooms = build(world, rows, 3);
            let ball = key_corridor(world, &mut rooms)?;
            Ok(pick_up(world, ball))
        }
        Family::Unlock => {
            let mut rooms = build(world, 1, 2);
            let (door, _) = rooms.add_door(world, (0, 0), Some(0), None, Some(true));
            rooms.add(world, (0, 0), Some(Kind::Key), world.color(door))?;
            rooms.place_agent(world, Some((0, 0)))?;
            Ok(Made::new(Goal::Unlock(door), "open the door"))
        }
        Family::UnlockPickup | Family::BlockedUnlockPickup => {
            let mut rooms = build(world, 1, 2);
            let wanted = rooms.add(world, (1, 0), Some(Kind::Box), None)?;
            let (door, place) = rooms.add_door(world, (0, 0), Some(0), None, Some(true));
            if level.family == Family::BlockedUnlockPickup {
                let color = world.pick_color();
                let ball = world.add(Object::new(Kind::Ball, color));
                world.set(Position::new(place.x - 1, place.y), ball);
            }
            rooms.add(world, (0, 0), Some(Kind::Key), world.color(door))?;
            rooms.place_agent(world, Some((0, 0)))?;
            Ok(pick_up(world, wanted))
        }
        Family::ObstructedPair { in_box, blocked } => {
            let mut rooms = build(world, 1, 2);
            let colors = world.pick_some(&Color::SORTED, 6);
            let mut maze = Maze { world, rooms: &mut rooms, in_box, blocked };
            maze.add_locked_door((0, 0), 0, colors[0]);
            maze.add_key((0, 0), colors[0])?;
            let ball = rooms.add(world, (1, 0), Some(Kind::Ball), Some(BALL))?;
            rooms.place_agent(world, Some((0, 0)))?;
            Ok(pick_up(world, ball))
        }
        Family::Obstructed { start, in_box, blocked, quarters, keys_last, .. } => {
            let mut rooms = build(world, 3, 3);
            let colors = world.pick_some(&Color::SORTED, 6);
            let mut maze = Maze { world, rooms: &mut rooms, in_box, blocked };
            let sides = [(2, 1), (1, 2), (0, 1), (1, 0)];
            for (number, side) in sides.into_iter().take(quarters).enumerate() {
                maze.rooms.add_door(
                    maze.world,
                    (1, 1),
                    Some(number as u8),
                    Some(colors[number]),
                    Some(false),
                );
                // The doors left and right of it.
                let walls = [(number + 3) % 4, (number + 1) % 4];
                let colors = [colors[(number + 5) % 6], colors[(number + 1) % 6]];
                for (wall, color) in walls.into_iter().zip(colors) {
                    maze.add_locked_door(side, wall as u8, color);
                    if !keys_last {
                        maze.add_key(side, color)?;
                    }
                }
                if keys_last {
                    for color in colors {
                        maze.add_key(side, color)?;
                    }
                }
            }
            let corners = [(2, 0), (2, 2), (0, 2), (0, 0)];
            let corner = world.pick(&corners[..quarters]);
            let ball = rooms.add(world, corner, Some(Kind::Ball), Some(BALL))?;
            rooms.place_agent(world, Some(start))?;
            Ok(pick_up(world, ball))
        }
        _ => unreachable!("the other families stand elsewhere"),
    }
}

/// A maze of locked doors in the making.
struct Maze<'w> {
    world: &'w mut World,
    rooms: &'w mut Rooms,
    in_box: bool,
    blocked: bool,
}

impl Maze<'_> {
    /// Adds a locked door, with a ball in front of it where doors are blocked. The ball replaces what stands there.
    fn add_locked_door(&mut self, at: At, wall: u8, color: Color) {
        let (_, place) = self.rooms.add_door(self.world, at, Some(wall), Some(color), Some(true));
        if self.blocked {
            let ball = self.world.add(Object::new(Kind::Ball, BLOCKER));
            self.world.set(place.towards((wall + 2) % 4), ball);
        }
    }

    fn add_key(&mut self, at: At, color: Color) -> Result<(), Rejected> {
        let mut object = Object::new(Kind::Key, color);
        if self.in_box {
            let key = self.world.add(object);
            object = Object { inside: key, ..Object::new(Kind::Box, BOX) };
        }
        self.rooms.place(self.world, at, object)?;
        Ok(())
    }
}
