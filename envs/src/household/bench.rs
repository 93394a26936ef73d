//! Measures the engine on real games.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::error::HouseholdError;
use super::files::find_games;
use super::game::Game;

/// Steps per game in the step measurement.
const STEPS: usize = 200;

/// How long each throughput measurement runs.
const THROUGHPUT_TIME: Duration = Duration::from_secs(1);

/// The outcome of [`bench()`]. Times are medians over games.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchReport {
    /// Number of games.
    pub games: usize,
    /// Median size of a game file in bytes.
    pub file_bytes: usize,
    /// From the bytes of a file to a loaded game.
    pub load: Duration,
    /// From a loaded game to the introduction and the first list of commands.
    pub reset: Duration,
    /// From a command to its answer and the next list of commands.
    pub step: Duration,
    /// A copy of an engine in mid-episode.
    pub fork: Duration,
    /// Bytes of a game and one engine in mid-episode.
    pub bytes_per_game: usize,
    /// Bytes of the compiled actions, once for all games of the same rules and texts.
    pub shared_bytes: usize,
    /// Steps per second with random commands on one thread.
    pub steps_per_second: f64,
    /// The same on two threads.
    pub steps_per_second_two_threads: f64,
}

/// Measures loading, resets, steps, forks, memory and throughput on the games below `data`.
///
/// # Errors
/// When a game cannot be loaded or there is none.
pub fn bench(data: &Path) -> Result<BenchReport, HouseholdError> {
    let paths = find_games(data)?;
    if paths.is_empty() {
        return Err(HouseholdError::Empty { what: "game (`game.tw-pddl`)", path: data.to_owned() });
    }
    let mut games = Vec::with_capacity(paths.len());
    let (mut sizes, mut loads, mut resets) = (Vec::new(), Vec::new(), Vec::new());
    let (mut steps, mut forks, mut bytes, mut shared) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, path) in paths.iter().enumerate() {
        let content = std::fs::read(path)
            .map_err(|source| HouseholdError::Read { path: path.clone(), source })?;
        let name = path.display().to_string();
        let start = Instant::now();
        let game = Game::parse(&name, &content)?;
        loads.push(start.elapsed());
        sizes.push(content.len());

        let start = Instant::now();
        let mut engine = Engine::new(Arc::clone(&game));
        let first = engine.admissible().len();
        resets.push(start.elapsed());
        std::hint::black_box(first);

        let mut random = Random::new(index as u64);
        let (mut in_steps, mut in_forks) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..STEPS {
            let command = random.command(&engine);
            let start = Instant::now();
            std::hint::black_box(engine.step(&command));
            in_steps += start.elapsed();
            let start = Instant::now();
            let fork = std::hint::black_box(engine.clone());
            in_forks += start.elapsed();
            drop(fork);
        }
        steps.push(in_steps / STEPS as u32);
        forks.push(in_forks / STEPS as u32);
        bytes.push(game.heap_bytes() + engine.heap_bytes());
        shared.push(game.shared_heap_bytes());
        games.push(game);
    }
    Ok(BenchReport {
        games: games.len(),
        file_bytes: median(sizes),
        load: median(loads),
        reset: median(resets),
        step: median(steps),
        fork: median(forks),
        bytes_per_game: median(bytes),
        shared_bytes: median(shared),
        steps_per_second: throughput(&games, 1),
        steps_per_second_two_threads: throughput(&games, 2),
    })
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Steps per second of episodes of 50 random commands over all games.
fn throughput(games: &[Arc<Game>], num_threads: usize) -> f64 {
    let play = |thread: usize| {
        let mut random = Random::new(thread as u64 + 1);
        let start = Instant::now();
        let mut num_steps = 0_u64;
        for game in games.iter().cycle().skip(thread * games.len() / num_threads) {
            let mut engine = Engine::new(Arc::clone(game));
            for _ in 0..50 {
                let index = random.below(engine.admissible().len());
                let Some(command) = engine.admissible().get(index).map(str::to_owned) else {
                    break;
                };
                std::hint::black_box(engine.step(&command));
                num_steps += 1;
            }
            if start.elapsed() > THROUGHPUT_TIME {
                break;
            }
        }
        num_steps as f64 / start.elapsed().as_secs_f64()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..num_threads).map(|thread| scope.spawn(move || play(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("playing does not panic")).sum()
    })
}

/// A small generator (xorshift); measurements need no better one.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    fn command(&mut self, engine: &Engine) -> String {
        let index = self.below(engine.admissible().len());
        engine.admissible().get(index).unwrap_or("look").to_owned()
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: &Duration| time.as_nanos() as f64 / 1000.0;
        writeln!(
            f,
            "games                  {} (median file {} bytes)",
            self.games, self.file_bytes
        )?;
        writeln!(f, "load                   {:.1} us", micros(&self.load))?;
        writeln!(f, "reset                  {:.1} us", micros(&self.reset))?;
        writeln!(f, "step                   {:.2} us", micros(&self.step))?;
        writeln!(f, "fork                   {:.2} us", micros(&self.fork))?;
        let (all, shared) = (self.bytes_per_game, self.shared_bytes);
        writeln!(f, "memory of a live game  {all} bytes, and {shared} shared by all games")?;
        writeln!(f, "steps per second       {:.0} on one thread", self.steps_per_second)?;
        write!(f, "                       {:.0} on two threads", self.steps_per_second_two_threads)
    }
}
