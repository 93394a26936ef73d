//! Whole game files: any bytes are read or refused, and what is read can be played.
#![no_main]

mod base_game;

use libfuzzer_sys::fuzz_target;
use spar_envs::household::{Engine, Game};

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let game = if kind % 2 == 0 {
        Game::parse("fuzz", input)
    } else {
        // The input is edits of each part in turn, and then the commands to give.
        let mut file = base_game::BASE.clone();
        let third = input.len() / 3;
        base_game::edit(&mut file.pddl_problem, &input[..third]);
        base_game::edit(&mut file.pddl_domain, &input[third..2 * third]);
        base_game::edit(&mut file.grammar, &input[2 * third..]);
        Game::from_parts("fuzz", &file)
    };
    let Ok(game) = game else { return };
    let mut engine = Engine::new(game);
    for byte in input.iter().take(20) {
        let commands: Vec<String> = engine.admissible().iter().map(ToOwned::to_owned).collect();
        if commands.is_empty() || engine.won() {
            break;
        }
        let command = &commands[usize::from(*byte) % commands.len()];
        let fork = engine.clone();
        assert!(engine.step(command).executable, "`{command}` was offered");
        assert_eq!(fork.state_key(), fork.clone().state_key());
    }
});
