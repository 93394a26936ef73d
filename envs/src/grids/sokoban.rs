//! Sokoban.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use spar_grids::sokoban::{Move, Room, Rules, generate, solve};
use spar_tasks::Task;

use super::world_environment::{Acted, GridWorld};
use super::{WorldEnvironment, parameters, refused};
use crate::EnvironmentError;
use crate::environment::SCORED_TAG;

/// Arrangements of boxes that the oracle looks at.
const MAX_STATES: usize = 200_000;
const DIM_RANGE: &str = "5 to 15";

/// A room of Sokoban, drawn as TextArena does: `#` wall, `_` floor, `O` empty target, `√` box on a target, `X` other box, `P` player.
///
/// Parameters: `rules` (`textarena`, the default, or `gym`), `size` or `rows` and `columns` (5 to 15, default 6), `boxes` (1 to 7,
/// default 1), `max_moves` (1 to 1000, default 120) and `seed`. Under `textarena`, a move that leads nowhere is none, a solved room earns 1
/// and one that is not solved in time nothing; under `gym` every listed move counts, and rewards are gym-sokoban's: -0.1 each step, 1
/// for a box that comes to a target, -1 for one that leaves it, 10 for the last.
#[derive(Clone)]
pub(crate) struct Sokoban {
    room: Room,
    rules: Rules,
    num_moves: u32,
    max_moves: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    #[serde(default)]
    rules: RuleName,
    size: Option<usize>,
    rows: Option<usize>,
    columns: Option<usize>,
    #[serde(default = "one")]
    boxes: usize,
    #[serde(default = "gym_moves")]
    max_moves: u32,
    seed: u64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleName {
    #[default]
    TextArena,
    Gym,
}

fn one() -> usize {
    1
}

fn gym_moves() -> u32 {
    120
}

/// Sorted, as what is admissible has to be: by set of moves.
static ACTIONS: LazyLock<Vec<Arc<[Arc<str>]>>> = LazyLock::new(|| {
    (0..16_usize)
        .map(|set| {
            let of = |number: &usize| set >> number & 1 == 1;
            let mut words: Vec<Arc<str>> =
                (0..4).filter(of).map(|number| Move::ALL[number].word().into()).collect();
            words.sort();
            words.into()
        })
        .collect()
});

impl Sokoban {
    /// Makes the room of a task.
    pub(crate) fn open(task: &Task) -> Result<WorldEnvironment<Self>, EnvironmentError> {
        let given: Parameters = parameters(task, Self::NAME)?;
        let refuse = |detail: String| refused(task, Self::NAME, detail);
        let (rows, columns) = match (given.size, given.rows, given.columns) {
            (None, None, None) => (6, 6),
            (Some(size), None, None) => (size, size),
            (None, Some(rows), Some(columns)) => (rows, columns),
            _ => {
                let allowed = format!("give `size`, or `rows` and `columns`, of {DIM_RANGE}");
                return Err(refuse(allowed));
            }
        };
        if !(1..=1000).contains(&given.max_moves) {
            let found = given.max_moves;
            return Err(refuse(format!("`max_moves` is {found}, allowed are 1 to 1000")));
        }
        let rules = match given.rules {
            RuleName::TextArena => Rules::TextArena,
            RuleName::Gym => Rules::Gym,
        };
        let room = generate(rules, rows, columns, given.boxes, given.seed)
            .map_err(|error| refuse(error.to_string()))?;
        let max_moves = given.max_moves;
        Ok(WorldEnvironment::new(Self { room, rules, num_moves: 0, max_moves }))
    }
}

impl GridWorld for Sokoban {
    const NAME: &'static str = "sokoban";
    const IS_OPEN: bool = true;
    const TELLS_GOAL: bool = false;

    fn tags(&self) -> Vec<String> {
        let (rows, columns) = self.room.size();
        let mut tags = vec![format!("{rows}x{columns}, boxes {}", self.room.num_boxes())];
        if self.rules == Rules::Gym {
            tags.push(SCORED_TAG.to_owned());
        }
        tags
    }

    fn instruction(&self) -> Arc<str> {
        "push every box X onto a target O".into()
    }

    fn text(&self) -> String {
        self.room.draw(self.rules == Rules::Gym)
    }

    fn actions(&self) -> Arc<[Arc<str>]> {
        let can = |number: &usize| self.rules == Rules::Gym || self.room.can(Move::ALL[*number]);
        let set = (0..4).filter(can).fold(0, |set, number| set | 1 << number);
        Arc::clone(&ACTIONS[set])
    }

    fn act(&mut self, words: &str) -> Option<Acted> {
        let way = Move::from_word(words)?;
        if self.rules == Rules::TextArena && !self.room.can(way) {
            return None;
        }
        let before = self.room.num_on_target();
        self.room.step(way);
        self.num_moves += 1;
        let success = self.room.is_solved();
        let is_stuck = self.actions().is_empty();
        let mut acted = Acted {
            is_over: success || self.num_moves >= self.max_moves || is_stuck,
            success,
            ..Acted::default()
        };
        match self.rules {
            Rules::TextArena => acted.earn("success", f64::from(u8::from(success))),
            Rules::Gym => {
                acted.earn("step", -0.1);
                let change = self.room.num_on_target() as f64 - before as f64;
                acted.earn("boxes", change);
                acted.earn("success", if success { 10.0 } else { 0.0 });
            }
        }
        Some(acted)
    }

    fn plan(&self) -> Option<Vec<Arc<str>>> {
        let moves = solve(&self.room, MAX_STATES)?;
        Some(moves.into_iter().map(|way| way.word().into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::Seed;

    use super::*;
    use crate::{Environment, test_task};

    async fn reward(parameters: serde_json::Value) -> (f64, u32) {
        let mut env = Sokoban::open(&test_task(Sokoban::NAME, parameters)).unwrap();
        env.reset(Seed::from_u64(1)).await.unwrap();
        let (mut sum, mut steps) = (0.0, 0);
        loop {
            let action = env.oracle_action().unwrap();
            let step = env.step(&action).await.unwrap();
            (sum, steps) = (sum + step.reward(), steps + 1);
            if step.terminated {
                assert!(step.success);
                return (sum, steps);
            }
        }
    }

    #[tokio::test]
    async fn rewards_are_those_of_the_rules() {
        assert_eq!(reward(json!({ "seed": 2, "boxes": 2 })).await.0, 1.0);
        let (sum, steps) = reward(json!({ "seed": 2, "boxes": 2, "rules": "gym" })).await;
        assert!((sum - (12.0 - 0.1 * f64::from(steps))).abs() < 1e-9, "{sum} in {steps}");
    }

    #[tokio::test]
    async fn a_move_into_a_wall_is_none_for_textarena_and_a_step_for_gym() {
        for (rules, is_valid) in [("textarena", false), ("gym", true)] {
            let mut env =
                Sokoban::open(&test_task("sokoban", json!({ "seed": 1, "rules": rules }))).unwrap();
            let first = env.reset(Seed::from_u64(1)).await.unwrap();
            let listed = first.admissible.unwrap();
            let room = env.start_of_test().room.clone();
            let blocked = Move::ALL.into_iter().find(|way| !room.can(*way));
            let Some(blocked) = blocked else { continue };
            assert_eq!(listed.iter().any(|it| **it == *blocked.word()), is_valid);
            let step = env.step(&blocked.word().into()).await.unwrap();
            assert_eq!(step.valid, is_valid);
        }
    }

    #[test]
    fn wrong_parameters_are_told() {
        for (parameters, part) in [
            (json!({ "seed": 1, "size": 30 }), "5 to 15"),
            (json!({ "seed": 1, "size": 6, "rows": 6 }), "`columns`"),
            (json!({ "seed": 1, "boxes": 0 }), "1 to 7"),
            (json!({ "seed": 1, "max_moves": 0 }), "1 to 1000"),
            (json!({ "seed": 1, "rules": "own" }), "textarena"),
            (json!({ "seed": 5_000_000_000_u64, "rules": "gym" }), "2^32"),
        ] {
            let error = Sokoban::open(&test_task("sokoban", parameters)).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
