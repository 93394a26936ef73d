//! Shards of a trajectory store: damage is refused or cut off, and the store can be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_agent::{JsonlStore, StoreConfig};

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let shard = folder.path().join("000000.jsonl.zst");
    // Every other time the lines are given instead of the frame around them.
    let bytes = match kind % 2 {
        0 => input.to_vec(),
        _ => zstd::encode_all(input, 1).expect("bytes can be compressed"),
    };
    std::fs::write(&shard, bytes).expect("a file can be written");
    if let Ok(reader) = JsonlStore::read(folder.path()) {
        reader.take(1_000).for_each(drop);
    }
    if let Ok(mut store) = JsonlStore::open(folder.path(), StoreConfig::default()) {
        let _ = store.truncate_after(0);
    }
});
