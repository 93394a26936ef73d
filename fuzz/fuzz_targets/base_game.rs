//! A generated game, and edits of texts that the input describes.

use std::sync::LazyLock;

use spar_core::Seed;
use spar_envs::household::GameFile;
use spar_envs::household::generator::{GameOptions, RoomSize, SceneSet, game_file, generate};

/// A game that loads.
pub static BASE: LazyLock<GameFile> = LazyLock::new(|| {
    let options = GameOptions { scenes: SceneSet::Dev, size: RoomSize::AtMost(4), family: None };
    game_file(&generate(&options, Seed::from_u64(1)).expect("small rooms have games"))
});

/// Changes `text` as the input says: four bytes are a place, an action and a character.
pub fn edit(text: &mut String, input: &[u8]) {
    const WORDS: [&str; 8] = ["(", ")", "?x", "not", "{", "}", "\"", "|"];
    for edit in input.chunks_exact(4) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (text.len() + 1);
        let Some(place) = (0..=place).rev().find(|place| text.is_char_boundary(*place)) else {
            continue;
        };
        match edit[2] % 4 {
            0 => text.insert(place, char::from(edit[3])),
            1 => text.insert_str(place, WORDS[usize::from(edit[3]) % WORDS.len()]),
            2 => text.truncate(place),
            _ => {
                let end = (place + usize::from(edit[3])).min(text.len());
                if text.is_char_boundary(end) {
                    text.replace_range(place..end, "");
                }
            }
        }
    }
}
