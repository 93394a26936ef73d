//! Tic-tac-toe: two seats, nine cells, three in a row.

mod position;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rand::seq::IndexedRandom;
use serde::Deserialize;
use spar_core::{Action, Observation, Seat, SeatSpec, Seed, Step, Told};
use spar_tasks::Task;

use self::position::Position;
use crate::{Environment, EnvironmentError, SeatAccounts};

const NAME: &str = "tic-tac-toe";

const SEATS: &[SeatSpec] = &[
    SeatSpec::new("x", "Who moves first.", SeatSpec::SELF),
    SeatSpec::new("o", "Who moves second.", SeatSpec::SELF),
];
/// What each of them writes on the board.
const MARKS: [char; 2] = ['x', 'o'];

/// Tic-tac-toe in text: seat `x` moves first, then `o`, in turns; three in a row win.
///
/// Parameters: `seed`, `opening` (0 to 4, default 0: moves that are made before the game, drawn from the seed so that the
/// game is not over by them), `max_illegal` (1 to 9, default 3). An action is the number of a free cell, `1` to `9`, row by
/// row. One that is none is not executed and the seat stays to move; with the last of `max_illegal` in one game the seat has
/// lost, and so has a seat whose budget is used up.
///
/// The winner gets the reward part `outcome` = 1, the loser -1, both nothing for a draw. Success is to have won. The oracle
/// plays perfectly, by minimax, and the expert completes a row, else stops one, else draws a cell; among equal cells both
/// draw by the seed of the episode.
#[derive(Debug, Clone)]
pub struct TicTacToe {
    opening: u32,
    seed: Seed,
    max_illegal: u32,
    game: Option<Game>,
}

#[derive(Debug, Clone)]
struct Game {
    seed: Seed,
    position: Position,
    to_move: Option<Seat>,
    /// Moves that were made, those of the opening among them.
    moves: u32,
    illegal: [u32; 2],
    /// The last move of each seat.
    last: [Option<usize>; 2],
    winner: Option<Seat>,
    /// Whether the loser has left or made too many illegal moves.
    is_forfeited: bool,
    accounts: SeatAccounts,
    /// Which seats have seen the game.
    has_seen: [bool; 2],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default)]
    opening: u32,
    #[serde(default = "three")]
    max_illegal: u32,
}

fn three() -> u32 {
    3
}

impl TicTacToe {
    /// Makes the game of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let Parameters { seed, opening, max_illegal } =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if opening > 4 {
            return Err(refuse(format!("`opening` is {opening}, allowed are 0 to 4")));
        }
        if !(1..=9).contains(&max_illegal) {
            return Err(refuse(format!("`max_illegal` is {max_illegal}, allowed are 1 to 9")));
        }
        Ok(Self {
            opening,
            seed: Seed::from_u64(seed).derive(NAME, opening),
            max_illegal,
            game: None,
        })
    }

    fn started(&self) -> Result<&Game, EnvironmentError> {
        self.game.as_ref().ok_or(EnvironmentError::Misused { call: "step", when: "before reset" })
    }
}

impl Game {
    /// The game before its first move, behind an opening that is drawn.
    fn begin(seed: Seed, opening: u32, openings: Seed) -> Self {
        let mut position = Position::default();
        let mut rng = openings.rng();
        // Four moves leave nobody three in a row.
        for number in 0..opening {
            let free: Vec<usize> = position.free().collect();
            let cell = *free.choose(&mut rng).expect("four moves leave cells free");
            position = position.with(cell, (number % 2) as u8);
        }
        Self {
            seed,
            position,
            to_move: Some(Seat(opening % 2)),
            moves: opening,
            illegal: [0; 2],
            last: [None; 2],
            winner: None,
            is_forfeited: false,
            accounts: SeatAccounts::new(2),
            has_seen: [false; 2],
        }
    }

    fn end(&mut self, winner: Option<Seat>) {
        (self.winner, self.to_move) = (winner, None);
        if let Some(winner) = winner {
            self.accounts.pay_zero_sum("outcome", winner, other(winner));
        }
    }

    fn take(&mut self, seat: Seat, cell: usize) {
        self.position = self.position.with(cell, seat.0 as u8);
        self.last[seat.index()] = Some(cell);
        self.moves += 1;
        self.to_move = Some(other(seat));
        if self.position.is_over() {
            self.end(self.position.winner().map(|player| Seat(u32::from(player))));
        }
    }

    /// What a seat sees now: behind what came of its own action, or else behind the other's last move.
    fn observe(&mut self, seat: Seat, own: Option<&str>) -> Observation {
        let index = seat.index();
        let (mark, other_mark) = (MARKS[index], MARKS[1 - index]);
        let is_first = !std::mem::replace(&mut self.has_seen[index], true);
        let mut text = match (own, self.last[1 - index]) {
            (Some(own), _) => own.to_owned(),
            (None, Some(cell)) => format!("{other_mark} takes {}.\n", cell + 1),
            (None, None) => String::new(),
        };
        text += &self.board();
        match (self.to_move, self.winner) {
            (Some(_), _) => drop(write!(text, "\nYou are {mark}.")),
            (None, None) => text += "\nIt is a draw.",
            (None, Some(winner)) => {
                let won = winner == seat;
                let why = match (self.is_forfeited, won) {
                    (true, true) => format!("{other_mark} forfeits. "),
                    (true, false) => "You forfeit. ".to_owned(),
                    (false, _) => String::new(),
                };
                let _ = write!(text, "\n{why}You {}.", if won { "win" } else { "lose" });
            }
        }
        let free = self.position.free().map(|cell| (cell + 1).to_string().into());
        let is_to_move = self.to_move == Some(seat);
        let admissible: Vec<Arc<str>> = if is_to_move { free.collect() } else { Vec::new() };
        let instruction = || format!("win at tic-tac-toe as {mark}: three in a row");
        Observation {
            state_key: format!("{mark} on {}", self.board()),
            text,
            instruction: is_first.then(|| instruction().into()),
            admissible: Some(admissible.into()),
            ..Observation::default()
        }
    }

    /// The board, a free cell as its number.
    fn board(&self) -> String {
        let cell = |cell: usize| match self.position.owner(cell) {
            Some(player) => MARKS[usize::from(player)].to_string(),
            None => (cell + 1).to_string(),
        };
        let row = |row: usize| [cell(3 * row), cell(3 * row + 1), cell(3 * row + 2)].join(" ");
        [row(0), row(1), row(2)].join("\n")
    }

    /// One of these cells, drawn by the seed and the number of the move, as an action.
    fn drawn(&self, cells: &[usize]) -> Option<Action> {
        let mut rng = self.seed.derive("choice", self.moves).rng();
        cells.choose(&mut rng).map(|cell| (cell + 1).to_string().into())
    }
}

fn other(seat: Seat) -> Seat {
    Seat(1 - seat.0)
}

#[async_trait]
impl Environment for TicTacToe {
    fn name(&self) -> &'static str {
        NAME
    }

    fn seats(&self) -> &[SeatSpec] {
        SEATS
    }

    fn is_zero_sum(&self) -> bool {
        true
    }

    fn to_move(&self) -> Option<Seat> {
        self.game.as_ref().map_or(Some(Seat(self.opening % 2)), |game| game.to_move)
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        let mut game = Game::begin(seed, self.opening, self.seed);
        let observation = game.observe(Seat(self.opening % 2), None);
        self.game = Some(game);
        Ok(observation)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let seat = self.started()?.to_move;
        let max_illegal = self.max_illegal;
        let (Some(game), Some(seat)) = (&mut self.game, seat) else {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        };
        let named = action.said().trim().parse::<usize>().ok().and_then(|cell| cell.checked_sub(1));
        let cell = named.filter(|cell| game.position.is_free(*cell));
        if let Some(cell) = cell {
            game.take(seat, cell);
        } else {
            let illegal = &mut game.illegal[seat.index()];
            *illegal += 1;
            if *illegal >= max_illegal {
                game.is_forfeited = true;
                game.end(Some(other(seat)));
            }
        }
        let said = if cell.is_some() { "" } else { "That is no free cell.\n" };
        Ok(Step {
            observation: game.observe(seat, Some(said)),
            rewards: game.accounts.take(seat),
            terminated: game.to_move.is_none(),
            success: game.winner == Some(seat),
            valid: cell.is_some(),
            wall_time: start.elapsed(),
        })
    }

    fn told(&mut self, seat: Seat) -> Told {
        let Some(game) = &mut self.game else { return Told::default() };
        Told {
            observation: game.observe(seat, None),
            rewards: game.accounts.take(seat),
            success: game.winner == Some(seat),
        }
    }

    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        if let Some(game) = &mut self.game
            && game.to_move.is_some()
        {
            game.is_forfeited = true;
            game.end(Some(other(seat)));
        }
        Ok(())
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let game = self.game.as_ref()?;
        game.drawn(&game.position.best(game.to_move?.0 as u8))
    }

    fn expert_action(&mut self) -> Option<Action> {
        let game = self.game.as_ref()?;
        let player = game.to_move?.0 as u8;
        let free: Vec<usize> = game.position.free().collect();
        let [own, others] = [player, 1 - player].map(|player| game.position.completing(player));
        let cells = [own, others].into_iter().find(|cells| !cells.is_empty());
        game.drawn(&cells.unwrap_or(free))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn game(parameters: serde_json::Value) -> TicTacToe {
        TicTacToe::open(&crate::test_task(NAME, parameters)).unwrap()
    }

    async fn play(game: &mut TicTacToe, cells: &[&str]) -> Step {
        game.reset(Seed::from_u64(1)).await.unwrap();
        let mut last = None;
        for cell in cells {
            last = Some(game.step(&Action::from(*cell)).await.unwrap());
        }
        last.unwrap()
    }

    #[tokio::test]
    async fn three_in_a_row_pay_both_seats() {
        let mut game = game(json!({ "seed": 1 }));
        let step = play(&mut game, &["1", "4", "2", "5", "3"]).await;
        assert!(step.terminated && step.success && step.reward() == 1.0);
        assert_eq!(step.observation.text, "x x x\no o 6\n7 8 9\nYou win.");
        let told = game.told(Seat(1));
        assert!(!told.success && told.rewards[0].value == -1.0);
        assert_eq!(told.observation.text, "x takes 3.\nx x x\no o 6\n7 8 9\nYou lose.");
        assert!(game.told(Seat(1)).rewards.is_empty(), "paid once");
        assert_eq!(game.to_move(), None);
        assert!(game.step(&"9".into()).await.is_err());
    }

    #[tokio::test]
    async fn what_is_no_free_cell_costs_a_try_and_the_last_one_the_game() {
        let mut game = game(json!({ "seed": 1, "max_illegal": 2 }));
        let step = play(&mut game, &["5", "5"]).await;
        assert!(!step.valid && !step.terminated && step.reward() == 0.0);
        assert_eq!(game.to_move(), Some(Seat(1)), "it stays to move");
        assert!(step.observation.text.starts_with("That is no free cell.\n1 2 3\n4 x 6"));
        let step = game.step(&"0".into()).await.unwrap();
        assert!(step.terminated && step.reward() == -1.0 && !step.success);
        let told = game.told(Seat(0));
        assert!(told.success && told.observation.text.ends_with("o forfeits. You win."));
    }

    #[tokio::test]
    async fn a_draw_pays_nobody_and_who_leaves_has_lost() {
        let mut game = game(json!({ "seed": 1 }));
        let step = play(&mut game, &["1", "2", "3", "5", "4", "6", "8", "7", "9"]).await;
        assert!(step.terminated && !step.success && step.rewards.is_empty());
        assert!(step.observation.text.ends_with("It is a draw."));
        game.reset(Seed::from_u64(1)).await.unwrap();
        game.forfeit(Seat(0)).await.unwrap();
        assert_eq!(game.told(Seat(0)).rewards[0].value, -1.0);
        assert_eq!(game.told(Seat(1)).rewards[0].value, 1.0);
    }

    #[tokio::test]
    async fn openings_are_drawn_from_the_task_and_name_who_is_to_move() {
        let mut positions = std::collections::BTreeSet::new();
        for seed in 0..40 {
            let mut game = game(json!({ "seed": seed, "opening": 3 }));
            assert_eq!(game.to_move(), Some(Seat(1)));
            let first = game.reset(Seed::from_u64(seed)).await.unwrap();
            assert_eq!(first.admissible.as_ref().unwrap().len(), 6);
            assert!(first.text.ends_with("You are o."));
            assert_eq!(game.reset(Seed::from_u64(9)).await.unwrap(), first);
            positions.insert(first.text);
        }
        assert!(positions.len() > 20);
        assert!(
            TicTacToe::open(&crate::test_task(NAME, json!({ "seed": 1, "opening": 5 }))).is_err()
        );
    }
}
