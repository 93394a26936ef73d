//! A gym of one's own: spar with an environment, a suite, an estimator, an objective, a task sampler, a rollout strategy,
//! a reward shaper and a kind of stage that it does not ship, one file and one row each.
//!
//! ```text
//! cargo run --package own-gym -- list environments
//! cargo run --package own-gym -- show objectives reinforce
//! cargo run --package own-gym -- train examples/own-gym/guess.toml
//! ```

mod bar;
mod guess;
mod haste;
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
            .estimator(to_go::ROW)
            .objective(reinforce::ROW)
            .sampler(repeat::ROW)
            .strategy(until_solved::ROW)
            .shaper(haste::ROW)
            .stage(bar::ROW),
    )
}
