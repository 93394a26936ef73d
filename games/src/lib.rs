//! Games in text: rules, solvers and players, without any episode.
//!
//! ```text
//!  game_registry ──open(name, settings)──▶ Game ──begin(seed)──▶ messages, to_move
//!                                           │ ▲
//!                                    clone  │ └── act(text) ──▶ messages ... rewards, reason
//!                                           ▼
//!                                          Game ◀── expert, oracle, Player (random, minimax, MCTS)
//! ```
//!
//! Where TextArena has a game, seeds and actions give its messages, rewards and reasons, invalid moves included: what is
//! drawn is drawn by [CPython's generator](spar_python::Random). `replay_traces` holds that against recordings
//! of the package (`scripts/record_textarena.py`). The texts of rules and messages are TextArena's (MIT licence, the
//! TextArena authors); code, solvers and words are spar's own.
//!
//! ```
//! use spar_games::Game;
//!
//! let mut game = Game::open("tower-of-hanoi", &serde_json::json!({ "num_disks": 2 }))?;
//! game.begin(1);
//! while let Some(action) = game.expert() {
//!     game.act(&action)?;
//! }
//! assert_eq!((game.turn(), game.rewards()), (3, Some(&[1.0][..])));
//! # Ok::<(), spar_games::GameError>(())
//! ```

mod bandit;
mod blackjack;
mod conformance;
mod connect_four;
mod countdown;
mod error;
mod fifteen_puzzle;
mod game;
mod game_2048;
mod guess_the_number;
mod hangman;
mod kuhn_poker;
mod leduc_holdem;
mod mastermind;
mod minesweeper;
mod negotiation;
mod nim;
mod noughts;
mod players;
mod registry;
mod scan;
mod secret_mafia;
mod sudoku;
mod table;
mod text;
mod tower_of_hanoi;
mod wordle;
mod words;

pub use conformance::{TraceReport, replay_traces};
pub use error::GameError;
pub use game::Game;
pub use players::RulePlayer;
pub use registry::{GAMES, GameRow, NamedGame, game_registry};
pub use table::{Message, MessageKind};
pub use words::all_words;
