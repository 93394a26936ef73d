//! Lines of programs that environments are played in: any bytes are an answer or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_envs::process::read_answer;

const CALLS: [&str; 6] = ["hello", "reset", "step", "tools", "snapshot", "close"];

/// What the input edits, so that it soon meets all there is.
const EXAMPLES: [&str; 4] = [
    r#"{"id":0,"protocol":1,"name":"n","concurrent":64,"fork":true,"snapshot":true,"tools":true}"#,
    r#"{"id":1,"observation":{"text":"t","instruction":"i","admissible":["a","b"],"state_key":"s","media":[{"media_type":"image/png","base64":"AAAA"}]},"tags":["t"],"oracle":"a","expert":{"text":"x","calls":[{"id":"c","name":"f","arguments":{"a":1}}]}}"#,
    r#"{"id":2,"observation":{"text":"t"},"rewards":{"success":1.0,"b":-0.5},"terminated":true,"success":true,"valid":false,"tools_changed":true}"#,
    r#"{"id":3,"tools":[{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}]}"#,
];

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let kind = usize::from(*kind);
    let mut line = input.to_vec();
    if kind % 2 == 1 {
        line = EXAMPLES[kind / 2 % EXAMPLES.len()].as_bytes().to_vec();
        for edit in input.chunks_exact(4) {
            let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % line.len();
            match edit[2] % 3 {
                0 => line[place] = edit[3],
                1 => line.insert(place, edit[3]),
                _ if line.len() > 1 => drop(line.remove(place)),
                _ => {}
            }
        }
    }
    for call in CALLS {
        if let Err(detail) = read_answer(&line, call) {
            assert!(!detail.is_empty(), "a refusal says why");
        }
    }
});
