//! Tests on small data of one's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Answered, Beginning, DomainName, Message};
use crate::{Called, Domain, InitialState, Requestor, RewardType, Said, Tau2Task, World, judge};

/// Data of the domain mock.
pub(crate) fn data() -> (Value, Value) {
    let database = json!({
        "tasks": { "task_1": { "task_id": "task_1", "title": "Call", "status": "pending" } },
        "users": { "user_1": { "user_id": "user_1", "name": "Ada", "tasks": ["task_1"] } },
    });
    let inbox = json!({ "notifications": { "n1": { "notification_id": "n1", "message": "Hi" } } });
    (database, inbox)
}

fn domain() -> Arc<Domain> {
    let (database, inbox) = data();
    Arc::new(Domain::mock(&database, &inbox, "policy", "alone").unwrap())
}

fn call(requestor: Requestor, name: &str, arguments: Value) -> Called {
    let arguments = arguments.as_object().unwrap().clone();
    Called { id: "c".to_owned(), name: name.to_owned(), arguments, requestor }
}

fn ask(world: &mut World, name: &str, arguments: Value) -> (String, bool) {
    let answered = world.respond(&call(Requestor::Assistant, name, arguments));
    (answered.content.unwrap(), answered.error)
}

#[test]
fn arguments_that_nest_too_deeply_are_refused() {
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = json!({ "a": [deep] });
    }
    let mut world = World::new(domain(), false, 0);
    let (told, is_error) =
        ask(&mut world, "update_task_status", json!({ "task_id": deep, "status": "pending" }));
    assert!(is_error && told.contains("the arguments of a call nest too deeply"), "{told}");
}

#[test]
fn errors_are_worded_as_python_words_them() {
    let mut world = World::new(domain(), false, 0);
    for (name, arguments, told) in [
        ("nothing", json!({}), "Error: Tool 'nothing' not found."),
        (
            "update_task_status",
            json!({ "task_id": "x", "status": "pending" }),
            "Error: Task x not found",
        ),
        (
            "update_task_status",
            json!({ "task_id": null, "status": 1 }),
            "Error: Task None not found",
        ),
        (
            "update_task_status",
            json!({ "task_id": [1], "status": 1 }),
            "Error: unhashable type: 'list'",
        ),
        (
            "update_task_status",
            json!({}),
            "Error: MockTools.update_task_status() missing 2 required positional arguments: 'task_id' and 'status'",
        ),
        (
            "get_users",
            json!({ "verbose": true }),
            "Error: MockTools.get_users() got an unexpected keyword argument 'verbose'",
        ),
        (
            "get_users",
            json!({ "self": true }),
            "Error: Environment.make_tool_call() got multiple values for argument 'self'",
        ),
        (
            "get_users",
            json!({ "self": true, "requestor": 1 }),
            "Error: tau2.environment.environment.Environment.make_tool_call() got multiple values for keyword argument \
             'requestor'",
        ),
        (
            "create_task",
            json!({ "user_id": "user_1", "title": ["é".repeat(60)], "description": 5 }),
            "Error: 2 validation errors for Task\ntitle\n  Input should be a valid string [type=string_type, \
             input_value=['ééééééééééé...ééééééééééé'], input_type=list]\n    For further information visit \
             https://errors.pydantic.dev/2.12/v/string_type\ndescription\n  Input should be a valid string \
             [type=string_type, input_value=5, input_type=int]\n    For further information visit \
             https://errors.pydantic.dev/2.12/v/string_type",
        ),
    ] {
        assert_eq!(ask(&mut world, name, arguments), (told.to_owned(), true), "{name}");
    }
    let users = r#"[{"user_id": "user_1", "name": "Ada", "tasks": ["task_1"]}]"#;
    assert_eq!(
        ask(&mut world, "get_users", json!({})),
        (users.to_owned(), false),
        "nothing changed"
    );
}

#[test]
fn a_fork_goes_its_own_way_and_hashes_are_those_of_sorted_json() {
    let mut world = World::new(domain(), false, 0);
    let hash = |world: &World| world.hash(Requestor::Assistant).unwrap();
    // By Python's hashlib and json.
    let before = hash(&world);
    assert_eq!(before, "f1674ad23a19db150db3814a0ebdf146f650856e27d31157db7a7480f95b5a39");
    let fork = world.clone();
    assert!(
        !ask(&mut world, "update_task_status", json!({ "task_id": "task_1", "status": "é" })).1
    );
    assert!(hash(&world) != before && hash(&fork) == before);
    assert!(!world.has_same_data(&fork) && world.has_same_data(&world.clone()));
}

#[test]
fn large_tables_hash_as_small_ones_do_whatever_was_changed() {
    let (mut small, inbox) = data();
    let users: serde_json::Map<_, _> = (0..40)
        .map(|at| {
            let id = format!("u{at}");
            (id.clone(), json!({ "user_id": id, "name": "n", "tasks": [] }))
        })
        .collect();
    small["users"] = users.into();
    let open =
        |data: &Value| World::new(Arc::new(Domain::mock(data, &inbox, "", "").unwrap()), false, 0);
    let mut changed = open(&small);
    for user in ["u7", "u39", "u0", "u7"] {
        ask(&mut changed, "create_task", json!({ "user_id": user, "title": "t" }));
    }
    let text = serde_json::to_value(changed.database(Requestor::Assistant).unwrap()).unwrap();
    let anew = open(&text);
    assert_eq!(changed.hash(Requestor::Assistant), anew.hash(Requestor::Assistant));
    assert!(changed.has_same_data(&anew), "they share no base, and are the same");
}

/// A domain of the fixtures with another database.
fn fixture_with(name: DomainName, change: impl Fn(&str) -> String) -> Domain {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tau2/domains");
    let from = fixtures.join(name.as_str());
    let made: PathBuf =
        std::env::temp_dir().join(format!("spar-tau2-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&made).unwrap();
    for entry in std::fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        let text = if file.starts_with("db.") { change(&text) } else { text };
        std::fs::write(made.join(file), text).unwrap();
    }
    let domain = Domain::open(name, &made).unwrap();
    std::fs::remove_dir_all(&made).unwrap();
    domain
}

#[test]
fn what_is_looked_for_in_large_tables_is_found_whatever_was_changed() {
    let retail = fixture_with(DomainName::Retail, |text| {
        let mut data: Value = serde_json::from_str(text).unwrap();
        let user = data["users"].as_object().unwrap().values().next().unwrap().clone();
        let product = data["products"].as_object().unwrap().values().next().unwrap().clone();
        for at in 0..40 {
            let (mut user, mut product) = (user.clone(), product.clone());
            let (id, item) = (format!("u{at}"), format!("item{at}"));
            user["user_id"] = id.as_str().into();
            let first = if at % 2 == 0 { "Zoë" } else { "İda" };
            user["name"] = json!({ "first_name": first, "last_name": "Poe" });
            user["address"]["zip"] = at.to_string().into();
            user["email"] = format!("{id}@Example.org").into();
            data["users"][id] = user;
            let variant = json!({ "item_id": item, "options": {}, "available": true, "price": at });
            product["variants"] = json!({ item: variant });
            data["products"][format!("p{at}")] = product;
        }
        data.to_string()
    });
    let mut world = World::new(Arc::new(retail), false, 0);
    let find = |world: &mut World, first: &str, zip: &str| {
        let arguments = json!({ "first_name": first, "last_name": "POE", "zip": zip });
        ask(world, "find_user_id_by_name_zip", arguments).0
    };
    assert_eq!(find(&mut world, "ZOË", "38"), "u38");
    assert_eq!(find(&mut world, "İDA", "39"), "u39");
    assert_eq!(find(&mut world, "Zoë", "39"), "Error: User not found");
    let address = json!({ "user_id": "u38", "address1": "a", "address2": "", "city": "c", "state": "s",
        "country": "k", "zip": "4" });
    let fork = world.clone();
    assert!(!ask(&mut world, "modify_user_address", address).1);
    assert_eq!(find(&mut world, "Zoë", "38"), "Error: User not found");
    assert_eq!(find(&mut fork.clone(), "Zoë", "38"), "u38");
    // Of two whom it fits, the first in the order of the data.
    assert_eq!(find(&mut world, "Zoë", "4"), "u4");
    let of_name = json!({ "first_name": "Zoë", "last_name": 1, "zip": "4" });
    let told = ask(&mut world, "find_user_id_by_name_zip", of_name);
    assert_eq!(told.0, "Error: 'int' object has no attribute 'lower'");
    let email = ask(&mut world, "find_user_id_by_email", json!({ "email": "U7@EXAMPLE.ORG" }));
    assert_eq!(email.0, "u7");
    let item = ask(&mut world, "get_item_details", json!({ "item_id": "item17" })).0;
    assert_eq!(item, r#"{"item_id": "item17", "options": {}, "available": true, "price": 17.0}"#);
    let item = ask(&mut world, "get_item_details", json!({ "item_id": ["item17"] })).0;
    assert_eq!(item, "Error: unhashable type: 'list'");
    // What is written once for all is told of those alone who did not change.
    let details = |world: &mut World| ask(world, "get_user_details", json!({ "user_id": "u38" })).0;
    assert!(details(&mut world).contains(r#""zip": "4""#));
    assert!(details(&mut fork.clone()).contains(r#""zip": "38""#));
}

#[test]
fn a_copy_of_a_beginning_is_what_setting_up_anew_gives() {
    // Without a draft of a bill, a charge makes one, whose id follows from the episode's stream.
    let without_draft = |text: &str| text.replace("\"Draft\"", "\"Paid\"");
    let domain = Arc::new(fixture_with(DomainName::Telecom, without_draft));
    let told = |name: &str, arguments: Value, by: &str| json!({ "env_type": by, "func_name": name, "arguments": arguments });
    let line = json!({ "customer_id": "C1", "line_id": "L1", "gb_amount": 2 });
    let mut actions = vec![
        told("set_user_info", json!({ "name": "Tom", "phone_number": "555-01" }), "user"),
        told("break_vpn", json!({}), "user"),
    ];
    for draws in [false, true] {
        if draws {
            actions.push(told("refuel_data", line.clone(), "assistant"));
        }
        let state = json!({ "initialization_actions": actions });
        let state: InitialState = serde_json::from_value(state).unwrap();
        let beginning = Beginning::new(Arc::clone(&domain), Some(&state), false).unwrap();
        let hashes = |world: &World| {
            [Requestor::Assistant, Requestor::User].map(|requestor| world.hash(requestor).unwrap())
        };
        let mut found = Vec::new();
        for stream in [1, 2] {
            let mut copy = beginning.world(stream).unwrap();
            let mut anew = World::new(Arc::clone(&domain), false, stream);
            anew.initialise(Some(&state)).unwrap();
            assert_eq!(hashes(&copy), hashes(&anew));
            // What is drawn later follows from the stream as well, and what one episode changes no other one has.
            let calls = [
                call(Requestor::Assistant, "refuel_data", line.clone()),
                call(
                    Requestor::Assistant,
                    "enable_roaming",
                    json!({ "customer_id": "C1", "line_id": "L1" }),
                ),
                call(Requestor::User, "toggle_airplane_mode", json!({})),
                call(Requestor::User, "disconnect_vpn", json!({})),
            ];
            for call in &calls {
                assert_eq!(copy.respond(call), anew.respond(call));
                assert_eq!(hashes(&copy), hashes(&anew), "{}", call.name);
            }
            found.push(hashes(&copy));
        }
        assert_ne!(found[0][0], found[1][0], "ids of bills differ");
    }
    let wrong = json!({ "initialization_actions": [told("nothing", json!({}), "user")] });
    let wrong: InitialState = serde_json::from_value(wrong).unwrap();
    assert!(Beginning::new(domain, Some(&wrong), false).is_err());
}

#[test]
fn merged_data_are_one_database_for_both() {
    let mut world = World::new(domain(), false, 0);
    let state: InitialState = serde_json::from_value(json!({
        "initialization_data": { "agent_data": { "tasks": { "task_1": { "status": "completed" } } } },
    }))
    .unwrap();
    world.initialise(Some(&state)).unwrap();
    assert_eq!(world.hash(Requestor::Assistant), world.hash(Requestor::User));
    let answered = world.respond(&call(Requestor::User, "check_notifications", json!({})));
    let told = "Error: 'MockDB' object has no attribute 'notifications'";
    assert_eq!(answered.content.as_deref(), Some(told));
    let wrong: InitialState = serde_json::from_value(json!({
        "initialization_data": { "agent_data": { "foo": 1 } },
    }))
    .unwrap();
    let error = World::new(domain(), false, 0).initialise(Some(&wrong)).unwrap_err();
    assert!(error.text.contains("Extra inputs are not permitted"), "{error}");
}

#[test]
fn an_agent_alone_has_the_tools_of_both() {
    let mut world = World::new(domain(), true, 0);
    let read = ask(&mut world, "dismiss_notification", json!({ "notification_id": "n1" }));
    assert_eq!(read, ("Notification n1 dismissed".to_owned(), false));
    let answered = world.respond(&call(Requestor::User, "check_notifications", json!({})));
    assert_eq!(
        answered.content.as_deref(),
        Some("Error: User tool calls are not allowed in solo mode")
    );
}

fn task(criteria: Value) -> Tau2Task {
    let task = json!({ "id": "t", "user_scenario": { "instructions": "i" }, "evaluation_criteria": criteria });
    serde_json::from_value(task).unwrap()
}

fn conversation(calls: Vec<Called>, said: &str) -> Vec<Message> {
    let mut world = World::new(domain(), false, 0);
    let mut messages = Vec::new();
    for call in calls {
        let answered = world.respond(&call);
        messages.push(Message::Assistant(Said { content: None, tool_calls: Some(vec![call]) }));
        messages.push(Message::Tool(answered));
    }
    messages.push(Message::Assistant(Said { content: Some(said.to_owned()), tool_calls: None }));
    messages
}

#[test]
fn rewards_follow_the_rules_of_the_release() {
    let gold = json!({ "user_id": "user_1", "title": "Meet" });
    let criteria = json!({
        "actions": [{ "action_id": "a", "name": "create_task", "arguments": gold }],
        "env_assertions": [{
            "env_type": "assistant", "func_name": "assert_number_of_tasks",
            "arguments": { "user_id": "user_1", "expected_number": 2 },
        }],
        "communicate_info": ["1,200 MEET"],
        "reward_basis": ["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE"],
    });
    let judged = |calls: Vec<Called>, said: &str, criteria: &Value| {
        let messages = conversation(calls, said);
        let found = judge(&domain(), &task(criteria.clone()), &messages, false, 0).unwrap();
        (found.reward(), found)
    };
    let create = |title: &str| {
        call(Requestor::Assistant, "create_task", json!({ "user_id": "user_1", "title": title }))
    };
    // Commas are taken out of what was said alone, so a sentence with one is never found.
    let (reward, found) = judged(vec![create("Meet")], "It is 1,200 Meet.", &criteria);
    assert_eq!(
        (reward, found.is_db_match, &found.communicated[..]),
        (0.0, Some(true), &[false][..])
    );
    let mut without = criteria.clone();
    without["communicate_info"] = json!(["1200 MEET"]);
    assert_eq!(judged(vec![create("Meet")], "It is 1,200 Meet.", &without).0, 1.0);
    let (reward, found) = judged(vec![create("Other")], "1200 meet", &without);
    assert_eq!(reward, 0.0);
    assert_eq!((found.is_db_match, &found.assertions[..]), (Some(false), &[true][..]));
    assert_eq!(found.parts()[&RewardType::Action], 0.0);
    let (reward, found) = judged(vec![], "1200 meet", &without);
    assert_eq!((reward, &found.actions[..]), (0.0, &[false][..]));
    // Nothing to be done: whatever was done is right.
    let (reward, found) = judged(vec![create("Other")], "", &json!({ "nl_assertions": ["x"] }));
    assert_eq!((reward, found.is_db_match), (1.0, None));
    // A call without arguments matches, and so does one with some of them.
    let bare = call(Requestor::User, "create_task", json!({}));
    assert_eq!(judged(vec![bare], "", &criteria).1.actions, [true]);
}

#[test]
fn an_answer_that_is_not_what_was_recorded_stops_the_judging() {
    let criteria = json!({ "actions": [] });
    let mut messages = conversation(
        vec![call(
            Requestor::Assistant,
            "create_task",
            json!({ "user_id": "user_1", "title": "a" }),
        )],
        "",
    );
    assert!(judge(&domain(), &task(criteria.clone()), &messages, false, 0).is_ok());
    messages[1] = Message::Tool(Answered {
        id: "c".to_owned(),
        content: Some("done".to_owned()),
        requestor: Requestor::Assistant,
        error: false,
    });
    let error = judge(&domain(), &task(criteria), &messages, false, 0).unwrap_err();
    assert!(error.text.contains("`create_task` returned"), "{error}");
}

#[test]
fn hostile_arguments_are_answered() {
    let mut world = World::new(domain(), false, 0);
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    for value in [
        deep,
        "x".repeat(1 << 20).into(),
        json!({ "a": { "b": null } }),
        json!(1e300),
        json!("\u{202e}'\""),
    ] {
        for (name, argument) in [
            ("create_task", "user_id"),
            ("create_task", "title"),
            ("update_task_status", "task_id"),
        ] {
            let mut arguments =
                json!({ "user_id": "user_1", "title": "t", "task_id": "task_1", "status": "x" });
            arguments[argument] = value.clone();
            let names: &[&str] = match name {
                "create_task" => &["user_id", "title"],
                _ => &["task_id", "status"],
            };
            let arguments: serde_json::Map<_, _> =
                names.iter().map(|name| ((*name).to_owned(), arguments[*name].clone())).collect();
            let (told, _) = ask(&mut world, name, arguments.into());
            assert!(told.len() < 3 << 20, "{name}");
        }
    }
}
