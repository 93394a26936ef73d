//! Families that are kept for tests: other combinations of the same tools.

use serde_json::json;

use super::{
    Found, amount, money, sent, some_event, some_file, some_group, some_mail, some_person,
};
use crate::Draft;
use crate::facts::Fact;
use crate::goal::Required;
use crate::problem::Problem;

pub(super) fn remind_day(draft: &mut Draft) -> Problem {
    let (day, events) = super::single::full_day(draft);
    let minutes = draft.pick(&[10, 15, 30, 45]);
    let mut problem =
        Problem::new(format!("Set a reminder {minutes} minutes before every event on {day}."))
            .look("calendar_day", json!({ "date": day.to_string() }), &events[0]);
    for id in events {
        problem = problem.make(
            "calendar_set_reminder",
            json!({ "event": id, "minutes": minutes }),
            [Required::changed("event", id.as_str()).is("reminder", minutes)],
        );
    }
    problem
}

pub(super) fn cancel_requests(draft: &mut Draft) -> Problem {
    for place in 0..2 {
        let (with, cents, note) = (draft.people[place].clone(), draft.cents(2, 50), draft.note());
        draft.add_request("outgoing", &with, cents, &note);
    }
    let open = draft.world.payments.requests.iter().filter(|(_, it)| it.direction == "outgoing");
    let ids: Vec<String> = open.map(|(key, _)| crate::table::id('r', *key)).collect();
    let mut problem = Problem::new("Cancel all open requests in which you want money from others.")
        .look("payments_requests", json!({}), &ids[0]);
    for id in ids {
        problem = problem.make(
            "payments_cancel_request",
            json!({ "request": id }),
            [Required::changed("request", id.as_str()).is("status", "cancelled")],
        );
    }
    problem
}

pub(super) fn forward_to_group(draft: &mut Draft) -> Problem {
    let ((group, members), (mail, from)) = (some_group(draft), some_mail(draft));
    let to: Vec<&str> = members.iter().map(|member| member.email.as_str()).collect();
    let (subject, body) = (&mail.record.subject, &mail.record.body);
    let required =
        super::mailed(draft, &to).any("subject").reads("body", body).is("about", mail.id.as_str());
    Problem::new(format!(
        "Forward the mail \"{subject}\" from {} to everybody of the group {group}, in one mail.",
        from.name
    ))
    .look("contacts_group", json!({ "group": group }), to[0])
    .look("mail_search", json!({ "query": subject }), &mail.id)
    .make("mail_forward", json!({ "mail": mail.id, "to": to }), [required])
}

pub(super) fn pay_attendees(draft: &mut Draft) -> Problem {
    let (event, cents, note) = (some_event(draft), draft.cents(2, 30), draft.note());
    let people = super::attendees(draft, &event.record);
    let (title, sum) = (&event.record.title, money(cents));
    let mut problem = Problem::new(format!(
        "Send {sum} to each attendee of the event \"{title}\", with the note \"{note}\"."
    ))
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), &people[0].email);
    for person in people {
        problem = problem.make(
            "payments_send",
            json!({ "to": person.email, "amount": amount(cents), "note": note }),
            [sent(&person, cents, &note)],
        );
    }
    problem
}

pub(super) fn total_to_file(draft: &mut Draft) -> Problem {
    let (to, name) = (some_person(draft), draft.file_name());
    let total = super::single::total(draft, &to);
    let path = format!("/{}/{name}", draft.pick(crate::words::FOLDERS));
    let required =
        Required::made("file").key(path.as_str()).says("text", vec![Fact::Amount(total)]);
    Problem::new(format!(
        "Write how much money was sent to {} in all to the new file {path}.",
        to.email
    ))
    .look("payments_history", json!({ "email": to.email }), &to.name)
    .make("files_write", json!({ "path": path, "text": money(total) }), [required])
}

pub(super) fn contact_from_mail(draft: &mut Draft) -> Problem {
    let ((name, email), subject, phone) = (draft.stranger(), draft.subject(), draft.phone());
    let body = format!("Hello, I am new here. You reach me at {phone}. Yours, {name}");
    let id = draft.add_mail(&email, &subject, &body, &[]);
    let required = Required::made("contact")
        .reads("name", &name)
        .is("email", email.as_str())
        .is("phone", phone.as_str());
    Problem::new(format!(
        "Add the sender of the mail \"{subject}\" to the contacts, with the name, address and telephone number in it."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), &phone)
    .make("contacts_add", json!({ "name": name, "email": email, "phone": phone }), [required])
}

pub(super) fn move_by_mail(draft: &mut Draft) -> Problem {
    let event = some_event(draft);
    let (from, subject) = (some_person(draft), draft.subject());
    let (start, required) = super::single::moved_event(draft, &event);
    let title = &event.record.title;
    let body =
        format!("Hello, can we move \"{title}\" to {start}? The time before does not suit me.");
    let id = draft.add_mail(&from.email, &subject, &body, &[]);
    Problem::new(format!(
        "Move the event that the mail \"{subject}\" is about to the time that it asks for."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), &start)
    .look("calendar_search", json!({ "query": title }), &event.id)
    .make("calendar_move", json!({ "event": event.id, "start": start }), [required])
    .keep("the event was removed", "event", &event.id)
}

pub(super) fn share_with_attendees(draft: &mut Draft) -> Problem {
    let (file, event): (Found<_>, _) = (some_file(draft), some_event(draft));
    let people = super::attendees(draft, &event.record);
    let (name, title) = (file.name(), &event.record.title);
    let emails: Vec<String> = event.record.attendees.iter().cloned().collect();
    let calls: Vec<_> =
        emails.iter().map(|email| json!({ "path": file.id, "email": email })).collect();
    let required = Required::changed("file", file.id.as_str()).is("shared_with", emails);
    Problem::new(format!(
        "Share the file {name}, in whatever folder that is, with all attendees of the event \"{title}\"."
    ))
    .look("files_search", json!({ "query": name }), &file.id)
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), &people[0].email)
    .make_by("files_share", calls, required)
    .keep("the file was removed", "file", &file.id)
}

pub(super) fn split_file_bill(draft: &mut Draft) -> Problem {
    let (group, members) = some_group(draft);
    let (name, note) = (draft.file_name(), draft.note());
    let share = draft.cents(4, 30);
    let total = money(share * (members.len() as i64 + 1));
    let path = format!("/{}/{name}", draft.pick(crate::words::FOLDERS));
    draft.add_file(&path, &format!("The sum that was paid for the evening is {total}."));
    let problem = Problem::new(format!(
        "The file {name}, in whatever folder that is, tells what you paid for an evening with the group {group}. Split it \
         equally among you and everybody of the group, and request from each of them their share, with the note \"{note}\"."
    ))
    .look("files_search", json!({ "query": name }), &path)
    .look("files_read", json!({ "path": path }), &total)
    .look("contacts_group", json!({ "group": group }), &members[0].email);
    super::single::ask_each(problem, &members, share, &note)
}

pub(super) fn schedule_by_mail(draft: &mut Draft) -> Problem {
    let (from, to) = (some_person(draft), some_person(draft));
    let (subject, note, cents, day) =
        (draft.subject(), draft.note(), draft.cents(5, 90), draft.day());
    let (sum, other) = (money(cents), draft.lookalike(&to));
    let body = format!("Hello, please send {sum} to {} on {day}.", to.name);
    let id = draft.add_mail(&from.email, &subject, &body, &[]);
    let required = Required::made("scheduled")
        .is("with", to.email.as_str())
        .is("cents", cents)
        .is("on", day.to_string())
        .reads("note", &note);
    Problem::new(format!(
        "Schedule the payment that the mail \"{subject}\" asks for, with the note \"{note}\"."
    ))
    .look("mail_search", json!({ "query": subject }), &id)
    .look("mail_read", json!({ "mail": id }), &sum)
    .look("contacts_search", json!({ "query": to.name }), &to.email)
    .make(
        "payments_schedule",
        json!({ "to": to.email, "amount": amount(cents), "on": day.to_string(), "note": note }),
        [required],
    )
    .never("it is for somebody else", "scheduled", "with", &other.email)
}
