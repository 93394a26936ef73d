//! Games in text, which `spar-games` plays, as environments.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Map, Value};
use spar_core::registry::Row;
use spar_core::{Action, Observation, RewardPart, Seat, SeatSpec, Seed, Step, Told};
use spar_games::{Game, GameRow, MessageKind, RulePlayer};
use spar_tasks::Task;

use crate::environment::CHANCE_TAG;
use crate::registry::{Actions, EnvironmentRow, NamedEnvironment};
use crate::{Environment, EnvironmentError, SeatAccounts};

/// The most bytes of an action; longer ones are no move, and nobody hears them.
const MAX_ACTION_BYTES: usize = 8 << 10;

/// The row of the environment that plays a game.
pub(crate) const fn row(game: &GameRow) -> EnvironmentRow {
    Row {
        name: game.name,
        about: game.about,
        source: game.source,
        formula: "",
        options: game.options,
        open: NamedEnvironment {
            suite: Some(game.name),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(TextGame::open(task)?)),
            stratum: |_| None,
        },
    }
}

/// A game in text of `spar-games`: for one, or with a seat for each player.
///
/// Parameters: `seed`, the settings of the game, and
/// - `rewards`: `"success"` (default) pays the part `success` = 1 for a game of one that was solved, and nothing else, and
///   where teams play the part `outcome`: to each of the winners an eighth for every loser, to each of the losers less an
///   eighth for every winner, so that nothing is made or lost. `"package"` pays the part `outcome` as TextArena does, parts
///   of a success included. Where two play, both are the same.
/// - `players`: who plays by rules at each seat where `expert` takes it, such as `["mcts:200", "minimax"]`; absent: the
///   game's own. Games of several only.
///
/// A seat sees what the game has said since it moved, each message behind `[GAME]`, or behind `[Player 1]` what others
/// said, as TextArena's wrapper lays them out. Actions without any bracket are put into brackets, as its wrapper does.
#[derive(Debug, Clone)]
pub struct TextGame {
    game: Game,
    seed: u64,
    rewards: Rewards,
    players: Vec<Option<RulePlayer>>,
    seats: Arc<[SeatSpec]>,
    episode: Option<Episode>,
}

#[derive(Debug, Clone)]
struct Episode {
    seed: Seed,
    accounts: SeatAccounts,
    is_paid: bool,
    /// The name of the situation of each seat.
    keys: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rewards {
    Success,
    Package,
}

impl TextGame {
    /// Makes the game of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let row = spar_games::game_registry().find(&task.environment)?;
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: row.name,
            detail,
        };
        let mut settings: Map<String, Value> = match &task.parameters {
            Value::Object(settings) => settings.clone(),
            _ => return Err(refuse("they are no object".to_owned())),
        };
        let seed = settings
            .remove("seed")
            .and_then(|seed| seed.as_u64())
            .ok_or_else(|| refuse("`seed` is absent, or no whole number from 0 on".to_owned()))?;
        let rewards = match settings.remove("rewards") {
            None => Rewards::Success,
            Some(Value::String(name)) if name == "success" => Rewards::Success,
            Some(Value::String(name)) if name == "package" => Rewards::Package,
            Some(other) => {
                let told = format!("`rewards` is {other}, allowed are \"success\" and \"package\"");
                return Err(refuse(told));
            }
        };
        let players = settings.remove("players");
        let game =
            Game::open(row.name, &settings.into()).map_err(|error| refuse(error.to_string()))?;
        let num_players = game.num_players();
        let players = match players {
            None => vec![None; num_players],
            Some(named) => {
                let named: Vec<String> = serde_json::from_value(named)
                    .map_err(|error| refuse(format!("`players`: {error}")))?;
                if named.len() != num_players || num_players == 1 {
                    return Err(refuse(format!(
                        "`players` names {}, and of several who play there are {num_players}",
                        named.len()
                    )));
                }
                let open = |name: &String| match name.as_str() {
                    "expert" => Ok(None),
                    name => {
                        RulePlayer::named(name).map(Some).map_err(|error| refuse(error.to_string()))
                    }
                };
                named.iter().map(open).collect::<Result<_, _>>()?
            }
        };
        let seats = match num_players {
            1 => SeatSpec::ONE.into(),
            count => (0..count).map(seat).collect(),
        };
        Ok(Self { game, seed, rewards, players, seats, episode: None })
    }

    fn has_seats(&self) -> bool {
        self.seats.len() > 1
    }

    /// Hands out the rewards of a game that is over, once.
    fn pay(&mut self) {
        let Some(episode) = &mut self.episode else { return };
        let Some(rewards) = self.game.rewards().filter(|_| !episode.is_paid) else { return };
        episode.is_paid = true;
        if self.rewards == Rewards::Package || (self.seats.len() > 1 && self.game.is_zero_sum()) {
            for (seat, reward) in rewards.iter().enumerate().filter(|(_, reward)| **reward != 0.0) {
                episode.accounts.pay(Seat::at(seat), "outcome", *reward);
            }
        } else if self.seats.len() == 1 {
            if self.game.is_solved() {
                episode.accounts.pay(Seat::FIRST, "success", 1.0);
            }
        } else {
            // What each of a team wins is what each of the other loses, times how many there are: in eighths, so that
            // the sum is exact.
            let winners = rewards.iter().filter(|reward| **reward > 0.0).count() as f64;
            let losers = rewards.iter().filter(|reward| **reward < 0.0).count() as f64;
            for (seat, reward) in rewards.iter().enumerate().filter(|(_, reward)| **reward != 0.0) {
                let share = if *reward > 0.0 { losers / 8.0 } else { -winners / 8.0 };
                episode.accounts.pay(Seat::at(seat), "outcome", share);
            }
        }
    }

    fn take_rewards(&mut self, seat: Seat) -> Vec<RewardPart> {
        self.episode.as_mut().map(|episode| episode.accounts.take(seat)).unwrap_or_default()
    }

    fn is_success(&self, seat: Seat) -> bool {
        match self.has_seats() {
            true => self.game.rewards().is_some_and(|rewards| rewards[seat.index()] > 0.0),
            false => self.game.is_solved(),
        }
    }

    /// What a seat has not seen yet.
    fn observe(&mut self, seat: Seat) -> Observation {
        let player = seat.index();
        let (mut text, mut board) = (String::new(), None);
        for message in self.game.unread(player) {
            if !text.is_empty() {
                text.push('\n');
            }
            match message.from {
                None => text.push_str("[GAME] "),
                Some(other) => {
                    text.push_str("[Player ");
                    text.push_str(&other.to_string());
                    text.push_str("] ");
                }
            }
            text.push_str(message.text);
            if message.kind == MessageKind::Board {
                board = Some(message.text.to_owned());
            }
        }
        self.game.mark_read(player);
        if let Some(reason) = self.game.reason() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str("[GAME] ");
            text.push_str(reason);
        }
        let is_to_move = self.game.to_move() == Some(player);
        let mut legal = match is_to_move {
            true => self.game.legal(),
            false => Some(Vec::new()),
        };
        if let Some(legal) = &mut legal {
            legal.sort_unstable();
        }
        let admissible: Option<Arc<[Arc<str>]>> =
            legal.map(|legal| legal.into_iter().map(Arc::from).collect());
        let state_key = self.key(player, &text, board);
        Observation { state_key, text, admissible, ..Observation::default() }
    }

    /// The name of the situation: the board, where that tells all, else all that the seat has seen, as a hash.
    fn key(&mut self, player: usize, text: &str, board: Option<String>) -> String {
        let Some(episode) = &mut self.episode else { return String::new() };
        let key = &mut episode.keys[player];
        match board {
            Some(board) if self.game.row().open.board_tells_all => *key = board,
            None if self.game.row().open.board_tells_all => {}
            _ => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(key.as_bytes());
                hasher.update(text.as_bytes());
                *key = hasher.finalize().to_hex()[..16].to_owned();
            }
        }
        key.clone()
    }

    fn started(&self, call: &'static str) -> Result<Seat, EnvironmentError> {
        if self.episode.is_none() {
            return Err(EnvironmentError::Misused { call, when: "before reset" });
        }
        let seat = self.game.to_move().map(Seat::at);
        seat.ok_or(EnvironmentError::Misused { call, when: "after the end" })
    }
}

fn seat(player: usize) -> SeatSpec {
    SeatSpec {
        name: format!("player-{player}").into(),
        about: format!("Who plays as Player {player}.").into(),
        player: SeatSpec::SELF.into(),
    }
}

/// An action as TextArena's wrapper passes it on.
fn in_brackets(said: &str) -> String {
    if said.len() > MAX_ACTION_BYTES {
        return String::new();
    }
    match said.contains(['[', ']']) {
        true => said.to_owned(),
        false => format!("[{said}]"),
    }
}

#[async_trait]
impl Environment for TextGame {
    fn name(&self) -> &'static str {
        self.game.row().name
    }

    fn tags(&self) -> Vec<String> {
        let has_chance = self.game.row().open.has_chance;
        has_chance.then(|| CHANCE_TAG.to_owned()).into_iter().collect()
    }

    fn seats(&self) -> &[SeatSpec] {
        &self.seats
    }

    fn is_zero_sum(&self) -> bool {
        self.game.is_zero_sum() || (self.has_seats() && self.rewards == Rewards::Success)
    }

    fn to_move(&self) -> Option<Seat> {
        match &self.episode {
            Some(_) => self.game.to_move().map(Seat::at),
            None => Some(Seat::FIRST),
        }
    }

    fn takes_any_words(&self) -> bool {
        self.game.row().open.takes_any_words
    }

    /// As the package does: a move stands in brackets wherever it is said.
    fn reads_whole_answers(&self) -> bool {
        true
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        self.game.begin(self.seed);
        self.episode = Some(Episode {
            seed,
            accounts: SeatAccounts::new(self.seats.len()),
            is_paid: false,
            keys: vec![String::new(); self.seats.len()],
        });
        let seat = self.game.to_move().map_or(Seat::FIRST, Seat::at);
        Ok(self.observe(seat))
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let seat = self.started("step")?;
        let said = in_brackets(action.said());
        let valid = self.game.act(&said).is_ok_and(|is_valid| is_valid);
        self.pay();
        Ok(Step {
            observation: self.observe(seat),
            rewards: self.take_rewards(seat),
            terminated: self.game.is_over(),
            success: self.is_success(seat),
            valid,
            wall_time: start.elapsed(),
        })
    }

    fn told(&mut self, seat: Seat) -> Told {
        if self.episode.is_none() || seat.index() >= self.seats.len() {
            return Told::default();
        }
        Told {
            observation: self.observe(seat),
            rewards: self.take_rewards(seat),
            success: self.is_success(seat),
        }
    }

    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        if self.episode.is_some() && self.has_seats() {
            self.game.forfeit(seat.index());
            self.pay();
        }
        Ok(())
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.episode.as_ref()?;
        self.game.clone().oracle().map(Action::from)
    }

    fn expert_action(&mut self) -> Option<Action> {
        let episode = self.episode.as_ref()?;
        let player = self.players.get(self.game.to_move()?)?;
        let action = match player {
            Some(player) => {
                player.choose(&self.game, episode.seed.derive("player", self.game.turn()))
            }
            None => {
                let luck = episode.seed.derive("luck", self.game.turn()).as_u64() >> 11;
                self.game.expert_with(luck as f64 / (1_u64 << 53) as f64)
            }
        };
        action.map(Action::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn game(name: &str, parameters: Value) -> TextGame {
        TextGame::open(&crate::test_task(name, parameters)).unwrap()
    }

    #[tokio::test]
    async fn solving_pays_one_and_a_step_behind_the_end_is_refused() {
        let mut env =
            game("tower-of-hanoi", json!({ "seed": 1, "num_disks": 1, "one_move": true }));
        let first = env.reset(Seed::from_u64(1)).await.unwrap();
        assert!(first.text.starts_with("[GAME] You are playing Tower of Hanoi with 1 disks."));
        assert_eq!(first.admissible.as_deref().map(<[_]>::len), Some(2));
        let step = env.step(&"[A B] [B C]".into()).await.unwrap();
        assert!(!step.valid && step.rewards.is_empty(), "one move in an answer");
        let step = env.step(&"A C".into()).await.unwrap();
        assert!(step.terminated && step.success && step.reward() == 1.0);
        assert!(env.step(&"[C A]".into()).await.is_err());
    }

    #[tokio::test]
    async fn the_package_pays_for_parts_where_that_is_asked_for() {
        for (rewards, wanted) in [("success", 0.0), ("package", 1.0 - 9.0 / 19.0)] {
            let parameters = json!({ "seed": 4, "rewards": rewards });
            let mut env = game("guess-the-number", parameters);
            env.reset(Seed::from_u64(1)).await.unwrap();
            let number: i64 =
                env.oracle_action().unwrap().said().trim_matches(['[', ']']).parse().unwrap();
            assert_eq!(number, 10, "halving begins in the middle");
            let mut last = None;
            for guess in ["[17]", "[0]", "[0]"] {
                last = Some(env.step(&guess.into()).await.unwrap());
            }
            let last = last.unwrap();
            assert!(last.terminated && !last.success);
            assert!((last.reward() - wanted).abs() < 1e-12, "{rewards}: {}", last.reward());
        }
    }

    #[tokio::test]
    async fn nobody_hears_a_giant_answer() {
        let mut env = game("nim", json!({ "seed": 4 }));
        env.reset(Seed::from_u64(1)).await.unwrap();
        let step = env.step(&Action::from("[0 1]".repeat(1 << 20))).await.unwrap();
        assert!(!step.valid && !step.terminated && step.observation.text.len() < 1000);
        let step = env.step(&"[0 1]".into()).await.unwrap();
        assert!(step.valid && env.told(Seat(1)).observation.text.len() < 2000);
    }

    #[tokio::test]
    async fn what_teams_earn_adds_up_to_nothing() {
        let mut env = game("secret-mafia", json!({ "seed": 2, "discussion_rounds": 1 }));
        env.reset(Seed::from_u64(1)).await.unwrap();
        let mut sum = 0.0;
        while let Some(action) = env.expert_action() {
            let step = env.step(&action).await.unwrap();
            sum += step.reward();
        }
        for seat in 0..6 {
            sum += env.told(Seat(seat)).rewards.iter().map(|part| part.value).sum::<f64>();
        }
        assert!(env.to_move().is_none() && sum == 0.0);
    }

    #[tokio::test]
    async fn experts_are_whom_the_task_names() {
        let parameters = json!({ "seed": 2, "players": ["minimax", "random"] });
        let mut env = game("nim", parameters);
        env.reset(Seed::from_u64(1)).await.unwrap();
        while let Some(action) = env.expert_action() {
            assert!(env.step(&action).await.unwrap().valid);
        }
        assert!(env.is_success(Seat(0)));
        for (name, parameters) in [
            ("nim", json!({ "seed": 1, "players": ["minimax"] })),
            ("nim", json!({ "seed": 1, "players": ["minimax", "chess"] })),
            ("wordle", json!({ "seed": 1, "players": ["random"] })),
            ("wordle", json!({ "seed": 1, "rewards": "all" })),
            ("wordle", json!({ "word_length": 5 })),
        ] {
            assert!(TextGame::open(&crate::test_task(name, parameters)).is_err());
        }
    }
}
