//! What policies write, in every syntax: the first byte chooses the parser and whether tools are offered.

#![no_main]

use serde_json::json;
use spar_core::ToolSpec;
use spar_parsers::parser_registry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let entries = parser_registry();
    let parser = (entries[usize::from(first >> 1) % entries.len()].open.open)();
    let schema = json!({ "type": "object", "properties": {
        "command": { "type": "string" }, "n": { "type": "integer" }, "list": { "type": "array" } } });
    let tools = [ToolSpec::new("bash", "", schema.clone()), ToolSpec::new("f", "", schema)];
    let tools = if first & 1 == 0 { tools.as_slice() } else { &[] };
    match parser.parse(text, tools) {
        Err(error) => assert!(text.get(error.span).is_some()),
        Ok(parsed) => {
            assert!(parsed.spans.iter().all(|span| text.get(span.clone()).is_some()));
            // What is written was read back.
            let _ = parser.write(&parsed.action, tools);
        }
    }
});
