//! Arguments of calls: whatever a policy writes is carried out or told, and never a fault of the tool.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use spar_core::{Seed, ToolCall};
use spar_envs::Resources;
use spar_envs::tools::{ToolChoice, ToolError, ToolPlace};

fuzz_target!(|input: &str| {
    let resources = Resources::default();
    let place = ToolPlace { task: "fuzz", seed: Seed::from_u64(0), resources: &resources };
    for name in ["calculator", "notes"] {
        let mut tool = ToolChoice::named(name).open(&place).unwrap();
        let field = if name == "calculator" { "expression" } else { "name" };
        let arguments = match serde_json::from_str(input) {
            Ok(serde_json::Value::Object(arguments)) => arguments,
            _ => [(field.to_owned(), input.into())].into_iter().collect(),
        };
        let call = ToolCall::new(name, arguments);
        // Neither waits for anything.
        let called = futures::executor::block_on(tool.call(&call, Duration::from_secs(1)));
        if let Err(ToolError::Failed(error)) = called {
            panic!("{error}");
        }
    }
});
