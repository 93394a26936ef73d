//! Prints the table of docs/games.md: what games are, and how often simple players solve the tasks of their suites.
//!
//! `cargo run --release -p spar-games --example baselines [-- TASKS]`, from the root of the repository.

use serde_json::{Map, Value};
use spar_core::Seed;
use spar_games::{GAMES, Game, RulePlayer};

/// Who plays.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Nothing,
    Random,
    Expert,
    Oracle,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tasks: u64 = std::env::args().nth(1).map_or(Ok(100), |tasks| tasks.parse())?;
    println!(
        "| game | settings | pays in TextArena | by rules | equal to | nothing | random | expert | oracle |"
    );
    println!("| --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: |");
    for row in GAMES {
        let path = format!("tasks/suites/{}/suite.toml", row.name);
        let suite: toml::Table = std::fs::read_to_string(&path)?.parse()?;
        let of_test = suite["splits"]["test"].clone();
        let most = suite["max_turns"].as_integer().unwrap_or(50) as u32;
        let first = of_test["first_seed"].as_integer().unwrap_or_default() as u64;
        let settings = of_test["parameters"].as_table().ok_or("parameters are a table")?;
        let settings: Map<String, Value> =
            settings.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
        let game = Game::open(row.name, &settings.into())?;
        let mut cells = Vec::new();
        for by in [By::Nothing, By::Random, By::Expert, By::Oracle] {
            let solved = (first..first + tasks).filter(|seed| is_solved(&game, *seed, by, most));
            cells.push(format!("{:.0} %", 100.0 * solved.count() as f64 / tasks as f64));
        }
        let open = &row.open;
        println!(
            "| `{}` | {} | {} | {} | {} | {} |",
            row.name,
            open.settings,
            open.rewards,
            open.players,
            open.equal_to,
            cells.join(" | ")
        );
    }
    Ok(())
}

/// A setting as JSON has it: numbers, truth values and texts.
fn plain(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(is) => (*is).into(),
        toml::Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().into(),
        other => other.as_str().unwrap_or_default().into(),
    }
}

/// Whether a player solves a task within its turns; of several who play, whether the first wins, with experts at the other
/// seats.
fn is_solved(game: &Game, seed: u64, by: By, most: u32) -> bool {
    let mut game = game.clone();
    game.begin(seed);
    let seats = game.num_players() as u32;
    for turn in 0..most * seats {
        let Some(player) = game.to_move() else { break };
        let seed = Seed::from_u64(seed).derive("move", turn);
        let luck = (seed.derive("luck", 0).as_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let by = if player == 0 { by } else { By::Expert };
        let action = match by {
            By::Nothing => Some("[do nothing at all]".to_owned()),
            // Where no moves are listed, chance says nothing that is one.
            By::Random => RulePlayer::Random.choose(&game, seed).or(Some("[look]".to_owned())),
            By::Expert => game.expert_with(luck),
            By::Oracle => game.oracle(),
        };
        let Some(action) = action else { break };
        if game.act(&action).is_err() {
            break;
        }
        (0..game.num_players()).for_each(|player| game.mark_read(player));
    }
    match seats {
        1 => game.is_solved(),
        _ => game.rewards().is_some_and(|rewards| rewards[0] > 0.0),
    }
}
