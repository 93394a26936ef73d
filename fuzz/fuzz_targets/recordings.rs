//! Foreign datasets of recorded episodes: the first line of an input is `dataset.json`, the others are the recordings of a tier.
//!
//! An input whose first byte is below 128 is damage to a dataset that opens: three bytes are a place and what stands there
//! from then on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_tasks::{Dataset, MEDIUM_EXPERT, OfflineSuite, Suite, Tier};

const DATASET: &str = r#"{"version":1,"suite":"frozen-lake","suite_hash":"h","split":"train","seed":1,"tasks":1,"episodes_per_task":1,"settings":{"a":"b"},"tiers":{"expert":{"player":"oracle","tasks":1,"episodes":2,"successes":1,"mean_return":1.0,"mean_turns":1.0,"missing":0}}}"#;

const RECORDINGS: &str = r#"{"task":"frozen-lake/train/3","environment":"frozen-lake","player":"oracle","seed":1,"first":{"text":"start","state_key":"s"},"tools":[{"turn":0,"tools":[]}],"success":true,"turns":[{"action":{"kind":"text","text":"go east"},"step":{"observation":{"text":"goal","state_key":"g"},"rewards":[{"name":"success","value":1.0}],"terminated":true,"success":true,"valid":true,"wall_time":{"secs":0,"nanos":0}}}]}
{"task":"frozen-lake/train/3","environment":"frozen-lake","player":"oracle","first":{"text":"start","state_key":"s"},"success":false,"turns":[{"action":{"kind":"calls","calls":[{"id":"c","name":"f","arguments":{"a":1}}]},"step":{"observation":{"text":"hole"},"rewards":[],"terminated":true,"success":false,"valid":true,"wall_time":{"secs":0,"nanos":0}}}]}
"#;

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let bytes = match *kind < 128 {
        false => input.to_vec(),
        true => {
            let mut bytes = format!("{DATASET}\n{RECORDINGS}").into_bytes();
            for edit in input.chunks_exact(3) {
                let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
                bytes[place] = edit[2];
            }
            bytes
        }
    };
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (dataset, recordings) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("dataset.json"), dataset).expect("it can be written");
    for tier in Tier::ALL {
        let path = Dataset::file_of(folder.path(), tier);
        std::fs::write(path, recordings).expect("it can be written");
    }
    let suite = match OfflineSuite::open(folder.path()) {
        Ok(suite) => suite,
        Err(error) => return assert!(!error.to_string().is_empty(), "a refusal says why"),
    };
    let _ = suite.dataset().references().and_then(|it| it.normalized(1.0));
    for (split, len) in &suite.manifest().splits {
        let recorded = suite.recorded(split).expect("the split is there");
        assert_eq!(recorded.len(), *len);
        for (index, known) in recorded.iter().enumerate() {
            // What was read once is read again, and is the same.
            let recording = suite.recording(split, index).expect("it was read before");
            assert_eq!(recording.turns.len(), known.turns);
            assert_eq!(recording.problem(), None);
            let task = suite.make_task(split, index).expect("it was read before");
            assert!(split == MEDIUM_EXPERT || task.id.contains(split.as_str()));
        }
    }
});
