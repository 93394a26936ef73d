//! What clients of an allow-list's proxy send: any bytes are read or refused, and what is sent on
//! is one request, whatever came in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spar_sandbox::allow_list::{
    AllowedHost, BodyEnd, Kind, Request, SocksGreeting, SocksRequest, Target,
};

fuzz_target!(|input: &[u8]| {
    if let Ok(Some((request, length))) = Request::find(input) {
        assert!(length <= input.len());
        has_one_spelling(&request.target);
        if let Kind::Forward { head, body } = request.kind {
            let ends = head.windows(4).filter(|four| four == b"\r\n\r\n").count();
            assert!(ends == 1 && head.ends_with(b"\r\n\r\n"));
            assert!(!head.windows(2).any(|two| two[0] != b'\r' && two[1] == b'\n'));
            let mut end = BodyEnd::new(body);
            if let Ok(taken) = end.take(&input[length..]) {
                assert!(taken == input.len() - length || end.is_done());
            }
        }
    }
    if let Ok(Some((_, length))) = SocksGreeting::find(input) {
        assert!(length <= input.len());
    }
    if let Ok(Some((request, length))) = SocksRequest::find(input) {
        assert!(length <= input.len());
        has_one_spelling(&request.target);
    }
    if let Ok(entry) = String::from_utf8_lossy(input).parse::<AllowedHost>() {
        assert_eq!(entry.to_string().parse::<AllowedHost>().as_ref(), Ok(&entry));
    }
});

/// What is asked for and what a list names are compared by their spelling.
fn has_one_spelling(target: &Target) {
    assert_eq!(Target::parse(&target.to_string(), None).as_ref(), Some(target));
}
