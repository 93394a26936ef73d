//! A grid with what stands in it, an agent, and the numbers it draws.

use spar_python::numpy_random::Generator;

use super::object::{Cell, Color, DoorState, Kind, Object, Position};

/// As many tries as a place may take where the package tries for ever; a level that has a free place finds it long before.
const MOST_TRIES: u32 = 1_000_000;

/// A grid with what stands in it, an agent, and the numbers it draws.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    pub(crate) width: i8,
    pub(crate) height: i8,
    /// Row by row.
    pub(crate) cells: Vec<Cell>,
    pub(crate) objects: Vec<Object>,
    pub(crate) agent: Position,
    /// Right, down, left, up.
    pub(crate) direction: u8,
    pub(crate) carrying: Cell,
    pub(crate) rng: Generator,
}

/// Why a level could not be made from what was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// What was drawn did not fit in as many tries as there are.
    Exhausted,
    /// The level is not as it has to be.
    Unfit,
}

impl World {
    pub(crate) fn new(width: i8, height: i8, rng: Generator) -> Self {
        let mut world = Self {
            width,
            height,
            cells: Vec::new(),
            objects: Vec::new(),
            agent: Position::NOWHERE,
            direction: 0,
            carrying: Cell::EMPTY,
            rng,
        };
        world.clear();
        world
    }

    /// Takes everything out of it; its generator goes on.
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.cells.resize(self.width as usize * self.height as usize, Cell::EMPTY);
        self.objects.clear();
    }

    /// What stands at a place; outside of the grid a wall.
    pub fn get(&self, at: Position) -> Cell {
        if at.x < 0 || at.y < 0 || at.x >= self.width || at.y >= self.height {
            return Cell::WALL;
        }
        self.cells[at.y as usize * self.width as usize + at.x as usize]
    }

    /// Puts something at a place inside of the grid.
    pub(crate) fn set(&mut self, at: Position, cell: Cell) {
        let width = self.width as usize;
        self.cells[at.y as usize * width + at.x as usize] = cell;
    }

    /// The object in a cell, where it is one.
    pub fn object(&self, cell: Cell) -> Option<&Object> {
        self.objects.get(cell.object()?)
    }

    /// What kind of thing a cell holds.
    pub fn kind(&self, cell: Cell) -> Option<Kind> {
        match cell {
            Cell::EMPTY => None,
            Cell::WALL => Some(Kind::Wall),
            Cell::GOAL => Some(Kind::Goal),
            Cell::LAVA => Some(Kind::Lava),
            cell => self.object(cell).map(|object| object.kind),
        }
    }

    /// Of what colour the thing in a cell is.
    pub fn color(&self, cell: Cell) -> Option<Color> {
        match cell {
            Cell::EMPTY => None,
            Cell::WALL => Some(Color::Grey),
            Cell::GOAL => Some(Color::Green),
            Cell::LAVA => Some(Color::Red),
            cell => self.object(cell).map(|object| object.color),
        }
    }

    /// The package's three numbers of what a cell holds: kind, colour, state.
    pub fn code(&self, cell: Cell) -> [u8; 3] {
        match cell {
            Cell::EMPTY => [1, 0, 0],
            Cell::WALL => [2, 5, 0],
            Cell::GOAL => [8, 1, 0],
            Cell::LAVA => [9, 0, 0],
            cell => match self.object(cell) {
                Some(it) => [it.kind as u8, it.color as u8, it.door as u8],
                None => [1, 0, 0],
            },
        }
    }

    /// Whether an agent can go onto a cell.
    pub(crate) fn can_enter(&self, cell: Cell) -> bool {
        match cell {
            Cell::EMPTY | Cell::GOAL | Cell::LAVA => true,
            Cell::WALL => false,
            cell => self.is_open_door(cell),
        }
    }

    /// Whether an agent can see past a cell.
    pub(crate) fn is_clear(&self, cell: Cell) -> bool {
        match cell {
            Cell::EMPTY | Cell::GOAL | Cell::LAVA => true,
            Cell::WALL => false,
            cell => self.object(cell).is_none_or(|it| it.door == DoorState::Open),
        }
    }

    pub(crate) fn is_open_door(&self, cell: Cell) -> bool {
        self.object(cell).is_some_and(|it| it.kind == Kind::Door && it.door == DoorState::Open)
    }

    /// The cell in front of the agent.
    pub fn front(&self) -> Position {
        self.agent.towards(self.direction)
    }

    /// Adds an object that stands nowhere yet.
    pub(crate) fn add(&mut self, object: Object) -> Cell {
        let number = Cell::FIXED as usize + self.objects.len();
        assert!(number < Cell::MOST, "a level has fewer than 60 objects");
        self.objects.push(object);
        Cell(number as u8)
    }

    /// Puts an object at a place, and notes that it is there.
    pub(crate) fn put(&mut self, at: Position, cell: Cell) {
        self.set(at, cell);
        if let Some(object) = cell.object() {
            self.objects[object].place = at;
        }
    }

    pub(crate) fn horizontal_wall(&mut self, x: i8, y: i8, length: i8) {
        (0..length).for_each(|i| self.set(Position::new(x + i, y), Cell::WALL));
    }

    pub(crate) fn vertical_wall(&mut self, x: i8, y: i8, length: i8) {
        (0..length).for_each(|j| self.set(Position::new(x, y + j), Cell::WALL));
    }

    pub(crate) fn wall_rectangle(&mut self, x: i8, y: i8, width: i8, height: i8) {
        self.horizontal_wall(x, y, width);
        self.horizontal_wall(x, y + height - 1, width);
        self.vertical_wall(x, y, height);
        self.vertical_wall(x + width - 1, y, height);
    }

    /// A number from `low` to below `high`, which lies above it.
    pub(crate) fn draw(&mut self, low: i8, high: i8) -> i8 {
        debug_assert!(low < high, "{low} to {high}");
        let span = (i16::from(high) - i16::from(low) - 1).max(0) as u64;
        low + self.rng.up_to(span) as i8
    }

    /// A number from 0 to below `high` that is not `other`.
    pub(crate) fn draw_other(&mut self, high: i8, other: i8) -> i8 {
        assert!(high > 1, "levels have another one to draw");
        loop {
            let drawn = self.draw(0, high);
            if drawn != other {
                return drawn;
            }
        }
    }

    /// Heads or tails.
    pub(crate) fn draw_bool(&mut self) -> bool {
        self.rng.up_to(1) == 0
    }

    /// One of a list.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.up_to(of.len() as u64 - 1) as usize]
    }

    /// A colour.
    pub(crate) fn pick_color(&mut self) -> Color {
        self.pick(&Color::SORTED)
    }

    /// Some of a list, in the order in which they were drawn.
    pub(crate) fn pick_some<T: Copy>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut left = of.to_vec();
        (0..count).map(|_| left.remove(self.rng.up_to(left.len() as u64 - 1) as usize)).collect()
    }

    /// Finds a free place in a rectangle, by drawing places until one is free, and puts something there. Without
    /// `max_tries` the package has no limit.
    pub(crate) fn place(
        &mut self,
        cell: Cell,
        area: Area,
        max_tries: Option<u32>,
        is_refused: impl Fn(&Self, Position) -> bool,
    ) -> Result<Position, Rejected> {
        let area = area.within(self);
        for _ in 0..=max_tries.unwrap_or(MOST_TRIES) {
            let x = self.draw(area.left, area.right);
            let y = self.draw(area.top, area.bottom);
            let at = Position::new(x, y);
            if self.get(at).is_empty() && at != self.agent && !is_refused(self, at) {
                self.put(at, cell);
                return Ok(at);
            }
        }
        Err(Rejected::Exhausted)
    }

    /// Places something anywhere.
    pub(crate) fn place_anywhere(&mut self, cell: Cell) -> Result<Position, Rejected> {
        self.place(cell, Area::ALL, None, |_, _| false)
    }

    /// Places the agent in a rectangle, looking anywhere.
    pub(crate) fn place_agent(
        &mut self,
        area: Area,
        max_tries: Option<u32>,
    ) -> Result<(), Rejected> {
        self.agent = Position::NOWHERE;
        self.agent = self.place(Cell::EMPTY, area, max_tries, |_, _| false)?;
        self.direction = self.draw(0, 4) as u8;
        Ok(())
    }

    /// Places the agent anywhere.
    pub(crate) fn place_agent_anywhere(&mut self) -> Result<(), Rejected> {
        self.place_agent(Area::ALL, None)
    }
}

/// A rectangle; right and bottom lie outside of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    left: i8,
    top: i8,
    right: i8,
    bottom: i8,
}

impl Area {
    pub(crate) const ALL: Self = Self { left: 0, top: 0, right: i8::MAX, bottom: i8::MAX };

    /// By the upper left corner and the size; a corner outside of the grid is moved into it, which the size is counted
    /// from.
    pub(crate) fn new(left: i8, top: i8, width: i8, height: i8) -> Self {
        let (left, top) = (left.max(0), top.max(0));
        Self { left, top, right: left + width, bottom: top + height }
    }

    fn within(self, world: &World) -> Self {
        let (right, bottom) = (self.right.min(world.width), self.bottom.min(world.height));
        Self { right, bottom, ..self }
    }
}
