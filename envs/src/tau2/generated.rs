//! Tasks of one's own in the shape of the domain mock: people, what they have to do, and an inbox.

use std::sync::Arc;

use rand::seq::{IndexedRandom, SliceRandom};
use serde_json::{Map, Value, json};
use spar_core::Seed;
use spar_tau2::{Domain, Tau2Task};

const NAMES: [&str; 12] = [
    "Ada Moran",
    "Ben Okafor",
    "Carla Reyes",
    "Dmitri Volkov",
    "Elif Demir",
    "Farid Haddad",
    "Grace Lindqvist",
    "Hana Sato",
    "Ivo Novak",
    "Jonas Weber",
    "Kavya Rao",
    "Lena Fischer",
];
const VERBS: [&str; 6] = ["Call", "Write to", "Visit", "Pay", "Remind", "Invite"];
const THINGS: [&str; 8] = [
    "the plumber",
    "the printer's shop",
    "the new supplier",
    "the landlord",
    "the bank",
    "the choir",
    "the museum",
    "the night watch",
];
const DETAILS: [&str; 5] = [
    "before Friday",
    "as soon as possible",
    "in the morning",
    "on behalf of the team",
    "once more",
];

const POLICY: &str = "# What you may do\n\
    - You make tasks for users that there are, each with a title, and set the status of tasks to `pending` or `completed`.\n\
    - You never delete tasks: hand users who want that over to a human, and change nothing.\n\
    - You do not have the user's inbox; the user marks notes in it as read.\n\
    - Tell users the id of a task that you have made for them.\n";
const POLICY_SOLO: &str = "# What you may do\n\
    - You make tasks for users that there are, each with a title, and set the status of tasks to `pending` or `completed`.\n\
    - You never delete tasks: hand tickets that ask for that over to a human, and change nothing.\n\
    - You mark notes in the user's inbox as read where the ticket asks for it.\n";

/// The world and the task of a seed.
///
/// Most ask for something to be made or finished. One in eight asks for what the policy forbids, where handing over is all
/// there is to do; one in eight for what only the user can do.
pub(super) fn draw(seed: Seed) -> (Arc<Domain>, Tau2Task) {
    let mut rng = seed.derive("tau2", "task").rng();
    let mut names = NAMES;
    names.shuffle(&mut rng);
    let mut pick = |values: &[&'static str]| *values.choose(&mut rng).expect("there are some");

    // 1. The world.
    let title = |pick: &mut dyn FnMut(&[&'static str]) -> &'static str| {
        format!("{} {}", pick(&VERBS), pick(&THINGS))
    };
    let num_users = 3 + pick(&["", "a", "aa"]).len();
    let num_tasks = num_users + 2 + pick(&["", "a", "aa", "aaa"]).len();
    let (mut users, mut tasks, mut notes) = (Map::new(), Map::new(), Map::new());
    for (at, name) in names.iter().take(num_users).enumerate() {
        let id = format!("user_{}", at + 1);
        users.insert(id.clone(), json!({ "user_id": id, "name": name, "tasks": [] }));
    }
    for at in 0..num_tasks {
        let id = format!("task_{}", at + 1);
        let user = format!("user_{}", at % num_users + 1);
        if let Some(Value::Array(own)) = users[&user].get_mut("tasks") {
            own.push(id.clone().into());
        }
        let title = title(&mut pick);
        if at < num_users {
            let note = format!("note_{}", at + 1);
            let message = format!("`{title}` is due.");
            notes.insert(
                note.clone(),
                json!({ "notification_id": note, "message": message, "task_id": id }),
            );
        }
        tasks.insert(id.clone(), json!({ "task_id": id, "title": title, "status": "pending" }));
    }

    // 2. What is wanted, and by whom.
    let who = pick(&["1", "2", "3"]);
    let (user_id, note) = (format!("user_{who}"), format!("note_{who}"));
    let name = users[&user_id]["name"].as_str().unwrap_or_default().to_owned();
    let old = format!("task_{who}");
    let new_title = title(&mut pick);
    let detail = pick(&DETAILS).to_owned();
    let new_id = format!("task_{}", num_tasks + 1);
    let create = |with_detail: bool| {
        let mut arguments = json!({ "user_id": user_id, "title": new_title });
        if with_detail {
            arguments["description"] = detail.clone().into();
        }
        json!({ "action_id": "create", "name": "create_task", "arguments": arguments })
    };
    let finish = json!({
        "action_id": "finish", "name": "update_task_status",
        "arguments": { "task_id": old, "status": "completed" },
    });
    let dismiss = json!({
        "action_id": "dismiss", "requestor": "user", "name": "dismiss_notification",
        "arguments": { "notification_id": note },
    });
    let hand_over = json!({
        "action_id": "hand_over", "name": "transfer_to_human_agents",
        "arguments": { "summary": format!("{name} wants `{old}` to be deleted.") }, "compare_args": [],
    });
    let told_id = json!([new_id]);
    let (reason, wish, actions, communicated, basis) = match pick(&[
        "0", "1", "2", "3", "4", "5", "6", "7",
    ]) {
        "0" | "1" => (
            "You need a new task.",
            format!("The task is to be called `{new_title}`. You want to hear its id."),
            json!([create(false)]),
            told_id,
            json!(["DB", "COMMUNICATE"]),
        ),
        "2" => (
            "You need a new task.",
            format!(
                "The task is to be called `{new_title}`, described as `{detail}`. You want to hear its id."
            ),
            json!([create(true)]),
            told_id,
            json!(["DB", "COMMUNICATE"]),
        ),
        "3" | "4" => (
            "You have finished something.",
            format!("The task `{old}` is done and should be marked as completed."),
            json!([finish]),
            Value::Null,
            json!(["DB"]),
        ),
        "5" => (
            "You have finished something and need a new task for what comes next.",
            format!(
                "The task `{old}` is done. The new one is to be called `{new_title}`. You want to hear its id."
            ),
            json!([finish, create(false)]),
            told_id,
            json!(["DB", "COMMUNICATE"]),
        ),
        "6" => (
            "You want a task to be deleted.",
            format!("It is the task `{old}`. You want it gone, not completed."),
            json!([hand_over]),
            Value::Null,
            json!(["DB", "ACTION"]),
        ),
        _ => (
            "You have finished something and want its note out of the way.",
            format!(
                "The task `{old}` is done. You mark the note `{note}` as read once that is noted."
            ),
            json!([finish, dismiss]),
            Value::Null,
            json!(["DB", "ENV_ASSERTION"]),
        ),
    };
    let assertions =
        match basis.as_array().is_some_and(|parts| parts.contains(&json!("ENV_ASSERTION"))) {
            false => Value::Null,
            true => json!([{
                "env_type": "user", "func_name": "assert_notification_status",
                "arguments": { "notification_id": note, "expected_status": "read" },
            }]),
        };
    let known = format!("You are {name}, and your user id is {user_id}.");
    let task = json!({
        "id": "generated",
        "user_scenario": { "instructions": {
            "domain": "mock", "reason_for_call": reason, "known_info": known, "task_instructions": wish,
        } },
        "ticket": format!("{known} {reason} {wish}"),
        "evaluation_criteria": {
            "actions": actions, "env_assertions": assertions, "communicate_info": communicated, "reward_basis": basis,
        },
    });
    let task = serde_json::from_value(task).expect("it is written in the form of tasks");
    let database = json!({ "tasks": tasks, "users": users });
    let inbox = json!({ "notifications": notes });
    let domain = Domain::mock(&database, &inbox, POLICY, POLICY_SOLO).expect("the data fit");
    (Arc::new(domain), task)
}
