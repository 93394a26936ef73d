//! What the user of the domain mock can do.

use spar_python::{Outcome, Value, equal};

use super::data::NOTIFICATION;
use crate::database::Database;
use crate::object::{attribute, refuse, set, shown};
use crate::reply::Reply;
use crate::signature::ArgumentType::Str;
use crate::signature::ToolKind::{Hidden, Read, Write};
use crate::signature::{Arguments, Signature, argument, optional};
use crate::validate::make;

/// The tools, and what else initial states and assertions call.
pub(crate) const SIGNATURES: &[Signature] = &[
    Signature {
        name: "check_notifications",
        kind: Read,
        parameters: &[],
        about: "Shows the notes in your inbox.",
    },
    Signature {
        name: "dismiss_notification",
        kind: Write,
        parameters: &[argument("notification_id", Str, "The note.")],
        about: "Marks a note as read.",
    },
    Signature {
        name: "add_notification",
        kind: Hidden,
        parameters: &[
            argument("notification_id", Str, "The note."),
            argument("message", Str, "What it says."),
            optional("task_id", Str, "The task it is about."),
        ],
        about: "Puts a note into the inbox.",
    },
    Signature {
        name: "assert_notification_status",
        kind: Hidden,
        parameters: &[
            argument("notification_id", Str, "The note."),
            argument("expected_status", Str, "The status it is to have."),
        ],
        about: "Whether a note has this status.",
    },
];

/// Carries out a tool of [`SIGNATURES`].
///
/// # Errors
///
/// What the tool raises.
pub(crate) fn call(db: &mut Database, name: &str, arguments: &Arguments) -> Outcome<Reply> {
    let id = arguments.get(0);
    let none = |id: &Value| refuse(format_args!("Notification {} not found", shown(id)?));
    match name {
        "check_notifications" => {
            let notes = db.rows("notifications")?.map(|(_, note)| note.clone());
            Ok(Reply::Models(Value::list(notes)))
        }
        "dismiss_notification" => {
            let Some(note) = db.row_mut("notifications", id)? else { return none(id) };
            set(note, "status", "read".into())?;
            Ok(Reply::Text(format!("Notification {} dismissed", shown(id)?)))
        }
        "add_notification" => {
            let fields = [
                ("notification_id", id.clone()),
                ("message", arguments.get(1).clone()),
                ("task_id", arguments.get(2).clone()),
            ];
            let note = make(&NOTIFICATION, fields)?;
            db.insert("notifications", id.clone(), note.clone())?;
            Ok(Reply::Models(note))
        }
        _ => {
            let Some(note) = db.row("notifications", id)? else { return none(id) };
            Ok(Reply::Truth(equal(attribute(note, "status")?, arguments.get(1))))
        }
    }
}
