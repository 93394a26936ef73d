//! Tests on small data of one's own.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Answered, Message};
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
