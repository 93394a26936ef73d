//! An episode of a level.

use std::sync::Arc;

use spar_python::numpy_random::Generator;

use super::instruction::{Instruction, Outcome, Progress};
use super::levels::Level;
use super::object::{Cell, Color, DoorState, Kind, Position};
use super::view::View;
use super::world::{Area, World};
use super::{Action, GenerationError};

/// An episode of a level. A clone is a fork.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    level: &'static Level,
    pub(crate) world: World,
    pub(crate) goal: Goal,
    mission: Arc<str>,
    num_steps: u32,
    max_steps: u32,
}

/// What ends an episode, beside reaching the green goal or lava, and what of that is paid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Goal {
    /// Nothing else.
    Reach,
    /// Picking up one thing.
    PickUp(Cell),
    /// Picking up a thing of this kind and colour; another one is failing.
    Fetch(Kind, Color),
    /// Saying `done` beside a place; a toggle ends it as well.
    Done(Position),
    /// Coming to one place and not to another one.
    Remember { right: Position, wrong: Position },
    /// Putting what is of a kind and colour near a place, and picking up nothing else.
    PutNear { kind: Kind, color: Color, near: Position },
    /// Opening the first door, then the second.
    Doors(Cell, Cell),
    /// Opening a door.
    Unlock(Cell),
    /// Reaching the goal past what moves.
    Dodge(Vec<Cell>),
    /// What an instruction says.
    Instruction(Arc<Instruction>, Progress),
}

/// What generation makes of a level.
pub(crate) struct Made {
    pub(crate) goal: Goal,
    pub(crate) mission: Arc<str>,
    /// Of the level's own, where it is not the same in all episodes.
    pub(crate) max_steps: Option<u32>,
    /// What is carried from the first step on, though the first view shows it where it was.
    pub(crate) carrying: Option<Cell>,
}

impl Made {
    pub(crate) fn new(goal: Goal, mission: impl Into<Arc<str>>) -> Self {
        Self { goal, mission: mission.into(), max_steps: None, carrying: None }
    }
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcomes {
    /// `1 - 0.9 * steps / max_steps` for success, -1 for a collision where things move, 0 else.
    pub reward: f64,
    /// Whether the level itself has ended.
    pub terminated: bool,
    /// Whether the steps are used up.
    pub truncated: bool,
}

impl Episode {
    /// The episode of a seed, as the package makes it for `reset(seed=seed)`, with its first view.
    ///
    /// # Errors
    ///
    /// [`GenerationError`] where the package raises in place of it, or goes on drawing for ever: a room was too full for
    /// what had to stand in it.
    pub fn new(level: &'static Level, seed: u64) -> Result<(Self, View), GenerationError> {
        let (width, height) = level.size();
        let mut world = World::new(width, height, Generator::from_u64(seed));
        let made =
            level.make(&mut world).map_err(|_| GenerationError { level: level.name, seed })?;
        let max_steps = made.max_steps.unwrap_or(level.max_steps);
        let (goal, mission) = (made.goal, made.mission);
        let mut episode = Self { level, world, goal, mission, num_steps: 0, max_steps };
        let view = episode.view();
        if let Some(cell) = made.carrying {
            let place = episode.world.object(cell).map(|object| object.place);
            if let Some(place) = place {
                episode.world.set(place, Cell::EMPTY);
            }
            episode.world.carrying = cell;
        }
        Ok((episode, view))
    }

    /// The level.
    pub fn level(&self) -> &'static Level {
        self.level
    }

    /// What is to be done, in words.
    pub fn mission(&self) -> &Arc<str> {
        &self.mission
    }

    /// The grid with all that stands in it.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Steps so far.
    pub fn num_steps(&self) -> u32 {
        self.num_steps
    }

    /// Steps there may be.
    pub fn max_steps(&self) -> u32 {
        self.max_steps
    }

    /// Where the agent is: column and row from 0.
    pub fn agent(&self) -> Position {
        self.world.agent
    }

    /// Where the agent looks: 0 right, 1 down, 2 left, 3 up.
    pub fn direction(&self) -> u8 {
        self.world.direction
    }

    /// The package's three numbers of what is carried.
    pub fn carrying(&self) -> Option<[u8; 3]> {
        let carried = self.world.carrying;
        (!carried.is_empty()).then(|| self.world.code(carried))
    }

    /// What the agent sees.
    pub fn view(&self) -> View {
        View::of(&self.world, self.level.sees_through_walls())
    }

    fn success(&self) -> f64 {
        1.0 - 0.9 * (f64::from(self.num_steps) / f64::from(self.max_steps))
    }

    /// Carries out an action.
    pub fn step(&mut self, action: Action) -> Outcomes {
        let action = self.replaced(action);
        let carried = self.world.carrying;
        let fronted = self.world.get(self.world.front());
        let red_was_open = match self.goal {
            Goal::Doors(red, _) => self.world.is_open_door(red),
            _ => false,
        };
        if let Goal::Dodge(balls) = &self.goal {
            move_about(&mut self.world, balls);
        }
        let (mut reward, mut terminated) = self.act(action);
        let truncated = self.num_steps >= self.max_steps;
        let success = self.success();
        let world = &self.world;
        let mut end = |value: f64| (reward, terminated) = (value, true);
        match &mut self.goal {
            Goal::Reach => {}
            Goal::PickUp(wanted) => {
                if action == Action::PickUp && world.carrying == *wanted {
                    end(success);
                }
            }
            Goal::Fetch(kind, color) => {
                if let Some(object) = world.object(world.carrying) {
                    let is_meant = (object.kind, object.color) == (*kind, *color);
                    end(if is_meant { success } else { 0.0 });
                }
            }
            Goal::Done(place) => match action {
                Action::Done if world.agent.distance(*place) == 1 => end(success),
                Action::Toggle | Action::Done => terminated = true,
                _ => {}
            },
            Goal::Remember { right, wrong } => {
                if world.agent == *right {
                    end(success);
                } else if world.agent == *wrong {
                    end(0.0);
                }
            }
            Goal::PutNear { kind, color, near } => {
                if action == Action::PickUp
                    && let Some(object) = world.object(world.carrying)
                    && (object.kind, object.color) != (*kind, *color)
                {
                    terminated = true;
                }
                if action == Action::Drop && !carried.is_empty() {
                    let front = world.front();
                    let is_near = front.x.abs_diff(near.x) <= 1 && front.y.abs_diff(near.y) <= 1;
                    if world.get(front) == carried && is_near {
                        reward = success;
                    }
                    terminated = true;
                }
            }
            Goal::Doors(_, blue) => {
                if world.is_open_door(*blue) {
                    end(if red_was_open { success } else { 0.0 });
                }
            }
            Goal::Unlock(door) => {
                if action == Action::Toggle && world.is_open_door(*door) {
                    end(success);
                }
            }
            Goal::Dodge(_) => {
                let is_blocked = !matches!(fronted, Cell::EMPTY | Cell::GOAL);
                if action == Action::Forward && is_blocked {
                    end(-1.0);
                }
            }
            Goal::Instruction(instruction, progress) => {
                match instruction.note(progress, world, action) {
                    Outcome::Fulfilled => end(success),
                    Outcome::Failed => end(0.0),
                    Outcome::Open => {}
                }
            }
        }
        Outcomes { reward, terminated, truncated }
    }

    /// What an action means in this level.
    fn replaced(&self, action: Action) -> Action {
        match self.goal {
            Goal::Dodge(_) if action as u8 > Action::Forward as u8 => Action::Left,
            Goal::Remember { .. } if action == Action::PickUp => Action::Toggle,
            _ => action,
        }
    }

    /// What an action does in any level.
    fn act(&mut self, action: Action) -> (f64, bool) {
        self.num_steps += 1;
        let success = self.success();
        let world = &mut self.world;
        let front = world.front();
        let cell = world.get(front);
        match action {
            Action::Left => world.direction = (world.direction + 3) & 3,
            Action::Right => world.direction = (world.direction + 1) & 3,
            Action::Forward => {
                if world.can_enter(cell) {
                    world.agent = front;
                }
                return match cell {
                    Cell::GOAL => (success, true),
                    Cell::LAVA => (0.0, true),
                    _ => (0.0, false),
                };
            }
            Action::PickUp => {
                if let Some(object) = cell.object()
                    && world.objects[object].kind.is_portable()
                    && world.carrying.is_empty()
                {
                    world.carrying = cell;
                    world.objects[object].place = Position::NOWHERE;
                    world.set(front, Cell::EMPTY);
                }
            }
            Action::Drop => {
                if cell.is_empty() && !world.carrying.is_empty() {
                    let carried = std::mem::replace(&mut world.carrying, Cell::EMPTY);
                    world.put(front, carried);
                }
            }
            Action::Toggle => toggle(world, front, cell),
            Action::Done => {}
        }
        (0.0, false)
    }
}

fn toggle(world: &mut World, at: Position, cell: Cell) {
    let Some(number) = cell.object() else { return };
    let object = world.objects[number];
    match (object.kind, object.door) {
        (Kind::Door, DoorState::Locked) => {
            let carried = world.object(world.carrying);
            if carried.is_some_and(|it| (it.kind, it.color) == (Kind::Key, object.color)) {
                world.objects[number].door = DoorState::Open;
            }
        }
        (Kind::Door, DoorState::Closed) => world.objects[number].door = DoorState::Open,
        (Kind::Door, DoorState::Open) => world.objects[number].door = DoorState::Closed,
        // Its content stands where it stood, without having been put there.
        (Kind::Box, _) => world.set(at, object.inside),
        _ => {}
    }
}

/// Moves each ball to a free place around it, where one is found.
fn move_about(world: &mut World, balls: &[Cell]) {
    for ball in balls {
        let Some(old) = world.object(*ball).map(|it| it.place) else { continue };
        let area = Area::new(old.x - 1, old.y - 1, 3, 3);
        if world.place(*ball, area, Some(100), |_, _| false).is_ok() {
            world.set(old, Cell::EMPTY);
        }
    }
}
