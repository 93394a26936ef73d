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
mod rooms;
mod scene;
mod shuffle;

use rand::RngExt;
use rand::seq::IndexedRandom;
use spar_core::Seed;

pub use export::{export_games, game_json, write_game};
pub use goal::Family;
pub use layout::{RoomSize, SceneSet};
pub use shuffle::{grammar_with_task, shuffle_problem};

use super::pddl::Problem;

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
    pub family: Option<Family>,
}

/// A game before the engine has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGame<'a> {
    /// Things, initial facts and goal.
    pub problem: Problem<'a>,
    /// The demand in words, such as `heat some apple and put it in fridge`.
    pub task: String,
    /// The family of the task.
    pub family: Family,
}

/// The grammar of generated games with this demand.
pub fn grammar_for(task: &str) -> String {
    GRAMMAR.replace("{TASK}", task)
}

/// Generates the game of a seed; equal seeds and options give equal games.
///
/// ```
/// use spar_core::Seed;
/// use spar_envs::household::generator::{GameOptions, RoomSize, SceneSet, generate};
///
/// let options = GameOptions { scenes: SceneSet::Dev, size: RoomSize::Small, family: None };
/// let game = generate(&options, Seed::from_u64(7));
/// assert_eq!(game, generate(&options, Seed::from_u64(7)));
/// ```
pub fn generate(options: &GameOptions, seed: Seed) -> NewGame<'static> {
    let mut attempt = 0_u32;
    loop {
        let mut rng = seed.derive("household game", attempt).rng();
        let drawn = Family::ALL.choose_weighted(&mut rng, |family| family.weight());
        let drawn = *drawn.expect("families have positive weights");
        let family = options.family.unwrap_or(drawn);
        let kind = furnish::draw_room_kind(family, &mut rng);
        let index = rng.random_range(0..options.scenes.num_rooms());
        let mut scene = layout::room(options.scenes, kind, options.size, index);
        // A room may lack what the family needs, such as a place for the lamp: then another room.
        if let Some(goal) = furnish::furnish(&mut scene, Some(family), options.size, &mut rng) {
            let name = format!("{}_{}_{index}", options.scenes.name(), kind.name());
            let problem = problem_writer::write_problem(name, &scene, &goal);
            return NewGame { problem, task: goal.text(), family };
        }
        attempt += 1;
    }
}
