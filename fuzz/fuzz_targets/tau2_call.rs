//! Foreign databases and arguments in tau2's domains: the first line is a database, every other one a call, whose first byte chooses
//! the tool and whose rest is its arguments as JSON.

#![no_main]

use serde_json::{Map, Value, json};
use spar_tau2::{Called, Domain, Requestor, World};
use std::sync::Arc;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let inbox = json!({ "notifications": { "n": { "notification_id": "n", "message": "m" } } });
    let own = json!({
        "tasks": { "task_1": { "task_id": "task_1", "title": "t", "status": "pending" } },
        "users": { "u": { "user_id": "u", "name": "n", "tasks": ["task_1"] } },
    });
    let database = serde_json::from_slice(first).unwrap_or_else(|_| own.clone());
    // Databases of another form are refused in words, and those that fit can be used.
    let domain = match Domain::mock(&database, &inbox, "", "") {
        Ok(domain) => domain,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Domain::mock(&own, &inbox, "", "").expect("its own data fit")
        }
    };
    let domain = Arc::new(domain);
    let mut world = World::new(Arc::clone(&domain), false, 0);
    for line in lines.take(16) {
        let Some((first, rest)) = line.split_first() else { continue };
        let tools = [(&domain.tools, Requestor::Assistant), (&domain.user_tools, Requestor::User)];
        let (tools, requestor) = tools[usize::from(first & 1)];
        let tool = &tools[usize::from(first >> 1) % tools.len()];
        let arguments = match serde_json::from_slice(rest) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(value) => tool.parameters["properties"]
                .as_object()
                .into_iter()
                .flat_map(Map::keys)
                .map(|name| (name.clone(), value.clone()))
                .collect(),
            Err(_) => Map::new(),
        };
        let call = Called { id: String::new(), name: tool.name.clone(), arguments, requestor };
        let fork = world.clone();
        let answered = world.respond(&call);
        assert_eq!(fork.clone().respond(&call), answered);
    }
    assert!(world.hash(Requestor::Assistant).is_some_and(|hash| hash.len() == 64));
});
