//! Checkpoints: any `config.json`, index and weights are read or refused.
//!
//! An input says what the files hold; an empty one holds what a small checkpoint with an adapter
//! has. Then bytes are changed, and files cut off, so that what goes wrong may lie deep in them.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use spar_core::Seed;
use spar_policy::checkpoint::{LoraAdapter, load_weights, save_adapter, save_model};
use spar_policy::{
    LoraConfig, LoraModel, ModelConfig, Tokenizer, TokenizerConfig, Weights, initial_parameters,
};

const NAMES: [&str; 4] =
    ["config.json", "adapter_config.json", "model.safetensors", "adapter_model.safetensors"];
const INDEX: &str = "model.safetensors.index.json";

/// The files of a checkpoint and of an adapter for it, by name.
static WHOLE: LazyLock<BTreeMap<&str, Vec<u8>>> = LazyLock::new(|| {
    let config = ModelConfig {
        vocab_size: 300,
        hidden_size: 8,
        intermediate_size: 8,
        head_dim: 4,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        num_hidden_layers: 1,
        ..ModelConfig::default()
    };
    let tokenizer =
        Tokenizer::train([["a word"]], &TokenizerConfig::default()).expect("a tokenizer is made");
    let parameters = initial_parameters(&config, Seed::from_u64(1));
    let base = tempfile::tempdir().expect("a folder can be made");
    save_model(base.path(), &config, &parameters, &tokenizer).expect("a model is saved");
    let weights = Arc::new(Weights::new(&config, parameters.clone()));
    let model = LoraModel::new(weights, &LoraConfig::default());
    let adapter = model.to_adapter(&model.initial(Seed::from_u64(2)));
    let folder = tempfile::tempdir().expect("a folder can be made");
    save_adapter(folder.path(), &adapter, base.path(), &parameters, &tokenizer)
        .expect("an adapter is saved");
    let read = |name: &'static str| {
        let from = if name.starts_with("adapter") { &folder } else { &base };
        (name, std::fs::read(from.path().join(name)).expect("it was saved"))
    };
    NAMES.into_iter().map(read).collect()
});

/// Byte `at` of a file, counted on from its end: from there the file is cut off, or a byte changed.
type Damage = (u8, u16, Option<u8>);

fuzz_target!(|input: ([&[u8]; 4], &[u8], Vec<Damage>)| {
    let (given, index, damages) = input;
    let mut files = NAMES
        .into_iter()
        .zip(given)
        .map(|(name, given)| {
            let whole = &WHOLE[name];
            (name, if given.is_empty() { whole.clone() } else { given.to_vec() })
        })
        .collect::<Vec<_>>();
    for (file, at, damage) in damages {
        let bytes = &mut files[usize::from(file) % NAMES.len()].1;
        let at = usize::from(at) % bytes.len().max(1);
        match damage {
            Some(byte) => bytes.iter_mut().skip(at).take(1).for_each(|old| *old = byte),
            None => bytes.truncate(at),
        }
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("it can be written");
    };
    for (name, bytes) in &files {
        write(name, bytes);
    }
    open(folder.path());
    if !index.is_empty() {
        write(INDEX, index);
        write("a", &files[2].1);
        open(folder.path());
    }
});

fn open(folder: &Path) {
    if let Ok((_, parameters)) = load_weights(folder) {
        let _ = LoraAdapter::load(folder, &parameters);
    }
}
