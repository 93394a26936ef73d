//! Checkpoints: any `config.json`, index and weights are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_policy::checkpoint::{LoraAdapter, load_weights};

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (config, index, weights) = input;
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("it can be written");
    };
    write("config.json", config.as_bytes());
    write("adapter_config.json", config.as_bytes());
    write("model.safetensors.index.json", index.as_bytes());
    for name in ["a", "model.safetensors", "adapter_model.safetensors"] {
        // First with the index, then with a single file.
        write(name, weights);
        if let Ok((_, parameters)) = load_weights(folder.path()) {
            let _ = LoraAdapter::load(folder.path(), &parameters);
        }
    }
});
