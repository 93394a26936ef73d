//! Players who need no model and no knowledge of a single game.

mod mcts;
mod minimax;

use std::fmt::{Display, Formatter};

use spar_core::Seed;

use crate::{Game, GameError};

/// Iterations of [`RulePlayer::Mcts`] where nobody says how many.
const USUAL_ITERATIONS: u32 = 400;

/// A player by rules, for any game that lists its moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulePlayer {
    /// Draws one of the moves that can be made.
    Random,
    /// Alpha-beta search, exact where the game ends within its depth. What it cannot see it draws several times, and takes
    /// the move that is best on average.
    Minimax {
        /// Moves that it looks ahead; absent: as many as the game says.
        depth: Option<u32>,
    },
    /// Monte Carlo tree search by upper confidence bounds (UCT; Kocsis and Szepesvári, 2006). What it cannot see is drawn
    /// anew in every iteration, and the tree is of what can be seen (after Cowling, Powley and Whitehouse, 2012).
    Mcts {
        /// Games that are played to their end for a move.
        iterations: u32,
    },
}

impl RulePlayer {
    /// The player of a name: `random`, `minimax`, `minimax:DEPTH` (1 to 64), `mcts`, or `mcts:ITERATIONS` (1 to 100000).
    ///
    /// # Errors
    ///
    /// [`GameError::Player`] when there is none of this name, with those that there are.
    pub fn named(name: &str) -> Result<Self, GameError> {
        let (kind, number) = match name.split_once(':') {
            Some((kind, number)) => (kind, Some(number)),
            None => (name, None),
        };
        let number = |most: u32| match number.map(str::parse::<u32>) {
            None => Ok(None),
            Some(Ok(number)) if (1..=most).contains(&number) => Ok(Some(number)),
            Some(_) => Err(GameError::Player {
                player: name.to_owned(),
                detail: format!("behind the colon stands a number from 1 to {most}"),
            }),
        };
        match kind {
            "random" if name == kind => Ok(Self::Random),
            "minimax" => Ok(Self::Minimax { depth: number(64)? }),
            "mcts" => Ok(Self::Mcts { iterations: number(100_000)?.unwrap_or(USUAL_ITERATIONS) }),
            _ => Err(GameError::Player {
                player: name.to_owned(),
                detail:
                    "known are `random`, `minimax`, `minimax:DEPTH`, `mcts` and `mcts:ITERATIONS`"
                        .to_owned(),
            }),
        }
    }

    /// The move of who is to move; `None` where the game is over, or lists no moves.
    pub fn choose(self, game: &Game, seed: Seed) -> Option<String> {
        let player = game.to_move()?;
        match self {
            Self::Random => {
                let mut moves = game.legal()?;
                let at = Lots::new(seed).below(moves.len() as u64);
                (!moves.is_empty()).then(|| moves.swap_remove(at as usize))
            }
            Self::Minimax { depth } => minimax::choose(game, player, depth, seed),
            Self::Mcts { iterations } => mcts::choose(game, player, iterations, seed),
        }
    }
}

impl Display for RulePlayer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Random => formatter.write_str("random"),
            Self::Minimax { depth: None } => formatter.write_str("minimax"),
            Self::Minimax { depth: Some(depth) } => write!(formatter, "minimax:{depth}"),
            Self::Mcts { iterations } => write!(formatter, "mcts:{iterations}"),
        }
    }
}

/// Lots of a player: SplitMix64 (Steele, Lea and Flood, 2014) from a derived seed.
#[derive(Debug, Clone)]
struct Lots(u64);

impl Lots {
    fn new(seed: Seed) -> Self {
        Self(seed.as_u64())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below this one, or 0.
    fn below(&mut self, bound: u64) -> u64 {
        // The bias of a product is less than one in 2^32 for what is drawn here.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// A copy of a game for thinking ahead: nobody reads what it says.
fn imagined(game: &Game) -> Game {
    let mut copy = game.clone();
    copy.silence();
    copy
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Wins of the first of two players in so many games, draws as halves; who begins alternates.
    fn score(name: &str, players: [RulePlayer; 2], games: u64) -> f64 {
        let mut score = 0.0;
        for number in 0..games {
            let mut game = Game::open(name, &json!({})).unwrap();
            game.begin(number);
            let first = (number % 2) as usize;
            let mut turn = 0_u64;
            while let Some(player) = game.to_move() {
                let seed = Seed::from_u64(number).derive("move", turn);
                let action = players[(player + first) % 2].choose(&game, seed).unwrap();
                assert!(game.act(&action).unwrap(), "{name}: {action}");
                game.silence();
                turn += 1;
            }
            score += (game.rewards().unwrap()[first] + 1.0) / 2.0;
        }
        score / games as f64
    }

    const MCTS: RulePlayer = RulePlayer::Mcts { iterations: 150 };
    const MINIMAX: RulePlayer = RulePlayer::Minimax { depth: None };

    #[test]
    fn exact_search_does_not_lose_what_can_be_held() {
        assert_eq!(score("noughts", [MINIMAX, MINIMAX], 2), 0.5, "perfect play is a draw");
        assert!(score("noughts", [MINIMAX, RulePlayer::Random], 12) > 0.85);
        // Three, four and five objects: the first to move wins.
        let mut game = Game::open("nim", &json!({})).unwrap();
        game.begin(0);
        while let Some(player) = game.to_move() {
            let player = if player == 0 { MINIMAX } else { MCTS };
            let action = player.choose(&game, Seed::from_u64(1)).unwrap();
            game.act(&action).unwrap();
        }
        assert_eq!(game.rewards().unwrap()[0], 1.0);
    }

    #[test]
    fn tree_search_is_better_than_chance_with_and_without_hidden_cards() {
        assert!(score("connect-four", [MCTS, RulePlayer::Random], 8) > 0.8);
        assert!(score("kuhn-poker", [MCTS, RulePlayer::Random], 60) > 0.55);
    }

    #[test]
    fn names_are_read_back() {
        for name in ["random", "minimax", "minimax:3", "mcts:50"] {
            assert_eq!(RulePlayer::named(name).unwrap().to_string(), name);
        }
        for name in ["random:2", "minimax:0", "mcts:x", "expert", ""] {
            assert!(RulePlayer::named(name).is_err(), "{name}");
        }
    }
}
