//! Monte Carlo tree search over copies of a game.

use spar_core::Seed;

use super::{Lots, imagined};
use crate::Game;

/// Weight of the bound's width, for worths from -1 to 1.
const EXPLORATION: f64 = 1.0;
/// Moves behind which a game that is played by chance is judged where it stands.
const MAX_MOVES: u32 = 200;

/// What is known of a move.
struct Node {
    action: String,
    /// Who makes it.
    player: usize,
    visits: f64,
    /// Times that it could be made when its parent was passed.
    offered: f64,
    /// Sum of what it brought who makes it.
    sum: f64,
    children: Vec<usize>,
}

struct Tree {
    nodes: Vec<Node>,
}

/// The move that was tried most often; the first of equal ones.
pub(super) fn choose(game: &Game, player: usize, iterations: u32, seed: Seed) -> Option<String> {
    let moves = game.legal()?;
    if moves.len() <= 1 {
        return moves.into_iter().next();
    }
    let root = Node {
        action: String::new(),
        player,
        visits: 0.0,
        offered: 1.0,
        sum: 0.0,
        children: Vec::new(),
    };
    let mut tree = Tree { nodes: vec![root] };
    let mut lots = Lots::new(seed);
    let origin = imagined(game);
    for _ in 0..iterations {
        let mut drawn = origin.clone();
        drawn.determinize(player, &mut |bound| lots.below(bound));
        tree.grow(drawn, &mut lots);
    }
    let children = &tree.nodes[0].children;
    let mut best = *children.first()?;
    for child in children {
        if tree.nodes[*child].visits > tree.nodes[best].visits {
            best = *child;
        }
    }
    Some(std::mem::take(&mut tree.nodes[best].action))
}

impl Tree {
    /// One game: down the tree by the bounds, one new move, then by chance to the end.
    fn grow(&mut self, mut game: Game, lots: &mut Lots) {
        let (mut at, mut path) = (0, vec![0]);
        while let Some(player) = game.to_move() {
            let Some(moves) = game.legal().filter(|moves| !moves.is_empty()) else { break };
            let known: Vec<Option<usize>> = moves
                .iter()
                .map(|action| {
                    let mut children = self.nodes[at].children.iter();
                    children.find(|child| self.nodes[**child].action == *action).copied()
                })
                .collect();
            let untried: Vec<usize> =
                (0..moves.len()).filter(|number| known[*number].is_none()).collect();
            if !untried.is_empty() {
                let action = &moves[untried[lots.below(untried.len() as u64) as usize]];
                known.into_iter().flatten().for_each(|child| self.nodes[child].offered += 1.0);
                let child = self.nodes.len();
                self.nodes.push(Node {
                    action: action.clone(),
                    player,
                    visits: 0.0,
                    offered: 1.0,
                    sum: 0.0,
                    children: Vec::new(),
                });
                self.nodes[at].children.push(child);
                path.push(child);
                advance(&mut game, action);
                break;
            }
            let bound = |child: &usize| {
                let node = &self.nodes[*child];
                node.sum / node.visits + EXPLORATION * (node.offered.ln() / node.visits).sqrt()
            };
            let children: Vec<usize> = known.into_iter().flatten().collect();
            let mut best = children[0];
            for child in &children {
                if bound(child) > bound(&best) {
                    best = *child;
                }
            }
            children.iter().for_each(|child| self.nodes[*child].offered += 1.0);
            let action = self.nodes[best].action.clone();
            at = best;
            path.push(best);
            advance(&mut game, &action);
        }
        for _ in 0..MAX_MOVES {
            let Some(mut moves) = game.legal().filter(|moves| !moves.is_empty()) else { break };
            let action = moves.swap_remove(lots.below(moves.len() as u64) as usize);
            advance(&mut game, &action);
        }
        for node in path {
            let node = &mut self.nodes[node];
            node.visits += 1.0;
            node.sum += game.judge(node.player);
        }
    }
}

fn advance(game: &mut Game, action: &str) {
    // A listed move of a game under way is always carried out.
    let _ = game.act(action);
    game.silence();
}
