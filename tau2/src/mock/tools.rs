//! What the agent of the domain mock can do.

use spar_python::{Outcome, Value, equal};

use super::data::TASK;
use crate::database::Database;
use crate::object::{attribute, list_mut, refuse, set, shown};
use crate::reply::Reply;
use crate::signature::ArgumentType::{Int, OneOf, Str};
use crate::signature::ToolKind::{Generic, Hidden, Read, Write};
use crate::signature::{Arguments, Signature, argument, optional};
use crate::validate::make;

const STATUS: crate::signature::ArgumentType = OneOf(&["pending", "completed"]);

/// The tools, and what else initial states and assertions call.
pub(crate) const SIGNATURES: &[Signature] = &[
    Signature {
        name: "create_task",
        kind: Write,
        parameters: &[
            argument("user_id", Str, "The user the task is for."),
            argument("title", Str, "The title."),
            optional("description", Str, "What is to be done."),
        ],
        about: "Makes a new task for a user.",
    },
    Signature { name: "get_users", kind: Read, parameters: &[], about: "Lists all users." },
    Signature {
        name: "update_task_status",
        kind: Write,
        parameters: &[
            argument("task_id", Str, "The task."),
            argument("status", STATUS, "The status it is to have."),
        ],
        about: "Sets the status of a task.",
    },
    Signature {
        name: "transfer_to_human_agents",
        kind: Generic,
        parameters: &[argument("summary", Str, "What the user's problem is, in short.")],
        about: "Hands the user over to a human. Only where the user asks for one, or where neither the policy nor the tools allow to solve the problem.",
    },
    Signature {
        name: "assert_number_of_tasks",
        kind: Hidden,
        parameters: &[
            argument("user_id", Str, "The user."),
            argument("expected_number", Int, "How many tasks the user is to have."),
        ],
        about: "Whether a user has so many tasks.",
    },
    Signature {
        name: "assert_task_status",
        kind: Hidden,
        parameters: &[
            argument("task_id", Str, "The task."),
            argument("expected_status", STATUS, "The status it is to have."),
        ],
        about: "Whether a task has this status.",
    },
];

/// Carries out a tool of [`SIGNATURES`].
///
/// # Errors
///
/// What the tool raises.
pub(crate) fn call(db: &mut Database, name: &str, arguments: &Arguments) -> Outcome<Reply> {
    let argument = |place| arguments.get(place);
    match name {
        "create_task" => create_task(db, argument(0), argument(1), argument(2)),
        "get_users" => {
            let users = db.rows("users")?.map(|(_, user)| user.clone());
            Ok(Reply::Models(Value::list(users)))
        }
        "update_task_status" => {
            let (task_id, status) = (argument(0), argument(1));
            let Some(task) = db.row_mut("tasks", task_id)? else { return no_task(task_id) };
            set(task, "status", status.clone())?;
            Ok(Reply::Models(task.clone()))
        }
        "transfer_to_human_agents" => Ok(Reply::text("Transfer successful")),
        "assert_number_of_tasks" => {
            let (user_id, expected) = (argument(0), argument(1));
            let Some(user) = db.row("users", user_id)? else { return no_user(user_id) };
            let number = spar_python::length(attribute(user, "tasks")?)?;
            Ok(Reply::Truth(equal(&Value::from(number), expected)))
        }
        _ => {
            let (task_id, expected) = (argument(0), argument(1));
            let Some(task) = db.row("tasks", task_id)? else { return no_task(task_id) };
            Ok(Reply::Truth(equal(attribute(task, "status")?, expected)))
        }
    }
}

fn create_task(
    db: &mut Database,
    user_id: &Value,
    title: &Value,
    description: &Value,
) -> Outcome<Reply> {
    if db.row("users", user_id)?.is_none() {
        return no_user(user_id);
    }
    let task_id = Value::from(format!("task_{}", db.num_rows("tasks")? + 1));
    let task = make(
        &TASK,
        [
            ("task_id", task_id.clone()),
            ("title", title.clone()),
            ("description", description.clone()),
            ("status", "pending".into()),
        ],
    )?;
    db.insert("tasks", task_id.clone(), task.clone())?;
    let Some(user) = db.row_mut("users", user_id)? else { return no_user(user_id) };
    list_mut(user, "tasks")?.push(task_id);
    Ok(Reply::Models(task))
}

fn no_user<T>(user_id: &Value) -> Outcome<T> {
    refuse(format_args!("User {} not found", shown(user_id)?))
}

fn no_task<T>(task_id: &Value) -> Outcome<T> {
    refuse(format_args!("Task {} not found", shown(task_id)?))
}
