//! New games from a seed, in the format of the real ones.
//!
//! ```text
//!  SceneSet, RoomSize ─▶ layout ─▶ Scene (empty) ─▶ furnish ─▶ Scene + Goal ─▶ Problem ─▶ Game
//!  a real game's Problem ─────────▶ shuffle ──────────────────────┘
//! ```
//!
//! Rooms come in four kinds. Which receptacles stand in them, which objects they hold and where
//! those lie follow the frequencies of ALFWorld's own games; goals and their wordings are theirs.
//! Every room belongs to exactly one [`SceneSet`], whatever seed drew it.

mod export;
mod furnish;
mod goal;
mod layout;
mod object_types;
mod problem_writer;
mod room_objects;
mod rooms;
mod scene;
mod shuffle;

use std::collections::HashSet;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use spar_core::Seed;

pub use export::{export_games, game_file, game_file_under, write_game};
pub use layout::{RoomSize, SceneSet};
pub(crate) use rooms::RoomKind;
pub use shuffle::{grammar_with_task, shuffle_problem};

use super::pddl::Problem;
use super::{HouseholdError, TaskFamily};

/// The rules of generated games, in the dialect of ALFWorld's current ones.
pub const DOMAIN: &str = include_str!("domain.pddl");

/// The texts of generated games; the task's words stand in place of `{TASK}`.
const GRAMMAR: &str = include_str!("grammar.twl2");

/// Which games to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GameOptions {
    /// The rooms they are set in.
    pub scenes: SceneSet,
    /// How much stands in a room.
    pub size: RoomSize,
    /// The family of their tasks; any, as often as in ALFWorld's training games, when absent.
    pub family: Option<TaskFamily>,
}

/// A game before the engine has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGame<'a> {
    /// Things, initial facts and goal.
    pub problem: Problem<'a>,
    /// The demand in words, such as `heat some apple and put it in fridge`.
    pub task: String,
    /// The family of the task.
    pub family: TaskFamily,
}

/// The grammar of generated games with this demand.
pub fn grammar_for(task: &str) -> String {
    GRAMMAR.replace("{TASK}", task)
}

/// Rooms that are tried for one game. Where options allow any game at all, far fewer do.
const ATTEMPTS: u32 = 1_000;
/// Rooms that are tried to find out what is possible.
const TRIALS: u32 = 32;

/// Generates the game of a seed; equal seeds and options give equal games.
///
/// ```
/// use spar_core::Seed;
/// use spar_envs::household::generator::{GameOptions, RoomSize, SceneSet, generate};
///
/// let options = GameOptions { scenes: SceneSet::Dev, size: RoomSize::Small, family: None };
/// let game = generate(&options, Seed::from_u64(7))?;
/// assert_eq!(game, generate(&options, Seed::from_u64(7))?);
/// # Ok::<(), spar_envs::household::HouseholdError>(())
/// ```
///
/// # Errors
///
/// [`HouseholdError::NoGame`] where no room of the set and size has a task of the family.
pub fn generate(options: &GameOptions, seed: Seed) -> Result<NewGame<'static>, HouseholdError> {
    try_rooms(options, seed, ATTEMPTS).ok_or_else(|| impossible(options))
}

/// The game in the first of `attempts` rooms that has one.
fn try_rooms(options: &GameOptions, seed: Seed, attempts: u32) -> Option<NewGame<'static>> {
    // Small sizes have few rooms, of which a set may have none: those are looked for once.
    let mut absent: HashSet<(RoomKind, u32)> = HashSet::new();
    for attempt in 0..attempts {
        let mut rng = rng_of(seed, attempt);
        let family = draw_family(options, &mut rng);
        let kind = furnish::draw_room_kind(family, &mut rng);
        let index = rng.random_range(0..options.scenes.num_rooms());
        if absent.contains(&(kind, index)) {
            continue;
        }
        let Some(mut scene) = layout::room(options.scenes, kind, options.size, index) else {
            absent.insert((kind, index));
            continue;
        };
        // A room may lack what the family needs, such as a place for the lamp: then another room.
        if let Some(goal) = furnish::furnish(&mut scene, Some(family), options.size, &mut rng) {
            let name = format!("{}_{}_{index}", options.scenes.name(), kind.name());
            let problem = problem_writer::write_problem(name, &scene, &goal);
            return Some(NewGame { problem, task: goal.text(), family });
        }
    }
    None
}

/// Tells that options allow no game, and which do.
fn impossible(options: &GameOptions) -> HouseholdError {
    let is_possible = |options: GameOptions| {
        let seed = Seed::from_u64(0).derive("household trial", 0);
        try_rooms(&options, seed, TRIALS).is_some()
    };
    let families = TaskFamily::ALL.into_iter().filter(|family| {
        options.family.is_some() && is_possible(GameOptions { family: Some(*family), ..*options })
    });
    let families: Vec<_> = families.map(|family| format!("`{family}`")).collect();
    let size =
        options.size.larger().find(|size| is_possible(GameOptions { size: *size, ..*options }));
    let mut possible = Vec::new();
    if !families.is_empty() {
        possible.push(format!("rooms of this size have tasks of {}", families.join(", ")));
    }
    if let Some(size) = size {
        possible.push(format!("rooms with {} have such a task", size.describe()));
    }
    if possible.is_empty() {
        possible.push("no room has one".to_owned());
    }
    HouseholdError::NoGame {
        family: options.family.map_or("any family".to_owned(), |family| format!("`{family}`")),
        scenes: options.scenes.name(),
        size: options.size.describe(),
        possible: possible.join("; "),
    }
}

/// The family that [`generate`] tries first for a seed.
pub(super) fn likely_family(options: &GameOptions, seed: Seed) -> TaskFamily {
    draw_family(options, &mut rng_of(seed, 0))
}

fn rng_of(seed: Seed, attempt: u32) -> impl Rng {
    seed.derive("household game", attempt).rng()
}

fn draw_family(options: &GameOptions, rng: &mut impl Rng) -> TaskFamily {
    let drawn = TaskFamily::ALL.choose_weighted(rng, |family| goal::weight(*family));
    let drawn = *drawn.expect("families have positive weights");
    options.family.unwrap_or(drawn)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::{Engine, Expert, Game, find_games, oracle};
    use super::*;

    const SETS: [SceneSet; 3] = [SceneSet::Train, SceneSet::Dev, SceneSet::Unseen];

    fn load(game: &NewGame<'_>) -> Arc<Game> {
        Game::from_parts("generated", &game_file(game)).unwrap()
    }

    /// Commands the expert needs, at most 50.
    fn play_expert(game: Arc<Game>) -> Option<usize> {
        let list = |engine: &Engine| -> Vec<Arc<str>> {
            engine.admissible().iter().map(Arc::from).collect()
        };
        let mut engine = Engine::new(game);
        let mut expert = Expert::new(engine.goal_text().trim_end_matches('.'), &list(&engine));
        for turn in 1..=50 {
            let command = expert.action(&list(&engine))?;
            let outcome = engine.step(&command);
            assert!(outcome.executable, "{command}");
            if outcome.won {
                return Some(turn);
            }
            expert.observe(&command, engine.observation(), &list(&engine));
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn equal_seeds_give_equal_games_that_can_be_solved(
            seed: u64,
            set in prop::sample::select(SETS.to_vec()),
            max in 4_u32..60,
            family in prop::option::of(prop::sample::select(TaskFamily::ALL.to_vec())),
        ) {
            let options = GameOptions { scenes: set, size: RoomSize::AtMost(max), family };
            let game = match generate(&options, Seed::from_u64(seed)) {
                Ok(game) => game,
                // No room so small may have what the family needs.
                Err(HouseholdError::NoGame { .. }) if max < 12 => return Ok(()),
                Err(error) => panic!("{error}"),
            };
            prop_assert!(family.is_none_or(|family| family == game.family));
            let again = generate(&options, Seed::from_u64(seed)).unwrap();
            prop_assert_eq!(game_file(&game), game_file(&again));
            let loaded = load(&game);
            prop_assert_eq!(loaded.task_family(), Some(game.family));
            prop_assert_eq!(loaded.goal_text().trim_end_matches('.'), &game.task);
            let shuffled = shuffle_problem(&game.problem, None, Seed::from_u64(seed)).unwrap();
            for loaded in [loaded, load(&shuffled)] {
                let mut engine = Engine::new(loaded);
                prop_assert!(!engine.won());
                prop_assert!(!engine.step("look").won);
                let plan = oracle::solve(&engine).unwrap();
                prop_assert!(plan.len() <= 50);
                for command in &plan {
                    prop_assert!(engine.step(command).executable);
                }
                prop_assert!(engine.won());
            }
        }
    }

    #[test]
    fn the_expert_solves_generated_games() {
        for set in SETS {
            let options = GameOptions { scenes: set, size: RoomSize::Large, family: None };
            let mut turns = Vec::new();
            for seed in 0..60 {
                let game = generate(&options, Seed::from_u64(seed)).unwrap();
                turns.push(play_expert(load(&game)).unwrap_or_else(|| panic!("{set:?} {seed}")));
            }
            let mean = turns.iter().sum::<usize>() as f64 / turns.len() as f64;
            assert!((5.0..12.0).contains(&mean), "{mean}");
        }
    }

    #[test]
    fn the_smallest_rooms_have_games_or_are_refused_with_what_is_possible() {
        for set in SETS {
            for max in 4..=9 {
                let options =
                    GameOptions { scenes: set, size: RoomSize::AtMost(max), family: None };
                let game = generate(&options, Seed::from_u64(1)).unwrap();
                assert_eq!(load(&game).task_family(), Some(game.family));
            }
            // Nothing that a lamp could stand on is left.
            let size = RoomSize::AtMost(2);
            let options =
                GameOptions { scenes: set, size, family: Some(TaskFamily::LookAtObjInLight) };
            let text = generate(&options, Seed::from_u64(1)).unwrap_err().to_string();
            let (what, possible) = text.split_once(": ").unwrap();
            let name = set.name();
            let expected = format!(
                "generate a task of `look_at_obj_in_light` in a room of `{name}` with at most 2 \
                 receptacles"
            );
            assert_eq!(what, expected);
            let told = TaskFamily::ALL
                .into_iter()
                .filter(|family| possible.contains(&format!("`{family}`")));
            for family in told {
                let options = GameOptions { family: Some(family), ..options };
                assert!(generate(&options, Seed::from_u64(2)).is_ok(), "{text}");
            }
            let (_, larger) = possible.split_once("rooms with at most ").unwrap();
            let size: u32 = larger.split_once(' ').unwrap().0.parse().unwrap();
            let options = GameOptions { size: RoomSize::AtMost(size), ..options };
            assert!(generate(&options, Seed::from_u64(2)).is_ok(), "{text}");
        }
    }

    #[test]
    fn games_follow_the_rules_and_the_words_of_another_one() {
        let options = GameOptions { scenes: SceneSet::Train, size: RoomSize::Small, family: None };
        let mut rules = game_file(&generate(&options, Seed::from_u64(1)).unwrap());
        // As in an older release: a type that no room has, and other words.
        let basin = "(receptacleType ?r SinkBasinType)";
        let domain =
            rules.pddl_domain.replace(basin, &format!("(receptacleType ?r SinkType) {basin}"));
        assert_ne!(domain, rules.pddl_domain);
        rules.pddl_domain = domain;
        let grammar = rules.grammar.replace("You arrive at", "You reach");
        assert_ne!(grammar, rules.grammar);
        rules.grammar = grammar;
        for seed in 0..12 {
            let game = generate(&options, Seed::from_u64(seed)).unwrap();
            let (task, family) = (game.task.clone(), game.family);
            let loaded = Game::from_parts("generated", &game_file_under(&rules, game)).unwrap();
            assert_eq!(loaded.task_family(), Some(family));
            let mut engine = Engine::new(Arc::clone(&loaded));
            assert_eq!(engine.goal_text().trim_end_matches('.'), task);
            let first = engine.admissible().iter().find(|command| command.starts_with("go to"));
            let first = first.unwrap().to_string();
            engine.step(&first);
            assert!(engine.observation().starts_with("You reach"), "{}", engine.observation());
            assert!(play_expert(loaded).is_some(), "{task}");
        }
    }

    #[test]
    fn exported_games_are_found_and_load() {
        let folder = tempfile::tempdir().unwrap();
        let options = GameOptions { scenes: SceneSet::Unseen, size: RoomSize::Small, family: None };
        let written = export_games(&options, 3..6, folder.path(), "unseen").unwrap();
        assert_eq!(written.len(), 3);
        assert_eq!(find_games(folder.path()).unwrap().len(), 3);
        for (path, seed) in written.iter().zip(3..) {
            let game = generate(&options, Seed::from_u64(seed)).unwrap();
            assert_eq!(Game::load(path).unwrap().task_family(), Some(game.family));
        }
    }
}
