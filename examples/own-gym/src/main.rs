//! A gym of one's own: spar with environments in words and with tools, their suites, a scaffold, an estimator, an
//! objective, a task sampler, a rollout strategy, a reward shaper and a kind of stage that it does not ship.
//!
//! ```text
//! cargo run --package own-gym -- list environments
//! cargo run --package own-gym -- show objectives reinforce
//! cargo run --package own-gym -- train examples/own-gym/guess.toml
//! cargo run --package own-gym -- train examples/own-gym/lamps.toml
//! ```

mod bar;
mod brief;
mod guess;
mod haste;
mod lamps;
mod reinforce;
mod repeat;
mod to_go;
mod until_solved;

use std::process::ExitCode;

use spar::Registry;

fn main() -> ExitCode {
    spar::main(
        Registry::builtin()
            .suite(guess::SUITE)
            .environment(guess::ENVIRONMENT)
            .suite(lamps::SUITE)
            .environment(lamps::ENVIRONMENT)
            .scaffold(brief::ROW)
            .estimator(to_go::ROW)
            .objective(reinforce::ROW)
            .sampler(repeat::ROW)
            .strategy(until_solved::ROW)
            .shaper(haste::ROW)
            .stage(bar::ROW),
    )
}
