//! Something has to be looked up in the same application.

use serde_json::json;

use super::{
    Found, asked, money, moved, names, some_event, some_file, some_group, some_mail, some_person,
    words,
};
use crate::Draft;
use crate::calendar::Event;
use crate::draft::Person;
use crate::facts::{Answer, Fact};
use crate::goal::Required;
use crate::problem::Problem;

pub(super) fn pay_request(draft: &mut Draft) -> Problem {
    let (from, cents, note) = (some_person(draft), draft.cents(2, 60), draft.note());
    let other = draft.lookalike(&from);
    drop_requests(draft, &from);
    let id = draft.add_request("incoming", &from, cents, &note);
    let (of_other, note_of_other) = (draft.cents(2, 60), draft.note());
    draft.add_request("incoming", &other, of_other, &note_of_other);
    Problem::new(format!("Pay the open request of {}.", from.name))
        .look("payments_requests", json!({}), &id)
        .make(
            "payments_pay_request",
            json!({ "request": id }),
            [
                Required::changed("request", id.as_str()).is("status", "paid"),
                super::sent(&from, cents, &note),
            ],
        )
        .never("somebody else was paid", "payment", "with", &other.email)
}

/// Takes away what somebody wants already, so that a request is the only one.
fn drop_requests(draft: &mut Draft, from: &Person) {
    let requests = &mut draft.world.payments.requests;
    let keys: Vec<u32> =
        requests.iter().filter(|(_, it)| it.with == from.email).map(|(key, _)| *key).collect();
    for key in keys {
        requests.remove(&key);
    }
}

pub(super) fn decline_requests(draft: &mut Draft) -> Problem {
    let limit = draft.number(3, 6) * 1_000;
    let mut problem = Problem::new(format!(
        "Decline every open request that others have of you and that is above {}.",
        money(limit)
    ));
    let offsets = [-950, 450, 1_250, -450];
    for (place, offset) in offsets.into_iter().enumerate() {
        let (from, note) = (draft.people[place].clone(), draft.note());
        draft.add_request("incoming", &from, limit + offset, &note);
    }
    let open: Vec<(String, i64)> = draft
        .world
        .payments
        .requests
        .iter()
        .filter(|(_, it)| it.direction == "incoming" && it.cents > limit)
        .map(|(key, it)| (crate::table::id('r', *key), it.cents))
        .collect();
    problem = problem.look("payments_requests", json!({}), &open[0].0);
    for (id, _) in open {
        problem = problem.make(
            "payments_decline_request",
            json!({ "request": id }),
            [Required::changed("request", id.as_str()).is("status", "declined")],
        );
    }
    problem
}

/// What was sent to somebody in all, of at least two payments.
pub(super) fn total(draft: &mut Draft, to: &Person) -> i64 {
    for _ in 0..2 {
        let (cents, note) = (draft.cents(2, 60), draft.note());
        draft.add_payment("sent", to, cents, &note);
    }
    let payments = draft.world.payments.payments.iter();
    payments
        .filter(|(_, it)| it.with == to.email && it.direction == "sent")
        .map(|(_, it)| it.cents)
        .sum()
}

pub(super) fn total_sent(draft: &mut Draft) -> Problem {
    let to = some_person(draft);
    let total = total(draft, &to);
    Problem::new(format!("How much money was sent to {} in all?", to.email))
        .look("payments_history", json!({ "email": to.email }), &to.name)
        .answer(Answer::One(Fact::Amount(total)))
}

/// Another time for an event, and the change that it is.
pub(super) fn moved_event(draft: &mut Draft, event: &Found<Event>) -> (String, Required) {
    let (old, lasts) = (event.record.start, event.record.end.minutes_since(event.record.start));
    let start = draft.until(|draft| {
        let (day, minutes) = (draft.day(), draft.quarter());
        let start = day.at(minutes);
        // Later by more than it lasts, so that both times differ.
        (start.minutes_since(old).abs() > lasts).then_some(start)
    });
    let end = start.plus_minutes(lasts).to_string();
    let required =
        Required::changed("event", event.id.as_str()).is("start", start.to_string()).is("end", end);
    (start.to_string(), required)
}

pub(super) fn move_titled_event(draft: &mut Draft) -> Problem {
    let event = some_event(draft);
    let title = &event.record.title;
    let (start, required) = moved_event(draft, &event);
    Problem::new(format!("Move the event \"{title}\" to {start}."))
        .look("calendar_search", json!({ "query": title }), &event.id)
        .make("calendar_move", json!({ "event": event.id, "start": start }), [required])
        .keep("the event was removed", "event", &event.id)
}

pub(super) fn who_comes(draft: &mut Draft) -> Problem {
    let event = some_event(draft);
    let title = &event.record.title;
    let people = super::attendees(draft, &event.record);
    Problem::new(format!(
        "Who comes to the event \"{title}\"? Name all attendees, with commas between."
    ))
    .look("calendar_search", json!({ "query": title }), &event.id)
    .look("calendar_get", json!({ "event": event.id }), &people[0].name)
    .answer(names(&people))
}

/// A day on which something is in the morning, and the first time at which a stretch of `minutes` is free there.
pub(super) fn busy_day(
    draft: &mut Draft,
    minutes: i64,
) -> (crate::moment::Date, crate::moment::Moment) {
    let day = draft.today().plus_days(22);
    let lasts = draft.pick(&[45, 60, 75]);
    let second = draft.pick(&[0, 15]);
    let third = draft.pick(&[60, 90]);
    let nine = day.at(9 * 60);
    let mut at = nine;
    for (before, lasts) in [(0, lasts), (second, 60), (minutes, third)] {
        let title = draft.title();
        let start = at.plus_minutes(before);
        let end = start.plus_minutes(lasts);
        let with = draft.some_people(1);
        draft.add_event_at(&title, &with, start, end);
        at = end;
    }
    // Between the second and the third there is just enough room.
    (day, nine.plus_minutes(lasts + second + 60))
}

pub(super) fn earliest_free(draft: &mut Draft) -> Problem {
    let (title, minutes) = (draft.title(), draft.pick(&[30, 45, 60]));
    let (day, start) = busy_day(draft, minutes);
    let end = start.plus_minutes(minutes);
    let required = Required::made("event")
        .reads("title", &title)
        .is("start", start.to_string())
        .is("end", end.to_string());
    let from = crate::moment::time_words(start.minute_of_day());
    Problem::new(format!(
        "Make an event \"{title}\" of {minutes} minutes on {day}, as early as possible between 09:00 and 17:00, at a time \
         at which there is nothing else."
    ))
    .look("calendar_free", json!({ "date": day.to_string(), "from": "09:00", "to": "17:00" }), &from)
    .make(
        "calendar_create",
        json!({ "title": title, "start": start.to_string(), "minutes": minutes }),
        [required],
    )
}

/// A day with at least two events, with their ids.
pub(super) fn full_day(draft: &mut Draft) -> (crate::moment::Date, Vec<String>) {
    let event = some_event(draft);
    let day = event.record.start.date();
    let (title, with) = (draft.title(), draft.some_people(1));
    let start = day.at(19 * 60);
    draft.add_event_at(&title, &with, start, start.plus_minutes(60));
    let found = draft.world.calendar.between(day.at(0), day.plus_days(1).at(0));
    (day, found.into_iter().map(|(key, _)| crate::table::id('e', key)).collect())
}

pub(super) fn clear_day(draft: &mut Draft) -> Problem {
    let (day, events) = full_day(draft);
    let mut problem = Problem::new(format!("Remove all events on {day}.")).look(
        "calendar_day",
        json!({ "date": day.to_string() }),
        &events[0],
    );
    for id in events {
        problem = problem.make(
            "calendar_delete",
            json!({ "event": id }),
            [Required::removed("event", id.as_str())],
        );
    }
    problem
}

pub(super) fn star_sender(draft: &mut Draft) -> Problem {
    let (_, from) = some_mail(draft);
    let mails = draft.world.mail.mails.iter().filter(|(_, mail)| mail.from == from.email);
    let ids: Vec<String> = mails.map(|(key, _)| crate::table::id('m', *key)).collect();
    let mut problem = Problem::new(format!("Give every mail from {} a star.", from.email)).look(
        "mail_from",
        json!({ "email": from.email }),
        &ids[0],
    );
    for id in ids {
        problem = problem.make(
            "mail_star",
            json!({ "mail": id, "starred": true }),
            [Required::changed("mail", id.as_str()).is("starred", true)],
        );
    }
    problem
}

pub(super) fn count_mails(draft: &mut Draft) -> Problem {
    let (mail, from) = some_mail(draft);
    let count = draft.world.mail.mails.iter().filter(|(_, mail)| mail.from == from.email).count();
    Problem::new(format!("How many mails are there from {}?", from.email))
        .look("mail_from", json!({ "email": from.email }), &mail.id)
        .answer(Answer::Count(i64::try_from(count).unwrap_or(i64::MAX)))
}

pub(super) fn file_subject(draft: &mut Draft) -> Problem {
    let (mail, from) = some_mail(draft);
    let folder = draft.pick(&["archive", "receipts", "travel"]);
    let subject = &mail.record.subject;
    Problem::new(format!("Move the mail \"{subject}\" from {} to the folder {folder}.", from.name))
        .look("mail_search", json!({ "query": subject }), &mail.id)
        .make(
            "mail_move",
            json!({ "mail": mail.id, "folder": folder }),
            [Required::changed("mail", mail.id.as_str()).is("folder", folder)],
        )
        .keep("the mail was removed", "mail", &mail.id)
}

pub(super) fn forward_subject(draft: &mut Draft) -> Problem {
    let (mail, from) = some_mail(draft);
    let to = draft.lookalike(&from);
    let (subject, body) = (&mail.record.subject, &mail.record.body);
    let required = super::mailed(draft, &[&to.email])
        .any("subject")
        .reads("body", body)
        .is("about", mail.id.as_str());
    Problem::new(format!("Forward the mail \"{subject}\" from {} to {}.", from.name, to.email))
        .look("mail_search", json!({ "query": subject }), &mail.id)
        .make("mail_forward", json!({ "mail": mail.id, "to": [to.email] }), [required])
        .never("it went back to its sender", "mail", "to", &from.email)
}

pub(super) fn join_group(draft: &mut Draft) -> Problem {
    let (group, members) = some_group(draft);
    let person = draft.until(|draft| {
        let is_outside = |id: &str| members.iter().all(|member| member.id != id);
        Some(some_person(draft)).filter(|person| is_outside(&person.id))
    });
    let key = crate::table::key('c', "a contact", &person.id).expect("its own id");
    let contact = draft.world.contacts.people.get(&key).expect("a contact that is there");
    let mut groups = contact.groups.clone();
    groups.insert(group.clone());
    let groups: Vec<String> = groups.into_iter().collect();
    Problem::new(format!("Put {} into the group {group}.", person.name))
        .look("contacts_search", json!({ "query": person.name }), &person.id)
        .make(
            "contacts_group_add",
            json!({ "group": group, "contact": person.id }),
            [Required::changed("contact", person.id.as_str()).is("groups", groups)],
        )
}

pub(super) fn ask_phone(draft: &mut Draft) -> Problem {
    let person = some_person(draft);
    Problem::new(format!("What is the telephone number of {}?", person.name))
        .look("contacts_search", json!({ "query": person.name }), &person.phone)
        .answer(Answer::One(words(&person.phone)))
}

pub(super) fn append_line(draft: &mut Draft) -> Problem {
    let file = some_file(draft);
    let line = format!("{} for {}", draft.note(), draft.city());
    let name = file.name();
    let required = Required::changed("file", file.id.as_str())
        .reads("text", &format!("{}\n{line}", file.record.text));
    Problem::new(format!(
        "Add the line \"{line}\" to the end of the file {name}, in whatever folder that is."
    ))
    .look("files_search", json!({ "query": name }), &file.id)
    .make("files_append", json!({ "path": file.id, "text": line }), [required])
    .keep("the file was removed", "file", &file.id)
}

pub(super) fn file_away(draft: &mut Draft) -> Problem {
    let file = some_file(draft);
    let folder = super::other_folder(draft, &file.id);
    let name = file.name();
    let required = moved(&file.id, &format!("{folder}/{name}"), &file.record);
    Problem::new(format!(
        "Move the file {name}, in whatever folder that is, to the folder {folder}."
    ))
    .look("files_search", json!({ "query": name }), &file.id)
    .make("files_move", json!({ "path": file.id, "to": folder }), required)
}

/// Requests of everybody in a list for the same amount.
pub(super) fn ask_each(mut problem: Problem, people: &[Person], cents: i64, note: &str) -> Problem {
    for person in people {
        problem = problem.make(
            "payments_request",
            json!({ "from": person.email, "amount": super::amount(cents), "note": note }),
            [asked(person, cents, note)],
        );
    }
    problem
}
