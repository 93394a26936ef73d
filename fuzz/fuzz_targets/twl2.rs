//! Text grammars: any text is read or refused, and what is read can be played.
#![no_main]

mod base_game;

use libfuzzer_sys::fuzz_target;
use spar_envs::household::twl2::Grammar;
use spar_envs::household::{Engine, Game};

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    if kind % 2 == 0 {
        let _ = Grammar::parse_text(&String::from_utf8_lossy(input));
        return;
    }
    let mut file = base_game::BASE.clone();
    base_game::edit(&mut file.grammar, input);
    if let Ok(game) = Game::from_parts("fuzz", &file) {
        let mut engine = Engine::new(game);
        engine.step("look");
        engine.step("inventory");
    }
});
