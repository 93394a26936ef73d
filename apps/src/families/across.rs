//! Two applications.

use serde_json::json;

use super::{Found, amount, money, replied, sent, some_event, some_file, some_mail, some_person};
use crate::Draft;
use crate::facts::Fact;
use crate::goal::Required;
use crate::mail::Message;
use crate::problem::Problem;

pub(super) fn reply_date(draft: &mut Draft) -> Problem {
    let ((mail, from), event) = (some_mail(draft), some_event(draft));
    let (subject, title) = (&mail.record.subject, &event.record.title);
    let other = draft.lookalike(&from);
    let date = event.record.start.date();
    let required = replied(draft, &mail, vec![Fact::Date(date)]);
    Problem::new(format!(
        "Reply to the mail \"{subject}\" from {} with the date of the event \"{title}\".",
        from.name
    ))
    .look("mail_search", json!({ "query": subject }), &mail.id)
    .look("calendar_search", json!({ "query": title }), &date.to_string())
    .make("mail_reply", json!({ "mail": mail.id, "body": date.to_string() }), [required])
    .never("somebody else was written to", "mail", "to", &other.email)
}

pub(super) fn reply_phone(draft: &mut Draft) -> Problem {
    let ((mail, from), person) = (some_mail(draft), some_person(draft));
    let subject = &mail.record.subject;
    let required = phone_alone(draft, &mail, &person.phone);
    Problem::new(format!(
        "Reply to the mail \"{subject}\" from {} with the telephone number of {}, and nothing else.",
        from.name, person.name
    ))
    .look("mail_search", json!({ "query": subject }), &mail.id)
    .look("contacts_search", json!({ "query": person.name }), &person.phone)
    .make("mail_reply", json!({ "mail": mail.id, "body": person.phone }), [required])
}

/// A reply that is a telephone number.
fn phone_alone(draft: &Draft, mail: &Found<Message>, phone: &str) -> Required {
    super::mailed(draft, &[&mail.record.from])
        .is("about", mail.id.as_str())
        .any("subject")
        .reads("body", phone)
}

pub(super) fn pay_by_name(draft: &mut Draft) -> Problem {
    let (to, cents, note) = (some_person(draft), draft.cents(1, 99), draft.note());
    let (sum, other) = (money(cents), draft.lookalike(&to));
    Problem::new(format!("Send {sum} to {} with the note \"{note}\".", to.name))
        .look("contacts_search", json!({ "query": to.name }), &to.email)
        .make(
            "payments_send",
            json!({ "to": to.email, "amount": amount(cents), "note": note }),
            [sent(&to, cents, &note)],
        )
        .never("somebody else was paid", "payment", "with", &other.email)
}

pub(super) fn pay_invoice(draft: &mut Draft) -> Problem {
    let (from, subject, note) = (some_person(draft), draft.subject(), draft.note());
    let (cents, paid) = (draft.cents(3, 99), draft.cents(100, 130));
    let (sum, paid) = (money(cents), money(paid));
    let body =
        format!("Hello, you owe me {sum} for the {note}. I paid {paid} for all of us. Thank you.");
    let id = draft.add_mail(&from.email, &subject, &body, &[]);
    Problem::new(format!(
        "Send the sender of the mail \"{subject}\" what the mail says you owe, with the note \"{note}\"."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), &sum)
    .make(
        "payments_send",
        json!({ "to": from.email, "amount": amount(cents), "note": note }),
        [sent(&from, cents, &note)],
    )
}

pub(super) fn event_from_mail(draft: &mut Draft) -> Problem {
    let (from, subject, title) = (some_person(draft), draft.subject(), draft.title());
    let (day, at, minutes) = (draft.day(), draft.quarter(), draft.pick(&[30, 60, 90]));
    let start = day.at(at);
    let body = format!(
        "Shall we meet on {day} at {}? It takes {minutes} minutes.",
        crate::moment::time_words(at)
    );
    let id = draft.add_mail(&from.email, &subject, &body, &[]);
    let required = Required::made("event")
        .reads("title", &title)
        .is("start", start.to_string())
        .is("end", start.plus_minutes(minutes).to_string())
        .is("attendees", vec![from.email.clone()]);
    Problem::new(format!(
        "Make the event that the mail \"{subject}\" proposes, with the title \"{title}\" and the sender of the mail as \
         attendee."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), &day.to_string())
    .make(
        "calendar_create",
        json!({ "title": title, "start": start.to_string(), "minutes": minutes, "attendees": [from.email] }),
        [required],
    )
}

pub(super) fn save_attachment(draft: &mut Draft) -> Problem {
    let (from, subject, name) = (some_person(draft), draft.subject(), draft.file_name());
    let text = format!("{} for {}", draft.note(), draft.city());
    let id = draft.add_mail(
        &from.email,
        &subject,
        "Hello, the file is with this mail.",
        &[(&name, &text)],
    );
    let folder = format!("/{}", draft.pick(crate::words::FOLDERS));
    let required = Required::made("file").key(format!("{folder}/{name}")).is("text", text);
    Problem::new(format!("Save the attachment of the mail \"{subject}\" in the folder {folder}."))
        .look("mail_search", json!({ "query": subject }), &id)
        .look("mail_read", json!({ "mail": id }), &name)
        .make(
            "mail_save_attachment",
            json!({ "mail": id, "attachment": name, "folder": folder }),
            [required],
        )
}

pub(super) fn share_by_name(draft: &mut Draft) -> Problem {
    let (file, person) = (some_file(draft), some_person(draft));
    let (name, other) = (file.name(), draft.lookalike(&person));
    let required =
        Required::changed("file", file.id.as_str()).is("shared_with", vec![person.email.clone()]);
    Problem::new(format!(
        "Share the file {name}, in whatever folder that is, with {}.",
        person.name
    ))
    .look("files_search", json!({ "query": name }), &file.id)
    .look("contacts_search", json!({ "query": person.name }), &person.email)
    .make("files_share", json!({ "path": file.id, "email": person.email }), [required])
    .never("it was shared with somebody else", "file", "shared_with", &other.email)
}

pub(super) fn mail_file(draft: &mut Draft) -> Problem {
    let (file, to, subject) = (some_file(draft), some_person(draft), draft.subject());
    let name = file.name();
    let attached = json!([{ "name": name, "text": file.record.text }]);
    let required = super::mailed(draft, &[&to.email])
        .reads("subject", &subject)
        .any("body")
        .is("attachments", attached);
    Problem::new(format!(
        "Mail the file {name}, in whatever folder that is, to {} as an attachment, with the subject \"{subject}\".",
        to.email
    ))
    .look("files_search", json!({ "query": name }), &file.id)
    .make(
        "mail_send",
        json!({ "to": [to.email], "subject": subject, "body": "Here it is.", "attachments": [file.id] }),
        [required],
    )
}

pub(super) fn attendee_file(draft: &mut Draft) -> Problem {
    let (event, name) = (some_event(draft), draft.file_name());
    let people = super::attendees(draft, &event.record);
    let path = format!("/{}/{name}", draft.pick(crate::words::FOLDERS));
    let lines: Vec<&str> = people.iter().map(|person| person.name.as_str()).collect();
    let required = Required::made("file").key(path.as_str()).lists("text", &lines);
    let title = &event.record.title;
    Problem::new(format!(
        "Write the names of all attendees of the event \"{title}\" to the new file {path}, one on each line."
    ))
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), &people[0].name)
    .make("files_write", json!({ "path": path, "text": lines.join("\n") }), [required])
}
