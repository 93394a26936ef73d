//! Streams of events of servers that speak MCP: the first byte says how long the pieces are in which the rest comes, and the second
//! how long events may be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_mcp::{EventReader, read_line};

/// All events of a stream in pieces, and whether it was read to its end.
fn events(stream: &[u8], size: usize, most: usize) -> (Vec<(String, String)>, bool) {
    let (mut reader, mut events) = (EventReader::new(most), Vec::new());
    for piece in stream.chunks(size) {
        reader.push(piece);
        loop {
            match reader.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(why) => {
                    assert!(!why.is_empty(), "a refusal says why");
                    return (events, false);
                }
            }
        }
    }
    (events, true)
}

fuzz_target!(|input: &[u8]| {
    let [size, most, stream @ ..] = input else { return };
    let most = usize::from(*most) * 8;
    let whole = events(stream, usize::MAX, most);
    // How bytes are cut does not matter.
    assert_eq!(events(stream, usize::from(*size) + 1, most), whole);
    for (_, data) in &whole.0 {
        // Bytes that are no UTF-8 are three of it at most; lines are joined by one more.
        assert!(data.len() <= 3 * most + 1);
        let _ = read_line(data.as_bytes());
    }
});
