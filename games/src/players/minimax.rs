//! Alpha-beta search over copies of a game.

use std::collections::HashMap;

use spar_core::Seed;

use super::{Lots, imagined};
use crate::Game;

/// Draws of what cannot be seen, over which worths are averaged.
const DRAWS: u64 = 12;
/// Situations that are looked at for a move, at the most; deeper ones are judged where they stand.
const MAX_NODES: u32 = 400_000;

/// A worth as alpha-beta search knows it.
#[derive(Debug, Clone, Copy)]
enum Known {
    Exact(f64),
    AtLeast(f64),
    AtMost(f64),
}

struct Search {
    player: usize,
    nodes: u32,
    /// By situation and the moves that are looked ahead from there.
    known: HashMap<(u128, u32), Known>,
}

/// The move that is best on average; the first of equal ones.
pub(super) fn choose(game: &Game, player: usize, depth: Option<u32>, seed: Seed) -> Option<String> {
    let moves = game.legal()?;
    let depth = depth.unwrap_or_else(|| game.search_depth());
    let mut worths = vec![0.0; moves.len()];
    // Where a key tells all, nothing is hidden.
    let draws = if game.key().is_some() { 1 } else { DRAWS };
    let mut lots = Lots::new(seed);
    for _ in 0..draws {
        let mut drawn = imagined(game);
        drawn.determinize(player, &mut |bound| lots.below(bound));
        let mut search = Search { player, nodes: MAX_NODES / draws as u32, known: HashMap::new() };
        let mut alpha = f64::NEG_INFINITY;
        for (action, worth) in moves.iter().zip(&mut worths) {
            let mut next = drawn.clone();
            if next.act(action).is_err() {
                continue;
            }
            next.silence();
            // Averages need exact worths; of one draw the best is enough.
            let bound = if draws == 1 { alpha } else { f64::NEG_INFINITY };
            let found = search.worth(&next, depth.saturating_sub(1), bound, f64::INFINITY);
            alpha = alpha.max(found);
            *worth += found;
        }
    }
    let mut best = 0;
    for (at, worth) in worths.iter().enumerate() {
        if *worth > worths[best] {
            best = at;
        }
    }
    moves.into_iter().nth(best)
}

impl Search {
    fn worth(&mut self, game: &Game, depth: u32, mut alpha: f64, mut beta: f64) -> f64 {
        let Some(mover) = game.to_move() else { return game.judge(self.player) };
        let moves = match game.legal() {
            Some(moves) if depth > 0 && self.nodes > 0 && !moves.is_empty() => moves,
            _ => return game.judge(self.player),
        };
        self.nodes -= 1;
        let key = game.key().map(|key| (key, depth));
        if let Some(known) = key.and_then(|key| self.known.get(&key)) {
            match *known {
                Known::Exact(worth) => return worth,
                Known::AtLeast(worth) => alpha = alpha.max(worth),
                Known::AtMost(worth) => beta = beta.min(worth),
            }
            if alpha >= beta {
                return if let Known::AtLeast(worth) = *known { worth } else { beta };
            }
        }
        let is_own = mover == self.player;
        let (low, high) = (alpha, beta);
        let mut best = if is_own { f64::NEG_INFINITY } else { f64::INFINITY };
        for action in moves {
            let mut next = game.clone();
            if next.act(&action).is_err() {
                continue;
            }
            next.silence();
            // A little less for every move, so that sooner is better for who wins.
            let worth = 0.999 * self.worth(&next, depth - 1, alpha, beta);
            if is_own {
                best = best.max(worth);
                alpha = alpha.max(best);
            } else {
                best = best.min(worth);
                beta = beta.min(best);
            }
            if alpha >= beta {
                break;
            }
        }
        if let Some(key) = key.filter(|_| self.nodes > 0) {
            let known = if best <= low {
                Known::AtMost(best)
            } else if best >= high {
                Known::AtLeast(best)
            } else {
                Known::Exact(best)
            };
            self.known.insert(key, known);
        }
        best
    }
}
