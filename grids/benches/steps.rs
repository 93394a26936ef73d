//! Steps a second, of one core, and what resets and forks cost.
//!
//! ```sh
//! cargo bench -p spar-grids --bench steps            # a table
//! cargo bench -p spar-grids --bench steps -- --json  # a line of JSON a level, for benches/compare_minigrid.py
//! ```
//!
//! Of MiniGrid, steps are those of a player who draws actions, each with what is seen afterwards as codes, as the package has it; an episode that is
//! over is begun again with the next seed, which is part of the time. Of the others, steps are moves with the text that is shown.

use std::hint::black_box;
use std::time::{Duration, Instant};

use spar_grids::maze::{Settings, Way};
use spar_grids::minigrid::{Action, Episode, Level, describe};
use spar_grids::sokoban::{Move, Rules};

const LEVELS: [&str; 8] = [
    "MiniGrid-Empty-8x8-v0",
    "MiniGrid-DoorKey-8x8-v0",
    "MiniGrid-Dynamic-Obstacles-8x8-v0",
    "MiniGrid-MultiRoom-N6-v0",
    "MiniGrid-ObstructedMaze-Full-v1",
    "BabyAI-GoToLocal-v0",
    "BabyAI-GoTo-v0",
    "BabyAI-BossLevel-v0",
];
const TIME: Duration = Duration::from_millis(600);

/// Draws numbers for actions: what is measured is not that.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: u64) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % count) as usize
    }
}

/// How often something is done a second.
fn rate(once: impl FnMut()) -> f64 {
    rate_of(64, once)
}

/// As [`rate`], of what takes long enough to look at the time after fewer.
fn rate_of(at_once: u64, mut once: impl FnMut()) -> f64 {
    let (start, mut count) = (Instant::now(), 0_u64);
    while start.elapsed() < TIME {
        (0..at_once).for_each(|_| once());
        count += at_once;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let is_json = std::env::args().any(|argument| argument == "--json");
    if !is_json {
        println!(
            "{:<36} {:>12} {:>12} {:>12} {:>10}",
            "level", "steps/s", "with text/s", "resets/s", "fork ns"
        );
    }
    for name in LEVELS {
        let level = Level::find(name).expect("levels that are measured exist");
        let mut draws = Draws(1);
        let mut seed = 0;
        let mut begin = || loop {
            seed += 1;
            if let Ok((episode, _)) = Episode::new(level, seed) {
                return episode;
            }
        };
        let resets = rate(|| {
            black_box(begin());
        });
        let mut play = |looks: fn(&Episode)| {
            let mut episode = begin();
            rate(|| {
                let outcomes = episode.step(Action::ALL[draws.below(7)]);
                looks(&episode);
                if outcomes.terminated || outcomes.truncated {
                    episode = begin();
                }
            })
        };
        let steps = play(|episode| {
            black_box(episode.view());
        });
        let texts = play(|episode| {
            black_box(describe(episode));
        });
        let episode = begin();
        let fork = 1e9
            / rate(|| {
                black_box(black_box(&episode).clone());
            });
        if is_json {
            println!(
                "{{\"level\":\"{name}\",\"steps\":{steps:.0},\"texts\":{texts:.0},\"resets\":{resets:.0},\"fork_ns\":{fork:.0}}}"
            );
        } else {
            println!("{name:<36} {steps:>12.0} {texts:>12.0} {resets:>12.0} {fork:>10.0}");
        }
    }
    if is_json {
        return;
    }
    let mut draws = Draws(2);
    let room = spar_grids::sokoban::generate(Rules::TextArena, 6, 6, 1, 1).expect("a room");
    let mut playing = room.clone();
    let steps = rate(|| {
        playing.step(Move::ALL[draws.below(4)]);
        black_box(playing.draw(false));
    });
    let fork = 1e9
        / rate(|| {
            black_box(black_box(&room).clone());
        });
    let mut seed = 0;
    let resets = rate(|| {
        seed += 1;
        let _ = black_box(spar_grids::sokoban::generate(Rules::TextArena, 6, 6, 1, seed));
    });
    println!("{:<36} {:>12} {steps:>12.0} {resets:>12.0} {fork:>10.0}", "sokoban 6x6, a box", "");
    let settings = Settings { size: 9, doors: 2, loops: 0.0 };
    let maze = spar_grids::maze::generate(&settings, 1).expect("a maze");
    let mut playing = maze.clone();
    let steps = rate(|| {
        playing.step(Way::ALL[draws.below(4)]);
        black_box(playing.draw(None));
        if playing.is_solved() {
            playing = maze.clone();
        }
    });
    let fork = 1e9
        / rate(|| {
            black_box(black_box(&maze).clone());
        });
    let resets = rate(|| {
        seed += 1;
        let _ = black_box(spar_grids::maze::generate(&settings, seed));
    });
    println!("{:<36} {:>12} {steps:>12.0} {resets:>12.0} {fork:>10.0}", "maze 9x9, two doors", "");
    survival();
}

/// A world of Crafter: steps of a player who draws actions, by day and night, and begins a new world when it is dead; then the same with text.
fn survival() {
    use spar_grids::survival::{Action, World, describe};

    let mut seed = 0;
    let mut begin = || {
        seed += 1;
        World::new(seed, 64).expect("a size that is allowed")
    };
    let resets = rate_of(4, || {
        black_box(begin());
    });
    let mut draws = Draws(3);
    let mut play = |looks: fn(&World)| {
        let mut world = begin();
        rate(|| {
            let stepped = world.step(Action::ALL[draws.below(17)]);
            looks(&world);
            if stepped.is_dead {
                world = begin();
            }
        })
    };
    let steps = play(|_| {});
    let texts = play(|world| {
        black_box(describe(world));
    });
    let world = begin();
    let fork = 1e9
        / rate(|| {
            black_box(black_box(&world).clone());
        });
    let name = "survival 64x64, resets included";
    println!("{name:<36} {steps:>12.0} {texts:>12.0} {resets:>12.0} {fork:>10.0}");
}
