//! Steps a second of every game, and nanoseconds of a fork: `cargo bench -p spar-games --bench steps`.
//!
//! A game is played over and over by moves that were chosen before the clock starts: those of the game's good player, for
//! so many seeds. A step is an action with everything that it tells to all players, which is looked at and marked as
//! read; games begin as copies of such as were begun before. Seconds are those that the process has computed. `benches/compare_textarena.py` reads the lines and plays TextArena beside them.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spar_games::{GAMES, Game};

const SEEDS: u64 = 8;
const MAX_STEPS: usize = 200;
/// For each game, so that all are done within half a minute.
const TIME: Duration = Duration::from_millis(700);
/// Times that all are played between two looks at the clock, each of which takes as long as dozens of steps.
const ROUNDS: u32 = 32;

/// Settings under which a game is not too long to be solved beforehand.
fn settings(name: &str) -> Value {
    match name {
        "fifteen-puzzle" => json!({ "scramble": 20 }),
        "game-2048" => json!({ "target_tile": 64 }),
        _ => json!({}),
    }
}

fn main() {
    // `cargo test --benches` only wants to see it run.
    let is_test = std::env::args().any(|it| it == "--test");
    let (time, rounds) = if is_test { (Duration::ZERO, 1) } else { (TIME, ROUNDS) };
    println!("{:<18} {:>12} {:>10} {:>10}", "game", "steps/s", "ns/step", "ns/fork");
    for row in GAMES {
        let origin = Game::open(row.name, &settings(row.name)).expect("settings of the game");
        let episodes: Vec<(Game, Vec<String>)> =
            (0..SEEDS).map(|seed| moves(&origin, seed)).collect();
        let mut game = origin.clone();
        let mut middle = None;
        let mut steps = 0_u64;
        let start = cpu_time();
        while steps == 0 || cpu_time() - start < time {
            for (begun, actions) in (0..rounds).flat_map(|_| &episodes) {
                game.clone_from(begun);
                for (number, action) in actions.iter().enumerate() {
                    black_box(game.act(action).expect("the game goes as it went"));
                    for player in 0..game.num_players() {
                        for message in game.unread(player) {
                            black_box(message.text.len());
                        }
                        game.mark_read(player);
                    }
                    if middle.is_none() && number * 2 >= actions.len() {
                        middle = Some(game.clone());
                    }
                }
                steps += actions.len() as u64;
            }
        }
        let seconds = (cpu_time() - start).as_secs_f64();
        let middle = middle.expect("episodes have a middle");
        let mut forks = 0_u64;
        let start = cpu_time();
        while forks == 0 || cpu_time() - start < time / 4 {
            for _ in 0..256 {
                black_box(middle.clone());
            }
            forks += 256;
        }
        let of_fork = (cpu_time() - start).as_nanos() as f64 / forks as f64;
        let per_second = steps as f64 / seconds;
        println!("{:<18} {per_second:>12.0} {:>10.0} {of_fork:>10.0}", row.name, 1e9 / per_second);
    }
}

/// The time that this process has computed, which others on the machine do not lengthen; where Linux does not tell, the
/// time that has passed.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// The moves of a game's good player.
fn moves(origin: &Game, seed: u64) -> (Game, Vec<String>) {
    let mut game = origin.clone();
    game.begin(seed);
    (0..game.num_players()).for_each(|player| game.mark_read(player));
    let begun = game.clone();
    let mut actions = Vec::new();
    while actions.len() < MAX_STEPS
        && let Some(action) = game.expert_with((actions.len() % 7) as f64 / 7.0)
    {
        game.act(&action).expect("the game is under way");
        actions.push(action);
    }
    (begun, actions)
}
