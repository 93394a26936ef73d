//! A solver: the fewest pushes, by A*.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::room::{Move, Room};

/// Boxes, sorted, and the first place that the player can reach.
type Key = (Vec<u16>, u16);
/// By arrangement: the pushes that it took, and the last one with the arrangement before it: from where, and which way.
type Known = HashMap<Key, (u32, Option<(Key, u16, Move)>)>;

/// Moves that put every box on a target, with the fewest pushes, looking at `max_states` arrangements at most; `None` where
/// there are none, or none were found among so many.
///
/// Arrangements are told apart by boxes and by the part of the room that the player can reach; the estimate is the sum over
/// boxes of the pushes that each needs to its nearest target in an empty room.
pub fn solve(room: &Room, max_states: usize) -> Option<Vec<Move>> {
    if room.is_solved() {
        return Some(Vec::new());
    }
    let grid = Grid::of(room);
    let boxes: Vec<u16> = (0..room.state.len() as u16)
        .filter(|at| matches!(room.state[usize::from(*at)], 3 | 4))
        .collect();
    let reach = grid.reach(&boxes, room.player);
    let start = (boxes, first(&reach));
    let mut known = Known::new();
    let mut open = BinaryHeap::new();
    let estimate = |boxes: &[u16]| -> Option<u32> {
        boxes.iter().map(|at| grid.pushes[usize::from(*at)]).sum::<Option<u32>>()
    };
    open.push(Reverse((estimate(&start.0)?, 0_u32, start.clone())));
    known.insert(start, (0, None));
    while let Some(Reverse((_, cost, key))) = open.pop() {
        if known[&key].0 < cost {
            continue;
        }
        if key.0.iter().all(|at| room.fixed[usize::from(*at)] == 2) {
            return Some(grid.spell_out(room, &known, key));
        }
        let reach = grid.reach(&key.0, usize::from(key.1));
        for (number, at) in key.0.iter().enumerate() {
            for way in Move::ALL {
                let offset = way.offset(grid.columns);
                let at = usize::from(*at);
                let (from, to) = (at.wrapping_add_signed(-offset), at.wrapping_add_signed(offset));
                let is_free = grid.pushes[to].is_some() && !key.0.contains(&(to as u16));
                if !is_free || reach[from].is_none() {
                    continue;
                }
                let mut boxes = key.0.clone();
                boxes[number] = to as u16;
                boxes.sort_unstable();
                let Some(left) = estimate(&boxes) else { continue };
                let next = (boxes.clone(), first(&grid.reach(&boxes, at)));
                let is_better = known.get(&next).is_none_or(|(known, _)| cost + 1 < *known);
                if is_better {
                    if known.len() >= max_states {
                        return None;
                    }
                    known.insert(next.clone(), (cost + 1, Some((key.clone(), at as u16, way))));
                    open.push(Reverse((cost + 1 + left, cost + 1, next)));
                }
            }
        }
    }
    None
}

/// The first place that can be reached, which names them all.
fn first(reach: &[Option<Move>]) -> u16 {
    reach.iter().position(Option::is_some).unwrap_or_default() as u16
}

struct Grid<'r> {
    columns: usize,
    fixed: &'r [u8],
    /// The pushes that a box needs from each place to its nearest target; absent where no pushes lead to one.
    pushes: Vec<Option<u32>>,
}

impl<'r> Grid<'r> {
    fn of(room: &'r Room) -> Self {
        let (columns, fixed) = (room.columns, &*room.fixed);
        let mut pushes: Vec<Option<u32>> =
            fixed.iter().map(|cell| (*cell == 2).then_some(0)).collect();
        let mut open: VecDeque<usize> = (0..fixed.len()).filter(|at| fixed[*at] == 2).collect();
        while let Some(at) = open.pop_front() {
            for way in Move::ALL {
                // A box comes from where it is pulled to, if there is room for who pulls.
                let offset = way.offset(columns);
                let from = at.wrapping_add_signed(-offset);
                if fixed[from] == 0 || pushes[from].is_some() {
                    continue;
                }
                if fixed[from.wrapping_add_signed(-offset)] != 0 {
                    pushes[from] = pushes[at].map(|pushes| pushes + 1);
                    open.push_back(from);
                }
            }
        }
        Self { columns, fixed, pushes }
    }

    /// The last move of a shortest way to each place that can be reached.
    fn reach(&self, boxes: &[u16], player: usize) -> Vec<Option<Move>> {
        let mut reach = vec![None; self.fixed.len()];
        // How one comes to where one is does not matter.
        reach[player] = Some(Move::Up);
        let mut open = VecDeque::from([player]);
        while let Some(at) = open.pop_front() {
            for way in Move::ALL {
                let to = at.wrapping_add_signed(way.offset(self.columns));
                if self.fixed[to] != 0 && reach[to].is_none() && !boxes.contains(&(to as u16)) {
                    reach[to] = Some(way);
                    open.push_back(to);
                }
            }
        }
        reach
    }

    fn spell_out(&self, room: &Room, known: &Known, end: Key) -> Vec<Move> {
        let mut pushes = Vec::new();
        let mut key = &end;
        while let Some((before, at, way)) = &known[key].1 {
            pushes.push((before, usize::from(*at), *way));
            key = before;
        }
        let mut moves = Vec::new();
        let mut player = room.player;
        for (before, at, way) in pushes.into_iter().rev() {
            let reach = self.reach(&before.0, player);
            let mut to = at.wrapping_add_signed(-way.offset(self.columns));
            let mut walk = Vec::new();
            while to != player {
                let last = reach[to].expect("pushes are made from where the player comes to");
                walk.push(last);
                to = to.wrapping_add_signed(-last.offset(self.columns));
            }
            moves.extend(walk.into_iter().rev());
            moves.push(way);
            player = at;
        }
        moves
    }
}
