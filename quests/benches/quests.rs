//! Steps, games and forks per second, on one thread. A step is a command read from words, carried out, told in words, with all commands listed.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spar_core::Seed;
use spar_quests::{Command, Game, Play, Setting};

const LASTING: Duration = Duration::from_secs(2);

fn rate(what: &str, mut run: impl FnMut() -> usize) {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < LASTING {
        count += run();
    }
    println!("{what}: {:.0} per second", count as f64 / start.elapsed().as_secs_f64());
}

fn main() {
    for (rooms, objects, quest_length) in [(2, 3, 4), (4, 8, 5), (8, 12, 12), (12, 40, 6)] {
        let setting = Setting { rooms, objects, quest_length, ..Setting::default() };
        println!("{rooms} rooms, {objects} objects, quests of {quest_length} commands");
        let mut number = 0;
        rate("  games", || {
            number += 1;
            black_box(Game::draw(Seed::from_u64(number), &setting).expect("it fits"));
            1
        });
        let games: Vec<Arc<Game>> = (0..64)
            .map(|seed| Game::draw(Seed::from_u64(seed), &setting).expect("it fits").into())
            .collect();
        let mut rng = 1_u64;
        rate("  random steps", || {
            rng = rng.wrapping_add(1);
            let mut play = Play::new(Arc::clone(&games[rng as usize % games.len()]));
            let mut steps = 0;
            while !play.is_won() && !play.is_lost() && steps < 30 {
                let mut listed: Vec<String> = Vec::new();
                play.each_command(|command| listed.push(command.words(play.game(), &play)));
                rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let words = &listed[(rng >> 33) as usize % listed.len()];
                let command = Command::read(words, &play).expect("it is listed");
                black_box(play.carry_out(command));
                black_box(play.knowledge());
                steps += 1;
            }
            steps
        });
        let play = Play::new(Arc::clone(&games[0]));
        rate("  forks", || {
            black_box(play.clone());
            1
        });
    }
}
