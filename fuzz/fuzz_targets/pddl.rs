//! Domains and problems in the planning language: any text is read or refused.
#![no_main]

mod base_game;

use libfuzzer_sys::fuzz_target;
use spar_envs::household::pddl::Problem;
use spar_envs::household::{Game, GameFile};

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let mut file: GameFile = base_game::BASE.clone();
    match kind % 4 {
        0 => drop(Problem::parse(&String::from_utf8_lossy(input))),
        1 => file.pddl_domain = String::from_utf8_lossy(input).into_owned(),
        2 => base_game::edit(&mut file.pddl_domain, input),
        _ => base_game::edit(&mut file.pddl_problem, input),
    }
    // A problem that is read is written so that it reads the same.
    if let Ok(problem) = Problem::parse(&file.pddl_problem) {
        let text = problem.to_string();
        assert_eq!(Problem::parse(&text).map(|again| again.to_string()).ok(), Some(text.clone()));
    }
    let _ = Game::from_parts("fuzz", &file);
});
