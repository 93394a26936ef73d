//! Lines of servers that speak MCP, and results of calls: any bytes are a message, passed over, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_mcp::{read_line, read_result};

/// Bytes of media that a result may have.
const MEDIA: usize = 1000;

fuzz_target!(|input: &[u8]| {
    let _ = read_line(input);
    let Ok(value) = serde_json::from_slice(input) else { return };
    match read_result(value, MEDIA) {
        Ok(output) => {
            let bytes = output.media.iter().map(|it| it.bytes().unwrap().len());
            assert!(bytes.sum::<usize>() <= MEDIA);
        }
        Err(detail) => assert!(!detail.is_empty(), "a refusal says why"),
    }
});
