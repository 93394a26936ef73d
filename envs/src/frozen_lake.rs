//! A frozen lake drawn in text: reach the goal, keep out of the holes.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use rand::{Rng, RngExt};
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step};
use spar_tasks::Task;

use crate::environment::CHANCE_TAG;
use crate::{Environment, EnvironmentError};

const NAME: &str = "frozen-lake";
const SIZES: std::ops::RangeInclusive<usize> = 2..=16;

/// Share of cells that are holes, before maps that cannot be crossed are thrown away.
const HOLE_RATE: f64 = 0.2;

/// A lake of `size` by `size` cells: start in the upper left corner, goal in the lower right one.
///
/// Parameters: `size` (2 to 16, default 4), `slippery` (default false), `seed` (of the map).
/// Every map can be crossed. On slippery ice a move goes astray, as in Gymnasium's `FrozenLake`:
/// one third each for the direction chosen and the two at right angles to it. The slips of an
/// episode derive from the seed given to `reset`.
///
/// All four moves can always be made; one that leads off the lake leaves the player in place.
/// Reaching the goal gives the reward part `goal` = 1, a hole ends the episode with nothing.
#[derive(Debug, Clone)]
pub struct FrozenLake {
    lake: Arc<Lake>,
    episode: Option<Episode>,
    actions: Arc<[Arc<str>]>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    #[serde(default = "default_size")]
    size: usize,
    #[serde(default)]
    slippery: bool,
    seed: u64,
}

fn default_size() -> usize {
    4
}

#[derive(Debug)]
struct Lake {
    size: usize,
    slippery: bool,
    holes: Vec<bool>,
    /// The best move per cell; computed when first asked for.
    best: OnceLock<Vec<Option<Move>>>,
}

#[derive(Debug, Clone)]
struct Episode {
    seed: Seed,
    cell: usize,
    num_moves: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Down,
    Left,
    Right,
    Up,
}

impl Move {
    /// Sorted by name, as the admissible list is.
    const ALL: [Self; 4] = [Self::Down, Self::Left, Self::Right, Self::Up];

    fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Left => "left",
            Self::Right => "right",
            Self::Up => "up",
        }
    }

    /// The two directions at right angles.
    fn sideways(self) -> [Self; 2] {
        match self {
            Self::Down | Self::Up => [Self::Left, Self::Right],
            Self::Left | Self::Right => [Self::Up, Self::Down],
        }
    }
}

impl FrozenLake {
    /// Makes the lake of a task.
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
        let parameters: Parameters =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if !SIZES.contains(&parameters.size) {
            let (found, least, most) = (parameters.size, SIZES.start(), SIZES.end());
            return Err(refuse(format!("`size` is {found}, allowed are {least} to {most}")));
        }
        let lake = Lake::new(
            parameters.size,
            parameters.slippery,
            Seed::from_u64(parameters.seed).derive("frozen-lake", parameters.size),
        );
        let actions = Move::ALL.iter().map(|way| way.name().into()).collect();
        Ok(Self { lake: Arc::new(lake), episode: None, actions })
    }

    fn observe(&self, episode: &Episode) -> Observation {
        let text = self.lake.draw(episode.cell);
        let admissible = (!self.lake.is_end(episode.cell)).then(|| self.actions.clone());
        let slippery = if self.lake.slippery { "slippery " } else { "" };
        let instruction = format!("cross the {slippery}lake from P to G without stepping into H");
        Observation {
            state_key: text.clone(),
            text,
            instruction: (episode.num_moves == 0).then(|| instruction.into()),
            admissible: Some(admissible.unwrap_or_default()),
            ..Observation::default()
        }
    }
}

#[async_trait]
impl Environment for FrozenLake {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        if self.lake.slippery {
            vec!["slippery".to_owned(), CHANCE_TAG.to_owned()]
        } else {
            vec!["firm".to_owned()]
        }
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        let episode = Episode { seed, cell: 0, num_moves: 0 };
        let observation = self.observe(&episode);
        self.episode = Some(episode);
        Ok(observation)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let Some(mut episode) = self.episode.take() else {
            return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
        };
        let chosen = Move::ALL.into_iter().find(|way| way.name() == action.said().trim());
        if self.lake.is_end(episode.cell) {
            self.episode = Some(episode);
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        let valid = chosen.is_some();
        if let Some(chosen) = chosen {
            let mut way = chosen;
            if self.lake.slippery {
                // Derived per move, so that a fork slips as its origin does.
                let mut rng = episode.seed.derive("slip", episode.num_moves).rng();
                let [left, right] = chosen.sideways();
                way = [chosen, left, right][rng.random_range(0..3)];
            }
            episode.cell = self.lake.neighbour(episode.cell, way);
            episode.num_moves += 1;
        }
        let success = self.lake.is_goal(episode.cell);
        let mut observation = self.observe(&episode);
        observation.instruction = None;
        if !valid {
            observation.text = "Nothing happens.".to_owned();
        }
        let mut rewards = Vec::new();
        if success {
            rewards.push(RewardPart { name: "goal".to_owned(), value: 1.0 });
        }
        let terminated = self.lake.is_end(episode.cell);
        self.episode = Some(episode);
        let wall_time = start.elapsed();
        Ok(Step { observation, rewards, terminated, success, valid, wall_time })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let episode = self.episode.as_ref()?;
        self.lake.best_move(episode.cell).map(|way| way.name().into())
    }

    fn expert_action(&mut self) -> Option<Action> {
        // The whole lake is in view, so knowing it is no advantage.
        self.oracle_action()
    }
}

impl Lake {
    fn new(size: usize, slippery: bool, seed: Seed) -> Self {
        let mut rng = seed.rng();
        for _ in 0..1_000 {
            let lake = Self::draw_lots(size, slippery, &mut rng);
            if lake.can_be_crossed() {
                return lake;
            }
        }
        let holes = vec![false; size * size];
        Self { size, slippery, holes, best: OnceLock::new() }
    }

    fn draw_lots(size: usize, slippery: bool, rng: &mut impl Rng) -> Self {
        let last = size * size - 1;
        let holes = (0..=last)
            .map(|cell| rng.random_bool(HOLE_RATE) && cell != 0 && cell != last)
            .collect();
        Self { size, slippery, holes, best: OnceLock::new() }
    }

    fn is_goal(&self, cell: usize) -> bool {
        cell == self.size * self.size - 1
    }

    fn is_end(&self, cell: usize) -> bool {
        self.is_goal(cell) || self.holes[cell]
    }

    fn neighbour(&self, cell: usize, way: Move) -> usize {
        let (row, column) = (cell / self.size, cell % self.size);
        let last = self.size - 1;
        let (row, column) = match way {
            Move::Down => (last.min(row + 1), column),
            Move::Up => (row.saturating_sub(1), column),
            Move::Right => (row, last.min(column + 1)),
            Move::Left => (row, column.saturating_sub(1)),
        };
        row * self.size + column
    }

    fn can_be_crossed(&self) -> bool {
        let mut seen = vec![false; self.holes.len()];
        let mut open = vec![0];
        while let Some(cell) = open.pop() {
            if self.is_goal(cell) {
                return true;
            }
            if !seen[cell] && !self.holes[cell] {
                seen[cell] = true;
                open.extend(Move::ALL.map(|way| self.neighbour(cell, way)));
            }
        }
        false
    }

    fn draw(&self, player: usize) -> String {
        let mut text = String::with_capacity(self.holes.len() * 2 + 40);
        for cell in 0..self.holes.len() {
            let letter = match (cell == player, self.holes[cell], self.is_goal(cell)) {
                (true, true, _) => 'X',
                (true, ..) => 'P',
                (_, true, _) => 'H',
                (.., true) => 'G',
                _ => '.',
            };
            let end = if (cell + 1) % self.size == 0 { '\n' } else { ' ' };
            // Writing into a string cannot fail.
            let _ = write!(text, "{letter}{end}");
        }
        let verdict = if self.is_goal(player) {
            "You have reached the goal."
        } else if self.holes[player] {
            "You have fallen into a hole."
        } else {
            "You are at P."
        };
        text.push_str(verdict);
        text
    }

    fn best_move(&self, cell: usize) -> Option<Move> {
        self.best.get_or_init(|| self.solve())[cell]
    }

    /// Value iteration for the chance of reaching the goal, discounted by a little per move so
    /// that of two ways equally safe the shorter one is better.
    fn solve(&self) -> Vec<Option<Move>> {
        const DISCOUNT: f64 = 0.999;
        let num_cells = self.holes.len();
        let mut values = vec![0.0_f64; num_cells];
        values[num_cells - 1] = 1.0;
        let worth = |values: &[f64], cell: usize, way: Move| {
            let at = |way| values[self.neighbour(cell, way)];
            let [left, right] = way.sideways();
            let expected =
                if self.slippery { (at(way) + at(left) + at(right)) / 3.0 } else { at(way) };
            DISCOUNT * expected
        };
        for _ in 0..10_000 {
            let mut change = 0.0_f64;
            for cell in 0..num_cells {
                if !self.is_end(cell) {
                    let best = Move::ALL.map(|way| worth(&values, cell, way));
                    let best = best.into_iter().fold(0.0, f64::max);
                    change = change.max((best - values[cell]).abs());
                    values[cell] = best;
                }
            }
            if change < 1e-10 {
                break;
            }
        }
        let choose = |cell: usize| {
            let mut best = None;
            for way in Move::ALL {
                let value = worth(&values, cell, way);
                if value > best.map_or(0.0, |(_, value)| value) {
                    best = Some((way, value));
                }
            }
            best.map(|(way, _)| way)
        };
        (0..num_cells).map(|cell| if self.is_end(cell) { None } else { choose(cell) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn task(parameters: serde_json::Value) -> Task {
        Task {
            id: "test".to_owned(),
            environment: NAME.to_owned(),
            parameters,
            instruction: String::new(),
            max_turns: 30,
            tags: Vec::new(),
            graders: Vec::new(),
        }
    }

    fn play_oracle(lake: &mut FrozenLake, episode: u64) -> (bool, usize) {
        block_on(lake.reset(Seed::from_u64(episode))).unwrap();
        for turn in 0..200 {
            let Some(action) = lake.oracle_action() else { return (false, turn) };
            let step = block_on(lake.step(&action)).unwrap();
            if step.terminated {
                return (step.success, turn + 1);
            }
        }
        (false, 200)
    }

    proptest! {
        #[test]
        fn the_oracle_crosses_every_firm_lake(seed: u64, size in SIZES) {
            let mut lake = FrozenLake::open(&task(json!({ "seed": seed, "size": size }))).unwrap();
            let (success, num_moves) = play_oracle(&mut lake, 0);
            prop_assert!(success);
            prop_assert!(num_moves <= size * size);
        }
    }

    #[test]
    fn the_oracle_crosses_most_slippery_lakes() {
        let success = (0..200)
            .filter(|seed| {
                let parameters = json!({ "seed": seed, "slippery": true });
                play_oracle(&mut FrozenLake::open(&task(parameters)).unwrap(), *seed).0
            })
            .count();
        assert!(success > 100, "{success} of 200");
    }

    #[test]
    fn equal_seeds_slip_alike() {
        let mut lake = FrozenLake::open(&task(json!({ "seed": 3, "slippery": true }))).unwrap();
        let mut play = || {
            let mut texts = vec![block_on(lake.reset(Seed::from_u64(1))).unwrap().text];
            for action in ["right", "down", "up", "left", "right"] {
                texts.push(block_on(lake.step(&action.into())).unwrap().observation.text);
            }
            texts
        };
        assert_eq!(play(), play());
    }

    #[test]
    fn an_unknown_move_changes_nothing() {
        let mut lake = FrozenLake::open(&task(json!({ "seed": 3 }))).unwrap();
        let before = block_on(lake.reset(Seed::from_u64(1))).unwrap();
        let step = block_on(lake.step(&"jump".into())).unwrap();
        assert!(!step.valid && !step.terminated && step.rewards.is_empty());
        assert_eq!(step.observation.text, "Nothing happens.");
        assert_eq!(step.observation.state_key, before.state_key);
    }

    #[test]
    fn parameters_are_strict() {
        let error = FrozenLake::open(&task(json!({ "seed": 3, "sise": 4 }))).unwrap_err();
        let detail = error.to_string();
        assert!(detail.contains("`sise`") && detail.contains("`size`"), "{detail}");
        assert!(FrozenLake::open(&task(json!({ "seed": 3, "size": 1 }))).is_err());
        assert!(FrozenLake::open(&task(json!({ "size": 4 }))).is_err());
    }
}
