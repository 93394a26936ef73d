//! A room with its boxes, and what moves do.

/// Whose rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Of `gym-sokoban`: every step costs 0.1, a box on a target earns 1, off it costs 1, and the last one earns 10 more.
    Gym,
    /// Of TextArena: what cannot be moved to is no move, and a solved room earns 1.
    TextArena,
}

/// A move, which pushes a box that stands in its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// A row up.
    Up,
    /// A row down.
    Down,
    /// A column left.
    Left,
    /// A column right.
    Right,
}

impl Move {
    /// All of them, in the order of both packages.
    pub const ALL: [Self; 4] = [Self::Up, Self::Down, Self::Left, Self::Right];

    /// It in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Left => "left",
            Self::Right => "right",
        }
    }

    /// The move of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// How far it goes in a room of so many columns, as a number of cells.
    pub(super) fn offset(self, columns: usize) -> isize {
        match self {
            Self::Up => -(columns as isize),
            Self::Down => columns as isize,
            Self::Left => -1,
            Self::Right => 1,
        }
    }
}

/// A room with its boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// What never changes: 0 walls, 1 floor, 2 targets; row by row.
    pub(super) fixed: std::sync::Arc<[u8]>,
    /// What stands there: 0 walls, 1 floor, 2 empty targets, 3 boxes on targets, 4 other boxes, 5 the player.
    pub(super) state: Vec<u8>,
    pub(super) player: usize,
}

/// What came of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Whether the player went anywhere.
    pub moved: bool,
    /// Whether a box was pushed.
    pub pushed: bool,
}

impl Room {
    /// A room of what never changes and what stands there, numbered as both packages do, row by row.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(
        rows: usize,
        columns: usize,
        fixed: Vec<u8>,
        state: Vec<u8>,
    ) -> Result<Self, String> {
        let cells = rows * columns;
        if fixed.len() != cells || state.len() != cells || cells == 0 {
            return Err(format!(
                "{} and {} cells, {rows} by {columns} are due",
                fixed.len(),
                state.len()
            ));
        }
        let is_border = |at: usize| {
            let (row, column) = (at / columns, at % columns);
            row == 0 || column == 0 || row == rows - 1 || column == columns - 1
        };
        if (0..cells).any(|at| is_border(at) && fixed[at] != 0) {
            return Err("it is open at the border".to_owned());
        }
        if (0..cells)
            .any(|at| (fixed[at] == 0) != (state[at] == 0) || state[at] > 5 || fixed[at] > 2)
        {
            return Err("walls differ, or a number is unknown".to_owned());
        }
        match state.iter().position(|cell| *cell == 5) {
            Some(player) if state[player + 1..].iter().all(|cell| *cell != 5) => {
                Ok(Self { rows, columns, fixed: fixed.into(), state, player })
            }
            _ => Err("there has to be one player".to_owned()),
        }
    }

    /// Rows and columns, walls included.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// What never changes, row by row: 0 walls, 1 floor, 2 targets.
    pub fn fixed(&self) -> &[u8] {
        &self.fixed
    }

    /// What stands there, row by row: 0 walls, 1 floor, 2 empty targets, 3 boxes on targets, 4 other boxes, 5 the player.
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// Boxes in it.
    pub fn num_boxes(&self) -> usize {
        self.state.iter().filter(|cell| matches!(cell, 3 | 4)).count()
    }

    /// Boxes on targets.
    pub fn num_on_target(&self) -> usize {
        self.state.iter().filter(|cell| **cell == 3).count()
    }

    /// Whether every box is on a target.
    pub fn is_solved(&self) -> bool {
        !self.state.contains(&4)
    }

    /// Whether a move leads anywhere.
    pub fn can(&self, way: Move) -> bool {
        let offset = way.offset(self.columns);
        let next = self.player.wrapping_add_signed(offset);
        match self.state[next] {
            1 | 2 => true,
            3 | 4 => matches!(self.state[next.wrapping_add_signed(offset)], 1 | 2),
            _ => false,
        }
    }

    /// Moves the player, and a box before it.
    pub fn step(&mut self, way: Move) -> Moved {
        if !self.can(way) {
            return Moved { moved: false, pushed: false };
        }
        let offset = way.offset(self.columns);
        let next = self.player.wrapping_add_signed(offset);
        let pushed = self.state[next] > 2;
        if pushed {
            let beyond = next.wrapping_add_signed(offset);
            self.state[beyond] = if self.fixed[beyond] == 2 { 3 } else { 4 };
        }
        self.state[self.player] = self.fixed[self.player];
        self.state[next] = 5;
        self.player = next;
        Moved { moved: true, pushed }
    }

    /// The room as TextArena draws it: `#` wall, `_` floor, `O` empty target, `√` box on a target, `X` other box, `P` player; where
    /// that is asked, `S` for a player on a target, as RAGEN has it.
    pub fn draw(&self, marks_player: bool) -> String {
        let mut text = String::with_capacity(self.state.len() * 2);
        for (at, cell) in self.state.iter().enumerate() {
            if at > 0 {
                text.push(if at % self.columns == 0 { '\n' } else { ' ' });
            }
            text.push(match cell {
                0 => '#',
                1 => '_',
                2 => 'O',
                3 => '√',
                4 => 'X',
                _ if marks_player && self.fixed[at] == 2 => 'S',
                _ => 'P',
            });
        }
        text
    }
}
