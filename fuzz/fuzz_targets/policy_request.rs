//! Bodies of requests to a policy server.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    spar_serve::check_request(bytes);
});
