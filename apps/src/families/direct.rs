//! Everything that is needed is in the instruction.

use serde_json::json;

use super::{amount, asked, moment, money, sent, some_event, some_file, some_mail, some_person};
use crate::Draft;
use crate::facts::{Answer, Fact};
use crate::goal::Required;
use crate::problem::Problem;

pub(super) fn send_money(draft: &mut Draft) -> Problem {
    let (to, cents, note) = (some_person(draft), draft.cents(1, 99), draft.note());
    let sum = money(cents);
    Problem::new(format!("Send {sum} to {} with the note \"{note}\".", to.email)).make(
        "payments_send",
        json!({ "to": to.email, "amount": amount(cents), "note": note }),
        [sent(&to, cents, &note)],
    )
}

pub(super) fn request_money(draft: &mut Draft) -> Problem {
    let (from, cents, note) = (some_person(draft), draft.cents(1, 99), draft.note());
    let sum = money(cents);
    Problem::new(format!("Ask {} for {sum} with the note \"{note}\".", from.email)).make(
        "payments_request",
        json!({ "from": from.email, "amount": amount(cents), "note": note }),
        [asked(&from, cents, &note)],
    )
}

pub(super) fn ask_balance(draft: &mut Draft) -> Problem {
    let balance = draft.world.payments.balance();
    Problem::new("How much money do you have?")
        .look("payments_balance", json!({}), &money(balance))
        .answer(Answer::One(Fact::Amount(balance)))
}

pub(super) fn star_mail(draft: &mut Draft) -> Problem {
    let (mail, _) = some_mail(draft);
    Problem::new(format!("Give the mail {} a star.", mail.id)).make(
        "mail_star",
        json!({ "mail": mail.id, "starred": true }),
        [Required::changed("mail", mail.id).is("starred", true)],
    )
}

pub(super) fn file_mail(draft: &mut Draft) -> Problem {
    let (mail, _) = some_mail(draft);
    let folder = draft.pick(&["archive", "receipts", "travel"]);
    Problem::new(format!("Move the mail {} to the folder {folder}.", mail.id)).make(
        "mail_move",
        json!({ "mail": mail.id, "folder": folder }),
        [Required::changed("mail", mail.id).is("folder", folder)],
    )
}

pub(super) fn send_mail(draft: &mut Draft) -> Problem {
    let (to, subject, note) = (some_person(draft), draft.subject(), draft.note());
    let body = format!("Do not forget: {note}.");
    let instruction = format!(
        "Send a mail to {} with the subject \"{subject}\" and the text \"{body}\"",
        to.email
    );
    let required =
        super::mailed(draft, &[&to.email]).reads("subject", &subject).reads("body", &body);
    Problem::new(instruction).make(
        "mail_send",
        json!({ "to": [to.email], "subject": subject, "body": body }),
        [required],
    )
}

pub(super) fn make_event(draft: &mut Draft) -> Problem {
    let (title, day, at) = (draft.title(), draft.day(), draft.quarter());
    let minutes = draft.pick(&[30, 45, 60, 90]);
    let start = moment(day, at);
    let required = Required::made("event")
        .reads("title", &title)
        .is("start", start.as_str())
        .is("end", moment(day, at + minutes));
    Problem::new(format!("Make an event \"{title}\" at {start} for {minutes} minutes.")).make(
        "calendar_create",
        json!({ "title": title, "start": start, "minutes": minutes }),
        [required],
    )
}

pub(super) fn move_event(draft: &mut Draft) -> Problem {
    let event = some_event(draft);
    let (start, required) = super::single::moved_event(draft, &event);
    Problem::new(format!("Move the event {} to {start}.", event.id))
        .make("calendar_move", json!({ "event": event.id, "start": start }), [required])
        .keep("the event was removed", "event", &event.id)
}

pub(super) fn write_file(draft: &mut Draft) -> Problem {
    let (folder, name) = (draft.pick(crate::words::FOLDERS), draft.file_name());
    let (path, text) =
        (format!("/{folder}/{name}"), format!("{} and {}", draft.note(), draft.city()));
    let required = Required::made("file").key(path.as_str()).reads("text", &text);
    Problem::new(format!("Write the text \"{text}\" to the new file {path}.")).make(
        "files_write",
        json!({ "path": path, "text": text }),
        [required],
    )
}

pub(super) fn delete_file(draft: &mut Draft) -> Problem {
    let file = some_file(draft);
    Problem::new(format!("Remove the file {}.", file.id)).make(
        "files_delete",
        json!({ "path": file.id }),
        [Required::removed("file", file.id)],
    )
}

pub(super) fn add_contact(draft: &mut Draft) -> Problem {
    let ((name, email), phone) = (draft.stranger(), draft.phone());
    let required = Required::made("contact")
        .reads("name", &name)
        .is("email", email.as_str())
        .is("phone", phone.as_str());
    Problem::new(format!(
        "Add the contact {name} with the address {email} and the telephone number {phone}."
    ))
    .make("contacts_add", json!({ "name": name, "email": email, "phone": phone }), [required])
}

pub(super) fn change_phone(draft: &mut Draft) -> Problem {
    let person = some_person(draft);
    let phone = draft.until(|draft| Some(draft.phone()).filter(|phone| *phone != person.phone));
    Problem::new(format!("Change the telephone number of the contact {} to {phone}.", person.id))
        .make(
            "contacts_update",
            json!({ "contact": person.id, "phone": phone }),
            [Required::changed("contact", person.id).is("phone", phone)],
        )
}
