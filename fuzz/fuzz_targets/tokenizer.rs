//! Tokenizers: every text survives encoding and decoding, and any file is read or refused.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spar_core::{Message, Role};
use spar_policy::{Tokenizer, TokenizerConfig};

static TRAINED: LazyLock<Tokenizer> = LazyLock::new(|| {
    let games: Vec<Vec<String>> = (0..20)
        .map(|n| vec![format!("You are in a room. You see a desk {n}, and a bed."), "look".into()])
        .collect();
    let games = games.iter().map(|game| game.iter().map(String::as_str));
    Tokenizer::train(games, &TokenizerConfig::default()).expect("the vocabulary is large enough")
});

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    if kind % 4 == 0 {
        let folder = tempfile::tempdir().expect("a folder can be made");
        std::fs::write(folder.path().join("tokenizer.json"), input).expect("it can be written");
        let _ = Tokenizer::load(folder.path());
        return;
    }
    let text = String::from_utf8_lossy(input);
    let ids = TRAINED.encode(&text);
    assert_eq!(TRAINED.decode(&ids), text);
    let message = Message::new(Role::User, text.clone());
    let marks = TRAINED.encode_message(None, &Message::new(Role::User, ""));
    let framed = TRAINED.encode_message(None, &message);
    assert_eq!(framed.len(), marks.len() + ids.len(), "text never becomes a mark");
    assert_eq!(TRAINED.decode(&framed), text);
    TRAINED.decode(&input.iter().map(|byte| u32::from(*byte) * 7).collect::<Vec<_>>());
});
