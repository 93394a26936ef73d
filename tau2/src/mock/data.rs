//! The data of the domain mock.

use spar_python::Value;

use crate::schema::Kind::{Dict, List, Literal, Model as Of, Str};
use crate::schema::{Kind, Model, defaults, optional, required};

const STATUS: Kind = Literal(&["pending", "completed"]);

/// A task of a user's.
pub(crate) static TASK: Model = Model::open(
    "Task",
    &[
        required("task_id", Str),
        required("title", Str),
        optional("description", &Str),
        required("status", STATUS),
    ],
);

static USER: Model = Model::open(
    "User",
    &[required("user_id", Str), required("name", Str), required("tasks", List(&Str))],
);

/// The database of the agent.
pub(crate) static DATABASE: Model = Model::closed(
    "MockDB",
    &[required("tasks", Dict(&Str, &Of(&TASK))), required("users", Dict(&Str, &Of(&USER)))],
);

/// A note in the user's inbox.
pub(crate) static NOTIFICATION: Model = Model::closed(
    "Notification",
    &[
        required("notification_id", Str),
        required("message", Str),
        defaults("status", Literal(&["unread", "read"]), || Value::from("unread")),
        optional("task_id", &Str),
    ],
);

/// The database of the user.
pub(crate) static USER_DATABASE: Model =
    Model::closed(
        "MockUserDB",
        &[defaults("notifications", Dict(&Str, &Of(&NOTIFICATION)), || {
            Value::Dict(Default::default())
        })],
    );
