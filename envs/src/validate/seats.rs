//! The laws of environments in which several act.

use std::collections::BTreeSet;

use rand::RngExt;
use spar_core::{Action, Observation, Seat, SeatSpec, Seed, Told};

use super::{FailureKind, Shown, Trial, UNKNOWN_ACTION, seed_of, shown};
use crate::{Environment, EnvironmentError, open_environment};

/// Who can take a seat without a model.
const PLAYERS: [&str; 4] = [SeatSpec::SELF, "random", "oracle", "expert"];
/// Moves of one episode at the most, for each turn that the task gives a seat.
const MAX_MOVES: u32 = 1_000;

/// A game of all seats, and what each of them was told and earned.
struct Game {
    env: Box<dyn Environment>,
    /// What the seats saw last; absent as long as they have seen nothing.
    seen: Vec<Option<Observation>>,
    /// Seats that others have moved behind.
    is_behind: Vec<bool>,
    earned: Vec<f64>,
    success: Vec<bool>,
    is_over: bool,
    /// Whether a move was drawn from those that were listed.
    has_drawn: bool,
}

/// A move with all that came of it.
#[derive(PartialEq)]
struct Moved {
    seat: Seat,
    step: Shown,
    /// What the others are told where the episode is over.
    told: Vec<Told>,
}

impl Game {
    async fn start(mut env: Box<dyn Environment>, seed: Seed) -> Result<Self, EnvironmentError> {
        let seats = env.seats().len();
        let first = env.reset(seed).await?;
        let mut seen = vec![None; seats];
        if let Some(seen) = env.to_move().and_then(|seat| seen.get_mut(seat.index())) {
            *seen = Some(first);
        }
        Ok(Self {
            env,
            seen,
            is_behind: vec![false; seats],
            earned: vec![0.0; seats],
            success: vec![false; seats],
            is_over: false,
            has_drawn: false,
        })
    }

    /// The seat that is to move with what it sees, once it was told what others did.
    fn mover(&mut self) -> Result<(Seat, Observation), String> {
        let seat = self.env.to_move().ok_or("nobody is to move, and nothing has terminated")?;
        let index = seat.index();
        let seats = self.seen.len();
        if index >= seats {
            return Err(format!("seat {seat} is to move, and there are {seats}"));
        }
        if self.is_behind[index] || self.seen[index].is_none() {
            let told = self.env.told(seat);
            self.take(seat, &told);
            self.seen[index] = Some(told.observation);
            self.is_behind[index] = false;
        }
        Ok((seat, self.seen[index].clone().unwrap_or_default()))
    }

    fn take(&mut self, seat: Seat, told: &Told) {
        self.earned[seat.index()] += told.rewards.iter().map(|part| part.value).sum::<f64>();
        self.success[seat.index()] = told.success;
    }

    /// Makes a move of the seat that is to move.
    async fn act(&mut self, seat: Seat, action: &Action) -> Result<Moved, EnvironmentError> {
        let step = self.env.step(action).await?;
        let index = seat.index();
        self.earned[index] += step.reward();
        self.success[index] = step.success;
        self.seen[index] = Some(step.observation.clone());
        self.is_over = step.terminated;
        let mut told = Vec::new();
        if self.is_over {
            for other in (0..self.seen.len()).filter(|other| *other != index).map(Seat::at) {
                let of_other = self.env.told(other);
                self.take(other, &of_other);
                told.push(of_other);
            }
        } else if self.env.to_move() != Some(seat) {
            self.is_behind[index] = true;
        }
        Ok(Moved { seat, step: shown(&step), told })
    }

    async fn fork(&mut self) -> Result<Option<Self>, EnvironmentError> {
        let Some(env) = self.env.fork().await? else { return Ok(None) };
        Ok(Some(Self {
            env,
            seen: self.seen.clone(),
            is_behind: self.is_behind.clone(),
            earned: self.earned.clone(),
            success: self.success.clone(),
            is_over: self.is_over,
            has_drawn: self.has_drawn,
        }))
    }
}

/// Who takes all seats.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Oracle,
    Expert,
    Idle,
    Random,
}

impl Trial<'_> {
    /// Plays a task of several seats with each of the players at all of them.
    pub(super) async fn run_seats(
        &mut self,
        mut env: Box<dyn Environment>,
    ) -> Result<(), EnvironmentError> {
        self.check_specs(env.seats());
        let has_chance = env.tags().iter().any(|tag| tag == crate::CHANCE_TAG);
        let mut random = Vec::new();
        for by in [By::Oracle, By::Expert, By::Idle, By::Random] {
            let game = Game::start(env, seed_of(self.task)).await?;
            let (game, moves) = self.play_seats(game, by).await?;
            self.judge(&game, by, has_chance, moves.len());
            env = game.env;
            random = moves;
        }
        env.close().await?;
        self.repeat_seats(&random).await
    }

    fn check_specs(&mut self, seats: &[SeatSpec]) {
        let names: BTreeSet<&str> = seats.iter().map(|seat| &*seat.name).collect();
        if names.len() < seats.len() || names.contains("") {
            self.fail(FailureKind::WrongSeats, format!("their names are {names:?}"));
        }
        for seat in seats.iter().filter(|seat| !PLAYERS.contains(&&*seat.player)) {
            let detail = format!("`{}` is taken by `{}`, who is unknown", seat.name, seat.player);
            self.fail(FailureKind::WrongSeats, detail);
        }
    }

    /// Plays to the end, or as long as the task's turns last; forks made on the way go on as their origin does.
    async fn play_seats(
        &mut self,
        mut game: Game,
        by: By,
    ) -> Result<(Game, Vec<(Action, Moved)>), EnvironmentError> {
        let seats = u32::try_from(game.seen.len()).unwrap_or(u32::MAX);
        let most = self.task.max_turns.min(MAX_MOVES).saturating_mul(seats);
        let mut rng = seed_of(self.task).derive("random player", "seats").rng();
        let mut fork: Option<Game> = None;
        let mut moves = Vec::new();
        for number in 0..most {
            if game.is_over {
                break;
            }
            if number == 2 {
                fork = game.fork().await?;
            }
            let (seat, seen) = match game.mover() {
                Ok(mover) => mover,
                Err(detail) => {
                    self.fail(FailureKind::WrongSeats, detail);
                    break;
                }
            };
            let listed = seen.admissible.as_deref().unwrap_or_default();
            let action = match by {
                By::Oracle => game.env.oracle_action(),
                By::Expert => game.env.expert_action(),
                By::Idle => Some(UNKNOWN_ACTION.into()),
                By::Random if listed.is_empty() => game.env.expert_action(),
                By::Random => {
                    game.has_drawn = true;
                    Some(Action::from(&*listed[rng.random_range(0..listed.len())]))
                }
            };
            let Some(action) = action else {
                if by == By::Oracle {
                    let detail = format!("at seat {seat} after {number} moves");
                    self.fail(FailureKind::NoOracle, detail);
                }
                break;
            };
            for tool in game.env.tools().iter() {
                if let Err(error) = tool.validate() {
                    self.fail(FailureKind::WrongTools, error.to_string());
                }
            }
            let moved = game.act(seat, &action).await?;
            if !moved.step.valid && by != By::Idle {
                self.fail(FailureKind::WrongAdmissible, format!("seat {seat}: `{action}`"));
            }
            if game.is_over != game.env.to_move().is_none() {
                let detail = format!(
                    "after `{action}` terminated is {}, and to move is {:?}",
                    game.is_over,
                    game.env.to_move()
                );
                self.fail(FailureKind::WrongSeats, detail);
                break;
            }
            if let Some(fork) = &mut fork {
                let told = fork.mover();
                let twin = fork.act(seat, &action).await?;
                if told != Ok((seat, seen)) || twin != moved {
                    let detail = format!("move {number} of seat {seat}, `{action}`");
                    self.fail(FailureKind::ForkDiffers, detail);
                }
            }
            moves.push((action, moved));
        }
        if let Some(mut fork) = fork {
            fork.env.close().await?;
        }
        // Where the end is judged, that is what all seats have come to.
        if let Some(verdict) = game.env.verify().await? {
            game.earned.iter_mut().for_each(|earned| *earned += verdict.reward());
            game.success.fill(verdict.success);
        }
        Ok((game, moves))
    }

    /// What the seats have earned is what is due.
    fn judge(&mut self, game: &Game, by: By, has_chance: bool, moves: usize) {
        let (earned, success) = (&game.earned, &game.success);
        let is_zero_sum = game.env.is_zero_sum();
        // Of equal parts the sum is exact.
        let sum: f64 = earned.iter().sum();
        if is_zero_sum && sum != 0.0 {
            self.fail(FailureKind::WrongReward, format!("{earned:?} do not add up to zero"));
        }
        for (seat, (earned, success)) in earned.iter().zip(success).enumerate() {
            if *success && *earned <= 0.0 {
                let detail = format!("seat {seat} succeeds with {earned}");
                self.fail(FailureKind::WrongReward, detail);
            }
        }
        if by == By::Idle && !is_zero_sum && success.iter().any(|success| *success) {
            self.fail(FailureKind::RewardForNothing, format!("{earned:?}"));
        }
        if by != By::Oracle {
            // Where nothing is listed an expert plays, who solves nothing by chance.
            let is_by_chance = by == By::Random && game.has_drawn && !is_zero_sum;
            self.report.num_solved_by_random +=
                usize::from(is_by_chance && success.iter().all(|it| *it));
            return;
        }
        let is_solved = game.is_over && (is_zero_sum || success.iter().all(|success| *success));
        if has_chance {
            self.report.num_with_chance += 1;
            self.report.num_solved_with_chance += usize::from(is_solved);
        } else if !is_solved {
            self.fail(FailureKind::NotSolved, format!("within {moves} moves"));
        }
        if is_solved {
            self.report.num_solved += 1;
            self.report.num_oracle_turns += moves as u64;
        }
    }

    /// The same moves under the same seed show the same again, in an environment of its own.
    async fn repeat_seats(&mut self, moves: &[(Action, Moved)]) -> Result<(), EnvironmentError> {
        let mut env = open_environment(self.task, self.resources)?;
        env.use_tools();
        let mut game = Game::start(env, seed_of(self.task)).await?;
        for (number, (action, first)) in moves.iter().enumerate() {
            let is_same = match game.mover() {
                Ok((seat, _)) => game.act(seat, action).await? == *first,
                Err(_) => false,
            };
            if !is_same {
                self.fail(FailureKind::NotRepeatable, format!("move {number}, `{action}`"));
                break;
            }
        }
        game.env.close().await
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use spar_core::{RewardPart, Step};

    use super::super::ValidationReport;
    use super::*;
    use crate::{Resources, TicTacToe, test_task};

    /// Tic-tac-toe with something wrong.
    #[derive(Clone)]
    struct Broken {
        inner: TicTacToe,
        fault: &'static str,
    }

    #[async_trait]
    impl Environment for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }

        fn seats(&self) -> &[SeatSpec] {
            self.inner.seats()
        }

        fn is_zero_sum(&self) -> bool {
            true
        }

        fn to_move(&self) -> Option<Seat> {
            match self.inner.to_move() {
                None if self.fault == "never over" => Some(Seat(0)),
                Some(_) if self.fault == "nobody" => None,
                Some(_) if self.fault == "a stranger" => Some(Seat(7)),
                seat => seat,
            }
        }

        fn told(&mut self, seat: Seat) -> Told {
            let mut told = self.inner.told(seat);
            if self.fault == "the loser is not paid" {
                told.rewards.clear();
            }
            told
        }

        async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
            self.inner.reset(seed).await
        }

        async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
            let mut step = self.inner.step(action).await?;
            if self.fault == "moves pay" {
                step.rewards.push(RewardPart { name: "move".to_owned(), value: 0.5 });
            }
            Ok(step)
        }

        async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
            let mut fork = self.clone();
            if self.fault == "forks forget" {
                fork.inner.reset(Seed::from_u64(1)).await?;
            }
            Ok(Some(Box::new(fork)))
        }

        fn oracle_action(&self) -> Option<Action> {
            self.inner.oracle_action()
        }

        fn expert_action(&mut self) -> Option<Action> {
            self.inner.expert_action()
        }
    }

    #[tokio::test]
    async fn what_is_wrong_with_seats_is_found() {
        let task = test_task("tic-tac-toe", serde_json::json!({ "seed": 4 }));
        let resources = Resources::default();
        for (fault, kind) in [
            ("", None),
            ("never over", Some(FailureKind::WrongSeats)),
            ("nobody", Some(FailureKind::WrongSeats)),
            ("a stranger", Some(FailureKind::WrongSeats)),
            ("the loser is not paid", Some(FailureKind::WrongReward)),
            ("moves pay", Some(FailureKind::WrongReward)),
            ("forks forget", Some(FailureKind::ForkDiffers)),
        ] {
            let mut report = ValidationReport::default();
            let mut trial = Trial { task: &task, resources: &resources, report: &mut report };
            let inner = TicTacToe::open(&task).unwrap();
            // The repetition plays the sound environment, and finds a difference where the fault shows in steps.
            trial.run_seats(Box::new(Broken { inner, fault })).await.unwrap();
            let found = report.failures.iter().map(|failure| failure.kind);
            let found: Vec<_> = found.filter(|it| *it != FailureKind::NotRepeatable).collect();
            match kind {
                None => assert!(report.is_valid(), "{:?}", report.failures),
                Some(kind) => assert!(found.contains(&kind), "{fault}: {:?}", report.failures),
            }
        }
    }
}
