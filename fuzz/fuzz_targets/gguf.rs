//! GGUF files: any bytes are opened or refused, as a model and as a tokenizer.
//!
//! An input is a file, or, where its first byte says so, damage to a small one: bytes that are changed, and where it is cut off.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_policy::Tokenizer;
use spar_policy::checkpoint::load_weights;

static WHOLE: [&[u8]; 2] = [
    include_bytes!("../../policy/tests/fixtures/gguf/llama.gguf"),
    include_bytes!("../../policy/tests/fixtures/gguf/llama3.gguf"),
];

/// Byte `at`: a byte changed, or the file cut off there.
type Damage = (u16, Option<u8>);

fuzz_target!(|input: (u8, &[u8], Vec<Damage>)| {
    let (which, given, damages) = input;
    let mut bytes = match WHOLE.get(usize::from(which)) {
        Some(whole) => whole.to_vec(),
        None => given.to_vec(),
    };
    for (at, damage) in damages {
        let at = usize::from(at) % bytes.len().max(1);
        match damage {
            Some(byte) => bytes.iter_mut().skip(at).take(1).for_each(|old| *old = byte),
            None => bytes.truncate(at),
        }
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).expect("it can be written");
    if let Ok((_, parameters)) = load_weights(&path) {
        assert!(parameters.data.iter().all(|value| value.is_finite()));
    }
    if let Ok(tokenizer) = Tokenizer::load(&path) {
        // A file may call any token a control token, so that nothing is known of these.
        let _ = tokenizer.decode(&tokenizer.encode("A text, <|im_end|> 12\n"));
    }
});
