//! Household engine on real games.
//!
//! Games are looked for below `SPAR_ALFWORLD_DATA`, by default `../shared/alfworld` beside the
//! workspace; without any the benchmark says so and ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use spar_envs::household::{Engine, Game, find_games, oracle};

/// Games that are measured, spread over the folder.
const GAMES: usize = 64;

fn data() -> PathBuf {
    std::env::var_os("SPAR_ALFWORLD_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/alfworld"),
        PathBuf::from,
    )
}

fn household(criterion: &mut Criterion) {
    let data = data();
    let paths = find_games(&data).unwrap_or_default();
    if paths.is_empty() {
        println!("skipped: no games below {}; set SPAR_ALFWORLD_DATA", data.display());
        return;
    }
    let every = paths.len().div_ceil(GAMES);
    let files: Vec<Vec<u8>> = paths
        .iter()
        .step_by(every)
        .map(|path| std::fs::read(path).expect("games found are readable"))
        .collect();
    let games: Vec<Arc<Game>> =
        files.iter().map(|file| Game::parse("benchmark", file).expect("real games load")).collect();
    let mut next = 0;
    let mut turn = move |length: usize| {
        next = (next + 1) % length;
        next
    };

    criterion.bench_function("household/load", |bencher| {
        bencher.iter(|| Game::parse("benchmark", &files[turn(files.len())]));
    });
    criterion.bench_function("household/reset", |bencher| {
        bencher.iter(|| Engine::new(Arc::clone(&games[turn(games.len())])));
    });
    criterion.bench_function("household/step", |bencher| {
        // Every sample steps a fork: games as they go on get longer lists of commands.
        let engines: Vec<Engine> = games.iter().cloned().map(Engine::new).collect();
        bencher.iter_batched_ref(
            || {
                let engine = engines[turn(engines.len())].clone();
                let command = engine.admissible().get(0).unwrap_or("look").to_owned();
                (engine, command)
            },
            |(engine, command)| engine.step(command),
            BatchSize::SmallInput,
        );
    });
    let engines: Vec<Engine> = games.iter().cloned().map(Engine::new).collect();
    criterion.bench_function("household/fork", |bencher| {
        bencher.iter(|| engines[turn(engines.len())].clone());
    });
    criterion.bench_function("household/oracle", |bencher| {
        bencher.iter(|| oracle::solve(&engines[turn(engines.len())]));
    });
}

criterion_group!(benches, household);
criterion_main!(benches);
