//! A maze, and what moves do.

use std::collections::VecDeque;
use std::sync::Arc;

/// Colours of keys and doors, in the order of the doors on the way.
pub(super) const COLORS: [&str; 4] = ["red", "green", "blue", "yellow"];

/// What a cell of a maze is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tile {
    Wall,
    Floor,
    Goal,
    /// With its number.
    Door(u8),
    Key(u8),
}

/// A maze with somebody in it. A clone goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maze {
    pub(super) size: usize,
    /// Row by row.
    pub(super) tiles: Arc<[Tile]>,
    pub(super) player: usize,
    /// A set of the keys that were taken.
    pub(super) keys: u8,
    /// A set of the doors that were opened.
    pub(super) opened: u8,
}

/// A way to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the next row below.
    Down,
    /// To the column left.
    Left,
    /// To the column right.
    Right,
    /// To the next row above.
    Up,
}

impl Way {
    /// All of them, sorted by word.
    pub const ALL: [Self; 4] = [Self::Down, Self::Left, Self::Right, Self::Up];

    /// It in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Left => "left",
            Self::Right => "right",
            Self::Up => "up",
        }
    }

    /// The way of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.word() == word)
    }
}

/// What came of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// There is a wall.
    Wall,
    /// There is a door, and its key was not taken.
    Locked,
    /// The player is there.
    There,
    /// The player is at the goal.
    Goal,
}

impl Maze {
    /// Rows and columns, walls included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether the player is at the goal.
    pub fn is_solved(&self) -> bool {
        self.tiles[self.player] == Tile::Goal
    }

    fn beside(&self, at: usize, way: Way) -> usize {
        // Walls are all around, so that nobody leaves the maze.
        match way {
            Way::Down => at + self.size,
            Way::Left => at - 1,
            Way::Right => at + 1,
            Way::Up => at - self.size,
        }
    }

    /// Moves the player, who takes keys and opens doors by going there.
    pub fn step(&mut self, way: Way) -> Moved {
        let to = self.beside(self.player, way);
        match self.tiles[to] {
            Tile::Wall => return Moved::Wall,
            Tile::Door(number) if self.keys >> number & 1 == 0 => return Moved::Locked,
            Tile::Door(number) => self.opened |= 1 << number,
            Tile::Key(number) => self.keys |= 1 << number,
            Tile::Floor | Tile::Goal => {}
        }
        self.player = to;
        if self.is_solved() { Moved::Goal } else { Moved::There }
    }

    /// The fewest moves to the goal: breadth first, over places and keys. Empty at the goal.
    pub fn plan(&self) -> Option<Vec<Way>> {
        let cells = self.tiles.len();
        let index = |maze: &Self| usize::from(maze.keys) * cells + maze.player;
        let mut from: Vec<Option<(usize, Way)>> = vec![None; cells * 16];
        let mut open = VecDeque::from([self.clone()]);
        let start = index(self);
        while let Some(maze) = open.pop_front() {
            let mut at = index(&maze);
            if maze.is_solved() {
                let mut ways = Vec::new();
                while at != start {
                    let (before, way) = from[at]?;
                    ways.push(way);
                    at = before;
                }
                ways.reverse();
                return Some(ways);
            }
            for way in Way::ALL {
                let mut next = maze.clone();
                let moved = next.step(way);
                let to = index(&next);
                if matches!(moved, Moved::There | Moved::Goal) && to != start && from[to].is_none()
                {
                    from[to] = Some((at, way));
                    open.push_back(next);
                }
            }
        }
        None
    }

    fn letter(&self, at: usize) -> char {
        match self.tiles[at] {
            _ if at == self.player => 'P',
            Tile::Wall => '#',
            Tile::Goal => 'G',
            Tile::Door(number) if self.opened >> number & 1 == 0 => {
                ['R', 'E', 'B', 'Y'][usize::from(number)]
            }
            Tile::Key(number) if self.keys >> number & 1 == 0 => {
                ['r', 'e', 'b', 'y'][usize::from(number)]
            }
            Tile::Door(_) | Tile::Key(_) | Tile::Floor => '.',
        }
    }

    /// The maze, a letter a cell: `#` wall, `.` floor, `P` player, `G` goal, `r`, `e`, `b` and `y` the red, green, blue and yellow keys,
    /// capitals their doors. With a `sight`, only as many rows and columns around the player; what lies outside of the maze is wall.
    pub fn draw(&self, sight: Option<usize>) -> String {
        let size = self.size as isize;
        let (row, column) =
            ((self.player / self.size) as isize, (self.player % self.size) as isize);
        let (rows, columns) = match sight.map(|sight| sight as isize) {
            None => (0..size, 0..size),
            Some(sight) => (row - sight..row + sight + 1, column - sight..column + sight + 1),
        };
        let mut text = String::new();
        for row in rows {
            if !text.is_empty() {
                text.push('\n');
            }
            for column in columns.clone() {
                let is_inside = (0..size).contains(&row) && (0..size).contains(&column);
                text.push(if is_inside {
                    self.letter((row * size + column) as usize)
                } else {
                    '#'
                });
            }
        }
        text
    }

    /// The colours of the keys that were taken.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + use<> {
        let keys = self.keys;
        COLORS
            .into_iter()
            .enumerate()
            .filter(move |(number, _)| keys >> number & 1 == 1)
            .map(|it| it.1)
    }
}
