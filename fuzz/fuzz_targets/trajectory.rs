//! Trajectories: any bytes are read or refused; what is read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_core::Trajectory;

/// Small ones of the first and of the present version, which the input edits.
const EXAMPLES: [&str; 2] = [r#"{"version":1,"episode":3,"task":"t","environment":"e","seed":"0000000000000000000000000000000000000000000000000000000000000001","policy":"p","first_observation":{"text":"a","state_key":"s"},"turns":[{"prompt":{"kept":0,"appended":[1,2]},"author":"p","text":"go","sampled":{"ids":[5,6],"logprobs":[-0.5,0.0],"versions":[4,4],"allowed":[[5],[]]},"parsed":{"kind":"action","text":"go"},"state_key":"s","step":{"observation":{"text":"b","state_key":"h"},"rewards":[{"name":"won","value":1.0}],"terminated":true,"won":true,"executable":true,"wall_time":{"secs":0,"nanos":1}},"policy_time":{"secs":0,"nanos":5}}],"end":{"kind":"terminated"},"won":true,"wall_time":{"secs":1,"nanos":0}}"#, PRESENT];

const PRESENT: &str = r#"{"version":4,"episode":3,"task":"t","environment":"e","versions":{"environment":1,"scaffold":"tools 1"},"seed":"0000000000000000000000000000000000000000000000000000000000000001","policy":"p","first_observation":{"text":"a","state_key":"s"},"turns":[{"prompt":{"kept":0,"appended":[1]},"injected":[{"role":"user","parts":[{"text":"h"},{"reasoning":"r"}]}],"source":"hinted","author":"p","text":"f()","sampled":{"ids":[5],"logprobs":[-0.5],"versions":[4]},"counts":{"prompt":1,"sampled":1},"parsed":{"kind":"action","action":{"kind":"calls","calls":[{"id":"c","name":"f","arguments":{}}]},"spans":[{"start":0,"end":3}]},"state_key":"s","step":{"observation":{"text":"","results":[{"call":"c","text":"ok"}],"state_key":"h"},"rewards":[],"terminated":true,"success":true,"valid":true,"wall_time":{"secs":0,"nanos":1}},"policy_time":{"secs":0,"nanos":5},"environment_time":{"secs":0,"nanos":5}}],"end":{"kind":"terminated"},"success":true,"wall_time":{"secs":1,"nanos":0}}"#;

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let mut bytes = input.to_vec();
    if kind % 2 == 1 {
        bytes = EXAMPLES[usize::from(kind / 2 % 2)].as_bytes().to_vec();
        for edit in input.chunks_exact(4) {
            let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
            match edit[2] % 3 {
                0 => bytes[place] = edit[3],
                1 => bytes.insert(place, edit[3]),
                _ => drop(bytes.remove(place)),
            }
        }
    }
    if let Ok(trajectory) = Trajectory::from_json(&bytes) {
        let written = serde_json::to_vec(&trajectory).expect("what was read can be written");
        assert_eq!(Trajectory::from_json(&written).expect("and read again"), trajectory);
    }
});
