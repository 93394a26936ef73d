//! The board, and what every position is worth.

use std::sync::OnceLock;

/// Positions of nine cells with three states each.
const POSITIONS: usize = 19_683;

const LINES: [[usize; 3]; 8] =
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];

/// Nine cells, row by row: nobody's, or that of player 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    cells: [Option<u8>; 9],
}

impl Position {
    pub(super) fn free(self) -> impl Iterator<Item = usize> {
        (0..9).filter(move |cell| self.cells[*cell].is_none())
    }

    pub(super) fn is_free(self, cell: usize) -> bool {
        self.cells.get(cell).is_some_and(Option::is_none)
    }

    pub(super) fn owner(self, cell: usize) -> Option<u8> {
        self.cells[cell]
    }

    /// The position after a player has taken a cell.
    #[must_use]
    pub(super) fn with(mut self, cell: usize, player: u8) -> Self {
        self.cells[cell] = Some(player);
        self
    }

    /// Who has three in a row.
    pub(super) fn winner(self) -> Option<u8> {
        LINES.iter().find_map(|&[a, b, c]| {
            let owner = self.cells[a]?;
            (self.cells[b] == Some(owner) && self.cells[c] == Some(owner)).then_some(owner)
        })
    }

    pub(super) fn is_over(self) -> bool {
        self.winner().is_some() || self.free().next().is_none()
    }

    /// The best cells for the player who is to move: those of the highest value by perfect play of both.
    pub(super) fn best(self, player: u8) -> Vec<usize> {
        let value = |cell: &usize| -value_for(self.with(*cell, player), 1 - player);
        let best = self.free().map(|cell| value(&cell)).max();
        self.free().filter(|cell| Some(value(cell)) == best).collect()
    }

    /// The cells that complete a row of a player.
    pub(super) fn completing(self, player: u8) -> Vec<usize> {
        self.free().filter(|cell| self.with(*cell, player).winner() == Some(player)).collect()
    }

    fn number(self) -> usize {
        let digit = |cell: &Option<u8>| cell.map_or(0, |player| usize::from(player) + 1);
        self.cells.iter().fold(0, |number, cell| 3 * number + digit(cell))
    }
}

/// What a position is worth to the player who is to move, by minimax: positive where it wins, negative where it loses, 0
/// where the game is drawn; a win that comes earlier is worth more.
fn value_for(position: Position, player: u8) -> i8 {
    static VALUES: [OnceLock<Box<[i8]>>; 2] = [OnceLock::new(), OnceLock::new()];
    let values = VALUES[usize::from(player)].get_or_init(|| {
        let mut known = vec![[None; 2]; POSITIONS];
        // All that can follow from the empty board, whoever begins.
        solve(Position::default(), 0, &mut known);
        solve(Position::default(), 1, &mut known);
        known.iter().map(|of| of[usize::from(player)].unwrap_or(0)).collect()
    });
    values[position.number()]
}

fn solve(position: Position, player: u8, known: &mut [[Option<i8>; 2]]) -> i8 {
    let (number, column) = (position.number(), usize::from(player));
    if let Some(value) = known[number][column] {
        return value;
    }
    let value = match position.winner() {
        Some(winner) => {
            let left = 1 + i8::try_from(position.free().count()).expect("at most nine");
            if winner == player { left } else { -left }
        }
        None => {
            let after = |cell| -solve(position.with(cell, player), 1 - player, known);
            position.free().map(after).max().unwrap_or(0)
        }
    };
    known[number][column] = Some(value);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfect_play_draws_and_no_other_play_beats_it() {
        assert_eq!(value_for(Position::default(), 0), 0);
        // Whatever the other does, the perfect player does not lose.
        fn never_loses(position: Position, to_move: u8, perfect: u8) -> usize {
            if position.is_over() {
                assert_ne!(position.winner(), Some(1 - perfect), "{position:?}");
                return 1;
            }
            let cells = match to_move == perfect {
                true => position.best(to_move),
                false => position.free().collect(),
            };
            cells
                .iter()
                .map(|cell| never_loses(position.with(*cell, to_move), 1 - to_move, perfect))
                .sum()
        }
        for perfect in [0, 1] {
            assert!(never_loses(Position::default(), 0, perfect) > 100);
        }
    }

    #[test]
    fn a_win_is_taken_at_once_and_a_row_is_stopped() {
        // x x .    player 0 completes the row; player 1 has to stop it.
        let open = Position::default().with(0, 0).with(1, 0).with(3, 1).with(4, 1);
        assert_eq!(open.best(0), [2]);
        assert_eq!((open.completing(0), open.completing(1)), (vec![2], vec![5]));
        assert_eq!(open.with(8, 0).best(1), [5]);
    }
}
